"""Cache of the catalogue (0.05 s to read, 0.5 s to import all plugins).

The cache is a JSON file in ``$XDG_CACHE_HOME/auditor``, used only if it and its folder belong to
the user alone. Its digest covers imported files (size and modification time), modules of plugin
packages, and distributions. Another digest leads to a new import.

Not checked: that registration depends on imported files only, not on variables or the time of day.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from auditor.process.containment import contained
from auditor.process.plugin_packages import declared, modules_in
from auditor.process.shipped import shipped_scenarios
from auditor.results.files import write_atomically

LARGEST = 2**24
"""Largest cache file in bytes; it typically has 500 kB."""


def answer(command: str, make: Callable[[], str]) -> str:
    """Return the output of ``list``, ``list attacks``, ``show llse`` etc.

    The text comes from the cache or from ``make``. It is not cached if the registry is already
    loaded, because plugins may have been registered by hand.
    """
    if "auditor.registry" in sys.modules:
        return make()
    with contained():  # no cache, or a broken plugin package
        kept = _read(_place())
        if kept["state"] == _state(kept["files"]):
            return str(kept["answers"][command])
    before = time.time_ns()
    made = make()
    with contained():  # no home folder, or not writable
        _keep(before)
    return made


def _read(place: Path) -> Any:
    """Return the cached content.

    Raises
    ------
    OSError
        The file is missing, not the user's alone, too large or not a regular file.
    """
    # does not block on a pipe
    with os.fdopen(os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not (
            _own(found)
            and _own(place.parent.stat())
            and stat.S_ISREG(found.st_mode)
            and found.st_size <= LARGEST
        ):
            raise PermissionError(place)
        return json.loads(file.read())


def _own(found: os.stat_result) -> bool:
    """Whether only the user may write to a file or folder; assumed on Windows."""
    return os.name == "nt" or (
        found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _keep(before: int) -> None:
    """Cache every list and page, unless a plugin is broken.

    Not cached if a file changed after ``before`` (``time.time_ns``), because its older version may
    be loaded.
    """
    from auditor import registry  # start-up: reading the cache does not need these
    from auditor.catalogue import pages

    answers = pages.answers()
    imported = sorted(
        {
            str(module.__file__)
            for module in list(sys.modules.values())
            if getattr(module, "__file__", None)
        }
    )
    if registry.failures or any(Path(path).stat().st_mtime_ns >= before for path in imported):
        return
    place = _place()
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # in a shared folder, a link could point to a user's file
    if _own(place.parent.stat()) and (place.is_file() or not place.exists()):
        content = json.dumps(
            {"state": _state(imported), "files": imported, "answers": answers}
        ).encode()
        write_atomically(place, content, private=True)


def _state(imported: Iterable[str]) -> str:
    """Return a digest of imported files and plugin packages.

    Raises
    ------
    OSError
        A file is missing, or in an archive.
    """
    packages: list[Any] = []
    for point in declared():
        folders = _folders(point.module)
        distribution = point.dist and (point.dist.name, point.dist.version)
        packages.append(
            (
                point.name,
                point.value,
                distribution,
                folders,
                sorted(modules_in(point.module, folders)),
            )
        )
    paths = [*imported, *map(str, shipped_scenarios())]
    changes = [
        (path, found.st_mtime_ns, found.st_size) for path in paths for found in [Path(path).stat()]
    ]
    return hashlib.sha256(repr((sys.version, packages, changes)).encode()).hexdigest()


def _folders(package: str) -> list[str]:
    """Return the folders of a package's modules.

    A single file, for example `auditor_attacks.py` in a checkout, is imported for its `__path__`.
    """
    spec = find_spec(package)
    if spec is None:
        return []
    return spec.submodule_search_locations or list(getattr(import_module(package), "__path__", ()))


def _place() -> Path:
    system = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    here = hashlib.sha256(repr((sys.prefix, __file__)).encode()).hexdigest()[:8]
    # the XDG specification ignores relative paths
    cache = Path(system) if Path(system).is_absolute() else Path("~/.cache")
    return cache.expanduser() / "auditor" / f"catalogue-{here}.json"

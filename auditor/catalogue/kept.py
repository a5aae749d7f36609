"""Lists and pages as they were made the last time: to import every plugin takes half a second, to read this a twentieth.

What is kept is texts about plugins and scenarios that ship, in one JSON file in ``$XDG_CACHE_HOME/auditor``, where a user's programs keep
such. A digest tells what they were made from: every imported file's size and time of change, the modules in each package that declares
plugins, and the distributions that declare any. Where it differs, or the file is missing or none of ours, everything is imported anew.
A variable may name a folder that others write to, so that a file is read and written only where it and its folder are the user's alone.

Assumed and *not checked*: what a module registers depends on files that are imported, and on nothing else (a variable, the time of day).
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
"""Bytes of a file that is read; ours has half a million."""


def answer(command: str, make: Callable[[], str]) -> str:
    """Return what a command (``list``, ``list attacks``, ``show llse``) prints: as kept, or as ``make`` finds it now.

    Nothing is kept in a process that has the registry already, where plugins may have been registered by hand.
    """
    if "auditor.registry" in sys.modules:
        return make()
    with contained():  # no home, no file, none of ours; or a plugin's package breaks while it is looked for
        kept = _read(_place())
        if kept["state"] == _state(kept["files"]):
            return str(kept["answers"][command])
    before = time.time_ns()
    made = make()
    with contained():  # no home, or none that can be written to
        _keep(before)
    return made


def _read(place: Path) -> Any:
    """Return what is kept.

    Raises
    ------
    OSError
        There is none, or it is not the user's alone, too large, or a pipe or a device, which might be read without end.
    """
    with os.fdopen(os.open(place, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:  # else a pipe is waited for
        found = os.fstat(file.fileno())
        if not (_own(found) and _own(place.parent.stat()) and stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST):
            raise PermissionError(place)
        return json.loads(file.read())


def _own(found: os.stat_result) -> bool:
    """Whether a file or a folder is the user's, and nobody else may write to it; Windows has folders of caches that are."""
    return os.name == "nt" or (found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _keep(before: int) -> None:
    """Keep every list and page, unless a plugin is broken: the next call is to tell of it too.

    Nor where a file was changed since ``before``, in nanoseconds as of ``time.time_ns``: it may have been imported as it was then.
    """
    from auditor import registry  # for start-up: what is kept is read without it
    from auditor.catalogue import pages

    answers = pages.answers()
    imported = sorted({str(module.__file__) for module in list(sys.modules.values()) if getattr(module, "__file__", None)})
    if registry.failures or any(Path(path).stat().st_mtime_ns >= before for path in imported):
        return
    place = _place()
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if _own(place.parent.stat()) and (place.is_file() or not place.exists()):  # in another's folder a link may lead to a file of the user's
        content = json.dumps({"state": _state(imported), "files": imported, "answers": answers}).encode()
        write_atomically(place, content, private=True)


def _state(imported: Iterable[str]) -> str:
    """Return a digest of the files and packages that answers are made from; it imports no package of plugins.

    Raises
    ------
    OSError
        A file is gone, or in an archive.
    """
    packages: list[Any] = []
    for point in declared():
        folders = _folders(point.module)
        distribution = point.dist and (point.dist.name, point.dist.version)
        packages.append((point.name, point.value, distribution, folders, sorted(modules_in(point.module, folders))))
    paths = [*imported, *map(str, shipped_scenarios())]
    changes = [(path, found.st_mtime_ns, found.st_size) for path in paths for found in [Path(path).stat()]]
    return hashlib.sha256(repr((sys.version, packages, changes)).encode()).hexdigest()


def _folders(package: str) -> list[str]:
    """Return the folders of a package's modules. A single file is imported for its `__path__`: a checkout has `auditor_attacks.py`."""
    spec = find_spec(package)
    if spec is None:
        return []
    return spec.submodule_search_locations or list(getattr(import_module(package), "__path__", ()))


def _place() -> Path:
    """Return where texts are kept: a file for each place that this program is installed at."""
    system = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "")
    here = hashlib.sha256(repr((sys.prefix, __file__)).encode()).hexdigest()[:8]
    cache = Path(system) if Path(system).is_absolute() else Path("~/.cache")  # the XDG specification has relative ones passed over
    return cache.expanduser() / "auditor" / f"catalogue-{here}.json"

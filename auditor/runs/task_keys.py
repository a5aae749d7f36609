"""What a task's result depends on, as digests: program, data, every file named, and the scenario at the task's sweep point.

Two tasks with one key have one result. *Not checked*: the kind of processor (linear algebra may
round otherwise on another), and what a third party's plugin reads beside its own package, its
parameters and the files they name.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor import registry
from auditor.data.request import is_file
from auditor.process.environment import version
from auditor.results.files import located
from auditor.runs.journal import FORMAT
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "pyarrow")
WITHOUT_RESULT = ("schema", "title", "cite", "schemes", "sweep", "replicates", "expect")
"""What no measurement depends on, and what a task says itself."""
ELSEWHERE = ("place", "scheme", "table", "share", "attempts")
"""Fields of a task that its sweep point's scenario and its table say in full."""


@dataclass
class Identity:
    """Of one run.

    Attributes
    ----------
    parts : dict of str to str
        What the run depends on → digest, by names that a user knows.
    keys : list of str
        One for each task, in their order.
    stamps : dict of Path to (time, size)
        The files that the scenario names, as they were.
    unsure : bool
        Whether they changed since, so that nobody can tell what a task has read.
    """

    parts: dict[str, str]
    keys: list[str]
    stamps: dict[Path, tuple[int, int]] = field(default_factory=dict)
    unsure: bool = False

    def files_changed(self) -> list[str]:
        """Return the names of files that were changed since the run began: nobody can tell which content a task has read."""
        return [path.name for path, stamp in self.stamps.items() if _stamp(path) != stamp]


def identify(
    scenario: Scenario, tasks: Sequence[Any], fingerprints: Sequence[tuple[dict[str, Any], str]]
) -> Identity:
    """Return the identity of a run.

    Parameters
    ----------
    scenario : Scenario
    tasks : sequence of dataclass instances
        Each with ``place`` (of its sweep point) and ``scheme`` (its number in the scenario); their
        other fields are part of their keys.
    fingerprints : sequence of (sweep point, fingerprint of its table)
    """
    program = {"program": _digest(_program(scenario)), "packages": _digest(_packages())}
    parts = dict(program)
    stamps: dict[Path, tuple[int, int]] = {}
    here: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    spec = scenario.spec()
    parts |= {name: _digest(spec.get(name)) for name in spec}
    named: dict[str, str] = {}
    for point, fingerprint in fingerprints:
        at = at_point(scenario, point)
        files = {path: content for path, content in _files(at)}
        named |= {path.name: content for path, content in files.items()}
        stamps |= {path: _stamp(path) for path in (*files, *_source(at))}
        found = {key: value for key, value in at.spec().items() if key not in WITHOUT_RESULT}
        common = {
            "format": FORMAT,
            **program,
            "table": fingerprint,
            "files": list(files.values()),
            "scenario": found,
        }
        here[_text(point)] = (common, [use.spec() for use in at.schemes])
    parts["the table"] = _digest([fingerprint for _, fingerprint in fingerprints])
    parts |= {f"file {name}": content for name, content in named.items()}
    return Identity(
        parts, [_task_key(task, *here[_text(dict(task.place.point))]) for task in tasks], stamps
    )


def _task_key(task: Any, common: Mapping[str, Any], schemes: Sequence[Any]) -> str:
    own = {
        each.name: getattr(task, each.name) for each in fields(task) if each.name not in ELSEWHERE
    }
    return _digest(
        {**common, "point": dict(task.place.point), "scheme": schemes[task.scheme], "task": own}
    )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()


# -- the program
# -----------------------------------------------------------------------------------------------------------


def _packages() -> dict[str, str]:
    found = {package: version(package) for package in PACKAGES}
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **found,
    }


def _program(scenario: Scenario) -> dict[str, str]:
    """Return version and source code of the core and of every package that a plugin used here comes from."""
    uses = [
        *(("scheme", use.name) for use in scenario.schemes),
        *(("attack", use.name) for use in scenario.attacks),
    ]
    if registry.has("source", scenario.data.source):
        uses.append(("source", scenario.data.source))
    homes = {registry.get(kind, name).__module__.partition(".")[0] for kind, name in uses}
    return {
        "version": version("auditor"),
        **{home: _source_code(home) for home in sorted({"auditor", *homes})},
    }


@lru_cache(maxsize=64)
def _source_code(package: str) -> str:
    """Return a digest of a package's Python files; one that has none is never the same twice."""
    module = sys.modules.get(package)
    roots = [Path(root) for root in getattr(module, "__path__", [])]
    files = [
        (path.relative_to(root).as_posix(), path)
        for root in roots
        for path in sorted(root.rglob("*.py"))
    ]
    if not roots and getattr(module, "__file__", None):
        files = [(package, Path(str(getattr(module, "__file__", ""))))]
    if not files:
        return os.urandom(16).hex()
    return _digest([(name, hashlib.sha256(path.read_bytes()).hexdigest()) for name, path in files])


# -- files
# -----------------------------------------------------------------------------------------------------------------


def _files(scenario: Scenario) -> Iterator[tuple[Path, str]]:
    """Yield the files that the scenario names anywhere, with digests of their content.

    The table has a fingerprint, so its file is left out, unless a model learns to predict a column
    that is not in the table.
    """
    spec = {
        key: value
        for key, value in scenario.spec().items()
        if key not in ("title", "cite", "expect")
    }
    spec["data"] = {key: value for key, value in spec["data"].items() if key != "source"}
    predicts = scenario.utility is not None and scenario.utility.target is not None
    named = [_path(name, scenario.base) for name in dict.fromkeys(_names(spec))]
    for path in dict.fromkeys(
        [*(_source(scenario) if predicts else []), *(path for path in named if path is not None)]
    ):
        yield path, _content(path, _stamp(path))


def _source(scenario: Scenario) -> list[Path]:
    """Return the files that the table is in."""
    for path in (
        located(scenario.data.source, scenario.base) if is_file(scenario.data.source) else []
    ):
        return sorted(path.resolve().iterdir()) if path.is_dir() else [path.resolve()]
    return []


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _names(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _names(item)


def _path(name: str, base: Path | None) -> Path | None:
    return next((path.resolve() for path in located(name, base) if path.is_file()), None)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_mtime_ns, status.st_size


@lru_cache(maxsize=256)
def _content(path: Path, stamp: tuple[int, int]) -> str:
    del stamp  # part of the cache's key
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return os.urandom(16).hex()

"""Results of finished tasks, one file each, for ``--resume``.

A file's name holds digests of its content and of all dependencies. They guard against damage, not
against forgery. Only their owner can read files, which hold full aggregates.

*Not checked*: the kind of processor, which may change rounding, and files that a plugin reads but
no parameter names.
"""

import errno
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from operator import methodcaller
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from auditor import registry
from auditor.audit.base.request import ReleaseAudit
from auditor.base import StorageError
from auditor.base.types import Names, Plain, frozen
from auditor.process.containment import shielded
from auditor.process.environment import version
from auditor.results.files import located, lock_folder, sweep, write_atomically
from auditor.runs.tables import table_files
from auditor.runs.tasks import Task
from auditor.scenario.model import Scenario

FORMAT = 5
FOLDER = "finished-tasks"
WRITTEN = ("results.json", "results.parquet", "report.html")
PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "pyarrow")
ELSEWHERE = "schema title cite budget schemes sweep replicates expect".split()
"""Sections without influence on measurements, or stated by tasks."""
DIGITS = 32
BROKEN = (OSError, ValueError, TypeError, RecursionError)
"""Errors from damaged files."""

_FINISHED = TypeAdapter(tuple[float, list[ReleaseAudit]], config={"defer_build": True})
"""Computing time in seconds, and the results."""


def encoded(audits: list[ReleaseAudit], seconds: float) -> bytes:
    """Content of a finished task's file; numbers are exact."""
    plain = _FINISHED.dump_python((round(seconds, 6), audits), mode="json", warnings=False)
    return json.dumps(plain, default=methodcaller("item")).encode("ascii")


def decoded(content: bytes) -> tuple[float, list[ReleaseAudit]]:
    """Time and results that ``encoded`` wrote; a ValueError for other content."""
    return _FINISHED.validate_json(content, strict=True)


@contextmanager
def storing(path: Path) -> Iterator[None]:
    """Turn an error of writing results into a StorageError that names the remedy."""
    try:
        yield
    except OSError as error:
        problem = f"{path}: cannot be written ({error.strerror or type(error).__name__})"
        if isinstance(error, FileNotFoundError):
            raise StorageError(
                f"{problem}: its folder was removed or renamed during the run; run again"
            ) from None
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise StorageError(
            f"{problem}; every finished task is kept there: {'make room' if full else 'mend this'}, and run again with --resume"
        ) from None


@frozen
class Keep:
    """Folder for the results of one run; ``resume`` uses the finished tasks in it.

    ``tell`` receives one line on reused tasks, and reasons against others.
    """

    folder: Path
    resume: bool = False
    tell: Callable[[str], None] = lambda line: None


class FinishedTasks:
    """Tasks of one run that are finished, on disk; ``digests`` are of the points' tables.

    ``spent`` is the computing time of reused results in seconds.

    Raises
    ------
    AuditorError
        Another run is writing to the folder.
    """

    def __init__(
        self, keep: Keep, scenario: Scenario, tasks: Sequence[Task], digests: Names
    ) -> None:
        self._keep, self.spent, self._used = keep, 0.0, set[Path]()
        self._unsure = False
        self._keys, self._stamps = _dependencies(scenario, tasks, digests)
        self._folder = keep.folder / FOLDER
        self._lock = lock_folder(keep.folder)
        sweep(keep.folder, WRITTEN)

    def close(self) -> None:
        """Unlock the folder."""
        if self._lock is not None:
            os.close(self._lock)

    def read(self) -> dict[int, list[ReleaseAudit]]:
        """Valid results of an earlier run, by the task's place."""
        found, damaged = dict[int, list[ReleaseAudit]](), 0
        if not self._keep.resume:
            return found
        files = {path.name.partition("-")[0]: path for path in self._folder.glob("*-*.json")}
        if not files:
            self._keep.tell(f"nothing to resume in {self._keep.folder}: every task is carried out")
        for number, key in enumerate(self._keys):
            if (path := files.get(key)) is None:
                continue
            try:
                content = path.read_bytes()
                if not path.stem.endswith(_hash(content)):
                    raise ValueError
                seconds, found[number] = decoded(content)
                self.spent += seconds
                self._used.add(path)
            except BROKEN:
                damaged += 1
        if files:
            entries = "entry is" if damaged == 1 else "entries are"
            why = f"; {damaged} damaged {entries} left out" * bool(damaged)
            self._keep.tell(
                f"resumed: {len(found)} of {len(self._keys)} tasks are finished already{why}"
            )
        return found

    def write(self, number: int, audits: list[ReleaseAudit], seconds: float) -> list[ReleaseAudit]:
        """Write a task's result, unless a cell failed or a file changed.

        Returns the result as a resumed run reads it. The next run repeats failed tasks.

        Raises
        ------
        StorageError
            It cannot be written. Earlier results are kept.
        """
        failed = any(audit.measurements.where(status="failed").any() for audit in audits)
        if failed or not self._unchanged():
            return audits
        with shielded():  # pydantic would hide a signal in an error of its own
            content = encoded(audits, seconds)
        path = self._folder / f"{self._keys[number]}-{_hash(content)}.json"
        with shielded(), storing(path):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(path, content, private=True)
            first = not self._used
            self._used.add(path)
            if first and not self._keep.resume:
                self._remove_others()
        return decoded(content)[1]

    def finish(self) -> None:
        """Remove files that the whole run's results do not use."""
        if self._used:
            with shielded(), suppress(OSError):
                self._remove_others()

    def _remove_others(self) -> None:
        for path in set(self._folder.glob("*-*.json")) - self._used:
            path.unlink(missing_ok=True)

    def _unchanged(self) -> bool:
        changed = [path.name for path, stamp in self._stamps.items() if _stamp(path) != stamp]
        if changed and not self._unsure:
            self._unsure = True
            self._keep.tell(
                f"{', '.join(changed)} changed while it was audited: what was computed since is not kept for --resume"
            )
        return not self._unsure


# -- dependencies of a result ----------------------------------------------------------------------

Stamp = tuple[int, int] | None


def _dependencies(
    scenario: Scenario, tasks: Sequence[Task], digests: Names
) -> tuple[list[str], dict[Path, Stamp]]:
    machine = platform.system(), platform.machine(), platform.python_version()
    packages = [*machine, *map(version, PACKAGES)]
    program = {"program": _digest(_program(scenario)), "packages": _digest(packages)}
    contents, stamps, here = dict[Path, str](), dict[Path, Stamp](), Plain()
    for at, table in zip(scenario.points, digests, strict=True):
        spec, files = at.spec(), _files(at)
        stamps |= {path: _stamp(path) for path in (*files, *table_files(at)) if path not in stamps}
        contents |= {path: _content(path) for path in files if path not in contents}
        measured = {key: value for key, value in spec.items() if key not in ELSEWHERE}
        used = [contents[path] for path in files]
        here[_text(at.point)] = [FORMAT, program, table, used, measured]
    keys = []
    for task in tasks:
        own = [task.here.point, task.use.spec(), task.replicates, task.pooling]
        keys.append(_digest([here[_text(task.here.point)], own]))
    return keys, stamps


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(value: Any) -> str:
    return _hash(_text(value).encode())


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _program(scenario: Scenario) -> list[Any]:
    uses = [("scheme", use.name) for use in scenario.schemes]
    uses += [("attack", use.name) for use in scenario.attacks]
    if registry.has("source", scenario.data.source):
        uses.append(("source", scenario.data.source))
    homes = {registry.get(kind, name).__module__.partition(".")[0] for kind, name in uses}
    return [version("auditor"), *map(_source_code, sorted({"auditor", *homes}))]


@lru_cache(maxsize=64)
def _source_code(package: str) -> str:
    module = sys.modules.get(package)
    roots = [Path(root) for root in getattr(module, "__path__", [])]
    files = [path for root in roots for path in sorted(root.rglob("*.py"))]
    if not roots and (file := getattr(module, "__file__", None)):
        files = [Path(file)]
    if not files:
        return os.urandom(16).hex()
    return _digest([package, *((path.name, _hash(path.read_bytes())) for path in files)])


def _files(scenario: Scenario) -> list[Path]:
    """Files that the scenario names.

    Without the table's, which has a fingerprint, unless a model predicts a column outside the
    table.
    """
    spec: Plain = scenario.spec()
    for name in ("title", "cite", "expect"):
        del spec[name]
    spec["data"].pop("source", None)
    predicts = scenario.utility is not None and scenario.utility.target is not None
    found = table_files(scenario) if predicts else []
    for name in _names(spec):
        found += [path.resolve() for path in located(name, scenario.base) if path.is_file()][:1]
    return list(dict.fromkeys(found))


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _names(item)


def _stamp(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _content(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return os.urandom(16).hex()

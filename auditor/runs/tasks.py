"""Tasks of a run: replicates of one scheme at one sweep point.

A task carries no records, unless they stay in files, and yields aggregates. A long release is divided into steps. Parts
are added in order, so results are the same bytes for any number of workers.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import platform
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
from functools import lru_cache, partial
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from auditor import registry
from auditor.audit.base.request import ReleaseAudit, ReleaseRequest, SoFar, Step, Tell
from auditor.audit.base.session import cells_of, in_order_of_promise, made_attack
from auditor.audit.engine import audit_release, session_of
from auditor.base import AuditorError, StorageError
from auditor.base.types import Names, Plain, frozen
from auditor.data.table import Table
from auditor.process.containment import contained, shielded
from auditor.process.environment import keep_freed_memory, one_thread, version
from auditor.results.files import located, lock_folder, sweep, write_atomically
from auditor.runs.plan import line_of
from auditor.runs.tables import table_files, table_of
from auditor.runs.workers import Crew, Numbered
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scenario.read_plugins import applies

TASKS_PER_SCHEME = 16
"""Most tasks for a scheme's replicates."""

Advance = Callable[[int, int, str], None]
"""Receives the steps done, all steps, and the label of one under way."""


@frozen
class Task:
    """Some replicates of one scheme at one sweep point.

    Attributes
    ----------
    here : Scenario
        The scenario at the sweep point.
    scheme : int
        Its place in the scenario.
    pooling : bool
        Whether the gain of pooling needs evidence.
    table : Table or None
        A table that stays in its files; others are loaded by each process.
    """

    here: Scenario = field(repr=False)
    scheme: int
    replicates: tuple[int, ...]
    pooling: bool
    table: Table | None = field(default=None, repr=False)

    @property
    def use(self) -> SchemeUse:
        """Its scheme."""
        return self.here.schemes[self.scheme]

    @property
    def seconds(self) -> float:
        """Estimated time; 0 if unknown."""
        with contained():  # the audit will fail with the reason
            line = line_of(self.here, self.use, self.table or table_of(self.here)[0])
            return line.work.seconds * len(self.replicates) / line.replicates
        return 0.0

    @property
    def label(self) -> str:
        """Label for the progress display."""
        where = ", ".join(f"{path}={value}" for path, value in self.here.point.items())
        return f"{self.use.id}{f' at {where}' if where else ''}, replicate {self.replicates[0]}"

    @property
    def divisible(self) -> bool:
        """Whether several workers can share its steps."""
        held = self.table is not None or session_of(self.use).divides_held_tables
        return len(self.replicates) == 1 and held

    def request(self, replicate: int) -> ReleaseRequest:
        """Request to audit one release."""
        here = self.here
        table = table_of(here)[0] if self.table is None else self.table
        return ReleaseRequest(here, here.point, table, self.use, replicate, self.pooling)


def plan(scenario: Scenario, tables: Sequence[Table | None]) -> Iterator[Task]:
    """Yield the tasks of a scenario in the order of its results.

    ``tables`` are those of the sweep points that stay in their files.
    """
    for here, table in zip(scenario.points, tables, strict=True):
        for scheme, use in enumerate(here.schemes):
            replicates = here.replicates_of(use)
            share = math.ceil(replicates / TASKS_PER_SCHEME) if table is None else 1
            for first in range(1, replicates + 1, share):
                some = tuple(range(first, min(first + share, replicates + 1)))
                yield Task(here, scheme, some, here.asks_pooling(use.id), table)


def first_look(task: Task) -> list[ReleaseAudit]:
    """Audit of the first replicate by the most promising attack, if one applies."""
    here, family = task.here, registry.get("scheme", task.use.name).family
    for number in in_order_of_promise(cells := cells_of(here)):
        use, knowledge = cells[number]
        with contained():
            if applies(made_attack(use), family, knowledge):
                here = replace(here, attacks=(use,), measures=(), utility=None)
                request = task.request(task.replicates[0])
                with one_thread():
                    return [
                        audit_release(replace(request, scenario=here, pooling=False, brief=True))
                    ]
    return []


def carry_out_all(
    tasks: Sequence[Task],
    missing: Sequence[int],
    crew: Crew,
    advance: Advance,
    tell: Callable[[int, SoFar], None],
) -> Numbered[list[ReleaseAudit]]:
    """Yield number and result of every missing task; tasks divided into steps last.

    ``tell`` receives number and function for the audit so far of tasks in this process.
    """
    seconds = {number: 0.0 if crew.alone else tasks[number].seconds for number in missing}
    most = sum(seconds.values()) / crew.workers
    divided = [
        number
        for number in missing
        if (len(missing) == 1 or seconds[number] > most) and tasks[number].divisible
    ]
    # a long task begun last would run alone
    whole = sorted({*missing} - {*divided}, key=lambda number: (-seconds[number], number))
    results: Numbered[list[ReleaseAudit]]
    if crew.alone:
        results = crew.as_done(lambda at: carry_out(tasks[at], None, partial(tell, at)), whole)
    else:
        results = crew.as_done(carry_out, [tasks[number] for number in whole])
    left = {number: tasks[number].label for number in (*whole, *divided)}
    with closing(results):
        progress = _Progress(len(tasks), left, advance)
        for place, result in results:
            progress.finish(whole[place])
            yield whole[place], result
    for number in divided:
        share = partial(_in_steps, tasks[number], crew, progress)
        result = carry_out(tasks[number], share, partial(tell, number))
        progress.finish(number)
        yield number, result


def carry_out(
    task: Task,
    share: Callable[[Sequence[Step]], Iterator[Any]] | None = None,
    tell: Tell | None = None,
) -> list[ReleaseAudit]:
    """Audit the releases of one task, in any process.

    Linear algebra uses one thread, because its sums depend on the number of threads.
    """
    keep_freed_memory()
    with one_thread():
        return [
            audit_release(replace(task.request(replicate), share=share, tell=tell))
            for replicate in task.replicates
        ]


# -- steps of one release --------------------------------------------------------------------------


class _Failed(NamedTuple):
    reason: str


def _in_steps(task: Task, crew: Crew, progress: _Progress, steps: Sequence[Step]) -> Iterator[Any]:
    progress.add(len(steps))
    # files may change before the next run
    work = partial(_carry_out_step, task, secrets.token_hex(8))
    with closing(crew.in_order(work, steps)) as results:
        for result in results:
            progress.step()
            if isinstance(result, _Failed):
                raise AuditorError(result.reason)
            yield result


def _carry_out_step(task: Task, mark: str, step: Step) -> Any:
    keep_freed_memory()
    with one_thread(), contained() as failure:
        if _last[0] != mark:
            _last[:] = "", None  # before the next is opened
            _last[:] = mark, task.request(task.replicates[0]).audited()[0]
        return step(_last[1])
    return _Failed(failure.reason)


_last: list[Any] = ["", None]
"""Mark and request of the release with the last step of this process."""


class _Progress:
    def __init__(self, total: int, left: dict[int, str], advance: Advance) -> None:
        self._done, self._total, self._advance = total - len(left), total, advance
        self._left, self._label = left, ""
        self._show()

    def finish(self, number: int) -> None:
        self._label = self._left.pop(number)
        self.step()

    def add(self, steps: int) -> None:
        self._total += steps
        self._show()

    def step(self) -> None:
        self._done += 1
        self._show()

    def _show(self) -> None:
        self._advance(self._done, self._total, next(iter(self._left.values()), self._label))


# -- finished tasks on disk, for --resume ----------------------------------------------------------

# A file's name holds digests of its content and of all dependencies. They guard against damage, not
# against forgery. Only their owner can read files, which hold full aggregates. Not checked: the
# kind of processor, which may change rounding, and files that a plugin reads but no parameter names.

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

"""What a run is cut into: tasks that carry paths, places and aggregates, and yield aggregates, in any process or on any machine.

Releases of a table in memory are a task each. A table that stays in its files is gone through once for all schemes together: tasks of
some stripes each read the rows, make every scheme's copies of them and take their moments; then each release is a task again, which
needs no row for linear attacks. Releases of categories take a few passes each, whose stripes are shared out likewise. What stripes yield is
added up in order, so that results are the same bytes for any cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from auditor import registry
from auditor.audit import (
    Drawing,
    Release,
    ReleaseAudit,
    Taken,
    audit_release,
    failure_reason,
    open_release,
    release_levels,
    table_moments,
)
from auditor.blocks import row_blocks, stripes
from auditor.data.categories import Categories
from auditor.data.hierarchy import hierarchy_of
from auditor.data.load import is_file, load_table
from auditor.data.table import Table
from auditor.files import located
from auditor.gathering import Draw, Gatherer, Stripe, draws_of
from auditor.keeper import Unfinished
from auditor.passes import audit_by_passes
from auditor.scenario.data import DATA_FIELDS
from auditor.scenario.model import Scenario
from auditor.scenario.read import at_point, rebuild
from auditor.scheme import TableMoments
from auditor.streams import stream
from auditor.stretches import plain, rejoined, stripes_of
from auditor.workers import Crew

Array = NDArray[np.float64]

TASKS_PER_SCHEME = 16
"""Replicates are dealt out in at most so many shares: cheap ones should not each pay for a task."""
TASKS_PER_PASS = 256
"""A table in its files is gone through in at most so many shares: five for each of fifty workers."""


@dataclass(frozen=True)
class Place:
    """A scenario at one sweep point, as text: rebuilt wherever a task is carried out."""

    document: dict[str, Any] = field(repr=False)
    base: str | None
    name: str
    point: tuple[tuple[str, Any], ...]

    def scenario(self) -> Scenario:
        """Return the scenario, rebuilt once in a process."""
        return _scenario_at(json.dumps([self.document, self.point]), self.base, self.name)


@dataclass(frozen=True)
class Task:
    """Some replicates of one scheme at one sweep point.

    Attributes
    ----------
    place : Place
    scheme : int
        Its place in the scenario.
    replicates : tuple of int
    pooling : bool
        Whether an expectation needs evidence on what pooling buys.
    table : Table or None
        Where the rows are, for a table that stays in its files; others are loaded where the task is carried out.
    taken : Taken or None
        What was gathered of the rows already.
    """

    place: Place
    scheme: int
    replicates: tuple[int, ...]
    pooling: bool
    table: Table | None = None
    taken: Taken | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """What progress shows."""
        where = ", ".join(f"{path}={value}" for path, value in self.place.point)
        return f"{self.place.scenario().schemes[self.scheme].id}{f' at {where}' if where else ''}, replicate {self.replicates[0]}"

    @property
    def identity(self) -> str:
        """What tells the task from the others of its run, in every run of the same scenario on the same data."""
        return json.dumps([self.place.point, self.scheme, self.replicates])


@dataclass(frozen=True)
class GatherTask:
    """One pass over some stripes of a table in its files, for one replicate of several schemes.

    Its result holds moments of a few rows that adversaries were given, and rows given in clear: of it only ``stretches.plain`` may be
    written to disk.
    """

    place: Place
    schemes: tuple[int, ...]
    replicate: int
    table: Table
    draws: dict[str, Draw] = field(repr=False)
    first: int
    stop: int
    chosen_alone: bool = False
    """Whether the sums over all rows are known already, so that only blocks with chosen rows are looked at."""

    @property
    def label(self) -> str:
        """What progress shows."""
        return f"rows of stripes {self.first + 1} to {self.stop}, replicate {self.replicate}"

    @property
    def name(self) -> str:
        """What tells it from the other steps of its pass."""
        return f"stripes-{self.first}-{self.stop}"

    def looks_at(self, start: int, stop: int) -> bool:
        """Whether there is anything to find in a block's rows."""
        return not self.chosen_alone or any(draw.falls_within(start, stop) for draw in self.draws.values())


def plan(scenario: Scenario, points: Sequence[dict[str, Any]]) -> Iterator[Task]:
    """Yield the release tasks of a scenario, in the order of its results."""
    pooling = any(use.expectation.needs_pooling for use in scenario.judged)
    for point in points:
        here = at_point(scenario, point)
        table, _ = table_of(here)
        place = Place(scenario.document, None if scenario.base is None else str(scenario.base), scenario.name, tuple(point.items()))
        numbers = range(1, here.replicates + 1)
        share = 1 if table.streamed else math.ceil(here.replicates / TASKS_PER_SCHEME)
        for scheme in range(len(here.schemes)):
            for first in range(0, here.replicates, share):
                yield Task(place, scheme, tuple(numbers[first : first + share]), pooling, table if table.streamed else None)


def carry_out_all(
    tasks: Sequence[Task], crew: Crew, advance: Callable[[int, int, str], None] = lambda done, total, label: None,
    begun: Unfinished | None = None,
) -> Iterator[tuple[Task, list[ReleaseAudit]]]:  # fmt: skip
    """Yield every task with its result as it is finished; tables in memory first.

    Parameters
    ----------
    tasks : sequence of Task
    crew : Crew
    advance : callable
        Told how many of how many steps are done, and of one that is under way: steps are begun in order, so the first not done is.
    begun : Unfinished, optional
        Where what a pass has found is kept until its tasks are finished, by their places.
    """
    places = {task.identity: place for place, task in enumerate(tasks)}
    held = [task for task in tasks if task.table is None]
    coded = [task for task in tasks if task.table is not None and _categorical(task)]
    batches: dict[Any, list[Task]] = {}
    for task in tasks:
        if task.table is not None and not _categorical(task):
            batches.setdefault((json.dumps(task.place.point), task.replicates), []).append(task)
    passes = [(gather_tasks(batch), batch) for batch in batches.values()]
    total, done = len(tasks) + sum(len(steps) for steps, _ in passes), 0
    for steps, batch in [([], held), *passes]:
        joined = Joined()
        ahead: dict[int, GatherTask | Task] = dict(enumerate((*steps, *batch)))
        if ahead:
            advance(done, total, ahead[0].label)
        known = _Known(begun, {task.scheme: places[task.identity] for task in batch})
        with closing(known.gathered(steps, crew)) as gathered:
            for place, (step, found) in enumerate(zip(steps, gathered, strict=True)):
                joined.add(step, found)
                done += 1
                del ahead[place]
                advance(done, total, _first(ahead, step))
        ready = [replace(task, taken=joined.of(task.scheme)) for task in batch]
        with closing(crew.as_done(carry_out, ready)) as finished:
            for place, result in finished:
                done += 1
                del ahead[len(steps) + place]
                advance(done, total, _first(ahead, batch[place]))
                yield batch[place], result
    for task in coded:
        yield task, audit_by_passes(task, crew, TASKS_PER_PASS)
        done += 1
        advance(done, total, task.label)


class _Known:
    """What is kept of a pass: the sums of each of its steps, scheme by scheme.

    Parameters
    ----------
    begun : Unfinished or None
    places : mapping of int to int
        Scheme → the place of the task that its sums are a part of.
    """

    def __init__(self, begun: Unfinished | None, places: Mapping[int, int]) -> None:
        self._begun, self._places = begun, places

    def gathered(self, steps: Sequence[GatherTask], crew: Crew) -> Generator[dict[int, list[Stripe] | str], None, None]:
        """Yield what each step finds, in order; of those whose sums are kept only chosen rows are looked for, if there are any."""
        known = [self._of(step) for step in steps]
        ahead = [step if sums is None else replace(step, chosen_alone=True)
                 for step, sums in zip(steps, known, strict=True) if sums is None or step.draws]  # fmt: skip
        with closing(crew.carry_out(gather, ahead)) as results:
            for step, sums in zip(steps, known, strict=True):
                if sums is None:
                    found = next(results)
                    self._keep(step, found)
                    yield found
                elif not step.draws:
                    yield dict(sums)
                else:
                    again = next(results).items()
                    yield {scheme: each if isinstance(each, str) else rejoined(sums[scheme], each) for scheme, each in again}

    def _of(self, step: GatherTask) -> dict[int, list[Stripe]] | None:
        if self._begun is None:
            return None
        kept = {scheme: stripes_of(self._begun.read(self._places[scheme], step.name)) for scheme in step.schemes}
        known = {scheme: sums for scheme, sums in kept.items() if sums is not None and len(sums) == step.stop - step.first}
        return known if len(known) == len(step.schemes) else None

    def _keep(self, step: GatherTask, found: Mapping[int, list[Stripe] | str]) -> None:
        if self._begun is not None:
            sums = {self._places[scheme]: plain(each) for scheme, each in found.items() if not isinstance(each, str)}
            self._begun.keep(step.name, {place: kept for place, kept in sums.items() if kept is not None})


def _categorical(task: Task) -> bool:
    return bool(registry.get("scheme", task.place.scenario().schemes[task.scheme].name).family == "uniform")


def _first(ahead: dict[int, GatherTask | Task], last: GatherTask | Task) -> str:
    """Return what progress shows: the first step that is not done; where all are, the last."""
    return next(iter(ahead.values()), last).label


def gather_tasks(batch: Sequence[Task]) -> list[GatherTask]:
    """Return the pass over the rows that serves the releases of one table in one replicate."""
    table, place, replicate = batch[0].table, batch[0].place, batch[0].replicates[0]
    assert table is not None
    here = place.scenario()
    schemes = tuple(task.scheme for task in batch if _by_rows(registry.get("scheme", here.schemes[task.scheme].name)))
    if not schemes:
        return []
    draws = draws_of(here.knowledge, table.rows, here.seed, replicate)
    count = len(stripes(table.rows, table.width))
    share = math.ceil(count / TASKS_PER_PASS)
    return [GatherTask(place, schemes, replicate, table, draws, first, min(first + share, count)) for first in range(0, count, share)]


def _by_rows(scheme: Any) -> bool:
    """Whether a scheme makes any block's copies from that block alone, which one that asks for the table may not."""
    return not hasattr(scheme, "table")


class Joined:
    """What a pass gathered of each scheme, added up as its parts come in."""

    def __init__(self) -> None:
        self._draws: dict[str, Draw] = {}
        self._found: dict[int, Stripe | str] = {}

    def add(self, task: GatherTask, found: dict[int, list[Stripe] | str]) -> None:
        """Add what one task yielded; tasks come in order."""
        self._draws = task.draws
        for scheme, part in found.items():
            whole = self._found.setdefault(scheme, Stripe())
            if isinstance(whole, str):  # failed on rows before these
                continue
            if isinstance(part, str):
                self._found[scheme] = part
                continue
            for stripe in part:
                whole.add(stripe)

    def of(self, scheme: int) -> Taken | None:
        """Return what was gathered of one scheme; None when nothing was."""
        found = self._found.get(scheme)
        if found is None:
            return None
        return Taken(self._draws, None, found) if isinstance(found, str) else Taken(self._draws, found)


def gather(task: GatherTask) -> dict[int, list[Stripe] | str]:
    """Go through some stripes: every row is read once, and every scheme makes its copies of it.

    Returns
    -------
    dict
        By the scheme's place in the scenario: what was gathered of each stripe, or why its copies could not be made.
    """
    with threadpool_limits(limits=1):
        here, table = task.place.scenario(), task.table
        moments = table_moments(table)
        memory = _Memory(*row_blocks(table.rows, table.width)[0])
        passing = {scheme: _Pass(here, table, moments, scheme, task, memory) for scheme in task.schemes}
        blocks = row_blocks(table.rows, table.width)
        for cut in stripes(table.rows, table.width)[task.first : task.stop]:
            for each in passing.values():
                each.begin()
            for index in range(*cut):
                if task.looks_at(*blocks[index]):
                    x = table.read(*blocks[index])
                    for each in passing.values():
                        each.take(index, x)
        return {scheme: each.failure or each.found for scheme, each in passing.items()}


class _Memory:
    """Blocks that schemes take turns to write over: touching fresh memory costs more than the arithmetic, and it adds up."""

    def __init__(self, first: int, stop: int) -> None:
        self._block = stop - first
        self._copies: dict[int, list[Array]] = {}

    def copies(self, columns: int, count: int) -> list[Array]:
        """Return a block for each of so many copies."""
        held = self._copies.setdefault(columns, [])
        held += [np.empty((self._block, columns)) for _ in range(len(held), count)]
        return held[:count]


class _Pass:
    """One scheme's part in a pass over the rows; where it fails, the others go on."""

    def __init__(self, here: Scenario, table: Table, moments: TableMoments, scheme: int, task: GatherTask, memory: _Memory) -> None:
        self.found: list[Stripe] = []
        self.failure = ""
        try:
            use = here.schemes[scheme]
            release: Release = open_release(here, table, moments, use, release_levels(use, here), task.replicate)
            columns = release.scheme.output_width(table.width)
            self._memory = memory.copies(columns, len(release.levels))
            self._drawing: Drawing = release.drawing()
            joint = columns == table.width
            self._gatherer = Gatherer(
                table.rows, table.width, moments.mean, task.draws, joint, release.undo, moments.deviation, not task.chosen_alone
            )
        except (Exception, SystemExit) as error:
            self.failure = failure_reason(error)

    def begin(self) -> None:
        """Begin the next stripe."""
        self.found.append(Stripe())

    def take(self, index: int, x: Array) -> None:
        """Make the copies of one block and gather what there is in them."""
        if self.failure:
            return
        try:
            copies = [copy[: len(x)] for copy in self._memory]
            self.found[-1].seconds += self._drawing.block(index, x, copies)
            self._gatherer.take(self.found[-1], index, x, copies)
        except (Exception, SystemExit) as error:
            self.failure = failure_reason(error)


def carry_out(task: Task) -> list[ReleaseAudit]:
    """Carry out one task; runs in a worker.

    Linear algebra is held to one thread: its sums depend on the number of threads, and results must not.
    """
    with threadpool_limits(limits=1):
        here = task.place.scenario()
        table, moments = table_of(here) if task.table is None else (task.table, table_moments(task.table))
        use, point = here.schemes[task.scheme], dict(task.place.point)
        return [
            audit_release(here, point, table, moments, use, replicate, task.pooling, task.taken) for replicate in task.replicates
        ]


@lru_cache(maxsize=64)
def _scenario_at(text: str, base: str | None, name: str) -> Scenario:
    document, point = json.loads(text)
    return at_point(rebuild(document, None if base is None else Path(base), name), dict(point))


def table_of(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Return the scenario's table and its exact moments; kept, as every task of a run reads the same few tables."""
    base = None if scenario.base is None else str(scenario.base)
    with threadpool_limits(limits=1):
        spec = json.dumps(scenario.data.spec())  # order counts: columns make a product domain, leaves a hierarchy
        declared = json.dumps(scenario.data.hierarchies)
        return _table(spec, declared, base, scenario.seed, _stamp(scenario.data.source, scenario.base))


def _stamp(source: str, base: Path | None) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when a file does: in a long session a table that was edited must not be taken for the one kept."""
    for path in located(source, base) if is_file(source) else []:
        files = sorted(path.resolve().iterdir()) if path.is_dir() else [path.resolve()]
        return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    return ()


@lru_cache(maxsize=4)
def _table(
    spec: str, declared: str, base: str | None, seed: int, stamp: tuple[tuple[str, int, int], ...]
) -> tuple[Table, TableMoments]:
    data = json.loads(spec)
    own = {key: value for key, value in data.items() if key not in DATA_FIELDS}
    table = load_table(
        data["source"],
        columns=data["columns"],
        rows=data["rows"],
        missing=data["missing"],
        standardize=data["standardize"],
        parameters=own,
        rng=stream(seed, "data"),
        base=None if base is None else Path(base),
        categories=Categories(data.get("bin", {}), data.get("categorical", {})),
        hierarchies={name: hierarchy_of(tree) for name, tree in json.loads(declared).items()},
    )
    return table, table_moments(table)

"""One pass over the rows of a table in its files, for all schemes together: cut into steps that any process may take."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np
from threadpoolctl import threadpool_limits

from auditor import registry
from auditor.audit.base.outcome import Taken
from auditor.audit.base.release import Drawing, Release, open_release, release_levels
from auditor.audit.numeric.gather import Draw, Gatherer, Stripe, draws_of
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks, stripes
from auditor.process.containment import contained
from auditor.runs.checkpoint import Unfinished
from auditor.runs.moment_checkpoint import plain, rejoined, stripes_of
from auditor.runs.task import Place, Task
from auditor.runs.workers import Crew
from auditor.scenario.model import Scenario
from auditor.schemes.base.scheme import TableMoments, table_moments
from auditor.types import Array

TASKS_PER_PASS = 256
"""A table in its files is gone through in at most so many shares: five for each of fifty workers."""


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


class KnownSums:
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


def gather_tasks(batch: Sequence[Task]) -> list[GatherTask]:
    """Return the pass over the rows that serves the releases of one table in one replicate."""
    table, place, replicate = batch[0].table, batch[0].place, batch[0].replicates[0]
    assert table is not None
    here = place.scenario()
    schemes = tuple(task.scheme for task in batch if not registry.get("scheme", here.schemes[task.scheme].name).needs_table)
    if not schemes:
        return []
    draws = draws_of(here.knowledge, table.rows, here.seed, replicate)
    count = len(stripes(table.rows, table.width))
    share = math.ceil(count / TASKS_PER_PASS)
    return [GatherTask(place, schemes, replicate, table, draws, first, min(first + share, count)) for first in range(0, count, share)]


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
        with contained() as failure:
            use = here.schemes[scheme]
            release: Release = open_release(here, table, moments, use, release_levels(use, here), task.replicate)
            columns = release.scheme.output_width(table.width)
            self._memory = memory.copies(columns, release.copies)
            self._drawing: Drawing = release.drawing()
            joint = columns == table.width
            self._gatherer = Gatherer(
                table.rows, table.width, moments.mean, task.draws, joint, release.undo, moments.deviation, not task.chosen_alone
            )
        self.failure = failure.reason

    def begin(self) -> None:
        """Begin the next stripe."""
        self.found.append(Stripe())

    def take(self, index: int, x: Array) -> None:
        """Make the copies of one block and gather what there is in them."""
        if self.failure:
            return
        with contained() as failure:
            copies = [copy[: len(x)] for copy in self._memory]
            self.found[-1].seconds += self._drawing.block(index, x, copies)
            self._gatherer.take(self.found[-1], index, x, copies)
        self.failure = failure.reason

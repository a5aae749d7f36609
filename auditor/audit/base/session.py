"""Audit of one open release: every attack, knowledge and coalition.

Pictures are of one attribute's originals, copies and estimates. Bins are runs of cells with ten
records or more, or none. Cells of numbers are a quarter of a standard deviation wide, up to three
from the mean, with open ends. Categories are ordered by frequency.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.request import Attempt, CellContext, ReleaseAudit, ReleaseRequest
from auditor.audit.numeric.error_tally import bins
from auditor.base.types import Array, Coalition, Coalitions, Indices
from auditor.process.containment import contained
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.measurements import Measurements
from auditor.results.records import Measurement, Picture, ReleaseEvidence
from auditor.scenario.model import AttackUse, Scenario

CELLS, PER_DEVIATION = 24, 4
RECORDS = 2**16
"""Records that are counted, about, from all over a longer table."""
EXACT = 5e-4
"""Shares unknown below this value are equal."""
Cell = tuple[str, str, Coalition, str]
"""Attack, knowledge, coalition and attribute."""


def most_exposed(
    found: Measurements, tries: Mapping[tuple[str, str], Sequence[str]]
) -> Cell | None:
    """Cell with the least share unknown, and of these the fewest copies.

    ``tries`` are eligible attacks with knowledge, and the attributes known in clear.
    """
    unknown = dict[Cell, float]()
    for metric, power in (("normalized_error", 1), ("median_error_ratio", 2)):
        for one in found.taken(found.where(metric=metric, status="ok")):
            cell = (str(one.attack), str(one.knowledge), one.coalition, one.attribute)
            known = tries.get(cell[:2], [one.attribute])
            if one.attribute not in known and one.value is not None:
                unknown[cell] = min(unknown.get(cell, np.inf), one.value**power)

    def rank(cell: Cell) -> tuple[bool, bool, float, int, Coalition]:
        least = round(max(EXACT, unknown[cell]), 9)  # not by rounding
        return bool(tries[cell[:2]]), cell[3] == "*", least, len(cell[2]), cell[2]

    return min(unknown, key=rank, default=None)


def number_cells(values: Array, mean: float, deviation: float) -> Indices:
    """Cells of numbers."""
    place = (values - mean) * (PER_DEVIATION / deviation) + CELLS / 2
    return np.clip(place, 0, CELLS - 1).astype(np.intp)


class Guesses(NamedTuple):
    """Cells of one attribute's originals, copies and estimates.

    Attributes
    ----------
    cells : int
        Number of cells.
    width : float
        Width of a cell in standard deviations, 0 for categories.
    originals, estimates : ndarrays of shape (n,)
    copies : sequence of ndarrays of shape (n,)
        By member; empty if they have other columns.
    """

    cells: int
    width: float
    originals: Indices
    copies: Sequence[Indices]
    estimates: Indices

    def picture(self, context: CellContext, cell: Cell) -> list[Picture]:
        """Picture with the nearest copy; none below ten records."""
        (attack, knowledge, coalition, attribute), records = cell, len(self.originals)
        place = self.originals * self.cells + self.estimates
        joint = np.bincount(place, minlength=self.cells**2).reshape(self.cells, self.cells)
        moved = [np.abs(copy - self.originals).sum() for copy in self.copies]
        nearest = int(np.argmin(moved)) if moved else None

        def shares(counts: NDArray[np.int64]) -> tuple[tuple[int, int, float], ...]:
            return tuple((a, b, held / records) for a, b, held in bins(counts))

        if records < FEWEST_RECORDS:
            return []
        originals, shown = joint.sum(axis=1), tuple[tuple[int, int, float], ...]()
        if nearest is not None:
            shown = shares(np.bincount(self.copies[nearest], minlength=self.cells))
        each = [
            (a, b, *one)
            for a, b, held in bins(originals)
            if held
            for one in shares(joint[a:b].sum(axis=0))
            if one[2]
        ]
        return [
            Picture(
                context.sweep,
                context.scheme,
                knowledge,
                attack,
                coalition,
                attribute,
                0 if nearest is None else coalition[nearest],
                records,
                self.cells,
                self.width,
                shares(originals),
                shown,
                shares(joint.sum(axis=0)),
                tuple(each),
            )
        ]


ROWS_LEARNT = 20_000
"""Records that an attack on rows learns from, about."""
INSIDER = -1
"""Number of the attempt that measures the insider's gains by pooling."""


def cells_of(scenario: Scenario) -> list[tuple[AttackUse, Knowledge]]:
    """Every attack with every state of knowledge, in the order of results."""
    return [(use, knowledge) for knowledge in scenario.knowledge for use in scenario.attacks]


def made_attack(use: AttackUse) -> Attack:
    """Attack that runs for one use."""
    attack: Attack = registry.get("attack", use.name)(use.parameters).form()
    return attack


def promise(attack: Attack) -> tuple[bool, bool, float]:
    """Rank by strength per second, the best linear attack first."""
    cost = attack.cost
    linear = isinstance(attack, LinearAttack)
    return not attack.best_linear, not linear, cost.fit + ROWS_LEARNT * cost.row


def in_order_of_promise(cells: Sequence[tuple[AttackUse, Knowledge]]) -> list[int]:
    """Numbers of attempts, the strongest per second first."""

    def rank(number: int) -> tuple[bool, bool, float]:
        with contained():
            return promise(made_attack(cells[number][0]))
        return True, True, 0.0  # it fails at once

    return sorted(range(len(cells)), key=rank)


def is_linear(use: AttackUse) -> bool:
    """Whether an attack is linear, or cannot be made."""
    with contained():
        return isinstance(made_attack(use), LinearAttack)
    return True


class Session(ABC):
    """One release under audit."""

    scenario: Scenario
    context: CellContext
    coalitions: Coalitions
    divides_held_tables: ClassVar[bool] = False
    """Whether steps of one release save time if its table is in memory."""

    @abstractmethod
    def __init__(self, request: ReleaseRequest) -> None: ...

    @classmethod
    def audit(cls, request: ReleaseRequest, evidence: ReleaseEvidence) -> ReleaseAudit:
        """All records of one release, and fill in the evidence."""
        return cls(request).run(evidence, request)

    @abstractmethod
    def release_records(self) -> Iterable[Measurement]:
        """Figures of the release itself."""

    @abstractmethod
    def attempt(self, use: AttackUse, knowledge: Knowledge, coalitions: Coalitions) -> Attempt:
        """Outcome of one attack; a failure raises."""

    @abstractmethod
    def guesses(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> Guesses:
        """Cells of an attribute's originals, copies and estimates."""

    def later_records(self) -> list[Measurement]:
        """Figures that follow the attacks' in the results."""
        return []

    @abstractmethod
    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations; ``made`` are attempts by number."""

    def tried(self, use: AttackUse, knowledge: Knowledge) -> Attempt:
        """Outcome of one attack; failures are recorded."""
        copies = self.context.copies
        tried = [coalition for coalition in self.coalitions if use.tries(coalition, copies)]
        return Attempt.joined(self._tried(use, knowledge, tried) if tried else [])

    def _tried(self, use: AttackUse, knowledge: Knowledge, coalitions: Coalitions) -> list[Attempt]:
        with contained() as failure:
            return [self.attempt(use, knowledge, coalitions)]
        if len(coalitions) > 1:
            return [found for one in coalitions for found in self._tried(use, knowledge, [one])]
        context = self.context.under(use.id, knowledge.label)
        empty = [context.empty(one, failure.status, failure.reason) for one in coalitions]
        return [Attempt.of(empty)]

    def run(
        self,
        evidence: ReleaseEvidence,
        request: ReleaseRequest,
        elsewhere: Collection[int] = (),
        made_elsewhere: Iterable[Attempt] = (),
    ) -> ReleaseAudit:
        """Run all attacks and return all records; fill in the evidence.

        Attacks run by strength per second; records keep the order of results.

        Parameters
        ----------
        elsewhere : collection of int
            Numbers of the attempts that ``made_elsewhere`` yields.
        """
        cells, tell, brief = cells_of(self.scenario), request.tell, request.brief
        first = Measurements.of([] if brief else list(self.release_records()))
        here = [number for number in in_order_of_promise(cells) if number not in elsewhere]
        tried = ((number, self.tried(*cells[number])) for number in here)
        made = dict[int, Attempt]()

        def so_far() -> ReleaseAudit:
            done = Measurements.concatenated(found.measurements for found in made.values())
            return ReleaseAudit(done, [], [], evidence)

        for number, attempt in chain(tried, zip(elsewhere, made_elsewhere, strict=True)):
            made[number] = attempt
            if tell is not None:
                tell(so_far)
        ordered = [made[number] for number in range(len(cells))]
        told = [
            (use.id, knowledge.label)
            for (use, knowledge), found in zip(cells, ordered, strict=True)
            if found.told
        ]
        if told:
            evidence.facts["told"] = list(dict.fromkeys(told))
        later = Measurements.of([] if brief else self.later_records())
        if not brief:
            self.testify(evidence, dict(sorted(made.items())))
        spreads = [spread for found in ordered for spread in found.distributions]
        parts = [first, *(found.measurements for found in ordered), later]
        table = Measurements.concatenated(parts)
        drawn = not brief and self.context.replicate == 1
        return ReleaseAudit(table, spreads, self._pictures(table) if drawn else [], evidence)

    def _pictures(self, found: Measurements) -> list[Picture]:
        cells = {(use.id, state.label): (use, state) for use, state in cells_of(self.scenario)}
        worst = most_exposed(found, {key: one[1].in_clear for key, one in cells.items()})
        with contained():
            if worst is not None:
                return self.guesses(*cells[worst[:2]], *worst[2:]).picture(self.context, worst)
        return []

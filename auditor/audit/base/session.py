"""Audit of one open release: every attack, knowledge and coalition.

Numbers and categories differ in ``attempt``, in the figures of the release, and in the evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import ClassVar

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack
from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.joint_counts import JointCounts, most_exposed
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import Attempt, ReleaseAudit, ReleaseRequest, Tell
from auditor.process.containment import contained
from auditor.results.evidence import ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Measurement, Picture
from auditor.scenario.model import AttackUse, Scenario
from auditor.types import Array, Coalition

ROWS_LEARNT = 20_000
"""Records that an attack on rows learns from, about."""
INSIDER = -1
"""Number of the attempt that measures the insider's gains by pooling."""


def cells_of(scenario: Scenario) -> list[tuple[AttackUse, Knowledge]]:
    """Return every attack with every state of knowledge, in the order of results.

    The places in this list are the numbers of attempts.
    """
    return [(use, knowledge) for knowledge in scenario.knowledge for use in scenario.attacks]


def cell_context(
    request: ReleaseRequest,
    levels: tuple[float, ...],
    copies: int,
    attributes: tuple[str, ...],
    variances: Array,
) -> CellContext:
    """Return the common part of the records of a release."""
    return CellContext(
        sweep=request.point,
        scheme=request.use.id,
        levels=levels,
        replicate=request.replicate,
        attributes=attributes,
        variances=variances,
        copies=copies,
    )


def made_attack(use: AttackUse) -> Attack:
    """Return the attack that runs for one use."""
    attack: Attack = registry.get("attack", use.name)(use.parameters).form()
    return attack


def promise(attack: Attack) -> tuple[bool, bool, float]:
    """Return the rank of an attack by strength per second: the best linear attack comes first."""
    cost = attack.cost
    linear = isinstance(attack, LinearAttack)
    return not attack.best_linear, not linear, cost.fit + ROWS_LEARNT * cost.row


def in_order_of_promise(cells: Sequence[tuple[AttackUse, Knowledge]]) -> list[int]:
    """Return the numbers of attempts, the strongest per second first."""

    def rank(number: int) -> tuple[bool, bool, float]:
        with contained():
            return promise(made_attack(cells[number][0]))
        return True, True, 0.0  # it fails at once

    return sorted(range(len(cells)), key=rank)


def is_linear(use: AttackUse) -> bool:
    """Return whether an attack is linear; also true if it cannot be made, as its cells state."""
    with contained():
        return isinstance(made_attack(use), LinearAttack)
    return True


class Session(ABC):
    """One release under audit."""

    scenario: Scenario
    context: CellContext
    coalitions: Sequence[Coalition]
    by_coalition: ClassVar[bool] = True
    """Whether a failed attack is tried again on each coalition alone."""

    @abstractmethod
    def release_records(self) -> list[Measurement]:
        """Return the figures of the release itself."""

    @abstractmethod
    def attempt(
        self, use: AttackUse, knowledge: Knowledge, coalitions: Sequence[Coalition]
    ) -> Attempt:
        """Return the outcome of one attack; a failure raises."""

    @abstractmethod
    def joint_counts(
        self, use: AttackUse, knowledge: Knowledge, coalition: Coalition, attribute: str
    ) -> tuple[JointCounts, float]:
        """Return an attribute's counts, and a cell's width in standard deviations."""

    def later_records(self) -> list[Measurement]:
        """Return figures that follow the attacks' in the results."""
        return []

    @abstractmethod
    def testify(self, evidence: ReleaseEvidence, made: Mapping[int, Attempt]) -> None:
        """Fill in the evidence for expectations; ``made`` are attempts by number."""

    def tried(self, use: AttackUse, knowledge: Knowledge) -> Attempt:
        """Return the outcome of one attack; failures are recorded."""
        copies = self.context.copies
        tried = [coalition for coalition in self.coalitions if use.tries(coalition, copies)]
        return Attempt.joined(self._tried(use, knowledge, tried) if tried else [])

    def _tried(
        self, use: AttackUse, knowledge: Knowledge, coalitions: Sequence[Coalition]
    ) -> list[Attempt]:
        with contained() as failure:
            return [self.attempt(use, knowledge, coalitions)]
        if self.by_coalition and len(coalitions) > 1:
            return [found for one in coalitions for found in self._tried(use, knowledge, [one])]
        context = self.context.under(use.id, knowledge.label)
        empty = [context.empty(one, failure.status, failure.reason) for one in coalitions]
        return [Attempt(Measurements.of(empty), [])]

    def run(
        self,
        evidence: ReleaseEvidence,
        elsewhere: Collection[int] = (),
        made_elsewhere: Iterable[tuple[int, Attempt]] = (),
        tell: Tell | None = None,
        brief: bool = False,
    ) -> tuple[Measurements, list[Distribution], list[Picture]]:
        """Return all records, and fill in the evidence.

        Attacks run by strength per second; the records keep the order of results.

        Parameters
        ----------
        elsewhere : collection of int
            Numbers of the attempts that ``made_elsewhere`` yields.
        tell : callable, optional
            Called with the audit so far after every attempt.
        brief : bool
            Whether only attacks are wanted, and no further evidence.
        """
        cells = cells_of(self.scenario)
        first = Measurements.of([] if brief else self.release_records())
        here = [number for number in in_order_of_promise(cells) if number not in elsewhere]
        tried = ((number, self.tried(*cells[number])) for number in here)
        made = {}
        for number, attempt in chain(tried, made_elsewhere):
            made[number] = attempt
            if tell is not None:
                some = Measurements.concatenated(one.measurements for one in made.values())
                tell(ReleaseAudit(some, [], [], evidence))
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
        return table, spreads, self._pictures(table) if drawn else []

    def _pictures(self, found: Measurements) -> list[Picture]:
        cells = {(use.id, state.label): (use, state) for use, state in cells_of(self.scenario)}
        worst = most_exposed(found, {key: one[1].in_clear for key, one in cells.items()})
        with contained():
            if worst is not None:
                counts, width = self.joint_counts(*cells[worst[:2]], *worst[2:])
                return counts.picture(self.context, worst, width)
        return []

"""Outcome of the audit of one release, and of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from auditor.audit.base.records import CellContext
from auditor.results.codec import Pairs
from auditor.results.evidence import InsiderGain, PairedCell, PairedGain, ReleaseEvidence
from auditor.results.measurements import Measurements
from auditor.results.records import Distribution, Picture
from auditor.scenario.model import Scenario
from auditor.types import Coalition


@dataclass(frozen=True)
class ReleaseAudit:
    """Outcome of the audit of one release."""

    measurements: Measurements
    distributions: list[Distribution]
    pictures: list[Picture]
    evidence: ReleaseEvidence


@dataclass(frozen=True)
class Attempt:
    """Outcome of one attack with one state of knowledge, or the insider's gains by pooling.

    Attributes
    ----------
    measurements : Measurements
    distributions : list of Distribution
    paired : dict
        Gains over copies that were chosen before any measurement (``ReleaseEvidence.paired``).
    told : bool
        Whether the attack asked for the table's distinct values.
    gains : dict
        The insider's gains by pooling.
    """

    measurements: Measurements
    distributions: list[Distribution]
    paired: Pairs[PairedCell, PairedGain] = field(default_factory=dict)
    told: bool = False
    gains: Pairs[Coalition, InsiderGain] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Attempt]) -> Attempt:
        """Return the outcomes on different coalitions as one."""
        return cls(
            Measurements.concatenated(part.measurements for part in parts),
            [spread for part in parts for spread in part.distributions],
            {cell: gain for part in parts for cell, gain in part.paired.items()},
            any(part.told for part in parts),
        )


def nothing_of(
    scenario: Scenario,
    context: CellContext,
    evidence: ReleaseEvidence,
    coalitions: Sequence[Coalition],
    reason: str,
) -> ReleaseAudit:
    """Return the audit of a release that failed: every cell has the reason."""
    records = [
        context.under(attack.id, knowledge.label).empty(coalition, "failed", reason)
        for knowledge in scenario.knowledge
        for attack in scenario.attacks
        for coalition in coalitions
        if attack.tries(coalition, context.copies)
    ]
    records = records or [context.empty(None, "failed", reason)]
    evidence = replace(evidence, pooling={}, paired={}, facts={}, law=[])
    return ReleaseAudit(Measurements.of(records), [], [], evidence)

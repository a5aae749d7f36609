"""The measuring half of advice: one scenario for one release, run by the engine that every audit has, and read for its worst cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.errors import AuditorError
from auditor.numerics.statistics import Z_95
from auditor.results.advice import Exposed
from auditor.results.model import AuditResult
from auditor.results.records import FEWEST_REPLICATES, Measurement, cells, half_interval, pooled
from auditor.runs.check import check_data
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario

MOST_SUBSETS = 10
"""Copies up to which every coalition is audited; of more single copies, the two and the ten least perturbed, and all."""
ROW_DRAWS, MOST_DRAWS = 20_000, 10
"""Records times draws of the noise that an audit measures; and how many draws these may be, at least FEWEST_REPLICATES."""

MORE = 3
"""Times as many draws where these leave it open whether a target is met: an attack that goes astray in some has a wide error bar."""


def draws(rows: int) -> int:
    """Return how many draws of the noise an audit of so many records has: from five on they give an error bar of their own.

    Examples
    --------
    >>> draws(500), draws(2_500), draws(100_000)
    (10, 8, 5)
    """
    return min(MOST_DRAWS, max(FEWEST_REPLICATES, ROW_DRAWS // rows))


@dataclass(frozen=True)
class Asked:
    """What the audits of one advice have in common.

    Attributes
    ----------
    data : mapping
        The scenario's section ``data``.
    target : float
        Share that must stay unknown.
    rows : int
        Records that are measured.
    seed : int
    categories : bool
        Whether the data are categories, which are one attribute together.
    utility : mapping
        The scenario's section ``utility``.
    """

    data: Mapping[str, Any]
    target: float
    rows: int
    seed: int
    categories: bool
    utility: Mapping[str, Any]

    def scenario(self, scheme: str, levels: Sequence[float], title: str = "", replicates: int | None = None) -> dict[str, Any]:
        """Return the scenario that makes and audits a release."""
        alone = {"attribute": "*"} if self.categories else {}
        return {
            "schema": 1,
            "title": title or f"{scheme}, {len(levels)} copies",
            "seed": self.seed,
            "data": dict(self.data),
            "schemes": [{"name": scheme, "levels": list(levels)}],
            "knowledge": ["perfect"],
            "coalitions": coalitions(len(levels)),
            "attacks": "all",
            **({"utility": dict(self.utility)} if len(levels) > 1 or self.utility else {}),
            "replicates": replicates or draws(self.rows),
            "expect": [{"exposure": {"scheme": scheme, **alone, "unknown": {"at-least": self.target}}}],
        }

    def audit(self, scheme: str, levels: Sequence[float]) -> AuditResult:
        """Return the audit of a release, with more draws of the noise where the first leave it open whether the target is met.

        Raises
        ------
        AuditorError
            The data or the levels cannot be used, or an attack or the scheme failed.
        """
        result = self._audit(scheme, levels, draws(self.rows))
        refuted = any(record.status == "fails" for record in result.expectations)
        return result if refuted or self.met(result) else self._audit(scheme, levels, MORE * draws(self.rows))

    def _audit(self, scheme: str, levels: Sequence[float], replicates: int) -> AuditResult:
        checked = read_scenario(self.scenario(scheme, levels, replicates=replicates))
        check_data(checked)
        result = run_scenario(checked)
        broken = next((record for record in result.measurements if record.status == "failed"), None)
        if broken is not None:
            raise AuditorError(f"{scheme}: a part of the audit failed, and nothing can be advised on the rest: {broken.reason}")
        return result

    def met(self, result: AuditResult) -> bool:
        """Whether every attack leaves the target in every attribute for sure, by the interval and by the expectation's own test."""
        return result.holds and self.exposed(result).surely >= self.target

    def exposed(self, result: AuditResult) -> Exposed:
        """Return the cell whose interval ends lowest."""
        every = [record for record in result.measurements if record.metric == "normalized_error" and record.status == "ok"]
        judged = [record for record in every if record.attack and (record.attribute == "*") == self.categories]
        return min((_exposed(cell) for cell in cells(judged).values()), key=lambda found: (found.surely, len(found.coalition)))


def pooling_gain(result: AuditResult, exposed: Exposed) -> float:
    """Return what pooling takes off what the best single copy leaves, as measured; 0 where it adds nothing."""
    same = ("normalized_error", exposed.attack, exposed.attribute, "ok", 1)
    told = ((cell, cell[0]) for cell in cells(result.measurements).values())
    alone = [pooled(cell)[0] for cell, one in told if (one.metric, one.attack, one.attribute, one.status, len(one.coalition)) == same]
    return max(0.0, 1.0 - exposed.unknown / min(alone))


def _exposed(cell: Sequence[Measurement]) -> Exposed:
    value, error = pooled(cell)
    first = cell[0]
    reach = half_interval(len(cell) - 1) if first.error_bar == "replicates" else Z_95
    return Exposed(value, reach * (error or 0.0), str(first.attack), first.attribute, first.coalition)


def coalitions(copies: int) -> list[Any]:
    """Return the coalitions to audit among so many copies.

    Examples
    --------
    >>> coalitions(3), coalitions(12)
    (['subsets'], ['singles', {'first': 2}, {'first': 10}, 'all'])
    """
    return ["subsets"] if copies <= MOST_SUBSETS else ["singles", {"first": 2}, {"first": MOST_SUBSETS}, "all"]

"""The measuring half of advice: one scenario for one release, run by the engine that every audit has, and read for its worst cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auditor.errors import AuditorError
from auditor.expectations.metric import judge_bounds
from auditor.numerics.statistics import Z_95
from auditor.results.advice import Exposed
from auditor.results.model import AuditResult
from auditor.results.records import Measurement, Verdict, cells, mean_theory, pooled
from auditor.runs.check import check_data
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario

MOST_SUBSETS = 10
"""Copies up to which every coalition is audited; of more single copies, the two and the ten least perturbed, and all."""
DRAWS = 10
"""Draws of the noise that an audit measures: their own spread is then an error bar that is known to a quarter; of five, to a third."""


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
    parameters : mapping
        Of the schemes.
    measures : sequence of mapping
        The scenario's section ``measures``.
    """

    data: Mapping[str, Any]
    target: float
    rows: int
    seed: int
    categories: bool
    utility: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    measures: Sequence[Mapping[str, Any]] = ()

    def scenario(self, scheme: str, levels: Sequence[float], title: str = "") -> dict[str, Any]:
        """Return the scenario that makes and audits a release."""
        alone = {"attribute": "*"} if self.categories else {}
        return {
            "schema": 1,
            "title": title or f"{scheme}, {len(levels)} copies",
            "seed": self.seed,
            "data": dict(self.data),
            "schemes": [{"name": scheme, "levels": list(levels), **self.parameters}],
            "knowledge": ["perfect"],
            "coalitions": coalitions(len(levels)),
            "attacks": "all",
            **({"utility": dict(self.utility)} if len(levels) > 1 or self.utility else {}),
            **({"measures": list(self.measures)} if self.measures else {}),
            "replicates": DRAWS,
            "expect": [{"exposure": {"scheme": scheme, **alone, "unknown": {"at-least": self.target}}}],
        }

    def audit(self, scheme: str, levels: Sequence[float]) -> AuditResult:
        """Return the audit of a release.

        Raises
        ------
        AuditorError
            The data or the levels cannot be used, or an attack or the scheme failed.
        """
        checked = read_scenario(self.scenario(scheme, levels))
        check_data(checked)
        result = run_scenario(checked)
        broken = next((record for record in result.measurements if record.status == "failed"), None)
        if broken is not None:
            raise AuditorError(f"{scheme}: a part of the audit failed, and nothing can be advised on the rest: {broken.reason}")
        return result

    def verdict(self, result: AuditResult, target: float | None = None) -> Verdict:
        """Return what the expectation `exposure` says of a release as it is on average: many draws tell the mean, and one is handed out."""
        target = target or self.target
        return judge_bounds([[one] for one in self._single(result, target)], target, None, target, "share unknown").status

    def exposed(self, result: AuditResult) -> Exposed:
        """Return the cell that may end lowest in one release."""
        every = self._single(result, self.target)
        return min(map(_exposed, every), key=lambda one: (one.unknown - one.half, len(one.coalition)))

    def _single(self, result: AuditResult, target: float) -> list[Measurement]:
        every = [record for record in result.measurements if record.metric == "normalized_error" and record.status == "ok"]
        judged = [record for record in every if record.attack and (record.attribute == "*") == self.categories]
        return [of_one_release(cell, target) for cell in cells(judged).values()]


def pooling_gain(result: AuditResult, exposed: Exposed) -> float:
    """Return what pooling takes off what the best single copy leaves, as measured; 0 where it adds nothing."""
    same = ("normalized_error", exposed.attack, exposed.attribute, "ok", 1)
    told = ((cell, cell[0]) for cell in cells(result.measurements).values())
    alone = [pooled(cell)[0] for cell, one in told if (one.metric, one.attack, one.attribute, one.status, len(one.coalition)) == same]
    return max(0.0, 1.0 - exposed.unknown / min(alone))


def of_one_release(drawn: Sequence[Measurement], target: float) -> Measurement:
    """Return the mean of a cell over draws of the noise, with the error bar of one release at the target, ``√R · se · target/mean``.

    A mean of squares spreads in proportion to its size: an attack that goes astray, and errs by 1,600 ± 3,600 times the variance, is no
    sign that it may err by less than a half. Below the target the expectation widens the error bar by itself.
    """
    mean, error = pooled(drawn)
    spread = None if error is None else math.sqrt(len(drawn)) * error * target / max(mean, target)
    return drawn[0]._replace(value=mean, std_error=spread, theory=mean_theory(drawn))


def _exposed(one: Measurement) -> Exposed:
    assert one.value is not None
    return Exposed(one.value, Z_95 * (one.std_error or 0.0), str(one.attack), one.attribute, one.coalition)


def coalitions(copies: int) -> list[Any]:
    """Return the coalitions to audit among so many copies.

    Examples
    --------
    >>> coalitions(3), coalitions(12)
    (['subsets'], ['singles', {'first': 2}, {'first': 10}, 'all'])
    """
    return ["subsets"] if copies <= MOST_SUBSETS else ["singles", {"first": 2}, {"first": MOST_SUBSETS}, "all"]

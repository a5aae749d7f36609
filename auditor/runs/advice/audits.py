"""The measuring half of advice: one scenario for one release, run by the engine that every audit has, and read for its worst cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auditor.errors import AuditorError
from auditor.expectations.exposure import Exposure, shares_unknown
from auditor.expectations.metric import ERRORS, LEVEL, cut_off, judge_bounds
from auditor.numerics.statistics import Z_95, noncentral_quantile, quantile
from auditor.results.advice import Exposed
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.model import AuditResult
from auditor.results.records import Measurement, Verdict, cells, mean_theory, pooled
from auditor.runs.check import check_data
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario

MOST_SUBSETS = 10
"""Copies up to which every coalition is audited; of more single copies, the two and the ten least
perturbed, and all."""
FEWEST_DRAWS, MOST_DRAWS = 10, 25
"""Draws of the noise that an audit measures: their own spread is an error bar, which ten know to a
quarter and 25 to a seventh."""
DRAWN = 50_000
"""Records in all draws together: few records spread much, and are drawn quickly."""
CHANCE = 0.995
"""That an audit of one new release finds what advice says of it. Twenty audits in a row then agree
with 95 of 100 pieces of advice."""


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

    @property
    def draws(self) -> int:
        """How many draws an audit has."""
        return min(MOST_DRAWS, max(FEWEST_DRAWS, DRAWN // self.rows))

    def scenario(self, scheme: str, levels: Sequence[float], title: str = "") -> dict[str, Any]:
        """Return the scenario that makes and audits a release."""
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
            "replicates": self.draws,
            "expect": [
                {
                    "exposure": {
                        "scheme": scheme,
                        **self._whole,
                        "unknown": {"at-least": self.target},
                    }
                }
            ],
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
            raise AuditorError(
                f"{scheme}: a part of the audit failed, and nothing can be advised on the rest: {broken.reason}"
            )
        return result

    def verdict(self, result: AuditResult, target: float | None = None) -> Verdict:
        """Return what the expectation `exposure` will say of one new release, whatever its draw; undecided where that is up to the draw.

        With ``s`` the spread of one release, a target is met where the mean of many draws lies
        ``ds`` above it, and missed where it lies as far below: by ten draws d is 6.4 to hold, and
        over a hundred cells 10.2 to fail (`astray`, Holm). Releases that audits tell apart for sure
        are therefore 17 s apart, unless a closed form misses the target, for which no draw is
        needed. Errors of n records spread by ``s ≤ t·√(2/n)`` at a target t: for one half by 1 % in
        5,000 records and 4 % in 300, so that few records need wide steps.
        """
        target = target or self.target
        cells = self._single(result, target)
        expected: tuple[tuple[Verdict, float, float], ...] = (
            ("holds", -1.0, LEVEL),
            ("fails", 1.0, LEVEL / len(cells)),
        )
        for verdict, sign, level in expected:
            z = quantile(1.0 - level)
            unlucky = [
                [one._replace(value=(one.value or 0.0) + sign * astray(one, self.draws, z))]
                for one in cells
            ]
            if judge_bounds(unlucky, target, None, target, "share unknown").status == verdict:
                return verdict
        return "undecided"

    def exposed(self, result: AuditResult) -> Exposed:
        """Return the cell that may end lowest in one release."""
        every = self._single(result, self.target)
        return min(
            map(_exposed, every), key=lambda one: (one.unknown - one.half, len(one.coalition))
        )

    @property
    def _whole(self) -> dict[str, str]:
        return {"attribute": "*"} if self.categories else {}

    def _expected(self, target: float) -> Exposure.Parameters:
        return Exposure.Parameters.model_validate({"unknown": {"at-least": target}, **self._whole})

    def _single(self, result: AuditResult, target: float) -> list[Measurement]:
        expected = self._expected(target)
        judged = shares_unknown(result.measurements, expected, expected.unknown, {})
        return [of_one_release(cell, target) for cell in cells(judged).values()]


def pooling_gain(result: AuditResult, exposed: Exposed) -> float:
    """Return what pooling takes off what the best single copy leaves, as measured; 0 where it adds nothing."""
    same = ("normalized_error", exposed.attack, exposed.attribute, "ok")
    told = ((cell, cell[0]) for cell in cells(result.measurements).values())
    left = {
        one.coalition: pooled(cell)[0]
        for cell, one in told
        if (one.metric, one.attack, one.attribute, one.status) == same
    }
    return max(
        0.0,
        1.0
        - left[exposed.coalition]
        / min(share for coalition, share in left.items() if len(coalition) == 1),
    )


def of_one_release(drawn: Sequence[Measurement], target: float) -> Measurement:
    """Return the mean of a cell over draws of the noise, with the error bar of one release at the target, ``√R · se · target/mean``.

    A mean of squares spreads in proportion to its size: an attack that goes astray, and errs by
    1,600 ± 3,600 times the variance, is no sign that it may err by less than a half, and is cut off
    as the expectation does. Below the target that widens the error bar by itself.
    """
    mean, error = pooled(cut_off(drawn, target))
    size = target / max(mean, target) if drawn[0].metric in ERRORS else 1.0
    spread = None if error is None else math.sqrt(len(drawn)) * error * size
    return drawn[0]._replace(value=mean, std_error=spread, theory=mean_theory(drawn))


def astray(one: Measurement, draws: int, z: float) -> float:
    """Return by how much an audit of one release may, at `CHANCE`, come out worse than the mean of so many draws lets expect.

    Parameters
    ----------
    one : Measurement
        A cell's mean, with the spread ``s`` of one release for a standard error.
    draws : int
        ``R``, which know the mean to ``s/√R``, and ``s`` itself with R − 1 degrees of freedom.
    z : float
        Standard errors from the target at which the audit decides.

    Notes
    -----
    The audit finds ``m' − z s'`` above the target t. Its error bar comes from nine redraws, which
    know it to ``s/√(2ν)`` with ν = 8. So ``(m − t)/s`` must be ``d = σ·T(z/σ)``, a quantile of
    noncentral t with ``σ² = 1 + 1/R + z²/2ν``, and ``d − z`` of that is for the draw. A closed form
    knows ``s``: then ν and the degrees are infinite. Errors are taken for normal.
    """
    known = one.error_bar == "closed-form"
    sigma = math.sqrt(1.0 + 1.0 / draws + (0.0 if known else z * z / (2 * (ROW_REDRAWS - 1))))
    d = sigma * noncentral_quantile(CHANCE, math.inf if known else draws - 1, z / sigma)
    return (d - z) * (one.std_error or 0.0)


def _exposed(one: Measurement) -> Exposed:
    assert one.value is not None
    return Exposed(
        one.value, Z_95 * (one.std_error or 0.0), str(one.attack), one.attribute, one.coalition
    )


def coalitions(copies: int) -> list[Any]:
    """Return the coalitions to audit among so many copies.

    Examples
    --------
    >>> coalitions(3), coalitions(12)
    (['subsets'], ['singles', {'first': 2}, {'first': 10}, 'all'])
    """
    return (
        ["subsets"]
        if copies <= MOST_SUBSETS
        else ["singles", {"first": 2}, {"first": MOST_SUBSETS}, "all"]
    )

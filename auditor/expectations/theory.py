"""Measurement against closed form: in general, and for the law of independent copies (Theorem 3)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from auditor.expectation import Evidence, Expectation, Filter, Judgement, Share, copies_released, listed, selector
from auditor.expectations.metric import describe, measured_at
from auditor.registry import register
from auditor.results import Measurement, cells, mean_theory, pooled
from auditor.statistics import holm, two_sided

FALSE_ALARM = 0.01
"""Chance that a true theory is refuted, over everything an expectation covers."""


@register
class MatchesTheory(Expectation):
    """Every measured error agrees with its closed form within its error bar (two-sided, Holm, one false alarm in a hundred)."""

    name = "matches-theory"
    reference = "holm1979"

    class Parameters(Filter):
        """The filter, the metric, and how fine the measurement must be to count."""

        metric: str = Field("distortion", description="metric to compare")
        resolution: Share = Field(0.5, description="error bars wider than this share of theory leave it undecided")

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict over every selected cell that has a closed form."""
        selected = selector(self.parameters, self.parameters.metric, copies_released(evidence))
        records = [r for r in evidence.measurements if selected(r) and r.status == "ok" and r.theory is not None]
        groups = list(cells(records).values())
        if not groups:
            return Judgement("undecided", "no selected cell has a closed form")
        return compare(groups, [mean_theory(group) or 0.0 for group in groups], self.parameters.resolution)


def compare(groups: Sequence[Sequence[Measurement]], expected: Sequence[float], resolution: float) -> Judgement:
    """Return the verdict on cells against the values theory gives them.

    Parameters
    ----------
    groups : sequence of cells
        Each the records of its replicates.
    expected : sequence of float
    resolution : float
        A cell measured with an interval wider than ± this share of theory proves nothing.
    """
    values = [pooled(group) for group in groups]
    p = holm([two_sided(value - truth, error or 0.0, _scale(group)) for (value, error), truth, group
              in zip(values, expected, groups, strict=True)])  # fmt: skip
    place = min(range(len(groups)), key=lambda k: (p[k], -abs(values[k][0] - expected[k])))
    cell, (value, error), truth = groups[place][0], values[place], expected[place]
    bar = f" ± {1.96 * (error or 0.0):.2g}"
    where = measured_at(cell)
    if p[place] <= FALSE_ALARM:
        bad = sum(q <= FALSE_ALARM for q in p)
        why = f"{bad} of {len(groups)} cells differ from theory; the worst is {value:.6g}{bar} where theory has {truth:.6g} ({where})"
        return Judgement("fails", why, value, truth)
    coarse = [k for k, (_, e) in enumerate(values) if 1.96 * (e or 0.0) > resolution * abs(expected[k])]
    if coarse:
        return Judgement("undecided", f"{len(coarse)} of {len(groups)} cells are measured too coarsely to tell; add rows or replicates")
    widest = max((1.96 * (e or 0.0) / abs(t) for (_, e), t in zip(values, expected, strict=True) if t), default=0.0)
    least = f"the one furthest from it in error bars: {value:.6g}{bar} against {truth:.6g}"
    why = f"{len(groups)} cells agree with theory; intervals of ± {widest:.1%} or finer; {least}"
    return Judgement("holds", why, value, truth)


def _scale(group: Sequence[Measurement]) -> float:
    """Size against which a difference counts as rounding: an error of 0 next to data of size s is known to 1e-9 of s."""
    record = group[0]
    # Below 1e-12 of the variance an error is told as 0: one side of the comparison may be just there, and the other just beyond.
    rounded = any(each.value == 0.0 or each.theory == 0.0 for each in group)
    return max(abs(record.value or 0.0), abs(record.theory or 0.0), 1e-2 if rounded else 1e-6)


@register
class Theorem3(Expectation):
    """Copies of independent noise pool as (1 + Σ 1/σ_i²)⁻¹ says: the error falls with every copy (li2012, Theorem 3)."""

    name = "theorem-3"
    reference = "li2012, Theorem 3"

    class Parameters(Filter):
        """The filter; it selects a scheme whose copies have independent noise shaped like the data."""

        resolution: Share = Field(0.5, description="error bars wider than this share of theory leave it undecided")

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict on the joint LLSE's normalized error, cell by cell, and on its fall from copy to copy."""
        filters = self.parameters
        selected = selector(filters, "normalized_error", copies_released(evidence))
        plugins = {(str(release.sweep), release.scheme): release.plugin for release in evidence.releases}
        records = [
            r for r in evidence.measurements
            if selected(r) and r.status == "ok" and r.theory is not None
            and (filters.scheme is not None or plugins[(str(r.sweep), r.scheme)] == "correlated")
            and (filters.attack is not None or r.attack == "llse")
        ]  # fmt: skip
        groups = list(cells(records).values())
        if not groups:
            names = ", ".join(map(str, listed(filters.scheme))) or "correlated"
            return Judgement("undecided", f"no joint LLSE with perfect knowledge on {names} was measured")
        expected = [theorem_3(group[0].levels) for group in groups]
        for group, value in zip(groups, expected, strict=True):
            if abs((group[0].theory or 0.0) - value) > 1e-9:
                why = f"the stated law gives {group[0].theory:.6g} where Theorem 3 has {value:.6g} (copies {describe(group[0].coalition)})"
                return Judgement("fails", why, group[0].theory, value)
        return compare(groups, expected, filters.resolution)


def theorem_3(levels: Sequence[float]) -> float:
    """Return the normalized error ``(1 + Σ 1/σ_i²)⁻¹`` of pooled copies with independent noise ``σ_i² K_X``.

    Source: li2012, Theorem 3. A copy without noise gives 0. It tends to 0 with more copies only if ``Σ 1/σ_i²`` grows without bound.

    Examples
    --------
    >>> round(theorem_3([1.0, 4.0]), 4)
    0.4444
    """
    return 0.0 if min(levels) == 0 else 1.0 / (1.0 + sum(1.0 / level for level in levels))

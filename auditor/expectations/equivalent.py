"""Equality of two schemes within a margin, by two one-sided tests.

Both «the difference is at least +margin» and «at most −margin» must be rejected at 5 %. As every
level must pass, there is no correction (intersection–union). A refutation is held to 5 % over all
levels (Holm). Differences are paired by replicate. Below five replicates both figures' errors count
as independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from auditor.base.types import Array
from auditor.expectations.base import Cell, Expectation, Filter, Judgement
from auditor.expectations.metric import at_bound
from auditor.numerics.statistics import holm, one_sided, quantile
from auditor.registry import register
from auditor.results.records import Evidence, Measurement, describe, pooled

LEVEL = 0.05
POWER = 0.8
FEWEST_REPLICATES = 5
Found = tuple[float, float, float]
"""A difference, its standard error (NaN if unknown) and degrees of freedom."""


@register
class Equivalent(Expectation):
    """Two schemes agree in a metric within a margin, level by level."""

    name = "equivalent"
    reference = "schuirmann1987"

    class Parameters(Filter):
        """Both schemes, the metric and the margin."""

        schemes: list[str] = Field(description="ids of the two schemes", min_length=2, max_length=2)
        metric: str = Field(description="metric to compare")
        margin: float = Field(
            gt=0, description="largest difference that counts as none, in the metric's unit"
        )
        together: bool = Field(
            False, description="test the mean over all levels, and not each level by itself"
        )

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        groups = self.measured(evidence, p.metric)
        first, second = (
            {_rest(g[0]): g for g in groups if g[0].scheme == name} for name in p.schemes
        )
        pairs = [(first[key], second[key]) for key in first if key in second]
        if not pairs:
            why = f"no level of {p.metric} was measured under both schemes"
            return Judgement("undecided", why, None, p.margin)
        found = [_difference(*pair, p.margin) for pair in pairs]
        if p.together:
            found = [_all_together(pairs)]
        return judge_differences(found, [_level(pair[0][0]) for pair in pairs], p.margin, p.metric)


def judge_differences(
    found: Sequence[Found], levels: Sequence[str], margin: float, metric: str
) -> Judgement:
    """Verdict on differences."""
    if any(math.isnan(error) for _, error, _ in found):
        return Judgement("undecided", f"{metric} has no error bar; add replicates", None, margin)
    inside = [
        max(one_sided(d, margin, se, df), one_sided(-d, margin, se, df)) for d, se, df in found
    ]
    outside = holm([one_sided(margin, abs(d), se, df) for d, se, df in found])
    place = int(np.argmax(inside))
    difference, error, degrees = found[place]
    where = f"at level {levels[place]}" if len(found) > 1 else f"over {len(levels)} levels"
    most = f"largest: {difference:+.3g} ± {quantile(1 - LEVEL, degrees) * error:.2g} {where}, margin ± {margin:g}"
    if min(outside) <= LEVEL:
        worst = found[int(np.argmin(outside))][0]
        why = f"{metric} differs by {worst:+.3g}, more than the margin ± {margin:g}"
        return Judgement("fails", why, worst, margin)
    short, count = sum(q > LEVEL for q in inside), len(found)
    if not short:
        why = f"{count} of {count} differences of {metric} lie within the margin; {most}"
        return Judgement("holds", why, difference, margin)
    why = f"{short} of {count} differences are not shown to lie within; {most}"
    room = margin - abs(difference)
    if room > 0 and not math.isinf(degrees):
        factor = ((quantile(1 - LEVEL, degrees) + quantile(POWER)) * error / room) ** 2
        why += f"; about {math.ceil((degrees + 1) * max(factor, 1.1))} replicates would settle it"
    return Judgement("undecided", why, difference, margin)


def _rest(record: Measurement) -> tuple[Any, ...]:
    who = (record.knowledge, record.attack, record.coalition)
    return (str(record.sweep), *who, record.levels, record.attribute)


def _level(record: Measurement) -> str:
    levels = ", ".join(f"{level:g}" for level in record.levels)
    return levels or f"of copies {describe(record.coalition)}"


def _paired(first: Cell, second: Cell) -> Array:
    ours, theirs = (
        {record.replicate: record.value for record in group if record.value is not None}
        for group in (first, second)
    )
    return np.array(
        [value - theirs[replicate] for replicate, value in ours.items() if replicate in theirs],
        dtype=np.float64,
    )


def _difference(first: Cell, second: Cell, margin: float) -> Found:
    differences = _paired(first, second)
    if len(differences) >= FEWEST_REPLICATES:
        return _mean_of(differences)
    errors = [error for _, error in map(pooled, (first, second))]
    if not len(differences) or any(error is None for error in errors):
        return math.nan, math.nan, math.inf
    # at a difference of one margin the larger value is more uncertain
    wider = max(at_bound(cell, pooled(cell)[0] + margin) for cell in (first, second))
    spread = wider * math.sqrt(math.fsum(error**2 for error in errors if error is not None))
    return float(differences.mean()), spread, math.inf


def _all_together(pairs: Sequence[tuple[Cell, Cell]]) -> Found:
    by_level = [_paired(*pair) for pair in pairs]
    count = min(len(differences) for differences in by_level)
    if count < FEWEST_REPLICATES or any(len(differences) != count for differences in by_level):
        return math.nan, math.nan, math.inf
    return _mean_of(np.mean(by_level, axis=0))


def _mean_of(differences: Array) -> Found:
    R = len(differences)
    return float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(R)), float(R - 1)

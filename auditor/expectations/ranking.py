"""Order, trend and equality of cells.

A step of an order or a trend holds if theory settles it, if both values are equal up to rounding,
or if the data show it beyond the error bars (Holm over all steps). It fails if either shows the
opposite. Otherwise it is undecided. `slack` is the size of an irrelevant step in the other
direction.
"""

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator

from auditor.base.types import Array, Names, Plain
from auditor.expectations.base import (
    Cell,
    Expectation,
    Filter,
    Judgement,
    copies_released,
    identity,
    place,
    worst,
)
from auditor.expectations.metric import LEVEL, ROUNDING, Limits, at_bound, measured_at
from auditor.numerics.statistics import holm, one_sided, quantile
from auditor.registry import register
from auditor.results.records import (
    FEWEST_REPLICATES,
    VERDICTS,
    Evidence,
    Measurement,
    Verdict,
    describe,
    grouped,
    pooled,
    uncertainty,
)
from auditor.scenario.read_plugins import parse_coalitions, parse_knowledge

Pairs = Sequence[tuple[Cell, Cell]]


@register
class Ranking(Expectation):
    """A metric rises along an order of attacks, schemes or coalitions."""

    name = "ranking"
    reference = "holm1979"

    class Parameters(Filter):
        """Names, from the smallest value of the metric to the largest."""

        order: list[Any] = Field(min_length=2)
        """from the smallest value to the largest"""
        by: Literal["attack", "knowledge", "scheme", "coalition"] = "attack"
        """what the order names"""
        metric: str = "normalized_error"
        """metric to compare"""
        slack: NonNegativeFloat = 0.0
        """by how much a value may exceed the next, in the metric's unit"""

        @model_validator(mode="after")
        def _coalitions(self) -> Any:
            if self.by == "coalition":
                for item in self.order:
                    parse_coalitions(item)
            return self

    def judge(self, evidence: Evidence) -> Judgement:
        p, copies = self.parameters, copies_released(evidence)

        def named(record: Measurement, name: Any) -> bool:
            if p.by == "coalition":
                released = copies.get(place(record), 0)
                return parse_coalitions(name).matches(record.coalition, released)
            value = getattr(record, p.by)
            return bool(value == name or (p.by == "knowledge" and _label(name) == value))

        groups = self.measured(evidence, p.metric)
        held = [[cell for cell in groups if named(cell[0], name)] for name in p.order]
        pairs = [pair for both in pairwise(held) for pair in alike(*both, p.by)]
        if not pairs:
            return Judgement("undecided", "no cell was measured under both names of the order")
        return judge_pairs(pairs, p.slack, p.metric)


def alike(first: Sequence[Cell], second: Sequence[Cell], *others: str) -> Pairs:
    """Pairs of cells that agree in all fields but some."""
    theirs = {identity(cell[0], *others): cell for cell in second}
    ours = ((cell, theirs.get(identity(cell[0], *others))) for cell in first)
    return [(cell, other) for cell, other in ours if other is not None]


def _label(name: Any) -> str:
    try:
        return parse_knowledge(name).label
    except ValueError:
        return str(name)


def judge_pairs(pairs: Pairs, slack: float, metric: str) -> Judgement:
    """Verdict on ``first ≤ second + slack`` for pairs of cells.

    It holds if the difference is below the slack beyond its error bar, if both are equal up to
    rounding, or if theory settles the order and the interval is narrower than the figures. As both
    share their copies, ``se₁ + se₂`` bounds the error. Replicates give the paired difference.
    """
    tests = []
    for one, other in pairs:
        a, b = pooled(one)[0], pooled(other)[0]
        error, differences = uncertainty(one) + uncertainty(other), _paired(one, other)
        if len(differences) >= FEWEST_REPLICATES:
            _, error, _ = _mean_of(differences)
        # blank: the interval is wider than the figures
        tests.append((a - b - slack, error, 1.96 * error > max(abs(a), abs(b))))
    against = holm([one_sided(-d, 0.0, se) if d > ROUNDING else 1.0 for d, se, _ in tests])
    shown = holm([one_sided(d, ROUNDING, se) for d, se, _ in tests])
    verdicts = list[Verdict]()
    for pair, (d, se, blank), no, yes in zip(pairs, tests, against, shown, strict=True):
        theory = _settled(*pair, slack)
        if no <= LEVEL or theory == "above":
            verdicts.append("fails")
        elif max(abs(d), se) <= ROUNDING or (not blank and (yes <= LEVEL or theory == "below")):
            verdicts.append("holds")
        else:
            verdicts.append("undecided")
    at = max(range(len(tests)), key=lambda k: (-VERDICTS.index(verdicts[k]), tests[k][0]))
    compared = " ≤ ".join(_where(cell[0]) for cell in pairs[at])
    difference, error, _ = tests[at]
    return Judgement(
        worst(verdicts),
        f"closest of {len(pairs)}: {compared}, difference {difference + slack:+.4g} ± {1.96 * error:.2g} in {metric}",
        difference,
        slack,
    )


def _where(one: Measurement) -> str:
    point = ", ".join(f"{path} = {value}" for path, value in one.sweep.items())
    return f"{measured_at(one)}{point and f', at {point}'}"


def _settled(first: Cell, second: Cell, slack: float) -> Literal["above", "below"] | None:
    """Order that theory settles in every replicate.

    «Above» refutes, so theory of draws must agree in enough replicates.
    """
    gaps = [
        x.theory - y.theory - slack
        for x, y in zip(first, second, strict=False)
        if x.theory is not None and y.theory is not None
    ]
    if not len(gaps) == len(first) == len(second):
        return None
    if max(gaps) <= ROUNDING:
        return "below"
    firm = len(gaps) >= FEWEST_REPLICATES or {one.error_bar for one in (*first, *second)} == {
        "closed-form"
    }
    return "above" if firm and min(gaps) > ROUNDING else None


@register
class GrowthRate(Expectation):
    """Bound on the slope of log metric against log swept value."""

    name = "growth-rate"
    reference = "li2012, Fig. 5"

    class Parameters(Limits, Filter):
        """The swept path, and bounds on the exponent."""

        metric: str = "seconds"
        """metric that grows"""
        against: str
        """the swept path, whose values are positive numbers"""

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        lines = grouped(
            (_line(group[0], others), (math.log(x), math.log(value)))
            for x, others, group in _swept(self, evidence)
            for value in [float(np.median([r.value for r in group if r.value is not None]))]
            if x > 0 and value > 0
        )
        slopes = {
            name: float(np.polyfit(x, y, 1)[0])
            for name, points in lines.items()
            if len(points) >= 3
            for x, y in [np.transpose(points)]
        }
        (low, high), bound = p.limits(), p.bound
        if not slopes:
            return Judgement(
                "undecided",
                f"fewer than three values of {p.against} with a measured {p.metric}",
                None,
                bound,
            )
        least, most = min(slopes.values()), max(slopes.values())
        inside = (low is None or low <= least) and (high is None or most <= high)
        exponents = ", ".join(f"{name}: {slope:.2f}" for name, slope in slopes.items())
        return Judgement(
            "holds" if inside else "fails",
            f"exponent of {p.metric} in {p.against}: {exponents}",
            least if high is None else most,
            bound,
        )


@register
class Monotone(Expectation):
    """A metric never falls, or never rises, along a swept path."""

    name = "monotone"
    reference = "holm1979"

    class Parameters(Filter):
        """The swept path, the direction of the metric and the part of the sweep."""

        metric: str = "normalized_error"
        """metric that rises or falls"""
        against: str
        """the swept path, whose values are numbers"""
        direction: Literal["rising", "falling"]
        """which way the metric goes as the swept value grows"""
        between: list[float] | None = Field(None, min_length=2, max_length=2)
        """[first, last] swept value looked at"""
        slack: NonNegativeFloat = 0.0
        """by how much a step may go the other way, in the metric's unit"""

        @model_validator(mode="after")
        def _ordered(self) -> Any:
            if self.between is not None and self.between[0] >= self.between[1]:
                raise ValueError("between must go from a smaller to a larger swept value")
            return self

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        low, high = p.between or (-math.inf, math.inf)
        lines = grouped(
            (json.dumps([others, *group[0][1:5], group[0].attribute], sort_keys=True), (x, group))
            for x, others, group in _swept(self, evidence)
            if low <= x <= high
        )
        pairs = []
        for points in lines.values():
            points.sort(key=lambda point: point[0], reverse=p.direction == "falling")
            pairs += [(one[1], other[1]) for one, other in pairwise(points)]
        if not pairs:
            return Judgement(
                "undecided", f"fewer than two values of {p.against} with a measured {p.metric}"
            )
        judged = judge_pairs(pairs, p.slack, p.metric)
        return Judgement(
            judged.status,
            f"{p.metric} {p.direction} with {p.against}, {len(lines)} lines; {judged.why}",
            judged.observed,
            judged.bound,
        )


def _line(record: Measurement, others: Plain) -> str:
    attack = f", {record.attack}" if record.attack else ""
    return f"{record.scheme}{attack}{f' at {others}' if others else ''}"


def _swept(expectation: Expectation, evidence: Evidence) -> Iterator[tuple[float, Plain, Cell]]:
    p: Any = expectation.parameters
    for group in expectation.measured(evidence, p.metric):
        sweep = dict(group[0].sweep)
        x = sweep.pop(p.against, None)
        if isinstance(x, (int, float)):
            yield x, sweep, group


POWER = 0.8
Found = tuple[float, float, float]
"""A difference, its standard error (NaN if unknown) and degrees of freedom."""
UNKNOWN = math.nan, math.nan, math.inf


@register
class Equivalent(Expectation):
    """Two schemes agree in a metric within a margin, level by level.

    By two one-sided tests: both «the difference is at least +margin» and «at most −margin» must be
    rejected at 5 %. As every level must pass, no correction is needed (intersection–union). A
    refutation is held to 5 % over all levels (Holm). Differences are paired by replicate. Below five
    replicates both figures' errors count as independent.
    """

    name = "equivalent"
    reference = "schuirmann1987"

    class Parameters(Filter):
        """Both schemes, the metric and the margin."""

        schemes: list[str] = Field(min_length=2, max_length=2)
        """ids of the two schemes"""
        metric: str
        """metric to compare"""
        margin: PositiveFloat
        """largest difference that counts as none, in the metric's unit"""
        together: bool = False
        """test the mean over all levels, and not each level by itself"""

    def judge(self, evidence: Evidence) -> Judgement:
        p = self.parameters
        groups = self.measured(evidence, p.metric)
        first, second = ([g for g in groups if g[0].scheme == name] for name in p.schemes)
        pairs = alike(first, second, "scheme")
        if not pairs:
            return Judgement(
                "undecided",
                f"no level of {p.metric} was measured under both schemes",
                None,
                p.margin,
            )
        found = [_difference_of(*pair, p.margin) for pair in pairs]
        if p.together:
            by_level = [_paired(*pair) for pair in pairs]
            counts, found = {len(differences) for differences in by_level}, [UNKNOWN]
            if len(counts) == 1 and min(counts) >= FEWEST_REPLICATES:
                found = [_mean_of(np.mean(by_level, axis=0))]
        levels = [
            ", ".join(f"{level:g}" for level in one.levels)
            or f"of copies {describe(one.coalition)}"
            for (one, *_), _ in pairs
        ]
        return judge_differences(found, levels, p.margin, p.metric)


def judge_differences(
    found: Sequence[Found], levels: Names, margin: float, metric: str
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
        return Judgement(
            "fails",
            f"{metric} differs by {worst:+.3g}, more than the margin ± {margin:g}",
            worst,
            margin,
        )
    short, count = sum(q > LEVEL for q in inside), len(found)
    if not short:
        return Judgement(
            "holds",
            f"{count} of {count} differences of {metric} lie within the margin; {most}",
            difference,
            margin,
        )
    why = f"{short} of {count} differences are not shown to lie within; {most}"
    room = margin - abs(difference)
    if room > 0 and not math.isinf(degrees):
        factor = ((quantile(1 - LEVEL, degrees) + quantile(POWER)) * error / room) ** 2
        why += f"; about {math.ceil((degrees + 1) * max(factor, 1.1))} replicates would settle it"
    return Judgement("undecided", why, difference, margin)


def _paired(first: Cell, second: Cell) -> Array:
    theirs = {one.replicate: one.value for one in second if one.value is not None}
    return np.array(
        [
            one.value - theirs[one.replicate]
            for one in first
            if one.value is not None and one.replicate in theirs
        ],
        dtype=float,
    )


def _difference_of(first: Cell, second: Cell, margin: float) -> Found:
    differences = _paired(first, second)
    if len(differences) >= FEWEST_REPLICATES:
        return _mean_of(differences)
    errors = [error for _, error in map(pooled, (first, second))]
    if not len(differences) or any(error is None for error in errors):
        return UNKNOWN
    # at a difference of one margin the larger value is more uncertain
    wider = max(at_bound(cell, pooled(cell)[0] + margin) for cell in (first, second))
    spread = wider * math.sqrt(math.fsum(error**2 for error in errors if error is not None))
    return float(differences.mean()), spread, math.inf


def _mean_of(differences: Array) -> Found:
    R = len(differences)
    return float(differences.mean()), float(differences.std(ddof=1) / math.sqrt(R)), float(R - 1)

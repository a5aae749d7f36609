"""Bound on any metric for every selected cell, measured and in theory.

A cell *holds* if its interval, pooled over replicates, and its closed form lie within the bound. It
*fails* if either lies wholly outside; else it is undecided (Holm over cells).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import Field, model_validator

from auditor.base import scipy
from auditor.expectations.base import Cell, Expectation, Filter, Judgement, worst
from auditor.expectations.noise_follows_law import as_drawn
from auditor.numerics.statistics import Z_95, holm, one_sided
from auditor.registry import PluginParameters, register
from auditor.results.metrics import GUARANTEES, base, measured_by
from auditor.results.records import (
    FEWEST_REPLICATES,
    VERDICTS,
    Evidence,
    Measurement,
    Verdict,
    describe,
    mean_theory,
    pooled,
    uncertainty,
)

LEVEL = 0.05
"""Probability of a false verdict. «Holds» takes a 95 % interval on the right side of the bound."""
ROUNDING = 1e-9

SKEWED = frozenset({"normalized_error", "median_error_ratio", "close", "distortion"})
SHARES_LEFT = frozenset({"normalized_error", "median_error_ratio"})
ERRORS = frozenset({"distortion", "rmse", "normalized_error", "median_error_ratio"})
"""Figures that an attack has one of in each release, however many records it holds."""


COARSE = 0.1
"""Standard error of a gain that is known too coarsely to be taken for a normal number: two rows
gave 0.93 ± 0.95 where 0.29 is true."""


class Limits(PluginParameters):
    """At least one bound, in the metric's unit."""

    at_least: float | None = None
    """smallest value allowed"""
    at_most: float | None = None
    """largest value allowed"""
    ways: ClassVar[str] = "at-least or at-most"

    @model_validator(mode="after")
    def _some_bound(self) -> Self:
        low, high = self.limits()
        if low is None and high is None:
            raise ValueError(f"needs a bound: {self.ways}")
        if low is not None and high is not None and low > high:
            raise ValueError("has a lower bound above its upper bound")
        return self

    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper bound."""
        return self.at_least, self.at_most

    @property
    def bound(self) -> float | list[float]:
        """The one bound, or both."""
        limits = [one for one in self.limits() if one is not None]
        return limits if len(limits) > 1 else limits[0]


class Bounds(Limits, Filter):
    """A filter and at least one bound."""

    between: list[float] | None = Field(None, min_length=2, max_length=2)
    """[smallest, largest]"""
    ways: ClassVar[str] = "at-least, at-most or between"

    def limits(self) -> tuple[float | None, float | None]:
        """Tightest lower and upper bound."""
        low, high = self.between or (None, None)
        lows = [bound for bound in (self.at_least, low) if bound is not None]
        highs = [bound for bound in (self.at_most, high) if bound is not None]
        return max(lows, default=None), min(highs, default=None)


@register
class MetricBound(Expectation):
    """Every selected cell of a metric meets a bound, measured and in theory."""

    name = "metric"
    reference = "holm1979"
    pooled_only = False

    class Parameters(Bounds):
        """The metric, its bounds, and the filter."""

        metric: str
        """the metric's name"""

    @property
    def metric(self) -> str:
        return str(self.parameters.metric)

    @property
    def needs_closeness(self) -> bool:  # type: ignore[override]
        """Whether the metric is measured on sampled records."""
        return measured_by(self.metric) == "closeness"

    def judge(self, evidence: Evidence) -> Judgement:
        groups = self.measured(evidence, self.metric, pooled_only=self.pooled_only)
        asked = self.parameters
        if not groups:
            return Judgement(
                "undecided",
                f"no measured cell of {self.metric} matches the filter",
                None,
                asked.bound,
            )
        judged = judge_bounds(groups, asked, self.metric)
        if judged.status != "holds" or base(self.metric) not in GUARANTEES:
            return judged
        return as_drawn(judged, self.metric, asked.limits()[1], asked, evidence)


def judge_bounds(groups: Sequence[Cell], asked: Limits, metric: str) -> Judgement:
    """Verdict on cells, each a list of its replicates' records."""
    sides = [
        (cell, limit, sign)
        for cell in groups
        for limit, sign in zip(asked.limits(), (1.0, -1.0), strict=True)
        if limit is not None
    ]
    # holds: reject «truth is outside»; fails: reject «truth is inside». Each family is held to 5 %.
    cut = ((cut_off(cell, limit) if sign > 0 else cell, limit, sign) for cell, limit, sign in sides)
    outside = holm([_p_beyond(cell, limit, -sign, ROUNDING) for cell, limit, sign in cut])
    inside = holm([_p_beyond(cell, limit, sign, -ROUNDING) for cell, limit, sign in sides])
    verdicts = [
        _verdict(*side, p_out, p_in)
        for side, p_out, p_in in zip(sides, outside, inside, strict=True)
    ]
    worst_first = [
        (VERDICTS.index(verdict), sign * (pooled(cell)[0] - limit))
        for verdict, (cell, limit, sign) in zip(verdicts, sides, strict=True)
    ]
    cell, limit, sign = sides[worst_first.index(min(worst_first))]
    record, expected, (value, error) = cell[0], mean_theory(cell), pooled(cell)
    bar = "" if error is None else f" ± {1.96 * error:.2g}"
    theory = "" if expected is None else f", theory {expected:.4g}"
    where = measured_at(record) + (f", {record.attribute}" if record.attribute != "*" else "")
    if record.metric.startswith("group_"):
        where += f"; {record.reason}"
    over = "1 cell" if len(groups) == 1 else f"{len(groups)} cells"
    counted = "one cell"
    if len(verdicts) > 1:
        counted = f"{verdicts.count('holds')} of {len(verdicts)} comparisons over {over} hold"
    wanted = f"wanted {'at least' if sign > 0 else 'at most'} {limit:g} ({where})"
    why = f"closest to the bound: {metric} {value:.4g}{bar}{theory}, {wanted}; {counted}"
    bare = sum(
        verdict == "undecided" and math.isinf(uncertainty(cell))
        for (cell, _, _), verdict in zip(sides, verdicts, strict=True)
    )
    if bare:
        why += (
            f"; {bare} without an error bar; of copies made here five replicates or more give one"
        )
    return Judgement(worst(verdicts), why, value, asked.bound)


def _p_beyond(cell: Cell, limit: float, side: float, slack: float) -> float:
    """P-value against a truth at the limit or beyond, above (side 1) or below (−1).

    An error is a mean of squares: for a limit above the estimate a gamma law with its relative
    standard error is taken.
    """
    value, error = pooled(cell)[0], towards(cell, side)
    size = max(value, mean_theory(cell) or 0.0)
    if side > 0 and cell[0].metric in ERRORS and 0.0 < size < limit and 0.0 < error < math.inf:
        shape = (size / error) ** 2
        return float(scipy.special.gammainc(shape, shape * value / limit))
    slack *= max(1.0, abs(limit))
    return one_sided(side * value, side * limit + slack, error * at_bound(cell, limit))


def towards(cell: Cell, side: float) -> float:
    """Standard error upwards (side 1) or downwards (−1)."""
    record = cell[0]
    end = record.ci_high if side > 0 else record.ci_low
    if len(cell) > 1 or record.metric not in SKEWED or not end or record.value is None:
        return uncertainty(cell)
    return max(0.0, side * (end - record.value)) / Z_95


def cut_off(cell: Cell, limit: float) -> Cell:
    """Draws of an error, cut off at twice a lower bound; a share of variance or of errors at 1.

    The mean does not grow: if it exceeds the bound, so does the truth. Lower ends of shares are of
    draws cut off at 1.
    """
    if cell[0].metric in SHARES_LEFT and len(cell) == 1 and (cell[0].value or 0.0) > 1.0 > limit:
        return [cell[0]._replace(value=1.0)]
    if cell[0].metric not in ERRORS or cell[0].error_bar != "replicates" or pooled(cell)[1] is None:
        return cell
    values = [min(one.value, 2.0 * limit) for one in cell if one.value is not None]
    if len(values) < FEWEST_REPLICATES or values == [one.value for one in cell]:
        return cell
    spread = statistics.stdev(values)
    return [
        one._replace(value=value, std_error=spread) for one, value in zip(cell, values, strict=True)
    ]


def at_bound(cell: Cell, limit: float) -> float:
    """Factor of an error bar if the truth were at the bound.

    A mean of squares spreads in proportion: 0.6 ± 0.6 from two rows does not exclude 1.5. A gain's
    spread is unknown for very few rows.
    """
    if cell[0].metric == "collusion_gain" and uncertainty(cell) > COARSE:
        return math.inf
    found = max(pooled(cell)[0], mean_theory(cell) or 0.0)
    return max(1.0, limit / found) if cell[0].metric in ERRORS and found > 0.0 else 1.0


def _verdict(cell: Cell, limit: float, sign: float, p_outside: float, p_inside: float) -> Verdict:
    theory = mean_theory(cell)
    beyond = theory is not None and sign * (theory - limit) < -ROUNDING * max(1.0, abs(limit))
    if beyond or p_inside <= LEVEL:
        return "fails"
    return "holds" if p_outside <= LEVEL / 2 else "undecided"


def measured_at(record: Measurement) -> str:
    """Place, for example ``corner-wave, llse, copies 1–5``."""
    return ", ".join(
        filter(
            None,
            (
                record.scheme,
                record.attack,
                record.knowledge,
                f"{'copy' if len(record.coalition) == 1 else 'copies'} {describe(record.coalition)}",
            ),
        )
    )


@register
class CollusionGain(MetricBound):
    """Pooling gains at least, or at most, so much over the best copy alone."""

    name = "collusion-gain"
    trial = MappingProxyType({"at-least": 0.5})
    pooled_only = True

    @property
    def metric(self) -> str:
        return "collusion_gain"

    class Parameters(Bounds):
        """Bounds on the gain, and the filter; by default all pooled copies."""

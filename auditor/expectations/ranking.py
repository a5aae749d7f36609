"""Order of attacks, schemes or coalitions, and trends in a sweep.

A step holds if theory settles it, if both values are equal up to rounding, or if the data show it
beyond the error bars (Holm over all steps). It fails if either shows the opposite. Otherwise it is
undecided. `slack` is the size of an irrelevant step in the other direction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from auditor.expectations.base import (
    Cell,
    Expectation,
    Filter,
    Judgement,
    copies_released,
    place,
    worst,
)
from auditor.expectations.metric import ROUNDING
from auditor.numerics.statistics import holm, one_sided
from auditor.registry import register
from auditor.results.records import (
    Evidence,
    Measurement,
    Verdict,
    describe,
    grouped,
    pooled,
    uncertainty,
)
from auditor.scenario.read_data import KnowledgeError, parse_knowledge
from auditor.scenario.read_plugins import parse_coalitions

LEVEL = 0.05

FIELDS = ("sweep", "scheme", "knowledge", "attack", "coalition", "attribute")
PAIRED = 5
"""Replicates from which differences are taken in pairs; that all of five fall on one side by chance
happens one time in 32."""


@register
class Ranking(Expectation):
    """A metric rises along an order of attacks, schemes or coalitions."""

    name = "ranking"
    reference = "holm1979"

    class Parameters(Filter):
        """Names, from the smallest value of the metric to the largest."""

        order: list[Any] = Field(description="from the smallest value to the largest", min_length=2)
        by: Literal["attack", "knowledge", "scheme", "coalition"] = Field(
            "attack", description="what the order names"
        )
        metric: str = Field("normalized_error", description="metric to compare")
        slack: float = Field(
            0.0, ge=0, description="by how much a value may exceed the next, in the metric's unit"
        )

        @model_validator(mode="after")
        def _coalitions(self) -> Any:
            if self.by == "coalition":
                for item in self.order:
                    parse_coalitions(item)
            return self

    def judge(self, evidence: Evidence) -> Judgement:
        p, copies = self.parameters, copies_released(evidence)
        others = [one for one in FIELDS if one != p.by]

        def named(record: Measurement, name: Any) -> bool:
            if p.by == "coalition":
                released = copies.get(place(record), 0)
                return parse_coalitions(name).matches(record.coalition, released)
            value = getattr(record, p.by)
            return bool(value == name or (p.by == "knowledge" and _label(name) == value))

        groups = [
            (str([getattr(cell[0], one) for one in others]), cell)
            for cell in self.measured(evidence, p.metric)
        ]
        held = [{key: cell for key, cell in groups if named(cell[0], name)} for name in p.order]
        pairs = [
            (low[key], high[key]) for low, high in pairwise(held) for key in low if key in high
        ]
        if not pairs:
            return Judgement("undecided", "no cell was measured under both names of the order")
        return judge_pairs(pairs, p.slack, p.metric)


def _label(name: Any) -> str:
    try:
        return parse_knowledge(name).label
    except KnowledgeError:
        return str(name)


def judge_pairs(pairs: Sequence[tuple[Cell, Cell]], slack: float, metric: str) -> Judgement:
    """Verdict on ``first ≤ second + slack`` for pairs of cells.

    It holds if the difference is below the slack beyond its error bar, if both are equal up to
    rounding, or if theory settles the order and the interval is narrower than the figures. As both
    share their copies, ``se₁ + se₂`` bounds the error. Replicates give the paired difference.
    """
    tests = [_difference(first, second, slack) for first, second in pairs]
    against = [
        one_sided(-test.measured, 0.0, test.error) if test.measured > ROUNDING else 1.0
        for test in tests
    ]
    shown = holm([one_sided(test.measured, ROUNDING, test.error) for test in tests])
    verdicts = [
        _verdict(test, no <= LEVEL, yes <= LEVEL)
        for test, no, yes in zip(tests, holm(against), shown, strict=True)
    ]
    order = ("holds", "undecided", "fails")
    at = max(range(len(tests)), key=lambda k: (order.index(verdicts[k]), tests[k].measured))
    first, second = pairs[at][0][0], pairs[at][1][0]
    difference, error, *_ = tests[at]
    why = f"closest of {len(pairs)}: {_compared(first, second)}, difference {difference + slack:+.4g} ± {1.96 * error:.2g} in {metric}"
    return Judgement(worst(verdicts), why, difference, slack)


def _verdict(test: Difference, refuted: bool, shown: bool) -> Verdict:
    if refuted or test.theory == "above":
        return "fails"
    if test.tied or (not test.blank and (shown or test.theory == "below")):
        return "holds"
    return "undecided"


def _compared(first: Measurement, second: Measurement) -> str:
    pair = (first, second)
    names = [
        f"{one.attack} ({one.knowledge}) on {one.scheme}" if one.attack else one.scheme
        for one in pair
    ]
    if names[0] != names[1]:
        return " ≤ ".join(names)
    paths = [path for path in first.sweep if first.sweep[path] != second.sweep.get(path)]
    points = [", ".join(f"{path} = {one.sweep.get(path)}" for path in paths) for one in pair]
    if paths:
        return f"{names[0]}, at {' ≤ at '.join(points)}"
    return f"{names[0]}, copies {' ≤ copies '.join(describe(one.coalition) for one in pair)}"


class Difference(NamedTuple):
    """Excess of the first of a pair over the second and the slack."""

    measured: float
    error: float
    theory: Literal["above", "below"] | None
    larger: float

    @property
    def tied(self) -> bool:
        return max(abs(self.measured), self.error) <= ROUNDING

    @property
    def blank(self) -> bool:
        return 1.96 * self.error > self.larger


def _difference(first: Cell, second: Cell, slack: float) -> Difference:
    a, b = pooled(first)[0], pooled(second)[0]
    error = uncertainty(first) + uncertainty(second)
    if len(first) == len(second) >= PAIRED:
        values = np.array([[one.value for one in cell] for cell in (first, second)], dtype=float)
        error = float(np.diff(values, axis=0).std(ddof=1) / math.sqrt(len(first)))
    return Difference(a - b - slack, error, _settled(first, second, slack), max(abs(a), abs(b)))


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
    firm = len(gaps) >= PAIRED or {one.error_bar for one in (*first, *second)} == {"closed-form"}
    return "above" if firm and min(gaps) > ROUNDING else None


@register
class GrowthRate(Expectation):
    """Bound on the slope of log metric against log swept value."""

    name = "growth-rate"
    reference = "li2012, Fig. 5"

    class Parameters(Filter):
        """What is swept, and bounds on the exponent."""

        metric: str = Field("seconds", description="metric that grows")
        against: str = Field(description="the swept path, whose values are positive numbers")
        at_most: float | None = Field(None, description="largest exponent allowed")
        at_least: float | None = Field(None, description="smallest exponent allowed")

        @model_validator(mode="after")
        def _some_bound(self) -> Any:
            if self.at_most is None and self.at_least is None:
                raise ValueError("needs a bound: at-least or at-most")
            return self

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
        bound, most = (p.at_least, min) if p.at_most is None else (p.at_most, max)
        if not slopes:
            why = f"fewer than three values of {p.against} with a measured {p.metric}"
            return Judgement("undecided", why, None, bound)
        low = -math.inf if p.at_least is None else p.at_least
        high = math.inf if p.at_most is None else p.at_most
        inside = all(low <= slope <= high for slope in slopes.values())
        exponents = ", ".join(f"{name}: {slope:.2f}" for name, slope in slopes.items())
        why = f"exponent of {p.metric} in {p.against}: {exponents}"
        return Judgement("holds" if inside else "fails", why, most(slopes.values()), bound)


@register
class Monotone(Expectation):
    """A metric never falls, or never rises, along a swept path."""

    name = "monotone"
    reference = "holm1979"

    class Parameters(Filter):
        """The swept path, the direction of the metric and the part of the sweep."""

        metric: str = Field("normalized_error", description="metric that rises or falls")
        against: str = Field(description="the swept path, whose values are numbers")
        direction: Literal["rising", "falling"] = Field(
            description="which way the metric goes as the swept value grows"
        )
        between: list[float] | None = Field(
            None, description="[first, last] swept value looked at", min_length=2, max_length=2
        )
        slack: float = Field(
            0.0, ge=0, description="by how much a step may go the other way, in the metric's unit"
        )

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
            why = f"fewer than two values of {p.against} with a measured {p.metric}"
            return Judgement("undecided", why)
        judged = judge_pairs(pairs, p.slack, p.metric)
        why = f"{p.metric} {p.direction} with {p.against}, {len(lines)} lines; {judged.why}"
        return Judgement(judged.status, why, judged.observed, judged.bound)


def _line(record: Measurement, others: dict[str, Any]) -> str:
    attack = f", {record.attack}" if record.attack else ""
    return f"{record.scheme}{attack}{f' at {others}' if others else ''}"


def _swept(
    expectation: Expectation, evidence: Evidence
) -> Iterator[tuple[float, dict[str, Any], Cell]]:
    p: Any = expectation.parameters
    for group in expectation.measured(evidence, p.metric):
        sweep = dict(group[0].sweep)
        x = sweep.pop(p.against, None)
        if isinstance(x, (int, float)):
            yield x, sweep, group

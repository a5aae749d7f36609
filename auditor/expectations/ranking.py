"""Who beats whom: attacks, knowledge, schemes or coalitions in order of a metric; and how a metric grows along a sweep."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from auditor.expectation import Evidence, Expectation, Filter, Judgement, copies_released, selector, worst
from auditor.expectations.metric import ROUNDING
from auditor.registry import register
from auditor.results import Measurement, Verdict, cells, pooled
from auditor.scenario.coalitions import parse_coalitions
from auditor.scenario.knowledge import KnowledgeError, parse_knowledge
from auditor.statistics import holm, one_sided

LEVEL = 0.05


@register
class Ranking(Expectation):
    """One attack's error is at most another's, cell by cell; also for knowledge, schemes or coalitions."""

    name = "ranking"
    reference = "holm1979"

    class Parameters(Filter):
        """Names from the smallest value of the metric to the largest, and what they are names of."""

        order: list[Any] = Field(description="from the smallest value to the largest", min_length=2)
        by: Literal["attack", "knowledge", "scheme", "coalition"] = Field("attack", description="what the order names")
        metric: str = Field("normalized_error", description="metric to compare")
        slack: float = Field(0.0, ge=0, description="by how much a value may exceed the next, in the metric's unit")

        @model_validator(mode="after")
        def _coalitions(self) -> Any:
            if self.by == "coalition":
                for item in self.order:
                    parse_coalitions(item)
            return self

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict over every pair of neighbours in the order, in every cell where both were measured."""
        selected = selector(self.parameters, self.parameters.metric, copies_released(evidence))
        groups = list(cells(r for r in evidence.measurements if selected(r) and r.status == "ok").values())
        pairs = [pair for low, high in zip(self.parameters.order[:-1], self.parameters.order[1:], strict=True)
                 for pair in self._pairs(groups, low, high, copies_released(evidence))]  # fmt: skip
        if not pairs:
            return Judgement("undecided", "no cell was measured under both names of the order")
        return judge_pairs(pairs, self.parameters.slack, self.parameters.metric)

    def _pairs(self, groups: Sequence[Sequence[Measurement]], low: Any, high: Any, copies: dict[tuple[str, str], int]) -> Any:
        by = self.parameters.by
        smaller = {self._rest(group[0]): group for group in groups if _is(group[0], by, low, copies)}
        larger = {self._rest(group[0]): group for group in groups if _is(group[0], by, high, copies)}
        return [(smaller[key], larger[key]) for key in smaller if key in larger]

    def _rest(self, record: Measurement) -> str:
        """Everything of a cell but what is being compared."""
        by = self.parameters.by
        rest = {field: value for field, value in record._asdict().items()
                if field in ("sweep", "scheme", "knowledge", "attack", "coalition", "attribute") and field != by}  # fmt: skip
        if by == "knowledge":
            rest.pop("knowledge", None)
        return json.dumps(rest, sort_keys=True, default=str)


def _is(record: Measurement, by: str, name: Any, copies: dict[tuple[str, str], int]) -> bool:
    if by == "coalition":
        return parse_coalitions(name).matches(record.coalition, copies.get((str(record.sweep), record.scheme), 0))
    value = getattr(record, by)
    return bool(value == name or (by == "knowledge" and _label(name) == value))


def _label(name: Any) -> str:
    try:
        return parse_knowledge(name).label
    except KnowledgeError:
        return str(name)


def judge_pairs(pairs: Sequence[tuple[Sequence[Measurement], Sequence[Measurement]]], slack: float, metric: str) -> Judgement:
    """Return the verdict on ``first ≤ second + slack`` for pairs of cells.

    The two share their copies, so their errors are dependent in a way the records do not hold; ``se₁ + se₂`` bounds that of the
    difference whatever the dependence. Replicates give the paired difference itself.
    """
    tests = [_difference(first, second, slack) for first, second in pairs]
    refuted = holm([one_sided(-difference, 0.0, error) if difference > ROUNDING else 1.0 for difference, error, _ in tests])
    verdicts: list[Verdict] = []
    for (difference, _, theory), p in zip(tests, refuted, strict=True):
        broken = p <= LEVEL or (theory is not None and theory > ROUNDING)
        # A ranking claims «at most»; where theory settles the order a measured tie within its error bar does not unsettle it.
        holds = difference <= ROUNDING or (theory is not None and theory <= ROUNDING)
        verdicts.append("fails" if broken else "holds" if holds else "undecided")
    place = max(range(len(tests)), key=lambda k: (verdicts[k] == "fails", tests[k][0]))
    first, second = pairs[place][0][0], pairs[place][1][0]
    difference, error, _ = tests[place]
    names = " ≤ ".join(f"{r.attack} ({r.knowledge}) on {r.scheme}" if r.attack else r.scheme for r in (first, second))
    why = f"closest of {len(pairs)}: {names}, difference {difference + slack:+.4g} ± {1.96 * error:.2g} in {metric}"
    return Judgement(worst(verdicts), why, difference, slack)


def _difference(first: Sequence[Measurement], second: Sequence[Measurement], slack: float) -> tuple[float, float, float | None]:
    """Return measured difference less the slack, its standard error, and theory's difference less the slack."""
    (a, error_a), (b, error_b) = pooled(first), pooled(second)
    theory = None if first[0].theory is None or second[0].theory is None else first[0].theory - second[0].theory - slack
    if len(first) == len(second) and len(first) >= 5:
        paired = np.array([x.value for x in first], dtype=float) - np.array([y.value for y in second], dtype=float)
        error = float(paired.std(ddof=1) / math.sqrt(len(paired)))
    else:
        error = (error_a or 0.0) + (error_b or 0.0)
    return a - b - slack, error, theory


@register
class GrowthRate(Expectation):
    """How a metric grows along a sweep: the slope of log metric against log swept value is at most, or at least, so much."""

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

    @property
    def needs_metrics(self) -> tuple[str, ...]:  # type: ignore[override]
        """The metric that must be measured."""
        return (str(self.parameters.metric),)

    def judge(self, evidence: Evidence) -> Judgement:
        """Return the verdict on the least-squares slope, scheme by scheme and line by line; the worst decides."""
        p = self.parameters
        selected = selector(p, p.metric, copies_released(evidence))
        lines: dict[str, list[tuple[float, float]]] = {}
        for group in cells(r for r in evidence.measurements if selected(r) and r.status == "ok").values():
            record = group[0]
            x = record.sweep.get(p.against)
            value = float(np.median([r.value for r in group if r.value is not None]))
            if isinstance(x, (int, float)) and x > 0 and value > 0:
                others = {path: v for path, v in record.sweep.items() if path != p.against}
                name = f"{record.scheme}{f', {record.attack}' if record.attack else ''}{f' at {others}' if others else ''}"
                lines.setdefault(name, []).append((math.log(x), math.log(value)))
        slopes = {name: _slope(points) for name, points in lines.items() if len(points) >= 3}
        bound = p.at_most if p.at_most is not None else p.at_least
        if not slopes:
            return Judgement("undecided", f"fewer than three values of {p.against} with a measured {p.metric}", None, bound)
        verdicts: list[Verdict] = ["fails" if self._broken(slope) else "holds" for slope in slopes.values()]
        told = ", ".join(f"{name}: {slope:.2f}" for name, slope in slopes.items())
        worst_slope = max(slopes.values()) if p.at_most is not None else min(slopes.values())
        return Judgement(worst(verdicts), f"exponent of {p.metric} in {p.against}: {told}", worst_slope, bound)

    def _broken(self, slope: float) -> bool:
        p = self.parameters
        return (p.at_most is not None and slope > p.at_most) or (p.at_least is not None and slope < p.at_least)


def _slope(points: Sequence[tuple[float, float]]) -> float:
    """Least-squares slope of y on x."""
    x, y = np.array(points).T
    return float(((x - x.mean()) @ (y - y.mean())) / ((x - x.mean()) @ (x - x.mean())))

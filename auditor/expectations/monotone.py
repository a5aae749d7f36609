"""Monotone metrics: each swept value against the next, in every line of a figure.

A step holds if theory settles it, if both values are equal up to rounding, or if the data show it
beyond the error bars (Holm over all steps). It fails if either shows the opposite. Otherwise it is
undecided. `slack` is the size of an irrelevant step in the other direction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, model_validator

from auditor.expectations.base import Expectation, Filter, Judgement, measured
from auditor.expectations.ranking import judge_pairs
from auditor.registry import register
from auditor.results.evidence import Evidence
from auditor.results.records import Measurement


@register
class Monotone(Expectation):
    """A metric never falls (or never rises) from one swept value to the next, in theory and in measurement."""

    name = "monotone"
    reference = "holm1979"

    class Parameters(Filter):
        """What is swept, which way the metric goes, and over which part of the sweep."""

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
        """Return the verdict over every step of every line."""
        p = self.parameters
        lines: dict[str, list[tuple[float, Sequence[Measurement]]]] = {}
        for group in measured(evidence, p, p.metric):
            x = group[0].sweep.get(p.against)
            if isinstance(x, (int, float)) and (
                p.between is None or p.between[0] <= x <= p.between[1]
            ):
                lines.setdefault(_line(group[0], p.against), []).append((x, group))
        pairs = []
        for points in lines.values():
            points.sort(key=lambda point: point[0], reverse=p.direction == "falling")
            pairs += [(low, high) for (_, low), (_, high) in pairwise(points)]
        if not pairs:
            return Judgement(
                "undecided", f"fewer than two values of {p.against} with a measured {p.metric}"
            )
        judged = judge_pairs(pairs, p.slack, p.metric)
        why = f"{p.metric} {p.direction} with {p.against}, {len(lines)} lines; {judged.why}"
        return Judgement(judged.status, why, judged.observed, judged.bound)


def _line(record: Measurement, against: str) -> str:
    """Return the cell without the swept value."""
    others = {path: value for path, value in record.sweep.items() if path != against}
    return json.dumps(
        [
            others,
            record.scheme,
            record.knowledge,
            record.attack,
            record.coalition,
            record.attribute,
        ],
        sort_keys=True,
    )

"""Causes of exposure that a diagnosis of copies shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from auditor.base.text import listed
from auditor.results.metrics import base
from auditor.results.records import Measurement

SAME, TELLS, MOSTLY = 0.999, 0.5, 0.05
"""Correlation of equal noise, share of variance that a column tells, and share of kept values."""


def causes(measurements: Sequence[Measurement], *, brief: bool = False) -> list[str]:
    """Return the plainest causes that a diagnosis shows, plainest first.

    ``brief`` omits the scale of noise, and kept values, which reports state by themselves.
    """
    figures = {(r.metric, r.coalition, r.attribute): r.value or 0.0 for r in measurements}
    same, told, unchanged = dict[tuple[int, ...], float](), list[str](), list[str]()
    for (metric, copies, name), value in figures.items():
        stem, _, column = metric.removesuffix(")").partition("(")
        share = f"{min(1.0, value):.0%}"
        if stem == "noise_correlation" and abs(value) >= SAME:
            same[copies] = figures[metric.replace("correlation", "ratio"), copies, name]
        elif stem == "column_tells" and value >= TELLS:
            told.append(f"the shown column {column!r} tells {share} of the variance of {name!r}")
        elif stem == "values_equal" and value >= MOSTLY:
            unchanged.append(f"copy {copies[0]} shows {share} of the values of {name!r} unchanged")
    pairs = [
        f"copies {a} and {b} carry the same noise"
        + (
            f", scaled by {max(ratio, 1 / ratio):.2g}"
            if abs(ratio - 1) > 1e-3 and not brief
            else ""
        )
        for (a, b), ratio in same.items()
    ]
    return [*pairs, *told, *(() if brief else unchanged)]


def unused_columns(measurements: Iterable[Measurement]) -> str:
    """Return a sentence on shown columns that no attack could use; empty without any."""
    names = dict[str, dict[str, None]]()
    for record in measurements:
        if base(record.metric) == "column_unused":
            name = record.metric.partition("(")[2].removesuffix(")")
            names.setdefault(str(record.reason), {})[name] = None
    return "; ".join(
        f"no attack could use the shown column{'s' * (len(each) > 1)} {listed(each)}: {reason}"
        for reason, each in names.items()
    )

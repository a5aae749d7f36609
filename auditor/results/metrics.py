"""Metrics of an audit and cited papers (``metrics.json``, ``bibliography.json``)."""

import json
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from auditor.base import listed
from auditor.results.records import Measurement


class Metric(NamedTuple):
    """Meaning of a metric's values.

    ``leak``: which values mean a larger leak. ``measure``: the required entry of ``measures:``, or
    ``bounds``.
    """

    name: str
    unit: str
    meaning: str
    leak: Literal["low", "high", "neither"]
    measure: str | None = None


def _read(name: str) -> Any:
    return json.loads(files("auditor.results").joinpath(name).read_text(encoding="utf-8"))


METRICS: dict[str, Metric] = {row["name"]: Metric(**row) for row in _read("metrics.json")}
WORKS: dict[str, str] = _read("bibliography.json")
"""References by key."""


def works_in(reference: str) -> list[str]:
    """Keys of papers in ``guo2006; liu2008, section 3.3``, in order."""
    return [key for key in re.findall(r"[a-z]+\d{4}", reference) if key in WORKS]


ALWAYS = ("distortion", "rmse", "normalized_error", "collusion_gain")
"""Measured for every cell of a numeric table, at no cost beyond the moments."""

GUARANTEES = ("gaussian_dp", "epsilon", "epsilon_at_delta")
"""Need ``data: bounds:``, except ``epsilon`` of categories."""
EMPIRICAL = ("empirical_gaussian_dp", "empirical_epsilon")
"""Lower bounds of guarantees from audits."""
LOWEST, HIGHEST = 0.05, 0.95
"""Limits of error quantiles; more extreme ones disclose single records."""
RENAMED = {"learnt": "disclosed"}
"""Names in scenarios and results of earlier versions."""


def measured_by(name: str) -> str | None:
    """Entry of ``measures:`` that a metric needs; None if always measured.

    It may also be the section ``utility``, or the data's ``bounds``.
    """
    if name.startswith("utility_"):
        return "utility"
    metric = METRICS.get(base(name))
    return metric and metric.measure


def base(name: str) -> str:
    """Metric's name without its variant: ``within`` of ``within(0.1 std)``."""
    return name.partition("(")[0]


def is_metric(name: str) -> bool:
    """Whether a name is a metric's; all names ``utility_…`` are."""
    return base(name) in METRICS or name.startswith("utility_")


def canonical(name: str) -> str:
    """Metric's name for a spelling with hyphens, or for an earlier name."""
    stem, bracket, rest = name.partition("(")
    stem = stem.replace("-", "_")
    return RENAMED.get(stem, stem) + bracket + rest


SAME, TELLS, MOSTLY = 0.999, 0.5, 0.05
"""Correlation of equal noise, share of variance that a column tells, and share of kept values."""


def causes(measurements: Sequence[Measurement], *, brief: bool = False) -> list[str]:
    """Plainest causes that a diagnosis shows, plainest first.

    ``brief`` omits the scale of noise, and kept values.
    """
    figures = {
        (r.metric, r.coalition, r.attribute): r.value or 0.0
        for r in measurements
        if r.attack is None
    }
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
    """Sentence on shown columns that no attack could use; empty without any."""
    names = dict[str, dict[str, None]]()
    for record in measurements:
        if base(record.metric) == "column_unused":
            name = record.metric.partition("(")[2].removesuffix(")")
            names.setdefault(str(record.reason), {})[name] = None
    return "; ".join(
        f"no attack could use the shown column{'s' * (len(each) > 1)} {listed(each)}: {reason}"
        for reason, each in names.items()
    )

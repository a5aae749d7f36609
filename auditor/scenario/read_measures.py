"""Sections ``measures`` and ``utility``."""

from __future__ import annotations

import math
from typing import Any

from auditor.errors import did_you_mean
from auditor.parameters import is_number, is_whole, shown
from auditor.results import metrics
from auditor.results.metrics import HIGHEST, LOWEST
from auditor.scenario.fields import optional_list, split
from auditor.scenario.model import Measure, UtilityUse
from auditor.scenario.problems import Path, Problems

MEASURES: dict[str, tuple[str, ...]] = {
    "closeness": (),
    "within": ("tolerance", "of", "tolerances"),
    "exact": (),
    "records-within": ("tolerance",),
    "error-distribution": ("bins", "reach", "records"),
    "error-quantiles": ("probabilities",),
    "interval-privacy": ("confidence",),
    "entropy-privacy": (),
    "error-bounds": (),
    "candidates-left": (),
    "dissimilarity": (),
    "geometry": (),
    "anonymity": (),
    "rho-breach": ("rho1", "rho2"),
    "delta-growth": ("delta",),
    "empirical-epsilon": ("trials", "confidence"),
    "guarantees": ("delta",),
    "belief-gap": (),
    "marginal-gap": (),
    "share-gap": (),
    "history-size": (),
    "seconds": (),
}
"""Measures and their options."""

MOST_BINS = 400
"""Bins of a spread of errors; a bin of fewer than ten records is merged with its neighbours."""

RANGES = {"bins": (1, MOST_BINS), "trials": (100, 10**8)}
"""Fewest and most."""

SPREAD_RECORDS = 2**16
"""Records for a distribution of errors: a share's standard error is at most 0.2 %."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "error-distribution": {"bins": 40, "reach": 3.0, "records": SPREAD_RECORDS},
    "rho-breach": {"rho1": 0.1, "rho2": 0.5},
    "delta-growth": {"delta": 0.5},
    "empirical-epsilon": {"trials": 100_000, "confidence": 0.95},
    "records-within": {"tolerance": 0.1},
    "guarantees": {"delta": 1e-5},
}

KINDS_OF_TOLERANCE = ("std", "absolute", "relative")
MODELS = ("decision-tree", "svm-rbf", "logistic", "ridge")
"""Models for utility (``auditor.audit.measures.utility``)."""
PROBABILITIES = [0.05, 0.25, 0.5, 0.75, 0.95]


def measure_options(path: Path, name: str, options: Any, problems: Problems) -> dict[str, Any]:
    """Return a measure's options with defaults, and report errors.

    Besides mappings, ``within`` takes a number (of standard deviations) or a list,
    ``records-within`` a number (of the record's length), ``error-quantiles`` a list of
    probabilities, and ``interval-privacy`` a confidence.
    """
    if name == "within":
        return _within(path, options, problems)
    if name == "records-within" and options is not None and not isinstance(options, dict):
        options = {"tolerance": options}
    if name == "error-quantiles":
        given = (
            options if isinstance(options, dict) else {"probabilities": options} if options else {}
        )
        merged = {"probabilities": PROBABILITIES} | problems.mapping(path, given, MEASURES[name])
        return {
            "probabilities": _probabilities(
                (*path, "probabilities"), merged["probabilities"], LOWEST, problems
            )
        }
    if name == "interval-privacy":
        given = (
            options
            if isinstance(options, dict)
            else {"confidence": options}
            if options is not None
            else {}
        )
        merged = {"confidence": 0.95} | problems.mapping(path, given, MEASURES[name])
        _probabilities((*path, "confidence"), [merged["confidence"]], 0.5, problems)
        return merged
    merged = DEFAULTS.get(name, {}) | problems.mapping(path, options or {}, MEASURES[name])
    for key, value in merged.items():
        low, high = RANGES.get(key, (-math.inf, math.inf))
        if key not in RANGES:
            _positive((*path, key), value, problems)
        if (
            key in ("rho1", "rho2", "delta", "confidence")
            and isinstance(value, (int, float))
            and value >= 1
        ):
            problems.add((*path, key), f"must be a probability below 1; got {shown(value)}")
        if key in ("bins", "records", "trials") and not isinstance(value, int):
            problems.add((*path, key), f"must be an integer; got {shown(value)}")
        elif key in RANGES and not low <= value <= high:
            problems.add((*path, key), f"must be from {low} to {high:,}; got {shown(value)}")
    if name == "rho-breach" and not problems.found and not merged["rho1"] < merged["rho2"]:
        problems.add(
            (*path, "rho2"),
            f"must be above rho1, which is {shown(merged['rho1'])}; got {shown(merged['rho2'])}",
        )
    return merged


def _within(path: Path, options: Any, problems: Problems) -> dict[str, Any]:
    if isinstance(options, dict) and "tolerances" in options:
        options, path = (
            problems.mapping(path, options, ("tolerances",)).get("tolerances"),
            (*path, "tolerances"),
        )
    if isinstance(options, list):
        found = [_tolerance((*path, place), item, problems) for place, item in enumerate(options)]
        problems.unique(
            path, [f"{entry['tolerance']} {entry.get('of', 'std')}" for entry in found], "tolerance"
        )
        return found[0] if len(found) == 1 else {"tolerances": found}
    return _tolerance(path, options, problems)


def _tolerance(path: Path, item: Any, problems: Problems) -> dict[str, Any]:
    given = item if isinstance(item, dict) else {"tolerance": item} if item is not None else {}
    merged = {"tolerance": 0.1} | problems.mapping(path, given, ("tolerance", "of"))
    _positive((*path, "tolerance"), merged["tolerance"], problems)
    kind = merged.get("of", "std")
    if kind not in KINDS_OF_TOLERANCE:
        hint = did_you_mean(kind, KINDS_OF_TOLERANCE)
        problems.add(
            (*path, "of"),
            f"must be one of {', '.join(KINDS_OF_TOLERANCE)}; got {shown(kind)}{hint}",
        )
    return merged


def _positive(path: Path, value: Any, problems: Problems) -> None:
    if not is_number(value) or not 0 < value <= 1e9:
        problems.add(path, f"must be a number above 0; got {shown(value)}")


def _probabilities(path: Path, values: Any, low: float, problems: Problems) -> list[float]:
    """Return probabilities within limits; extreme quantiles expose records."""
    found = []
    for value in problems.sequence(path, values):
        if not is_number(value) or not low <= value <= HIGHEST:
            why = "more extreme quantiles disclose single records"
            problems.add(
                path, f"must lie between {low:g} and {HIGHEST:g}, as {why}; got {shown(value)}"
            )
        else:
            found.append(float(value))
    return found


def parse_utility(value: Any, problems: Problems) -> UtilityUse | None:
    """Return the section ``utility``; an empty one compares only two moments."""
    path: Path = ("utility",)
    given = problems.mapping(
        path, value if value is not None else {}, ("target", "models", "folds", "test")
    )
    target = given.get("target")
    if target is None:
        for key in given:
            problems.add((*path, key), "needs a `target` to predict")
        return UtilityUse()
    if not isinstance(target, str):
        problems.add((*path, "target"), f"must be a column's name; got {shown(target)}")
    models = problems.sequence((*path, "models"), given.get("models", ["decision-tree"]))
    for place, name in enumerate(models):
        if name not in MODELS:
            problems.add(
                (*path, "models", place),
                f"must be one of {', '.join(MODELS)}; got {shown(name)}{did_you_mean(name, MODELS)}",
            )
    problems.unique((*path, "models"), [str(name) for name in models], "model")
    folds, test = given.get("folds", 10), given.get("test", "original")
    if not is_whole(folds, 2, 1000):
        problems.add((*path, "folds"), f"must be an integer from 2 to 1,000; got {shown(folds)}")
        folds = 10
    if test not in ("original", "copy"):
        problems.add((*path, "test"), f"must be original or copy; got {shown(test)}")
    return UtilityUse(str(target), tuple(str(name) for name in models), folds, str(test))


def read_measures(fields: dict[str, Any], problems: Problems) -> tuple[Measure, ...]:
    """Return the additional measures of ``measures`` and report errors."""
    items = optional_list(fields, "measures", problems)
    names = [split(item)[0] for item in items]
    problems.unique(
        ("measures",), [name if isinstance(name, str) else None for name in names], "measure"
    )
    measures = [_measure(("measures", place), item, problems) for place, item in enumerate(items)]
    return tuple(measure for measure in measures if measure is not None)


def _measure(path: Path, item: Any, problems: Problems) -> Measure | None:
    name, options = split(item)
    if isinstance(name, str) and metrics.canonical(name) in metrics.ALWAYS:
        return None
    if name not in MEASURES:
        problems.add(
            path,
            f"must be one of {', '.join(MEASURES)}; got {shown(item)}{did_you_mean(name, MEASURES)}",
        )
        return None
    place = path if isinstance(item, dict) and "name" in item else (*path, name)
    return Measure(name, measure_options(place, name, options, problems))

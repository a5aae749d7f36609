"""Sections ``expect``, ``measures`` and ``utility``."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from auditor import registry
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base import did_you_mean
from auditor.base.types import Plain
from auditor.registry.parameters import (
    FieldError,
    Form,
    Path,
    Problems,
    Whole,
    parse_path,
    read_entry,
    shown,
    split,
)
from auditor.results import metrics
from auditor.results.metrics import HIGHEST, LOWEST
from auditor.results.records import FITTED
from auditor.scenario.model import ExpectationUse, Measure, Utility
from auditor.scenario.read_plugins import id_of, parse_coalitions, parse_knowledge

REMEDIES = {
    "utility": "is not measured; give the section `utility:`",
    "bounds": "are not stated; say under `data:` by how much one record may change, as `bounds: {age: [0, 120]}`",
}


class Audited(NamedTuple):
    """Valid values of filters; None if they change along a sweep."""

    names: dict[str, list[str] | None]
    measures: set[str]
    sweep: dict[str, list[Any]]

    @classmethod
    def of(
        cls,
        fields: Plain,
        knowledge: tuple[Knowledge, ...],
        measures: tuple[Measure, ...],
        utility: Utility | None,
        sweep: dict[str, list[Any]],
    ) -> Audited:
        """Valid values of a scenario's filters."""
        swept = [parse_path(path) for path in sweep]
        moved = {path[0] for path in swept if len(path) <= 2 or path[-1] in ("id", "name")}
        names: dict[str, list[str] | None] = {}
        for field in ("scheme", "attack"):
            items = fields.get(f"{field}s")
            ids = map(id_of, items if isinstance(items, list) else [items])
            names[field] = None if f"{field}s" in moved else list(filter(None, ids))
        names["attack"] = names["attack"] and [*names["attack"], FITTED]
        labels = [state.label for state in knowledge]
        names["knowledge"] = None if any(path[0] == "knowledge" for path in swept) else labels
        # closeness is measured where an expectation needs it
        measured = {"closeness", *(measure.name for measure in measures)}
        measured |= {"utility"} if utility is not None else set()
        data = fields.get("data")
        bounds = isinstance(data, dict) and data.get("bounds")
        if bounds or any(path[:2] == ("data", "bounds") for path in swept):
            measured.add("bounds")
        return cls(names, measured, sweep)


def read_expectations(
    fields: Plain, problems: Problems, audited: Audited
) -> tuple[ExpectationUse, ...]:
    """Return the section ``expect`` without invalid entries; report errors."""
    items = problems.sequence(("expect",), fields.get("expect"), optional=True)
    uses = [_expectation(place, item, problems, audited) for place, item in enumerate(items)]
    return tuple(use for use in uses if use is not None)


def _expectation(
    number: int, item: Any, problems: Problems, audited: Audited
) -> ExpectationUse | None:
    path: Path = ("expect", number)
    name, where = split(item)
    if not isinstance(name, str):
        problems.add(
            path,
            f"must be one expectation, as `no-collusion-gain: {{scheme: corner-wave}}`; got {shown(item)}",
        )
        return None
    if not (isinstance(item, str) or "name" in item):
        path = (*path, name)
    metric = metrics.canonical(name)
    if registry.has("expectation", name):
        cls, fixed = registry.get("expectation", name), {}
    elif metrics.is_metric(metric):
        cls, fixed = registry.get("expectation", "metric"), {"metric": metric}
    else:
        got = f": {shown(item)}" if isinstance(item, str) else ""
        hint = did_you_mean(name, [*registry.spellings("expectation"), *metrics.METRICS])
        problems.add(path, f"is not a known expectation or metric{got}{hint}", key=True)
        return None
    where = {} if where is None else where
    if not isinstance(where, dict):
        problems.add(path, f"must be a mapping of filters and bounds; got {shown(where)}")
        return None
    before = len(problems.found)
    resolved = _resolved(path, where, problems, audited) | fixed
    if isinstance(resolved.get("metric"), str):
        resolved["metric"] = metrics.RENAMED.get(resolved["metric"], resolved["metric"])
    parameters = problems.model(path, resolved, cls.Parameters)
    if parameters is None or len(problems.found) > before:
        return None
    expectation = cls.made(parameters)
    _check_metrics(path, expectation, problems, audited)
    return ExpectationUse(name, expectation, where, number)


def _check_metrics(path: Path, expectation: Any, problems: Problems, audited: Audited) -> None:
    named = getattr(expectation.parameters, "metric", None)
    if named is not None and not metrics.is_metric(named):
        hint = did_you_mean(named, metrics.METRICS)
        problems.add((*path, "metric"), f"is not a known metric: {named!r}{hint}")
        return
    for metric in {*expectation.needs_metrics, *filter(None, [named])}:
        measure = metrics.measured_by(metric)
        if measure is not None and measure not in audited.measures:
            remedy = REMEDIES.get(measure, "is not measured; add it under `measures:`")
            problems.add(path, f"needs {measure}, which {remedy}")


def _resolved(path: Path, where: Plain, problems: Problems, audited: Audited) -> Plain:
    resolved = dict(where)
    if where.get("coalition") is not None:
        problems.attempt((*path, "coalition"), parse_coalitions, where["coalition"])
    if where.get("knowledge") is not None:
        items = where["knowledge"] if isinstance(where["knowledge"], list) else [where["knowledge"]]
        place = (*path, "knowledge")
        resolved["knowledge"] = [problems.attempt(place, _label, item) or "" for item in items]
    for field, known in audited.names.items():
        wanted = resolved.get(field)
        kinds = [name.partition("(")[0] for name in known or () if field == "knowledge"]
        for name in wanted if isinstance(wanted, list) else [wanted]:
            if name and known and name not in known and name not in kinds:
                hint = did_you_mean(name, known)
                problems.add(
                    (*path, field), f"names no {field} of this scenario: {shown(name)}{hint}"
                )
    swept = where.get("sweep")
    for key, value in swept.items() if isinstance(swept, dict) else ():
        place = (*path, "sweep", key)
        if key not in audited.sweep:
            hint = did_you_mean(key, audited.sweep)
            problems.add(place, f"is not swept in this scenario{hint}", key=True)
        elif value not in audited.sweep[key]:
            problems.add(place, f"is not among the values swept: {shown(value)}")
    return resolved


def _label(item: Any) -> str:
    if isinstance(item, str) and item.partition("(")[0] in KINDS:
        return item
    return parse_knowledge(item).label


SPREAD_RECORDS = 2**16
"""Records for a distribution of errors: a share's standard error is at most 0.2 %."""

Positive = Annotated[float, Field(gt=0, le=1e9)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Quantile = Annotated[float, Field(ge=LOWEST, le=HIGHEST)]
"""More extreme quantiles disclose single records."""


class _Tolerance(Form):
    alone = "tolerance"
    tolerance: Positive = 0.1
    of: Literal["std", "absolute", "relative"] | None = None
    """default std"""

    def options(self) -> Plain:
        return self.model_dump(include={"tolerance", "of"}, exclude_none=True)


class _Within(_Tolerance):
    tolerances: list[_Tolerance] = Field([])
    """several tolerances instead of one"""

    @classmethod
    def spelt_out(cls, argument: Any) -> Any:
        """List of tolerances, each a mapping, if there are several."""
        found = (
            {"tolerances": argument} if isinstance(argument, list) else super().spelt_out(argument)
        )
        if isinstance(found, dict) and isinstance(found.get("tolerances"), list):
            return found | {
                "tolerances": [_Tolerance.spelt_out(one) for one in found["tolerances"]]
            }
        return found

    @model_validator(mode="after")
    def _distinct(self) -> _Within:
        seen: list[tuple[float, str]] = []
        for place, one in enumerate(self.tolerances):
            if (one.tolerance, one.of or "std") in seen:
                raise FieldError(
                    f"repeats tolerance {one.tolerance:g} {one.of or 'std'}", "tolerances", place
                )
            seen.append((one.tolerance, one.of or "std"))
        return self

    def options(self) -> Plain:
        several = [one.options() for one in self.tolerances]
        return (
            several[0]
            if len(several) == 1
            else {"tolerances": several}
            if several
            else super().options()
        )


class _Share(Form):
    alone = "tolerance"
    tolerance: Positive = 0.1
    """share of the record's length"""


class _Spread(Form):
    bins: Whole = Field(40, ge=1, le=400)
    """bins below ten records are merged"""
    reach: Positive = 3.0
    records: Whole = Field(SPREAD_RECORDS, ge=1, le=10**9)


class _Quantiles(Form):
    alone = "probabilities"
    probabilities: list[Quantile] = Field([0.05, 0.25, 0.5, 0.75, 0.95], min_length=1)


class _Interval(Form):
    alone = "confidence"
    confidence: float = Field(0.95, ge=0.5, le=HIGHEST)


class _Breach(Form):
    rho1: Probability = 0.1
    rho2: Probability = 0.5

    @model_validator(mode="after")
    def _rising(self) -> _Breach:
        if not self.rho1 < self.rho2:
            raise FieldError(
                f"must be above rho1, {shown(self.rho1)}; got {shown(self.rho2)}", "rho2"
            )
        return self


class _Growth(Form):
    delta: Probability = 0.5


class Guarantee(Form):
    """Options of guarantees."""

    delta: Probability = 1e-5


class _Trials(Form):
    trials: Whole = Field(100_000, ge=100, le=10**8)
    confidence: Probability = 0.95


MEASURES: dict[str, type[Form]] = {
    "within": _Within,
    "records-within": _Share,
    "error-distribution": _Spread,
    "error-quantiles": _Quantiles,
    "interval-privacy": _Interval,
    "rho-breach": _Breach,
    "delta-growth": _Growth,
    "empirical-epsilon": _Trials,
    "guarantees": Guarantee,
    **dict.fromkeys(
        "closeness exact entropy-privacy error-bounds candidates-left dissimilarity geometry "
        "anonymity belief-gap marginal-gap share-gap history-size seconds".split(),
        Form,
    ),
}
"""Measures and their options."""


def read_measures(fields: Plain, problems: Problems) -> tuple[Measure, ...]:
    """Return the additional measures of ``measures`` and report errors."""
    items = problems.sequence(("measures",), fields.get("measures"), optional=True)
    names = [split(item)[0] for item in items]
    problems.unique(("measures",), names, "measure")
    measures = [
        problems.attempt(("measures", place), _measure, item)
        for place, (item, name) in enumerate(zip(items, names, strict=True))
        if not (isinstance(name, str) and metrics.canonical(name) in metrics.ALWAYS)
    ]
    return tuple(measure for measure in measures if measure is not None)


def _measure(item: Any) -> Measure:
    name, form = read_entry(item, MEASURES, "a measure")
    options = form.options() if isinstance(form, _Within) else form.model_dump(by_alias=True)
    return Measure(name, options)


def parse_utility(value: Any, problems: Problems) -> Utility:
    """Return the section ``utility``, and report errors."""
    given = Utility.spelt_out(value)
    if isinstance(given, dict) and isinstance(given.get("models"), str):
        given = given | {"models": [given["models"]]}
    return problems.model(("utility",), given, Utility) or Utility.model_validate({})

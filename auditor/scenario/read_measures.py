"""Sections ``measures`` and ``utility``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from auditor.registry.parameters import FieldError, Whole, shown
from auditor.results import metrics
from auditor.results.metrics import HIGHEST, LOWEST
from auditor.scenario.model import Measure, UtilityUse
from auditor.scenario.problems import Form, Problems, read_entry, split

SPREAD_RECORDS = 2**16
"""Records for a distribution of errors: a share's standard error is at most 0.2 %."""

Positive = Annotated[float, Field(gt=0, le=1e9)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Quantile = Annotated[float, Field(ge=LOWEST, le=HIGHEST)]
"""More extreme quantiles disclose single records."""


class _Tolerance(Form):
    alone = "tolerance"
    tolerance: Positive = 0.1
    of: Literal["std", "absolute", "relative"] | None = Field(None, description="default std")

    def options(self) -> dict[str, Any]:
        return self.model_dump(include={"tolerance", "of"}, exclude_none=True)


class _Within(_Tolerance):
    tolerances: list[_Tolerance] = Field([], description="several tolerances instead of one")

    @classmethod
    def spelt_out(cls, argument: Any) -> Any:
        """Return a list of tolerances, each a mapping, if there are several."""
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

    def options(self) -> dict[str, Any]:
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
    tolerance: Positive = Field(0.1, description="share of the record's length")


class _Spread(Form):
    bins: Whole = Field(40, ge=1, le=400, description="bins below ten records are merged")
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
        (
            "closeness",
            "exact",
            "entropy-privacy",
            "error-bounds",
            "candidates-left",
            "dissimilarity",
            "geometry",
            "anonymity",
            "belief-gap",
            "marginal-gap",
            "share-gap",
            "history-size",
            "seconds",
        ),
        Form,
    ),
}
"""Measures and their options."""


def read_measures(fields: dict[str, Any], problems: Problems) -> tuple[Measure, ...]:
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


class Utility(Form):
    """The section ``utility``; an empty one compares only two moments."""

    target: str | None = Field(None, description="column to predict, or label")
    models: list[Literal["decision-tree", "svm-rbf", "logistic", "ridge"]] = Field(
        ["decision-tree"], min_length=1
    )
    folds: Whole = Field(10, ge=2, le=1000)
    test: Literal["original", "copy"] = "original"

    @model_validator(mode="after")
    def _predicts(self) -> Utility:
        for field in self.model_fields_set if self.target is None else ():
            raise FieldError("needs a `target` to predict", field)
        for place, model in enumerate(self.models):
            if model in self.models[:place]:
                raise FieldError(f"repeats model {model!r}", "models", place)
        return self


def parse_utility(value: Any, problems: Problems) -> UtilityUse | None:
    """Return the section ``utility``, and report errors."""
    given = Utility.spelt_out(value)
    if isinstance(given, dict) and isinstance(given.get("models"), str):
        given = given | {"models": [given["models"]]}
    form = problems.model(("utility",), given, Utility)
    if form is None or form.target is None:
        return UtilityUse()
    return UtilityUse(form.target, tuple(form.models), form.folds, form.test)

"""What of an audit may leave its owner's machine: figures over at least ten records, no sharper than their error bars need.

The records of a file are a secret; those of a registered source that says so, and those written in a scenario, are not. Of a secret table

| what | is written |
| --- | --- |
| mean, variance, unit, correlation | rounded to a step of at most half their standard error in ``n`` records |
| every figure of fewer than ten records | withheld; the verdicts stay |
| all other figures | as they are |

An attack's error in data units over the same without a unit is the exact variance, though. Where a scenario asks for it, with
``data: {disclosure: figures}``, as one whose results will be published should, that is closed too:

| what | is written |
| --- | --- |
| figures in data units (``distortion``, ``rmse``, bins) | times *rounded over exact variance*, one factor an attribute |
| figures of noise whose size is stated in data units | rounded to a step of at most half their own |
| guarantees of noise whose size, or memory, is the table's own | withheld: a stated change over it, at many levels, is the variance |

The factor is what makes it hold: were each figure rounded by itself, the mean of many quotients ``distortion / normalized_error`` would be
the variance again. With one factor every such quotient is the *rounded* variance, and figures still agree with one another.

Ten is the threshold of the guidelines for checking output of research on microdata (Brandt et al., ESSnet SDC, 2010, rule of thumb 1).
*Not protected against*: docs/privacy.md, «What rounding does not do».
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from auditor import registry
from auditor.results.metrics import EMPIRICAL, GUARANTEES, METRICS, base
from auditor.results.records import DataSummary, Distribution, ExpectationRecord, Measurement

FEWEST_RECORDS = 10
SECRET = ("moments", "figures")
"""What ``DataSummary.disclosure`` says of a secret table before anything is written: how much of it is to be rounded."""
IN_DATA_UNITS = {"distortion": 1.0, "rmse": 0.5}
"""Metric → power of the variance that it is in proportion to."""
SHOWN_DIGITS = 2
"""Of figures in data units that stand in a verdict's text."""
PROMISES = (*GUARANTEES, *EMPIRICAL)
SIZED = "withheld: noise is sized by the table's own moments, which a guarantee would tell; `noise: bounds` sizes it without them"
BY_GUARANTEE = "by guarantee: "
"""Begins the last part of a verdict that tells guarantees (``auditor.expectations.guarantees``)."""
_STATES_A_VARIANCE = ("variance", "variances", "matrix", "covariance")
"""Parameters of a scheme that state the size of its noise in data units."""
_FROM_MOMENTS = ("share", "standard deviations", "squared data units", "data units")
_FIGURE = re.compile(
    r"(?<![\w.])(?:\d+\.\d+(?:e[+-]?\d+)?|\d{4,}(?:e[+-]?\d+)?\b(?!\.\d)(?! (?:of|cells|comparisons|differences|rows)\b))"
)
"""A figure in a verdict's text, as it is printed there; counts are none."""


class Results(Protocol):
    """What of an ``AuditResult`` is looked at here; its class stands above this module, which it calls before it writes."""

    @property
    def scenario(self) -> dict[str, Any]:
        """As it was written."""

    @property
    def data(self) -> list[DataSummary]:
        """One summary a table."""

    @property
    def measurements(self) -> Sequence[Measurement]:
        """One record a figure."""

    @property
    def distributions(self) -> list[Distribution]:
        """One record a histogram."""

    @property
    def expectations(self) -> list[ExpectationRecord]:
        """One record a verdict."""

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return the results with some of their lists replaced."""


R = TypeVar("R", bound=Results)


def disclosed(result: R) -> R:
    """Return results as they may be written, printed or drawn; those that are so already, as they are.

    Examples
    --------
    >>> import auditor
    >>> result = auditor.run({"data": "iris", "schemes": [{"name": "corner-wave", "levels": [1.0]}], "attacks": ["llse"], "seed": 1})
    >>> disclosed(result) is result  # iris is no secret
    True
    """
    if not any(summary.disclosure in SECRET for summary in result.data):
        return result
    tables = [_Disclosed(summary) for summary in result.data]
    uses = result.scenario.get("schemes", ())
    absolute = {use["id"] for use in uses if _states_a_variance(use)}
    sized = {use["id"] for use in uses if "noise" in use and (use["id"] not in absolute or use.get("serial") == "data")}
    found = _finder(tables)
    changing = any(table.withheld or table.figures for table in tables)  # else no record is made of what stays as it is
    return result.model_copy(update={
        "data": [table.summary for table in tables],
        "measurements": [
            found(record.sweep).measurement(record, record.scheme in absolute, record.scheme in sized) for record in result.measurements
        ] if changing else result.measurements,
        "distributions": [spread for each in result.distributions for spread in found(each.sweep).distribution(each)],
        "expectations": [_verdict(record, tables, bool(sized)) for record in result.expectations],
    })  # fmt: skip


def half_step(value: float, error: float) -> float:
    """Return a value on a grid of 1, 2 or 5 times a power of ten, of at most half its standard error.

    Rounding then adds at most ``(1/2)²/12``, 2 %, to the square of the error.

    Examples
    --------
    >>> half_step(3.14159, 0.1), half_step(1234.5, 60.0), half_step(2.0, 0.0)
    (3.15, 1240.0, 2.0)
    """
    if not error > 0:
        return value
    power = 10.0 ** math.floor(math.log10(error / 2.0))
    step = power * max(times for times in (1, 2, 5) if times * power <= error / 2.0 * (1 + 1e-12))
    return float(f"{round(value / step) * step:.12g}")


class _Disclosed:
    """One table: its summary as it may be reported, and the factors between figures and what is reported of them."""

    def __init__(self, exact: DataSummary) -> None:
        self.sweep, self.rows, self.private = exact.sweep, exact.rows, exact.disclosure in SECRET
        self.figures = exact.disclosure == "figures"
        self.withheld = self.private and exact.rows < FEWEST_RECORDS
        self.reason = f"withheld: no figure is written of a private table with fewer than {FEWEST_RECORDS} records; it has {exact.rows}"
        self.summary = _summary(exact) if self.private else exact
        self._factors = _factors(exact, self.summary) if self.figures else {}

    def measurement(self, record: Measurement, absolute: bool, sized: bool) -> Measurement:
        """Return one figure as it may be reported; whether the size of its noise is stated in data units, or is the table's own moments."""
        if not self.private or record.value is None or record.metric == "seconds":
            return record
        if self.withheld:
            withheld = record._replace(value=None, std_error=None, ci_low=None, ci_high=None, theory=None)
            return withheld._replace(status="not-applicable", reason=self.reason, error_bar="none")
        if not self.figures:
            return record
        power = IN_DATA_UNITS.get(record.metric)
        if power is not None:
            factor = self._factors.get(record.attribute, 1.0) ** power
            record = _changed(record, lambda number: number * factor)
        metric = METRICS.get(base(record.metric))
        if base(record.metric) in PROMISES:
            return record._replace(value=None, theory=None, status="not-applicable", reason=SIZED) if sized else record
        if absolute and (metric is None or metric.unit.startswith(_FROM_MOMENTS)):
            record = _rounded(record, self.rows)
        return record

    def distribution(self, spread: Distribution) -> Sequence[Distribution]:
        """Return a histogram as it may be reported, none of too few records; its bins are multiples of the standard deviation."""
        if self.withheld:
            return ()
        factor = math.sqrt(self._factors.get(spread.attribute, 1.0))
        return (spread if factor == 1.0 else spread._replace(edges=tuple(edge * factor for edge in spread.edges)),)


def _finder(tables: Sequence[_Disclosed]) -> Callable[[dict[str, Any]], _Disclosed]:
    """Return what finds the table of a sweep point: the one whose swept data are those of the point."""
    known: dict[int, _Disclosed] = {}

    def found(sweep: dict[str, Any]) -> _Disclosed:
        if id(sweep) not in known:  # records of one release share one; the result keeps them alive
            fits = (table for table in tables if table.sweep.items() <= sweep.items() or len(tables) == 1)
            # a point that no table claims is treated as the most private one there is
            known[id(sweep)] = next(fits, None) or min(tables, key=lambda table: (not table.private, table.rows))
        return known[id(sweep)]

    return found


def _summary(exact: DataSummary) -> DataSummary:
    """Return a private table's aggregates, with the steps that a sample of ``n`` normal records would need, or without any."""
    n = exact.rows
    if n < FEWEST_RECORDS:
        bare = [attribute.model_copy(update={"mean": None, "variance": None, "unit": None}) for attribute in exact.attributes]
        return exact.model_copy(update={"attributes": bare, "correlation": [], "disclosure": "withheld"})
    rounded = [
        attribute if attribute.variance is None or attribute.mean is None else attribute.model_copy(update={
            "mean": half_step(attribute.mean, math.sqrt(attribute.variance / n)),
            "variance": half_step(attribute.variance, attribute.variance * math.sqrt(2.0 / n)),
            "unit": None if attribute.unit is None else half_step(attribute.unit, attribute.unit / math.sqrt(2.0 * n)),
        })
        for attribute in exact.attributes
    ]  # fmt: skip
    correlation = [[half_step(value, 1.0 / math.sqrt(n)) for value in row] for row in exact.correlation]
    return exact.model_copy(update={"attributes": rounded, "correlation": correlation, "disclosure": "rounded"})


def _factors(exact: DataSummary, rounded: DataSummary) -> dict[str, float]:
    """Return rounded over exact variance by attribute, and of their sums under ``*``."""
    pairs = {
        old.name: (old.variance, new.variance)
        for old, new in zip(exact.attributes, rounded.attributes, strict=True) if old.variance and new.variance
    }  # fmt: skip
    if not pairs:
        return {}
    whole = math.fsum(new for _, new in pairs.values()) / math.fsum(old for old, _ in pairs.values())
    return {name: new / old for name, (old, new) in pairs.items()} | {"*": whole}


def _changed(record: Measurement, change: Callable[[float], float]) -> Measurement:
    """Return a record with all its numbers changed alike."""
    numbers = (record.value, record.std_error, record.ci_low, record.ci_high, record.theory)
    value, error, low, high, theory = (None if number is None else change(number) for number in numbers)
    return record._replace(value=value, std_error=error, ci_low=low, ci_high=high, theory=theory)


def _rounded(record: Measurement, rows: int) -> Measurement:
    """Return a record on a grid that its error bar asks for; without one, that which ``n`` records leave open of a variance."""
    error = record.std_error or abs(record.value or 0.0) * math.sqrt(2.0 / rows)
    rounded = _changed(record, lambda number: half_step(number, error))  # one grid, so that the value stays within its interval
    return rounded._replace(std_error=_whole(record.std_error, rows))


def _verdict(record: ExpectationRecord, tables: Sequence[_Disclosed], sized: bool) -> ExpectationRecord:
    """Return a verdict whose figures may be reported; which one it is stays, for it is one of three words."""
    short = next((table for table in tables if table.withheld), None)
    if short is not None:
        return record.model_copy(update={"observed": None, "bound": _asked(record), "why": short.reason})
    if not any(table.figures for table in tables):
        return record
    if sized and base(_metric(record)) in PROMISES:
        return record.model_copy(update={"observed": None, "why": SIZED})
    if sized and BY_GUARANTEE in record.why:
        record = record.model_copy(update={"why": record.why.partition(BY_GUARANTEE)[0] + BY_GUARANTEE + SIZED})
    if _metric(record) not in IN_DATA_UNITS:
        return record
    rows = min(table.rows for table in tables if table.private)
    why = _FIGURE.sub(lambda figure: f"{float(figure[0]):.{SHOWN_DIGITS}g}", record.why)
    bound = record.bound if record.bound == _asked(record) or isinstance(record.bound, list) else _whole(record.bound, rows)
    return record.model_copy(update={"observed": _whole(record.observed, rows), "bound": bound, "why": why})


def _metric(record: ExpectationRecord) -> str:
    """Return the metric that an expectation is about: the one it names, is called by, or takes by default."""
    if not registry.has("expectation", record.expectation):
        return record.expectation
    field = registry.get("expectation", record.expectation).Parameters.model_fields.get("metric")
    return str(record.where.get("metric", field.default if field else ""))


def _whole(value: float | None, rows: int) -> float | None:
    """Return a figure in proportion to a variance, no sharper than ``n`` records make that."""
    return None if value is None else half_step(value, abs(value) * math.sqrt(2.0 / rows))


def _asked(record: ExpectationRecord) -> float | list[float] | None:
    """Return the bound if the scenario states it; one that is a closed form is a figure of the data."""
    stated = [value for value in record.where.values() if isinstance(value, (int, float, list))]
    return record.bound if record.bound in stated else None


def _states_a_variance(parameters: Mapping[str, Any]) -> bool:
    """Whether a scheme's parameters, or those of a law within, state the size of the noise in data units."""
    return any(
        (key in _STATES_A_VARIANCE and value is not None)
        or (key, value) == ("noise", "bounds")
        or (isinstance(value, Mapping) and _states_a_variance(value))
        for key, value in parameters.items()
    )

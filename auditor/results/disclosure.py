"""Disclosure control: rounding of everything that leaves the owner's machine.

Every figure of a private table is written with the precision of its error bar, and no figure of
fewer than ten records.

====================  ======================================================================
standard error ``s``  the larger of the stated error and the error of ``n`` records:
                      ``√(f(1 − f)/n)`` for a share or probability ``f``, ``(1 − f²)/√n`` for a
                      correlation, otherwise ``|f| √(2/n)``, as for the variance of normal records
grid                  a step of 1, 2 or 5 times a power of ten, at most ``s/2``
shift                 ``u/2`` times the error of ``n`` records before rounding, with ``u``
                      secret and uniform in ±1
====================  ======================================================================

All coalitions of an attack share one ``u`` by metric and attribute. Without it, a hundred closed
forms of one quantity, each on its own grid, would locate it a hundred times better.

The records of a file are private, except with ``disclosure: public``. Public sources and tables in
a scenario are not. Ten is the threshold of Brandt et al., ESSnet SDC, 2010, rule of thumb 1.
docs/privacy.md states how precisely a record can still be located.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from auditor.base.types import Array, Options, Plain
from auditor.results.measurements import Measurements
from auditor.results.metrics import GUARANTEES, METRICS, base
from auditor.results.records import DataSummary, Distribution, ExpectationRecord, Picture

WITHHELD = "withheld"
FEWEST_RECORDS = 10
_GROUP = ("sweep", "scheme", "knowledge", "attack", "attribute", "metric")
"""Fields of measurements with a common shift."""
_BOUNDED = ("share", "probability")
"""Units of metrics between 0 and 1, except a share of variance."""
PUBLIC = ("seconds", "rounding_step")
"""Metrics that depend on no original value."""
_FIGURE = re.compile(
    r"(?<![\w.])(?:\d+\.\d+(?:e[+-]?\d+)?|\d{4,}(?:e[+-]?\d+)?\b(?!\.\d)(?! (?:of|cells|comparisons|differences|rows)\b))"
)
"""A printed figure in a verdict's text, without counts."""


def disclosed(result: Any) -> Any:
    """``AuditResult`` for output; already disclosed ones unchanged.

    Examples
    --------
    >>> import auditor
    >>> result = auditor.run({"data": "iris", "schemes": [{"name": "corner-wave", "levels": [1.0]}], "attacks": ["llse"], "seed": 1})
    >>> disclosed(result) is result  # iris is public
    True
    """
    private = [table for table in result.data if table.disclosure == "private"]
    if not private:
        return result
    bounded = {
        use["id"] for use in result.scenario.get("schemes", ()) if use.get("noise") == "bounds"
    }

    def released(
        parts: Iterable[Any], rounded_part: Callable[[Any, DataSummary], Any]
    ) -> list[Any]:
        tables = ((each, _table(result.data, each.sweep)) for each in parts)
        return [
            each if table.disclosure != "private" else rounded_part(each, table)
            for each, table in tables
            if not _too_few(table)
        ]

    return result.model_copy(
        update={
            "data": [_summary(table) if table in private else table for table in result.data],
            "measurements": _measurements(
                Measurements.of(result.measurements), result.data, bounded
            ),
            "distributions": released(result.distributions, _distribution),
            "pictures": released(result.pictures, _picture),
            "expectations": [
                _verdict(record, min(private, key=lambda table: table.rows))
                for record in result.expectations
            ],
        }
    )


def half_step(value: float, error: float) -> float:
    """Round a value to a grid of at most half its standard error.

    Steps are 1, 2 or 5 times a power of ten. Rounding adds at most ``(1/2)²/12``, 2 %, to the
    squared error.

    Examples
    --------
    >>> half_step(3.14159, 0.1), half_step(1234.5, 60.0), half_step(2.0, 0.0)
    (3.15, 1240.0, 2.0)
    """
    return float(half_steps(np.array(value), np.array(error)))


def half_steps(values: Array, errors: Array, fewest: Array | float = 0.0) -> Array:
    """``half_step`` of arrays; positive values keep at least ``fewest`` steps."""
    rounded = np.isfinite(values) & np.isfinite(errors) & (errors > 1e-290)
    half = np.where(rounded, errors, 1.0) / 2.0
    power = np.floor(np.log10(half))
    scale = 10.0 ** np.abs(power)
    left = half * (1 + 1e-12) * np.where(power < 0, scale, 1 / scale)  # from 1 to 10
    times = np.where(left >= 5, 5.0, np.where(left >= 2, 2.0, 1.0))
    units = np.where(rounded, values, 0.0) * np.where(power < 0, scale, 1 / scale)
    whole = (
        np.maximum(np.rint(units / times), np.where((units > 0) & (fewest > 0), fewest, -np.inf))
        * times
    )
    return np.where(rounded, np.where(power < 0, whole / scale, whole * scale), values)


def rounded(value: float, rows: int) -> float:
    """Figure without stated error, with the precision of a variance."""
    return half_step(value, abs(value) * sqrt(2.0 / rows))


def _table(tables: Sequence[DataSummary], sweep: Options) -> DataSummary:
    """A sweep point's table, or else the most private one."""
    fits = (table for table in tables if table.sweep.items() <= sweep.items() or len(tables) == 1)
    return next(fits, None) or min(
        tables, key=lambda table: (table.disclosure != "private", table.rows)
    )


def _too_few(table: DataSummary) -> str:
    if table.disclosure != "private" or table.rows >= FEWEST_RECORDS:
        return ""
    return f"{WITHHELD}: no figure is written of a private table with fewer than {FEWEST_RECORDS} records; it has {table.rows}"


def _measurements(
    exact: Measurements, tables: Sequence[DataSummary], bounded: set[str]
) -> Measurements:
    """Measurements for output; guarantees by stated bounds stay exact."""
    column = dict(exact.columns)

    def by(field: str, of: Callable[[Any], Any]) -> Any:
        """Function of a field row by row, shape (n,)."""
        return np.array([of(value) for value in column[field].values])[column[field].places]

    def error(figure: Array) -> Any:
        """Standard errors of figures of ``n`` records, shape (n,)."""
        return np.where(
            shares,
            np.sqrt(np.abs(figure * (1.0 - figure)) / rows),
            np.where(
                correlations,
                np.abs(1.0 - figure**2) / np.sqrt(rows),
                np.abs(figure) * np.sqrt(2.0 / rows),
            ),
        )

    if not len(exact):
        return exact
    table = partial(_table, tables)
    rows, shares = by("sweep", lambda sweep: float(table(sweep).rows)), by("metric", _is_share)
    correlations = by("metric", lambda metric: _unit(metric) == "correlation")
    least, most = np.where(correlations, -1.0, 0.0), np.where(shares | correlations, 1.0, np.inf)
    stated_law = by("metric", lambda metric: base(metric) in GUARANTEES) & by(
        "scheme", bounded.__contains__
    )
    secret = (
        by("sweep", lambda sweep: table(sweep).disclosure == "private")
        & by("metric", lambda metric: metric not in PUBLIC)
        & ~stated_law
    )
    why = by("sweep", lambda sweep: _too_few(table(sweep)))
    value, theory, stated = (column[field] for field in ("value", "theory", "std_error"))
    shift = _shifts(exact, table)
    step = np.fmax(stated, error(np.where(np.isnan(value), theory, value)))
    found = {
        "std_error": half_steps(stated * (1.0 + shift * np.sqrt(0.5 / rows)), step, fewest=1.0)
    }
    for field, of in (("value", value), ("ci_low", value), ("ci_high", value), ("theory", theory)):
        figure = column[field]
        # neither 0 nor above its interval
        fewest = np.where((most == 1.0) | (field in ("ci_low", "theory")), 0.0, 1.0)
        moved = half_steps(figure + shift * np.nan_to_num(error(of)) / 2.0, step, fewest) + 0.0
        inside = (figure >= least) & (figure <= most)
        found[field] = np.where(inside, np.clip(moved, least, most), moved)
    short = secret & (why != "") & ~np.isnan(value)
    known: Plain = {
        field: np.where(short, np.nan, np.where(secret, figure, column[field]))
        for field, figure in found.items()
    }
    for few in np.unique(why[short]).tolist():
        here = short & (why == few)
        column |= {
            "status": column["status"].put(here, "not-applicable"),
            "reason": column["reason"].put(here, few),
            "error_bar": column["error_bar"].put(here, "none"),
        }
    return Measurements(column | known)


def _shifts(exact: Measurements, table: Callable[[Plain], DataSummary]) -> Array:
    """Secret shift of each row in units of its error, in ±1, shape (n,).

    The secret is the table's exact moments: equal tables have equal shifts.
    """
    sweeps, *others = (exact.columns[field] for field in _GROUP)
    secrets = [
        table(sweep).model_dump_json(include={"rows", "attributes", "correlation"})
        for sweep in sweeps.values
    ]
    keys = [
        hashlib.sha256(f"{secret} {sweep}".encode()).hexdigest()
        for secret, sweep in zip(secrets, sweeps.values, strict=True)
    ]

    def drawn(row: int) -> float:
        names = (str(column.values[column.places[row]]) for column in others)
        digest = hashlib.sha256("\0".join([keys[sweeps.places[row]], *names]).encode()).digest()
        return int.from_bytes(digest[:8], "little") / 2.0**63 - 1.0

    groups = exact.cells(_GROUP)
    return np.array([drawn(row) for row in np.unique(groups, return_index=True)[1]])[groups]


def _unit(metric: str) -> str:
    known = METRICS.get(base(metric))
    return known.unit if known else ""


def _is_share(metric: str) -> bool:
    unit = _unit(metric)
    return unit.startswith(_BOUNDED) and unit != "share of variance"


def _distribution(spread: Distribution, table: DataSummary) -> Distribution:
    factor = half_step(spread.edges[-1], spread.edges[-1] / sqrt(2.0 * table.rows)) / (
        spread.edges[-1] or 1.0
    )
    return spread._replace(edges=tuple(edge * factor for edge in spread.edges))


def _picture(exact: Picture, table: DataSummary) -> Picture:
    def written(bins: Any) -> Any:
        shares = np.array([one[-1] for one in bins])
        moved = half_steps(shares, np.sqrt(np.abs(shares * (1.0 - shares)) / exact.records))
        return tuple((*one[:-1], share) for one, share in zip(bins, moved.tolist(), strict=True))

    parts = ("original", "shown", "estimate", "joint")
    return exact._replace(**{part: written(getattr(exact, part)) for part in parts})


def _summary(exact: DataSummary) -> DataSummary:
    n = exact.rows
    if _too_few(exact):
        bare = [
            attribute.model_copy(update={"mean": None, "variance": None, "unit": None})
            for attribute in exact.attributes
        ]
        return exact.model_copy(
            update={"attributes": bare, "correlation": [], "disclosure": "withheld"}
        )
    attributes = [
        attribute
        if attribute.variance is None or attribute.mean is None
        else attribute.model_copy(
            update={
                "mean": half_step(attribute.mean, sqrt(attribute.variance / n)),
                "variance": rounded(attribute.variance, n),
                "unit": None if attribute.unit is None else rounded(attribute.unit, 4 * n),
            }
        )
        for attribute in exact.attributes
    ]
    correlation = [[half_step(value, 1.0 / sqrt(n)) for value in row] for row in exact.correlation]
    return exact.model_copy(
        update={"attributes": attributes, "correlation": correlation, "disclosure": "rounded"}
    )


def _verdict(record: ExpectationRecord, table: DataSummary) -> ExpectationRecord:
    asked = [value for value in record.where.values() if isinstance(value, int | float | list)]
    stated = {value for each in asked for value in (each if isinstance(each, list) else [each])}
    bound = record.bound if record.bound in asked else None
    if why := _too_few(table):
        return record.model_copy(update={"observed": None, "bound": bound, "why": why})

    def written(value: float) -> float:
        return value if value in stated else rounded(value, table.rows)

    if bound is None and isinstance(record.bound, float):
        bound = written(record.bound)
    return record.model_copy(
        update={
            "observed": None if record.observed is None else written(record.observed),
            "bound": record.bound if isinstance(record.bound, list) else bound,
            "why": _FIGURE.sub(lambda figure: f"{written(float(figure[0])):.6g}", record.why),
        }
    )

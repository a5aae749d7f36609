"""Tables of single metrics: noise of copies, shown columns, guarantees."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from auditor.results.metrics import EMPIRICAL, GUARANTEES, base
from auditor.results.records import Measurement

from ..figures.figures import Name, braces, clipped, copies, number, percent
from ..figures.matrix import reference_point
from ..figures.reading import EVERYTHING, Reading, unique
from .document import MARKDOWN, PAGE, TERMINAL, Block, Paragraph, Row, Table

ALONE = {"values_equal": "kept", "noise_on_value": "follows the value", "rounding_step": "step"}
PAIRS = {"noise_correlation": "correlation", "noise_ratio": "ratio of sizes"}
SHOWN = {"column_equal": "kept", "column_unique": "unique"}
MOST = {TERMINAL: 24, MARKDOWN: 60, PAGE: 300}
MOST_TOLD = 6
"""Audited columns of a cell, the best told first."""
NOISE = (
    "Copies minus the original. Kept: share of values equal to the original's. Follows the value: correlation "
    "of the noise with the original. Step: all values are its multiples. A correlation of ±1 is one noise in two copies."
)
COLUMNS = (
    "Columns of the copies that are not audited. Kept: share of values equal to the original's, up to recoding. "
    "Unique: share of records with a value of their own. Tells: share of an audited column's variance between equal values."
)
BOUNDS = (
    "Guarantees for every record under the law of the noise, against every attack. The record may be any other within the stated bounds. "
    "The columns are μ of Gaussian differential privacy, ρ of zero-concentrated, ε, and ε of (ε, δ) at {}. ≤ marks an upper bound. "
    "Audited: a lower bound on μ or ε from copies of two extreme records. Noise scaled to the table's moments is assumed public."
)
Key = tuple[str, str, str]
"""Variant of a metric, scheme and copies, and attribute."""


def noise(reading: Reading) -> list[Block]:
    """Noise of each copy, and of each pair of copies, by column."""
    return [
        Paragraph(NOISE, "lead"),
        *(
            _table(
                "copies",
                [*heads.values()],
                [
                    Row(where, [cells.get(one, "–") for one in heads], group=name)
                    for (_, where, name), cells in _cells(reading, heads)
                ],
                "column",
            )
            for heads in (ALONE, PAIRS)
        ),
    ]


def shown_columns(reading: Reading) -> list[Block]:
    """Each column that copies show, and its share of the audited columns' variance."""
    told = dict[Sequence[str], list[tuple[float, str]]]()
    for (*shown, name), (_, value) in _values(reading, ("column_tells",)):
        told.setdefault(tuple(shown), []).append((value, name))
    rows = []
    for (column, where, _), cells in _cells(reading, SHOWN):
        found = sorted(told.get((column, where), ()), reverse=True)[:MOST_TOLD]
        tells = [f"{clipped(name, 30)} {percent(min(1.0, value))}" for value, name in found]
        shares = [cells.get(one, "–") for one in SHOWN]
        rows.append(Row(clipped(column, 40), [*shares, "; ".join(tells) or "–"], group=where))
    heads = [*SHOWN.values(), "tells"]
    return [Paragraph(COLUMNS, "lead"), _table("shown column", heads, rows, "first shown by")]


def guarantees(reading: Reading) -> list[Block]:
    """Guarantees of each coalition; empty without stated bounds."""
    asked = reading.result.scenario.get("data")
    if not (isinstance(asked, dict) and asked.get("bounds")):
        return []
    point, deltas = reference_point(reading), list[str]()
    found = dict[tuple[str, tuple[int, ...]], dict[str, Measurement]]()
    for record in reading.result.measurements:
        metric = base(record.metric)
        known = metric in (*GUARANTEES, *EMPIRICAL) and record.attribute == EVERYTHING
        if record.attack is None and known:
            deltas += [record.metric] if metric == "epsilon_at_delta" else []
            if reading.point_of(record.sweep) == point:
                found.setdefault((record.scheme, record.coalition), {}).setdefault(metric, record)
    order = {scheme: place for place, scheme in enumerate(reading.schemes)}
    cells = sorted(found.items(), key=lambda one: (order.get(one[0][0], 0), len(one[0][1]), one[0]))
    rows = [Row(braces(held), _bounds(each), group=scheme) for (scheme, held), each in cells]
    delta = ", ".join(f"δ = {name.partition('(')[2].rstrip(')')}" for name in unique(deltas))
    reasons: dict[str, str] = {}
    for (scheme, coalition), figures in found.items():
        one = figures.get("epsilon_at_delta")
        if one is not None and _bound(one) == "∞" and one.reason:
            reasons.setdefault(scheme, f", copies {braces(coalition)}: {one.reason}.")
    return [
        Paragraph(BOUNDS.format(delta or "the stated δ"), "lead"),
        _table("copies", ("μ", "ρ", "ε", "ε at δ", "audited"), rows, "scheme"),
        *(Paragraph((Name(name), why), "note") for name, why in reasons.items()),
    ]


def _table(first: str, heads: Sequence[str], rows: Sequence[Row], group: str) -> Table:
    return Table(first, heads, rows, "plain", group=group, most=MOST)


def _bounds(figures: Mapping[str, Measurement]) -> tuple[str, ...]:
    found = (_bound(figures.get(metric)) for metric in GUARANTEES)
    audited = next((_bound(figures[metric]) for metric in EMPIRICAL if metric in figures), "–")
    return (*found, audited if audited == "–" else f"≥ {audited}")


def _bound(record: Measurement | None) -> str:
    if record is None or record.status != "ok":
        return "–"
    if record.value is None or math.isinf(record.value):
        return "∞"
    above = (record.reason or "").startswith("an upper bound")
    return f"{'≤ ' if above else ''}{number(record.value)}"


def _cells(reading: Reading, heads: Iterable[str]) -> Iterable[tuple[Key, dict[str, str]]]:
    found = dict[Key, dict[str, str]]()
    for key, (metric, value) in _values(reading, heads):
        shares = metric in ("values_equal", "column_equal", "column_unique")
        cell = percent(value) if shares else number(float(f"{value:.4g}"))
        found.setdefault(key, {})[metric] = cell
    return found.items()


def _values(reading: Reading, metrics: Iterable[str]) -> Iterator[tuple[Key, tuple[str, float]]]:
    point = reference_point(reading)
    for setting, metric, attribute in reading.keys():
        if setting.point == point and base(metric) in metrics:
            variant = "" if base(metric) in PAIRS else metric.partition("(")[2].removesuffix(")")
            for coalition, shown in reading.figures(setting, metric, attribute).items():
                who = copies(coalition, reading.copies_of(setting.scheme, point))
                where = f"{setting.scheme}, {who}" if len(reading.schemes) > 1 else who
                yield (variant, where, attribute), (base(metric), shown.value)

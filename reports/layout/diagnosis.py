"""Tables of a diagnosis of copies from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from auditor.results.metrics import base

from ..figures.figures import clipped, copies, number, percent
from ..figures.matrix import reference_point
from ..figures.reading import Reading
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
Key = tuple[str, str, str]
"""Variant of a metric, scheme and copies, and attribute."""


def noise(reading: Reading) -> list[Block]:
    """Return the noise of each copy, and of each pair of copies, by column."""
    tables = []
    for heads in (ALONE, PAIRS):
        rows = [
            Row(where, [cells.get(one, "–") for one in heads], group=name)
            for (_, where, name), cells in _cells(reading, heads)
        ]
        columns = list(heads.values())
        tables.append(Table("copies", columns, rows, "plain", group="column", most=MOST))
    return [Paragraph(NOISE, "lead"), *tables]


def shown_columns(reading: Reading) -> list[Block]:
    """Return each column that copies show, and its share of the audited columns' variance."""
    told = dict[tuple[str, str], list[tuple[float, str]]]()
    for (column, where, name), (_, value) in _values(reading, ("column_tells",)):
        told.setdefault((column, where), []).append((value, name))
    rows = [
        Row(
            clipped(column, 40),
            [
                *(cells.get(one, "–") for one in SHOWN),
                "; ".join(
                    f"{clipped(name, 30)} {percent(min(1.0, value))}"
                    for value, name in sorted(told.get((column, where), ()), reverse=True)[
                        :MOST_TOLD
                    ]
                )
                or "–",
            ],
            group=where,
        )
        for (column, where, _), cells in _cells(reading, SHOWN)
    ]
    heads = [*SHOWN.values(), "tells"]
    table = Table("shown column", heads, rows, "plain", group="first shown by", most=MOST)
    return [Paragraph(COLUMNS, "lead"), table]


def _cells(reading: Reading, heads: Iterable[str]) -> Iterable[tuple[Key, dict[str, str]]]:
    """Return the texts of each row, by metric."""
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

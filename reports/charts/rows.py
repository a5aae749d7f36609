"""Rows of the error charts: curves, coalition map, distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from auditor.results.renderer import clean

from ..figures.curves import coalition_map, curves
from ..figures.figures import braces, number, plus_minus
from ..figures.reading import Reading, Setting
from ..figures.series import (
    FIGURE_HEADERS,
    ChartData,
    Choices,
    Options,
    cells,
    columns,
    setting_cells,
    setting_headers,
    values,
)
from ..figures.spreads import Spread, spreads
from ..figures.units import data_unit


def collusion_data(reading: Reading, leading: Setting | None, limit: int) -> ChartData:
    """Return rows of error against the number of copies pooled."""
    choices, rows, table = Choices(reading, leading), [], []
    everything = curves(reading)
    found = everything[:limit]
    for point in found:
        rows.append(
            {**choices.row(point.setting, point.attribute), "k": point.size, **values(point.shown)}
        )
        row = cells(point.shown)
        row.insert(1, number(point.mean, point.shown.half))
        table.append(
            [*setting_cells(reading, point.setting, point.attribute), str(point.size), *row]
        )
    headers = [
        *setting_headers(reading),
        "copies pooled",
        "coalition",
        "mean of that size",
        *FIGURE_HEADERS[1:],
    ]
    several = len(found) > len({(point.setting, point.attribute) for point in found})
    facts = {
        "prefix": all(point.prefix for point in found),
        "sizes": sorted({point.size for point in found}),
        "curves": several,
    }
    return ChartData(
        columns(rows), choices.controls(), headers, table, len(everything) - len(found), facts
    )


def map_data(reading: Reading, leading: Setting | None, limit: int) -> ChartData:
    """Return rows of every coalition's error by size."""
    choices, rows, table = Choices(reading, leading), [], []
    points, left_out = coalition_map(reading, limit)
    for point in points:
        marks = {"k": len(point.shown.coalition), "w": int(point.worst)}
        rows.append({**choices.row(point.setting, point.attribute), **marks, **values(point.shown)})
        note = "worst" if point.worst else ""
        table.append(
            [*setting_cells(reading, point.setting, point.attribute), *cells(point.shown), note]
        )
    table.sort(key=lambda row: row[-1] != "worst")
    headers = [*setting_headers(reading), *FIGURE_HEADERS, "note"]
    several = len(points) > len({(point.setting, point.attribute) for point in points})
    return ChartData(
        columns(rows), choices.controls(), headers, table, left_out, {"coalitions": several}
    )


def distribution_data(reading: Reading, leading: Setting | None, limit: int) -> ChartData:
    """Return rows of binned and cumulative shares by absolute error.

    Schemes whose errors are all 0 are listed in words.
    """
    choices, coalition = Choices(reading, leading), Options("coalition", "Coalition")
    rows: list[dict[str, Any]] = []
    table: list[list[str]] = []
    exact: dict[tuple[int, ...], tuple[dict[str, Any], list[str]]] = {}
    found, left_out = spreads(reading, limit)
    for spread in found:
        place = choices.row(spread.setting, spread.attribute) | {
            "g": coalition(braces(spread.coalition))
        }
        if spread.exact:
            key = tuple(place[field] for field in "avpg")
            exact.setdefault(key, (place, []))[1].append(place["s"])
        else:
            rows += _bins(place, spread)
        table += _table(reading, spread)
    rows += [
        _empty_bin(place) | {"n": f"rebuilt exactly: {', '.join(names)}"}
        for place, names in exact.values()
    ]
    headers = [
        *setting_headers(reading),
        "coalition",
        "error from",
        "to",
        "share of records",
        "share up to",
        "± 95 %",
    ]
    controls = [*choices.controls(), coalition.control(0)]
    titles = {
        "attribute": [
            clean(f"absolute error of {name} ({data_unit(reading)})")
            for name in choices.attribute.numbers
        ]
    }
    return ChartData(columns(rows), controls, headers, table, left_out, titles=titles)


def _bins(place: dict[str, Any], spread: Spread) -> list[dict[str, Any]]:
    """Return one row per bin, after the origin of the cumulative curve."""
    start = {"x": 0.0, "x2": 0.0, "y": 0.0, "u": 0.0, "e": 0.0, "b": 0.0, "n": None}
    cells_of = [
        {
            "x": one.low,
            "x2": one.high,
            "y": one.share,
            "u": one.cumulative,
            "e": spread.half(one.cumulative),
            "b": spread.half(one.share),
            "n": None,
        }
        for one in spread.bins
    ]
    return [place | row for row in (start, *cells_of)]


def _empty_bin(place: dict[str, Any]) -> dict[str, Any]:
    return place | {"s": "", "x": 0.0, "x2": 0.0, "y": 0.0, "u": 0.0, "e": None, "b": None}


def _table(reading: Reading, spread: Spread) -> Sequence[list[str]]:
    names = [
        *setting_cells(reading, spread.setting, spread.attribute),
        clean(braces(spread.coalition)),
    ]
    if spread.exact:
        return [[*names, "0", "0", "1", "1", ""]]
    return [
        [*names, *map(number, one), plus_minus(spread.half(one.cumulative), one.cumulative)]
        for one in spread.bins
    ]

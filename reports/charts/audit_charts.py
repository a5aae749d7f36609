"""Charts of an audit: one function per chart returns its rows and views."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from auditor.results.renderer import clean

from ..figures.figures import Figure, braces, number, with_error
from ..figures.matrix import (
    SHOWN_ELSEWHERE,
    attribute_text,
    data_unit,
    label,
    metric_title,
    path_title,
    telling,
)
from ..figures.reading import (
    ERROR,
    EVERYTHING,
    Reading,
    Setting,
    best,
    best_single,
    by_size,
    ceiling,
    lowest,
    plain,
    unique,
)
from ..figures.strongest import Spread, spreads
from .chart import ROWS, Chart, Rows, title_of
from .spec import ERROR_TITLE, field, quantity, sizes_axis, view
from .values_chart import values

SECONDS = "seconds"
RECORDS = ("attribute", "adversary", "point")
LEVELS = "A level is the noise's variance over the data's: more is noisier. Of replacement, it is the share of values kept."
TICKS = 12
"""Each swept value gets its own tick up to this number."""
ERROR_AXIS = quantity(ERROR_TITLE, tickCount=6)


def charts(reading: Reading, prefix: str) -> list[Chart]:
    """Return every chart that has something to compare, in the page's order."""
    made = [values, collusion, coalitions, errors, frontier]
    found = [one(reading, prefix) for one in made]
    for place, path in enumerate(swept_paths(reading)):
        found += [sweep(reading, prefix, path, place, timed=timed) for timed in (False, True)]
    return [chart for chart in found if chart is not None]


def swept_paths(reading: Reading) -> list[str]:
    """Return the paths with more than one value, in order."""
    paths: dict[str, set[str]] = {}
    for point in reading.points:
        for path, value in point.items():
            paths.setdefault(path, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [path for path, values in paths.items() if len(values) > 1]


def _errors(reading: Reading) -> list[tuple[Setting, str, dict[tuple[int, ...], Figure]]]:
    keys = [key for key in reading.keys() if key[1] == ERROR]
    keys.sort(key=lambda key: key[2] != EVERYTHING)
    return [(one, name, reading.figures(one, ERROR, name)) for one, _, name in keys]


def curve(reading: Reading, setting: Setting, found: dict[tuple[int, ...], Figure]) -> list[Figure]:
    """Return one collusion curve: prefixes if all were measured, else the worst of each size."""
    total = reading.copies_of(setting.scheme, setting.point)
    # a generator, because all prefixes of thousands of copies would not fit in memory
    prefixes = all(tuple(range(1, size + 1)) in found for size in range(1, total + 1))
    sizes = sorted(by_size(found.values()).items())
    worst = [
        found[tuple(range(1, size + 1))] if prefixes else lowest(group) for size, group in sizes
    ]
    return [shown for shown in worst if shown is not None and shown.coalition]


def collusion(reading: Reading, prefix: str) -> Chart | None:
    """Return error, and other measures, against copies pooled."""
    rows = Rows(reading, "figure", *RECORDS)
    keys = sorted(reading.keys(), key=lambda key: (key[1] != ERROR, key[2] != EVERYTHING))
    for setting, metric, name in keys:
        if metric != ERROR and (metric in SHOWN_ELSEWHERE or setting.attack is None):
            continue
        found, figure = reading.figures(setting, metric, name), metric_title(metric, reading)
        worst = curve(reading, setting, found) if metric == ERROR else largest(found)
        for shown in worst:
            size, option = len(shown.coalition), (metric, figure)
            rows.add(setting, shown, size, attribute=name, figure=option, k=size)
    if not rows.comparable:
        return None
    x, y = sizes_axis(unique(row["k"] for row in rows.rows)), quantity(title_of("figure"))
    return rows.chart(
        f"{prefix}-collusion",
        "Collusion curves",
        "Errors: copies pooled in order of release if these coalitions were measured, else the worst coalition of each size. Other "
        "measures: the coalition that achieves most. Band: 95 % interval. Dashed: theory.",
        "Line chart: a measure by the number of copies pooled, a line for each scheme.",
        view(x, y, rows.names, ("band", "line", "theory"), rows.wanted),
        first="copies",
        note="Collusion curves",
        drawn=True,
    )


def largest(found: dict[tuple[int, ...], Figure]) -> list[Figure]:
    """Return the figure of each coalition size with the highest lower bound."""
    return [best(group) for _, group in sorted(by_size(found.values()).items())]


def coalitions(reading: Reading, prefix: str) -> Chart | None:
    """Return the error of every coalition by size, with the worst per scheme ringed."""
    rows, held = Rows(reading, *RECORDS), _errors(reading)
    share = max(8, ROWS // max(1, len(held)))
    for setting, name, found in held:
        ordered = sorted(found.values(), key=ceiling)
        worst = lowest(ordered) or ordered[0]
        kept = ordered[:: max(1, len(ordered) // share)]
        for shown in unique([worst, *kept]):
            size, text = len(shown.coalition), f"{with_error(shown)}\n{braces(shown.coalition)}"
            ring = int(shown == worst)
            rows.add(setting, shown, size, attribute=name, cell=text, k=size, w=ring)
    if not rows.comparable:
        return None
    axis = {"labelAngle": 0, "grid": False, "labelOverlap": True}
    x = field("k:O", title="copies in the coalition", axis=axis)
    aside = {"xOffset": field("s:N", scale={"domain": rows.names})}
    layers = ("bars", "ticks", "ring")
    return rows.chart(
        f"{prefix}-map",
        "Coalition map",
        "Every coalition that was measured, by size. Bars: 95 % interval. Short lines: theory. "
        "The ring marks the coalition with the lowest error in each scheme.",
        "Scatter chart: normalized error of every coalition by the number of its copies.",
        view(x, ERROR_AXIS, rows.names, layers, rows.wanted, more=aside),
        first="copies",
        note="Normalized error of the worst coalition of each size",
    )


def errors(reading: Reading, prefix: str) -> Chart | None:
    """Return the distribution of absolute errors: by bin, and cumulative."""
    rows = Rows(reading, *RECORDS, "coalition")
    for one in spreads(reading):
        if len(rows.rows) >= ROWS:
            break
        for place, at in enumerate(one.bins):
            half = one.half(at.cumulative) or 0.0
            shown = Figure(
                at.cumulative,
                max(0.0, at.cumulative - half),
                min(1.0, at.cumulative + half),
                None,
                one.coalition,
                (),
                "sampling",
                1,
            )
            start: dict[str, Any] = {
                "x": 0.0 if one.exact else at.low,
                "x2": 0.0 if one.exact else at.high,
            }
            rows.add(
                one.setting,
                shown,
                one.attribute,
                attribute=one.attribute,
                title=clean(f"absolute error of {one.attribute} ({data_unit(reading)})"),
                cell=_quantiles(one) if not place else "–",
                coalition=(braces(one.coalition), ""),
                q=1.0 if one.exact else at.share,
                **start,
            )
    if not rows.rows:
        return None
    axis = {"grid": False, "tickCount": 6, "labelFlush": False}
    x = field("x:Q", title=title_of("attribute"), axis=axis, scale={"zero": True})
    share = quantity("share of records", format="~%", tickCount=5) | {"field": "q"}
    up_to = quantity("share of records up to an error", format="~%", tickCount=5)
    return rows.chart(
        f"{prefix}-errors",
        "Error distributions",
        "Absolute errors over the records: by bin, and cumulated with a 95 % band.",
        "Two line charts: share of the records by absolute error, and share up to each error.",
        view(x, share, rows.names, ["steps"], rows.wanted, tips={"x": "from", "x2": "to"}),
        view(x | {"field": "x2"}, up_to, rows.names, ["band", "curve"], rows.wanted),
        first="attribute",
        note=f"Absolute error that half | 9 in 10 of the records stay below, {data_unit(reading)}",
    )


def _quantiles(spread: Spread) -> str:
    last = f">{number(spread.bins[-1].high)}"
    found = [spread.quantile(share) for share in (0.5, 0.9)]
    return " | ".join(last if at is None else number(float(f"{at:.3g}")) for at in found)


def frontier(reading: Reading, prefix: str) -> Chart | None:
    """Return normalized error against utility, one point per coalition.

    Without a utility metric, the level of the most revealing copy takes its place.
    """
    rows = Rows(reading, "figure", "adversary", "point")
    utilities = [key for key in reading.keys() if key[1].startswith("utility_")]
    # accuracies precede errors and losses
    utilities.sort(key=lambda key: any(word in key[1] for word in ("error", "loss")))
    for setting, metric, attribute in utilities:
        useful = reading.figures(setting, metric, attribute)
        figure = metric, metric_title(metric, reading)
        for other in reading.settings(ERROR) if attribute == EVERYTHING else ():
            if other[:2] == setting[:2] and setting in (other, (*other[:2], None, None)):
                for coalition, shown in reading.figures(other).items():
                    if coalition in useful:
                        _use(rows, other, shown, useful[coalition], figure)
    for setting in () if utilities else reading.settings(ERROR):
        found = reading.figures(setting)
        largest = max(map(len, found), default=0)
        for coalition, shown in found.items():
            single = best_single(found, coalition)
            if single is not None and single.levels and len(coalition) in (1, largest):
                level = shown._replace(value=single.levels[0], low=None, high=None)
                _use(
                    rows, setting, shown, level, ("level", "level of the most revealing copy held")
                )
    if not rows.comparable:
        return None
    scale = {"zero": False, "nice": True, "padding": 14}
    x = field("x:Q", title=title_of("figure"), scale=scale, axis={"grid": False, "tickCount": 8})
    # ordered by error, which follows the levels; by utility, noise would cause a zigzag
    order = {"order": field("y:Q")}
    layers = ("line", "bars", "across") if utilities else ("bars",)
    use = "Across: of accuracies more is better, of errors and losses less."
    return rows.chart(
        f"{prefix}-frontier",
        "Risk against utility",
        "A point is one copy, or all copies pooled. Higher: more stays unknown. "
        + (use if utilities else LEVELS),
        "Scatter chart: normalized error against utility, for each scheme.",
        view(
            x,
            quantity("share of the variance unknown"),
            rows.names,
            layers,
            rows.wanted,
            tips={"n": "utility"},
            more=order,
            height=220,
        ),
        first="copies",
        note="Utility, and below it the normalized error",
    )


def _use(rows: Rows, setting: Setting, shown: Figure, use: Figure, figure: tuple[str, str]) -> None:
    low, high = (use.value if one is None else one for one in (use.low, use.high))
    cell = f"{with_error(use)}\n{with_error(shown)}"
    across: dict[str, Any] = {"x": use.value, "xlo": low, "xhi": high, "n": with_error(use)}
    rows.add(setting, shown, braces(shown.coalition), cell=cell, figure=figure, **across)


def sweep(reading: Reading, prefix: str, path: str, place: int, *, timed: bool) -> Chart | None:
    """Return each metric, or the seconds, along one swept path.

    A single scheme has a line per attack.
    """
    attacks = unique(attack for _, attack in reading.adversaries)
    by_attack = len(reading.schemes) == 1 and len(attacks) > 1
    names = [
        clean(name) for name in ([*attacks, *reading.schemes] if by_attack else reading.schemes)
    ]
    rows = Rows(reading, "figure", "adversary", names=unique(names))
    keys = [key for key in reading.keys() if (key[1] == SECONDS) == timed]
    stated = next(
        (r.expectation for r in reading.result.expectations if r.expectation in reading.metrics), ""
    )
    # all attributes together first, then the first expected metric, then the error
    keys.sort(key=lambda key: (key[2] != EVERYTHING, key[1] != stated, key[1] != ERROR))
    paths = swept_paths(reading)
    for setting, metric, name in keys:
        at, shown = (
            reading.points[setting.point],
            telling(metric, reading.figures(setting, metric, name)),
        )
        if path not in at or shown is None:
            continue
        title = metric_title(metric, reading, name)
        known = str(setting.knowledge) if by_attack else label(reading, setting)
        rows.add(
            setting,
            shown,
            _point_label(at, paths),
            series=str(setting.attack) if by_attack and setting.attack else "",
            adversary=(known if setting.attack else "", ""),
            figure=(f"{metric}, {attribute_text(name)}", title),
            x=_axis_value(at[path]),
            o=clean(", ".join(f"{key} = {plain(at[key])}" for key in paths if key != path)),
        )
    if not rows.rows:
        return None
    numeric = all(isinstance(row["x"], (int, float)) for row in rows.rows)
    aside = {} if numeric else {"xOffset": field("s:N", scale={"domain": rows.names})}
    layers = ("bars", "line", "theory") if numeric else ("bars", "ticks")
    return rows.chart(
        f"{prefix}-{'runtime' if timed else 'sweep'}-{place}",
        f"{'Runtime against' if timed else 'Sweep of'} {path_title(path)}",
        "Processor seconds to make the copies."
        if timed
        else "Errors of the worst coalition at each point, others of the largest. Bars: 95 % interval.",
        f"Line chart: a metric against the swept parameter {clean(path)}.",
        view(
            _swept_axis(path, [row["x"] for row in rows.rows], numeric=numeric),
            quantity(title_of("figure")),
            rows.names,
            layers,
            rows.wanted,
            tips={"x": "swept value", "o": "at"},
            more=aside,
        ),
        first=clean(path) if len(paths) == 1 else "sweep point",
        note="Along the sweep",
        path=clean(path),
    )


def _point_label(at: dict[str, Any], paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return plain(at[paths[0]])
    return ", ".join(f"{path} = {plain(at[path])}" for path in paths if path in at)


def _axis_value(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return clean(", ".join(map(str, value)))
    number_like = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if number_like else clean(value)


def _swept_axis(path: str, values: Sequence[Any], *, numeric: bool) -> dict[str, Any]:
    # a list, because Vega would read a string as a number or a field
    title, at = [path_title(path)], unique(values)
    if not numeric:
        # break lists of words into lines, so that labels fit side by side upright
        words = {"labelAngle": 0, "labelExpr": "split(datum.label, ', ')", "grid": False}
        return field("x:O", title=title, sort=None, axis=words)
    own = {"values": at, "labelOverlap": True} if len(at) <= TICKS else {"tickCount": 8}
    wide = min(at) > 0 and max(at) / min(at) >= 30
    scale = {"type": "log"} if wide else {"zero": False}
    # tick labels 0.2 and 20k, not 200m
    short = "format(datum.value, datum.value < 1000 ? '~g' : '~s')"
    axis = {"grid": False, "labelExpr": short, **own}
    return field("x:Q", title=title, scale={**scale, "nice": False, "padding": 14}, axis=axis)

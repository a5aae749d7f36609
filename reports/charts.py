"""Charts: Vega-Lite views, rows and controls, and one function per chart.

Names from data are values only, so they cannot enter an expression.
"""

import base64
import hashlib
import json
import math
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field as default, replace
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from typing import Any, NamedTuple

from markupsafe import Markup

from auditor.base import clean
from auditor.base.types import Names, Plain, frozen
from auditor.results.records import Picture, grouped

from .figures import (
    TEMPLATES as TEMPLATES,
    Z95,
    Figure,
    braces,
    clipped,
    copies,
    number,
    percent,
    rounded,
    template,
    with_error,
)
from .matrix import (
    EXACT,
    SHOWN_ELSEWHERE,
    attribute_text,
    data_unit,
    label,
    leader,
    lowest_attribute,
    metric_title,
    path_title,
    telling,
)
from .reading import (
    ERROR,
    EVERYTHING,
    Figures,
    Reading,
    Setting,
    best_single,
    lowest,
    plain,
    unique,
)

NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)


def json_block(value: Any) -> Markup:
    """JSON that cannot close a ``script`` element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(re.sub("[<>&\u2028\u2029]", lambda one: f"\\u{ord(one[0]):04x}", text))


def deflated(text: str, id: str) -> Markup:
    """Element with compressed text, which browsers never run.

    The base64 of a raw deflate stream (RFC 1951), which cannot close the element; ``data-size`` is
    the inflated size in bytes.
    """
    content = text.encode("utf-8", "backslashreplace")
    # level 9 takes four times as long for 2 % less
    packer = zlib.compressobj(7, zlib.DEFLATED, -zlib.MAX_WBITS)
    stream = packer.compress(content) + packer.flush()
    start = Markup('<script type="application/x-deflate" data-size="{}" id="{}">').format(
        len(content), id
    )
    return start + Markup(base64.b64encode(stream).decode("ascii") + "</script>")


def inflated(element: str) -> str:
    """Text of an element made by `deflated`."""
    return zlib.decompress(
        base64.b64decode(element.partition(">")[2].partition("<")[0]), -zlib.MAX_WBITS
    ).decode("utf-8")


def script(source: str) -> Markup:
    """Escape a script for its element, with the line ends that browsers hash."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Policy that allows only these scripts and styles.

    Vega interprets its expressions, so ``unsafe-eval`` is not needed.
    """

    def sources(texts: Iterable[str]) -> str:
        digests = (hashlib.sha256(text.encode()).digest() for text in texts)
        return " ".join(f"'sha256-{base64.b64encode(one).decode()}'" for one in digests)

    return (
        f"default-src 'none'; script-src {sources(scripts)}; style-src {sources(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def bundle() -> str:
    """HTML element with the charts' compressed script."""
    from vl_convert import javascript_bundle  # imported here because reports do not need it

    return deflated(
        script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), "bundle"
    )


# -- views

BLOCKS = " ▁▂▃▄▅▆▇█"


def sparklines(rows: Sequence[Sequence[float]]) -> list[str]:
    """Draw rows of columns on a common scale from 0."""
    top = max((height for row in rows for height in row), default=0.0) or 1.0
    return ["".join(BLOCKS[math.ceil(8 * max(0.0, one) / top)] for one in row) for row in rows]


Part = Plain
"""Part of a Vega-Lite document, for example a layer or a channel."""
CONFIG, LAYERS, DRAWN = (
    json.loads(template(f"{name}.json")) for name in ("vega", "layers", "charts")
)
"""Vega-Lite configuration, layers, and charts with their parts.

In a layer or chart ``{"of": NAME}`` is another part. A ``series`` has a value of each series, from
the start again after the last. Screen readers skip marks, because the figure has a name and a table.
"""


def filled(part: Any, parts: Part) -> Any:
    """Part with the parts that it names; what follows a named part changes it."""
    if isinstance(part, list):
        return [filled(one, parts) for one in part]
    if not isinstance(part, dict):
        return part
    if [*part] == ["of"]:
        return filled(parts[part["of"]], parts)
    made: Part = {}
    for name, one in part.items():
        made |= filled(parts[one], parts) if name == "of" else {name: filled(one, parts)}
    return made


def specified(key: str, names: Names, wanted: str = "", **given: Any) -> Part:
    """Texts and Vega-Lite documents of a chart.

    Parameters
    ----------
    key : str
        The chart's in ``charts.json``.
    names : sequence of str
        Series in the order of the legend.
    wanted : str
        Filter of the rows.
    given
        Parts that depend on the data, like ``layers``; the legend selects in ``marks``.
    """
    size = len(names)
    parts = DRAWN["parts"] | {"names": list(names), "last": max(1, size - 1)} | given
    for name, values in DRAWN["series"].items():
        parts[name] = [values[place % len(values)] for place in range(size)]

    def view(stated: Part) -> Part:
        own = parts | filled(stated, parts)

        def made(name: str) -> Part:
            layer: Part = filled(LAYERS[name], own)
            only = [wanted] * bool(wanted) + own["only"] + layer.pop("only", [])
            return layer | ({"transform": [{"filter": one} for one in only]} if only else {})

        layers = [*map(made, own["layers"]), made(own["marks"]) | {"name": "points"}]
        document: Part = filled(own["view"], own)
        return document | {"layer": layers}

    chart: Part = DRAWN["charts"][key]
    return chart | {"views": [*map(view, chart["views"])]}


# -- rows and controls

ROWS = 6000
"""Rows per chart, which limit the size of the page."""
FIELDS = {
    "figure": "f",
    "attribute": "a",
    "adversary": "v",
    "point": "p",
    "coalition": "g",
    "release": "z",
}
"""Column that each control filters by."""
LABELS = {"figure": "Metric", "point": "Sweep point"}
"""Labels of controls, if they differ from the capitalized name."""
ANY = -1
"""Adversary of a row that belongs to every adversary: the release itself."""


class Control(NamedTuple):
    """A selector above a chart; the parameter's value is an option's index."""

    name: str
    label: str
    options: list[str]
    chosen: int = 0


@frozen
class Chart:
    """One or two views with common rows and controls.

    Attributes
    ----------
    rows : list of dict
        Fields; ``_label`` and ``_cell`` are texts of a table.
    names : list of str
        Series in the order of the legend.
    titles : dict
        Axis titles by option, if units differ.
    first, note : str
        Head and explanation of the table's first column.
    """

    rows: list[Plain]
    controls: list[Control]
    names: list[str]
    id: str
    title: str
    caption: str
    alt: str
    views: list[Part]
    first: str
    note: str
    titles: dict[str, list[str]] = default(default_factory=dict)
    path: str = ""
    drawn: bool = False

    @property
    def values(self) -> dict[str, int]:
        """The default option of each control."""
        return {control.name: control.chosen for control in self.controls}

    def chosen(self, values: Mapping[str, int]) -> list[Plain]:
        """Rows of the chosen options."""
        wanted = {FIELDS[name]: (value, ANY) for name, value in values.items()}
        return [row for row in self.rows if all(row[key] in held for key, held in wanted.items())]

    def table(self, figure: int | None = None) -> tuple[list[str], dict[str, dict[str, str]]]:
        """Series and each label's cells for the default options."""
        values = self.values | ({} if figure is None else {"figure": figure})
        rows, cells = self.chosen(values), dict[str, dict[str, str]]()
        for row in rows:
            cells.setdefault(row["_label"], {}).setdefault(row["s"], row["_cell"])
        return [name for name in self.names if any(row["s"] == name for row in rows)], cells

    @cached_property
    def packed(self) -> Markup:
        """Compressed columns, views and titles for the page's script."""
        names = [name for name in self.rows[0] if name[0] != "_"]
        columns = {name: [_short(row[name]) for row in self.rows] for name in names}
        block = {"columns": columns, "views": self.views, "titles": self.titles}
        return deflated(json_block(block), f"{self.id}-data")


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


class Rows:
    """Collect the rows of a chart and the options of its controls."""

    def __init__(self, reading: Reading, *controls: str, names: Names = ()) -> None:
        self.reading, self.rows = reading, list[Plain]()
        self.names = unique(clean(name) for name in names or reading.schemes)
        self.options: dict[str, dict[str, str]] = {name: {} for name in controls}

    def add(
        self,
        setting: Setting,
        shown: Figure,
        label_of: object,
        *,
        cell: str = "",
        series: str = "",
        attribute: str = EVERYTHING,
        **fields: Any,
    ) -> None:
        """Add one row.

        ``figure``, ``coalition``, ``release`` and ``adversary`` are pairs of an option and its axis title.
        """
        series = clean(series or setting.scheme)
        itself = "" if setting.attack is None else label(self.reading, setting)
        texts = {
            "attribute": (attribute_text(attribute), fields.pop("title", "")),
            "adversary": (itself, ""),
            "point": (self.reading.point_text(setting.point) or "–", ""),
        }
        texts |= {name: fields.pop(name) for name in FIELDS if name in fields}
        place = {FIELDS[name]: self._number(name, *texts[name]) for name in self.options}
        bare, written = shown.low is None or shown.high is None, with_error(shown)
        self.rows.append(
            {
                "s": series,
                "i": self.names.index(series),
                **place,
                "y": shown.value,
                "lo": shown.value if bare else shown.low,
                "hi": shown.value if bare else shown.high,
                "t": shown.theory,
                "m": written,
                "c": braces(shown.coalition),
                **fields,
                "_label": clean(label_of),
                "_cell": cell or written,
            }
        )

    def _number(self, name: str, text: str, title: str) -> int:
        if name == "adversary" and not text:
            return ANY
        self.options[name].setdefault(text, title)
        return list(self.options[name]).index(text)

    def chart(self, key: str, given: Part | None = None, **texts: Any) -> Chart:
        """Chart by its key, preset to the leading adversary where it has rows."""
        made = specified(key, self.names, self.wanted, **(given or {})) | texts
        lead, rows = leader(self.reading), self.rows[:ROWS]
        wanted = {"attribute": attribute_text(EVERYTHING)}
        if lead is not None:
            point = self.reading.point_text(lead.point) or "–"
            wanted |= {"adversary": label(self.reading, lead), "point": point}
        known = {
            FIELDS[name]: [*self.options[name]].index(text)
            for name, text in wanted.items()
            if text in self.options.get(name, {})
        }
        first = max(rows, key=lambda row: [row[key] == value for key, value in known.items()])
        controls = [
            Control(
                name,
                LABELS.get(name, name.capitalize()),
                [*map(clean, texts)],
                max(0, first[FIELDS[name]]),
            )
            for name, texts in self.options.items()
            if texts
        ]
        titles = {name: [*texts.values()] for name, texts in self.options.items()}
        stated = {name: texts for name, texts in titles.items() if any(texts)}
        left = len(self.rows) - len(rows)
        made["caption"] += f" {left:,} more rows are in the results file." if left else ""
        for place, one in enumerate(made["views"]):
            one["layer"][-1]["name"] = one["params"][0]["views"][0] = f"points-{place}"
            one["params"] += [{"name": each.name, "value": each.chosen} for each in controls]
        return Chart(rows, controls, self.names, titles=stated, **made)

    @property
    def comparable(self) -> bool:
        """Whether some series has several rows for one choice of options."""
        keys = ("s", *(FIELDS[name] for name in self.options))
        return len(self.rows) > len({tuple(row[key] for key in keys) for row in self.rows})

    @property
    def wanted(self) -> str:
        """Filter of the rows of the chosen options."""
        return " && ".join(
            f"(datum.{FIELDS[name]} == {name} || datum.{FIELDS[name]} == {ANY})"
            for name, texts in self.options.items()
            if texts  # no control without options
        )


if __name__ == "__main__":
    (TEMPLATES / "bundle.html").write_text(bundle(), encoding="utf-8")


SECONDS = "seconds"
RECORDS = ("attribute", "adversary", "point")
TICKS = 12
"""Each swept value gets its own tick up to this number."""
NAMES = ("original", "nearest copy", "as rebuilt")
VALUES = (
    "The map has rebuilt values against original ones, equal on the dashed line. "
    "Each bin has ten records or more."
)


def charts(reading: Reading, prefix: str) -> list[Chart]:
    """Every chart that has something to compare, in the page's order."""
    made = (one(reading) for one in (values, collusion, coalitions, errors, frontier))
    swept = (
        sweep(reading, f"{kind}-{place}", path, timed=kind == "runtime")
        for place, path in enumerate(swept_paths(reading))
        for kind in ("sweep", "runtime")
    )
    return [replace(one, id=f"{prefix}-{one.id}") for one in (*made, *swept) if one]


def swept_paths(reading: Reading) -> list[str]:
    """Paths with more than one value, in order."""
    paths: dict[str, set[str]] = {}
    for point in reading.points:
        for path, value in point.items():
            paths.setdefault(path, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [path for path, values in paths.items() if len(values) > 1]


def _errors(reading: Reading) -> list[tuple[Setting, str, Figures]]:
    keys = [key for key in reading.keys() if key[1] == ERROR]
    keys.sort(key=lambda key: key[2] != EVERYTHING)
    return [(one, name, reading.figures(one, ERROR, name)) for one, _, name in keys]


def curve(reading: Reading, setting: Setting, metric: str, found: Figures) -> list[Figure]:
    """Figures by number of copies.

    Errors: prefixes if all were measured, else the worst coalition of each size. Other measures:
    the coalition with the highest lower bound.
    """
    total = reading.copies_of(setting.scheme, setting.point)
    # all prefixes of thousands of copies would not fit in memory
    if metric == ERROR and all(tuple(range(1, size + 1)) in found for size in range(1, total + 1)):
        return [found[tuple(range(1, size + 1))] for size in sorted({*map(len, found)} - {0})]
    sizes = grouped((len(shown.coalition), shown) for shown in found.values())
    return [
        min(group, key=lambda one: (one.ceiling if metric == ERROR else -one.floor, one.coalition))
        for size, group in sorted(sizes.items())
        if size or metric != ERROR
    ]


def collusion(reading: Reading) -> Chart | None:
    """Error, and other measures, against copies pooled."""
    rows = Rows(reading, "figure", *RECORDS)
    keys = sorted(reading.keys(), key=lambda key: (key[1] != ERROR, key[2] != EVERYTHING))
    for setting, metric, name in keys:
        if metric != ERROR and (metric in SHOWN_ELSEWHERE or setting.attack is None):
            continue
        found, figure = reading.figures(setting, metric, name), metric_title(metric, reading)
        for shown in curve(reading, setting, metric, found):
            size, option = len(shown.coalition), (metric, figure)
            rows.add(setting, shown, size, attribute=name, figure=option, k=size)
    if not rows.comparable:
        return None
    sizes = unique(row["k"] for row in rows.rows)
    ticks = {"values": sizes} if len(sizes) <= TICKS else {"tickCount": TICKS, "tickMinStep": 1}
    return rows.chart("collusion", {"ticks": ticks})


def coalitions(reading: Reading) -> Chart | None:
    """Error of every coalition by size, with the worst per scheme ringed."""
    rows, held = Rows(reading, *RECORDS), _errors(reading)
    share = max(8, ROWS // max(1, len(held)))
    for setting, name, found in held:
        ordered = sorted(found.values(), key=lambda shown: shown.ceiling)
        worst = lowest(ordered) or ordered[0]
        kept = ordered[:: max(1, len(ordered) // share)]
        for shown in unique([worst, *kept]):
            size, text = len(shown.coalition), f"{with_error(shown)}\n{braces(shown.coalition)}"
            rows.add(setting, shown, size, attribute=name, cell=text, k=size, w=int(shown == worst))
    if not rows.comparable:
        return None
    return rows.chart("map")


def errors(reading: Reading) -> Chart | None:
    """Distribution of absolute errors: by bin, and cumulative.

    For noise drawn by record the band is conservative: ``mean p(1 − p) ≤ share (1 − share)``.
    """
    rows, unit = Rows(reading, *RECORDS, "coalition"), data_unit(reading)
    found = grouped(
        ((reading.setting_of(one), one.coalition, one.attribute, one.edges), one)
        for one in reading.result.distributions
    )
    largest_first = sorted(found.items(), key=lambda one: (-len(one[0][1]), one[0][1]))
    for (setting, held, name, edges), records in largest_first:
        if len(rows.rows) >= ROWS:
            break
        shares = [fmean(each) for each in zip(*(one.shares for one in records), strict=True)]
        while len(shares) > 1 and not shares[-1] > 0:
            shares.pop()
        shown = reading.figures(setting, ERROR, name).get(held)
        exact = shown is not None and shown.ceiling < EXACT
        ends, below = [0.0 if exact else edge for edge in edges], [*accumulate(shares)]
        many = reading.rows_of(setting.point) * len(records)
        for place, (part, at) in enumerate(zip(shares, below, strict=True)):
            reach = Z95 * math.sqrt(max(0.0, at * (1 - at)) / many) if many else 0.0
            rows.add(
                setting,
                Figure(at, max(0.0, at - reach), min(1.0, at + reach), coalition=held),
                name,
                attribute=name,
                title=clean(f"absolute error of {name} ({unit})"),
                cell="–" if place else _quantiles(below, ends),
                coalition=(braces(held), ""),
                q=1.0 if exact else part,
                x=ends[place],
                x2=ends[place + 1],
            )
    if not rows.rows:
        return None
    return rows.chart(
        "errors", note=f"Absolute error that half | 9 in 10 of the records stay below, {unit}"
    )


def _quantiles(below: Sequence[float], ends: Sequence[float]) -> str:
    texts = []
    for share in (0.5, 0.9):
        place = bisect_left(below, share)
        text = f">{number(ends[len(below)])}"
        if place < len(below):
            low, high = below[place - 1] if place else 0.0, below[place]
            within = (share - low) / (high - low)
            text = rounded(ends[place] + within * (ends[place + 1] - ends[place]))
        texts.append(text)
    return " | ".join(texts)


def frontier(reading: Reading) -> Chart | None:
    """Normalized error against utility, one point per coalition.

    Without a utility metric, against the level of the most revealing copy.
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
    levels = ("level", "level of the most revealing copy held")
    for setting in () if utilities else reading.settings(ERROR):
        found = reading.figures(setting)
        largest = max(map(len, found), default=0)
        for coalition, shown in found.items():
            single = best_single(found, coalition)
            if single is not None and single.levels and len(coalition) in (1, largest):
                level = shown._replace(value=single.levels[0], low=None, high=None)
                _use(rows, setting, shown, level, levels)
    if not rows.comparable:
        return None
    return rows.chart("frontier" if utilities else "levels")


def _use(rows: Rows, setting: Setting, shown: Figure, use: Figure, figure: tuple[str, str]) -> None:
    rows.add(
        setting,
        shown,
        braces(shown.coalition),
        cell=f"{with_error(use)}\n{with_error(shown)}",
        figure=figure,
        x=use.value,
        xlo=use.value if use.low is None else use.low,
        xhi=use.value if use.high is None else use.high,
        n=with_error(use),
    )


def sweep(reading: Reading, id: str, path: str, *, timed: bool) -> Chart | None:
    """Each metric, or the seconds, along one swept path.

    A single scheme has a line per attack.
    """
    attacks = unique(attack for _, attack in reading.adversaries)
    by_attack = len(reading.schemes) == 1 and len(attacks) > 1
    rows = Rows(
        reading, "figure", "adversary", names=[*attacks, *reading.schemes] if by_attack else ()
    )
    keys = [key for key in reading.keys() if (key[1] == SECONDS) == timed]
    named = (one.expectation for one in reading.result.expectations)
    stated = next((one for one in named if one in reading.metrics), "")
    # all attributes first, then the first expected metric, then the error
    keys.sort(key=lambda key: (key[2] != EVERYTHING, key[1] != stated, key[1] != ERROR))
    paths = swept_paths(reading)
    for setting, metric, name in keys:
        at = reading.points[setting.point]
        shown = telling(metric, reading.figures(setting, metric, name))
        if path not in at or shown is None:
            continue
        known = str(setting.knowledge) if by_attack else label(reading, setting)
        where = {key: f"{key} = {plain(at[key])}" for key in paths if key in at}
        value = at[path]
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        rows.add(
            setting,
            shown,
            ", ".join(where.values()) if len(paths) > 1 else plain(at[path]),
            series=str(setting.attack) if by_attack and setting.attack else "",
            adversary=(known if setting.attack else "", ""),
            figure=(f"{metric}, {attribute_text(name)}", metric_title(metric, reading, name)),
            x=value if type(value) in (int, float) else clean(value),
            o=clean(", ".join(where[key] for key in where if key != path)),
        )
    if not rows.rows:
        return None
    values = unique(row["x"] for row in rows.rows)
    axis: Part = {"heading": [path_title(path)]}  # Vega would read a string as a field
    numeric = all(isinstance(one, int | float) for one in values)
    if numeric:
        few = {"values": values, "labelOverlap": True}
        wide = min(values) > 0 and max(values) / min(values) >= 30
        axis["ticks"] = few if len(values) <= TICKS else {"tickCount": 8}
        axis["scale"] = {"type": "log"} if wide else {"zero": False}
    return rows.chart(
        "sweep" if numeric else "sweep of words",
        axis,
        id=id,
        title=f"{'Runtime against' if timed else 'Sweep of'} {path_title(path)}",
        alt=f"Line chart: a metric against the swept parameter {clean(path)}.",
        first=clean(path) if len(paths) == 1 else "sweep point",
        path=clean(path),
        **({"caption": "Processor seconds to make the copies."} if timed else {}),
    )


def pictures(reading: Reading) -> list[Picture]:
    """Pictures of numbers or of categories, the most exposed scheme first."""
    worst = lowest_attribute(reading, reading.settings(ERROR))
    scheme = worst[0].scheme if worst else ""
    found = sorted(reading.result.pictures, key=lambda one: one.scheme != scheme)
    return [one for one in found if bool(one.width) == bool(found[0].width)]


def described(reading: Reading, one: Picture) -> str:
    """State the attribute, the attack and the copies of a picture."""
    total = reading.copies_of(one.scheme, reading.point_of(one.sweep))
    name, attack = clipped(attribute_text(one.attribute), 40), clipped(one.attack, 40)
    held = f"{copies(one.coalition, total)} of {clipped(one.scheme, 40)}"
    return f"{name}, by {attack} from {held}"


def heights(one: Picture) -> list[tuple[str, list[float]]]:
    """Share of the records by cell, for each series that is known."""
    found = []
    for name, bins in zip(NAMES, (one.original, one.shown, one.estimate), strict=True):
        cells = [share / (stop - first) for first, stop, share in bins for _ in range(first, stop)]
        found += [(name, cells)] if cells else []
    return found


def values_lines(one: Picture) -> list[str]:
    """Picture as lines of text."""
    names, rows = zip(*heights(one), strict=True)
    return [f"  {name:<12}  {line}" for name, line in zip(names, sparklines(rows), strict=True)]


def values(reading: Reading) -> Chart | None:
    """Histograms of the values, and rebuilt values against original ones."""
    rows, found = Rows(reading, "release", names=NAMES), pictures(reading)
    for one in found:
        _add(rows, one)
    if not rows.rows:
        return None
    drawn = f"In the table, in the copy nearest to it, and rebuilt: {described(reading, found[0])}. {VALUES}"
    return rows.chart("values" if found[0].width else "categories", caption=drawn)


def _add(rows: Rows, one: Picture) -> None:
    reading, setting = rows.reading, rows.reading.setting_of(one)
    deviation = reading.deviation_of(setting.point, one.attribute)
    mean = reading.mean_of(setting.point, one.attribute) if deviation else 0.0
    unit = "" if mean else " from the mean" if deviation else ", standard deviations from the mean"
    *_, common, rare = [0.0, *heights(one)[0][1]]
    rarer = ", the last with all rarer ones" * (rare > common > 0)
    unit = unit if one.width else f": categories by frequency{rarer}"
    option = described(reading, one), clean(f"{clipped(attribute_text(one.attribute), 40)}{unit}")

    def at(cell: float) -> float:
        away = one.width * (cell - one.cells / 2)
        return away * (deviation or 1.0) + mean if one.width else cell + 0.5

    def add(series: str, share: float, cell: float, **fields: Any) -> None:
        start, shown = rounded(at(cell)), Figure(share, coalition=one.coalition)
        fields |= {"series": series, "cell": percent(share), "release": option}
        rows.add(setting, shown, start, **fields)

    for cell in range(one.cells + bool(one.width)):  # steps end at the last cell's end
        for place, (series, shares) in enumerate(heights(one)):
            begin, end = (0, 1) if one.width else (0.1 + 0.28 * place, 0.37 + 0.28 * place)
            share = shares[min(cell, one.cells - 1)]
            add(series, share, cell, k=0, q=0.0, x=at(cell + begin), x2=at(cell + end))
    diagonal = (0, one.cells, 0, one.cells, 0.0)
    for k, bins in ((1, one.joint), (2, (diagonal,))):
        for first, stop, low, high, share in bins:
            dense, ends = share / (stop - first) / (high - low), {"x": at(first), "x2": at(stop)}
            add(NAMES[-1], at(low), 0, k=k, q=dense, hi=at(high), **ends)

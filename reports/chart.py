"""A chart: Vega-Lite views, rows and controls, and its default table.

Names from data are values only, so they cannot enter an expression.
"""

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field as default
from functools import cached_property
from typing import Any, NamedTuple

from markupsafe import Markup

from auditor.base import clean
from auditor.base.types import Names, Plain, frozen

from .figures import TEMPLATES as TEMPLATES, Figure, braces, template, with_error
from .matrix import attribute_text, label, leader
from .reading import EVERYTHING, Reading, Setting, unique

NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)


def json_block(value: Any) -> Markup:
    """JSON that cannot close a ``script`` element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(re.sub("[<>&\u2028\u2029]", lambda one: f"\\u{ord(one[0]):04x}", text))


def deflated(text: str, **attributes: str) -> Markup:
    """Element with compressed text, which browsers never run.

    The base64 of a raw deflate stream (RFC 1951), which cannot close the element; ``data-size`` is
    the inflated size in bytes.
    """
    content = text.encode("utf-8", "backslashreplace")
    # level 9 takes four times as long for 2 % less
    packer = zlib.compressobj(7, zlib.DEFLATED, -zlib.MAX_WBITS)
    stream = packer.compress(content) + packer.flush()
    written = Markup("").join(
        Markup(' {}="{}"').format(name, value) for name, value in attributes.items()
    )
    start = Markup('<script type="application/x-deflate" data-size="{}"{}>').format(
        len(content), written
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
        script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), id="bundle"
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
        return deflated(json_block(block), id=f"{self.id}-data")


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

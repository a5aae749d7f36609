"""A chart: rows, controls and views, and its default rows as a table.

Names from data are values only, so they cannot enter an expression.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from auditor.results.renderer import clean

from ..figures.figures import Figure, braces, with_error
from ..figures.matrix import attribute_text, label
from ..figures.reading import EVERYTHING, Reading, Setting
from ..figures.strongest import leader
from .spec import Part

BUNDLE = Path(__file__).resolve().parents[1] / "templates" / "bundle.html"
NOTICE = (
    "/* Vega, Vega-Lite and Vega-Embed: Copyright (c) University of Washington Interactive Data Lab and contributors; BSD-3-Clause, "
    "https://github.com/vega/vega/blob/main/LICENSE. D3 in them: Copyright (c) Mike Bostock; ISC, https://github.com/d3/d3. */"
)
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def json_block(value: Any) -> Markup:
    """Return JSON that cannot close a ``script`` element or open a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return Markup(text)


def deflated(text: str, **attributes: str) -> Markup:
    """Return an element with compressed text, which browsers never run.

    It holds the base64 of a raw deflate stream (RFC 1951); ``data-size`` is the inflated size in bytes.
    The text cannot close the element.
    """
    content = text.encode("utf-8", "backslashreplace")
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    stream = packer.compress(content) + packer.flush()
    written = Markup("").join(
        Markup(' {}="{}"').format(name, value) for name, value in attributes.items()
    )
    start = Markup('<script type="application/x-deflate" data-size="{}"{}>').format(
        len(content), written
    )
    return start + Markup(base64.b64encode(stream).decode("ascii") + "</script>")


def inflated(element: str) -> str:
    """Return the text of an element made by `deflated`."""
    return zlib.decompress(
        base64.b64decode(element.partition(">")[2].partition("<")[0]), -zlib.MAX_WBITS
    ).decode("utf-8")


def script(source: str) -> Markup:
    """Escape a script for its element, with the line ends that browsers hash."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a policy that allows only these scripts and styles.

    Vega interprets its expressions, so ``unsafe-eval`` is not needed.
    """
    listed = " ".join(_source(text) for text in scripts)
    styled = " ".join(_source(text) for text in styles)
    return (
        f"default-src 'none'; script-src {listed}; style-src {styled}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def bundle() -> str:
    """Return the HTML element with the charts' compressed script."""
    from vl_convert import javascript_bundle  # imported here because reports do not need it

    return deflated(
        script(f"{NOTICE}\n{javascript_bundle('window.vegaEmbed = vegaEmbed;')}"), id="bundle"
    )


if __name__ == "__main__":
    BUNDLE.write_text(bundle(), encoding="utf-8")


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


@dataclass(frozen=True)
class Chart:
    """One or two views with common rows and controls.

    Attributes
    ----------
    rows : list of dict
        Fields of the views; ``_label`` and ``_cell`` are texts of a table.
    names : list of str
        Series in the order of the legend.
    titles : dict
        Axis titles by option, for controls whose options differ in unit.
    first, note : str
        Head of the table's first column, and its explanation.
    """

    id: str
    title: str
    caption: str
    alt: str
    rows: list[dict[str, Any]]
    controls: list[Control]
    names: list[str]
    views: list[Part]
    first: str
    note: str
    titles: dict[str, list[str]] = field(default_factory=dict)
    path: str = ""
    drawn: bool = False

    @property
    def values(self) -> dict[str, int]:
        """The default option of each control."""
        return {control.name: control.chosen for control in self.controls}

    def chosen(self, values: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return the rows of the chosen options."""
        wanted = {FIELDS[name]: (value, ANY) for name, value in values.items()}
        return [row for row in self.rows if all(row[key] in held for key, held in wanted.items())]

    def table(self, figure: int | None = None) -> tuple[list[str], dict[str, dict[str, str]]]:
        """Return the series and each label's cells for the default options."""
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

    def __init__(self, reading: Reading, *controls: str, names: Sequence[str] = ()) -> None:
        self.reading, self.rows = reading, list[dict[str, Any]]()
        self.names = list(names) or [clean(name) for name in reading.schemes]
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
        bars = shown.low is None or shown.high is None
        self.rows.append(
            {
                "s": series,
                "i": self.names.index(series),
                **place,
                "y": shown.value,
                "lo": shown.value if bars else shown.low,
                "hi": shown.value if bars else shown.high,
                "t": shown.theory,
                "m": with_error(shown),
                "c": braces(shown.coalition),
                **fields,
                "_label": clean(label_of),
                "_cell": cell or with_error(shown),
            }
        )

    def _number(self, name: str, text: str, title: str) -> int:
        if name == "adversary" and not text:
            return ANY
        self.options[name].setdefault(text, title)
        return list(self.options[name]).index(text)

    def chart(
        self, id: str, title: str, caption: str, alt: str, *views: Part, **more: Any
    ) -> Chart:
        """Return the chart, preset to the leading adversary where it has rows."""
        lead, rows = leader(self.reading), self.rows[:ROWS]
        wanted = {"attribute": attribute_text(EVERYTHING)}
        if lead is not None:
            point = self.reading.point_text(lead.point) or "–"
            wanted |= {"adversary": label(self.reading, lead), "point": point}
        known = {
            FIELDS[name]: list(self.options[name]).index(text)
            for name, text in wanted.items()
            if text in self.options.get(name, {})
        }
        first = max(rows, key=lambda row: [row[key] == value for key, value in known.items()])
        controls = [
            Control(
                name,
                LABELS.get(name, name.capitalize()),
                [clean(text) for text in texts],
                max(0, first[FIELDS[name]]),
            )
            for name, texts in self.options.items()
            if texts
        ]
        titles = {name: [*texts.values()] for name, texts in self.options.items()}
        stated = {name: texts for name, texts in titles.items() if any(texts)}
        left = len(self.rows) - len(rows)
        caption += f" {left:,} more rows are in the results file." if left else ""
        for place, one in enumerate(views):
            one["layer"][-1]["name"] = one["params"][0]["views"][0] = f"points-{place}"
            one["params"] += [{"name": each.name, "value": each.chosen} for each in controls]
        return Chart(
            id, title, caption, alt, rows, controls, self.names, list(views), titles=stated, **more
        )

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


def title_of(control: str) -> list[str]:
    """Return the placeholder for an axis title that depends on a control."""
    return [f"${control}"]

"""Chart data as columns of plain values, with a table per chart.

Field names are fixed. Names from data or scenario are values only, so they cannot enter an
expression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from auditor.results.renderer import clean

from .adversary import label
from .figures import Figure, braces, number, plus_minus, with_error
from .reading import EVERYTHING, Reading, Setting

ROWS = 8000
"""Rows per chart, which limit the size of the page."""
TABLE_ROWS = 300
"""Rows of a data table in the page."""


class Control(NamedTuple):
    """A selector above a chart; the parameter's value is an option's index."""

    name: str
    label: str
    options: list[str]
    chosen: int = 0


@dataclass(frozen=True)
class ChartData:
    """Rows of a chart by column, its controls and its table."""

    columns: dict[str, list[Any]]
    controls: list[Control]
    headers: list[str]
    table: list[list[str]]
    left_out: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    titles: dict[str, list[str]] = field(default_factory=dict)
    """Axis titles of each option, for controls whose options differ in unit (`title_of`)."""

    @property
    def shown(self) -> list[list[str]]:
        """The rows in the page's table."""
        return self.table[:TABLE_ROWS]


def title_of(control: str) -> list[str]:
    """Return the placeholder for an axis title that depends on a control."""
    return [f"${control}"]


class Options:
    """Options of a control, numbered in order of first appearance."""

    def __init__(self, name: str, label: str) -> None:
        self.name, self.label = name, label
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """Return a text's number, new or known."""
        return self.numbers.setdefault(text, len(self.numbers))

    def control(self, chosen: int = 0) -> Control:
        """Return the control with every option seen so far."""
        return Control(
            self.name,
            self.label,
            [clean(text) for text in self.numbers],
            min(chosen, len(self.numbers) - 1),
        )


def attribute_text(attribute: str) -> str:
    """Name an attribute; ``*`` means all attributes."""
    return "all attributes" if attribute == EVERYTHING else attribute


def columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns."""
    return {name: [_short(row[name]) for row in rows] for name in rows[0]} if rows else {}


def _short(value: Any) -> Any:
    """Round to six digits, finer than a pixel."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def values(shown: Figure) -> dict[str, Any]:
    """Return a figure's fields in a chart's row."""
    low, high = (
        (shown.value, shown.value)
        if shown.low is None or shown.high is None
        else (shown.low, shown.high)
    )
    return {
        "y": shown.value,
        "lo": low,
        "hi": high,
        "t": shown.theory,
        "m": with_error(shown),
        "c": braces(shown.coalition),
    }


def cells(shown: Figure) -> list[str]:
    """Return a figure's cells in a chart's table."""
    return [
        braces(shown.coalition),
        number(shown.value, shown.half),
        plus_minus(shown.half, shown.value),
        number(shown.theory, shown.half),
        shown.error_bar,
    ]


FIGURE_HEADERS = ["coalition", "value", "± 95 %", "theory", "error bar from"]


class Choices:
    """Attribute, adversary and sweep point: the controls of most charts."""

    def __init__(self, reading: Reading, leading: Setting | None = None) -> None:
        self.reading, self.leading = reading, leading
        self.attribute = Options("attribute", "Attribute")
        self.adversary = Options("adversary", "Adversary")
        self.point = Options("point", "Sweep point")

    def row(self, setting: Setting, attribute: str) -> dict[str, Any]:
        """Return the fields that identify a row's setting."""
        return {
            "s": clean(setting.scheme),
            "i": self.reading.schemes.index(setting.scheme),
            "a": self.attribute(attribute_text(attribute)),
            "v": self.adversary(label(self.reading, setting)),
            "p": self.point(self.reading.point_text(setting.point) or "–"),
        }

    def controls(self) -> list[Control]:
        """Return the controls, preset to the leading setting."""
        lead = self.leading
        who = label(self.reading, lead) if lead else ""
        where = (self.reading.point_text(lead.point) or "–") if lead else ""
        all_together = self.attribute.numbers.get(attribute_text(EVERYTHING), 0)
        return [
            self.attribute.control(all_together),
            self.adversary.control(self.adversary.numbers.get(who, 0)),
            self.point.control(self.point.numbers.get(where, 0)),
        ]


def setting_cells(reading: Reading, setting: Setting, attribute: str) -> list[str]:
    """Return the cells that identify a table row's setting."""
    names = [setting.scheme, label(reading, setting), attribute_text(attribute)]
    where = [reading.point_text(setting.point)] if len(reading.points) > 1 else []
    return [clean(name) for name in (*names, *where)]


def setting_headers(reading: Reading) -> list[str]:
    """Return the headers of `setting_cells`."""
    return [
        "scheme",
        "adversary",
        "attribute",
        *(["sweep point"] if len(reading.points) > 1 else []),
    ]

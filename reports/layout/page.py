"""Template helpers of the page: escaping, blocks and groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup, escape

from auditor.results.renderer import clean

from ..figures.figures import Name, Text, unbroken
from ..wording.headline import Bar
from . import document as tree


def inline(text: Text) -> Markup:
    """Escape a text, isolate names and hide bars from screen readers."""
    pieces = (text,) if isinstance(text, str) else text
    return Markup("").join(_name(one) if isinstance(one, Name) else _words(one) for one in pieces)


def _name(name: str) -> Markup:
    return Markup("<bdi>{}</bdi>").format(clean(name))


def _words(text: str) -> Markup:
    # str, because Markup would escape the joined safe parts again
    escaped = str(escape(unbroken(clean(text))))
    escaped = re.sub("[■□]+", r'<span aria-hidden="true">\g<0></span>', escaped)
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", escaped))


def parted(figure: str) -> tuple[str, str]:
    """Split a figure and its error bar: ``0.0953`` and ``±0.0004``."""
    found = re.fullmatch(r"([^ (]+) (±.*)", figure)
    return (found[1], found[2]) if found else (figure, "")


def place(share: float, least: float = 0.0, most: float = 100.0) -> float:
    """Return a share as a position on a scale of 100."""
    return round(min(most, max(least, 100.0 * share)), 2)


def shown(blocks: Sequence[tree.Block]) -> list[tree.Block]:
    """Return the page's blocks."""
    return tree.shown(blocks, tree.PAGE)


def grouped(rows: Sequence[tree.Row]) -> list[tuple[str, list[tree.Row]]]:
    """Return consecutive rows by group."""
    return [(group, list(held)) for group, held in groupby(rows, key=lambda row: row.group)]


def schemes(found: Sequence[Bar]) -> list[tuple[str, list[Bar]]]:
    """Return consecutive bars by scheme; one scheme alone has no name."""
    held = [(name, list(bars)) for name, bars in groupby(found, key=lambda bar: bar.scheme)]
    return held if len(held) > 1 else [("", bars) for _, bars in held]

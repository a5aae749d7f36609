"""Template helpers of the page: escaping, blocks and groups."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from auditor.results.renderer import clean

from ..figures.figures import unbroken
from ..wording.card import Verdict
from . import document as tree


def inline(text: tree.Text) -> Markup:
    """Escape a text, isolate names and hide bars from screen readers."""
    pieces = (text,) if isinstance(text, str) else text
    return Markup("").join(
        _name(piece) if isinstance(piece, tree.Name) else _words(piece) for piece in pieces
    )


def _name(name: str) -> Markup:
    return Markup("<bdi>{}</bdi>").format(clean(name))


def _words(text: str) -> Markup:
    # str, because Markup would escape the joined safe parts again
    return Markup(
        re.sub(
            "[■□]+", r'<span aria-hidden="true">\g<0></span>', str(escape(unbroken(clean(text))))
        )
    )


def reasons(verdict: Verdict) -> list[Markup]:
    """Return a verdict's reasons: exposure, pooling and consequences."""
    found = (
        [tree.Name(text) if is_name else text for text, is_name in reason]
        for reason in verdict.reasons
    )
    return [inline(tuple(pieces)) for pieces in found]


def parted(figure: str) -> tuple[str, str]:
    """Split a figure and its error bar: ``0.0953`` and ``±0.0004``."""
    found = re.fullmatch(r"([^ (]+) (±.*)", figure)
    return (found[1], found[2]) if found else (figure, "")


def shown(blocks: Sequence[tree.Block], charts: Collection[str], id: str) -> list[tree.Block]:
    """Return the page's blocks, and chart sections only with their charts."""

    def drawn(one: tree.Block) -> bool:
        here = isinstance(one, tree.Section) and any(
            isinstance(block, tree.Figure) for block in one.blocks
        )
        return not here or f"{id}-{one.key}" in charts  # type: ignore[attr-defined]

    return [one for one in tree.shown(blocks, tree.PAGE) if drawn(one)]


def grouped(rows: Sequence[tree.Row]) -> list[tuple[str, list[tree.Row]]]:
    """Return consecutive rows by group."""
    return [(group, list(held)) for group, held in groupby(rows, key=lambda row: row.group)]

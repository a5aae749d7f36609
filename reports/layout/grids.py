"""Tables of a report as rows of text, for Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import document as tree


class Grid(NamedTuple):
    """Unescaped heads and rows, and a note on rows left out."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str = ""


def of_checks(block: tree.Checks) -> Grid:
    """Return one row per expectation."""
    rows = [
        [f"{one.mark} {one.status}", one.stated + one.where, one.observed, one.bound, one.why]
        for one in block.found
    ]
    return Grid(["status", "expectation", "observed", "bound", "why"], rows)


def of_table(block: tree.Table, medium: str) -> Grid:
    """Return a table's rows within the medium's limit."""
    rows, more = tree.cut(block.rows, block.most, medium, block.what)
    grouped = [block.group] if block.group else []
    lines = [
        [
            " ".join(filter(None, (row.name, row.below))),
            *([row.group] if grouped else []),
            *row.cells,
        ]
        for row in rows
    ]
    return Grid([block.first, *grouped, *block.columns], lines, more)

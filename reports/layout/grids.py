"""Tables of a report as rows of texts, for media that have grids: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import document as tree


class Grid(NamedTuple):
    """Heads and rows of a table, none of it escaped, and what is said of rows that are left out."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str = ""


def of_checks(block: tree.Checks) -> Grid:
    """Return the expectations and how they came out, a row each."""
    rows = [[f"{one.mark} {one.status}", one.stated + one.where, one.observed, one.bound, one.why] for one in block.found]
    return Grid(["status", "expectation", "observed", "bound", "why"], rows)


def of_table(block: tree.Table, medium: str) -> Grid:
    """Return a table's rows, as many as the medium may have; what they are grouped by is a column."""
    rows, more = tree.cut(block.rows, block.most, medium, block.what)
    grouped = [block.group] if block.group else []
    lines = [[" ".join(filter(None, (row.name, row.below))), *([row.group] if grouped else []), *row.cells] for row in rows]
    return Grid([block.first, *grouped, *block.columns], lines, more)

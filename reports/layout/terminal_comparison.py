"""The comparison of two audits in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from auditor.results.renderer import clean
from reports.layout.terminal_tables import folded, heading, table
from reports.wording.differences import Part, basis, headline, parts

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison

SHOWN = 30
"""Differences of one kind that are listed; the JSON format has all."""
_STYLES = {"worse": "bold color(166)", "better": "bold color(31)"}


def differences(console: Console, comparison: Comparison) -> None:
    """Print what changed: the headline first, then worse, better, new and missing."""
    console.print(Rule(Text("Comparison of two audits", style="bold"), align="left", characters="━"))
    console.print(Text(f"old: {clean(comparison.old)}\nnew: {clean(comparison.now)}\n", style="dim"))
    mark = "✗" if comparison.worse else "✓"
    console.print(Text(f"{mark} {headline(comparison)}", style=_STYLES["worse" if comparison.worse else "better"]))
    console.print(Padding(Text(basis(comparison), style="dim"), (0, 0, 0, 2)))
    for part in parts(comparison):
        _part(console, part)


def _part(console: Console, part: Part) -> None:
    heading(console, part.title, f"{part.size:,}")
    for line in part.lines[:SHOWN]:
        console.print(Padding(Text(line), (0, 0, 0, 2)))
    rows = part.rows[: max(5, SHOWN - len(part.lines))]
    if part.rows:
        # 14 characters each for old and new, 9 for the change, and two between columns
        width = max(16, console.width - 2 * 17 - 10 - 4)
        made = table("cell", "old", "new", "change", label=width)
        for row in rows:
            name = Text(folded(f"{row.metric}: {row.cell}", width))
            more = Text(f"\n  and {row.more:,} more like it" if row.more else "", style="dim")
            made.add_row(name + more, row.old, row.new, row.change)
        console.print(made)
    hidden = len(part.rows) - len(rows) + max(0, len(part.lines) - SHOWN)
    if hidden > 0:
        console.print(Text(f"… and {hidden:,} more", style="dim"))

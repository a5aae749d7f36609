"""Terminal writer: tables split to fit, and a plot in characters.

No information depends on colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as Grid
from rich.text import Text as Rich

from auditor.results.renderer import clean

from ..charts.plot import LETTERS, plot, style_of
from ..figures.adversary import knows
from ..figures.figures import clipped
from ..figures.reading import unique
from ..figures.severity import SCALE
from ..wording.card import Verdict
from ..wording.sentences import capital
from . import document as tree

GOOD, BAD, OPEN = "bold color(31)", "bold color(166)", "bold color(172)"
STYLES = {"✓": GOOD, "✗": BAD, "?": OPEN}
COLUMN = 16
"""Least width of a scheme's column."""
MOST = 6
"""Adversaries on the first screen."""
LABELS = (12, 30)
"""Least and largest width of the first column."""


def write(console: Console, document: tree.Document) -> None:
    """Print a document, with an audit's outcome last, next to the prompt."""
    headline = Rich(f"{document.mark} {clean(document.headline)}", STYLES.get(document.mark, ""))
    console.print(
        Rule(
            Rich(clipped(document.name, console.width - 4), style="bold"),
            align="left",
            characters="━",
        )
    )
    if document.kind == "comparison":
        console.print(headline)
    _blocks(console, document.opening)
    _blocks(console, document.sections)
    if document.kind == "audit":
        console.print()
        _blocks(console, [tree.Paragraph(document.summary)] if document.summary else [])
        console.print(headline)
        console.print()


def write_overview(console: Console, table: tree.Table) -> None:
    """Print one line for each of several audits."""
    console.print(
        Rule(
            Rich(f"Summary of {len(table.rows)} audits", style="bold"), align="left", characters="━"
        )
    )
    _table(console, table)


def _blocks(console: Console, blocks: Sequence[tree.Block]) -> None:
    for block in tree.shown(blocks, tree.TERMINAL):
        WRITERS[type(block)](console, block)


def _section(console: Console, section: tree.Section) -> None:
    first, *rest = tree.shown(section.blocks, tree.TERMINAL)
    lead = first if isinstance(first, tree.Paragraph) and first.role == "lead" else None
    console.print()
    console.print(
        Rich.assemble(
            (clean(section.title), "bold underline"),
            (f"  {clean(tree.said(lead.text))}" if lead else "", "dim"),
        )
    )
    _blocks(console, rest if lead else [first, *rest])


def _paragraph(console: Console, block: tree.Paragraph) -> None:
    style = {"alert": BAD, "note": "dim"}.get(block.role, "dim" if block.term else "")
    console.print(
        Rich.assemble(
            (f"{block.term} " if block.term else "", "bold"), (clean(tree.said(block.text)), style)
        )
    )


def _indented(console: Console, text: tree.Text, style: str = "") -> None:
    console.print(Padding(Rich(clean(tree.said(text)), style=style), (0, 0, 0, 2)))


def _items(console: Console, block: tree.Items) -> None:
    lines, more = tree.cut(block.lines, block.most, tree.TERMINAL)
    for line in filter(None, (*lines, more)):
        _indented(console, line)


def _terms(console: Console, block: tree.Terms) -> None:
    for name, formula, meaning in block.terms:
        # not every terminal supports the zero-width hat over a letter
        shown_formula = f"{formula.replace('x̂', 'x′')}: {meaning}" if formula else meaning
        console.print(Rich.assemble((f"{clean(name)}  ", "bold"), (clean(shown_formula), "dim")))


def _code(console: Console, block: tree.Code) -> None:
    text = f"{block.title}:\n{block.text}" if block.title else block.text
    console.print(Rich(text.rstrip("\n")), no_wrap=True, overflow="ignore", crop=False)


def _fold(console: Console, block: tree.Fold) -> None:
    console.print(
        Rich(f"{block.summary}{':' if block.open else '; the page says more.'}", style="italic")
    )
    if block.open:
        _blocks(console, block.blocks)


def _verdicts(console: Console, block: tree.Verdicts) -> None:
    texts = [verdict.brief if block.brief else [verdict.text] for verdict in block.found]
    strongest = {lines[-1] for lines in texts} if block.brief and len(texts) > 1 else set()
    common = len(strongest) == 1  # print a common last line once
    for verdict, lines in zip(block.found, texts, strict=True):
        console.print(_title(verdict, console.width - 36))
        for line in lines[:-1] if common else lines:
            _indented(console, line)
    for line in strongest if common else ():
        console.print(Rich(clean(line), style="dim"))


def _title(verdict: Verdict, width: int) -> Rich:
    style = verdict.severity.style if verdict.grade and verdict.severity else ""
    name = (clipped(verdict.scheme, width), "bold")
    return Rich.assemble(
        (f"{verdict.mark} ", STYLES.get(verdict.mark, "")), name, (f"  {verdict.label}", style)
    )


def _details(console: Console, block: tree.Details) -> None:
    for detail in block.found:
        console.print(
            Rich(f"{clipped(detail.attack, 60)} against {clipped(detail.scheme, 60)}", style="bold")
        )
        for line in detail.lines(" · "):
            _indented(console, line, "dim")


def _checks(console: Console, block: tree.Checks) -> None:
    for one in block.found:
        mark, stated = f"{one.mark} {one.status:<9} ", clean(f"{one.stated}{one.where}")
        room = max(12, console.width - len(mark))
        if block.brief and one.status == "holds":
            lines = [clipped(stated, room)]
        else:
            lines = folded(stated, room).split("\n") if len(stated) >= room else [stated]
        console.print(
            Rich.assemble((mark, STYLES[one.mark]), (f"\n{' ' * len(mark)}".join(lines), "bold"))
        )
        if not block.brief or one.status != "holds":
            _indented(console, f"observed {one.observed}, bound {one.bound}: {one.why}")


def _figure(console: Console, block: tree.Figure) -> None:
    if not block.curves:
        return
    for row in plot(block.curves, min(console.width, 100), 13):
        console.print(row)
    for place, one in enumerate(block.curves):
        if one.points:
            name = f" {clipped(one.name, console.width - 34)}  {one.note}"
            console.print(
                Rich.assemble("  ", (LETTERS[place % len(LETTERS)], style_of(place)), name)
            )


# -- tables
# ----------------------------------------------------------------------------------------------------------------


def _matrix(console: Console, block: tree.Matrix) -> None:
    label = (
        15 if console.width < 100 else min(32, max(24, *(len(row.attack) for row in block.rows)))
    )
    rows = _strongest(block.rows) if block.brief else block.rows
    for knowledge in unique(row.knowledge for row in rows):
        stated = knowledge if knowledge.startswith(tree.ALIAS) else knows(knowledge)
        console.print(Rich(clipped(capital(stated), console.width), style="italic"))
        for chosen in _chunks(console, block.schemes, label):
            made = _grid(console, "", block.schemes[chosen], label)
            for row in (row for row in rows if row.knowledge == knowledge):
                (_line if block.brief else _lines_of)(made, row, chosen, label)
            console.print(made)
    if len(block.rows) > len(rows):
        console.print(
            Rich(
                f"… and {len(block.rows) - len(rows)} more adversaries, none of them stronger",
                style="dim",
            )
        )
    scale = SCALE[:-1] if block.brief else SCALE  # the lowest step needs no bound
    steps = (
        Rich(
            f"{step.bars} {step.word}{f' <{step.below:g}' if step.below < 10 else ''}",
            style=step.style,
        )
        for step in scale
    )
    console.print(Rich("  ").join(steps))


def _strongest(rows: Sequence[tree.Adversary]) -> list[tree.Adversary]:
    """Return the first screen's rows: the strongest per scheme, then by mean."""
    columns = [
        [cell.order for cell in cells if cell.order is not None]
        for cells in zip(*(row.cells for row in rows), strict=True)
    ]

    def order(row: tree.Adversary) -> tuple[int, float]:
        shown = [
            (place, cell.order) for place, cell in enumerate(row.cells) if cell.order is not None
        ]
        stronger = (sum(before < left for before in columns[place]) for place, left in shown)
        return min(stronger, default=len(rows)), math.fsum(left for _, left in shown) / max(
            1, len(shown)
        )

    return sorted(rows, key=order)[:MOST]


def _line(made: Grid, row: tree.Adversary, chosen: slice, label: int) -> None:
    made.add_row(
        Rich(clipped(row.attack, label), style="bold"), *map(_figure_of, row.cells[chosen])
    )


def _figure_of(cell: tree.Graded) -> Rich:
    if cell.severity is None:
        return Rich(cell.gap, style="bold" if cell.gap.startswith("✗") else "dim")
    if not cell.error:
        figure = cell.right.partition(" ±")[0]
    else:  # three decimals for all neighbours, except values that would round to 0
        figure = (
            cell.error.partition(" ")[0]
            if cell.order is None or cell.order < 0.0005
            else f"{cell.order:.3f}"
        )
    return Rich(f"{cell.severity.bars}{cell.mark or ' '} {figure}", style=cell.severity.style)


def _lines_of(made: Grid, row: tree.Adversary, chosen: slice, label: int) -> None:
    cells = row.cells[chosen]
    guessed, exposed = any(cell.right for cell in cells), any(cell.exposed for cell in cells)
    below = (
        "\n  worst\n  single copy" + "\n  right guesses" * guessed + "\n  most exposed" * exposed
    )
    made.add_row(
        Rich.assemble((clipped(row.attack, label), "bold"), below),
        *(_graded(cell, guessed=guessed) for cell in cells),
    )


def _graded(cell: tree.Graded, *, guessed: bool) -> Rich:
    if cell.severity is None:
        return Rich(f"\n{cell.gap}", style="bold" if cell.gap.startswith("✗") else "dim")
    style, single = cell.severity.style, cell.single or (f"({cell.alone})" if cell.alone else "–")
    exposed = f"\n{clipped(cell.exposed[0], 10)} {cell.exposed[1]}" if cell.exposed else ""
    right = f"\n{cell.right or '–'}" if guessed else ""
    first = f"{cell.severity.bars} {cell.mark}".rstrip()
    return Rich.assemble(
        (f"{first}\n{cell.error or '–'}", style), (f"\n{single}{right}", "dim"), (exposed, style)
    )


def _table(console: Console, block: tree.Table) -> None:
    rows, more = tree.cut(block.rows, block.most, tree.TERMINAL, block.what)
    if block.kind == "entries":
        for row in rows:
            console.print(
                Rich.assemble(
                    (f"{clean(row.name)}  ", "bold"), (clean(block.sentences(row)), "dim")
                )
            )
    for group in unique(row.group for row in rows if block.kind != "entries"):
        if group:
            console.print(Rich(clean(group), style="italic"))
        _rows(console, block, [row for row in rows if row.group == group])
    if more:
        console.print(Rich(more, style="dim"))


def _rows(console: Console, block: tree.Table, rows: Sequence[tree.Row]) -> None:
    longest = max(len(line) for row in rows for line in (block.first, *row.name.split("\n")))
    label = min(LABELS[1], console.width - COLUMN, max(LABELS[0], longest))
    if block.kind != "schemes":
        label, widths = _whole(console, block)
        parts = [(slice(None), _lines(block.first, block.columns, widths, label))]
    else:
        parts = [
            (one, _grid(console, block.first, block.columns[one], label))
            for one in _chunks(console, block.columns, label)
        ]
    for chosen, made in parts:
        for row in rows:
            name = Rich(
                "\n".join(folded(clipped(line, 200), label) for line in row.name.split("\n"))
            )
            cells = (
                _cell(text, column.width or COLUMN)
                for text, column in zip(row.cells[chosen], made.columns[1:], strict=True)
            )
            below = (
                "".join(f"\n  {line}" for line in folded(row.below, label - 2).split("\n"))
                if row.below
                else ""
            )
            made.add_row(name.append(below, "dim"), *cells)
        console.print(made)


def _cell(text: str, width: int) -> Rich:
    first, *below = (folded(clipped(line, 60), width) for line in text.split("\n"))
    return Rich(first, style=STYLES.get(first[:1], "")).append(
        "".join(f"\n{line}" for line in below), "dim"
    )


def _whole(console: Console, block: tree.Table) -> tuple[int, list[int]]:
    """Return column widths of an unsplit table."""
    longest = [
        min(24, max(map(len, (head, *(row.cells[place] for row in block.rows)))))
        for place, head in enumerate(block.columns)
    ]
    label = max(COLUMN, console.width - sum(longest) - 2 * len(longest) - 2)
    room = (console.width - label) // len(longest) - 2
    return label, longest if label > COLUMN else [min(width, max(4, room)) for width in longest]


def _chunks(console: Console, schemes: Sequence[str], label: int) -> list[slice]:
    size = max(1, (console.width - label) // COLUMN)
    return [slice(start, start + size) for start in range(0, len(schemes), size)]


def _grid(console: Console, first: str, schemes: Sequence[str], label: int) -> Grid:
    column = max(COLUMN - 2, min(24, (console.width - label) // max(1, len(schemes)) - 2))
    return _lines(
        first, [clipped(name, 3 * column) for name in schemes], [column] * len(schemes), label
    )


def _lines(first: str, heads: Sequence[str], widths: Sequence[int], label: int) -> Grid:
    made = Grid(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False
    )
    for head, width in zip((first, *heads), (label, *widths), strict=True):
        made.add_column(Rich(folded(clipped(head, 60), width)), overflow="fold", width=width)
    return made


def folded(text: str, width: int) -> str:
    """Break a name at its joints, for example after a hyphen."""
    lines = [""]
    for word in _parts(clean(text), " -_"):
        # paths and lists break at finer joints if a word is too long
        for part in [word] if len(word.rstrip()) <= width else _parts(word, "./,=:]"):
            if len(lines[-1]) + len(part.rstrip()) <= width:
                lines[-1] += part
            else:
                lines.append(part)
    return "\n".join(line.strip() for line in lines if line.strip())


def _parts(text: str, joints: str) -> list[str]:
    parts = [""]
    for character in text:
        parts[-1] += character
        if character in joints:
            parts.append("")
    return parts


WRITERS: dict[type[tree.Block], Callable[[Console, Any], None]] = {
    tree.Section: _section,
    tree.Paragraph: _paragraph,
    tree.Items: _items,
    tree.Terms: _terms,
    tree.Code: _code,
    tree.Fold: _fold,
    tree.Verdicts: _verdicts,
    tree.Matrix: _matrix,
    tree.Details: _details,
    tree.Checks: _checks,
    tree.Figure: _figure,
    tree.Table: _table,
}

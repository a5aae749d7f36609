"""The tables of the terminal report: comparison, who wins, other measures."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from auditor.results.renderer import clean
from reports.figures.figures import clipped, with_error
from reports.figures.gaps import apart, gap_line, given_text, unsuited_text, untold_text
from reports.figures.matrix import MatrixCell, Measure, matrix, measured_schemes, measures, reference_point
from reports.figures.reading import Reading, unique
from reports.figures.severity import SCALE
from reports.wording.sentences import share
from reports.wording.winners import MARKS, marks, winners

COLUMN = 16
"""Characters that a scheme's column takes at least."""


def comparison(console: Console, reading: Reading) -> None:
    """Print attacks against schemes, a table for each state of knowledge, all at one sweep point."""
    rows = everything = matrix(reading)
    if not any(row.tells for row in rows):
        return
    heading(console, "Comparison", "normalized error ± half a 95 % interval; 0 exact, 1 a mere guess")
    if len(reading.points) > 1:
        console.print(Text(f"at {clipped(reading.point_text(reference_point(reading)), console.width - 4)}", style="dim"))
    label = 15 if console.width < 100 else min(32, max([24, *(len(row.attack) for row in rows if row.tells)]))
    unsuited = sum(row.unsuited for row in rows)
    untold = sum(not row.tells for row in rows) - unsuited
    rows = [row for row in rows if row.tells]
    found = marks(reading, rows)
    for knowledge in unique(row.knowledge for row in rows):
        console.print(Text(f"{clipped(knowledge, console.width - 12)} knowledge", style="italic"))
        for chosen in chunks(console, reading.schemes, label):
            made = scheme_table(console, "", reading.schemes[chosen], label)
            for row in rows:
                if row.knowledge == knowledge:
                    shown = [_cell(cell, found.get((row.knowledge, row.attack, cell.scheme), "")) for cell in row.cells[chosen]]
                    guessed = "\n  right guesses" if any(cell.guesses for cell in row.cells) else ""
                    singled = "\n  most exposed" if any(cell.exposed for cell in row.cells[chosen]) else ""
                    title = Text.assemble((clipped(row.attack, label), "bold"), f"\n  worst\n  best single{guessed}{singled}")
                    made.add_row(title, *shown)
            console.print(made)
    scale = (Text(f"{step.bars} {step.word}{_bound(step.below)}", style=step.style) for step in SCALE)
    if rows:
        console.print(Text("  ").join(scale))
    if found:
        console.print(Text(MARKS, style="dim"))
    given = ", ".join(unique(row.knowledge for row in rows if row.given))
    if given:
        console.print(Text(given_text(given), style="dim"))
    if unsuited and rows:
        console.print(Text(f"{unsuited_text(unsuited)}:", style="dim"))
        for group in apart(reading, everything)[0]:
            console.print(Padding(Text(gap_line(group), style="dim"), (0, 0, 0, 2)))
    if untold:
        console.print(Text(f"{untold_text(untold)}: see the other measures", style="dim"))


def winning(console: Console, reading: Reading) -> None:
    """Print who wins against each scheme, and why; nothing for a few attacks."""
    found = winners(reading, matrix(reading))
    if found:
        heading(console, "Who wins where, and why")
    for one in found:
        console.print(Text.assemble((clipped(one.scheme, 60), "bold"), f"  {clean(one.who)}: {one.figure}"))
        near = f"Not told apart from it: {'; '.join(map(clean, one.rivals))}. " if one.rivals else ""
        console.print(Padding(Text(f"{near}{clean(one.why)}".strip()), (0, 0, 0, 2)))


def _bound(below: float) -> str:
    return f" <{below:g}" if below < 10 else ""


def _cell(cell: MatrixCell, mark: str = "") -> Text:
    if not cell.told or cell.severity is None:
        words = {"not-applicable": "n/a", "failed": "✗ failed", "missing": "–"}
        return Text(f"\n{words.get(cell.status, cell.status)}", style="bold" if cell.status == "failed" else "dim")
    text = Text(f"{cell.severity.bars} {mark}".rstrip() + "\n", style=cell.severity.style)
    text.append(with_error(cell.worst), cell.severity.style)
    text.append(f"\n{with_error(cell.single)}" if cell.pooled else f"\n(copy {cell.coalition[0]} alone)" if cell.single else "\n–", "dim")
    text.append(f"\n{share(cell.guesses.right)}" if cell.guesses else "", "dim")
    return text.append(f"\n{clipped(cell.exposed[0], 10)} {with_error(cell.exposed[1])}", cell.severity.style) if cell.exposed else text


def other_measures(console: Console, reading: Reading) -> None:
    """Print what is neither an error nor a gain."""
    rows = measures(reading)
    if not rows:
        return
    where = reading.point_text(reference_point(reading))
    heading(console, "Other measures", f"of the largest coalition{f', at {clipped(where, 40)}' if where else ''}")
    measured = measured_schemes(rows)
    schemes = [reading.schemes[place] for place in measured]
    for chosen in chunks(console, schemes, 24):
        made = scheme_table(console, "", schemes[chosen], 24)
        for row in rows:
            made.add_row(Text(_measure_name(row)), *(Text(with_error(row.figures[place])) for place in measured[chosen]))
        console.print(made)
    if len(schemes) < len(reading.schemes):
        console.print(Text(f"of {', '.join(clean(name) for name in reading.schemes if name not in schemes)} there are none", style="dim"))


def _measure_name(row: Measure) -> str:
    by = f"\n  {clipped(row.attack, 20)}\n  {clipped(row.knowledge, 20)}" if row.attack else ""
    return clipped(row.metric, 22) + by


def chunks(console: Console, schemes: Sequence[str], label: int) -> list[slice]:
    """Split the schemes into tables that fit the width."""
    size = max(1, (console.width - label) // COLUMN)
    return [slice(start, start + size) for start in range(0, len(schemes), size)]


def scheme_table(console: Console, first: str, schemes: Sequence[str], label: int) -> Table:
    """Return an empty table with one column a scheme, as wide as the terminal lets it be."""
    column = max(COLUMN - 2, min(24, (console.width - label) // len(schemes) - 2))
    names = (folded(clipped(name, 3 * column), column) for name in schemes)
    return table(folded(clipped(first, 60), label), *names, width=column, label=label)


def heading(console: Console, title: str, aside: str = "") -> None:
    """Print a part's heading after an empty line."""
    console.print()
    console.print(Text.assemble((title, "bold underline"), (f"  {aside}" if aside else "", "dim")))


def table(first: str, *others: str, width: int | None = None, label: int | None = None) -> Table:
    """Return a table with a rule below its heads and no other lines."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    made.add_column(Text(first), overflow="fold", width=label)
    for name in others:
        made.add_column(Text(name), overflow="fold", width=width)
    return made


def folded(text: str, width: int) -> str:
    """Break a name into lines where it has joints, so that ``linearly-dependent`` never becomes ``linearly-depen|dent``."""
    lines = [""]
    for word in _parts(clean(text), " -_"):
        # a path or a list of names has finer joints, used only where a word alone is too long
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


def hanging(mark: Text, text: str, width: int) -> Text:
    """Return a mark and a long text whose further lines stand below its first."""
    indent = mark.cell_len
    lines = folded(text, max(12, width - indent)).split("\n")
    return mark + Text(f"\n{' ' * indent}".join(lines), style="bold")

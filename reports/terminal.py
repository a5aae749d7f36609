"""The report in a terminal: text, tables and plots."""

import io
import re
import shutil
from collections.abc import Sequence

from pydantic import Field
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Column, Table as Grid
from rich.text import Text as Rich

from auditor.base import clean, counted
from auditor.registry import PluginParameters, register
from auditor.results.model import AuditResult

from . import document as tree
from .charts import sparklines
from .figures import SCALE, clipped, number, said, share, unbroken
from .headline import headline
from .pages import DocumentRenderer
from .reading import Reading, unique
from .verdict import Exposure, verdicts

GOOD, BAD, OPEN = "bold color(31)", "bold color(166)", "bold color(172)"
STYLES = {"✓": GOOD, "✗": BAD, "?": OPEN, "good": GOOD, "bad": BAD, "open": OPEN}
STYLES |= {step.word: step.style for step in SCALE}
"""Colours by a cell's first word."""
COLUMN = 16
"""Least width of a scheme's column."""
MOST = 4
"""Adversaries on the first screen."""
GAUGE = 20
"""Width of a bar in characters."""
GLUE = "\ue000"
"""Space at which no line breaks; it cannot come from data."""


def held(text: str) -> str:
    """Clean text; figures keep their error bars."""
    return unbroken(said(text)).replace("\u00a0", GLUE)


@register
class Terminal(DocumentRenderer):
    """Tables and a small plot for a terminal, in colour only on request."""

    name = "table"

    class Parameters(PluginParameters):
        """Width, colour and extent of the output.

        Attributes
        ----------
        width : int or None
            Columns, at least 40; None uses the terminal's width.
        color : bool
            Whether to write ANSI colour.
        full : bool
            Whether to write more than verdict, comparison and expectations.
        """

        width: int | None = Field(None, ge=40)
        """columns of the page; the terminal's by default"""
        color: bool = False
        """whether to write colours as escape codes"""
        full: bool = True
        """whether to write everything, or verdict, comparison and expectations only"""

    def render_so_far(self, result: AuditResult) -> str:
        reading = Reading(result.disclosed())
        found = headline(reading, verdicts(reading))
        gate = found.gate if found.state == "bad" else "Nothing exposed yet"
        return f"{found.mark} {gate}. {said(found.number)}" if found.number else ""

    @property
    def brief(self) -> bool:  # type: ignore[override]
        return not self.parameters.full

    def written(self, documents: Sequence[tree.Document]) -> str:
        color, output = self.parameters.color, io.StringIO()
        self.console = Console(
            file=output,
            width=self.parameters.width or max(40, shutil.get_terminal_size((100, 24)).columns),
            force_terminal=color,
            color_system="256" if color else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            no_color=not color,
        )
        for document in documents:
            self._document(document)
        if len(documents) > 1:
            table = tree.overview(documents)
            self._rule(f"Summary of {len(table.rows)} audits")
            self._table(table)
        lines = [line.rstrip() for line in output.getvalue().replace(GLUE, " ").splitlines()]
        return "\n".join(lines).strip("\n") + "\n"

    def _document(self, document: tree.Document) -> None:
        self._rule(document.name)
        outcome = f"{document.mark} {clean(document.headline)}", STYLES.get(document.mark, "")
        if document.kind == "comparison":
            self._print(*outcome)
        self._blocks([*document.opening, *document.sections])
        if document.kind == "audit":
            self.console.print()
            self._print(*outcome)

    def _blocks(self, blocks: Sequence[tree.Block]) -> None:
        for block in tree.shown(blocks, tree.TERMINAL):
            getattr(self, f"_{type(block).__name__.lower()}")(block)

    def _rule(self, title: str) -> None:
        name = Rich(clipped(title, self.console.width - 4), style="bold")
        self.console.print(Rule(name, align="left", characters="━"))

    def _print(self, text: str, style: str = "") -> None:
        self.console.print(Rich(held(text), style=style))

    def _indented(self, text: str) -> None:
        self.console.print(Padding(Rich(held(text)), (0, 0, 0, 2)))

    def _point(self, begin: str, text: str, style: str = "") -> None:
        row = Grid.grid(padding=(0, 1))
        row.add_row(Rich(begin, style=style), Rich(held(text), style=style))
        self.console.print(Padding(row, (0, 0, 0, 2)))

    def _section(self, section: tree.Section) -> None:
        first, *rest = tree.shown(section.blocks, tree.TERMINAL)
        lead = first if isinstance(first, tree.Paragraph) and first.role == "lead" else None
        self.console.print()
        if section.title:
            explained = f"  {held(lead.text)}" if lead else ""
            title = clean(section.title), "bold underline"
            self.console.print(Rich.assemble(title, (explained, "dim")))
        self._blocks(rest if lead else [first, *rest])

    def _first(self, block: tree.First) -> None:
        self._print(f"{block.mark} {clean(block.gate)}", STYLES.get(block.mark, ""))
        if block.number:
            self._indented(block.number)
        if block.bar:
            self._point(gauge(block.bar), block.bar.text)
        for begin, text in block.points:
            self._point(begin, text, "bold" if begin == "Next:" else "")

    def _bars(self, block: tree.Bars) -> None:
        longest = max(len(bar.name) for bar in block.rows)
        wide = min(longest, max(8, self.console.width - GAUGE - 34))
        schemes = unique(bar.scheme for bar in block.rows)
        for scheme in schemes:
            if len(schemes) > 1:
                self._print(clipped(scheme, self.console.width), "bold")
            made = Grid.grid(Column(width=wide), Column(no_wrap=True), Column(), padding=(0, 1))
            for bar in block.rows:
                if bar.scheme == scheme:
                    drawn = Rich(gauge(bar), style=STYLES.get(bar.state, ""))
                    left = held(f"{share(bar.left)}, {bar.who}")
                    made.add_row(Rich(folded(clipped(bar.name, 60), wide)), drawn, left)
            self.console.print(Padding(made, (0, 0, 0, 2)))

    def _paragraph(self, block: tree.Paragraph) -> None:
        style = {"alert": BAD, "note": "dim"}.get(block.role, "dim" if block.term else "")
        term = f"{block.term} " if block.term else ""
        self.console.print(Rich.assemble((term, "bold"), (held(block.text), style)))

    def _items(self, block: tree.Items) -> None:
        lines, more = tree.cut(block.rows, block.most, tree.TERMINAL)
        for line in lines:
            self._point("·", line)
        if more:
            self._indented(more)

    def _terms(self, block: tree.Terms) -> None:
        for name, meaning, formula in block.rows:
            # not every terminal supports the hat over a letter
            text = f"{formula.replace('x̂', 'x′')}: {meaning}" if formula else meaning
            self.console.print(Rich.assemble((f"{clean(name)}  ", "bold"), (clean(text), "dim")))

    def _code(self, block: tree.Code) -> None:
        text = f"{block.title}:\n{block.text}" if block.title else block.text
        self.console.print(Rich(text.rstrip("\n")), no_wrap=True, overflow="ignore", crop=False)

    def _checks(self, block: tree.Checks) -> None:
        for one in block.found:
            mark, stated = f"{one.mark} {one.status:<9} ", clean(f"{one.stated}{one.where}")
            lines = folded(stated, max(12, self.console.width - len(mark))).split("\n")
            text = f"\n{' ' * len(mark)}".join(lines)
            self.console.print(Rich.assemble((mark, STYLES[one.mark]), (text, "bold")))
            self._indented(f"observed {one.observed}, bound {one.bound}: {one.why}")

    def _drawing(self, block: tree.Drawing) -> None:
        chart = block.chart
        if not chart.drawn:
            return
        rows = chart.chosen(chart.values)
        named = {name: [row["y"] for row in rows if row["s"] == name] for name in chart.names}
        shown = {name: points for name, points in named.items() if points}
        for (name, points), line in zip(shown.items(), sparklines([*shown.values()]), strict=True):
            ends = " → ".join(number(points[end]) for end in (0, -1))
            name = clipped(name, max(8, self.console.width - 34))
            self._print(f"  {name}  {line[: self.console.width // 2]}  {ends}")

    # -- tables

    def _matrix(self, block: tree.Matrix) -> None:
        self._table(block.table(brief=self.brief, most=MOST if self.brief else None))
        left = len(block.rows) - MOST
        if self.brief and left > 0:
            self._print(f"… and {counted(left, 'weaker attack')}", "dim")
        steps = zip(SCALE, (f" <{one.below:g}" * (one.below < 10) for one in SCALE), strict=True)
        line = Rich("  ").join(Rich(one.word + text, style=one.style) for one, text in steps)
        self.console.print(line)

    def _table(self, block: tree.Table) -> None:
        rows, more = tree.cut(block.rows, block.most, tree.TERMINAL, block.what)
        for group in unique(row.group for row in rows):
            if group:
                self._print(group, "italic")
            self._rows(block, [row for row in rows if row.group == group])
        if more:
            self._print(more, "dim")

    def _rows(self, block: tree.Table, rows: Sequence[tree.Row]) -> None:
        width, many = self.console.width, max(1, len(block.columns))
        fixed = block.kind == "schemes"
        longest = max(len(line) for row in rows for line in (block.first, *row.name.split("\n")))
        label = min(max(15, min(30, width - COLUMN * many)), max(12, longest)) if fixed else width
        size = max(1, (width - label) // COLUMN) if fixed else many
        room = max(4, min(24, (width - label) // min(size, many) - 2)) if fixed else width
        for start in range(0, many, size):
            chosen = slice(start, start + size)
            made = Grid(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
            heads = ((block.first, label), *((head, room) for head in block.columns[chosen]))
            for head, wide in heads:
                text = Rich(folded(clipped(head, 60), wide))
                made.add_column(text, overflow="fold", width=wide if fixed else None)
            for row in rows:
                made.add_row(_label(row, label), *(_cell(text, room) for text in row.cells[chosen]))
            self.console.print(made)


def gauge(bar: Exposure) -> str:
    """Draw the share unknown as a bar of blocks, with ``│`` at the target."""
    filled = round(GAUGE * min(1.0, max(0.0, bar.left.value)))
    target = min(GAUGE - 1, round(GAUGE * bar.target))
    return "".join("│" if at == target else "█" if at < filled else "·" for at in range(GAUGE))


def _label(row: tree.Row, width: int) -> Rich:
    lines = [folded(clipped(line, 200), width) for line in row.name.split("\n")]
    below = folded(held(row.below), width - 2).split("\n") if row.below else []
    return Rich("\n".join(lines)).append("".join(f"\n  {line}" for line in below), "dim")


def _cell(text: str, width: int) -> Rich:
    first, *below = (folded(held(clipped(line, 60)), width) for line in text.split("\n"))
    style = STYLES.get(first.partition(" ")[0], "")
    return Rich(first, style=style).append("".join(f"\n{line}" for line in below), "dim")


def folded(text: str, width: int) -> str:
    """Break a name at its joints, for example after a hyphen."""
    lines = [""]
    for word in _parts(text, r" \-_"):
        # paths and lists break at finer joints if a word is too long
        for part in [word] if len(word.rstrip()) <= width else _parts(word, r"./,=:\]"):
            if len(lines[-1]) + len(part.rstrip()) <= width:
                lines[-1] += part
            else:
                lines.append(part)
    return "\n".join(line.strip() for line in lines if line.strip())


def _parts(text: str, joints: str) -> list[str]:
    return re.findall(f"[^{joints}]*[{joints}]|[^{joints}]+", text)

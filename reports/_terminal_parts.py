"""The parts of the terminal report, each printed from a reading of the results."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from auditor.results import AuditResult
from reports._curves import curve, swept_paths
from reports._figures import clean, clipped, number, with_error
from reports._matrix import MatrixCell, Measure, matrix, measures, sweep_table
from reports._plot import LETTERS, Line, plot, style_of
from reports._reading import ERROR, Reading, Setting, adversary_text, unique
from reports._severity import SCALE
from reports._verdict import Verdict, verdicts
from reports._words import STATUS_MARKS, bound_text, counts, observed_text, provenance_line, where_text

SWEEP_ROWS = 12
STATUS_STYLES = {"holds": "color(31)", "fails": "bold color(166)", "undecided": "color(172)"}
FINDING_MARKS = {
    "exact": "✗",
    "gain": "✗",
    "refuted": "✗",
    "no-gain": "✓",
    "undecided": "?",
    "alone": "·",
    "not-measured": "·",
}
FINDING_STYLES = {"✗": "bold color(166)", "✓": "bold color(31)", "?": "bold color(172)", "·": ""}


def audit(console: Console, result: AuditResult) -> None:
    """Print one audit's report."""
    reading = Reading(result)
    heading = f"{clipped(result.title, console.width - 4)}"
    console.print(Rule(Text(heading, style="bold"), align="left", characters="━"))
    found = verdicts(reading)
    _verdict(console, found)
    _comparison(console, reading)
    _measures(console, reading)
    _curve(console, reading, found)
    _sweep(console, reading, found)
    _expectations(console, result)
    _notes(console, reading)
    console.print()
    console.print(Text(clean(provenance_line(result)), style="dim"))
    console.print()


def summary(console: Console, results: Sequence[AuditResult]) -> None:
    """Print one line an audit."""
    console.print(Rule(Text(f"Summary of {len(results)} audits", style="bold"), align="left", characters="━"))
    table = _table("audit", "outcome", "expectations", "strongest reconstruction")
    for result in results:
        worst = [verdict for verdict in verdicts(Reading(result)) if verdict.worst]
        lowest = min(worst, key=lambda verdict: verdict.worst.value if verdict.worst else 0.0, default=None)
        told = f"{with_error(lowest.worst)} {clipped(lowest.scheme, 24)}" if lowest else "–"
        outcome = "failed" if result.failed else "holds" if result.holds else "does not hold"
        style = STATUS_STYLES["holds" if outcome == "holds" else "fails"]
        table.add_row(Text(clipped(result.title, 40)), Text(outcome, style=style), Text(counts(result)), Text(told))
    console.print(table)


def _verdict(console: Console, found: Sequence[Verdict]) -> None:
    _heading(console, "Verdict")
    for verdict in found:
        mark = FINDING_MARKS[verdict.finding]
        grade = f" · {verdict.severity.word}" if verdict.severity and verdict.finding != "exact" else ""
        title = Text.assemble(
            (f"{mark} ", FINDING_STYLES[mark]), (clipped(verdict.scheme, console.width - 36), "bold"),
            f"  {verdict.label}", (grade, verdict.severity.style if verdict.severity else ""),
        )  # fmt: skip
        console.print(title)
        told = clean(f"{verdict.sentence} {_context(verdict)}".strip())
        console.print(Padding(Text(told), (0, 0, 0, 2)))


def _context(verdict: Verdict) -> str:
    if not verdict.adversary:
        return ""
    where = f" at {verdict.where}" if verdict.where else ""
    return f"(Strongest attack measured: {clipped(verdict.adversary, 70)}{where}.)"


def _comparison(console: Console, reading: Reading) -> None:
    rows = matrix(reading)
    if not rows:
        return
    _heading(console, "Comparison", "normalized error ± half a 95 % interval; 0 exact, 1 a mere guess")
    label = 15 if console.width < 100 else 24
    per_table = max(1, (console.width - label) // 16)
    for knowledge in unique(row.knowledge for row in rows):
        console.print(Text(f"{clipped(knowledge, console.width - 12)} knowledge", style="italic"))
        for start in range(0, len(reading.schemes), per_table):
            chosen = slice(start, start + per_table)
            names = reading.schemes[chosen]
            column = max(14, min(24, (console.width - label) // len(names) - 2))
            table = _table("", *(clipped(name, 2 * column) for name in names), width=column, label=label)
            for row in rows:
                if row.knowledge == knowledge:
                    title = Text.assemble((clipped(row.attack, label), "bold"), "\n  worst pooled\n  best single")
                    table.add_row(title, *(_cell(cell) for cell in row.cells[chosen]))
            console.print(table)
    console.print(
        Text("  ").join(Text(f"{step.bars} {step.word}{_bound(step.below)}", style=step.style) for step in SCALE)
    )


def _bound(below: float) -> str:
    return f" <{below:g}" if below < 10 else ""


def _cell(cell: MatrixCell) -> Text:
    if cell.worst is None or cell.severity is None:
        words = {"not-applicable": "n/a", "failed": "✗ failed", "missing": "–"}
        return Text(f"\n{words.get(cell.status, cell.status)}", style="bold" if cell.status == "failed" else "dim")
    text = Text(f"{cell.severity.bars}\n", style=cell.severity.style)
    text.append(with_error(cell.worst), cell.severity.style)
    return text.append(f"\n{with_error(cell.single)}", "dim")


def _measures(console: Console, reading: Reading) -> None:
    rows = measures(reading)
    if not rows:
        return
    first = reading.point_text(0)
    _heading(console, "Other measures", f"of the largest coalition{f', at {clipped(first, 40)}' if first else ''}")
    for chosen in _chunks(console, reading.schemes):
        table = _table("", *(clipped(name, 28) for name in reading.schemes[chosen]))
        for row in rows:
            table.add_row(Text(_measure_name(row)), *(Text(with_error(figure)) for figure in row.figures[chosen]))
        console.print(table)


def _sweep(console: Console, reading: Reading, found: Sequence[Verdict]) -> None:
    """Print what the sweep did to the strongest adversary, and to every figure of the release itself."""
    if not swept_paths(reading):
        return
    leader = _leader(found)
    told = [(ERROR, leader.knowledge, leader.attack)] if leader else []
    told += [(row.metric, None, None) for row in measures(reading) if row.attack is None]
    for metric, knowledge, attack in told:
        rows = sweep_table(reading, metric, knowledge, attack)
        _heading(console, f"Sweep of {clipped(metric, 30)}", clipped(adversary_text(knowledge, attack), 50))
        for chosen in _chunks(console, reading.schemes):
            table = _table("", *(clipped(name, 28) for name in reading.schemes[chosen]))
            for row in rows[:SWEEP_ROWS]:
                where = clipped(reading.point_text(row.point), 40)
                table.add_row(Text(where), *(Text(with_error(figure)) for figure in row.figures[chosen]))
            console.print(table)
        if len(rows) > SWEEP_ROWS:
            console.print(Text(f"… and {len(rows) - SWEEP_ROWS} more sweep points in the results file", style="dim"))


def _chunks(console: Console, schemes: Sequence[str]) -> list[slice]:
    """Split the schemes into tables that fit the width."""
    size = max(1, (console.width - 26) // 16)
    return [slice(start, start + size) for start in range(0, len(schemes), size)]


def _leader(found: Sequence[Verdict]) -> Setting | None:
    """Return the setting of the strongest reconstruction of all."""
    measured = [verdict for verdict in found if verdict.setting and verdict.worst]
    if not measured:
        return None
    return min(measured, key=lambda verdict: verdict.worst.value if verdict.worst else 0.0).setting


def _measure_name(row: Measure) -> str:
    by = f"\n  {clipped(row.attack, 20)}\n  {clipped(row.knowledge, 20)}" if row.attack else ""
    return clipped(row.metric, 22) + by


def _curve(console: Console, reading: Reading, found: Sequence[Verdict]) -> None:
    """Plot error against pooled copies for the adversary of the strongest verdict, one line a scheme."""
    leader = _leader(found)
    if leader is None:
        return
    settings = [(name, Setting(leader.point, name, leader.knowledge, leader.attack)) for name in reading.schemes]
    series = [(name, curve(reading, setting)) for name, setting in settings]
    if max((len(points) for _, points in series), default=0) < 2:
        return
    by_prefix = all(point.prefix for _, points in series for point in points)
    which = "in order of release" if by_prefix else "the worst coalition of each size"
    where = f" · {clean(reading.point_text(leader.point))}" if reading.point_text(leader.point) else ""
    _heading(console, "Collusion curve", clipped(f"{adversary_text(leader.knowledge, leader.attack)}{where}", 70))
    lines = [Line(name, [(point.size, point.shown.value) for point in points]) for name, points in series]
    for row in plot(lines, min(console.width, 100), 13):
        console.print(row)
    console.print(Text(f"        normalized error against copies pooled ({which})", style="dim"))
    for index, (name, points) in enumerate(series):
        if points:
            ends = f"{number(points[0].shown.value, points[0].shown.half)} → {with_error(points[-1].shown)}"
            console.print(
                Text.assemble(
                    "  ", (LETTERS[index % 26], style_of(index)), f" {clipped(name, console.width - 34)}  {ends}"
                )
            )


def _expectations(console: Console, result: AuditResult) -> None:
    if not result.expectations:
        return
    _heading(console, "Expectations", counts(result))
    for record in result.expectations:
        mark = Text(f"{STATUS_MARKS[record.status]} {record.status:<9} ", style=STATUS_STYLES[record.status])
        console.print(
            mark + Text(clipped(f"{record.expectation}{where_text(record.where)}", console.width - 14), style="bold")
        )
        told = f"observed {observed_text(record)}, bound {bound_text(record)}: {record.why}"
        console.print(Padding(Text(clean(told)), (0, 0, 0, 2)))


def _notes(console: Console, reading: Reading) -> None:
    gaps = reading.gaps()
    if not gaps:
        return
    _heading(console, "Notes")
    for gap in gaps:
        who = f"{clipped(gap.scheme, 40)} · {clipped(adversary_text(gap.knowledge, gap.attack), 60)}"
        kind = "✗ failed" if gap.status == "failed" else "not applicable"
        where = f" ({gap.cells} {'cell' if gap.cells == 1 else 'cells'})"
        console.print(Text(f"{kind}: {who}{where}: {clean(gap.reason)}"))


def _heading(console: Console, title: str, aside: str = "") -> None:
    console.print()
    console.print(Text.assemble((title, "bold underline"), (f"  {aside}" if aside else "", "dim")))


def _table(first: str, *others: str, width: int | None = None, label: int | None = None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column(Text(first), overflow="fold", width=label)
    for name in others:
        table.add_column(Text(name), overflow="fold", width=width)
    return table

"""The parts of the terminal report, each printed from a reading of the results."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from auditor.results.model import AuditResult
from auditor.results.renderer import clean
from reports.charts.parts import collusion, who
from reports.charts.plot import LETTERS, Line, plot, style_of
from reports.figures.curves import curve
from reports.figures.figures import clipped, number, with_error
from reports.figures.gaps import apart, gap_line
from reports.figures.matrix import matrix
from reports.figures.reading import Reading
from reports.layout.terminal_more import detail, ending, tables
from reports.layout.terminal_tables import comparison, hanging, heading, other_measures, table, winning
from reports.wording.card import Verdict, most_telling
from reports.wording.card import summary as counted
from reports.wording.detail import assumptions, facts, shortened, strongest_cells
from reports.wording.prose import terms
from reports.wording.verdict import verdicts
from reports.wording.words import (
    OUTCOMES,
    STATUS_MARKS,
    bound_text,
    counts,
    observed_text,
    outcome,
    partial_text,
    where_text,
)  # fmt: skip

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
    title = clipped(result.title, console.width - 4)
    console.print(Rule(Text(title, style="bold"), align="left", characters="━"))
    if result.partial is not None:
        console.print(Text(clean(partial_text(result)), style=STATUS_STYLES["fails"]))
    found = verdicts(reading)
    _verdict(console, found, reading)
    comparison(console, reading)
    winning(console, reading)
    _details(console, reading)
    other_measures(console, reading)
    _curve(console, reading)
    tables(console, reading)
    _expectations(console, result)
    _gaps(console, reading)
    ending(console, reading, categories=any(verdict.guesses for verdict in found))
    console.print()
    _outcome(console, result, found)
    console.print()


def _outcome(console: Console, result: AuditResult, found: list[Verdict]) -> None:
    """End with the verdicts counted and as the exit status does: the last lines are those in sight."""
    if counted(found):
        console.print(Text(counted(found)))
    came = outcome(result)
    style = STATUS_STYLES["holds" if came in ("holds", "nothing expected") else "fails"]
    mark = {"holds": "✓", "nothing expected": "·"}.get(came, "✗")
    console.print(Text(f"{mark} {OUTCOMES[came]}" + (f": {counts(result)}" if result.expectations else ""), style=style))


def summary(console: Console, results: Sequence[AuditResult]) -> None:
    """Print one line an audit."""
    console.print(Rule(Text(f"Summary of {len(results)} audits", style="bold"), align="left", characters="━"))
    rows = table("audit", "outcome", "expectations", "strongest reconstruction")
    for result in results:
        lowest = most_telling(verdicts(Reading(result)))
        told = f"{lowest.strongest} {clipped(lowest.scheme, 24)}" if lowest else "–"
        came = outcome(result)
        style = STATUS_STYLES["holds" if came in ("holds", "nothing expected") else "fails"]
        rows.add_row(Text(clipped(result.title, 40)), Text(came, style=style), Text(counts(result)), Text(told))
    console.print(rows)


def _verdict(console: Console, found: list[Verdict], reading: Reading) -> None:
    heading(console, "Verdict")
    for verdict in found:
        mark = FINDING_MARKS[verdict.finding]
        grade = f" · {verdict.grade}" if verdict.grade else ""
        title = Text.assemble(
            (f"{mark} ", FINDING_STYLES[mark]), (clipped(verdict.scheme, console.width - 36), "bold"),
            f"  {verdict.label}", (grade, verdict.severity.style if verdict.severity else ""),
        )  # fmt: skip
        console.print(title)
        exposed = "".join(text for text, _ in verdict.aside)
        told = clean(" ".join(part for part in (verdict.sentence, exposed, _context(verdict)) if part))
        console.print(Padding(Text(told), (0, 0, 0, 2)))
    if any(verdict.axes for verdict in found):
        numbers, categories = (any(getattr(verdict, part) is not None for verdict in found) for part in ("worst", "guesses"))
        console.print(Text(terms(numbers=numbers, categories=categories), style="dim"))


def _context(verdict: Verdict) -> str:
    if not verdict.adversary:
        return ""
    where = f" at {verdict.where}" if verdict.where else ""
    return f"(Strongest attack measured: {clipped(verdict.adversary, 70)}{where}.)"


def _details(console: Console, reading: Reading) -> None:
    """Print what the page's cells open, of the strongest attack against each scheme."""
    found = strongest_cells(reading)
    if found:
        heading(console, "In detail", "the strongest attack against each scheme; the page opens every cell")
    for row, cell in found:
        told = " · ".join(f"{clipped(fact.term, 60)}: {clean(fact.text)}" for fact in shortened(facts(reading, row.knowledge, cell)))
        assumed = assumptions(reading, row.attack, row.knowledge, cell)
        lines = [f"{one.who}: {clean(one.text)} {clean(one.here)}".rstrip() for one in assumed if one.here]
        detail(console, f"{clipped(row.attack, 60)} against {clipped(cell.scheme, 60)}", told, lines)


def _curve(console: Console, reading: Reading) -> None:
    """Plot error against pooled copies for the leading adversary, one line a scheme."""
    found = collusion(reading)
    if found is None:
        return
    lead, told = found
    series = [(name, curve(reading, lead._replace(scheme=name))) for name in reading.schemes]
    heading(console, "Collusion curves", clipped(who(reading, lead), 70))
    lines = [Line(name, [(point.size, point.shown.value) for point in points]) for name, points in series]
    for row in plot(lines, min(console.width, 100), 13):
        console.print(row)
    console.print(Text(f"        {told.note}", style="dim"))
    for index, (name, points) in enumerate(series):
        if points:
            ends = f"{number(points[0].shown.value, points[0].shown.half)} → {with_error(points[-1].shown)}"
            text = f" {clipped(name, console.width - 34)}  {ends}"
            console.print(Text.assemble("  ", (LETTERS[index % 26], style_of(index)), text))


def _expectations(console: Console, result: AuditResult) -> None:
    if not result.expectations:
        return
    heading(console, "Expectations", counts(result))
    for record in result.expectations:
        mark = Text(f"{STATUS_MARKS[record.status]} {record.status:<9} ", style=STATUS_STYLES[record.status])
        stated = f"{clean(record.expectation)}{clean(where_text(record.where))}"
        console.print(mark + Text(stated, style="bold") if len(stated) < console.width - 12 else hanging(mark, stated, console.width))
        told = f"observed {observed_text(record)}, bound {bound_text(record)}: {record.why}"
        console.print(Padding(Text(clean(told)), (0, 0, 0, 2)))


def _gaps(console: Console, reading: Reading) -> None:
    _, groups = apart(reading, matrix(reading))
    if not groups:
        return
    heading(console, "Cells without a figure")
    for group in groups:
        console.print(Text(gap_line(group)))

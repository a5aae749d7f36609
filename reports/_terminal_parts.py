"""The parts of the terminal report, each printed from a reading of the results."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from auditor.rendering import clean
from auditor.results import AuditResult
from reports._card import Verdict, most_telling
from reports._curves import curve
from reports._figures import clipped, number, with_error
from reports._gaps import gap_text, gathered
from reports._plot import LETTERS, Line, plot, style_of
from reports._reading import Reading, adversary_text
from reports._strongest import leader
from reports._terminal_more import by_copies, coalitions, method, useful
from reports._terminal_tables import comparison, distributions, hanging, heading, other_measures, sweeps, table, winning
from reports._verdict import verdicts
from reports._words import (
    OUTCOMES,
    STATUS_MARKS,
    bound_text,
    counts,
    observed_text,
    outcome,
    partial_text,
    provenance_line,
    reproduce,
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
    _verdict(console, found)
    comparison(console, reading)
    winning(console, reading)
    other_measures(console, reading)
    _curve(console, reading)
    coalitions(console, reading)
    distributions(console, reading)
    by_copies(console, reading)
    useful(console, reading)
    sweeps(console, reading)
    _expectations(console, result)
    _notes(console, reading)
    method(console, reading)
    console.print()
    console.print(Text(clean(provenance_line(result)), style="dim"))
    console.print(Text(f"Again: {clean(reproduce(result))}", style="dim"))
    _outcome(console, result)
    console.print()


def _outcome(console: Console, result: AuditResult) -> None:
    """End as the exit status does: the last line is the one that is in sight."""
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


def _verdict(console: Console, found: Sequence[Verdict]) -> None:
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


def _context(verdict: Verdict) -> str:
    if not verdict.adversary:
        return ""
    where = f" at {verdict.where}" if verdict.where else ""
    return f"(Strongest attack measured: {clipped(verdict.adversary, 70)}{where}.)"


def _curve(console: Console, reading: Reading) -> None:
    """Plot error against pooled copies for the leading adversary, one line a scheme."""
    lead = leader(reading)
    if lead is None:
        return
    settings = [(name, lead._replace(scheme=name)) for name in reading.schemes]
    series = [(name, curve(reading, setting)) for name, setting in settings]
    if max((len(points) for _, points in series), default=0) < 2:
        return
    by_prefix = all(point.prefix for _, points in series for point in points)
    which = "in order of release" if by_prefix else "the worst coalition of each size"
    where = f" · {clean(reading.point_text(lead.point))}" if reading.point_text(lead.point) else ""
    heading(console, "Collusion curve", clipped(f"{adversary_text(lead.knowledge, lead.attack)}{where}", 70))
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
    heading(console, "Expectations", counts(result))
    for record in result.expectations:
        mark = Text(f"{STATUS_MARKS[record.status]} {record.status:<9} ", style=STATUS_STYLES[record.status])
        stated = f"{clean(record.expectation)}{clean(where_text(record.where))}"
        console.print(mark + Text(stated, style="bold") if len(stated) < console.width - 12 else hanging(mark, stated, console.width))
        told = f"observed {observed_text(record)}, bound {bound_text(record)}: {record.why}"
        console.print(Padding(Text(clean(told)), (0, 0, 0, 2)))


def _notes(console: Console, reading: Reading) -> None:
    groups = gathered(reading.gaps)
    if not groups:
        return
    heading(console, "Notes")
    for group in groups:
        kind = "✗ failed" if group.status == "failed" else "not applicable"
        console.print(Text(f"{kind}: {gap_text(group)}: {clean(group.reason)}"))

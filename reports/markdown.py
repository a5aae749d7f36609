"""The report as Markdown, for pull requests and job summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from auditor.registry import register
from auditor.results.model import AuditResult
from auditor.results.renderer import Renderer
from reports.figures.figures import with_error
from reports.figures.gaps import apart, given_text, unsuited_text
from reports.figures.matrix import MatrixCell, MatrixRow, matrix, measures, reference_point
from reports.figures.reading import Reading, adversary_text, unique
from reports.layout.markdown_more import charts, details, ending, gaps, reasons, safe, table
from reports.wording.card import Verdict, summary
from reports.wording.differences import Part, basis, headline, more_text, parts
from reports.wording.prose import terms
from reports.wording.sentences import share
from reports.wording.verdict import verdicts
from reports.wording.winners import MARKS, marks, winners
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

if TYPE_CHECKING:
    from auditor.results.comparison import Comparison

DIFFERENCES = 200
"""Differences of one kind that a document lists."""


@register
class Markdown(Renderer):
    """The same as the page, in the same order, as Markdown: charts are tables, and the scenario stands in a block to be copied."""

    name = "markdown"
    suffix: ClassVar[str] = ".md"
    media_type: ClassVar[str] = "text/markdown"

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the document, one section an audit, after a summary when there are several."""
        sections = [_audit(result) for result in results]
        return "\n".join([*([_summary(results)] if len(results) > 1 else []), *sections])

    def render_comparison(self, comparison: Comparison) -> str:
        """Return what changed between two audits, worst first."""
        told = [f"# {headline(comparison)}\n\nOld: {safe(comparison.old)}. New: {safe(comparison.now)}. {basis(comparison)}\n"]
        return "\n".join([*told, *map(_part, parts(comparison))])


def _part(part: Part) -> str:
    names = [safe(f"{row.cell} {more_text(row)}".strip()) for row in part.rows[:DIFFERENCES]]
    rows = [[safe(row.metric), name, row.old, row.new, row.change] for name, row in zip(names, part.rows, strict=False)]
    made = table(["metric", "cell", "old", "new", "change"], rows) if rows else ""
    lines = "".join(f"- {safe(line)}\n" for line in part.lines[:DIFFERENCES])
    hidden = len(part.rows) + len(part.lines) - len(rows) - min(len(part.lines), DIFFERENCES)
    more = f"\n… and {hidden:,} more.\n" if hidden else ""
    return f"## {part.title} ({part.size:,})\n\n{lines}{chr(10) if lines and made else ''}{made}{more}"


def _summary(results: Sequence[AuditResult]) -> str:
    marks = {"holds": "✓ holds", "nothing expected": "· nothing expected", "partial": "✗ partial"}
    rows = [[safe(result.title), marks.get(outcome(result), f"✗ {outcome(result)}"), counts(result)] for result in results]
    return f"# {len(results)} audits\n\n{table(['audit', 'outcome', 'expectations'], rows)}"


def _audit(result: AuditResult) -> str:
    reading = Reading(result)
    found = verdicts(reading)
    parts = [
        f"## {safe(result.title)}\n",
        f"**{safe(partial_text(result))}**\n" if result.partial is not None else "",
        f"{OUTCOMES[outcome(result)]}{f': {counts(result)}' if result.expectations else ''}. {summary(found)}".rstrip() + "\n",
        _verdicts(found),
        _comparison(reading),
        _measures(reading),
        *charts(reading),
        _expectations(result),
        gaps(reading),
        *ending(reading, categories=any(verdict.guesses for verdict in found)),
    ]
    return "\n".join(part for part in parts if part)


def _verdicts(found: list[Verdict]) -> str:
    told = ((f"{v.scheme}: {v.label}.", f"{v.sentence} {_exposure(v)}".strip(), _context(v)) for v in found)
    lines = "".join(f"- **{safe(name)}** {safe(text)}{context}\n" for name, text, context in told)
    numbers, categories = (any(getattr(verdict, part) is not None for verdict in found) for part in ("worst", "guesses"))
    explained = f"\n{safe(terms(numbers=numbers, categories=categories))}\n" if numbers or categories else ""
    return f"### Verdict\n\n{lines}{explained}"


def _context(verdict: Verdict) -> str:
    where = f" at {safe(verdict.where)}" if verdict.where else ""
    return f" (Strongest attack measured: {safe(verdict.adversary)}{where}.)" if verdict.adversary else ""


def _exposure(verdict: Verdict) -> str:
    return "".join(text for text, _ in verdict.aside)


def _comparison(reading: Reading) -> str:
    found = matrix(reading)
    told = marks(reading, [row for row in found if row.tells])
    rows = [[safe(row.attack), safe(row.knowledge), *_marked(row, told)] for row in found if not row.unsuited]
    if not any(row.tells for row in found):
        return ""
    legend = f"\n{MARKS}.\n" if told else ""
    folded = sum(row.unsuited for row in found)
    note = f"\n{unsuited_text(folded)}:\n\n{reasons(apart(reading, found)[0])}" if folded else ""
    given = ", ".join(unique(row.knowledge for row in found if row.given))
    note += f"\n{safe(given_text(given))}\n" if given else ""
    made = table(["attack", "knowledge", *map(safe, reading.schemes)], rows)
    point = reading.point_text(reference_point(reading))
    where = f", all at {safe(point)}" if point else ""
    lead = f"Normalized error of the worst coalition, and of its best single copy{where}."
    return f"### Comparison\n\n{lead}\n\n{made}{legend}{note}{_winners(reading)}{details(reading)}"


def _marked(row: MatrixRow, told: dict[tuple[str, str, str], str]) -> list[str]:
    return [f"{_cell(cell)} {told.get((row.knowledge, row.attack, cell.scheme), '')}".strip() for cell in row.cells]


def _winners(reading: Reading) -> str:
    found = winners(reading, matrix(reading))
    rows = [[safe(one.scheme), safe(one.who), one.figure, safe("; ".join(one.rivals) or "–"), safe(one.why or "–")] for one in found]
    made = table(["scheme", "strongest", "leaves", "not told apart from it", "when it wins and fails"], rows)
    return f"\n#### Who wins where, and why\n\n{made}" if rows else ""


def _cell(cell: MatrixCell) -> str:
    if not cell.told or cell.severity is None:
        return {"not-applicable": "n/a", "failed": "✗ failed"}.get(cell.status, "–")
    error = f"{with_error(cell.worst)}{f' (single {with_error(cell.single)})' if cell.pooled else ''}" if cell.worst else ""
    right = f"{share(cell.guesses.right)} right" if cell.guesses else ""
    one = f"{safe(cell.exposed[0])} {with_error(cell.exposed[1])}" if cell.exposed else ""
    return f"{cell.severity.word}: {'; '.join(part for part in (error, right, one) if part)}"


def _measures(reading: Reading) -> str:
    rows = [
        [safe(m.metric), safe(adversary_text(m.knowledge, m.attack)), *map(with_error, m.figures)]
        for m in measures(reading)
    ]
    return f"### Other measures\n\n{table(['measure', 'of', *map(safe, reading.schemes)], rows)}" if rows else ""


def _expectations(result: AuditResult) -> str:
    rows = [
        [
            f"{STATUS_MARKS[r.status]} {r.status}",
            safe(r.expectation + where_text(r.where)),
            observed_text(r),
            bound_text(r),
            safe(r.why),
        ]
        for r in result.expectations
    ]
    made = table(["status", "expectation", "observed", "bound", "why"], rows)
    return f"### Expectations\n\n{counts(result)}.\n\n{made}" if rows else ""

"""Wording common to reports: statuses, filters, bounds and provenance."""

from __future__ import annotations

from typing import Any, NamedTuple

from auditor.results.model import AuditResult
from auditor.results.records import ExpectationRecord

from ..figures.figures import braces, distinct_texts, number
from ..figures.reading import plain

STATUS_MARKS = {"holds": "✓", "fails": "✗", "undecided": "?"}


class Check(NamedTuple):
    """Outcome of an expectation: statement, filter, observed, bound, reason."""

    mark: str
    status: str
    stated: str
    where: str
    observed: str
    bound: str
    why: str


def check(record: ExpectationRecord) -> Check:
    """Return an expectation's outcome, with digits that separate its numbers."""
    bounds = (
        record.bound
        if isinstance(record.bound, list)
        else []
        if record.bound is None
        else [record.bound]
    )
    observed, *limits = distinct_texts(record.observed, *bounds)
    mark, bound = STATUS_MARKS[record.status], " to ".join(limits) or number(None)
    return Check(
        mark,
        record.status,
        record.expectation,
        where_text(record.where),
        observed,
        bound,
        record.why,
    )


def where_text(where: dict[str, Any]) -> str:
    """Format an expectation's filter: `` (scheme = corner-wave)``, or empty."""
    return (
        f" ({', '.join(f'{field} = {_value(value)}' for field, value in where.items())})"
        if where
        else ""
    )


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, int) for item in value):
        return braces(value)
    return plain(value)


def counts(result: AuditResult) -> str:
    """Count the expectations by status: ``2 of 3 hold, 1 undecided``."""
    statuses: list[str] = [record.status for record in result.expectations]
    if not statuses:
        return "none stated"
    held, fail, open_ = (statuses.count(status) for status in ("holds", "fails", "undecided"))
    parts = [f"{held} of {len(statuses)} {'holds' if held == 1 else 'hold'}"]
    parts += [f"{fail} {'fails' if fail == 1 else 'fail'}"] if fail else []
    return ", ".join([*parts, *([f"{open_} undecided"] if open_ else [])])


def partial_text(result: AuditResult) -> str:
    """State how far an incomplete audit got; empty if complete."""
    part = result.partial
    if part is None:
        return ""
    done = (
        f"{part.finished} of {part.tasks} task{'s' if part.tasks != 1 else ''} finished; {part.why}"
    )
    return f"Partial: {done}. Every figure is of these alone; what is missing leaves expectations undecided. Run again with --resume."


def outcome(result: AuditResult) -> str:
    """Return the outcome of an audit in at most three words."""
    if result.partial is not None:
        return "partial"
    if result.failed:
        return "failed"
    if not result.expectations:
        return "nothing expected"
    return "holds" if result.holds else "does not hold"


OUTCOMES = {
    "holds": "Behaves as the scenario says",
    "does not hold": "Does not behave as the scenario says",
    "failed": "A part of the audit failed",
    "partial": "Partial: not every task was finished",
    "nothing expected": "No expectation was stated",
}
"""Outcomes as sentences."""


def outcome_mark(came: str, *, safe: bool = True) -> str:
    """Return an outcome's character; a tick also requires safe verdicts."""
    return ("✓" if safe else "·") if came == "holds" else {"nothing expected": "·"}.get(came, "✗")


MOST_NOTES = 20
"""Largest number of notes in a report."""


def left_out(result: AuditResult) -> list[str]:
    """Return notes on missing parts of copies, per copy and scheme."""
    found = list(
        dict.fromkeys(
            f"{release.scheme}: {note}." for release in result.releases for note in release.notes
        )
    )
    more = len(found) - MOST_NOTES
    return [
        *found[:MOST_NOTES],
        *([f"And {more} more such notes: results.json has them."] if more > 0 else []),
    ]


def rows_text(result: AuditResult) -> str:
    """Describe the audited table: ``cps, 20,000 rows × 2 attributes``."""
    if not result.data:
        return ""
    first, rows = result.data[0], sorted({table.rows for table in result.data})
    span = f"{rows[0]:,}" if len(rows) == 1 else f"{rows[0]:,} to {rows[-1]:,}"
    counts = sorted({len(table.attributes) for table in result.data})
    wide = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{first.source}, {span} rows × {wide} attribute{'s' if counts[-1] != 1 else ''}"


def disclosure_text(result: AuditResult) -> str:
    """Describe the rounding or withholding of private tables' figures."""
    kinds = {table.disclosure for table in result.data}
    rounded = "figures are rounded to what their error bars need" if "rounded" in kinds else ""
    withheld = "figures of tables with too few records are withheld" if "withheld" in kinds else ""
    return "; ".join(filter(None, (rounded, withheld)))


def provenance_terms(result: AuditResult) -> list[tuple[str, str]]:
    """Return data, seed, time and platform as terms."""
    made, rows = result.provenance, []
    for table in result.data[:1]:
        rows.append(
            ("Data", f"{table.source}: {table.description}" if table.description else table.source)
        )
        rows += [("Licence", table.licence)] if table.licence else []
    under = (
        f" (under the key {made.fingerprint_key}, which stays with the owner)"
        if made.fingerprint_key
        else ""
    )
    rows += [("Disclosure", words) for words in (disclosure_text(result),) if words]
    return [
        *rows,
        ("Table", rows_text(result)),
        ("Fingerprint", f"{made.fingerprint}{under}"),
        ("Seed", str(made.seed)),
        ("Started", f"{made.start}, took {made.duration:.1f} s"),
        ("Platform", made.platform),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]


def reproduce(result: AuditResult) -> str:
    """Return the command that repeats the audit."""
    return (
        result.provenance.command
        or f"auditor run {result.name}.yaml --seed {result.provenance.seed}"
    )

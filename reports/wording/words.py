"""Wording common to reports: outcomes, notes, provenance, scenario."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml

from auditor.results.comparison import escaped
from auditor.results.model import AuditResult
from auditor.results.records import ExpectationRecord

from ..figures.figures import braces, counted, distinct_texts, number
from ..figures.reading import plain, unique

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
    """Expectation's outcome, with digits that separate its numbers."""
    held = record.bound if isinstance(record.bound, list) else [record.bound]
    observed, *limits = distinct_texts(record.observed, *(one for one in held if one is not None))
    bound, where = " to ".join(limits) or number(None), where_text(record.where)
    mark, name = STATUS_MARKS[record.status], record.expectation
    return Check(mark, record.status, name, where, observed, bound, record.why)


def where_text(where: dict[str, Any]) -> str:
    """Format an expectation's filter: `` (scheme = corner-wave)``, or empty."""
    fields = ", ".join(f"{field} = {_value(value)}" for field, value in where.items())
    return f" ({fields})" if where else ""


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
    parts = [
        f"{held} of {len(statuses)} {'holds' if held == 1 else 'hold'}",
        f"{fail} {'fails' if fail == 1 else 'fail'}" if fail else "",
        f"{open_} undecided" if open_ else "",
    ]
    return ", ".join(filter(None, parts))


def partial_text(result: AuditResult) -> str:
    """State how far an incomplete audit got; empty if complete."""
    part = result.partial
    if part is None:
        return ""
    done = f"{part.finished} of {counted(part.tasks, 'task')} finished; {part.why}"
    return f"Partial: {done}. Every figure is of these alone; what is missing leaves expectations undecided. Run again with --resume."


def outcome(result: AuditResult) -> str:
    """Outcome of an audit in at most three words."""
    if result.partial is not None:
        return "partial"
    if result.failed:
        return "failed"
    if not result.expectations:
        return "nothing expected"
    return "holds" if result.holds else "does not hold"


MOST_NOTES = 20
"""Largest number of notes in a report."""


def left_out(result: AuditResult) -> list[str]:
    """Notes on work beyond the budget, and on missing parts of copies."""
    cut = f"The budget of {number(result.scenario.get('budget'))} s of work left out: {'; '.join(result.left_out)}."
    found = [cut] * bool(result.left_out) + unique(
        [
            *(f"{note}." for table in result.data for note in table.notes),
            *(f"{one.scheme}: {note}." for one in result.releases for note in one.notes),
        ]
    )
    more = len(found) - MOST_NOTES
    rest = [f"And {more} more notes of this kind: results.json has them."] if more > 0 else []
    return [*found[:MOST_NOTES], *rest]


def rows_text(result: AuditResult) -> str:
    """Describe the audited table: ``cps, 20,000 rows × 2 attributes``."""
    if not result.data:
        return ""
    rows = _span(table.rows for table in result.data)
    wide = _span(len(table.attributes) for table in result.data)
    many = "" if wide == "1" else "s"
    return f"{result.data[0].source}, {rows} rows × {wide} attribute{many}"


def _span(values: Iterable[int]) -> str:
    return " to ".join(unique(f"{end(held):,}" for held in [[*values]] for end in (min, max)))


def disclosure_text(result: AuditResult) -> str:
    """Describe the rounding or withholding of private tables' figures."""
    kinds = {table.disclosure for table in result.data}
    rounded = "figures are rounded to what their error bars need" if "rounded" in kinds else ""
    withheld = "figures of tables with too few records are withheld" if "withheld" in kinds else ""
    return "; ".join(filter(None, (rounded, withheld)))


def provenance_terms(result: AuditResult) -> list[tuple[str, str]]:
    """Data, seed, time and platform as terms."""
    made, table = result.provenance, next(iter(result.data), None)
    key = f" (under the key {made.fingerprint_key}, which stays with the owner)"
    found = [
        ("Data", ": ".join(filter(None, (table.source, table.description))) if table else ""),
        ("Licence", table.licence if table else ""),
        ("Disclosure", disclosure_text(result)),
        ("Table", rows_text(result)),
        ("Fingerprint", f"{made.fingerprint}{key if made.fingerprint_key else ''}"),
        ("Seed", str(made.seed)),
        ("Started", f"{made.start}, took {made.duration:.1f} s"),
        ("Platform", made.platform),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]
    return [(term, text) for term, text in found if text]


def reproduce(result: AuditResult) -> str:
    """Command that repeats the audit."""
    made = result.provenance
    return made.command or f"auditor run {result.name}.yaml --seed {made.seed}"


WIDTH = 100
"""Line width for folding at spaces; nothing is cut."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class _Dumper(yaml.SafeDumper):
    """YAML writer that quotes markup, so that its brackets can be escaped."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _TAG.search(text) else None
    )


_Dumper.add_representer(str, _text)


def plain_scenario(scenario: dict[str, Any]) -> dict[str, Any]:
    """Scenario of JSON values only."""
    found: dict[str, Any] = json.loads(json.dumps(scenario, default=str))
    return found


def scenario_yaml(scenario: dict[str, Any]) -> str:
    """Scenario as YAML that reads back to an equal scenario.

    Terminal controls, direction marks and tags become YAML escapes.
    """
    held = plain_scenario(scenario)
    text = _dumped(held, unicode=True)
    return text if escaped(text) == text else _dumped(held, unicode=False)


def _dumped(scenario: dict[str, Any], *, unicode: bool) -> str:
    text: str = yaml.dump(
        scenario, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=WIDTH
    )
    return _TAG.sub(r"\\x3C", text)

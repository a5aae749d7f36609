"""Sentences on exposure and pooling, for numbers and categories."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import yaml

from auditor.base import counted, escaped
from auditor.base.types import Names, Plain
from auditor.results.metrics import METRICS as KNOWN, base
from auditor.results.model import AuditResult
from auditor.results.records import ExpectationRecord

from .figures import (
    TEXTS,
    Figure,
    braces,
    copies,
    distinct_texts,
    listed,
    number,
    percent,
    share,
    times,
)
from .matrix import guesses, utility_meaning
from .reading import Reading, Setting, plain, unique

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


def where_text(where: Plain) -> str:
    """Format an expectation's filter: `` (scheme = corner-wave)``, or empty."""
    fields = ", ".join(f"{field} = {_value(value)}" for field, value in where.items())
    return f" ({fields})" if where else ""


def _value(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(item, int) for item in value):
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
    found = {
        "Data": ": ".join(filter(None, (table.source, table.description))) if table else "",
        "Licence": table.licence if table else "",
        "Disclosure": disclosure_text(result),
        "Table": rows_text(result),
        "Fingerprint": f"{made.fingerprint}{key if made.fingerprint_key else ''}",
        "Seed": str(made.seed),
        "Started": f"{made.start}, took {made.duration:.1f} s",
        "Platform": made.platform,
        "Versions": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
    }
    return [one for one in found.items() if one[1]]


def reproduce(result: AuditResult) -> str:
    """Command that repeats the audit."""
    made = result.provenance
    return made.command or f"auditor run {result.name}.yaml --seed {made.seed}"


WIDTH = 100
"""Line width for folding at spaces; nothing is cut."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


class _Dumper(yaml.SafeDumper):
    """YAML writer that quotes markup, so that its brackets can be escaped."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if _TAG.search(text) else None
    )


_Dumper.add_representer(str, _text)


def plain_scenario(scenario: Plain) -> Plain:
    """Scenario of JSON values only."""
    found: Plain = json.loads(json.dumps(scenario, default=str))
    return found


def scenario_yaml(scenario: Plain) -> str:
    """Scenario as YAML that reads back to an equal scenario.

    Terminal controls, direction marks and tags become YAML escapes.
    """
    held = plain_scenario(scenario)
    text = _dumped(held, unicode=True)
    return text if escaped(text) == text else _dumped(held, unicode=False)


def _dumped(scenario: Plain, *, unicode: bool) -> str:
    text: str = yaml.dump(
        scenario, Dumper=_Dumper, sort_keys=False, allow_unicode=unicode, width=WIDTH
    )
    return _TAG.sub(r"\\x3C", text)


class Numbers:
    """Sentences on the share of the variance unknown.

    ``given`` attributes are known in clear. An empty ``attribute`` means whole records.
    """

    def __init__(self, total: int, given: Names = (), attribute: str = "") -> None:
        self.total, self.attribute = total, attribute
        known = f" to an adversary who was given {listed(given)} of every record"
        self.given = known if given else ""

    def leaves(self, shown: Figure) -> str:
        """State a coalition's share unknown."""
        who = copies(shown.coalition, self.total)
        verb = "leaves" if len(shown.coalition) == 1 else "leave"
        left = f"{verb} {share(shown)} of the variance unknown{self.given}"
        return f"{who} {left}"

    def paying(self, gain: Figure, pooled: Figure, single: Figure | None) -> str:
        """State that pooling reduces the error."""
        factor = times(1 / max(1e-12, 1 - gain.value))
        before = f" from {share(single)}" if single else ""
        return (
            f"Pooling {copies(gain.coalition, self.total)} rebuilds {self.attribute or 'the records'} {factor} more accurately (in squared "
            f"error) than the most revealing single copy: the share of {'its' if self.attribute else 'the'} variance left unknown "
            f"falls{before} to {share(pooled)}{self.given}."
        )

    def exact(self, worst: Figure, single: Figure | None) -> str:
        """State an exact reconstruction."""
        error, alone = f"normalized error {number(worst.value)}", ""
        if single and worst.coalition[1:]:
            alone = f", while the most revealing single copy leaves {share(single)} of the variance unknown"
        rebuilt = f"{self.holders(worst)} rebuilds the records{exactly(worst)} ({error})"
        return f"{rebuilt}{alone}{self.given}."

    def holders(self, shown: Figure) -> str:
        """Name a coalition as the subject of a reconstruction."""
        who = copies(shown.coalition, self.total)
        return f"Pooling {who}" if shown.coalition[1:] else f"{capital(who)} alone"


class Classes(Numbers):
    """Sentences on right guesses of categories; figures are ``1 − truth``."""

    def __init__(self, total: int, reading: Reading, setting: Setting) -> None:
        super().__init__(total)
        self.reading, self.setting = reading, setting

    def leaves(self, shown: Figure) -> str:
        """State the best guess's accuracy."""
        found = guesses(self.reading, self.setting, shown.coalition)
        start = f"from {copies(shown.coalition, self.total)} "
        if found is None:
            return f"{start}the true value is given {share(shown.complement)} probability"
        blind = f"(without any copy: {percent(found.blind)})"
        return f"{start}the best guess is right for {share(found.right)} of the records {blind}"

    def paying(self, gain: Figure, pooled: Figure, single: Figure | None) -> str:
        """State that pooling raises the true value's probability."""
        before = f" from {share(single.complement)}" if single else ""
        who = copies(gain.coalition, self.total)
        found = guesses(self.reading, self.setting, gain.coalition)
        rises = f"the probability given to a record's true value rises{before} to {share(pooled.complement)}"
        if found is None:
            return f"Pooling {who}, {rises}."
        alone = f" instead of {share(found.single)} from the most revealing single copy"
        return (
            f"Pooling {who}, the best guess is right for {share(found.right)} of the records{alone if found.single else ''} (without any "
            f"copy: {percent(found.blind)}), and {rises}."
        )

    def exact(self, worst: Figure, single: Figure | None) -> str:
        """State that every record's value is known."""
        return f"{self.holders(worst)} names every record's value."


def nothing(gains: Sequence[Figure], single: Figure, numbers: Numbers) -> str:
    """State that no coalition improves on its best member."""
    most, left = max(gain.high or 0.0 for gain in gains), numbers.leaves(single)
    tried = f"of {counted(len(gains), 'coalition')} none gains more than {percent(most)}"
    return f"Pooling gains nothing: {tried} over its best copy alone; {left}."


def undecided(gains: Sequence[Figure], worst: Figure, numbers: Numbers) -> str:
    """State that the intervals decide neither way."""
    gain = max(gains, key=lambda one: one.value if one.high is None else one.high)
    bounds = f"is {percent(gain.value)}, measured without an error bar"
    if gain.low is not None and gain.high is not None:
        bounds = f"lies between {percent(gain.low)} and {percent(min(1.0, gain.high))}"
    who, left = copies(gain.coalition, numbers.total), numbers.leaves(worst)
    return f"Undecided whether pooling helps: the gain of {who} {bounds}; {left}."


def expectation(record: ExpectationRecord) -> str:
    """State an expectation's outcome."""
    status = "is undecided" if record.status == "undecided" else record.status
    return f"The expectation {record.expectation}{where_text(record.where)} {status}."


ROUNDING = 1e-12
"""Normalized error of an exact reconstruction in double precision."""


def exactly(shown: Figure) -> str:
    """Word ``exactly`` for an error that is rounding, else a caution."""
    return " exactly" if shown.value <= ROUNDING else " but for a tiny share of the variance"


def capital(text: str) -> str:
    """Capitalize an ASCII letter; μ stays, because its capital resembles M."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


class Definition(NamedTuple):
    """A term, its meaning, and its formula if any."""

    term: str
    meaning: str
    formula: str = ""


def metric_definitions(reading: Reading) -> list[Definition]:
    """Define the metrics in the results, each in a sentence."""
    found = map(_definition, reading.metrics)
    return [one._replace(meaning=f"{capital(one.meaning.rstrip('.'))}.") for one in found]


def _definition(name: str) -> Definition:
    if name in TEXTS["metrics"]:
        return Definition(name, *reversed(TEXTS["metrics"][name]))
    if name.startswith("utility_"):
        return Definition(name, utility_meaning(name))
    known = KNOWN.get(base(name))
    return Definition(name, known.meaning if known else "as its plugin defines it")


def error_bars(reading: Reading) -> list[tuple[str, str]]:
    """Describe the error bars in the results."""
    kinds = unique(
        record.error_bar for record in reading.result.measurements if record.status == "ok"
    )
    meanings = TEXTS["error bars"]
    return [(kind, f"{capital(meanings[kind])}." if kind in meanings else "") for kind in kinds]


REPLICATES = "Over replicates, values are averaged and standard errors combined as √(Σ se²)/R."
"""Rule for combining replicates."""

"""Document of an audit: first screen, pictures, then every section."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from auditor.results.comparison import Comparison
from auditor.results.metrics import EMPIRICAL, GUARANTEES, base
from auditor.results.model import AuditResult, PluginSummary
from auditor.results.records import Advice, Measurement
from auditor.results.renderer import Renderer, clean, escaped

from ..charts.audit_charts import charts
from ..charts.chart import Chart
from ..charts.values_chart import described, pictures, values_lines
from ..figures.figures import SCALE, Name, Text, braces, clipped, counted, number, with_error
from ..figures.matrix import (
    SHOWN_ELSEWHERE,
    MatrixCell,
    MatrixRow,
    gathered,
    label,
    limited_text,
    matrix,
    reference_point,
    telling,
    untried_kinds,
    untried_text,
)
from ..figures.reading import EVERYTHING, Reading, plain, unique
from ..wording.card import Verdict, most_telling
from ..wording.detail import MARKS, PROVED, assumptions, facts, least_possible, marks
from ..wording.headline import exposures, headline, remedies, reproduces_a_figure
from ..wording.sentences import (
    GUESSES,
    REPLICATES,
    Definition,
    error_bars,
    metric_definitions,
    prose,
    share,
    terms,
)
from ..wording.verdict import verdicts
from ..wording.words import (
    check,
    counts,
    left_out,
    outcome,
    partial_text,
    plain_scenario,
    provenance_terms,
    reproduce,
    rows_text,
    scenario_yaml,
)
from .advice import advice_document
from .changes import changes_document
from .diagnosis import noise, shown_columns
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    TEXT,
    Adversary,
    Bars,
    Block,
    Checks,
    Code,
    Detail,
    Document,
    Figure,
    First,
    Graded,
    Items,
    Matrix,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
    sentence,
)

BARS = 12
"""Exposures on the first level, most exposed first within a scheme."""
WHOSE = ("adversary", "coalition")
FACTS = 20
"""Facts of a cell in text."""
OPTIONS = 6
"""Metrics of a chart that get a table in text."""
ROWS = {TERMINAL: 12, MARKDOWN: 50, PAGE: 100}
CHANGES = {TERMINAL: 40, MARKDOWN: 100}
BOUNDS = {TERMINAL: 24, MARKDOWN: 60, PAGE: 300}
WHOLE = "--full prints everything; report.html has every cell and chart."
ELSEWHERE = "Every row is in results.json and results.parquet; report.html opens every cell and draws every chart."
COMPARED = (
    "Normalized error of the coalition that rebuilds most, ± half of its 95 % interval, and of its best member alone: "
    "0 exact, 1 a mere guess."
)
ONE_POINT = "Figures are at one sweep point, "
EXPOSED = "A cell that names an attribute has the grade of that attribute."
STAYS = (
    "Share of each attribute's variance that stays unknown to the strongest attack, from the copies named. "
    "The line is the target; the short mark is the most revealing copy alone."
)


def audit_document(result: AuditResult, number: int = 1, *, brief: bool = False) -> Document:
    """Return the report on an audit.

    Parameters
    ----------
    result : AuditResult
    number : int
        Place among several audits.
    brief : bool
        Whether to leave out charts, details and method.
    """
    reading, id = Reading(result), f"audit-{number}"
    found = verdicts(reading)
    first, paper = headline(reading, found), reproduces_a_figure(result)
    drawn = {one.id.removeprefix(f"{id}-"): one for one in ([] if brief else charts(reading, id))}
    shown = drawn.pop("values", None)
    swept = [key for key in drawn if key.startswith("sweep-")]
    lead = [*(swept if paper else ["frontier"] * ("frontier" in drawn)), *drawn][:1]
    leading = [_chart(key, drawn.pop(key), first=True) for key in lead]
    expected = _expectations(result, brief=brief, first=paper)
    bars = _exposure(reading, found, brief=brief, first=not paper)
    data = _values(reading, shown, first=not paper)
    sections = [
        *([*leading, expected, bars, *data] if paper else [*data, bars, *leading, expected]),
        _comparison(reading, brief=brief),
        *([_gaps(reading, failed=True)] if brief else _rest(reading, found, drawn)),
    ]
    if brief:
        sections.append(Section("whole", "", [Paragraph(WHOLE, "note")]))
    came, lowest = outcome(result), most_telling(found)
    strongest = f"{lowest.strongest} against {lowest.scheme}" if lowest else "–"
    part = f" ({came})" if came in ("partial", "failed") else ""
    cells = (f"{first.mark} {first.gate}{part}", counts(result), strongest)
    made = result.provenance
    start = made.start[:16].replace("T", " ") + " UTC" * made.start.endswith("+00:00")
    version = f"auditor {made.versions.get('auditor', '')}".strip()
    return Document(
        id,
        "audit",
        result.title,
        first.gate,
        came,
        first.mark,
        [Paragraph(partial_text(result), "alert"), First(first)],
        sections,
        [fact for fact in (rows_text(result), start, version) if fact],
        Row(result.title, cells, target=id),
    )


def _rest(reading: Reading, found: Sequence[Verdict], drawn: Mapping[str, Chart]) -> list[Section]:
    result = reading.result
    cited = _terms(((one.key, one.text) for one in result.references), "references")
    more = [_chart(*one, first=False) for one in drawn.items()]
    return [
        _schemes(reading, found),
        Section("diagnosis", "Noise of the copies", noise(reading)),
        Section("columns", "Shown columns", shown_columns(reading)),
        Section("guarantees", "Guarantees", _guarantees(reading)),
        Section("more", "More charts and measures", [*more, _measures(reading)]),
        _gaps(reading),
        Section(
            "audit",
            "Method, data and scenario",
            [
                _method(reading, categories=any(one.guesses for one in found)),
                Section("plugins", "Attacks and schemes", [_plugins(result.plugins)]),
                Section("data", "Data and provenance", _data(result)),
                _scenario(result),
                Section("references", "References", [cited]),
            ],
        ),
    ]


# -- pictures


def _exposure(reading: Reading, found: Sequence[Verdict], *, brief: bool, first: bool) -> Section:
    bars = exposures(reading, found)
    shown = sorted(sorted(bars, key=lambda bar: bar.left.value)[:BARS], key=bars.index)
    notes = [Paragraph(text, "note") for text in left_out(reading.result)]
    if len(bars) > BARS:
        rest = f"{counted(len(bars) - BARS, 'less exposed attribute')}: see «Attacks by strength»."
        notes.append(Paragraph(rest, "note"))
    lead = "share unknown to the strongest attack" if brief else STAYS
    blocks = [Paragraph(lead, "lead"), Bars(shown), *notes] if shown else notes
    return Section("exposure", "Exposure by attribute", blocks, first)


def _values(reading: Reading, chart: Chart | None, *, first: bool) -> list[Section]:
    drawn = _on_page(chart, (PAGE,)) if chart else []
    return [
        Section(
            "values",
            "Values before and after",
            [
                *drawn,
                Paragraph(described(reading, one), "lead", media=TEXT),
                Items(values_lines(one), media=TEXT),
            ],
            first,
        )
        for one in pictures(reading)[:1]
    ]


def _on_page(chart: Chart, media: tuple[str, ...]) -> list[Block]:
    return [Paragraph(chart.caption, "lead", media=(PAGE,)), Figure(chart, media=media)]


def _chart(key: str, one: Chart, *, first: bool) -> Section:
    return Section(key, one.title, [*_on_page(one, (TERMINAL, PAGE)), *_tables(one)], first)


def _tables(chart: Chart) -> list[Block]:
    options = next((one.options for one in chart.controls if one.name == "figure"), [""])
    who = [one.options[one.chosen] for one in chart.controls if one.name in WHOSE]
    made: list[Block] = []
    for place, option in enumerate(options[:OPTIONS]):
        table = data_table(chart, place if option else None)
        said = ", ".join(filter(None, (option or chart.note, *who)))
        note = Paragraph(sentence(said), "note", media=TEXT)
        made += [note, replace(table, media=TEXT)] if table.rows else []
    return made


def data_table(chart: Chart, figure: int | None = None) -> Table:
    """Return a chart's default rows, optionally of another metric, as a table."""
    names, cells = chart.table(figure)
    rows = [Row(name, [row.get(one, "–") for one in names]) for name, row in cells.items()]
    return Table(chart.first, names, rows, "schemes", most=ROWS)


# -- the comparison


def _comparison(reading: Reading, *, brief: bool) -> Section:
    rows = [row for row in matrix(reading) if row.reported]
    if not rows:
        return Section("comparison", "Attacks by strength", [])
    rows.sort(key=_strength(rows))
    found, kinds = marks(reading, rows), reading.result.attack_kinds
    names = {one.id: one.name for one in reading.result.plugins if one.kind == "attack"}
    compared = [
        Adversary(
            row.attack,
            row.knowledge,
            kinds.get(names.get(row.attack, ""), ""),
            [
                _graded(reading, row, cell, found.get((row.knowledge, row.attack, cell.scheme), ""))
                for cell in row.cells
            ],
        )
        for row in rows
    ]
    lead = "normalized error: 0 exact, 1 a mere guess" if brief else COMPARED
    blocks: list[Block] = [
        Paragraph(lead, "lead"),
        Paragraph("A cell opens its detail; a heading sorts by its column.", "hint", media=(PAGE,)),
        Matrix(reading.schemes, compared),
    ]
    blocks += [] if brief else _notes(reading, rows, marked=bool(found))
    return Section("comparison", "Attacks by strength", blocks)


def _notes(reading: Reading, rows: Sequence[MatrixRow], *, marked: bool) -> list[Block]:
    result = reading.result
    given = ", ".join(unique(row.knowledge for row in rows if row.given))
    singled = any(cell.exposed for row in rows for cell in row.cells)
    least = [
        (f"{PROVED}{text} of ", Name(name), ".")
        for name, text in least_possible(reading, reference_point(reading))
    ]
    kinds, more = untried_kinds(result)
    point = reading.point_text(reference_point(reading))
    notes: list[Text] = [
        (ONE_POINT, Name(point), ".") if point else "",
        MARKS if marked else "",
        f"Figures of {given} are over the attributes that were not given in clear."
        if given
        else "",
        EXPOSED if singled else "",
        limited_text(result.scenario.get("attacks", [])),
        *least,
        untried_text([clipped(kind, 60) for kind in kinds], more),
    ]
    untried = [*kinds.items(), *([("of kinds that were tried", more)] if more else [])]
    lines = [(f"{clipped(kind, 60)}: ", Name(", ".join(attacks))) for kind, attacks in untried]
    details = [
        _detail_text(
            _detail(reading, *min(cells, key=lambda pair: (bool(pair[1].given), pair[1].order)))
        )
        for cells in (
            [(row, row.cells[place]) for row in rows] for place in range(len(reading.schemes))
        )
        if any(cell.measured for _, cell in cells)
    ]
    return [
        *(Paragraph(note, "note") for note in notes),
        Section("untried", "Attacks that apply and were not tried", [Items(lines)]),
        Section("details", "In detail", [Items(details)], media=TEXT),
    ]


def _strength(rows: Sequence[MatrixRow]) -> Callable[[MatrixRow], tuple[float, float]]:
    least = [
        min(cells)
        for cells in zip(*([cell.order for cell in row.cells] for row in rows), strict=True)
    ]

    def order(row: MatrixRow) -> tuple[float, float]:
        left = [
            (cell.order, low) for cell, low in zip(row.cells, least, strict=True) if cell.measured
        ]
        mean = math.fsum(at for at, _ in left) / max(1, len(left))
        return min((at - low for at, low in left), default=math.inf), mean

    return order


def _graded(reading: Reading, row: MatrixRow, cell: MatrixCell, mark: str) -> Graded:
    if not cell.measured:
        gap = {"not-applicable": "n/a", "failed": "✗ failed"}.get(cell.status, "–")
        why = f"{'Failed' if cell.status == 'failed' else 'Not applicable'}: {cell.reason}"
        missing = cell.status == "missing"
        return Graded(gap, detail=None if missing else Detail(row.attack, cell.scheme, why=why))
    right = f"{share(cell.guesses.right)} right" if cell.guesses else ""
    below = [right] if cell.worst and right else []
    below += [f"single {with_error(cell.single)}"] if cell.pooled else []
    below += (
        [f"{clipped(cell.exposed[0], 24)} {with_error(cell.exposed[1])}"] if cell.exposed else []
    )
    figure = with_error(cell.worst) if cell.worst else right
    return Graded("", cell.severity, figure, below, mark, cell.order, _detail(reading, row, cell))


def _detail(reading: Reading, row: MatrixRow, cell: MatrixCell) -> Detail:
    assumed = assumptions(reading, row.attack, cell.scheme)
    return Detail(row.attack, cell.scheme, facts(reading, row.knowledge, cell), assumed)


def _detail_text(one: Detail) -> str:
    line = "; ".join(f"{clipped(fact.term, 60)}: {fact.text}" for fact in one.facts[:FACTS])
    return f"{one.attack} against {one.scheme}. {line}."


# -- further sections


def _schemes(reading: Reading, found: Sequence[Verdict]) -> Section:
    numbers = any(one.worst is not None for one in found)
    categories = any(one.guesses is not None for one in found)
    changes = Items([(Name(line),) for line in remedies(reading, found)], CHANGES)
    schemes = [
        Section(
            f"scheme-{place}",
            f"{one.mark} {one.scheme}: {one.label}",
            [Items(one.reasons or [one.sentence])],
        )
        for place, one in enumerate(found)
    ]
    note = Paragraph(terms(numbers=numbers, categories=categories), "note")
    change = Section("changes", "What would change it", [changes])
    return Section("schemes", "Each scheme", [*schemes, note, change])


def _measures(reading: Reading) -> Section:
    point, found = reference_point(reading), dict[tuple[str, str], dict[str, str]]()
    for setting, metric, attribute in reading.keys():
        elsewhere = base(metric) in SHOWN_ELSEWHERE or attribute != EVERYTHING
        if setting.point == point and not elsewhere:
            shown = telling(metric, reading.figures(setting, metric))
            cells = found.setdefault((label(reading, setting), metric), {})
            cells[setting.scheme] = with_error(shown)
    order = unique(who for who, _ in found)
    rows = [
        Row(metric, [found[who, metric].get(one, "–") for one in reading.schemes], group=who)
        for who, metric in sorted(found, key=lambda key: order.index(key[0]))
    ]
    lead = Paragraph("Of the largest coalition.", "lead")
    table = Table("measure", reading.schemes, rows, group="of")
    return Section("measures", "Other measures", [lead, table])


def _expectations(result: AuditResult, *, brief: bool, first: bool) -> Section:
    made = [*map(check, result.expectations)]
    open_ = [one for one in made if one.status != "holds"]
    title = f"Expectations of the scenario: {counts(result)}"
    shown = open_ if brief else [*open_, *(one for one in made if one.status == "holds")]
    return Section("expectations", title, [Checks(shown)] if made else [], first)


def _gaps(reading: Reading, *, failed: bool = False) -> Section:
    made: list[Block] = []
    for status, word in (("failed", "✗ failed"), ("not-applicable", "not applicable")):
        groups = [one for one in gathered(reading.gaps) if one[0] == status]
        lines = Items([(Name(name), ": ", reason) for _, name, reason in groups], ROWS)
        if groups and (status == "failed" or not failed):
            made.append(Section(status, f"{word} ({counted(len(groups), 'reason')})", [lines]))
    return Section("gaps", "Cells without a figure", made)


def _method(reading: Reading, *, categories: bool) -> Section:
    bars = _terms((f"± {kind}", meaning) for kind, meaning in error_bars(reading))
    scale = _terms(
        (f"{step.bars} {step.word}", f"{step.meaning} (normalized error {step.bound})")
        for step in SCALE
    )
    return Section(
        "method",
        "Method",
        [
            *(Paragraph(text, "plain", term) for term, text in prose(categories=categories)),
            Section("metrics", "Definitions of the metrics", [Terms(metric_definitions(reading))]),
            Section("bars", "Where the error bars come from", [bars, Paragraph(REPLICATES)]),
            Section("scale", "Severity scale", [scale, Paragraph(GUESSES * categories)]),
        ],
    )


def _terms(found: Iterable[tuple[str, str]], role: str = "definitions") -> Terms:
    return Terms([Definition(term, "", meaning) for term, meaning in found], role)  # type: ignore[arg-type]


def _plugins(plugins: Sequence[PluginSummary]) -> Terms:
    made = []
    for one in plugins:
        settings = ", ".join(
            f"{key} = {'none' if value is None else clipped(plain(value), 60)}"
            for key, value in one.parameters.items()
        )
        said = {"Assumes": one.assumes, "Reference": one.reference, "Parameters": settings}
        heads = (f"{head}: {text}" for head, text in said.items() if text)
        text = " ".join(map(sentence, filter(None, (one.summary, one.wins, *heads))))
        kind = f"{one.kind} {one.name}" if one.name != one.id else one.kind
        made.append((one.id, f"({kind}) {text}"))
    return _terms(made)


def _data(result: AuditResult) -> list[Block]:
    command = Code("command", "sh", clean(reproduce(result)), "Reproduce in one line")
    note = Paragraph(ELSEWHERE, "note", media=TEXT)
    return [_terms(provenance_terms(result), "provenance"), command, note]


def _scenario(result: AuditResult) -> Section:
    text = escaped(json.dumps(plain_scenario(result.scenario), indent=2, ensure_ascii=False))
    read = Code("yaml", "yaml", scenario_yaml(result.scenario))
    held = Code("json", "json", text, media=(PAGE,))
    return Section("scenario", "Scenario as run", [read, held])


# -- guarantees

LEAD = (
    "Guarantees for every record under the law of the noise, against every attack. The record may be any other within the stated bounds. "
    "The columns are μ of Gaussian differential privacy, ρ of zero-concentrated, ε, and ε of (ε, δ) at {}. ≤ marks an upper bound. "
    "Audited: a lower bound on μ or ε from copies of two extreme records. Noise scaled to the table's moments is assumed public."
)
HEADS = ("μ", "ρ", "ε", "ε at δ", "audited")
Bounds = Mapping[tuple[str, tuple[int, ...]], dict[str, Measurement]]


def _guarantees(reading: Reading) -> list[Block]:
    asked = reading.result.scenario.get("data")
    if not (isinstance(asked, dict) and asked.get("bounds")):
        return []
    point, found = (
        reference_point(reading),
        dict[tuple[str, tuple[int, ...]], dict[str, Measurement]](),
    )
    deltas: list[str] = []
    for record in reading.result.measurements:
        metric = base(record.metric)
        if (
            record.attack is None
            and metric in (*GUARANTEES, *EMPIRICAL)
            and record.attribute == EVERYTHING
        ):
            deltas += [record.metric] if metric == "epsilon_at_delta" else []
            if reading.point_of(record.sweep) == point:
                found.setdefault((record.scheme, record.coalition), {}).setdefault(metric, record)
    order = {scheme: place for place, scheme in enumerate(reading.schemes)}
    cells = sorted(found, key=lambda cell: (order.get(cell[0], 0), len(cell[1]), cell[1]))
    rows = [Row(braces(held), _cells(found[scheme, held]), group=scheme) for scheme, held in cells]
    delta = ", ".join(f"δ = {name.partition('(')[2].rstrip(')')}" for name in unique(deltas))
    table = Table("copies", HEADS, rows, "plain", group="scheme", most=BOUNDS)
    lead = Paragraph(LEAD.format(delta or "the stated δ"), "lead")
    return [lead, table, *_infinite(found)]


def _cells(figures: dict[str, Measurement]) -> tuple[str, ...]:
    audited = next((_bound(figures[metric]) for metric in EMPIRICAL if metric in figures), "–")
    stated = (_bound(figures.get(metric)) for metric in GUARANTEES)
    return (*stated, audited if audited == "–" else f"≥ {audited}")


def _bound(record: Measurement | None) -> str:
    if record is None or record.status != "ok":
        return "–"
    if record.value is None or math.isinf(record.value):
        return "∞"
    above = (record.reason or "").startswith("an upper bound")
    return f"{'≤ ' if above else ''}{number(record.value)}"


def _infinite(found: Bounds) -> list[Block]:
    reasons: dict[str, str] = {}
    for (scheme, coalition), figures in found.items():
        record = figures.get("epsilon_at_delta")
        if record is not None and _bound(record) == "∞" and record.reason:
            reasons.setdefault(scheme, f"{braces(coalition)}: {record.reason}")
    return [Paragraph((Name(name), f", copies {why}."), "note") for name, why in reasons.items()]


class DocumentRenderer(Renderer):
    """Base of renderers that write the document tree."""

    brief = False

    @abstractmethod
    def written(self, documents: Sequence[Document]) -> str:
        """Write one or several documents."""

    def render(self, results: Sequence[AuditResult]) -> str:
        """Return the report: one part per audit, and a summary of several."""
        found = enumerate(results, start=1)
        return self.written([audit_document(one, n, brief=self.brief) for n, one in found])

    def render_comparison(self, *comparisons: Comparison) -> str:
        """Return the differences between two audits, worst first."""
        found = enumerate(comparisons, start=1)
        return self.written([changes_document(one, n) for n, one in found])

    def render_advice(self, advice: Advice) -> str:
        """Return the recommended release, its frontier and its reasons."""
        return self.written([advice_document(advice)])

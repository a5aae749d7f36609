"""Document of an audit: first screen, pictures, then every section."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from auditor.base import clean, counted, escaped
from auditor.results.metrics import base
from auditor.results.model import AuditResult, PluginSummary

from .audit_charts import charts, described, pictures, values_lines
from .chart import Chart
from .details import MARKS, PROVED, facts, guarantees, least_possible, mark, noise, shown_columns
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    TEXT,
    Bars,
    Block,
    Checks,
    Code,
    Document,
    Figure,
    Items,
    Matrix,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
    sentence,
)
from .figures import SCALE, TEXTS, clipped, isolated, said, with_error
from .headline import headline, remedies, reproduces_a_figure
from .matrix import (
    SHOWN_ELSEWHERE,
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
from .reading import EVERYTHING, Reading, plain, unique
from .sentences import (
    REPLICATES,
    Definition,
    capital,
    check,
    counts,
    error_bars,
    left_out,
    metric_definitions,
    outcome,
    partial_text,
    plain_scenario,
    provenance_terms,
    reproduce,
    rows_text,
    scenario_yaml,
)
from .verdict import WHOLE, Verdict, most_telling, verdicts

BARS = 9
"""Exposures on the first level, most exposed first within a scheme."""
FOLDED = 4
"""Notes on the first level; further ones are folded."""
FACTS = 20
"""Facts of a cell in text."""
OPTIONS = 6
"""Metrics of a chart that get a table in text."""
ROWS = {TERMINAL: 12, MARKDOWN: 50, PAGE: 100}
CHANGES = {TERMINAL: 40, MARKDOWN: 100}
MORE = "--full prints everything; report.html has every cell and chart."
ELSEWHERE = "Every row is in results.json and results.parquet; report.html opens every cell and draws every chart."
COMPARED = (
    "Normalized error of the coalition that rebuilds most, ± half of its 95 % interval, and of its best member alone: "
    "0 exact, 1 a mere guess."
)
EXPOSED = "A cell that names an attribute has the grade of that attribute."
STAYS = "share unknown to the strongest attack"
LINES = "The line is the target; the short mark is the most revealing copy alone."


def audit_document(result: AuditResult, number: int = 1, *, brief: bool = False) -> Document:
    """Report on an audit.

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
    data = _values(reading, drawn.pop("values", None), first=not paper)
    preferred = [key for key in drawn if key.startswith("sweep-" if paper else "frontier")]
    leading = [_chart(key, drawn.pop(key), first=True) for key in [*preferred, *drawn][:1]]
    expected = _expectations(result, brief=brief, first=paper)
    bars = _exposure(reading, found, first=not paper)
    sections = [
        *([*leading, expected, bars, *data] if paper else [*data, bars, *leading, expected]),
        _comparison(reading, brief=brief),
        *([_gaps(reading, failed=True)] if brief else _rest(reading, found, drawn)),
        Section("whole", "", [Paragraph(MORE * brief, "note")]),
    ]
    came, lowest = outcome(result), most_telling(found)
    strongest = f"{lowest.scheme}: {said(lowest.exposures[0].text)}" if lowest else "–"
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
        first.mark,
        [Paragraph(partial_text(result), "alert"), first],
        sections,
        [fact for fact in (rows_text(result), start, version) if fact],
        Row(result.title, cells, target=id),
    )


def _rest(reading: Reading, found: Sequence[Verdict], drawn: Mapping[str, Chart]) -> list[Section]:
    result = reading.result
    cited = _terms(((one.key, one.text) for one in result.references), "references")
    more = [_chart(*one, first=False) for one in drawn.items()]
    command = Code("command", "sh", clean(reproduce(result)), "Reproduce in one line")
    data = [_terms(provenance_terms(result), "provenance"), command]
    return [
        _schemes(reading, found),
        Section("diagnosis", "Noise of the copies", noise(reading)),
        Section("columns", "Shown columns", shown_columns(reading)),
        Section("guarantees", "Guarantees", guarantees(reading)),
        Section("more", "More charts and measures", [*more, _measures(reading)]),
        _gaps(reading),
        Section(
            "audit",
            "Method, data and scenario",
            [
                _method(reading),
                Section("plugins", "Attacks and schemes", [_plugins(result.plugins)]),
                Section(
                    "data", "Data and provenance", [*data, Paragraph(ELSEWHERE, "note", media=TEXT)]
                ),
                _scenario(result),
                Section("references", "References", [cited]),
            ],
        ),
    ]


# -- pictures


def _exposure(reading: Reading, found: Sequence[Verdict], *, first: bool) -> Section:
    most = max(1, BARS // max(1, len(found)))
    every = [
        [bar for bar in one.exposures if bar.what != WHOLE or bar is one.most_exposed]
        for one in found
    ]
    bars = [bar for held in every for bar in held[:most]]
    notes, more = left_out(reading.result), sum(map(len, every)) - len(bars)
    if more > 0:
        notes = [*notes, f"{counted(more, 'less exposed attribute')}: see «Attacks by strength»."]
    blocks = [
        Paragraph(STAYS, "lead", media=TEXT),
        Paragraph(f"{sentence(capital(STAYS))} {LINES}", "lead", media=(PAGE,)),
        Bars(bars),
        *(Paragraph(one, "note") for one in notes[:FOLDED]),
        Section("notes", "Further notes", [Items(notes[FOLDED:])]),
    ]
    return Section("exposure", "Exposure by attribute", blocks if bars or notes else [], first)


def _values(reading: Reading, chart: Chart | None, *, first: bool) -> list[Section]:
    return [
        Section(
            "values",
            "Values before and after",
            [
                *(_on_page(chart, (PAGE,)) if chart else ()),
                Paragraph(described(reading, one), "lead", media=TEXT),
                Code("values", "", "\n".join(values_lines(one)), media=TEXT),
            ],
            first,
        )
        for one in pictures(reading)[:1]
    ]


def _on_page(chart: Chart, media: tuple[str, ...]) -> list[Block]:
    return [Paragraph(chart.caption, "lead", media=(PAGE,)), Figure(chart, media=media)]


def _chart(key: str, one: Chart, *, first: bool) -> Section:
    options = next((each.options for each in one.controls if each.name == "figure"), [""])
    who = [
        each.options[each.chosen]
        for each in one.controls
        if each.name in ("adversary", "coalition")
    ]
    blocks = _on_page(one, (TERMINAL, PAGE))
    for place, option in enumerate(options[:OPTIONS]):
        table = data_table(one, place if option else None)
        said = ", ".join(filter(None, (option or one.note, *who)))
        note = Paragraph(sentence(said), "note", media=TEXT)
        blocks += [note, replace(table, media=TEXT)] * bool(table.rows)
    return Section(key, one.title, blocks, first)


def data_table(chart: Chart, figure: int | None = None) -> Table:
    """Chart's default rows, optionally of another metric, as a table."""
    names, cells = chart.table(figure)
    rows = [Row(name, [row.get(one, "–") for one in names]) for name, row in cells.items()]
    return Table(chart.first, names, rows, "schemes", most=ROWS)


# -- the comparison


def _comparison(reading: Reading, *, brief: bool) -> Section:
    rows = [row for row in matrix(reading) if row.reported]
    rows.sort(key=_strength(rows))
    marked = mark(reading, rows)
    for cell in (cell for row in rows for cell in row.cells):
        cell.facts = facts(reading, cell)
    hint = "A cell opens its detail; a heading sorts by its column."
    blocks = [
        Paragraph("normalized error: 0 exact, 1 a mere guess" if brief else COMPARED, "lead"),
        Paragraph(hint, "hint", media=(PAGE,)),
        Matrix(reading.schemes, rows),
        *([] if brief else _notes(reading, rows, marked=marked)),
    ]
    return Section("comparison", "Attacks by strength", blocks if rows else [])


def _notes(reading: Reading, rows: Sequence[MatrixRow], *, marked: bool) -> list[Block]:
    result, place = reading.result, reference_point(reading)
    every = [cell for row in rows for cell in row.cells]
    given = ", ".join(unique(str(cell.setting.knowledge) for cell in every if cell.given))
    kinds, more = untried_kinds(result)
    point = reading.point_text(place)
    notes = [
        f"Figures are at one sweep point, {isolated(point)}." * bool(point),
        MARKS * marked,
        f"Figures of {given} are over the attributes that were not given in clear." * bool(given),
        EXPOSED * any(cell.exposed for cell in every),
        limited_text(result.scenario.get("attacks", [])),
        *(f"{PROVED}{text} of {isolated(name)}." for name, text in least_possible(reading, place)),
        untried_text([clipped(kind, 60) for kind in kinds], more),
    ]
    untried = [*kinds.items(), *([("of kinds that were tried", more)] if more else [])]
    lines = [f"{clipped(kind, 60)}: {isolated(', '.join(attacks))}" for kind, attacks in untried]
    details = []
    for place, scheme in enumerate(reading.schemes):
        held = [(row.cells[place], row.attack) for row in rows if row.cells[place].measured]
        for cell, attack in sorted(held, key=lambda one: (bool(one[0].given), one[0].order))[:1]:
            line = "; ".join(f"{clipped(term, 60)}: {text}" for term, text in cell.facts[:FACTS])
            details.append(f"{attack} against {scheme}. {line}.")
    return [
        *(Paragraph(note, "note") for note in notes),
        Section("untried", "Attacks that apply and were not tried", [Items(lines)]),
        Section("details", "In detail", [Items(details)], media=TEXT),
    ]


def _strength(rows: Sequence[MatrixRow]) -> Callable[[MatrixRow], tuple[float, float]]:
    least = [*map(min, zip(*([cell.order for cell in row.cells] for row in rows), strict=True))]

    def order(row: MatrixRow) -> tuple[float, float]:
        cells = zip(row.cells, least, strict=True)
        left = [(cell.order, low) for cell, low in cells if cell.measured]
        mean = math.fsum(at for at, _ in left) / max(1, len(left))
        return min((at - low for at, low in left), default=math.inf), mean

    return order


# -- further sections


def _schemes(reading: Reading, found: Sequence[Verdict]) -> Section:
    changes = Items(remedies(reading, found), CHANGES)
    schemes = [
        Section(f"scheme-{place}", f"{one.mark} {one.scheme}: {one.label}", [Items(one.reasons)])
        for place, one in enumerate(found)
    ]
    note = Paragraph(TEXTS["verdicts"], "note")
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
    table = Table("measure", reading.schemes, rows, group="of")
    return Section(
        "measures", "Other measures", [Paragraph("Of the largest coalition.", "lead"), table]
    )


def _expectations(result: AuditResult, *, brief: bool, first: bool) -> Section:
    made = sorted(map(check, result.expectations), key=lambda one: one.status == "holds")
    shown = [one for one in made if not (brief and one.status == "holds")]
    return Section(
        "expectations",
        f"Expectations of the scenario: {counts(result)}",
        [Checks(shown)] if made else [],
        first,
    )


def _gaps(reading: Reading, *, failed: bool = False) -> Section:
    made = []
    for status, word in (("failed", "✗ failed"), ("not-applicable", "not applicable"))[
        : 2 - failed
    ]:
        groups = [one for one in gathered(reading.gaps) if one[0] == status]
        lines = Items([f"{isolated(name)}: {reason}" for _, name, reason in groups], ROWS)
        made.append(Section(status, f"{word} ({counted(len(groups), 'reason')})", [lines]))
    return Section("gaps", "Cells without a figure", made)


def _method(reading: Reading) -> Section:
    bars = _terms((f"± {kind}", meaning) for kind, meaning in error_bars(reading))
    scale = _terms(
        (f"{step.bars} {step.word}", f"{step.meaning} (normalized error {step.bound})")
        for step in SCALE
    )
    metrics = Terms(metric_definitions(reading))
    return Section(
        "method",
        "Method",
        [
            *(Paragraph(text, "plain", term) for term, text in TEXTS["method"]),
            Section("metrics", "Definitions of the metrics", [metrics]),
            Section("bars", "Where the error bars come from", [bars, Paragraph(REPLICATES)]),
            Section("scale", "Severity scale", [scale, Paragraph(TEXTS["guesses"])]),
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


def _scenario(result: AuditResult) -> Section:
    text = escaped(json.dumps(plain_scenario(result.scenario), indent=2, ensure_ascii=False))
    read = Code("yaml", "yaml", scenario_yaml(result.scenario))
    return Section("scenario", "Scenario as run", [read, Code("json", "json", text, media=(PAGE,))])

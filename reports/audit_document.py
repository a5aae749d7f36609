"""Document of an audit: first screen, pictures, then every section."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from auditor.base import clean, counted, escaped
from auditor.base.types import Names
from auditor.results.metrics import EMPIRICAL, GUARANTEES, base
from auditor.results.model import AuditResult, PluginSummary
from auditor.results.records import Measurement

from .charts import Chart, charts, described, pictures, values_lines
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
    Drawing,
    Items,
    Matrix,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
    sentence,
)
from .figures import (
    SCALE,
    TEXTS,
    Z95,
    Figure,
    braces,
    clipped,
    copies,
    isolated,
    number,
    percent,
    rounded,
    said,
    share,
    with_error,
)
from .headline import headline, remedies, reproduces_a_figure
from .matrix import (
    SHOWN_ELSEWHERE,
    Guesses,
    MatrixCell,
    MatrixRow,
    by_strength,
    gathered,
    judged,
    knows,
    label,
    limited_text,
    losses,
    matrix,
    reference_point,
    telling,
    untried_kinds,
    untried_text,
)
from .reading import ERROR, EVERYTHING, GAIN, Reading, Setting, lowest, plain, unique
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

FAR = 4.0
"""Standard errors of disagreement with theory; chance 1 in 16,000 cells."""
LEVELS = 12
"""Largest number of levels to list."""
FLOOR = "error_floor"
PROVED = "Proved: from copies alone, no attack leaves less of the variance unknown on average than "
BEST, NEAR = "★", "☆"
MARKS = f"{BEST} strongest against its scheme  {NEAR} not told apart from it by the error bars"


def facts(reading: Reading, cell: MatrixCell) -> list[tuple[str, str]]:
    """Facts of a cell: copies, levels, errors, theory, attributes."""
    setting, held, guessed = cell.setting, cell.coalition, cell.guesses
    shown = cell.worst or (guessed.right if guessed else None)
    if shown is None:
        return []
    levels = ", ".join(map(number, shown.levels[:LEVELS]))
    levels += " …" if len(shown.levels) > LEVELS else ""
    runs = f"{shown.replicates} replicate{'s' if shown.replicates != 1 else ''}"
    counted = " (in 1 − probability of the truth)" if guessed else ""
    single, gain = cell.single, reading.figures(setting, GAIN).get(held) if held[1:] else None
    found = {
        "The adversary": knows(setting.knowledge, attack=setting.attack, categories=bool(guessed)),
        "Sweep point": reading.point_text(setting.point),
        "Worst coalition": copies(held, reading.copies_of(cell.scheme, setting.point)),
        "Its levels" if held[1:] else "Its level": levels,
        **(_guessed(cell, guessed) if guessed else {}),
        "Normalized error": with_error(cell.worst) if cell.worst else "",
        "Theory": _theory(cell.worst) if cell.worst else "",
        "Error bar from": f"{shown.error_bar}, {runs}",
        "Most revealing single copy": f"{with_error(single)} ({copies(single.coalition, 99)})"
        if single
        else "",
        f"Collusion gain{counted}": _with_theory(gain) if gain else "",
    }
    own = (
        (name, with_error(one) + ", given in clear" * (name in cell.given))
        for name in reading.attributes
        if name != EVERYTHING and (one := reading.figures(setting, ERROR, name).get(held))
    )
    return [one for one in (*found.items(), *own) if one[1]]


def _guessed(cell: MatrixCell, found: Guesses) -> dict[str, str]:
    single = share(found.single) if cell.pooled and found.single else ""
    return {
        "Right guesses": share(found.right),
        "Right guesses from the most revealing copy": single,
        "Right guesses without any copy": percent(found.blind),
        "Probability given to the truth": _with_theory(found.truth),
        "Information on a record": f"{with_error(found.bits)} bits" if found.bits else "",
    }


def _with_theory(shown: Figure) -> str:
    theory = f", theory {number(shown.theory, shown.half)}"
    return with_error(shown) + (theory if shown.theory is not None else "")


def _theory(shown: Figure) -> str:
    if shown.theory is None:
        return "no closed form"
    distance, judged = _distance_to_theory(shown), "no error bar to judge it by"
    if distance is not None:
        verb = "agrees" if distance <= FAR else "disagrees"
        judged = f"{verb}, {distance:.1f} standard errors apart"
    return f"{number(shown.theory, shown.half)}, {judged}"


def _distance_to_theory(shown: Figure) -> float | None:
    if shown.theory is None or shown.half is None:
        return None
    distance = abs(shown.value - shown.theory)
    if distance <= 1e-9 * max(1.0, abs(shown.theory)):
        return 0.0
    return distance / (shown.half / Z95) if shown.half else None


def least_possible(reading: Reading, point: int) -> list[tuple[str, str]]:
    """Each scheme's least error, as ``5.65 % from both copies``."""
    found = []
    for scheme in reading.schemes:
        least = lowest(reading.figures(Setting(point, scheme, None, None), FLOOR).values())
        if least is not None:
            who = copies(least.coalition, reading.copies_of(scheme, point))
            found.append((scheme, f"{number(100.0 * least.value)} % from {who}"))
    return found


def mark(reading: Reading, rows: Sequence[MatrixRow]) -> bool:
    """Mark the strongest cells by ★ or ☆; False if every scheme has one adversary."""
    marked = False
    for cells in zip(*(row.cells for row in rows), strict=True):
        held = {one.setting: one for one in cells if one.measured}
        contest = {
            one: shown
            for one in judged(reading, [*held])
            if (shown := lowest(losses(reading, one).values())) is not None
        }
        best = next(iter(by_strength(reading, contest)), None)
        if best is None or len(held) < 2:
            continue
        for one, shown in contest.items():
            reach = ((shown.half or 0.0) ** 2 + (contest[best].half or 0.0) ** 2) ** 0.5
            equal = _equal(shown, contest[best])
            if equal or shown.value - contest[best].value <= reach:
                held[one].mark, marked = BEST if equal else NEAR, True
    return marked


def _equal(shown: Figure, best: Figure) -> bool:
    near = abs(shown.ceiling - best.ceiling) <= 1e-9 * max(1e-9, abs(best.ceiling))
    return near and abs(shown.value - best.value) <= 1e-9


ALONE = {"values_equal": "kept", "noise_on_value": "follows the value", "rounding_step": "step"}
PAIRS = {"noise_correlation": "correlation", "noise_ratio": "ratio of sizes"}
SHOWN = {"column_equal": "kept", "column_unique": "unique"}
MOST = {TERMINAL: 24, MARKDOWN: 60, PAGE: 300}
MOST_TOLD = 6
"""Audited columns of a cell, the best told first."""
NOISE = (
    "Copies minus the original. Kept: share of values equal to the original's. Follows the value: correlation "
    "of the noise with the original. Step: all values are its multiples. A correlation of ±1 is one noise in two copies."
)
COLUMNS = (
    "Columns of the copies that are not audited. Kept: share of values equal to the original's, up to recoding. "
    "Unique: share of records with a value of their own. Tells: share of an audited column's variance between equal values."
)
BOUNDS = (
    "Guarantees for every record under the law of the noise, against every attack. The record may be any other within the stated bounds. "
    "The columns are μ of Gaussian differential privacy, ε, and ε of (ε, δ) at {}. ≤ marks an upper bound. "
    "Audited: a lower bound on μ or ε from copies of two extreme records. Noise scaled to the table's moments is assumed public."
)
Key = tuple[str, str, str]
"""Variant of a metric, scheme and copies, and attribute."""


def noise(reading: Reading) -> list[Block]:
    """Noise of each copy, and of each pair of copies, by column."""
    return [
        Paragraph(NOISE, "lead"),
        *(
            _table(
                "copies",
                [*heads.values()],
                [
                    Row(where, [cells.get(one, "–") for one in heads], group=name)
                    for (_, where, name), cells in _cells(reading, heads)
                ],
                "column",
            )
            for heads in (ALONE, PAIRS)
        ),
    ]


def shown_columns(reading: Reading) -> list[Block]:
    """Each column that copies show, and its share of the audited columns' variance."""
    told = dict[Names, list[tuple[float, str]]]()
    for (*shown, name), (_, value) in _measured(reading, ("column_tells",)):
        told.setdefault(tuple(shown), []).append((value, name))
    rows = []
    for (column, where, _), cells in _cells(reading, SHOWN):
        found = sorted(told.get((column, where), ()), reverse=True)[:MOST_TOLD]
        tells = [f"{clipped(name, 30)} {percent(min(1.0, value))}" for value, name in found]
        shares = [cells.get(one, "–") for one in SHOWN]
        rows.append(Row(clipped(column, 40), [*shares, "; ".join(tells) or "–"], group=where))
    heads = [*SHOWN.values(), "tells"]
    return [Paragraph(COLUMNS, "lead"), _table("shown column", heads, rows, "first shown by")]


def guarantees(reading: Reading) -> list[Block]:
    """Guarantees of each coalition; empty without stated bounds."""
    asked = reading.result.scenario.get("data")
    if not (isinstance(asked, dict) and asked.get("bounds")):
        return []
    point, deltas = reference_point(reading), list[str]()
    found = dict[tuple[str, tuple[int, ...]], dict[str, Measurement]]()
    for record in reading.result.measurements:
        metric = base(record.metric)
        known = metric in (*GUARANTEES, *EMPIRICAL) and record.attribute == EVERYTHING
        if record.attack is None and known:
            deltas += [record.metric] if metric == "epsilon_at_delta" else []
            if reading.point_of(record.sweep) == point:
                found.setdefault((record.scheme, record.coalition), {}).setdefault(metric, record)
    order = reading.schemes.index
    cells = sorted(found.items(), key=lambda one: (order(one[0][0]), len(one[0][1]), one[0]))
    rows = [Row(braces(held), _bounds(each), group=scheme) for (scheme, held), each in cells]
    delta = ", ".join(f"δ = {name.partition('(')[2].rstrip(')')}" for name in unique(deltas))
    reasons: dict[str, str] = {}
    for (scheme, coalition), figures in found.items():
        one = figures.get("epsilon_at_delta")
        if one is not None and _bound(one) == "∞" and one.reason:
            reasons.setdefault(scheme, f", copies {braces(coalition)}: {one.reason}.")
    return [
        Paragraph(BOUNDS.format(delta or "the stated δ"), "lead"),
        _table("copies", ("μ", "ε", "ε at δ", "audited"), rows, "scheme"),
        *(Paragraph(isolated(name) + why, "note") for name, why in reasons.items()),
    ]


def _table(first: str, heads: Names, rows: Sequence[Row], group: str) -> Table:
    return Table(first, heads, rows, "plain", group=group, most=MOST)


def _bounds(figures: Mapping[str, Measurement]) -> tuple[str, ...]:
    found = (_bound(figures.get(metric)) for metric in GUARANTEES)
    audited = next((_bound(figures[metric]) for metric in EMPIRICAL if metric in figures), "–")
    return (*found, audited if audited == "–" else f"≥ {audited}")


def _bound(record: Measurement | None) -> str:
    if record is None or record.status != "ok":
        return "–"
    if record.value is None or math.isinf(record.value):
        return "∞"
    above = (record.reason or "").startswith("an upper bound")
    return f"{'≤ ' if above else ''}{number(record.value)}"


def _cells(reading: Reading, heads: Iterable[str]) -> Iterable[tuple[Key, dict[str, str]]]:
    found = dict[Key, dict[str, str]]()
    for key, (metric, value) in _measured(reading, heads):
        shares = metric in ("values_equal", "column_equal", "column_unique")
        found.setdefault(key, {})[metric] = percent(value) if shares else rounded(value, 4)
    return found.items()


def _measured(reading: Reading, metrics: Iterable[str]) -> Iterator[tuple[Key, tuple[str, float]]]:
    point = reference_point(reading)
    for setting, metric, attribute in reading.keys():
        if setting.point == point and base(metric) in metrics:
            variant = "" if base(metric) in PAIRS else metric.partition("(")[2].removesuffix(")")
            for coalition, shown in reading.figures(setting, metric, attribute).items():
                who = copies(coalition, reading.copies_of(setting.scheme, point))
                where = f"{setting.scheme}, {who}" if len(reading.schemes) > 1 else who
                yield (variant, where, attribute), (base(metric), shown.value)


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
    return [Paragraph(chart.caption, "lead", media=(PAGE,)), Drawing(chart, media=media)]


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
        untried_text(result),
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
    return Terms([Definition(*one) for one in found], role)  # type: ignore[arg-type]


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

"""Document of an audit: every section in the order of the report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from auditor.results.model import AuditResult, PluginSummary
from auditor.results.renderer import clean, escaped

from ..figures.adversary import label
from ..figures.figures import clipped, with_error
from ..figures.gaps import (
    Gathered,
    apart,
    gap_text,
    given_text,
    limited_text,
    unmeasured_text,
    unsuited_text,
)
from ..figures.guesses import losses
from ..figures.matrix import MatrixCell, MatrixRow, matrix, measures, reference_point
from ..figures.reading import Reading, plain, unique
from ..figures.severity import SCALE
from ..wording.bounds import PROVED, least_possible
from ..wording.card import Verdict, most_telling, summary
from ..wording.detail import assumptions, facts, strongest_cells
from ..wording.method import Definition, error_bars, metric_definitions
from ..wording.prose import GUESSES, REPLICATES, prose, terms
from ..wording.remedies import remedies
from ..wording.scenario_text import plain_scenario, scenario_yaml
from ..wording.sentences import share
from ..wording.verdict import verdicts
from ..wording.winners import MARKS, marks, winners
from ..wording.words import (
    OUTCOMES,
    check,
    counts,
    left_out,
    outcome,
    outcome_mark,
    partial_text,
    provenance_terms,
    reproduce,
    rows_text,
)
from . import document as tree
from .chart_sections import by_scheme, chart_sections
from .guarantee_table import guarantees
from .kind_table import kinds, untried

ELSEWHERE = "Every row is in results.json and results.parquet; report.html opens every cell and draws every chart."

LONG = 40
"""Longest name of a state of knowledge in the comparison."""
COMPARED = "Normalized error of the coalition that rebuilds most, ± half of its 95 % interval, and that of its best member alone."
GUESSED = " Of categories also the share of records that the best guess gets right."
ONE_POINT = "where the strongest attack rebuilds most; a detail has the span over the sweep, and the sweep charts the rest."
CHANGES = "What would change it"
MOST_CHANGES = {tree.TERMINAL: 40, tree.MARKDOWN: 100}
EXPOSED = "A cell that names an attribute has its grade from that one, which is surely worse off than all attributes together."


def audit_document(result: AuditResult, number: int = 1) -> tree.Document:
    """Return the report on an audit; ``number`` is its place among several."""
    reading = Reading(result)
    found, rows = verdicts(reading), matrix(reading)
    came, name = outcome(result), f"audit-{number}"
    point = reading.point_text(reference_point(reading)) if len(reading.points) > 1 else ""
    categories, changes = any(verdict.guesses for verdict in found), remedies(reading, found)
    made = [
        _verdicts(found, point, left_out(result), changes),
        _comparison(reading, rows, point, categories=categories),
        tree.Section("guarantees", "Guarantees", guarantees(reading)),
        _measures(reading, point),
        *chart_sections(reading),
        tree.Section("expectations", "Expectations", _expectations(result)),
        tree.Section("gaps", "Cells without a figure", _gaps(apart(reading, rows)[1])),
        _method(reading, categories=categories),
        tree.Section("plugins", "Attacks and schemes", _plugins(result.plugins)),
        _data(result),
        _scenario(result),
        tree.Section(
            "references",
            "References",
            _terms(((one.key, one.text) for one in result.references), "references"),
        ),
        tree.Section(
            "changes",
            CHANGES,
            [tree.Items(_named(changes), MOST_CHANGES)] if changes else [],
            media=tree.TEXT,
        ),
    ]
    lowest, mark = (
        most_telling(found),
        outcome_mark(came, safe=all(verdict.state == "good" for verdict in found)),
    )
    cells = (
        f"{mark} {came}",
        counts(result),
        f"{lowest.strongest} against {lowest.scheme}" if lowest else "–",
    )
    return tree.Document(
        name,
        "audit",
        result.title,
        OUTCOMES[came] + (f": {counts(result)}" if result.expectations else ""),
        came,
        mark,
        [tree.Paragraph(partial_text(result), "alert")] if result.partial else [],
        [section for section in made if section.blocks],
        list(filter(None, (rows_text(result), _started(result)))),
        summary(found),
        tree.Row(result.title, cells, target=name),
        reading,
    )


def _started(result: AuditResult) -> str:
    start = result.provenance.start
    return start[:16].replace("T", " ") + " UTC" * start.endswith("+00:00")


def _named(lines: Sequence[str]) -> list[tree.Text]:
    return [(tree.Name(line),) for line in lines]


def _verdicts(
    found: Sequence[Verdict], point: str, notes: Sequence[str], changes: Sequence[str]
) -> tree.Section:
    numbers, categories = (
        any(getattr(verdict, part) is not None for verdict in found)
        for part in ("worst", "guesses")
    )
    explained = terms(numbers=numbers, categories=categories) if numbers or categories else ""
    where = (
        (
            " Unless a card says otherwise, its figures are at the sweep point ",
            tree.Name(point),
            ".",
        )
        if point
        else ()
    )
    lead = tree.Fold(
        "? What the figures mean",
        [tree.Paragraph((explained, *where), "lead")],
        open=False,
        media=(tree.PAGE,),
    )
    note = tree.Paragraph(explained, "note", media=tree.TEXT)
    cards = [tree.Verdicts(found, point), *(tree.Paragraph(text, "note") for text in notes)]
    # text media list them at the end
    cards += (
        [tree.Fold(CHANGES, [tree.Items(_named(changes))], media=(tree.PAGE,))] if changes else []
    )
    return tree.Section("verdict", "Verdict", [lead, *cards, note] if explained else cards)


# -- the comparison
# --------------------------------------------------------------------------------------------------------


def _comparison(
    reading: Reading, rows: Sequence[MatrixRow], point: str, *, categories: bool
) -> tree.Section:
    reported = [row for row in rows if row.reported]
    if not reported:
        return tree.Section("comparison", "Comparison", [])
    found, unsuited = marks(reading, reported), sum(row.unsuited for row in rows)
    elsewhere, given = (
        len(rows) - len(reported) - unsuited,
        ", ".join(unique(row.knowledge for row in reported if row.given)),
    )
    pools = any(
        len(held) > 1 for setting in reading.settings() for held in losses(reading, setting)
    )
    singled = any(cell.exposed for row in reported for cell in row.cells)
    notes = [
        MARKS if found else "",
        given_text(given) if given else "",
        EXPOSED if singled else "",
        f"{unmeasured_text(elsewhere)}; what they measure is among the other measures."
        if elsewhere
        else "",
        limited_text(reading.result.scenario.get("attacks", [])),
    ]
    aliases = _aliases(row.knowledge for row in reported)
    compared = [
        tree.Adversary(
            row.attack,
            aliases.get(row.knowledge, row.knowledge),
            [_graded(reading, row, cell, found) for cell in row.cells],
        )
        for row in reported
    ]
    return tree.Section(
        "comparison",
        "Comparison",
        [
            tree.Paragraph(
                "normalized error ± half a 95 % interval; 0 exact, 1 a mere guess",
                "lead",
                media=(tree.TERMINAL,),
            ),
            tree.Paragraph(
                f"{COMPARED}{GUESSED if categories else ''}",
                "lead",
                media=(tree.MARKDOWN, tree.PAGE),
            ),
            tree.Paragraph(
                "A cell opens its detail; a heading sorts by its column.",
                "hint",
                media=(tree.PAGE,),
            ),
            *(
                [
                    tree.Paragraph(
                        ("All cells show one sweep point, ", tree.Name(point), f", {ONE_POINT}"),
                        "note",
                    )
                ]
                if point
                else []
            ),
            tree.Matrix(reading.schemes, compared, pools),
            *_terms((alias, name) for name, alias in aliases.items()),
            *_least_possible(reading),
            *(tree.Paragraph(note, "note") for note in notes if note),
            *untried(reading.result),
            *(
                [
                    tree.Fold(
                        unsuited_text(unsuited), [_reasons(apart(reading, rows)[0])], open=False
                    )
                ]
                if unsuited
                else []
            ),
            tree.Section("kinds", "The strongest attack of each kind", kinds(reading)),
            tree.Section("winners", "Who wins where, and why", _winners(reading, reported)),
            tree.Section(
                "details",
                "In detail",
                [
                    tree.Paragraph(
                        "Of the strongest attack against each scheme; the page opens every cell.",
                        "lead",
                    ),
                    tree.Details(
                        [
                            _detail(reading, row, cell)
                            for row, cell in strongest_cells(reading, reported)
                        ]
                    ),
                ],
                media=tree.TEXT,
            ),
        ],
    )


def _least_possible(reading: Reading) -> list[tree.Block]:
    pieces: list[str] = []
    for scheme, least in least_possible(reading, reference_point(reading)):
        pieces += [f"{'; ' if pieces else PROVED}{least} of ", tree.Name(scheme)]
    return [tree.Paragraph((*pieces, "."), "note")] if pieces else []


def _aliases(names: Iterable[str]) -> dict[str, str]:
    return {
        name: f"{tree.ALIAS}{place}"
        for place, name in enumerate((one for one in unique(names) if len(one) > LONG), 1)
    }


def _graded(
    reading: Reading, row: MatrixRow, cell: MatrixCell, found: dict[tuple[str, str, str], str]
) -> tree.Graded:
    if not cell.measured:
        gap = {"not-applicable": "n/a", "failed": "✗ failed"}.get(cell.status, "–")
        why = f"{'Failed' if cell.status == 'failed' else 'Not applicable'}: {cell.reason}"
        return tree.Graded(
            gap,
            detail=None
            if cell.status == "missing"
            else tree.Detail(row.attack, cell.scheme, why=why),
        )
    return tree.Graded(
        "",
        cell.severity,
        with_error(cell.worst) if cell.worst else "",
        share(cell.guesses.right) if cell.guesses else "",
        with_error(cell.single) if cell.pooled else "",
        "" if cell.pooled or not cell.coalition else f"copy {cell.coalition[0]} alone",
        (cell.exposed[0], with_error(cell.exposed[1])) if cell.exposed else (),
        found.get((row.knowledge, row.attack, cell.scheme), ""),
        cell.order,
        _detail(reading, row, cell),
    )


def _detail(reading: Reading, row: MatrixRow, cell: MatrixCell) -> tree.Detail:
    return tree.Detail(
        row.attack,
        cell.scheme,
        facts(reading, row.knowledge, cell),
        assumptions(reading, row.attack, row.knowledge, cell),
    )


def _winners(reading: Reading, rows: Sequence[MatrixRow]) -> list[tree.Block]:
    found = winners(reading, rows)
    table = [
        tree.Row(one.scheme, (one.who, one.figure, "; ".join(one.tied) or "–", one.why or "–"))
        for one in found
    ]
    heads = ("strongest", "leaves", "not told apart from it", "when it wins and fails")
    return [tree.Table("scheme", heads, table, "entries")] if table else []


# -- other figures
# ---------------------------------------------------------------------------------------------------------


def _measures(reading: Reading, point: str) -> tree.Section:
    found = [(label(reading, one.setting), one) for one in measures(reading)]
    order = unique(who for who, _ in found)
    found.sort(key=lambda one: order.index(one[0]))
    rows = [tree.Row(one.metric, [*map(with_error, one.figures)], group=who) for who, one in found]
    lead = tree.Paragraph(
        ("Of the largest coalition", *((", at ", tree.Name(point)) if point else ()), "."), "lead"
    )
    return tree.Section(
        "measures",
        "Other measures",
        [lead, *by_scheme(reading, "measure", rows, group="of")] if rows else [],
    )


def _expectations(result: AuditResult) -> list[tree.Block]:
    return (
        [
            tree.Paragraph(f"{counts(result)}.", "lead"),
            tree.Checks([*map(check, result.expectations)]),
        ]
        if result.expectations
        else []
    )


def _gaps(found: Sequence[Gathered]) -> list[tree.Block]:
    made: list[tree.Block] = []
    for status, word in (("failed", "✗ failed"), ("not-applicable", "not applicable")):
        groups = [group for group in found if group.status == status]
        summary = f"{word} ({len(groups)} {'reason' if len(groups) == 1 else 'reasons'})"
        made += (
            [tree.Fold(summary, [_reasons(groups)], open=status == "failed" or len(groups) <= 8)]
            if groups
            else []
        )
    return made


def _reasons(groups: Sequence[Gathered]) -> tree.Items:
    return tree.Items([(tree.Name(gap_text(group)), ": ", group.reason) for group in groups])


# -- method, plugins, data and scenario
# ------------------------------------------------------------------------------------


def _method(reading: Reading, *, categories: bool) -> tree.Section:
    bars = _terms((f"± {kind}", meaning) for kind, meaning in error_bars(reading))
    scale = _terms(
        (f"{step.bars} {step.word}", f"{step.meaning} (normalized error {step.bound})")
        for step in SCALE
    )
    return tree.Section(
        "method",
        "Method",
        [
            *(tree.Paragraph(text, "plain", term) for term, text in prose(categories=categories)),
            tree.Fold("Definitions of the metrics", [tree.Terms(metric_definitions(reading))]),
            tree.Fold("Where the error bars come from", [*bars, tree.Paragraph(REPLICATES)]),
            tree.Fold(
                "Severity scale", [*scale, *([tree.Paragraph(GUESSES)] if categories else [])]
            ),
        ],
    )


def _terms(terms: Iterable[tuple[str, str]], role: str = "definitions") -> list[tree.Block]:
    found = [Definition(term, "", meaning) for term, meaning in terms]
    return [tree.Terms(found, role)] if found else []  # type: ignore[arg-type]


def _plugins(plugins: Sequence[PluginSummary]) -> list[tree.Block]:
    rows = [
        tree.Row(one.id, _about(one), f"{one.kind} {one.name}" if one.name != one.id else one.kind)
        for one in plugins
    ]
    return (
        [
            tree.Table(
                "name", ("what it does", "assumes", "reference", "parameters"), rows, "entries"
            )
        ]
        if rows
        else []
    )


def _about(plugin: PluginSummary) -> tuple[str, ...]:
    settings = ", ".join(
        f"{key} = {'none' if value is None else clipped(plain(value), 60)}"
        for key, value in plugin.parameters.items()
    )
    does = "\n".join(filter(None, (plugin.summary, plugin.wins)))
    return tuple(text or "–" for text in (does, plugin.assumes, plugin.reference, settings))


def _data(result: AuditResult) -> tree.Section:
    return tree.Section(
        "data",
        "Data and provenance",
        [
            *_terms(provenance_terms(result), "provenance"),
            tree.Code("command", "sh", clean(reproduce(result)), "Reproduce in one line"),
            tree.Paragraph(ELSEWHERE, "note", media=tree.TEXT),
        ],
    )


def _scenario(result: AuditResult) -> tree.Section:
    text = escaped(json.dumps(plain_scenario(result.scenario), indent=2, ensure_ascii=False))
    read, held = (
        tree.Code("yaml", "yaml", scenario_yaml(result.scenario)),
        tree.Code("json", "json", text, media=(tree.PAGE,)),
    )
    return tree.Section("scenario", "Scenario as run", [read, held])

"""What the page draws or explains further down, as Markdown: a table for each chart, details, and from the method to the references."""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.results.model import AuditResult, PluginSummary
from auditor.results.renderer import clean
from reports.charts.parts import Table, collusion, parts, who
from reports.figures.gaps import Gathered, apart, gap_line
from reports.figures.matrix import matrix
from reports.figures.reading import Reading, plain
from reports.figures.severity import SCALE
from reports.wording.detail import assumptions, facts, shortened, strongest_cells
from reports.wording.method import error_bars, metric_definitions
from reports.wording.prose import GUESSES, REPLICATES, prose
from reports.wording.scenario_text import scenario_yaml
from reports.wording.words import provenance_terms, reproduce

ROWS = 50
"""Rows of a table; the page and the results file have all."""
ELSEWHERE = "Every row is in results.json and results.parquet; report.html opens every cell and draws every chart."


def safe(text: object) -> str:
    """Escape what Markdown or HTML would read as markup, and what would end a table cell or make a link."""
    escaped = re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", clean(text))
    return (
        escaped.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("://", ":&#8203;//")
        .replace("@", "&#64;")
    )


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    return _row(headers) + _row(["---"] * len(headers)) + "".join(map(_row, rows))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def details(reading: Reading) -> str:
    """Return what the page's cells open, of the strongest attack against each scheme."""
    found = strongest_cells(reading)
    lines = []
    for row, cell in found:
        told = "; ".join(f"{safe(fact.term)}: {safe(fact.text)}" for fact in shortened(facts(reading, row.knowledge, cell)))
        assumed = [one for one in assumptions(reading, row.attack, row.knowledge, cell) if one.here]
        held = " ".join(f"{one.who}: {safe(one.text)} {safe(one.here)}" for one in assumed)
        lines.append(f"- **{safe(row.attack)} against {safe(cell.scheme)}.** {told}. {held}".rstrip() + "\n")
    lead = "Of the strongest attack against each scheme; the page opens every cell."
    return f"\n#### In detail\n\n{lead}\n\n{''.join(lines)}" if lines else ""


def charts(reading: Reading) -> list[str]:
    """Return a section with tables for every chart of the page."""
    made = []
    found = collusion(reading)
    if found is not None:
        lead, told = found
        made.append(_section("Collusion curves", who(reading, lead), [told], reading))
    return made + [_section(part.title, part.aside, part.tables, reading) for part in parts(reading)]


def _section(title: str, aside: str, tables: Sequence[Table], reading: Reading) -> str:
    lead = f"{safe(aside)}.\n\n" if aside else ""
    return f"### {safe(title)}\n\n{lead}{chr(10).join(_table(made, reading.schemes) for made in tables)}"


def _table(made: Table, schemes: Sequence[str]) -> str:
    note = f"{safe(made.note[:1].upper() + made.note[1:])}.\n"
    if not made.rows:
        return note
    places = made.columns()
    rows = [[_line(name), *(_line(cells[place]) for place in places)] for name, cells in made.rows[:ROWS]]
    hidden = len(made.rows) - ROWS
    more = f"\n… and {hidden:,} more {made.what}.\n" if hidden > 0 else ""
    none = [safe(name) for place, name in enumerate(schemes) if place not in places]
    rest = f"\nOf {', '.join(none)} there are none.\n" if none else ""
    return f"{note}\n{table([safe(made.first), *(safe(schemes[place]) for place in places)], rows)}{more}{rest}"


def _line(text: str) -> str:
    return safe(text.replace("\n", "; "))


def gaps(reading: Reading) -> str:
    """Return why cells have no figure."""
    _, groups = apart(reading, matrix(reading))
    return f"### Cells without a figure\n\n{reasons(groups)}" if groups else ""


def reasons(groups: Sequence[Gathered]) -> str:
    """Return gathered gaps as a list."""
    return "".join(f"- {safe(gap_line(group))}\n" for group in groups)


def ending(reading: Reading, *, categories: bool) -> list[str]:
    """Return the method, the plugins, the data, the scenario and the references."""
    result = reading.result
    plugins = [(one.id, one) for one in result.plugins]
    references = [(entry.key, entry.text) for entry in result.references]
    return [
        _method(reading, categories=categories),
        f"### Attacks and schemes\n\n{''.join(_plugin(one) for _, one in plugins)}" if plugins else "",
        _data(result),
        f"### Scenario as run\n\n{fenced(scenario_yaml(result.scenario), 'yaml')}",
        f"### References\n\n{_terms(references)}" if references else "",
    ]


def _method(reading: Reading, *, categories: bool) -> str:
    told = "".join(f"{f'**{term}** ' if term else ''}{safe(text)}\n\n" for term, text in prose(categories=categories))
    defined = ((one.term, f"{one.formula}: {one.meaning}" if one.formula else one.meaning) for one in metric_definitions(reading))
    scale = [(f"{step.bars} {step.word}", f"{step.meaning} (normalized error {step.bound})") for step in SCALE]
    bars = [(f"± {kind}", meaning) for kind, meaning in error_bars(reading)]
    guessed = f"\n{safe(GUESSES)}\n" if categories else ""
    return f"### Method\n\n{told}{_terms([*defined, *bars])}\n{safe(REPLICATES)}\n\n{_terms(scale)}{guessed}"


def _plugin(plugin: PluginSummary) -> str:
    told = ", ".join(f"{key} = {'none' if value is None else plain(value)}" for key, value in plugin.parameters.items())
    lines = {"Assumes": plugin.assumes, "Reference": plugin.reference, "Parameters": told}
    more = " ".join(f"{name}: {safe(text.rstrip('.'))}." for name, text in lines.items() if text)
    name = f"{plugin.kind} {plugin.name}" if plugin.name != plugin.id else plugin.kind
    return f"- **{safe(plugin.id)}** ({safe(name)}): {safe(' '.join(filter(None, (plugin.summary, plugin.wins))))} {more}".rstrip() + "\n"


def _data(result: AuditResult) -> str:
    command = fenced(f"{clean(reproduce(result))}\n", "sh")
    return f"### Data and provenance\n\n{_terms(provenance_terms(result))}\nReproduce in one line:\n\n{command}\n{safe(ELSEWHERE)}\n"


def _terms(terms: Sequence[tuple[str, str]]) -> str:
    return "".join(f"- **{safe(term)}**: {safe(meaning)}\n" for term, meaning in terms)


def fenced(text: str, language: str) -> str:
    """Return a block of text as it is, in a fence longer than any run of backticks in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip(chr(10))}\n{fence}\n"

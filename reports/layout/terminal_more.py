"""What the page draws or explains further down, as text: a table for each chart, and from the method to the references."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from auditor.results.model import AuditResult, PluginSummary
from auditor.results.renderer import clean
from reports.charts.parts import Table, parts
from reports.figures.figures import clipped
from reports.figures.reading import Reading, plain
from reports.figures.severity import SCALE
from reports.layout.terminal_tables import chunks, heading, scheme_table
from reports.wording.method import error_bars, metric_definitions
from reports.wording.prose import GUESSES, REPLICATES, prose
from reports.wording.scenario_text import scenario_yaml
from reports.wording.words import provenance_terms, reproduce

ELSEWHERE = "Every row is in results.json and results.parquet; report.html opens every cell and draws every chart"
SHOWN = 12
"""Rows of a table that are printed; the page and the results file have all."""
LABELS = (12, 30)
"""Characters of a first column, at least and at most."""


def tables(console: Console, reading: Reading) -> None:
    """Print what the page's charts draw beside the collusion curves, a part for each."""
    for part in parts(reading):
        heading(console, clipped(part.title, console.width), clipped(part.aside, 70))
        for made in part.tables:
            _table(console, made, reading.schemes)


def _table(console: Console, made: Table, schemes: Sequence[str]) -> None:
    console.print(Text(made.note, style="dim"))
    rows = made.rows[:SHOWN]
    label = min(LABELS[1], max([LABELS[0], *(len(line) for name, _ in rows for line in name.split("\n"))]))
    places = made.columns()
    for chosen in chunks(console, [schemes[place] for place in places], label):
        shown = scheme_table(console, made.first, [schemes[place] for place in places[chosen]], label)
        for name, cells in rows:
            shown.add_row(Text(name), *(_cell(cells[place]) for place in places[chosen]))
        console.print(shown)
    none = [clean(name) for place, name in enumerate(schemes) if place not in places]
    if none and rows:
        console.print(Text(f"of {', '.join(none)} there are none", style="dim"))
    if len(made.rows) > SHOWN:
        console.print(Text(f"… and {len(made.rows) - SHOWN:,} more {made.what} in the page and the results file", style="dim"))


def _cell(text: str) -> Text:
    first, _, below = text.partition("\n")
    return Text(first).append(f"\n{below}" if below else "", "dim")


def ending(console: Console, reading: Reading, *, categories: bool) -> None:
    """Print the method, the plugins, the data, the scenario and the references."""
    result = reading.result
    _method(console, reading, categories=categories)
    if result.plugins:
        heading(console, "Attacks and schemes")
        _terms(console, [(one.id, about(one)) for one in result.plugins])
    heading(console, "Data and provenance")
    _terms(console, provenance_terms(result))
    _uncut(console, f"Reproduce in one line:\n{clean(reproduce(result))}")
    console.print(Text(ELSEWHERE, style="dim"))
    _scenario(console, result)
    if result.references:
        heading(console, "References")
        _terms(console, [(one.key, one.text) for one in result.references])


def _method(console: Console, reading: Reading, *, categories: bool) -> None:
    heading(console, "Method")
    for term, text in prose(categories=categories):
        console.print(Text.assemble((f"{term} " if term else "", "bold"), (text, "dim")))
    # a hat over a letter is a character of no width, which not every terminal knows
    formulas = ((one.term, one.formula.replace("x̂", "x′"), one.meaning) for one in metric_definitions(reading))
    _terms(console, [(term, f"{formula}: {meaning}" if formula else meaning) for term, formula, meaning in formulas])
    _terms(console, [(f"± {kind}", meaning) for kind, meaning in error_bars(reading)])
    console.print(Text(REPLICATES, style="dim"))
    _terms(console, [(f"{step.bars} {step.word}", f"{step.meaning} (normalized error {step.bound})") for step in SCALE])
    if categories:
        console.print(Text(GUESSES, style="dim"))


def about(plugin: PluginSummary) -> str:
    """Say what a plugin does, when it wins, what it assumes, where it comes from and its parameters."""
    told = ", ".join(f"{key} = {'none' if value is None else clipped(plain(value), 60)}" for key, value in plugin.parameters.items())
    name = f"({plugin.kind} {plugin.name})" if plugin.name != plugin.id else f"({plugin.kind})"
    found = (
        name, sentence(plugin.summary), sentence(plugin.wins), f"Assumes: {sentence(plugin.assumes)}" if plugin.assumes else "",
        f"Reference: {sentence(plugin.reference)}" if plugin.reference else "", f"Parameters: {sentence(told)}" if told else "",
    )  # fmt: skip
    return " ".join(filter(None, found))


def sentence(text: str) -> str:
    """End a text with a full stop."""
    return f"{text.rstrip().rstrip('.')}." if text.strip() else ""


def _scenario(console: Console, result: AuditResult) -> None:
    """Print the scenario to be copied into a file: its lines are the page's, and no width breaks or cuts them."""
    heading(console, "Scenario as run")
    _uncut(console, scenario_yaml(result.scenario).rstrip("\n"))


def _uncut(console: Console, text: str) -> None:
    console.print(Text(text), no_wrap=True, overflow="ignore", crop=False)


def _terms(console: Console, terms: Sequence[tuple[str, str]]) -> None:
    for term, meaning in terms:
        console.print(Text.assemble((f"{clean(term)}  ", "bold"), (clean(meaning), "dim")))


def detail(console: Console, title: str, told: str, lines: Sequence[str]) -> None:
    """Print the detail of one cell: its title, its figures in a paragraph, and what was assumed, a line each."""
    console.print(Text(title, style="bold"))
    for text in (told, *lines):
        console.print(Padding(Text(text, style="dim"), (0, 0, 0, 2)))

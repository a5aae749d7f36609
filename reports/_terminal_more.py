"""What the page draws or explains further down, as text: coalitions by size, guesses by copies pooled, utility, method, references."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from auditor.printing import clean
from auditor.results import PluginSummary
from reports._along import frontier, measure_points
from reports._figures import Figure, braces, clipped, number, with_error
from reports._guesses import TRUTH
from reports._method import error_bars, metric_definitions
from reports._reading import Reading, Setting, adversary_text, lowest
from reports._strongest import leader
from reports._terminal_tables import chunks, heading, scheme_table
from reports._units import metric_title

SHOWN = 12
"""Rows of a table that are printed; the page and the results file have all."""


def coalitions(console: Console, reading: Reading) -> None:
    """Print the coalition map: of each size the worst coalition and the span of the errors; nothing where each size has one."""
    lead = leader(reading)
    if lead is None:
        return
    found = {name: _by_size(reading, lead._replace(scheme=name)) for name in reading.schemes}
    sizes = sorted({size for groups in found.values() for size in groups})
    if not any(len(group) > 1 for groups in found.values() for size, group in groups.items() if size > 1):
        return
    heading(console, "Coalition map", clipped(adversary_text(lead.knowledge, lead.attack), 60))
    console.print(Text("normalized error of the worst coalition of each size, and how high others go", style="dim"))
    for chosen in chunks(console, reading.schemes, 15):
        made = scheme_table(console, "copies", reading.schemes[chosen], 15)
        for size in sizes[:SHOWN]:
            made.add_row(Text(str(size)), *(_span(found[name].get(size, [])) for name in reading.schemes[chosen]))
        console.print(made)
    _more(console, len(sizes) - SHOWN, "sizes")


def _by_size(reading: Reading, setting: Setting) -> dict[int, list[Figure]]:
    groups: dict[int, list[Figure]] = {}
    for coalition, shown in reading.figures(setting).items():
        groups.setdefault(len(coalition), []).append(shown)
    return groups


def _span(group: list[Figure]) -> Text:
    worst = lowest(group)
    if worst is None:
        return Text("–", style="dim")
    text = Text(f"{with_error(worst)}\n{clipped(braces(worst.coalition), 14)}")
    highest = max(shown.value for shown in group)
    return text.append(f" to {number(highest, worst.half)}", "dim") if highest > worst.value else text


def by_copies(console: Console, reading: Reading) -> None:
    """Print what the leading adversary achieves in other terms by the number of copies pooled; of categories, how probable the truth is."""
    lead = leader(reading)
    points = [p for p in measure_points(reading) if lead and p.setting == lead._replace(scheme=p.setting.scheme) and p.attribute == "*"]
    if lead is None or not points:
        return
    metric = next((p.metric for p in points if p.metric == TRUTH), points[0].metric)
    found = {(p.size, p.setting.scheme): p.shown for p in points if p.metric == metric}
    sizes = sorted({size for size, _ in found})
    title = "Guesses and beliefs by copies pooled" if metric == TRUTH else "Other measures by copies pooled"
    heading(console, title, clipped(adversary_text(lead.knowledge, lead.attack), 40))
    console.print(Text(f"{metric_title(metric, reading)} of the coalition of each size that achieves most", style="dim"))
    for chosen in chunks(console, reading.schemes, 15):
        made = scheme_table(console, "copies", reading.schemes[chosen], 15)
        for size in sizes[:SHOWN]:
            made.add_row(Text(str(size)), *(Text(with_error(found.get((size, name)))) for name in reading.schemes[chosen]))
        console.print(made)
    _more(console, len(sizes) - SHOWN, "sizes")


def useful(console: Console, reading: Reading) -> None:
    """Print privacy against utility of the leading adversary: what each coalition's copies are good for, and what they leave unknown."""
    lead = leader(reading)
    points = [p for p in frontier(reading) if lead and p.setting == lead._replace(scheme=p.setting.scheme)]
    if lead is None or not points:
        return
    points.sort(key=lambda point: any(word in point.metric for word in ("error", "loss")))
    metric = points[0].metric
    found = {(p.utility.coalition, p.setting.scheme): p for p in points if p.metric == metric}
    held = list(dict.fromkeys(coalition for coalition, _ in found))
    heading(console, "Privacy and utility", clipped(adversary_text(lead.knowledge, lead.attack), 50))
    console.print(Text(f"{metric_title(metric, reading)}, and below it the normalized error", style="dim"))
    for chosen in chunks(console, reading.schemes, 15):
        made = scheme_table(console, "copies", reading.schemes[chosen], 15)
        for coalition in held[:SHOWN]:
            cells = [found.get((coalition, name)) for name in reading.schemes[chosen]]
            shown = [Text("–") if p is None else Text(f"{with_error(p.utility)}\n{with_error(p.shown)}") for p in cells]
            made.add_row(Text(clipped(braces(coalition), 15)), *shown)
        console.print(made)
    _more(console, len(held) - SHOWN, "coalitions")


def method(console: Console, reading: Reading) -> None:
    """Print what the figures mean, where error bars come from, what each plugin does and assumes, and the references."""
    heading(console, "Method", "± is half of a 95 % interval over draws of the noise; theory is the closed form of the same figure")
    # a hat over a letter is a character of no width, which not every terminal knows
    formulas = ((one.term, one.formula.replace("x̂", "x′"), one.meaning) for one in metric_definitions(reading))
    _terms(console, [(term, f"{formula}: {meaning}" if formula else meaning) for term, formula, meaning in formulas])
    _terms(console, [(f"± {kind}", meaning) for kind, meaning in error_bars(reading)])
    plugins = reading.result.plugins
    if plugins:
        heading(console, "Attacks and schemes")
        _terms(console, [(one.id, _about(one)) for one in plugins])
    if reading.result.references:
        heading(console, "References")
        _terms(console, [(one.key, one.text) for one in reading.result.references])


def _about(plugin: PluginSummary) -> str:
    assumes = f"Assumes: {plugin.assumes}" if plugin.assumes else ""
    return " ".join(part for part in (plugin.summary, assumes, f"({plugin.reference})" if plugin.reference else "") if part)


def _terms(console: Console, terms: Sequence[tuple[str, str]]) -> None:
    for term, meaning in terms:
        console.print(Text.assemble((f"{clean(term)}  ", "bold"), (clean(meaning), "dim")))


def _more(console: Console, hidden: int, what: str) -> None:
    if hidden > 0:
        console.print(Padding(Text(f"… and {hidden:,} more {what} in the page and the results file", style="dim"), (0, 0, 0, 0)))

"""Document of a comparison of two audits, worst changes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.results.comparison import Change, Comparison
from auditor.results.records import grouped
from auditor.results.renderer import clean

from ..figures.figures import Z95, Name, counted, distinct_texts, listed, number, plus_minus
from ..wording.sentences import Definition
from .document import (
    MARKDOWN,
    PAGE,
    TERMINAL,
    Block,
    Document,
    Items,
    Paragraph,
    Row,
    Section,
    Table,
    Terms,
)

MOST = {TERMINAL: 30, MARKDOWN: 200, PAGE: 500}
"""Listed differences per kind; the JSON format has all."""


class Part(NamedTuple):
    """One kind of difference: changed cells as rows, others as lines; ``size`` counts all."""

    key: str
    title: str
    changes: Sequence[Change]
    lines: Sequence[str]
    size: int


def changes_document(comparison: Comparison, number: int = 1) -> Document:
    """Return the comparison's document; ``number`` is its place among several."""
    compared = [Definition("Old", "", comparison.old), Definition("New", "", comparison.now)]
    opening = [Terms(compared, "provenance"), Paragraph(_basis(comparison), "note")]
    mark, state, word = ("✗", "worse", "worse") if comparison.worse else ("✓", "better", "no worse")
    if not comparison.compared and not comparison.worse:
        mark, state, word = "?", "open", "not compared"
    sections = [
        Section(part.key, f"{part.title} ({part.size:,})", _blocks(part), first=True)
        for part in parts(comparison)
    ]
    key = "comparison" if number == 1 else f"comparison-{number}"
    title, said = comparison.name or "Comparison of two audits", headline(comparison)
    cells = (f"{mark} {word}", f"{comparison.compared:,}", said)
    row = Row(title, cells, target=key) if comparison.name else None
    return Document(key, "comparison", title, said, state, mark, opening, sections, overview=row)


def parts(comparison: Comparison) -> list[Part]:
    """Return the differences, worst first, without empty kinds."""
    worse, better = comparison.worsened, comparison.improved
    made = [
        Part("worse", "Worse", worse, comparison.broken, _count_worse(comparison)),
        Part(
            "better", "Better", better, comparison.verdicts, len(better) + len(comparison.verdicts)
        ),
        _only("new", comparison.only_new, comparison.stated_new),
        _only("old", comparison.only_old, comparison.stated_old),
    ]
    return [part for part in made if part.size]


def _only(which: str, groups: Mapping[str, int], stated: Sequence[str]) -> Part:
    lines = [*stated, *(f"{name}: {counted(count, 'cell')}" for name, count in groups.items())]
    key = "missing" if which == "old" else which
    return Part(key, f"Only in the {which} audit", [], lines, len(stated) + sum(groups.values()))


def _blocks(part: Part) -> list[Block]:
    groups = grouped(((one.metric, one.group or one.cell), one) for one in part.changes)
    rows = [_row(held[0], len(held) - 1) for held in groups.values()]
    heads = ("old", "new", "change")
    lines = Items([(Name(clean(line)),) for line in part.lines], MOST)
    table = Table("cell", heads, rows, "figures", "differences", most=MOST)
    return [lines, table]


def _row(change: Change, more: int) -> Row:
    if change.old_error or change.new_error:
        old = _with_bar(change.old, change.old_error)
        new = _with_bar(change.new, change.new_error)
    else:
        old, new = distinct_texts(change.old, change.new)
    below = f"and {counted(more, 'more cell')} of the same scheme, attack and knowledge"
    name = f"{clean(change.metric)}: {clean(change.cell)}"
    return Row(name, (old, new, _relative(change)), below if more else "")


def _with_bar(value: float, error: float | None) -> str:
    half = None if error is None else Z95 * error
    return f"{number(value, half)} {plus_minus(half, value)}".rstrip()


def _relative(change: Change) -> str:
    if change.old == 0:
        return "from 0"
    share = 100 * (change.new - change.old) / abs(change.old)
    return f"{'+' if share > 0 else '−'}{abs(share):,.{0 if abs(share) >= 10 else 1}f} %"


def _count_worse(comparison: Comparison) -> int:
    lost = sum(comparison.lost.values()) - len(comparison.lost)
    return len(comparison.worsened) + len(comparison.broken) + lost


def headline(comparison: Comparison) -> str:
    """Summarize the comparison in one sentence."""
    if comparison.worse:
        worse = [part for part in _worse(comparison) if part]
        parted = ", and ".join(filter(None, [", ".join(worse[:-1]), worse[-1]]))
        return f"{counted(_count_worse(comparison), 'thing')} got worse: {parted}."
    if not comparison.compared:
        return "Nothing was compared: the audits have no cell in common."
    gone, stated = sum(comparison.only_old.values()), len(comparison.stated_old)
    what = [counted(gone, "cell")] if gone else []
    what += [counted(stated, "expectation")] if stated else []
    unseen = f", but {listed(what)} of the old audit {'is' if gone + stated == 1 else 'are'} not in the new one"
    better = len(comparison.improved) + len(comparison.verdicts)
    found = f", and {better:,} got better" if better else ""
    return f"Nothing got worse{found}{unseen if what else ''}."


def _worse(comparison: Comparison) -> list[str]:
    leaks, lost = len(comparison.worsened), sum(comparison.lost.values())
    refuted, exposed = comparison.refuted, comparison.exposed
    others = comparison.broken[refuted + len(comparison.lost) : len(comparison.broken) - exposed]
    return [
        f"{counted(leaks, 'cell')} {'leaks' if leaks == 1 else 'leak'} more" if leaks else "",
        f"{counted(refuted, 'expectation')} came out worse" if refuted else "",
        f"{counted(lost, 'cell')} {'is' if lost == 1 else 'are'} no longer measured"
        if lost
        else "",
        f"{counted(exposed, 'scheme')} {'is' if exposed == 1 else 'are'} more exposed, to an attack that was not tried"
        if exposed
        else "",
        *map(clean, others),
    ]


def _basis(comparison: Comparison) -> str:
    verb = "was" if comparison.compared == 1 else "were"
    return (
        f"{counted(comparison.compared, 'cell')} {verb} compared, matched by sweep point, scheme, attack, knowledge, coalition, attribute "
        "and metric. A difference counts when it is beyond both error bars: two-sided at 5 %, adjusted for the number of cells (Holm)."
        f"{' ' if comparison.data else ''}{comparison.data}"
    )

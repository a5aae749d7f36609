"""Document of a comparison of two audits, worst changes first."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from auditor.base import clean, counted
from auditor.base.types import Names
from auditor.results.comparison import Change, Comparison
from auditor.results.records import grouped

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
from .figures import Z95, distinct_texts, isolated, listed, number, plus_minus
from .sentences import Definition

MOST = {TERMINAL: 30, MARKDOWN: 200, PAGE: 500}
"""Listed differences per kind; the JSON format has all."""
EXPOSED = "more exposed, to an attack that was not tried"


class Part(NamedTuple):
    """One kind of difference: changed cells as rows, others as lines; ``size`` counts all."""

    key: str
    title: str
    changes: Sequence[Change]
    lines: Names
    size: int


def changes_document(comparison: Comparison, number: int = 1) -> Document:
    """Comparison's document; ``number`` is its place among several."""
    compared = [Definition("Old", comparison.old), Definition("New", comparison.now)]
    mark, word = ("✗", "worse") if comparison.worse else ("✓", "no worse")
    if _apart(comparison):
        mark, word = "?", "not compared"
    key = "comparison" if number == 1 else f"comparison-{number}"
    said = headline(comparison)
    cells = (f"{mark} {word}", f"{comparison.compared:,}", said)
    return Document(
        key,
        "comparison",
        comparison.name or "Comparison of two audits",
        said,
        mark,
        [Terms(compared, "provenance"), Paragraph(_basis(comparison), "note")],
        [
            Section(part.key, f"{part.title} ({part.size:,})", _blocks(part), first=True)
            for part in parts(comparison)
        ],
        overview=Row(comparison.name, cells, target=key) if comparison.name else None,
    )


def parts(comparison: Comparison) -> list[Part]:
    """Differences, worst first, without empty kinds."""
    improved, verdicts = comparison.improved, comparison.verdicts
    worse = ("worse", "Worse", comparison.worsened, comparison.broken, _count_worse(comparison))
    made = [
        Part(*worse),
        Part("better", "Better", improved, verdicts, len(improved) + len(verdicts)),
        _only("new", "new", comparison.only_new, comparison.stated_new),
        _only("missing", "old", comparison.only_old, comparison.stated_old),
    ]
    return [part for part in made[_apart(comparison) :] if part.size]


def _apart(comparison: Comparison) -> bool:
    """Whether two audits have no cell in common."""
    one = comparison
    found = one.compared or one.lost or one.worsened or one.refuted or one.exposed
    return not found and bool(one.only_new or not one.worse)


def _only(key: str, which: str, groups: Mapping[str, int], stated: Names) -> Part:
    lines = [*stated, *(f"{name}: {counted(count, 'cell')}" for name, count in groups.items())]
    return Part(key, f"Only in the {which} audit", [], lines, len(stated) + sum(groups.values()))


def _blocks(part: Part) -> list[Block]:
    groups = grouped(((one.metric, one.group or one.cell), one) for one in part.changes)
    rows = [_row(held[0], len(held) - 1) for held in groups.values()]
    table = Table("cell", ("old", "new", "change"), rows, "figures", "differences", most=MOST)
    return [Items([*map(isolated, part.lines)], MOST), table]


def _row(change: Change, more: int) -> Row:
    old, new = distinct_texts(change.old, change.new)
    if change.old_error or change.new_error:
        old = _with_bar(change.old, change.old_error)
        new = _with_bar(change.new, change.new_error)
    below = f"and {counted(more, 'more cell')} of the same scheme, attack and knowledge"
    name = f"{clean(change.metric)}: {clean(change.cell)}"
    relative = "from 0"
    if change.old:
        share = 100 * (change.new - change.old) / abs(change.old)
        size = f"{abs(share):,.{0 if abs(share) >= 10 else 1}f}"
        relative = f"{'+' if share > 0 else '−'}{size} %"
    return Row(name, (old, new, relative), below * bool(more))


def _with_bar(value: float, error: float | None) -> str:
    half = None if error is None else Z95 * error
    return f"{number(value, half)} {plus_minus(half, value)}".rstrip()


def _count_worse(comparison: Comparison) -> int:
    lost = sum(comparison.lost.values()) - len(comparison.lost)
    return len(comparison.worsened) + len(comparison.broken) + lost


def headline(comparison: Comparison) -> str:
    """Summarize the comparison in one sentence."""
    if _apart(comparison):
        return "Nothing was compared: the audits have no cell in common."
    if comparison.worse:
        *most, last = filter(None, _worse(comparison))
        parted = ", and ".join(filter(None, [", ".join(most), last]))
        return f"{counted(_count_worse(comparison), 'thing')} got worse: {parted}."
    gone, stated = sum(comparison.only_old.values()), len(comparison.stated_old)
    unseen = [
        counted(many, noun) for many, noun in ((gone, "cell"), (stated, "expectation")) if many
    ]
    better = len(comparison.improved) + len(comparison.verdicts)
    found = f", and {better:,} got better" * bool(better)
    verb = "is" if gone + stated == 1 else "are"
    left = f", but {listed(unseen)} of the old audit {verb} not in the new one" * bool(unseen)
    return f"Nothing got worse{found}{left}."


def _worse(comparison: Comparison) -> list[str]:
    lost, broken = sum(comparison.lost.values()), comparison.broken
    refuted, exposed = comparison.refuted, comparison.exposed
    counts = (
        (len(comparison.worsened), "cell", "leaks more", "leak more"),
        (refuted, "expectation", "came out worse", "came out worse"),
        (lost, "cell", "is no longer measured", "are no longer measured"),
        (exposed, "scheme", f"is {EXPOSED}", f"are {EXPOSED}"),
    )
    others = broken[refuted + len(comparison.lost) : len(broken) - exposed]
    return [
        *(f"{counted(n, noun)} {one if n == 1 else many}" for n, noun, one, many in counts if n),
        *map(clean, others),
    ]


def _basis(comparison: Comparison) -> str:
    verb = "was" if comparison.compared == 1 else "were"
    return (
        f"{counted(comparison.compared, 'cell')} {verb} compared, matched by sweep point, scheme, attack, knowledge, coalition, attribute "
        "and metric. A difference counts when it is beyond both error bars: two-sided at 5 %, adjusted for the number of cells (Holm). "
        f"{comparison.data}"
    ).rstrip()

"""Differences between two audits, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from auditor.results.records import grouped
from auditor.results.renderer import clean

from ..figures.figures import Z95, distinct_texts, number, plus_minus

if TYPE_CHECKING:
    from auditor.results.comparison import Change, Comparison


class Row(NamedTuple):
    """The largest change of a group of cells, and the number of others."""

    cell: str
    metric: str
    old: str
    new: str
    change: str
    more: int


class Part(NamedTuple):
    """One kind of difference: changed cells as rows, others as lines."""

    key: str
    title: str
    rows: list[Row]
    lines: list[str]
    cells: int = 0

    @property
    def size(self) -> int:
        """Number of differences."""
        return self.cells or sum(1 + row.more for row in self.rows) + len(self.lines)


def parts(comparison: Comparison) -> list[Part]:
    """Return the differences, worst first, without empty kinds."""
    made = [
        Part(
            "worse",
            "Worse",
            _rows(comparison.worsened),
            [clean(line) for line in comparison.broken],
            _count_worse(comparison),
        ),
        Part(
            "better",
            "Better",
            _rows(comparison.improved),
            [clean(line) for line in comparison.verdicts],
        ),
        Part(
            "new",
            "Only in the new audit",
            [],
            *_counted(comparison.only_new, comparison.stated_new),
        ),
        Part(
            "missing",
            "Only in the old audit",
            [],
            *_counted(comparison.only_old, comparison.stated_old),
        ),
    ]
    return [part for part in made if part.size]


def _count_worse(comparison: Comparison) -> int:
    return (
        len(comparison.worsened)
        + len(comparison.broken)
        - len(comparison.lost)
        + sum(comparison.lost.values())
    )


def _counted(groups: Mapping[str, int], stated: Sequence[str]) -> tuple[list[str], int]:
    lines = [clean(line) for line in stated] + [
        f"{clean(name)}: {_cells(count)}" for name, count in groups.items()
    ]
    return lines, len(stated) + sum(groups.values())


def headline(comparison: Comparison) -> str:
    """Summarize the comparison in one sentence."""
    gone, stated = sum(comparison.only_old.values()), len(comparison.stated_old)
    what = [_cells(gone)] if gone else []
    what += [f"{stated:,} expectation{'' if stated == 1 else 's'}"] if stated else []
    unseen = (
        f"{' and '.join(what)} of the old audit {'is' if gone + stated == 1 else 'are'} not in the new one"
        if what
        else ""
    )
    if comparison.worse:
        worse = [part for part in _worse(comparison) if part]
        count = _count_worse(comparison)
        parted = ", and ".join([", ".join(worse[:-1]), worse[-1]] if len(worse) > 1 else worse)
        return f"{count:,} {'thing' if count == 1 else 'things'} got worse: {parted}."
    if not comparison.compared:
        return "Nothing was compared: the audits have no cell in common."
    better = len(comparison.improved) + len(comparison.verdicts)
    found = [part for part in (f"{better:,} got better" if better else "", unseen) if part]
    return f"Nothing got worse{', and ' if better else ', but ' if unseen else ''}{', but '.join(found)}."


def _worse(comparison: Comparison) -> list[str]:
    leaks, lost = len(comparison.worsened), sum(comparison.lost.values())
    others = comparison.broken[
        comparison.refuted + len(comparison.lost) : len(comparison.broken) - comparison.exposed
    ]
    schemes = f"{comparison.exposed:,} {'scheme is' if comparison.exposed == 1 else 'schemes are'}"
    stated = f"{comparison.refuted:,} expectation{' came out worse' if comparison.refuted == 1 else 's came out worse'}"
    return [
        f"{_cells(leaks)} {'leaks' if leaks == 1 else 'leak'} more" if leaks else "",
        stated if comparison.refuted else "",
        f"{_cells(lost)} {'is' if lost == 1 else 'are'} no longer measured" if lost else "",
        f"{schemes} more exposed, to an attack that was not tried" if comparison.exposed else "",
        *map(clean, others),
    ]


def _cells(count: int) -> str:
    return f"{count:,} {'cell' if count == 1 else 'cells'}"


def basis(comparison: Comparison) -> str:
    """State the number of cells compared and the criterion of a difference."""
    compared = (
        f"{_cells(comparison.compared)} {'was' if comparison.compared == 1 else 'were'} compared"
    )
    return (
        f"{compared}, matched by sweep point, scheme, attack, knowledge, coalition, attribute and metric. "
        "A difference counts when it is beyond both error bars: two-sided at 5 %, adjusted for the number of cells (Holm)."
        f"{' ' if comparison.data else ''}{comparison.data}"
    )


def _rows(changes: Sequence[Change]) -> list[Row]:
    groups = grouped(((change.metric, change.group or change.cell), change) for change in changes)
    return [_row(group[0], len(group) - 1) for group in groups.values()]


def _row(change: Change, more: int) -> Row:
    return Row(clean(change.cell), clean(change.metric), *_values(change), _relative(change), more)


def more_text(row: Row) -> str:
    """State the number of further cells with this change."""
    return (
        f"and {row.more:,} more {'cell' if row.more == 1 else 'cells'} of the same scheme, attack and knowledge"
        if row.more
        else ""
    )


def _values(change: Change) -> tuple[str, str]:
    if not change.old_error and not change.new_error:
        old, new = distinct_texts(change.old, change.new)
        return old, new
    return _with_bar(change.old, change.old_error), _with_bar(change.new, change.new_error)


def _with_bar(value: float, error: float | None) -> str:
    half = None if error is None else Z95 * error
    return f"{number(value, half)} {plus_minus(half, value)}".rstrip()


def _relative(change: Change) -> str:
    if change.old == 0:
        return "from 0"
    share = 100 * (change.new - change.old) / abs(change.old)
    return f"{'+' if share > 0 else '−'}{abs(share):,.{0 if abs(share) >= 10 else 1}f} %"

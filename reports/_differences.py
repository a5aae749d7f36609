"""What changed between two audits, as every format tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from reports._figures import Z95, clean, number, plus_minus, told_apart

if TYPE_CHECKING:
    from auditor.comparison import Change, Comparison


class Row(NamedTuple):
    """One cell that differs: what it is, what it was and is, and by how much it changed."""

    cell: str
    metric: str
    old: str
    new: str
    change: str


class Part(NamedTuple):
    """One kind of difference: changed cells as rows, anything else as lines."""

    key: str
    title: str
    rows: list[Row]
    lines: list[str]

    @property
    def count(self) -> int:
        """How many differences it holds."""
        return len(self.rows) + len(self.lines)


def parts(comparison: Comparison) -> list[Part]:
    """Return the differences, worst first; empty kinds are left out."""
    made = [
        Part("worse", "Worse", [_row(change) for change in comparison.worsened], [clean(line) for line in comparison.broken]),
        Part("better", "Better", [_row(change) for change in comparison.improved], [clean(line) for line in comparison.verdicts]),
        Part("new", "Only in the new audit", [], [clean(line) for line in comparison.new]),
        Part("missing", "Only in the old audit", [], [clean(line) for line in comparison.missing]),
    ]
    return [part for part in made if part.count]


def headline(comparison: Comparison) -> str:
    """Say in one sentence how the audits compare."""
    if comparison.worse:
        count = len(comparison.worsened) + len(comparison.broken)
        return f"{count:,} {'thing' if count == 1 else 'things'} got worse."
    if not comparison.compared:
        return "Nothing got worse, but the audits have no cell in common."
    better = len(comparison.improved) + len(comparison.verdicts)
    return "Nothing got worse." if not better else f"Nothing got worse, and {better:,} got better."


def basis(comparison: Comparison) -> str:
    """Say what was compared, and when a difference counts."""
    cells = "1 cell was" if comparison.compared == 1 else f"{comparison.compared:,} cells were"
    return (
        f"{cells} compared, matched by sweep point, scheme, attack, knowledge, coalition, attribute and metric. A difference "
        "counts when it is beyond both error bars: two-sided at 5 %, adjusted for the number of cells (Holm)."
    )


def _row(change: Change) -> Row:
    return Row(clean(change.cell), clean(change.metric), *_values(change), _relative(change))


def _values(change: Change) -> list[str]:
    if not change.old_error and not change.new_error:
        return told_apart(change.old, change.new)
    pairs = ((change.old, change.old_error), (change.new, change.new_error))
    return [_with_bar(value, None if error is None else Z95 * error) for value, error in pairs]


def _with_bar(value: float, half: float | None) -> str:
    return f"{number(value, half)} {plus_minus(half, value)}".rstrip()


def _relative(change: Change) -> str:
    if change.old == 0:
        return "from 0"
    share = 100 * (change.new - change.old) / abs(change.old)
    return f"{'+' if share > 0 else '−'}{abs(share):,.{0 if abs(share) >= 10 else 1}f} %"

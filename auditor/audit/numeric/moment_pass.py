"""Rows known to each adversary, and moments of all rows in one pass.

| knowledge | given to the adversary | judged on |
| --- | --- | --- |
| ``perfect`` | the table's mean and covariance | all rows |
| ``known-attributes`` | as above, and true values of some columns | all rows; known columns have error 0 |
| ``estimated`` | moments of the copies over some released rows | all rows |
| ``model`` | as above, a published regression, perhaps true predictors | all rows; known columns: 0 |
| ``rules`` | published margins and rules, true values of some columns | all rows |
| ``known-records`` | some original rows, with their copies' rows | **the other rows** |
| ``unmatched-records`` | some original rows, in random order | the other rows |
| ``known-sample`` | some original rows, **without** their copies' rows | the other rows |

Seed and replicate determine the rows. A smaller choice is part of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.attack import Reconstruction
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, KnownSample
from auditor.adversary.published import check_knowledge
from auditor.adversary.view import Records
from auditor.audit.numeric.error_tally import FOLDS
from auditor.base.types import Array, Arrays, Block, Blocks, Indices, frozen, unprinted
from auditor.data.table import Table
from auditor.numerics.blocks import Job, Moments, Stack, moment_groups, readable, row_groups
from auditor.numerics.random_streams import stream

MOST_SHUFFLED = 2**24
"""Rows up to which a choice is the head of a permutation of all rows: 128 megabytes."""
DRAWN_AT_ONCE = 2**12
"""Row numbers drawn at a time from a longer table."""


def chosen_rows(knowledge: Knowledge, rows: int, seed: int, replicate: int) -> Indices | None:
    """Rows that an adversary knows or estimates from, as drawn; None: none."""
    count, kind = knowledge.row_count, Estimated if isinstance(knowledge, Estimated) else knowledge
    return _drawn(stream(seed, kind.name, replicate), rows, count) if count else None


def _drawn(rng: np.random.Generator, rows: int, count: int) -> Indices:
    if rows <= MOST_SHUFFLED or count > rows // 2:
        return rng.permutation(rows)[:count]
    drawn = np.empty(0, dtype=np.intp)
    while drawn.size < count:
        drawn = np.concatenate([drawn, rng.integers(0, rows, DRAWN_AT_ONCE)])
        # in the order of the draw
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:count]


class Draw(NamedTuple):
    """Chosen rows.

    Attributes
    ----------
    rows, fold : ndarrays of shape (r,)
        Ascending row numbers, and the random fold of each.
    clear : bool
        Whether the original rows are known, and so not judged.
    """

    rows: Indices
    fold: Indices
    clear: bool

    @classmethod
    def of(cls, drawn: Indices, clear: bool) -> Draw:
        """Divide drawn rows into folds, by the order of the draw."""
        order = np.argsort(drawn)
        return cls(drawn[order], (np.arange(len(drawn)) % min(FOLDS, len(drawn)))[order], clear)

    def within(self, first: int, stop: int) -> tuple[Indices, Indices]:
        """Chosen rows in ``[first, stop)``, from ``first``, and their folds."""
        low, high = np.searchsorted(self.rows, (first, stop))
        return self.rows[low:high] - first, self.fold[low:high]

    def others(self, first: int, stop: int) -> Indices:
        """Rows in ``[first, stop)`` that are not chosen, from ``first``."""
        return np.delete(np.arange(stop - first), self.within(first, stop)[0])


def key_of(knowledge: Knowledge) -> str:
    """Name of a choice of rows, which two states of knowledge may share."""
    if isinstance(knowledge, Estimated):
        return f"{Estimated.name} {knowledge.rows}"
    return knowledge.label


def some_rows(blocks: Blocks, chosen: Callable[[int, int], Any]) -> Blocks:
    """Blocks with the rows that are chosen by a block's number and size."""

    def some() -> Iterator[Block]:
        for index, x, copies in blocks():
            rows = chosen(index, len(x))
            yield index, x[rows], [copy[rows] for copy in copies]

    return some


def draws_of(
    knowledge: Iterable[Knowledge], rows: int, seed: int, replicate: int
) -> dict[str, Draw]:
    """Rows that each state of knowledge chooses, by ``key_of``."""
    return {
        key_of(state): Draw.of(drawn, isinstance(state, KnownRecords))
        for state in knowledge
        if (drawn := chosen_rows(state, rows, seed, replicate)) is not None
    }


class RowSelection:
    """Rows of one table, by state of knowledge.

    Parameters
    ----------
    seed, replicate : int
        Determine the choice.
    """

    def __init__(
        self, table: Table, knowledge: Sequence[Knowledge], seed: int, replicate: int
    ) -> None:
        for state in knowledge:
            check_knowledge(state, table)
        self.table, self._seed, self._replicate = table, seed, replicate
        self.draws = draws_of(knowledge, table.rows, seed, replicate)
        self._cuts = row_groups(table.rows, table.width)

    def rng(self, name: str) -> np.random.Generator:
        """Named random stream of this choice."""
        return stream(self._seed, name, self._replicate)

    def draw(self, knowledge: Knowledge) -> Draw | None:
        """Rows that an adversary knows or estimates from; None: none."""
        return self.draws.get(key_of(knowledge))

    def given(self, knowledge: Knowledge) -> Indices:
        """Numbers of the known original rows."""
        draw = self.draw(knowledge)
        return draw.rows if draw is not None and draw.clear else np.empty(0, dtype=np.intp)

    def seen(self, knowledge: Knowledge, blocks: Blocks) -> Blocks:
        """Blocks of the rows that an adversary sees."""
        return self.judged(knowledge, blocks)[0] if isinstance(knowledge, KnownSample) else blocks

    def judged(self, knowledge: Knowledge, blocks: Blocks) -> tuple[Blocks, list[list[int]]]:
        """Blocks of the judged rows, and the sizes of row groups by block."""
        draw = self.draw(knowledge)
        if draw is None or not draw.clear:
            return blocks, [[b - a for a, b in groups] for groups in self._cuts]

        def others(index: int, size: int) -> Indices:
            first = self._cuts[index][0][0]
            return draw.others(first, first + size)

        sizes = [[draw.others(a, b).size for a, b in groups] for groups in self._cuts]
        return some_rows(blocks, others), sizes


def with_row_theory(
    expected: Array, fitted: Sequence[Reconstruction], seen: Blocks, judged: Blocks
) -> Array:
    """Replace expected errors by an attack's theory from the true rows.

    Parameters
    ----------
    expected : ndarray of shape (B,)
        Squared errors summed over rows and attributes; NaN for none.
    seen, judged : callables
        Yield blocks of the rows that attacks were fitted to, and of judged rows.
    """
    out = expected.copy()
    for place, each in enumerate(fitted):
        theory = each.row_theory(readable([x])[0] for _, x, _ in seen())
        if theory is not None:
            out[place] = sum(float(theory(x).sum()) for _, x, _ in judged())
    return out


@frozen
class NumberBlock:
    """Records of numbers with their copies.

    Attributes
    ----------
    parts : sequence of ndarrays
        Copies in the coordinates of the moments; none with other columns.
    seconds : float
        Seconds spent on drawing.
    """

    index: int
    x: Array
    copies: Arrays
    parts: Arrays
    seconds: float = 0.0


class Added:
    """Sums over records that add up field by field."""

    def add(self, other: Any) -> None:
        """Add the sums over later records."""
        for name, value in vars(other).items():
            setattr(self, name, together(getattr(self, name), value))


def together(a: Any, b: Any) -> Any:
    """Sum of numbers, arrays or sums; lists in order; dicts by key; conjunction of truths."""
    if isinstance(a, dict):
        return a | {key: together(a[key], more) if key in a else more for key, more in b.items()}
    if isinstance(a, Added):
        a.add(b)
        return a
    if isinstance(a, Moments):
        return Moments.merge([a, b])
    if isinstance(a, Draw):  # parts of one pass have equal draws
        return a
    return a and b if isinstance(a, bool) else a + b


@dataclass(repr=False)
class Chosen(Added):
    """Sums over chosen rows.

    Attributes
    ----------
    parts : dict of int to Moments
        Of ``[X, Y_1 … Y_M]``, by fold.
    by_group : dict of int to Moments
        Of known rows, by row group.
    originals, copies : lists
        Known rows, by block.
    """

    parts: dict[int, Moments] = field(default_factory=dict)
    by_group: dict[int, Moments] = field(default_factory=dict)
    originals: list[Array] = field(default_factory=list)
    copies: list[list[Array]] = field(default_factory=list)

    @property
    def folds(self) -> list[Moments]:
        """Moments over each fold, in order."""
        return [self.parts[part] for part in sorted(self.parts)]

    @property
    def records(self) -> Records:
        """The known rows."""
        copies = tuple(np.concatenate(parts) for parts in zip(*self.copies, strict=True))
        return Records(np.concatenate(self.originals), copies)


@dataclass
class Stripe(Added):
    """Sums over stripes, in order.

    Attributes
    ----------
    groups : dict of int to Moments
        Of ``[X, Y_1 … Y_M]``, by group (``auditor.numerics.blocks.moment_groups``).
    chosen : dict of str to Chosen
        By ``key_of`` a state of knowledge.
    finite : bool
        Whether copies without moments are finite.
    seconds : float
        Seconds spent on drawing.
    """

    groups: dict[int, Moments] = field(default_factory=dict)
    chosen: dict[str, Chosen] = field(default_factory=dict)
    finite: bool = True
    seconds: float = 0.0


@unprinted
class MomentJob(Job[Stripe]):
    """All moments that any attack on one release needs.

    Attributes
    ----------
    rows, width, copies : int
        ``n``, ``N`` and ``M``.
    centre : ndarray of shape (N,)
        The table's mean.
    draws : mapping
        Chosen rows, by state of knowledge.
    """

    rows: int
    width: int
    copies: int
    centre: Array
    draws: Mapping[str, Draw]

    def begin(self) -> Stripe:
        return Stripe()

    def take(self, block: NumberBlock, into: Stripe) -> None:
        index, x, copies, parts = block.index, block.x, block.copies, block.parts
        fields = (copy[field] for copy in list[Any](copies) for field in copy.dtype.names or (...,))
        into.finite = into.finite and (
            bool(parts) or all(np.isfinite(each).all() for each in fields)
        )
        into.seconds += block.seconds
        stack, first = Stack(self.centre, len(parts) + 1), self._groups[index][0][1]
        for group, cuts in groupby(self._groups[index], key=itemgetter(0)):
            for a, b in (piece for _, start, stop in cuts for piece in stack.pieces(start, stop)):
                here = slice(a - first, b - first)
                stack.add([x[here], *(part[here] for part in parts)])
                for key, draw in self.draws.items():
                    inside, fold = draw.within(a, b)
                    folds = {k: inside[fold == k] for k in np.unique(fold).tolist()}
                    some = Chosen({k: Moments.of(stack.rows(rows)) for k, rows in folds.items()})
                    if draw.clear and inside.size:
                        some.originals.append(x[here][inside])
                        some.copies.append([copy[here][inside] for copy in copies])
                        some.by_group[group] = Moments.of(stack.rows(inside))
                    into.chosen = together(into.chosen, {key: some})
            into.groups = together(into.groups, {group: stack.moments()})

    @cached_property
    def _groups(self) -> list[list[tuple[int, int, int]]]:
        return moment_groups(self.rows, self.width, (self.copies + 1) * self.width)

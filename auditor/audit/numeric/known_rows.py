"""Rows that each adversary knows, sees copies of, and is judged on.

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

Rows are chosen by seed and replicate alone, and a smaller choice is part of a larger one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.adversary.attack import Reconstruction
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords, KnownSample
from auditor.adversary.published_rules import check_knowledge
from auditor.audit.numeric.limits import FOLDS
from auditor.data.table import Table
from auditor.numerics.blocks import readable, row_blocks, row_groups
from auditor.numerics.random_streams import stream
from auditor.types import Array, Block, Blocks, Indices

MOST_SHUFFLED = 2**24
"""Rows up to which a choice is the head of a permutation of all rows: 128 megabytes."""
DRAWN_AT_ONCE = 2**12
"""Row numbers drawn at a time from a longer table."""


def chosen_rows(knowledge: Knowledge, rows: int, seed: int, replicate: int) -> Indices | None:
    """Return the rows that an adversary knows or estimates from, as drawn; None: none."""
    if isinstance(knowledge, Estimated):
        return _drawn(stream(seed, "estimated", replicate), rows, knowledge.rows)
    if isinstance(knowledge, KnownRecords):
        return _drawn(stream(seed, knowledge.name, replicate), rows, knowledge.count)
    return None


def _drawn(rng: np.random.Generator, rows: int, count: int) -> Indices:
    if rows <= MOST_SHUFFLED or count > rows // 2:
        return rng.permutation(rows)[:count]
    drawn = np.empty(0, dtype=np.intp)
    while drawn.size < count:
        drawn = np.concatenate([drawn, rng.integers(0, rows, DRAWN_AT_ONCE)])
        # first occurrences, in the order of the draw
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:count]


@dataclass(frozen=True, repr=False)
class Draw:
    """Chosen rows.

    Attributes
    ----------
    rows, fold : ndarrays of shape (r,)
        Row numbers, ascending, and the fold of each. Each fold is a random sample.
    clear : bool
        Whether the original rows are known, and so excluded from the rows judged.
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
        """Return the chosen rows in ``[first, stop)``, counted from ``first``, and their folds."""
        low, high = np.searchsorted(self.rows, (first, stop))
        return self.rows[low:high] - first, self.fold[low:high]


def key_of(knowledge: Knowledge) -> str:
    """Return the name of a choice of rows, which two states of knowledge may share."""
    if isinstance(knowledge, Estimated):
        return f"{Estimated.name} {knowledge.rows}"
    return knowledge.label


def draws_of(
    knowledge: Iterable[Knowledge], rows: int, seed: int, replicate: int
) -> dict[str, Draw]:
    """Return the rows that each state of knowledge chooses, by ``key_of``, if it chooses any."""
    return {
        key_of(state): Draw.of(drawn, isinstance(state, KnownRecords))
        for state in knowledge
        if (drawn := chosen_rows(state, rows, seed, replicate)) is not None
    }


@dataclass(frozen=True, repr=False)
class Originals:
    """A table's original rows in read-only blocks, for theory alone.

    Attributes
    ----------
    without : ndarray of int
        Rows left out, ascending.
    """

    table: Table
    without: Indices

    def __iter__(self) -> Iterator[Array]:
        """Yield arrays of shape (b, N), in order of rows."""
        for start, stop in row_blocks(self.table.rows, self.table.width):
            x = self.table.read(start, stop)
            first, last = np.searchsorted(self.without, (start, stop))
            yield readable([np.delete(x, self.without[first:last] - start, axis=0)])[0]


class RowSelection:
    """The rows of one table, by state of knowledge.

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
        """Return a named random stream of this choice."""
        return stream(self._seed, name, self._replicate)

    def draw(self, knowledge: Knowledge) -> Draw | None:
        """Return the rows that an adversary knows or estimates from; None: none."""
        return self.draws.get(key_of(knowledge))

    def given(self, knowledge: Knowledge) -> Indices:
        """Return the numbers of the known original rows."""
        draw = self.draw(knowledge)
        return draw.rows if draw is not None and draw.clear else np.empty(0, dtype=np.intp)

    def seen(self, knowledge: Knowledge, blocks: Blocks) -> Blocks:
        """Return the blocks of the rows whose copies an adversary has."""
        return self.judged(knowledge, blocks)[0] if isinstance(knowledge, KnownSample) else blocks

    def judged(self, knowledge: Knowledge, blocks: Blocks) -> tuple[Blocks, list[list[int]]]:
        """Return the blocks of the judged rows, and the sizes of row groups by block.

        ``blocks`` yields all blocks, or the first rows of every block.
        """
        rows = self.given(knowledge)
        if not rows.size:
            return blocks, [[b - a for a, b in groups] for groups in self._cuts]

        def others() -> Iterator[Block]:
            for index, x, copies in blocks():
                first = self._cuts[index][0][0]
                low, high = np.searchsorted(rows, (first, first + len(x)))
                keep = np.ones(len(x), dtype=bool)
                keep[rows[low:high] - first] = False
                yield index, x[keep], [copy[keep] for copy in copies]

        return others, [
            [b - a - int(np.diff(np.searchsorted(rows, (a, b)))[0]) for a, b in groups]
            for groups in self._cuts
        ]

    def originals(self, knowledge: Knowledge) -> tuple[Originals, Originals]:
        """Return the original rows whose copies an adversary has, and the judged ones."""
        judged = Originals(self.table, self.given(knowledge))
        if isinstance(knowledge, KnownSample):
            return judged, judged
        return Originals(self.table, np.empty(0, dtype=np.intp)), judged


def with_row_theory(
    expected: Array, fitted: Sequence[Reconstruction], seen: Originals, judged: Originals
) -> Array:
    """Replace expected errors by theory from the true rows, where an attack has any.

    Called after all estimates: some errors follow from the table itself
    (``Reconstruction.row_theory``).

    Parameters
    ----------
    expected : ndarray of shape (B,)
        Squared errors summed over rows and attributes; NaN for none.
    seen, judged : Originals
        The rows whose copies the attacks were fitted to, and the judged rows.
    """
    out = expected.copy()
    for place, each in enumerate(fitted):
        theory = each.row_theory(seen)
        if theory is not None:
            out[place] = sum(float(theory(x).sum()) for x in judged)
    return out

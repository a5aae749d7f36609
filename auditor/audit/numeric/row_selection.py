"""Which rows of a table each adversary is given, sees the copies of, and is judged on.

| knowledge | what the adversary gets | what it is judged on |
| --- | --- | --- |
| ``perfect`` | the table's mean and covariance | all rows |
| ``known-attributes`` | the same, and the true values of some columns | all rows; a known column's error is 0 |
| ``estimated`` | moments of the copies over some released rows | all rows |
| ``model`` | these, a published regression, and the predictors' true values if they are known | all rows; a known column's error is 0 |
| ``rules`` | published margins and rules, and the true values of some columns | all records; what is known of them is not counted |
| ``known-records`` | some rows in clear with their copies' rows | **the other rows**: what it was given is no discovery |
| ``unmatched-records`` | some rows in clear, in no order | the other rows |
| ``known-sample`` | some rows in clear, **held back from its copies** | the other rows |

A known sample is other draws from the same population. Rows of the table stand in for them: their
copies are hidden from this adversary, as if they had not been released, and another adversary of
the same audit still has the whole release.

Rows are chosen by the seed and the replicate alone: the same rows for every scheme, attack and
coalition, and a smaller choice is part of a larger one. So figures of different schemes, attacks
and numbers of rows are compared on the same records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from auditor.adversary.knowable import check_knowledge
from auditor.adversary.knowledge import Knowledge, KnownSample
from auditor.audit.numeric.gather import Draw, draws_of, key_of
from auditor.audit.numeric.row_theory import Originals
from auditor.data.table import Table
from auditor.numerics.blocks import row_groups
from auditor.numerics.random_streams import stream
from auditor.types import Block, Blocks, Indices


class RowSelection:
    """The rows of one table, by state of knowledge.

    Parameters
    ----------
    table : Table
    knowledge : sequence of Knowledge
    seed, replicate : int
        What rows are chosen by.
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
        """Return a stream of random numbers that belongs to this choice of rows."""
        return stream(self._seed, name, self._replicate)

    def draw(self, knowledge: Knowledge) -> Draw | None:
        """Return which rows an adversary estimates from or was given; None when it gets none."""
        return self.draws.get(key_of(knowledge))

    def given(self, knowledge: Knowledge) -> Indices:
        """Return the rows, by number, that an adversary was given in clear."""
        draw = self.draw(knowledge)
        return draw.rows if draw is not None and draw.clear else np.empty(0, dtype=np.intp)

    def seen(self, knowledge: Knowledge, blocks: Blocks) -> Blocks:
        """Return the blocks of the rows whose copies an adversary has."""
        return self.judged(knowledge, blocks)[0] if isinstance(knowledge, KnownSample) else blocks

    def judged(self, knowledge: Knowledge, blocks: Blocks) -> tuple[Blocks, list[list[int]]]:
        """Return the blocks of the rows that an adversary is judged on, and the number of rows in each row group, block by block.

        Parameters
        ----------
        knowledge : Knowledge
        blocks : callable
            Yields all blocks, or the first rows of every block.
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
        """Return the original's rows whose copies an adversary has, and those it is judged on; for the audit alone."""
        judged = Originals(self.table, self.given(knowledge))
        return judged if isinstance(knowledge, KnownSample) else Originals(
            self.table, np.empty(0, dtype=np.intp)
        ), judged

"""What each adversary sees of one release and is judged on, from one pass over its rows.

| knowledge | what the adversary gets | what it is judged on |
| --- | --- | --- |
| ``perfect`` | the table's mean and covariance | all rows |
| ``known-attributes`` | the same, and the true values of some columns | all rows; a known column's error is 0 |
| ``estimated`` | moments of the copies over some released rows | all rows |
| ``known-records`` | some rows in clear with their copies' rows | **the other rows**: what it was given is no discovery |
| ``unmatched-records`` | some rows in clear, in no order | the other rows |
| ``known-sample`` | some rows in clear, **held back from its copies** | the other rows |

A known sample is other draws from the same population. Rows of the table stand in for them: their copies are hidden from this adversary,
as if they had not been released, and another adversary of the same audit still has the whole release.

Rows are chosen by the seed and the replicate alone: the same rows for every scheme, attack and coalition, and a smaller choice is part of
a larger one. So figures of different schemes, attacks and numbers of rows are compared on the same records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from auditor.adversary.given import NOTHING, ExactMoments, Given, SampleMoments, UnpairedRecords
from auditor.adversary.knowledge import Estimated, Knowledge, KnownAttributes, KnownRecords, KnownSample, Perfect, UnmatchedRecords
from auditor.adversary.view import View
from auditor.audit.numeric.gather import Chosen, Draw, Gatherer, Stripe, draws_of, key_of
from auditor.audit.numeric.row_theory import Originals
from auditor.audit.numeric.transformed_copies import seen
from auditor.data.table import Table
from auditor.errors import AuditorError, did_you_mean
from auditor.numerics.blocks import row_groups
from auditor.numerics.moments import Awaited, Moments, of_rows
from auditor.numerics.random_streams import stream
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.transform import Turned
from auditor.types import Block, Blocks, Indices


def check_knowledge(knowledge: Knowledge, table: Table) -> None:
    """Refuse knowledge that the table cannot give.

    Raises
    ------
    AuditorError
        It asks for more rows than there are, leaves nothing to attack, or names an attribute that does not exist.
    """
    if isinstance(knowledge, Estimated) and knowledge.rows > table.rows:
        raise AuditorError(f"needs {knowledge.rows:,} released rows; the table has {table.rows:,}")
    if isinstance(knowledge, KnownRecords) and knowledge.count > table.rows:
        raise AuditorError(f"needs {knowledge.count:,} records; the table has {table.rows:,}")
    if isinstance(knowledge, KnownRecords) and knowledge.count == table.rows:
        raise AuditorError(f"leaves no record to attack: the table has {table.rows:,}, all of them known")
    if isinstance(knowledge, KnownAttributes):
        for name in knowledge.attributes:
            if name not in table.attributes:
                raise AuditorError(f"names no column that is audited: {name!r}{did_you_mean(name, table.attributes)}")
        if set(knowledge.attributes) == set(table.attributes):
            raise AuditorError("names every column that is audited and leaves none to attack")


class Gathered:
    """One release's moments, and the view of each adversary.

    Parameters
    ----------
    table : Table
    moments : TableMoments
        The table's own.
    levels : tuple of float
    law : NoiseLaw or None
        Of the noise in all copies.
    blocks : callable
        Yields (block number, original rows, all copies' rows), anew at every call.
    knowledge : sequence of Knowledge
    seed, replicate : int
        What rows are chosen by.
    columns : int, optional
        Columns of a copy, where they are not the table's. There are no joint moments then, and only attacks on rows apply.
    scheme : mapping, optional
        What is public of the scheme.
    draws : mapping, optional
        The rows each state of knowledge chooses, if they are known already.
    stripes : iterable of Stripe, optional
        What was gathered already of every stripe, in order; without it one pass over the blocks is made.
    copies : sequence of int, optional
        Numbers of the copies; 1 … M by default.
    late : bool
        Whether moments of rows that nobody was given are taken only when an attack asks for them, and without the original: for one attack
        on copies in memory, which may need none. There are no ``groups`` then.
    turned : Turned, optional
        The matrices that copies were multiplied by, if moments are of copies before that; for the audit alone. Moments in views are of
        copies as released, each about its own mean.

    Attributes
    ----------
    groups : list of Moments
        Of ``[X, Y_1 … Y_M]``, by row group (``auditor.numerics.blocks.moment_groups``).
    finite : bool
        Whether copies of other columns, which are in no moments, hold finite numbers only.
    """

    def __init__(
        self, table: Table, moments: TableMoments, levels: tuple[float, ...], law: NoiseLaw | None, blocks: Blocks,
        knowledge: Sequence[Knowledge], seed: int, replicate: int, columns: int | None = None, scheme: Mapping[str, Any] | None = None,
        draws: Mapping[str, Draw] | None = None, stripes: Iterable[Stripe] | None = None,
        copies: Sequence[int] | None = None, late: bool = False, turned: Turned | None = None,
    ) -> None:  # fmt: skip
        self.joint = columns is None or columns == table.width
        self._scheme = MappingProxyType(dict(scheme or {}))
        self._seed, self._replicate = seed, replicate
        self.table, self.moments, self.levels, self.law, self._blocks = table, moments, levels, law, blocks
        for state in knowledge:
            check_knowledge(state, table)
        self._draws = draws_of(knowledge, table.rows, seed, replicate) if draws is None else draws
        self.cuts = row_groups(table.rows, table.width)
        self._views: dict[str, View] = {}
        self._copies, self._late, self._turned = tuple(copies or range(1, len(levels) + 1)), late, turned
        if stripes is None:
            undo = None if turned is None else turned.undo
            gatherer = Gatherer(table.rows, table.width, moments.mean, self._draws, self.joint, undo=undo, deviation=moments.deviation)
            stripes = [gatherer.chosen_alone(blocks())] if late else gatherer.stripes(blocks())
        whole = Stripe()
        for part in stripes:
            whole.add(part)
        self._chosen, self.finite = whole.chosen, whole.finite
        self.groups = [whole.groups[number] for number in sorted(whole.groups)]
        self.seconds = whole.seconds

    def _given(self, knowledge: Knowledge) -> tuple[Draw, Chosen] | None:
        """Return the rows that an adversary was given in clear."""
        draw = self._draws.get(key_of(knowledge))
        return (draw, self._chosen[key_of(knowledge)]) if draw is not None and draw.clear else None

    def view(self, knowledge: Knowledge) -> View:
        """Return the view of an adversary that holds every copy."""
        if knowledge.label not in self._views:
            N, everybody = self.table.width, self._copies
            stacked = tuple(range(1, len(everybody) + 1)) if self.joint else ()
            view = View(
                attributes=self.table.attributes,
                copies=everybody,
                levels=self.levels,
                knowledge=knowledge,
                law=self.law,
                centre=self.moments.mean,
                released=Awaited(lambda: self._released_alone(knowledge))
                if self._late
                else self._as_seen(Moments.merge(self.seen(knowledge))).of_copies(stacked, N),
                given=self._given_to(knowledge, stacked),
                scheme=self._scheme,
                seed=int(stream(self._seed, "guesses", self._replicate).integers(2**63)),
            )
            self._views[knowledge.label] = view
        return self._views[knowledge.label]

    def _given_to(self, knowledge: Knowledge, stacked: Sequence[int]) -> Given:
        """Return what this knowledge gives beside the copies."""
        if isinstance(knowledge, (Perfect, KnownAttributes)):
            return ExactMoments(self.moments.mean, self.moments.covariance)
        chosen = self._chosen.get(key_of(knowledge))
        if chosen is None:
            return NOTHING
        if isinstance(knowledge, KnownSample):
            return UnpairedRecords(chosen.records.original)
        if isinstance(knowledge, UnmatchedRecords):
            rows = chosen.records.original
            return UnpairedRecords(rows[stream(self._seed, "order", self._replicate).permutation(len(rows))])
        moments = self._as_seen(Moments.merge(chosen.folds))
        if isinstance(knowledge, Estimated):
            return SampleMoments(moments.of_copies(stacked, self.table.width))
        return replace(chosen.records, moments=moments if self.joint else None)

    def _as_seen(self, moments: Moments) -> Moments:
        return seen(self._turned, moments)

    def _released_alone(self, knowledge: Knowledge) -> Moments:
        """Return the moments of the copies, without the original, over the rows whose copies an adversary has."""
        if not self.joint:
            return Moments(self.table.rows, np.empty(0), np.empty((0, 0)))
        mean, deviation = self.moments.mean, self.moments.deviation
        return Moments.merge(of_rows(copies, mean, deviation) for _, x, copies in self.seen_rows(knowledge)() if len(x))

    def seen(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the rows whose copies an adversary has, by row group."""
        return self.measured(knowledge) if isinstance(knowledge, KnownSample) else self.groups

    def seen_rows(self, knowledge: Knowledge) -> Blocks:
        """Return the blocks of those rows."""
        return self.measured_rows(knowledge)[0] if isinstance(knowledge, KnownSample) else self._blocks

    def measured(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the rows that an adversary is judged on, by row group; groups without any are left out."""
        given = self._given(knowledge)
        if given is None:
            return self.groups
        taken = given[1].by_group
        # Moments are sums, so those of the other rows are a difference: nothing is read again for each number of records given.
        rest = [group - taken[number] if number in taken else group for number, group in enumerate(self.groups)]
        return [group for group in rest if group.count]

    def measured_rows(self, knowledge: Knowledge, source: Blocks | None = None) -> tuple[Blocks, list[list[int]]]:
        """Return the blocks of those rows, and the number of them in each row group, block by block.

        Parameters
        ----------
        knowledge : Knowledge
        source : callable, optional
            What to take them from instead: the first rows of every block.
        """
        every = self._blocks if source is None else source
        given = self._given(knowledge)
        if given is None:
            return every, [[b - a for a, b in groups] for groups in self.cuts]
        rows = given[0].rows

        def blocks() -> Iterator[Block]:
            for index, x, copies in every():
                keep, first = np.ones(len(x), dtype=bool), self.cuts[index][0][0]
                keep[given[0].within(first, first + len(x))[0]] = False
                yield index, x[keep], [copy[keep] for copy in copies]

        return blocks, [[b - a - int(np.diff(np.searchsorted(rows, (a, b)))[0]) for a, b in groups] for groups in self.cuts]

    def given_rows(self, knowledge: Knowledge) -> Indices:
        """Return the rows, by number, that an adversary was given in clear."""
        given = self._given(knowledge)
        return given[0].rows if given is not None else np.empty(0, dtype=np.intp)

    def true_rows(self, knowledge: Knowledge) -> tuple[Originals, Originals]:
        """Return the original's rows whose copies an adversary has, and those it is judged on; for the audit alone."""
        judged = Originals(self.table, self.given_rows(knowledge))
        return judged if isinstance(knowledge, KnownSample) else Originals(self.table, np.empty(0, dtype=np.intp)), judged

    def draw(self, knowledge: Knowledge) -> Draw | None:
        """Return which rows an adversary estimates from or was given; None when it gets none."""
        return self._draws.get(key_of(knowledge))

    def parts(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of ``[X, Y_1 … Y_M]`` over each part that chosen rows were dealt into, each a random sample of the table."""
        return self._chosen[key_of(knowledge)].folds

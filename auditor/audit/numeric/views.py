"""What each adversary sees of one release, and moments of what it is judged on, from one pass over its rows.

Which rows these are is ``auditor.audit.numeric.row_selection``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from auditor.adversary.given import NOTHING, ExactMoments, Given, SampleMoments, UnpairedRecords
from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownSample,
    Perfect,
    PublishedModel,
    UnmatchedRecords,
)
from auditor.adversary.published_model import LinearModel, ModelledMoments, least_squares
from auditor.adversary.published_tree import TreeMoments, grown, of_records, stated
from auditor.adversary.view import View
from auditor.audit.numeric.estimated_noise import EstimatedNoise
from auditor.audit.numeric.gather import Stripe, key_of
from auditor.audit.numeric.moment_pass import MomentJob, NumberBlock
from auditor.audit.numeric.row_selection import RowSelection
from auditor.audit.numeric.transformed_copies import seen
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.moments import Awaited, Moments, of_rows
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.transform import Transformed
from auditor.types import Array, Blocks


@dataclass(frozen=True)
class ReleasedCopies:
    """Copies of a table, and what is known of how they were made.

    Attributes
    ----------
    table : Table
    moments : TableMoments
        The table's own.
    levels : tuple of float
        Empty when nobody has said what they are.
    law : NoiseLaw or None
        Of the noise in all copies.
    blocks : callable
        Yields (block number, original rows, all copies' rows), anew at every call.
    joint : bool
        Whether copies have the table's columns; without that there are no joint moments, and only
        attacks on rows apply.
    public : mapping
        What is no secret of the scheme.
    numbers : tuple of int
        Numbers of the copies; one a level by default.
    transformed : Transformed or None
        The matrices that copies were multiplied by, if moments are of copies before that; for the
        audit alone. Moments in views are of copies as released, each about its own mean.
    apart : bool
        Whether moments of row groups are wanted apart, and not just of all rows: for error bars by
        a jackknife over them, where the law does not tell how errors spread, and to judge what
        pooling buys on other rows than it is learnt from.
    """

    table: Table
    moments: TableMoments
    levels: tuple[float, ...]
    law: NoiseLaw | None
    blocks: Blocks
    joint: bool = True
    public: Mapping[str, Any] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    transformed: Transformed | None = None
    apart: bool = True

    def __post_init__(self) -> None:
        """Number the copies, and keep what is public from being written to."""
        object.__setattr__(self, "numbers", self.numbers or tuple(range(1, len(self.levels) + 1)))
        object.__setattr__(self, "public", MappingProxyType(dict(self.public)))

    @property
    def stacked(self) -> Sequence[int]:
        """Places, from 1, of the copies that moments are of."""
        return range(1, len(self.numbers) + 1) if self.joint else ()


class Shares:
    """Which values a table has, with their shares, for whoever asks; ``asked`` notes it, until it is put to False again.

    Views hold this and not what made them: a circle would keep all moments of a release until the
    collector comes.
    """

    def __init__(self, table: Table) -> None:
        self._table, self.asked = table, False

    def __call__(self, column: int) -> tuple[Array, Array]:
        """Return the values of an attribute, and the share of records that has each."""
        self.asked = True
        return self._table.shares(column)


class Gathered:
    """One release's moments, and the view of each adversary.

    Parameters
    ----------
    copies : ReleasedCopies
    rows : RowSelection
        Of the same table.
    stripes : iterable of Stripe, optional
        What was gathered already of every stripe, in order; without it one pass over the blocks is
        made.
    late : bool
        Whether moments of rows that nobody was given are taken only when an attack asks for them,
        and without the original: for one attack on copies in memory, which may need none. There are
        no ``groups`` then.

    Attributes
    ----------
    groups : list of Moments
        Of ``[X, Y_1 … Y_M]``, by row group (``auditor.numerics.blocks.moment_groups``); of all rows
        where nobody needs them apart.
    finite : bool
        Whether copies of other columns, which are in no moments, hold finite numbers only.
    noise : EstimatedNoise or None
        What original and copies say of the noise of copies from files; to be set before any view is
        asked for.
    shares : Shares
        Through which attacks ask which values the table has.
    """

    def __init__(
        self,
        copies: ReleasedCopies,
        rows: RowSelection,
        stripes: Iterable[Stripe] | None = None,
        late: bool = False,
    ) -> None:
        self.copies, self.rows, self._late = copies, rows, late
        whole = Stripe()
        for part in gathered_stripes(copies, rows, late) if stripes is None else stripes:
            whole.add(part)
        self._chosen, self.finite, self.seconds = whole.chosen, whole.finite, whole.seconds
        self.groups = [whole.groups[number] for number in sorted(whole.groups)]
        self._views: dict[str, View] = {}
        self.noise: EstimatedNoise | None = None
        self.shares = Shares(copies.table)

    @property
    def law(self) -> NoiseLaw | None:
        """The law that attacks are given: the one that is stated, else the one that was estimated, if there is one."""
        return (
            self.noise.law
            if self.copies.law is None and self.noise is not None
            else self.copies.law
        )

    def view(self, knowledge: Knowledge) -> View:
        """Return the view of an adversary that holds every copy."""
        if knowledge.label not in self._views:
            copies = self.copies
            self._views[knowledge.label] = View(
                attributes=copies.table.attributes,
                copies=copies.numbers,
                levels=copies.levels,
                knowledge=knowledge,
                law=self.law,
                centre=copies.moments.mean,
                released=Awaited(partial(_released_alone, copies, self.rows, knowledge))
                if self._late
                else self._of_copies(Moments.merge(self.seen(knowledge))),
                given=self._given(knowledge),
                scheme=copies.public,
                seed=int(self.rows.rng("guesses").integers(2**63)),
            )
        return self._views[knowledge.label]

    def _given(self, knowledge: Knowledge) -> Given:
        """Return what this knowledge gives beside the copies."""
        if isinstance(knowledge, (Perfect, KnownAttributes)):
            return ExactMoments(
                self.copies.moments.mean, self.copies.moments.covariance, self.shares
            )
        chosen = self._chosen.get(key_of(knowledge))
        if chosen is None:
            return NOTHING
        if isinstance(knowledge, KnownSample):
            return UnpairedRecords(chosen.records.original)
        if isinstance(knowledge, UnmatchedRecords):
            original = chosen.records.original
            return UnpairedRecords(original[self.rows.rng("order").permutation(len(original))])
        moments = Moments.merge(chosen.folds)
        if isinstance(knowledge, PublishedModel):
            return (self._with_tree if knowledge.is_tree else self._with_model)(
                knowledge, self._of_copies(moments)
            )
        if isinstance(knowledge, Estimated):
            return SampleMoments(self._of_copies(moments))
        return replace(
            chosen.records,
            moments=seen(self.copies.transformed, moments) if self.copies.joint else None,
        )

    def _with_model(self, knowledge: PublishedModel, copies: Moments) -> ModelledMoments:
        """Return what rows to estimate from give beside a published regression, which is the table's own unless its figures are stated."""
        mean, K_X = self.copies.moments.mean, self.copies.moments.covariance
        target, *on = (
            self.copies.table.attributes.index(name) for name in (knowledge.target, *knowledge.on)
        )
        places, stated = np.array(on, dtype=np.intp), knowledge.regression
        model = least_squares(mean, K_X, target, places)
        if stated is not None:
            model = LinearModel(
                target, places, np.array(stated.coefficients), stated.intercept, stated.variance
            )
        return ModelledMoments(
            copies, model, (mean[places], K_X[np.ix_(places, places)]) if knowledge.known else None
        )

    def _with_tree(self, knowledge: PublishedModel, copies: Moments) -> TreeMoments:
        """Return what rows to estimate from give beside a published tree, which is grown from the table unless its figures are stated."""
        table = self.copies.table
        target, *on = (table.attributes.index(name) for name in (knowledge.target, *knowledge.on))
        places = np.array(on, dtype=np.intp)
        # memory: these columns of the whole table, as sorting them takes; of a stated tree the
        # predictors if they are known, else none
        needed = [*on, target] if knowledge.tree is None or knowledge.known else []
        columns = (
            np.concatenate(
                [table.read(a, b)[:, needed] for a, b in row_blocks(table.rows, table.width)]
            )
            if needed
            else None
        )
        if knowledge.tree is not None:
            tree = stated(knowledge.tree, target, places, knowledge.on)
        else:
            assert columns is not None
            assert knowledge.depth is not None
            tree = grown(columns[:, :-1], columns[:, -1], knowledge.depth, target, places)
        return TreeMoments(
            copies,
            tree,
            of_records(tree, columns[:, :-1]) if knowledge.known and columns is not None else None,
        )

    def _of_copies(self, moments: Moments) -> Moments:
        """Return the moments of the copies as released, without the original."""
        return seen(self.copies.transformed, moments).of_copies(
            self.copies.stacked, self.copies.table.width
        )

    def seen(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the rows whose copies an adversary has, by row group."""
        return self.judged(knowledge) if isinstance(knowledge, KnownSample) else self.groups

    def judged(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the rows that an adversary is judged on, by row group; groups without any are left out."""
        if not self.rows.given(knowledge).size:
            return self.groups
        taken = self._chosen[key_of(knowledge)].by_group
        # Moments are sums, so those of the other rows are a difference: nothing is read again for
        # each number of records given.
        rest = [
            group - taken[number] if number in taken else group
            for number, group in enumerate(self.groups)
        ]
        return [group for group in rest if group.count]

    def parts(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of ``[X, Y_1 … Y_M]`` over each part that chosen rows were dealt into, each a random sample of the table."""
        return self._chosen[key_of(knowledge)].folds


def _released_alone(copies: ReleasedCopies, rows: RowSelection, knowledge: Knowledge) -> Moments:
    """Return the moments of the copies, without the original, over the rows whose copies an adversary has."""
    if not copies.joint:
        return Moments(copies.table.rows, np.empty(0), np.empty((0, 0)))
    blocks = rows.seen(knowledge, copies.blocks)
    return Moments.merge(of_rows(held, copies.moments.mean) for _, x, held in blocks() if len(x))


def gathered_stripes(copies: ReleasedCopies, rows: RowSelection, late: bool) -> Iterable[Stripe]:
    """Return what is gathered of each stripe in one pass over the copies, or, late, of the chosen rows alone."""
    table, moments = copies.table, copies.moments
    job = MomentJob(
        table.rows, table.width, len(copies.numbers), moments.mean, rows.draws, apart=copies.apart
    )
    undo = None if copies.transformed is None else copies.transformed.undo
    found = (NumberBlock.of(block, copies.joint, undo) for block in copies.blocks())
    return [job.chosen_alone(found)] if late else job.stripes(found)

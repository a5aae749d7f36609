"""Moments of one release, and the view of each adversary on it.

| symbol | meaning | shape |
| --- | --- | --- |
| ``M_i, t_i`` | matrix and translation of copy i, if copies were transformed | (N, N), (N,) |
| ``u_i`` | ``M_i⁻¹ (y_i − t_i) = x + Z_i`` | (N,) |
| ``T`` | ``diag(I, M_1 … M_M)``: ``T P Tᵀ`` has the moments of ``[x, y_1 …]`` | (d, d) |

The audit gathers moments of ``u`` about the table's mean. An adversary is given ``T P Tᵀ``. Its map
``W`` is ``W_i M_i`` in the audit's coordinates, where the theory of additive noise holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownSample,
    Perfect,
    PublishedModel,
    UnmatchedRecords,
)
from auditor.adversary.published_tree import (
    LinearModel,
    ModelledMoments,
    TreeMoments,
    grown,
    least_squares,
    of_records,
    stated,
)
from auditor.adversary.view import (
    NOTHING,
    ExactMoments,
    Given,
    SampleMoments,
    UnpairedRecords,
    View,
)
from auditor.audit.numeric.estimated_noise import EstimatedNoise
from auditor.audit.numeric.known_rows import RowSelection, key_of
from auditor.audit.numeric.moment_pass import MomentJob, NumberBlock, Stripe
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.moments import Awaited, Moments, of_rows
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.base.transform import Transformed
from auditor.types import Array, Blocks


@dataclass(frozen=True)
class ReleasedCopies:
    """Copies of a table, and the known facts of the scheme.

    Attributes
    ----------
    moments : TableMoments
        The table's own.
    levels : tuple of float
        Empty if unknown.
    law : NoiseLaw or None
        Of the noise in all copies.
    blocks : callable
        Yields (block number, original rows, all copies' rows), anew at every call.
    joint : bool
        Whether copies have the table's columns. Otherwise there are no joint moments, and only
        attacks on rows apply.
    public : mapping
        Public parameters of the scheme.
    numbers : tuple of int
        Numbers of the copies; by default one for each level.
    transformed : Transformed or None
        The matrices that copies were multiplied by, for the audit alone.
    apart : bool
        Whether moments of row groups are needed: for a jackknife, or for evidence on pooling.
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
        """Number the copies, and make the public parameters read-only."""
        object.__setattr__(self, "numbers", self.numbers or tuple(range(1, len(self.levels) + 1)))
        object.__setattr__(self, "public", MappingProxyType(dict(self.public)))


def as_seen(transformed: Transformed | None, moments: Moments) -> Moments:
    """Return an adversary's moments, ``T P Tᵀ``; unchanged for copies without a matrix."""
    return moments if transformed is None or moments.size == 0 else transformed.as_seen(moments)


class Shares:
    """Distinct values of a table's columns, with their shares, on request.

    ``asked`` records that an attack asked. Views refer to this object only, so they do not keep the
    moments of a release alive.
    """

    def __init__(self, table: Table) -> None:
        self._table, self.asked = table, False

    def __call__(self, column: int) -> tuple[Array, Array]:
        """Return the distinct values of a column, and the share of records with each."""
        self.asked = True
        return self._table.shares(column)


class Gathered:
    """One release's moments, and the view of each adversary.

    Parameters
    ----------
    rows : RowSelection
        Of the same table.
    stripes : iterable of Stripe, optional
        Sums of all stripes in order, if gathered already; otherwise one pass gathers them.
    late : bool
        Whether to gather moments of the copies alone, and only if an attack uses them: a third of
        the time of one linear attack from Python. There are no ``groups`` then. Without effect if
        adversaries know rows.

    Attributes
    ----------
    groups : list of Moments
        Of ``[X, Y_1 … Y_M]``, by row group (``auditor.numerics.blocks.moment_groups``), or of all
        rows.
    finite : bool
        Whether copies of other columns, which have no moments, are finite.
    noise : EstimatedNoise or None
        Noise of copies from files. Must be set before any view is used.
    """

    def __init__(
        self,
        copies: ReleasedCopies,
        rows: RowSelection,
        stripes: Iterable[Stripe] | None = None,
        late: bool = False,
    ) -> None:
        self.copies, self.rows, whole = copies, rows, Stripe()
        self._late = late and not rows.draws
        if stripes is None:
            stripes = () if self._late else gathered_stripes(copies, rows)
        for part in stripes:
            whole.add(part)
        self._chosen, self.finite, self.seconds = whole.chosen, whole.finite, whole.seconds
        self.groups = [whole.groups[number] for number in sorted(whole.groups)]
        self._views: dict[str, View] = {}
        self.noise: EstimatedNoise | None = None
        self.shares = Shares(copies.table)

    @property
    def law(self) -> NoiseLaw | None:
        """The law that attacks are given: the stated or the estimated one, if any."""
        stated = self.copies.law
        return self.noise.law if stated is None and self.noise is not None else stated

    def view(self, knowledge: Knowledge) -> View:
        """Return the view of an adversary with every copy."""
        if knowledge.label not in self._views:
            copies = self.copies
            self._views[knowledge.label] = View(
                attributes=copies.table.attributes,
                copies=copies.numbers,
                levels=copies.levels,
                knowledge=knowledge,
                law=self.law,
                centre=copies.moments.mean,
                released=Awaited(partial(_of_copies_alone, copies))
                if self._late
                else self._of_copies(Moments.merge(self.seen(knowledge))),
                given=self._given(knowledge),
                scheme=copies.public,
                seed=int(self.rows.rng("guesses").integers(2**63)),
            )
        return self._views[knowledge.label]

    def _given(self, knowledge: Knowledge) -> Given:
        table = self.copies.moments
        if isinstance(knowledge, (Perfect, KnownAttributes)):
            return ExactMoments(table.mean, table.covariance, self.shares)
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
            add = self._with_tree if knowledge.is_tree else self._with_model
            return add(knowledge, self._of_copies(moments))
        if isinstance(knowledge, Estimated):
            return SampleMoments(self._of_copies(moments))
        joint = as_seen(self.copies.transformed, moments) if self.copies.joint else None
        return replace(chosen.records, moments=joint)

    def _with_model(self, knowledge: PublishedModel, copies: Moments) -> ModelledMoments:
        mean, K_X = self.copies.moments.mean, self.copies.moments.covariance
        target, places = self._columns(knowledge)
        if (figures := knowledge.regression) is None:
            model = least_squares(mean, K_X, target, places)
        else:
            coefficients = np.array(figures.coefficients)
            model = LinearModel(target, places, coefficients, figures.intercept, figures.variance)
        known = (mean[places], K_X[np.ix_(places, places)]) if knowledge.known else None
        return ModelledMoments(copies, model, known)

    def _with_tree(self, knowledge: PublishedModel, copies: Moments) -> TreeMoments:
        table, (target, places) = self.copies.table, self._columns(knowledge)
        if knowledge.tree is not None and not knowledge.known:
            return TreeMoments(copies, stated(knowledge.tree, target, places, knowledge.on), None)
        blocks = row_blocks(table.rows, table.width)
        columns = np.concatenate([table.read(a, b)[:, [*places, target]] for a, b in blocks])
        if knowledge.tree is not None:
            tree = stated(knowledge.tree, target, places, knowledge.on)
        else:
            assert knowledge.depth is not None
            tree = grown(columns[:, :-1], columns[:, -1], knowledge.depth, target, places)
        known = of_records(tree, columns[:, :-1]) if knowledge.known else None
        return TreeMoments(copies, tree, known)

    def _columns(self, knowledge: PublishedModel) -> tuple[int, Any]:
        names = self.copies.table.attributes
        on = np.array([names.index(name) for name in knowledge.on], dtype=np.intp)
        return names.index(knowledge.target), on

    def _of_copies(self, moments: Moments) -> Moments:
        stacked = range(1, len(self.copies.numbers) + 1) if self.copies.joint else ()
        width = self.copies.table.width
        return as_seen(self.copies.transformed, moments).of_copies(stacked, width)

    def seen(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the rows whose copies an adversary has, by row group."""
        return self.judged(knowledge) if isinstance(knowledge, KnownSample) else self.groups

    def judged(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of the judged rows, by row group; empty groups are left out."""
        if not self.rows.given(knowledge).size:
            return self.groups
        known = self._chosen[key_of(knowledge)].by_group
        rest = [
            group - known[number] if number in known else group
            for number, group in enumerate(self.groups)
        ]
        return [group for group in rest if group.count]

    def folds(self, knowledge: Knowledge) -> list[Moments]:
        """Return the moments of ``[X, Y_1 … Y_M]`` over each fold of the chosen rows."""
        return self._chosen[key_of(knowledge)].folds


def _of_copies_alone(copies: ReleasedCopies) -> Moments:
    if not copies.joint:
        return Moments(copies.table.rows, np.empty(0), np.empty((0, 0)))
    mean = copies.moments.mean
    return Moments.merge(of_rows(held, mean) for _, _, held in copies.blocks())


def gathered_stripes(copies: ReleasedCopies, rows: RowSelection) -> Iterable[Stripe]:
    """Return the sums of each stripe, from one pass over the copies."""
    table, moments = copies.table, copies.moments
    job = MomentJob(
        table.rows, table.width, len(copies.numbers), moments.mean, rows.draws, copies.apart
    )
    undo = None if copies.transformed is None else copies.transformed.undo
    return job.stripes(NumberBlock.of(block, copies.joint, undo) for block in copies.blocks())

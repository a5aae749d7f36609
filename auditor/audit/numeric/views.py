"""Moments of one release, its estimated noise, and adversaries' views.

| symbol | meaning | shape |
| --- | --- | --- |
| ``M_i, t_i`` | matrix and translation of copy i, if copies were transformed | (N, N), (N,) |
| ``u_i`` | ``M_i⁻¹ (y_i − t_i) = x + Z_i`` | (N,) |
| ``T`` | ``diag(I, M_1 … M_M)``: ``T P Tᵀ`` has the moments of ``[x, y_1 …]`` | (d, d) |
| ``K̂`` | covariance of all ``Z_i = Y_i − X``, divisor n | (MN, MN) |
| ``σ̂_i²`` | level of copy i: mean over attributes of ``var(Z_ij) / var(X_j)`` | scalar |
| ``d(K)`` | distance from a law: largest ``|K̂ − K|`` over both standard deviations | scalar |
| ``r`` | largest correlation of an attribute with any of the noise | scalar |

The audit gathers moments of ``u`` about the table's mean; an adversary gets ``T P Tᵀ``.

Without a law, attacks get the nearest scheme's shape with ``Σ̂_ij = tr(K̂_ij K_0⁺) / rank K_0``. If
its distance exceeds `NEAR` and chance, they get ``K̂``. If the noise depends on the data (``r``),
no law is assumed. An estimated law is no proof.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

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
from auditor.adversary.published import (
    LinearModel,
    ModelledMoments,
    RegressionTree,
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
from auditor.audit.numeric.moment_pass import Chosen, MomentJob, RowSelection, Stripe, key_of
from auditor.audit.numeric.release import Release
from auditor.base import PluginError
from auditor.base.types import Array
from auditor.data.table import Table
from auditor.numerics.blocks import Moments
from auditor.numerics.linear_algebra import deviations, quotient
from auditor.numerics.statistics import jackknife_error
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw, Transformed
from auditor.schemes.base.scheme import TableMoments, schemes_held_against

NEAR = 0.05
"""Largest distance of noise from a law that replaces it."""
CHANCE = 6.0
"""The same in units of ``1/√n``: 4.2 standard errors of a variance, √(2/n) each."""
DEPENDENT, SURE = 0.02, 5.0
"""Least relevant correlation of noise with data, and its least number of standard errors."""
MOST_NUMBERS = 2_000
"""Most copies times attributes: a covariance needs 32 megabytes."""


class EstimatedNoise(NamedTuple):
    """Estimates of the noise.

    Attributes
    ----------
    levels, std_errors : ndarrays of shape (M,)
    distances : dict of str to float
        ``d`` by scheme.
    dependence : float
        ``r``.
    law : NoiseLaw or None
        For attacks; None if the noise depends on the data.
    """

    levels: Array
    std_errors: Array
    distances: Mapping[str, float]
    dependence: float
    law: NoiseLaw | None


def estimated_noise(groups: Sequence[Moments], table: TableMoments) -> EstimatedNoise | None:
    """Noise by moments of ``[X, Y_1 … Y_M]`` by row group; None if too large.

    Standard errors of levels are by a jackknife over row groups. Every attribute must vary.
    """
    N, whole = table.mean.size, Moments.merge(groups)
    if not N < whole.size <= MOST_NUMBERS + N or whole.count < 2:
        return None
    K = with_noise(whole.covariance(), N)
    variances, K_Z = np.diag(table.covariance), varying(K[N:, N:])
    deviation = deviations(K_Z)
    levels, white = (noise_levels(K_Z, of) for of in (variances, np.full(N, variances.mean())))
    errors = np.full(levels.size, np.nan)
    if len(groups) > 1:
        others = (with_noise((whole - group).covariance(), N)[N:, N:] for group in groups)
        errors = jackknife_error(np.array([noise_levels(rest, variances) for rest in others]))
    laws = dict[str, KroneckerNoise]()
    for scheme in schemes_held_against("numeric"):
        made = scheme(scheme.Parameters())
        of_white = getattr(made.parameters, "noise", None) == "white"
        laws[scheme.name] = made.law(tuple((white if of_white else levels).tolist()), table)

    def distance(law: NoiseLaw) -> float:
        return _largest(K_Z - law.covariance, np.outer(deviation, deviation))

    distances = {name: distance(law) for name, law in laws.items()}
    r = _largest(K[:N, N:], np.outer(np.sqrt(variances), deviation))
    found: NoiseLaw | None = None
    if r <= max(DEPENDENT, SURE / np.sqrt(whole.count)):
        near = laws[min(distances, key=distances.__getitem__)]
        rank = max(1, np.linalg.matrix_rank(near.shape, hermitian=True))
        inverse = np.linalg.pinv(near.shape, hermitian=True)
        parts = K_Z.reshape(near.copies, N, near.copies, N)
        Sigma = np.einsum("iajb,ba->ij", parts, inverse) / rank
        found = KroneckerNoise(varying(Sigma), near.shape, near.follows_data)
        if distance(found) > max(NEAR, CHANCE / np.sqrt(whole.count)):
            found = DenseNoise(K_Z, N)
    return EstimatedNoise(levels, errors, distances, r, found)


def with_noise(K: Array, N: int) -> Array:
    """Covariance of ``[X, Y_1 − X, …]`` from that of ``[X, Y_1, …]``.

    Examples
    --------
    >>> with_noise(np.array([[1.0, 1.0], [1.0, 1.5]]), 1).tolist()
    [[1.0, 0.0], [0.0, 0.5]]
    """
    D = K.copy()
    M = len(K) // N - 1
    D[N:] -= np.tile(D[:N], (M, 1))
    D[:, N:] -= np.tile(D[:, :N], (1, M))
    return (D + D.T) / 2.0


def varying(K: Array) -> Array:
    """Symmetric covariance, 0 where rounding made a variance negative."""
    there = np.diag(K) > 0
    return np.where(np.outer(there, there), (K + K.T) / 2.0, 0.0)


def noise_levels(K_Z: Array, variances: Array) -> Array:
    """``σ̂_i²``, shape (M,)."""
    return (np.clip(np.diag(K_Z), 0.0, None).reshape(-1, variances.size) / variances).mean(axis=1)


def _largest(off: Array, scale: Array) -> float:
    return float(quotient(np.abs(off), scale).max(initial=0.0))


def as_seen(transformed: Transformed | None, moments: Moments) -> Moments:
    """An adversary's moments, ``T P Tᵀ``."""
    return moments if transformed is None or moments.size == 0 else transformed.as_seen(moments)


class Shares:
    """Distinct values of columns with their shares, on request.

    ``asked`` records a request. Views refer to this object only, which frees the moments.
    """

    def __init__(self, table: Table) -> None:
        self._table, self.asked = table, False

    def __call__(self, column: int) -> tuple[Array, Array]:
        """Distinct values of a column, and the share of each."""
        self.asked = True
        return self._table.shares(column)

    def steps(self) -> Array:
        """Columns' recording steps, shape (N,); NaN for none, or if standardised."""
        table = self._table
        return np.full(table.width, np.nan) if table.standardized else table.resolution.steps


class Gathered:
    """One release's moments, and the view of each adversary.

    Parameters
    ----------
    rows : RowSelection
        Of the same table.
    whole : Stripe
        Sums over all rows, gathered in one pass by default.

    Attributes
    ----------
    groups : list of Moments
        Of ``[X, Y_1 … Y_M]``, by row group or of all rows.
    law : NoiseLaw or None
        As stated, or as estimated (``noise``).
    noise : EstimatedNoise or None
        Noise of copies from files.

    Raises
    ------
    PluginError
        The scheme stated an impossible law, or drew values that are not finite.
    """

    def __init__(self, release: Release, rows: RowSelection, whole: Stripe | None = None) -> None:
        table, scheme = release.table, release.scheme
        self.release, self.rows, self.law = release, rows, release.law
        if whole is None:
            shape = table.rows, table.width, release.copies
            whole = release.go_through(MomentJob(*shape, release.moments.mean, rows.draws))
        self.whole = whole
        self.groups = [whole.groups[number] for number in sorted(whole.groups)]
        if not whole.finite or not all(np.isfinite(one.products).all() for one in self.groups):
            raise PluginError("the scheme drew values that are not finite")
        self.noise = None
        if scheme.adds_noise and not scheme.makes_copies and release.joint:
            self.noise = estimated_noise(self.groups, release.moments)
        if self.law is None and self.noise is not None:
            self.law = self.noise.law
        self._views: dict[str, View] = {}
        self.shares = Shares(table)
        self.shown = cache(lambda: [*table.shown, *scheme.shown(table)])
        self.drawn: dict[int, Any] = {}
        self.seed = int(rows.rng("guesses").integers(2**63))
        self._trees: dict[str, tuple[RegressionTree, Any]] = {}

    def redrawn(self, chosen: dict[str, Chosen], whole: Moments, seed: int) -> Gathered:
        """Moments of another draw of noise and matrices."""
        other, key = copy(self), replace(self.release.key, seed=seed)
        other.whole, other.release = Stripe({0: whole}, chosen), replace(self.release, key=key)
        other.groups, other._views, other.seed = [whole], {}, seed
        return other

    def view(self, knowledge: Knowledge) -> View:
        """View of an adversary with every copy."""
        if knowledge.label not in self._views:
            release = self.release
            self._views[knowledge.label] = View(
                attributes=release.table.attributes,
                copies=release.numbers,
                levels=release.levels,
                knowledge=knowledge,
                law=self.law,
                centre=release.moments.mean,
                released=self._of_copies(Moments.merge(self.seen(knowledge))),
                given=self._given(knowledge),
                scheme=MappingProxyType(dict(release.scheme.public)),
                seed=self.seed,
                steps=self.shares.steps,
                shown=self.shown,
            )
        return self._views[knowledge.label]

    def _given(self, knowledge: Knowledge) -> Given:
        table = self.release.moments
        if isinstance(knowledge, (Perfect, KnownAttributes)):
            return ExactMoments(table.mean, table.covariance, self.shares)
        chosen = self.whole.chosen.get(key_of(knowledge))
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
        joint = as_seen(self.release.transformed, moments) if self.release.joint else None
        return replace(chosen.records, moments=joint)

    def _with_model(self, knowledge: PublishedModel, copies: Moments) -> ModelledMoments:
        mean, K_X = self.release.moments.mean, self.release.moments.covariance
        target, places = self._columns(knowledge)
        model = least_squares(mean, K_X, target, places)
        if knowledge.coefficients is not None:
            intercept, variance = knowledge.intercept, knowledge.residual_variance
            assert intercept is not None
            assert variance is not None
            coefficients = np.array([*knowledge.coefficients.values()])
            model = LinearModel(target, places, coefficients, intercept, variance)
        known = (mean[places], K_X[np.ix_(places, places)]) if knowledge.known else None
        return ModelledMoments(copies, model, known)

    def _with_tree(self, knowledge: PublishedModel, copies: Moments) -> TreeMoments:
        if knowledge.label not in self._trees:
            self._trees[knowledge.label] = self._published_tree(knowledge)
        return TreeMoments(copies, *self._trees[knowledge.label])

    def _published_tree(self, knowledge: PublishedModel) -> tuple[RegressionTree, Any]:
        table, (target, places) = self.release.table, self._columns(knowledge)
        if knowledge.tree is not None:
            tree = stated(knowledge.tree, target, places, knowledge.on)
            if not knowledge.known:
                return tree, None
        columns = table.read(0, table.rows)[:, [*places, target]]
        if knowledge.tree is None:
            assert knowledge.depth is not None
            tree = grown(columns[:, :-1], columns[:, -1], knowledge.depth, target, places)
        return tree, of_records(tree, columns[:, :-1]) if knowledge.known else None

    def _columns(self, knowledge: PublishedModel) -> tuple[int, Any]:
        names = self.release.table.attributes
        on = np.array([names.index(name) for name in knowledge.on], dtype=np.intp)
        return names.index(knowledge.target), on

    def _of_copies(self, moments: Moments) -> Moments:
        stacked = range(1, self.release.copies + 1) if self.release.joint else ()
        width = self.release.table.width
        return as_seen(self.release.transformed, moments).of_copies(stacked, width)

    def seen(self, knowledge: Knowledge) -> list[Moments]:
        """Moments of the rows that an adversary sees, by row group."""
        return self.judged(knowledge) if isinstance(knowledge, KnownSample) else self.groups

    def all_judged(self, knowledge: Knowledge) -> Moments:
        """Moments of all judged rows together."""
        return Moments.merge(self.judged(knowledge))

    def judged(self, knowledge: Knowledge) -> list[Moments]:
        """Moments of the judged rows by row group, without empty groups."""
        if not self.rows.given(knowledge).size:
            return self.groups
        known = self.whole.chosen[key_of(knowledge)].by_group
        rest = [
            group - known[number] if number in known else group
            for number, group in enumerate(self.groups)
        ]
        return [group for group in rest if group.count]

"""Identify the coefficients of a public cosine transform, and invert it.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``C`` | orthonormal cosine transform (DCT-II) across a record's attributes: public | (N, N) | mukherjee2006 |
| ``y`` | ``P C x``, P a choice and an order of n' coefficients: secret | (n',) | liu2008, (12.4) |
| ``g_ji`` | distance of column j from coefficient i, below | (n', N) | |
| ``π`` | ``argmin Σ_j g_jπ(j)``, one coefficient a column (Hungarian method) | (n',) | |
| ``m, K`` | mean and covariance of the coefficients, as known | (N,), (N, N) | |
| ``ĉ_rest`` | ``m_rest + K_rest,π K_ππ⁺ (y − m_π)``: the dropped coefficients | (N − n',) | li2012 (6) |
| ``x̂`` | ``Cᵀ ĉ`` | (N,) | |

| knowledge | ``g_ji`` |
| --- | --- |
| ``known-records`` | mean square of ``y_j − (Cx)_i`` over the known records |
| ``unmatched-records`` | mean square of ``(Cx)_i`` less the nearest value of column j |
| ``perfect``, ``known-sample`` | squared difference of means and of standard deviations |

One known record suffices unless two of its coefficients are equal. Dropped coefficients are
estimated by least squares, with the ridge of known-io-regression. Theory is its error, if exactly
one coefficient fits each column to the last digits. Only the first copy is used.
"""

from __future__ import annotations

import numpy as np

from auditor.adversary.view import Originals
from auditor.numerics.linear_algebra import deviations
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    ExactMoments,
    Indices,
    Knowledge,
    NotApplicable,
    Reconstruction,
    Records,
    RowAttack,
    UnmatchedRecords,
    View,
    register,
    scipy,
    unprinted,
)

from ._fits import stacked_moments
from .known_io_map import ridge_map

MOST_COMPARED = 20
"""Known records compared with the columns: one suffices but for coincidences."""

SAME = 1e-16
"""Largest mean square distance, relative to the coefficients', at which a column is a
coefficient."""

SECRET = "undoes a public transform (matrix: dct); the matrix of this scheme is secret, and has to be learnt first"


@register
class TransformMatch(RowAttack):
    """Identify the coefficients of a public transform, and invert it."""

    name = "transform-match"
    attack_kind = "with records"
    jumps = True
    reference = "mukherjee2006; liu2008, section 4"
    families = frozenset({"random-projection"})
    knowledge = ("known-records", "unmatched-records", "known-sample", "perfect")
    assumes = "The adversary knows the transform, not which coefficients are kept in which order; and a record, a sample, or the moments."
    wins = (
        "Exact for all records of a public transform that keeps every coefficient, from a single known record on; loses what was dropped "
        "and the rest does not tell; does not apply to secret matrices."
    )

    def check(self, family: str, knowledge: Knowledge) -> None:
        if family.startswith("rotation"):
            raise NotApplicable(SECRET)
        super().check(family, knowledge)

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        if view.scheme.get("matrix") != "dct":
            raise NotApplicable(SECRET)
        from auditor.schemes.linear_maps import cosine_transform

        C, given = cosine_transform(view.width), view.given
        first = ([copies[0]] for copies in blocks)
        if isinstance(given, ExactMoments):
            m, K = C @ given.mean, C @ given.covariance @ C.T
            return Named.of(C, m, K, None, moment_gaps(m, K, stacked_moments(first)))
        c = view.need(Originals).original @ C.T
        m, K = c.mean(axis=0), np.atleast_2d(np.cov(c.T, bias=True))
        if isinstance(given, Records):
            gaps = ((given.copies[0][:, :, None] - c[:, None, :]) ** 2).mean(axis=0)
        elif isinstance(view.knowledge, UnmatchedRecords):
            gaps = nearest_gaps(c[:MOST_COMPARED], blocks)
        else:
            gaps = moment_gaps(m, K, stacked_moments(first))
        return Named.of(C, m, K, len(c), gaps)


@unprinted
class Named(Reconstruction):
    """The transform with identified columns.

    Attributes
    ----------
    transform : ndarray of shape (N, N)
        ``C``.
    kept, rest : ndarrays of shape (n',), (N − n',)
        ``π``, and the dropped coefficients.
    mean : ndarray of shape (N,)
        ``m``.
    guess : ndarray of shape (N − n', n')
        ``K_rest,π K_ππ⁺``.
    certain : bool
        Whether exactly one coefficient fits each column.
    """

    transform: Array
    kept: Indices
    rest: Indices
    mean: Array
    guess: Array
    certain: bool

    @classmethod
    def of(cls, C: Array, m: Array, K: Array, records: int | None, gaps: Array) -> Named:
        """Best assignment for distances of shape (n', N).

        ``records`` were used for the moments; None for exact ones.
        """
        kept = np.asarray(scipy.optimize.linear_sum_assignment(gaps)[1], dtype=int)
        rest = np.setdiff1d(np.arange(len(C)), kept)
        ridge = 0.0 if records is None else "gcv"
        guess = ridge_map(
            K[np.ix_(rest, rest)], K[np.ix_(rest, kept)], K[np.ix_(kept, kept)], records or 0, ridge
        )
        fits = gaps <= SAME * float(np.mean(m**2 + np.diag(K)))
        return cls(C, kept, rest, m, guess, bool((fits.sum(axis=1) == 1).all()))

    def rows(self, copies: Arrays) -> Array:
        c = np.empty((len(copies[0]), len(self.transform)))
        c[:, self.kept] = copies[0]
        c[:, self.rest] = self._guessed(copies[0])
        return c @ self.transform

    def expected(self, x: Array) -> Array | None:
        if not self.certain:
            return None
        c = x @ self.transform.T
        return ((c[:, self.rest] - self._guessed(c[:, self.kept])) ** 2).sum(axis=1)

    def _guessed(self, kept: Array) -> Array:
        return self.mean[self.rest] + (kept - self.mean[self.kept]) @ self.guess.T


def nearest_gaps(c: Array, blocks: CopyBlocks) -> Array:
    """``g``, (n', N), by the column values nearest to ``c``, (p, N)."""
    nearest: Array = np.array(np.inf)
    for copies in blocks:
        trees = [scipy.spatial.KDTree(column[:, None]) for column in copies[0].T]
        nearest = np.minimum(nearest, [tree.query(c[..., None])[0] for tree in trees])
    if not nearest.ndim:
        raise NotApplicable("has no released row to look at")
    return (nearest**2).mean(axis=1)


def moment_gaps(m: Array, K: Array, columns: tuple[Array, Array, int]) -> Array:
    """``g``, shape (n', N), from the columns' mean and covariance."""
    mean, covariance, _ = columns
    stated, own = (deviations(each) for each in (K, covariance))
    return (mean[:, None] - m) ** 2 + (own[:, None] - stated) ** 2

"""Linear map from pooled copies to originals, fitted to known records.

| symbol | meaning | shape |
| --- | --- | --- |
| ``C_xx, C_xy, C_yy`` | covariances over the known records, copies side by side | (N, N), (N, d), (d, d) |
| ``W`` | the map; each attack fits its own | (N, d) |
| ``x̂`` | ``x̄_p + W (y − ȳ_p)`` | (N,) |
"""

from abc import abstractmethod

import numpy as np

from auditor.plugin import (
    Affine,
    Array,
    Arrays,
    CopyBlocks,
    LinearAttack,
    NotApplicable,
    Reconstruction,
    Records,
    RowAttack,
    View,
    unprinted,
)

SPANNED = 1e-8
"""Directions with less than this share of the largest singular value count as not spanned."""


class FittedMap(LinearAttack):
    """Base of attacks that fit ``W`` to known records."""

    attack_kind = "with records"
    families = frozenset({"additive", "rotation", "rotation-noise", "random-projection"})
    knowledge = ("known-records",)
    assumes = "The adversary has some records in clear and knows which released rows are theirs; nothing else."

    @property
    def undoes_a_matrix(self) -> bool:
        """Whether spanning records undo a noise-free matrix exactly."""
        return True

    @abstractmethod
    def weights(self, C_xx: Array, C_xy: Array, C_yy: Array, records: int) -> Array:
        """``W`` from covariances over ``records`` known records."""

    def affine(self, view: View) -> Affine:
        known = view.need(Records).moments
        if known is None:
            raise NotApplicable(
                "learns from moments, which copies need as many columns for as the original has"
            )
        C, N, mean = known.covariance(), view.width, known.mean
        W = self.weights(C[:N, :N], C[:N, N:], C[N:, N:], known.count)
        return Affine(W, mean[:N] - W @ mean[N:], fixed=False, apart=True)

    def over_rows(self) -> RowAttack:
        return MapOverRows(self)


class MapOverRows(RowAttack):
    """The map fitted to the known records' rows, for copies of any width."""

    name = "fitted-map"
    families = FittedMap.families
    knowledge = FittedMap.knowledge

    def __init__(self, attack: FittedMap) -> None:
        super().__init__(attack.parameters)
        self._attack = attack

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        records = view.need(Records)
        x, y = records.original, np.hstack(records.copies)
        mean_x, mean_y, p = x.mean(axis=0), y.mean(axis=0), len(x)
        x, y = x - mean_x, y - mean_y
        undone = self._attack.undoes_a_matrix and not any(view.levels)
        exact = undone and _rank(x) == _rank(y) == view.width
        W = self._attack.weights(x.T @ x / p, x.T @ y / p, y.T @ y / p, p)
        return LinearMap(mean_x, mean_y, W, exact)


@unprinted
class LinearMap(Reconstruction):
    """``x̂ = m_x + W (y − m_y)`` of copies side by side; ``exact`` without error."""

    mean_x: Array
    mean_y: Array
    W: Array
    exact: bool = False

    def rows(self, copies: Arrays) -> Array:
        return self.mean_x + (np.hstack(list(copies)) - self.mean_y) @ self.W.T

    def expected(self, x: Array) -> Array | None:
        return np.zeros(len(x)) if self.exact else None


def _rank(centred: Array) -> int:
    s = np.linalg.svd(centred, compute_uv=False)
    return int((s > SPANNED * s[0]).sum()) if s.size and s[0] > 0 else 0

"""Two-sample energy statistic, and a sign search that minimises it.

``E(P, Q) = 2 E‖p − q‖ − E‖p − p'‖ − E‖q − q'‖`` is 0 for equal distributions and positive otherwise
(szekely2004). Sign changes of one sample's axes leave the last two terms unchanged. So the search
minimises ``T(D) = mean ‖a D − b‖``. ``‖a D − b‖² = ‖a‖² + ‖b‖² − 2 Σ_k D_k a_k b_k`` changes by ``4
D_k a_k b_k`` when D_k flips: one product of columns per flip.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, scipy


def energy(a: Array, b: Array) -> float:
    """Return the energy V-statistic of two samples, shapes (s, N) and (m, N).

    It is never negative.

    Examples
    --------
    >>> a = np.array([[0.0], [2.0]])
    >>> energy(a, a)
    0.0
    """
    s, m = len(a), len(b)
    within = (
        2.0 * scipy.spatial.distance.pdist(a).sum() / s**2
        + 2.0 * scipy.spatial.distance.pdist(b).sum() / m**2
    )
    return float(2.0 * scipy.spatial.distance.cdist(a, b).mean() - within)


def univariate_energy(a: Array, b: Array) -> float:
    """Return ``2 ∫ (F_a − F_b)²`` of two samples of numbers, by sorting."""
    points = np.sort(np.concatenate([a, b]))
    F_a = np.searchsorted(np.sort(a), points[:-1], side="right") / len(a)
    F_b = np.searchsorted(np.sort(b), points[:-1], side="right") / len(b)
    return float(2.0 * np.sum((F_a - F_b) ** 2 * np.diff(points)))


class SignSearch:
    """Axis signs and ``‖a D − b‖²``, shape (s, m), with incremental updates."""

    def __init__(self, a: Array, b: Array, signs: Array) -> None:
        self._a, self._b = a, b
        self.signs = signs.copy()
        self._squares = scipy.spatial.distance.cdist(a * signs, b, "sqeuclidean")
        self._root = np.empty_like(self._squares)
        self.value = self._mean_distance(self._squares)

    def _mean_distance(self, squares: Array) -> float:
        np.maximum(squares, 0.0, out=self._root)
        np.sqrt(self._root, out=self._root)
        return float(self._root.mean())

    def _flipped(self, k: int) -> Array:
        return np.asarray(
            self._squares + np.outer(4.0 * self.signs[k] * self._a[:, k], self._b[:, k])
        )

    def _flip(self, k: int) -> None:
        self._squares = self._flipped(k)
        self.signs[k] = -self.signs[k]

    def sweep(self, places: NDArray[np.intp]) -> bool:
        """Flip each sign that lowers the statistic.

        Return whether any sign changed.
        """
        changed = False
        for k in places:
            squares = self._flipped(k)
            value = self._mean_distance(squares)
            if value < self.value * (1.0 - 1e-12):
                self._squares, self.value, changed = squares, value, True
                self.signs[k] = -self.signs[k]
        return changed

    def best_of_all(self, places: NDArray[np.intp]) -> Array:
        """Return the best sign combination at ``places``, by Gray code."""
        best, signs = self.value, self.signs.copy()
        for number in range(1, 2**places.size):
            self._flip(int(places[(number & -number).bit_length() - 1]))
            self.value = self._mean_distance(self._squares)
            if self.value < best:
                best, signs = self.value, self.signs.copy()
        return signs

"""Gaussian autoregressions of variance 1 and order p.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``φ`` | coefficients | (p,) | |
| ``g_t`` | ``Σ_j φ_j g_{t−j} + s e_t``, e independent, N(0, 1) | | yule1927 |
| ``r_h`` | autocorrelation at lag h: ``r_h = Σ_j φ_j r_{|h−j|}`` for h ≥ 1 | | Yule–Walker equations |
| ``s²`` | ``1 − Σ_j φ_j r_j``, variance of an innovation | scalar | |

The reversed series has an equal law (``lead``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from auditor.base.types import Array
from auditor.process.deferred import scipy

BELOW_ROUNDING = 1e-20
NEARLY_ALL = 1e-12
"""Least variance share of an innovation."""


@dataclass(frozen=True)
class Autoregression:
    """A stationary Gaussian series of variance 1.

    Coefficients ``φ``, p ≥ 1. ``ValueError`` if there is none.
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (
            np.isfinite(self.coefficients).all()
            and self.memory < 1.0
            and self.innovation_variance > NEARLY_ALL
        ):
            raise ValueError(
                "must be the coefficients of a stationary autoregression, as [0.9]: what it remembers must fade"
            )

    @property
    def order(self) -> int:
        """``p``."""
        return len(self.coefficients)

    @cached_property
    def polynomial(self) -> Array:
        """``(1, −φ_1 … −φ_p)``, the filter from the series to its innovations."""
        return np.array([1.0, *(-phi for phi in self.coefficients)])

    @cached_property
    def memory(self) -> float:
        """Asymptotic decay per row: the largest root of ``z^p − φ_1 z^{p−1} − …``."""
        return float(np.abs(np.roots(self.polynomial)).max(initial=0.0))

    @cached_property
    def _first(self) -> Array:
        p = self.order
        A = np.eye(p)
        for h in range(1, p + 1):
            for j in range(1, p + 1):
                if h != j:
                    A[h - 1, abs(h - j) - 1] -= self.coefficients[j - 1]
        return np.concatenate([[1.0], np.linalg.solve(A, self.coefficients)])

    @cached_property
    def innovation_variance(self) -> float:
        """``s²``."""
        return float(1.0 - self._first[1:] @ np.array(self.coefficients))

    @property
    def precision(self) -> float:
        """A value's variance over its conditional one, ``(1 + Σ φ_j²)/s²``."""
        return float(self.polynomial @ self.polynomial) / self.innovation_variance

    def autocorrelations(self, lags: int) -> Array:
        """``r_0 … r_{lags − 1}``."""
        first = self._first[: self.order]
        return np.concatenate(
            [first, self.continued(first[:, None], np.zeros((max(0, lags - self.order), 1)))[:, 0]]
        )[:lags]

    def _root(self, rows: int) -> Array:
        return np.linalg.cholesky(scipy.linalg.toeplitz(self._first[:rows]))

    def stationary(self, normals: Array) -> Array:
        """``p`` consecutive rows from p rows of N(0, 1), shape (p, N)."""
        return self._root(len(normals)) @ normals

    def continued(self, past: Array, innovations: Array) -> Array:
        """``g_t = Σ_j φ_j g_{t−j} + s e_t`` for rows of e, after ``past``."""
        # the filter's state after the past
        left = -scipy.signal.lfilter(
            self.polynomial, [1.0], np.concatenate([past, np.zeros_like(past)]), axis=0
        )[self.order :]
        rows, _ = scipy.signal.lfilter(
            [np.sqrt(self.innovation_variance)], self.polynomial, innovations, axis=0, zi=left
        )
        return np.asarray(rows)

    def lead(self, rows: Array, end: Array) -> None:
        """Condition rows on the p rows ``end`` that follow, in place.

        Rows drawn given their past get their regression on the end's error. Exact if ``memory **
        len(rows)`` is negligible.
        """
        p, off = self.order, end - rows[-self.order :]
        rows[-p:] = end
        # further back the sum is below a double's last digit
        reach = min(len(rows) - p, int(np.log(BELOW_ROUNDING) / np.log(self.memory)))
        rows[len(rows) - p - reach : len(rows) - p] += self.continued(
            off[::-1], np.zeros((reach, rows.shape[1]))
        )[::-1]

    def innovations(self, rows: Array) -> Array:
        """Independent ``e_t = (g_t − Σ_j φ_j g_{t−j})/s``.

        The first p rows are ``stationary`` inverted.
        """
        found = scipy.signal.lfilter(self.polynomial, [1.0], rows, axis=0) / np.sqrt(
            self.innovation_variance
        )
        first = rows[: self.order]
        found[: len(first)] = np.linalg.solve(self._root(len(first)), first)
        return np.asarray(found)


def yule_walker(r: Array, values: int) -> tuple[float, ...]:
    """Coefficients of the best autoregression by BIC; () for none.

    The order minimises ``values·ln s² + p ln values`` (schwarz1978).
    """
    best: tuple[float, tuple[float, ...]] = (0.0, ())
    for p in range(1, len(r)):
        phi = scipy.linalg.solve_toeplitz(r[:p], r[1 : p + 1])
        left = float(1.0 - phi @ r[1 : p + 1])
        if left <= NEARLY_ALL:
            break
        best = min(best, (values * np.log(left) + p * np.log(values), tuple(map(float, phi))))
    return best[1]

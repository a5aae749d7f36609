"""Symmetric FastICA, taken to its fixed point, and the law of how near to independent components that point lies.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``z`` | whitened rows: mean 0, covariance I | (N, m) | hyvarinen2000 |
| ``s`` | ``W z``, components; W orthogonal | (N, m) | |
| ``g`` | ``tanh``, of the contrast ``log cosh`` | | |
| ``W⁺`` | ``E g(s) zᵀ − diag(E g'(s)) W``, made orthogonal: ``(W⁺ W⁺ᵀ)^{−1/2} W⁺`` | (N, N) | hyvarinen2000 |
| ``o_kl`` | ``sgn(τ_k) E s_l g(s_k)`` | (N, N) | |
| ``τ_k`` | ``E s_k g(s_k) − E g'(s_k)``; 0 of a Gaussian component | (N,) | Tichavský, Koldovský and Oja 2006 |
| ``γ_k`` | ``E g(s_k)² − (E s_k g(s_k))²`` | (N,) | the same |
| ``Var`` | ``(γ_k + γ_l + τ_l²) / (|τ_k| + |τ_l|)² / m``, of the share of l left in k | (N, N) | the same, symmetric |

W is fixed where ``o`` is symmetric. From a W nearby, ``I + (o_kl − o_lk) / (|τ_k| + |τ_l|)`` leads there but for terms of second order.
Where τ of one component is near 0 there may be two fixed points beside each other, one with each sign of it. Signs that are given to ``o``
lead to the one that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, Indices, NotApplicable

MOST_ROWS = 20_000
"""Rows that components are estimated from."""

MOST_STEPS = 300
"""Of a fixed-point iteration: tens are enough unless two components are Gaussian, and then no number may be."""

STARTS, TRIED_STEPS, TRIED_REST = 5, 50, 1e-2
"""Starts at random, and steps from each before they are compared: on attributes that are nearly Gaussian to ``log cosh`` one in five ends
far from the truth, and of the best of five one in ten (beta(2, 5), 3,000 rows; tests/attacks/test_ica.py)."""

AIMED_STEPS = 5
"""Steps towards the fixed point with given signs of ``τ``, before those of the iteration itself: two were enough in 2,300 tables."""

LOG_COSH_OF_NORMAL = 0.3745672075
"""``E log cosh ν`` for ν normal with variance 1."""

FIXED, NEAR = 1e-12, 1e-4
"""A step that moves no entry of W by more has come to the fixed point, which rounding alone then moves; or is near enough to it for steps
in double precision, whose lengths then fall as their squares: of the many before, tanh takes a fifth of the time in single precision."""


@dataclass(frozen=True, eq=False)
class Unmixing:
    """``s = B (y − ȳ)``, components of variance 1 over the rows fitted to.

    Attributes
    ----------
    matrix : ndarray of shape (N, n')
        ``B``.
    mean : ndarray of shape (n',)
        ``ȳ``.
    signs : ndarray of shape (N,)
        Of ``τ``.
    kept : ndarray of shape (N,)
        Share of each component's variance that is of the one it started as.
    fixed : bool
        Whether the steps came to rest.
    """

    matrix: Array = field(repr=False)
    mean: Array = field(repr=False)
    signs: Array = field(repr=False)
    kept: Array = field(repr=False)
    fixed: bool

    @classmethod
    def of(cls, y: Array, components: int, rng: np.random.Generator) -> Unmixing:
        """Learn it from rows of shape (m, n'), from the best of a few starts at random: the one that leads to the largest ``contrast``.

        Raises
        ------
        NotApplicable
            The rows vary in fewer directions than there are components.
        """
        z, whitening, mean = whitened(y, components)
        starts = [orthogonal(rng.standard_normal((components, components))) for _ in range(STARTS)]
        ends = [fixed_point(z, start, TRIED_STEPS, TRIED_REST)[0] for start in starts]
        best = max(range(STARTS), key=lambda place: contrast(ends[place] @ z))
        return cls._from(z, whitening, mean, starts[best], ends[best])

    @classmethod
    def beside(cls, y: Array, directions: Array, signs: Array) -> Unmixing:
        """Learn it from rows of shape (m, N), from a start at ``directions``, shape (N, N): one component a row, of any length.

        ``signs`` of ``τ``, shape (N,), say which of two fixed points to take where there are two beside each other: that of the component
        nearest to a Gaussian one counts.

        Raises
        ------
        NotApplicable
            The rows vary in fewer directions than there are components.
        """
        z, whitening, mean = whitened(y, len(directions))
        start = orthogonal(directions @ np.linalg.pinv(whitening))
        tau = nonlinear_moments(start @ z)[1]
        aimed = np.where(np.abs(tau) == np.abs(tau).min(), signs, np.sign(tau))
        W = start
        for _ in range(AIMED_STEPS):
            W = orthogonal(W + first_order(W @ z, aimed) @ W)
        return cls._from(z, whitening, mean, start, W)

    @classmethod
    def _from(cls, z: Array, whitening: Array, mean: Array, start: Array, W: Array) -> Unmixing:
        end, fixed = fixed_point(z, W)
        kept = (end * start).sum(axis=1) ** 2  # W, start and covariance of z are orthogonal
        return cls(end @ whitening, mean, np.sign(nonlinear_moments(end @ z)[1]), kept, fixed)

    def apply(self, y: Array) -> Array:
        """Return components, shape (b, N)."""
        return np.asarray((y - self.mean) @ self.matrix.T)


def whitened(y: Array, components: int) -> tuple[Array, Array, Array]:
    """Return rows along their principal directions at variance 1, what does that, and their mean.

    Parameters
    ----------
    y : ndarray of shape (m, n')
    components : int
        ``N``, at most n'.

    Returns
    -------
    z : ndarray of shape (N, m)
        One direction a row: sums over records then run along memory, at a third of the cost.
    whitening : ndarray of shape (N, n')
        ``z = whitening (y − mean)``.
    mean : ndarray of shape (n',)

    Raises
    ------
    NotApplicable
        They vary in fewer directions.
    """
    mean = y.mean(axis=0)
    U, singular, Vt = np.linalg.svd(y - mean, full_matrices=False)
    if len(y) <= components or singular[components - 1] <= max(1e-9 * singular[0], 1e-300):  # below, its inverse is no double
        raise NotApplicable(f"the rows do not vary in {components} directions, so they cannot be unmixed into as many components")
    root = np.sqrt(len(y))
    return np.ascontiguousarray(root * U[:, :components].T), root * Vt[:components] / singular[:components, None], mean


def orthogonal(A: Array) -> Array:
    """Return ``(A Aᵀ)^{−1/2} A``, the orthogonal matrix next to A, from its singular vectors: A Aᵀ would square the condition number."""
    U, _, Vt = np.linalg.svd(A)
    return np.asarray(U @ Vt)


def step(z: NDArray[np.floating[Any]], W: Array) -> Array:
    """Return ``W⁺``, with the sign of each row that leaves it next to W's; sums over records are made in the precision of z."""
    g = W.astype(z.dtype) @ z
    np.tanh(g, out=g)
    new = orthogonal(g @ z.T / z.shape[1] - (1.0 - np.einsum("km,km->k", g, g) / z.shape[1])[:, None] * W)
    return new * np.where((new * W).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]


def fixed_point(z: Array, W: Array, steps: int = MOST_STEPS, rest: float = FIXED) -> tuple[Array, bool]:
    """Return where steps from W lead, and whether they have come to rest there, to rounding by default: after so many they are given up."""
    moved, single = np.inf, z.astype(np.float32)
    for _ in range(steps):
        rows, before = (single if moved > max(rest, NEAR) else z), W
        W = step(rows, W)
        moved = np.abs(W - before).max()
        if moved <= rest and rows is z:
            return W, True
    return W, False


def contrast(s: Array) -> float:
    """Return ``Σ_k (E G(s_k) − E G(ν))²`` with ``G = log cosh`` and ν normal: how far components of shape (N, m) are from Gaussian.

    Source: hyvarinen2000's approximation of negentropy, each component alike.
    """
    far = np.abs(s)
    log_cosh = (far + np.log1p(np.exp(-2.0 * far))).mean(axis=1) - np.log(2.0)
    return float(((log_cosh - LOG_COSH_OF_NORMAL) ** 2).sum())


def nonlinear_moments(s: Array) -> tuple[Array, Array, Array]:
    """Return ``E s_l g(s_k)`` at [k, l], shape (N, N), and ``τ`` and ``γ``, shape (N,), over components of shape (N, m)."""
    g, m = np.tanh(s), s.shape[1]
    products, squares = g @ s.T / m, np.einsum("km,km->k", g, g) / m
    own = np.diag(products)
    return products, own - (1.0 - squares), squares - own**2


def first_order(s: Array, signs: Array) -> Array:
    """Return ``(o_kl − o_lk) / (|τ_k| + |τ_l|)`` with these signs of ``τ``, shape (N, N): what leads to the fixed point that has them."""
    products, tau, _ = nonlinear_moments(s)
    o = signs[:, None] * products
    return np.asarray((o - o.T) / _sums(tau))


def leak_deviation(s: Array) -> Array:
    """Return the standard deviation, over tables, of the share of component l that is left in k, at [k, l], shape (N, N); 0 for k = l.

    Parameters
    ----------
    s : ndarray of shape (N, m)
        Components, taken to be independent; *not checked*. The law is for large m.
    """
    _, tau, gamma = nonlinear_moments(s)
    variance = (gamma[:, None] + gamma + tau**2) / _sums(tau) ** 2 / s.shape[1]
    return np.asarray(np.sqrt(np.where(np.eye(len(tau), dtype=bool), 0.0, variance)))


def _sums(tau: Array) -> Array:
    """Return ``|τ_k| + |τ_l|``; a number whose square is above 0 where both are 0."""
    return np.asarray(np.maximum(np.abs(tau)[:, None] + np.abs(tau), 1e-100))


def some_rows(blocks: Iterable[Sequence[Array]], rng: np.random.Generator, of: Callable[[list[Array]], Array] = np.hstack) -> Array:
    """Return what is made of the copies of at most ``MOST_ROWS`` records, in order: of those with the least of random numbers.

    Block by block no more need be held, and of other records nothing is made.

    Parameters
    ----------
    blocks : iterable of sequences of k ndarrays of shape (b, N)
    of : callable
        From some records' copies to as many rows.
    """
    rows, keys = np.empty((0, 0)), np.empty(0)
    for copies in blocks:
        drawn = rng.random(len(copies[0]))
        here = _least(drawn)
        found = of([copy[here] for copy in copies])
        rows, keys = np.concatenate([rows, found]) if len(rows) else np.array(found), np.concatenate([keys, drawn[here]])
        kept = _least(keys)
        rows, keys = rows[kept], keys[kept]
    return rows


def _least(keys: Array) -> Indices:
    """Return the places of the ``MOST_ROWS`` least, in order."""
    return np.sort(np.argpartition(keys, MOST_ROWS)[:MOST_ROWS]) if len(keys) > MOST_ROWS else np.arange(len(keys))

"""Symmetric FastICA to its fixed point, and the asymptotic error there.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``z`` | whitened rows: mean 0, covariance I | (N, m) | hyvarinen2000 |
| ``s`` | ``W z``, components; W orthogonal | (N, m) | |
| ``g`` | ``tanh``, of the contrast ``log cosh`` | | |
| ``W⁺`` | ``E g(s) zᵀ − diag(E g'(s)) W``, made orthogonal: ``(W⁺ W⁺ᵀ)^{−1/2} W⁺`` | (N, N) | hyvarinen2000 |
| ``o_kl`` | ``sgn(τ_k) E s_l g(s_k)`` | (N, N) | |
| ``τ_k`` | ``E s_k g(s_k) − E g'(s_k)``; 0 of a Gaussian component | (N,) | Tichavský, Koldovský and Oja 2006 |
| ``γ_k`` | ``E g(s_k)² − (E s_k g(s_k))²`` | (N,) | Tichavský, Koldovský and Oja 2006 |
| ``Var`` | ``(γ_k + γ_l + τ_l²) / (|τ_k| + |τ_l|)² / m``, of the share of l left in k | (N, N) | idem, symmetric |

W is fixed if ``o`` is symmetric. From a nearby W, the first-order step to it is ``I + (o_kl − o_lk)
/ (|τ_k| + |τ_l|)``. If τ of one component is near 0, two fixed points may be close, one for each
sign. Signs passed to ``o`` select one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.plugin import Array, Indices, NotApplicable

MOST_ROWS = 20_000
"""Most rows used to estimate components."""

MOST_STEPS = 300
"""Most fixed-point steps. Tens suffice unless two components are Gaussian."""

STARTS, TRIED_STEPS, TRIED_REST = 5, 50, 1e-2
"""Random starts, and steps before they are compared. For nearly Gaussian attributes one start in five fails, and one best-of-five in
ten (beta(2, 5), 3,000 rows; tests/attacks/test_ica.py)."""

AIMED_STEPS = 5
"""Steps towards the fixed point with given signs of ``τ``. Two were enough in 2,300 tables."""

LOG_COSH_OF_NORMAL = 0.3745672075
"""``E log cosh ν`` for ν normal with variance 1."""

FIXED, NEAR = 1e-12, 1e-4
"""Largest change of an entry of W at the fixed point, and when to switch to double precision. In single precision tanh takes a fifth
of the time."""


@dataclass(frozen=True, eq=False)
class Unmixing:
    """``s = B (y − ȳ)``, components of variance 1 over the fitted rows.

    Attributes
    ----------
    matrix : ndarray of shape (N, n')
        ``B``.
    mean : ndarray of shape (n',)
        ``ȳ``.
    signs : ndarray of shape (N,)
        Of ``τ``.
    kept : ndarray of shape (N,)
        Squared correlation of each component with its start.
    fixed : bool
        Whether the iteration converged.
    """

    matrix: Array = field(repr=False)
    mean: Array = field(repr=False)
    signs: Array = field(repr=False)
    kept: Array = field(repr=False)
    fixed: bool

    @classmethod
    def of(cls, y: Array, components: int, rng: np.random.Generator) -> Unmixing:
        """Fit to rows of shape (m, n') from the best of several random starts.

        The best start leads to the largest ``contrast``.

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
        """Fit to rows of shape (m, N) from a start at given directions.

        ``directions``, shape (N, N), has one component per row, of any length. ``signs`` of ``τ``,
        shape (N,), select between two close fixed points. Only the sign of the most nearly Gaussian
        component is used.

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
    """Return whitened rows, the whitening matrix and the mean.

    Parameters
    ----------
    y : ndarray of shape (m, n')
    components : int
        ``N``, at most n'.

    Returns
    -------
    z : ndarray of shape (N, m)
        One direction per row: contiguous sums over records cost a third.
    whitening : ndarray of shape (N, n')
        ``z = whitening (y − mean)``.
    mean : ndarray of shape (n',)

    Raises
    ------
    NotApplicable
        The rows vary in fewer directions.
    """
    mean = y.mean(axis=0)
    U, singular, Vt = np.linalg.svd(y - mean, full_matrices=False)
    # below, the inverse overflows
    if len(y) <= components or singular[components - 1] <= max(1e-9 * singular[0], 1e-300):
        raise NotApplicable(
            f"the rows do not vary in {components} directions, so they cannot be unmixed into as many components"
        )
    root = np.sqrt(len(y))
    return (
        np.ascontiguousarray(root * U[:, :components].T),
        root * Vt[:components] / singular[:components, None],
        mean,
    )


def orthogonal(A: Array) -> Array:
    """Return ``(A Aᵀ)^{−1/2} A``, the orthogonal matrix nearest to A.

    By singular vectors, since A Aᵀ would square the condition number.
    """
    U, _, Vt = np.linalg.svd(A)
    return np.asarray(U @ Vt)


def step(z: NDArray[np.floating[Any]], W: Array) -> Array:
    """Return ``W⁺``, each row with the sign nearer to W.

    Sums over records use the precision of z.
    """
    g = W.astype(z.dtype) @ z
    np.tanh(g, out=g)
    new = orthogonal(
        g @ z.T / z.shape[1] - (1.0 - np.einsum("km,km->k", g, g) / z.shape[1])[:, None] * W
    )
    return new * np.where((new * W).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]


def fixed_point(
    z: Array, W: Array, steps: int = MOST_STEPS, rest: float = FIXED
) -> tuple[Array, bool]:
    """Iterate from W to a fixed point.

    Return the last W and whether the iteration converged.
    """
    moved, single = np.inf, z.astype(np.float32)
    for _ in range(steps):
        rows, before = (single if moved > max(rest, NEAR) else z), W
        W = step(rows, W)
        moved = np.abs(W - before).max()
        if moved <= rest and rows is z:
            return W, True
    return W, False


def contrast(s: Array) -> float:
    """Return ``Σ_k (E G(s_k) − E G(ν))²`` with ``G = log cosh`` and ν normal.

    It measures how far components of shape (N, m) are from Gaussian. Source: hyvarinen2000's
    approximation of negentropy, each component alike.
    """
    far = np.abs(s)
    log_cosh = (far + np.log1p(np.exp(-2.0 * far))).mean(axis=1) - np.log(2.0)
    return float(((log_cosh - LOG_COSH_OF_NORMAL) ** 2).sum())


def nonlinear_moments(s: Array) -> tuple[Array, Array, Array]:
    """Return ``E s_l g(s_k)`` at [k, l], (N, N), and ``τ`` and ``γ``, (N,)."""
    g, m = np.tanh(s), s.shape[1]
    products, squares = g @ s.T / m, np.einsum("km,km->k", g, g) / m
    own = np.diag(products)
    return products, own - (1.0 - squares), squares - own**2


def first_order(s: Array, signs: Array) -> Array:
    """Return ``(o_kl − o_lk) / (|τ_k| + |τ_l|)``, shape (N, N).

    ``signs`` are the signs of ``τ`` at the wanted fixed point.
    """
    products, tau, _ = nonlinear_moments(s)
    o = signs[:, None] * products
    return np.asarray((o - o.T) / _sums(tau))


def leak_deviation(s: Array) -> Array:
    """Return the standard deviation of each component's leak into others.

    Entry [k, l], shape (N, N), is for the share of component l in estimate k. The diagonal is 0.
    Asymptotic in m.

    Parameters
    ----------
    s : ndarray of shape (N, m)
        Components, assumed independent; *not checked*.
    """
    _, tau, gamma = nonlinear_moments(s)
    variance = (gamma[:, None] + gamma + tau**2) / _sums(tau) ** 2 / s.shape[1]
    return np.asarray(np.sqrt(np.where(np.eye(len(tau), dtype=bool), 0.0, variance)))


def _sums(tau: Array) -> Array:
    """Return ``|τ_k| + |τ_l|``, bounded away from 0."""
    return np.asarray(np.maximum(np.abs(tau)[:, None] + np.abs(tau), 1e-100))


def some_rows(
    blocks: Iterable[Sequence[Array]],
    rng: np.random.Generator,
    of: Callable[[list[Array]], Array] = np.hstack,
) -> Array:
    """Sample at most ``MOST_ROWS`` records, in order, and map their copies.

    The sample is uniform. Memory holds one block and the sample. Only sampled records are mapped.

    Parameters
    ----------
    blocks : iterable of sequences of k ndarrays of shape (b, N)
    of : callable
        Maps some records' copies to as many rows.
    """
    rows, keys = np.empty((0, 0)), np.empty(0)
    for copies in blocks:
        drawn = rng.random(len(copies[0]))
        here = _least(drawn)
        found = of([copy[here] for copy in copies])
        rows, keys = (
            np.concatenate([rows, found]) if len(rows) else np.array(found),
            np.concatenate([keys, drawn[here]]),
        )
        kept = _least(keys)
        rows, keys = rows[kept], keys[kept]
    return rows


def _least(keys: Array) -> Indices:
    """Return the indices of the ``MOST_ROWS`` smallest keys, in order."""
    return (
        np.sort(np.argpartition(keys, MOST_ROWS)[:MOST_ROWS])
        if len(keys) > MOST_ROWS
        else np.arange(len(keys))
    )

"""Symmetric FastICA to its fixed point, and its asymptotic error.

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

W is fixed if ``o`` is symmetric. From a nearby W, the first-order step to it is
``I + (o_kl − o_lk) / (|τ_k| + |τ_l|)``. If τ is near 0, its sign selects one of two close fixed
points.
"""

from __future__ import annotations

import numpy as np

from auditor.plugin import Array, NotApplicable, unprinted

STEPS, REST = 300, 1e-12
"""Most fixed-point steps, and the last one's largest change of an entry of W. Tens of steps suffice
unless two components are Gaussian."""
STARTS, TRIED_STEPS, TRIED_REST = 5, 50, 1e-2
"""Random starts, and steps before they are compared. For nearly Gaussian attributes one start in five fails, and one best-of-five in
ten (beta(2, 5), 3,000 rows; tests/attacks/test_ica.py)."""
AIMED_STEPS = 5
"""Steps towards the fixed point with given signs of ``τ``. Two were enough in 2,300 tables."""
LOG_COSH_OF_NORMAL = 0.3745672075
"""``E log cosh ν`` for ν normal with variance 1."""


@unprinted
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

    matrix: Array
    mean: Array
    signs: Array
    kept: Array
    fixed: bool

    @classmethod
    def of(cls, y: Array, components: int, rng: np.random.Generator) -> Unmixing:
        """Fit to rows, (m, n'), from the random start of largest ``contrast``.

        Raises
        ------
        NotApplicable
            The rows vary in fewer directions than the number of components.
        """
        z, whitening, mean = whitened(y, components)
        starts = [orthogonal(rng.standard_normal((components, components))) for _ in range(STARTS)]
        ends = [fixed_point(z, start, TRIED_STEPS, TRIED_REST)[0] for start in starts]
        best = max(range(STARTS), key=lambda place: contrast(ends[place] @ z))
        return cls._from(z, whitening, mean, starts[best], ends[best])

    @classmethod
    def beside(cls, y: Array, directions: Array, signs: Array) -> Unmixing:
        """Fit to rows of shape (m, N) from ``directions``, shape (N, N).

        One per row, of any length. The ``signs`` of ``τ``, shape (N,), select between two close
        fixed points.

        Raises
        ------
        NotApplicable
            The rows vary in fewer directions than the number of components.
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
        cosine = (end * start).sum(axis=1)  # W, start and covariance of z are orthogonal
        end = end * np.where(cosine < 0, -1.0, 1.0)[:, None]
        signs = np.sign(nonlinear_moments(end @ z)[1])
        return cls(end @ whitening, mean, signs, cosine**2, fixed)

    def apply(self, y: Array) -> Array:
        """Components, shape (b, N)."""
        return (y - self.mean) @ self.matrix.T


def whitened(y: Array, components: int) -> tuple[Array, Array, Array]:
    """Whitened rows, the whitening matrix and the mean.

    Shapes (N, m), (N, n') and (n',). ``z = whitening (y − mean)`` of N ``components`` ≤ n', from
    ``y`` of shape (m, n').

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
    return root * U[:, :components].T, root * (Vt.T / singular).T[:components], mean


def orthogonal(A: Array) -> Array:
    """``(A Aᵀ)^{−1/2} A``, the orthogonal matrix nearest to A."""
    U, _, Vt = np.linalg.svd(A)
    return U @ Vt


def fixed_point(z: Array, W: Array, steps: int = STEPS, rest: float = REST) -> tuple[Array, bool]:
    """Iterate from W to a fixed point; also whether the iteration converged."""
    # scikit-learn's FastICA is four times slower in an audit
    for _ in range(steps):
        before, g = W, np.tanh(W @ z)
        W = orthogonal(g @ z.T / z.shape[1] - (1.0 - (g * g).mean(axis=1))[:, None] * W)
        W = W * np.where((W * before).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
        if np.abs(W - before).max() <= rest:
            return W, True
    return W, False


def contrast(s: Array) -> float:
    """``Σ_k (E G(s_k) − E G(ν))²``.

    ``G = log cosh``, ν normal (hyvarinen2000).
    """
    log_cosh = (np.logaddexp(s, -s) - np.log(2.0)).mean(axis=1)
    return float(((log_cosh - LOG_COSH_OF_NORMAL) ** 2).sum())


def nonlinear_moments(s: Array) -> tuple[Array, Array, Array]:
    """``E s_l g(s_k)`` at [k, l], (N, N), and ``τ`` and ``γ``, (N,)."""
    g, m = np.tanh(s), s.shape[1]
    products, squares = g @ s.T / m, (g * g).mean(axis=1)
    own = np.diag(products)
    return products, own - (1.0 - squares), squares - own**2


def first_order(s: Array, signs: Array) -> Array:
    """``(o_kl − o_lk) / (|τ_k| + |τ_l|)``, shape (N, N).

    ``signs`` are the wanted signs of ``τ``.
    """
    products, tau, _ = nonlinear_moments(s)
    o = signs[:, None] * products
    return (o - o.T) / _sums(tau)


def leak_deviation(s: Array) -> Array:
    """Deviations of the share of component l in estimate k, (N, N).

    Asymptotic. Of components ``s``, shape (N, m), assumed independent, *not checked*. The diagonal
    is 0.
    """
    _, tau, gamma = nonlinear_moments(s)
    variance = (gamma[:, None] + gamma + tau**2) / _sums(tau) ** 2 / s.shape[1]
    return np.sqrt(np.where(np.eye(len(tau), dtype=bool), 0.0, variance))


def _sums(tau: Array) -> Array:
    """``|τ_k| + |τ_l|``, bounded away from 0."""
    return np.maximum(np.abs(tau)[:, None] + np.abs(tau), 1e-100)

r"""Independent component analysis: unmixing, assignment, error.

Symmetric FastICA to its fixed point, and its asymptotic error.

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

Independent attributes, at most one Gaussian, are unmixed up to order, sign and scale.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``y`` | ``A s``, s independent components of variance 1 | (n',) | hyvarinen2000 |
| ``ŝ`` | ``B (y − ȳ)`` by FastICA, ``log cosh`` contrast, symmetric | (N,) | hyvarinen2000 |
| ``π, D`` | component and sign of each attribute | | liu2008, section 4.3 |
| ``x̂_j`` | ``mu_j + σ_j D_j ŝ_π(j)`` (``components: attributes``) | (N,) | |
| ``A_X`` | mixing matrix that ICA finds in the adversary's own records | (N, N) | guo2007 |
| ``x̂`` | ``x̄ + A_X D ŝ_π`` (``components: latent``) | (N,) | guo2007 |

| knowledge | source of order, sign and scale |
| --- | --- |
| ``known-records`` | correlation of components and attributes over the known pairs; mean and scale by regression |
| ``known-sample``, ``unmatched-records`` | similarity of distributions (Wasserstein distance at variance 1); mean and scale of the sample |

Distributions are compared with their means, unless the scheme translates. ``latent`` matches
components of known records and of the copy.

Theory is the error of the FastICA fixed point nearest to the truth, from the true attributes (or
the adversary's own components), with the attack's signs of τ. None for noisy copies,
without convergence, if a component loses half of its variance, or for leaks beyond
``LARGEST_LEAK``.

Without known pairs it fails for attributes of equal distribution; ``latent`` fails with few known
records. Independence is *not checked*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Indices,
    NotApplicable,
    Pair,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    scipy,
    stream,
    unprinted,
)

from ._fits import fitted_once, some_rows

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
        best = max(zip(starts, ends, strict=True), key=lambda pair: contrast(pair[1] @ z))
        return cls._from(z, whitening, mean, *best)

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


ROUNDING = 1e-9
"""Deviation below which known records' components count as equal; over the table it is 1."""

QUANTILES = (np.arange(200) + 0.5) / 200


@unprinted
class Pairs:
    """Known pairs: each component is the attribute it correlates with.

    Attributes
    ----------
    original : ndarray of shape (p, N)
        Known originals.
    copies : ndarray of shape (p, n')
        The same rows of the stacked copies.
    """

    original: Array
    copies: Array

    @property
    def directions(self) -> Array:
        """Expected components as weights on attributes, shape (N, N)."""
        return np.eye(self.original.shape[1])

    def order(self, found: Unmixing, y: Array) -> tuple[Indices, Array]:
        """Each attribute's component and sign, shapes (N,); ``found`` was fitted to y."""
        x, s = _centred(self.original), _centred(found.apply(self.copies))
        size = np.sqrt(np.outer((x**2).sum(axis=0), (s**2).sum(axis=0)))
        correlation = quotient(x.T @ s, size)
        order = scipy.optimize.linear_sum_assignment(-np.abs(correlation))[1]
        return np.asarray(order, dtype=int), np.ones(len(order))

    def place(self, found: Unmixing, order: Indices, signs: Array) -> Pair:
        """Mean and ``A``, shape (N, N), of ``x̂ = mean + A ŝ``."""
        components = found.apply(self.copies)
        x, s = _centred(self.original), _centred(components)[:, order]
        power = (s**2).sum(axis=0)
        A = np.zeros((len(order), len(order)))
        varied = power > ROUNDING**2 * len(s)
        A[np.arange(len(order)), order] = quotient((x * s).sum(axis=0), power, where=varied)
        return self.original.mean(axis=0) - A @ components.mean(axis=0), A

    def without_matrix(self) -> Guide:
        """Guide for a release of the table itself."""
        return replace(self, copies=self.original)


@unprinted
class Likeness:
    """Records of the population: components are matched by distribution.

    Attributes
    ----------
    known : ndarray of shape (s, N)
    directions : ndarray of shape (N, N)
        From records to expected components, of any variance.
    back : ndarray of shape (N, N)
        From components of variance 1 to attributes.
    moved : bool
        Whether copies were translated, so means carry no information.
    """

    known: Array
    directions: Array
    back: Array
    moved: bool

    def order(self, found: Unmixing, y: Array) -> tuple[Indices, Array]:
        return match(
            standard(self.known @ self.directions.T, self.moved),
            standard(y @ found.matrix.T, self.moved),
        )

    def place(self, found: Unmixing, order: Indices, signs: Array) -> Pair:
        return self.known.mean(axis=0), (self.back * signs)[:, np.argsort(order)]

    def without_matrix(self) -> Guide:
        return self


Guide = Pairs | Likeness
"""Knowledge that assigns components to attributes."""


def _centred(values: Array) -> Array:
    return values - values.mean(axis=0)


def standard(values: Array, centred: bool) -> Array:
    """200 quantiles of each standardised column, shape (N, 200)."""
    scale = values.std(axis=0)
    z = values - values.mean(axis=0) if centred else values
    return np.quantile(z / np.where(scale > 0, scale, 1.0), QUANTILES, axis=0).T


def match(targets: Array, components: Array) -> tuple[Indices, Array]:
    """Match components to targets by least total Wasserstein distance.

    Quantiles at variance 1, shapes (N, q), give each target's component and sign, (N,).
    """
    plain = np.abs(targets[:, None] - components[None]).mean(axis=2)
    transformed = np.abs(targets[:, None] + components[None, :, ::-1]).mean(axis=2)
    rows, order = scipy.optimize.linear_sum_assignment(np.minimum(plain, transformed))
    sign = np.where(plain[rows, order] <= transformed[rows, order], 1.0, -1.0)
    return np.asarray(order, dtype=int), sign


Generator = Callable[[], "np.random.Generator"]

LARGEST_LEAK = 0.08
"""Largest standard deviation, over tables, of one component's share left in another, for which theory is given. Between two Gaussian
components it is above 0.1 (tests/attacks/test_ica.py)."""

HOPELESS_LEAK = 0.2
"""Leak at the truth beyond which no iteration is tried: with two Gaussian components it would not
end."""


@register
class IndependentComponents(RowAttack):
    """Unmix a copy into independent components; assign each to an attribute."""

    name = "ica"
    attack_kind = "with a sample"
    cost = Cost(1.5e-3, 8e-7)
    reference = "liu2008, section 4.3"
    families = frozenset({"rotation", "random-projection", "rotation-noise"})
    knowledge = ("known-records", "known-sample", "unmatched-records")
    assumes = "Attributes (or latent components) are independent, at most one of them Gaussian; a copy has as many columns as attributes."
    wins = "Wins on independent non-Gaussian attributes through any matrix; fails with two Gaussian ones, and with n' below N."

    class Parameters(PluginParameters):
        """Choice of independent components."""

        components: Literal["attributes", "latent"] = "attributes"
        """the attributes themselves, or hidden ones that known records share with the copy (Guo and Wu)"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        rows: Generator = partial(stream, view.seed, self.name, "rows")
        y = some_rows(blocks, rows())
        if y.shape[1] < view.width:
            raise NotApplicable(
                f"{y.shape[1]} columns cannot be unmixed into {view.width} attributes"
            )
        start = stream(view.seed, self.name, "start")
        kind = self.name, view.width, view.seed
        found = fitted_once(lambda: Unmixing.of(y, view.width, start), kind, y)
        guide = self._guide(view)
        order, signs = guide.order(found, y)
        noisy = any(view.levels)
        theory = None if noisy else Theory(guide, found.signs[order], rows)
        return Unmixed(found, *guide.place(found, order, signs), theory)

    def _guide(self, view: View) -> Guide:
        latent = self.parameters.components == "latent"
        if isinstance(view.given, Records):
            if latent:
                raise NotApplicable(
                    "known pairs settle the map by regression; Guo and Wu's variant is for records without their rows"
                )
            if len(view.given.original) < 2:
                raise NotApplicable("needs at least two known records to tell scale from mean")
            return Pairs(view.given.original, np.hstack(view.given.copies))
        known = view.need(UnpairedRecords).original
        if len(known) < 2:
            raise NotApplicable(
                "needs at least two records of the population to tell components apart"
            )
        moved = bool(view.scheme.get("translation", False))
        if not latent:
            return Likeness(known, np.eye(view.width), np.diag(known.std(axis=0)), moved)
        own = Unmixing.of(known, view.width, stream(view.seed, self.name, "own")).matrix
        return Likeness(known, own, np.asarray(np.linalg.pinv(own)), moved)


@unprinted
class Unmixed(Reconstruction):
    """``x̂ = mean + A ŝ``."""

    unmixing: Unmixing
    mean: Array
    A: Array
    theory: Theory | None = None

    def rows(self, copies: Arrays) -> Array:
        return self.mean + self.unmixing.apply(np.hstack(list(copies))) @ self.A.T

    def row_theory(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        return None if self.theory is None else self.theory.of(seen)


@unprinted
class Theory:
    """Error of a correct assignment at the fixed point.

    Attributes
    ----------
    guide : Guide
    signs : ndarray of shape (N,)
        Of ``τ`` of the attack's components, by attribute.
    rows : callable
        Returns a new copy of the generator that chose the fitted rows.
    """

    guide: Guide
    signs: Array
    rows: Generator

    def of(self, seen: Iterable[Array]) -> Callable[[Array], Array] | None:
        """Function from true records to ``‖x̂ − x‖²``, or None."""
        x = some_rows(([block] for block in seen), self.rows())
        s = (x - x.mean(axis=0)) @ self.guide.directions.T
        if leak_deviation((s / s.std(axis=0)).T).max() > HOPELESS_LEAK:
            return None
        try:
            best = Unmixing.beside(x, self.guide.directions, self.signs)
        except NotApplicable:
            return None
        if (
            not best.fixed
            or best.kept.min() <= 0.5
            or leak_deviation(best.apply(x).T).max() > LARGEST_LEAK
        ):
            return None
        N = x.shape[1]
        right = Unmixed(best, *self.guide.without_matrix().place(best, np.arange(N), np.ones(N)))
        return lambda true: ((right.rows([true]) - true) ** 2).sum(axis=1)

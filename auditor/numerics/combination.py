"""The combination of copies with least noise among those whose weights sum to 1, and how far rounding limits it.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Sigma`` | covariance of the noise across copies (noise multiples) | (k, k) |
| ``w, v`` | least-variance weights and their noise multiple | (k,), scalar |
| ``F`` | a root, ``Sigma = F Fᵀ`` | (k, k) |
| ``b`` | the copy with least noise | |
| ``Δ`` | ``f_j − f_b``: what copy j adds to copy b | (k, k) |

A copy is known to its *grain*: doubles are rounded, second moments more coarsely still. Where levels of linearly dependent copies differ by
δ the weights that rebuild the records are of size ``1/δ``, and so is what they make of the grain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.linear_algebra import EPS
from auditor.numerics.moments import neighbours
from auditor.types import Array, Coalition

TRIFLE = 1e-6
"""Share of the least level that a combination's grain may add before its weights are bounded: less moves no figure that is reported."""


def best_unbiased_combination(Sigma: Array, grain: Array | float = 0.0) -> tuple[Array, Array]:
    """Return weights and variance of the combination of copies with least noise among those that sum to 1.

    Minimises ``wᵀ Sigma w`` subject to ``1ᵀw = 1``: ``w = Sigma⁻¹1 / (1ᵀSigma⁻¹1)``, ``v = 1/(1ᵀSigma⁻¹1)``. When ``Sigma`` is singular
    and 1 is outside its range, a combination without noise exists (linearly dependent copies), and ``v = 0``.

    Parameters
    ----------
    Sigma : ndarray of shape (..., k, k)
        Level covariances of one coalition or, with leading axes, of many.
    grain : float, or ndarray of shape (...)
        Standard deviation, as the root of a noise multiple, to which each copy (or what is known of it) is rounded: weights large enough
        to be felt through it are bounded as ``within_grain`` does.

    Returns
    -------
    weights : ndarray of shape (..., k)
    variance : ndarray of shape (...)

    Notes
    -----
    Under noise ``Sigma ⊗ K_0`` the best linear estimate needs the copies only through this combination: its weights are ``wᵀ ⊗ G(v)``,
    one k-vector and one N×N matrix. An eigen-decomposition, and not a solve: equal levels make ``Sigma`` singular.
    """
    k = Sigma.shape[-1]
    if k == 1:
        return np.ones(Sigma.shape[:-1]), Sigma[..., 0, 0]
    own = np.einsum("...kk->...k", Sigma)
    deviation = np.sqrt(np.clip(own, 0.0, None))
    noisy = deviation > 0
    divisor = np.where(noisy, deviation, 1.0)
    least = deviation.min(axis=-1, keepdims=True)
    b = np.where(noisy, least / divisor, 1.0)
    if np.count_nonzero(Sigma) == np.count_nonzero(noisy):  # independent noise: Sigma is diagonal, and weights are inverse variances
        precision = np.einsum("...k,...k->...", b, b)
        return b**2 / precision[..., None], least[..., 0] ** 2 / precision
    alone, suffices = _least_noise_alone(Sigma, own)
    if suffices.all():
        return alone, own.min(axis=-1)
    w, v = _decomposed(Sigma, divisor, b, least)
    w, v = np.where(suffices[..., None], alone, w), np.where(suffices, own.min(axis=-1), v)
    felt = ~suffices & (grain**2 * np.einsum("...k,...k->...", w, w) > TRIFLE * least[..., 0] ** 2)
    if felt.any():
        w[felt], v[felt] = within_grain(Sigma[felt], np.broadcast_to(grain, felt.shape)[felt])
    return w, v


def _least_noise_alone(Sigma: Array, own: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return weights of the copy with least noise alone, shared with those equal to it, and whether they are the best there are.

    They are where every other copy is that one and more noise, ``Cov(Z_b, Z_j) = Var(Z_b)`` (li2012, Theorem 4), to the last bits.
    Levels that are near leave a decomposition with weights that sum to 1 only as far as ``ε σ²/(σ_j² − σ_b²)``: gains of rounding.
    """
    b = own.argmin(axis=-1)[..., None]
    with_best = np.take_along_axis(Sigma, b[..., None], axis=-2)[..., 0, :]
    variance, bits = np.take_along_axis(own, b, axis=-1), own.shape[-1] * EPS
    covers = np.abs(with_best - variance) <= bits * variance
    same = covers & (own <= (1.0 + bits) * variance)
    return same / same.sum(axis=-1, keepdims=True), covers.all(axis=-1)


def _decomposed(Sigma: Array, divisor: Array, b: Array, least: Array) -> tuple[Array, Array]:
    """Return the best weights and their variance by an eigen-decomposition of the copies' correlations."""
    # With Sigma = D C D, C the correlations, and w = b∘u: minimise least²·uᵀCu subject to bᵀu = 1, where b = least·D⁻¹1. Rounding is then
    # relative to each copy's own noise; of Sigma itself the largest level would drown the smallest, which is the one that matters.
    k = Sigma.shape[-1]
    values, vectors = np.linalg.eigh(Sigma / (divisor[..., :, None] * divisor[..., None, :]))
    target = np.einsum("...ij,...i->...j", vectors, b)  # b in the eigenbasis
    null = values <= k * EPS * values[..., -1:]
    outside = np.where(null, target, 0.0)
    outside_size = np.einsum("...k,...k->...", outside, outside)
    # Rounding of C, kε of its largest eigenvalue, turns the null space by that over the least eigenvalue beside it (Davis and Kahan): what
    # of b stands out of the range by more is free of noise, be it 10⁻¹¹ of it, as where one draw was scaled to nearly equal levels.
    transformed = k * EPS * values[..., -1] / np.where(null, np.inf, values).min(axis=-1)
    free = outside_size > 16.0 * transformed**2 * np.einsum("...k,...k->...", b, b)
    inverse = np.where(null, 0.0, target / np.where(null, 1.0, values))
    precision = np.where(free, 1.0, np.einsum("...k,...k->...", inverse, target))
    coefficients = np.where(free[..., None], outside / np.where(free, outside_size, 1.0)[..., None], inverse / precision[..., None])
    u = np.einsum("...ik,...k->...i", vectors, coefficients)
    # A copy that says nothing new (all but the best, under corner-wave noise) would get a weight of rounding's size, and be read for it.
    # The target is known to eps times what it is summed from, an eigenvalue to eps times the largest, and so is their quotient.
    size = np.einsum("...ij,...i->...j", np.abs(vectors), np.abs(b)) / precision[..., None] + np.abs(coefficients) * values[..., -1:]
    doubt = np.where(null, 0.0, size / np.where(null, 1.0, values))
    rounding = k * EPS * np.einsum("...ik,...k->...i", np.abs(vectors), doubt)
    weights = b * np.where(np.abs(u) > rounding, u, 0.0)
    return weights, np.where(free, 0.0, least[..., 0] ** 2 / precision)


def within_grain(Sigma: Array, grain: Array | float) -> tuple[Array, Array]:
    """Return the best combination of copies that are known to a grain only: minimises ``wᵀ Sigma w + grain² |w|²``, the sum of w being 1.

    Where levels of linearly dependent copies are nearly equal, the weights that rebuild the records are ``σ/(σ_2 − σ_1)``, and whatever
    the copies are rounded to is multiplied by them. Written as the best copy's noise less its regression on the differences from it, with
    ``Sigma = F Fᵀ``: ``u = −Δ (ΔᵀΔ + grain²)⁻¹ f_b``, rows ``f_j − f_b`` of Δ, whose subtraction is exact where levels are near. The
    variance includes the grain's part; the grain of the best copy itself is left out of the minimum, not of the variance.

    Parameters
    ----------
    Sigma : ndarray of shape (..., k, k)
    grain : float, or ndarray of shape (...)
        Above 0, in the unit of ``Sigma``'s root.
    """
    grain2 = np.square(grain)
    F = level_root(Sigma)
    b = np.einsum("...kk->...k", Sigma).argmin(axis=-1)[..., None]
    best = np.take_along_axis(F, b[..., None], axis=-2)
    U, s, Vt = np.linalg.svd(F - best, full_matrices=False)
    along = np.einsum("...rk,...k->...r", Vt, best[..., 0, :])
    w = -np.einsum("...jr,...r->...j", U, along * s / (s**2 + grain2[..., None]))
    rest = best[..., 0, :] - np.einsum("...rk,...r->...k", Vt, along * s**2 / (s**2 + grain2[..., None]))
    np.put_along_axis(w, b, np.take_along_axis(w, b, axis=-1) + 1.0 - w.sum(axis=-1, keepdims=True), axis=-1)
    return w, np.einsum("...k,...k->...", rest, rest) + grain2 * np.einsum("...k,...k->...", w, w)


def level_root(Sigma: Array) -> Array:
    """Return F with ``F Fᵀ = Sigma``, shape (..., k, k): eigenvalues of the correlations that rounding alone made are 0, not roots of it.

    So that a combination free of noise stays free of it: the root of ε would leave it ``10⁻⁸`` of its weights.
    """
    size = np.sqrt(np.clip(np.einsum("...kk->...k", Sigma), 0.0, None))
    divisor = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(Sigma / (divisor[..., :, None] * divisor[..., None, :]))
    kept = np.where(values > Sigma.shape[-1] * EPS * values[..., -1:], values, 0.0)
    return np.asarray(size[..., :, None] * vectors * np.sqrt(kept)[..., None, :])


def grain_of_moments(loudest: Array) -> Array:
    """Return what second moments round copies up to a level to, in roots of noise multiples, both of shape (...)."""
    return np.asarray(np.sqrt(EPS * (1.0 + loudest)))


@dataclass(frozen=True, eq=False)
class Levels:
    """The level covariances of coalitions, of any size, among M copies.

    Attributes
    ----------
    Sigma : ndarray of shape (M, M)
        Of all copies.
    coalitions : sequence of B tuples of int
        Ascending places of copies, from 0; those of one size are worked on together where they are neighbours.
    """

    Sigma: Array = field(repr=False)
    coalitions: Sequence[Coalition]

    @classmethod
    def of(cls, Sigma: Array, copies: Sequence[int], coalitions: Sequence[Coalition]) -> Levels:
        """Return those of coalitions given by the numbers of copies, which are in the order of Sigma.

        As found before, if they were: the law is the same in every redraw, and prefixes of 1,000 copies take it seconds.
        """
        return _levels(np.ascontiguousarray(Sigma, dtype=np.float64).tobytes(), tuple(copies), tuple(coalitions))

    @classmethod
    def all(cls, Sigma: Array) -> Levels:
        """Return those of one coalition that holds every copy."""
        return cls(Sigma, (tuple(range(len(Sigma))),))

    @cached_property
    def extremes(self) -> tuple[Array, Array]:
        """The least and the greatest level that each coalition holds, shapes (B,)."""
        each = [np.diag(self.Sigma)[index] for _, index in self._runs()]
        return np.concatenate([part.min(axis=1) for part in each]), np.concatenate([part.max(axis=1) for part in each])

    @cached_property
    def of_moments(self) -> tuple[Array, Array]:
        """The best combinations of copies that are known by their second moments, as of ``best``."""
        return self.best(grain_of_moments(self.extremes[1]))

    @cached_property
    def of_copies(self) -> tuple[Array, Array]:
        """The best combinations of the copies themselves, as of ``best``."""
        return self.best(np.zeros(len(self.coalitions)))

    def best(self, grain: Array) -> tuple[Array, Array]:
        """Return each coalition's ``best_unbiased_combination``, given its grain: weights on all copies, shape (B, M), and variances."""
        w, v = np.zeros((len(self.coalitions), len(self.Sigma))), np.empty(len(self.coalitions))
        for here, index in self._runs():
            run = neighbours(index[0])
            one = len(index) == 1 and isinstance(run, slice)  # copies 1 to k: a window on the covariance of all
            Sigma = self.Sigma[None, run, run] if one else self.Sigma[index[:, :, None], index[:, None, :]]
            some, v[here] = best_unbiased_combination(Sigma, grain[here])
            np.put_along_axis(w[here], index, some, axis=1)
        return w, v

    def _runs(self) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """Yield the places of neighbouring coalitions of one size, and their copies, shape (b, k)."""
        start = 0
        for _, run in groupby(self.coalitions, len):
            index = np.array(list(run), dtype=np.intp)
            yield slice(start, start + len(index)), index
            start += len(index)


@lru_cache(maxsize=1)
def _levels(Sigma: bytes, copies: Coalition, coalitions: tuple[Coalition, ...]) -> Levels:
    places = {copy: place for place, copy in enumerate(copies)}
    held = [tuple(places[copy] for copy in coalition) for coalition in coalitions]
    return Levels(np.frombuffer(Sigma).reshape(len(copies), -1), held)


def weights_by_attribute(levels: Levels, grain: Array, gain: Callable[[Array], Array]) -> Array:
    """Return ``W = wᵀ ⊗ G(v)`` of many coalitions, each attribute's row with the weights that its own grain allows.

    Parameters
    ----------
    levels : Levels
        Of the coalitions.
    grain : ndarray of shape (N,) or (..., B, N)
        As of ``best_unbiased_combination``, by attribute.
    gain : callable
        Returns ``G(v)``, shape (..., B, N, N), of noise multiples of shape (B,).

    Returns
    -------
    ndarray of shape (..., B, N, MN)
        0 for copies that a coalition does not hold.
    """
    w, v = levels.of_copies
    W = _spread_out(w, gain(v))
    felt = grain.max(axis=-1) ** 2 * np.einsum("bm,bm->b", w, w) > TRIFLE * levels.extremes[0]
    # A few sizes of grain, and not one for each of a thousand attributes.
    steps = np.where(felt[..., None], np.exp2(np.ceil(np.log2(grain))), 0.0)
    for step in np.unique(steps[felt]):
        w, v = levels.best(np.full(len(w), step))
        W = np.where((steps == step)[..., None], _spread_out(w, gain(v)), W)
    return W


def _spread_out(w: Array, G: Array) -> Array:
    W = w[:, None, :, None] * G[..., :, None, :]
    return W.reshape(*W.shape[:-2], -1)

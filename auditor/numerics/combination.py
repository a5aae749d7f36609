"""Least-variance unbiased combination of copies, limited by rounding.

| symbol | meaning | shape |
| --- | --- | --- |
| ``Sigma`` | noise covariance across copies (noise multiples) | (k, k) |
| ``w, v`` | least-variance weights (sum 1) and their noise multiple | (k,), scalar |
| ``F`` | a root, ``Sigma = F Fᵀ`` | (k, k) |
| ``b`` | the copy with least noise | |
| ``Δ`` | ``f_j − f_b``: noise of copy j relative to copy b | (k, k) |

A copy's *grain* is the rounding of doubles, or of second moments. Exact weights of size ``1/δ``
amplify it if levels differ by δ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from auditor.base.types import Array, Coalition, Flags, Indices, Pair, unprinted
from auditor.numerics.linear_algebra import EPS, in_own_units, quotient

TRIFLE = 1e-6
"""Share of the least level that the amplified grain may add before weights are bounded.
"""


def best_unbiased_combination(Sigma: Array, grain: Array | float = 0.0) -> Pair:
    """Weights and variance of the least-noise combination of copies.

    Minimises ``wᵀ Sigma w`` subject to ``1ᵀw = 1``: ``w = Sigma⁻¹1 / (1ᵀSigma⁻¹1)``, ``v =
    1/(1ᵀSigma⁻¹1)``. ``v = 0`` with 1 outside the range of ``Sigma``.

    Parameters
    ----------
    grain : float, or (...)
        Rounding of copies, in roots of noise multiples (``within_grain``).
    """
    own = np.einsum("...kk->...k", Sigma)
    least = own.min(axis=-1)
    alone, suffices = _least_noise_alone(Sigma, own)
    if suffices.all():
        return alone, least
    w, v = within_grain(Sigma, 0.0)
    w, v = np.where(suffices[..., None], alone, w), np.where(suffices, least, v)
    felt = ~suffices & (grain**2 * np.einsum("...k,...k->...", w, w) > TRIFLE * least)
    if felt.any():
        w[felt], v[felt] = within_grain(Sigma[felt], np.broadcast_to(grain, felt.shape)[felt])
    return w, v


def _least_noise_alone(Sigma: Array, own: Array) -> tuple[Array, Flags]:
    """Weights of the least noisy copies, and whether they are optimal.

    They are if ``Cov(Z_b, Z_j) = Var(Z_b)`` (li2012, Theorem 4). A decomposition would show
    spurious gains for close levels.
    """
    b = own.argmin(axis=-1)[..., None]
    with_best = np.take_along_axis(Sigma, b[..., None], axis=-2)[..., 0, :]
    variance, bits = own.min(axis=-1, keepdims=True), own.shape[-1] * EPS
    covers = np.abs(with_best - variance) <= bits * variance
    same = covers & (own <= (1.0 + bits) * variance)
    return same / same.sum(axis=-1, keepdims=True), covers.all(axis=-1)


def within_grain(Sigma: Array, grain: Array | float) -> Pair:
    """Best combination of copies that are known up to a grain.

    Minimises ``wᵀ Sigma w + grain² |w|²`` subject to ``1ᵀw = 1``. With ``Sigma = F Fᵀ`` and rows
    ``f_j − f_b`` of Δ, exact for close levels: ``u = −Δ (ΔᵀΔ + grain²)⁺ f_b``. The variance
    includes the grain, and is 0 if a combination is free of noise.
    """
    F, grain2, bits = level_root(Sigma), np.square(grain)[..., None], Sigma.shape[-1] * EPS
    b = np.einsum("...kk->...k", Sigma).argmin(axis=-1)[..., None]
    best = np.take_along_axis(F, b[..., None], axis=-2)
    U, s, Vt = np.linalg.svd(F - best, full_matrices=False)
    along, kept = np.einsum("...rk,...k->...r", Vt, best[..., 0, :]), s > bits * s[..., :1]
    step, share = (quotient(part, s**2 + grain2, where=kept) for part in (s, s**2))
    w = -np.einsum("...jr,...r->...j", U, along * step)
    # an uninformative copy must not get a weight of rounding's size
    spread = s[..., 0] / np.where(kept, s, np.inf).min(axis=-1)
    rounding = bits * spread * (1.0 + np.abs(along * step).sum(axis=-1))
    w = np.where(np.abs(w) > rounding[..., None], w, 0.0)
    whole = w + 1.0 - w.sum(axis=-1, keepdims=True)
    w = np.where(np.arange(w.shape[-1]) == b, whole, w)
    rest = best[..., 0, :] - np.einsum("...rk,...r->...k", Vt, along * share)
    v, own = np.einsum("...k,...k->...", rest, rest), np.einsum("...rk,...rk->...", best, best)
    v = np.where(v > (4.0 * bits * spread) ** 2 * own, v, 0.0)
    return w, v + grain2[..., 0] * np.einsum("...k,...k->...", w, w)


def level_root(Sigma: Array) -> Array:
    """``F`` with ``F Fᵀ = Sigma``, shape (..., k, k), exactly singular.

    Eigenvalues at rounding level become 0.
    """
    size = np.sqrt(np.clip(np.einsum("...kk->...k", Sigma), 0.0, None))
    values, vectors = np.linalg.eigh(in_own_units(Sigma)[0])
    kept = np.where(values > Sigma.shape[-1] * EPS * values[..., -1:], values, 0.0)
    return size[..., :, None] * vectors * np.sqrt(kept)[..., None, :]


@lru_cache(1024)  # with Levels.of: redraws are 1.5 times as fast
def combination_by_moments(Sigma: bytes, copies: int) -> Pair:
    """``best_unbiased_combination`` with the grain of second moments."""
    square = np.frombuffer(Sigma).reshape(copies, copies)
    return best_unbiased_combination(square, grain_of_moments(square.diagonal().max()))


def grain_of_moments(loudest: Array) -> Array:
    """Rounding of copies in second moments, shape (...).

    In roots of noise multiples.
    """
    return np.sqrt(EPS * (1.0 + loudest))


@unprinted
class Levels:
    """Level covariances of coalitions of any size among M copies.

    Attributes
    ----------
    Sigma : (M, M)
    coalitions : sequence of B tuples of int
        Ascending places, from 0.
    """

    Sigma: Array
    coalitions: Sequence[Coalition]

    @classmethod
    @lru_cache(2)  # shared by redraws
    def of(cls, law: Any, copies: Coalition, coalitions: tuple[Coalition, ...]) -> Levels:
        """Levels of a law's coalitions given by copy numbers."""
        places = {copy: place for place, copy in enumerate(copies)}
        held = [tuple(places[copy] for copy in some) for some in coalitions]
        return cls(law.level_covariance, held)

    @classmethod
    def all(cls, Sigma: Array) -> Levels:
        """Levels of one coalition that holds every copy."""
        return cls(Sigma, (tuple(range(len(Sigma))),))

    @cached_property
    def extremes(self) -> Pair:
        """Least and greatest level of each coalition, shapes (B,)."""
        own = np.diag(self.Sigma)[np.concatenate(self.coalitions)]
        starts = np.cumsum([0, *map(len, self.coalitions[:-1])])
        return np.minimum.reduceat(own, starts), np.maximum.reduceat(own, starts)

    @cached_property
    def of_moments(self) -> Pair:
        """``best`` with the grain of second moments."""
        return self.best(grain_of_moments(self.extremes[1]))

    @cached_property
    def of_copies(self) -> Pair:
        """``best`` with the grain of the copies."""
        return self.best(np.zeros(len(self.coalitions)))

    def best(self, grain: Array) -> Pair:
        """Each coalition's ``best_unbiased_combination``.

        Weights on all copies, (B, M), and variances.
        """
        w, v = np.zeros((len(self.coalitions), len(self.Sigma))), np.empty(len(self.coalitions))
        for here, index in self._runs():
            Sigma = self.Sigma[index[:, :, None], index[:, None, :]]
            some, v[here] = best_unbiased_combination(Sigma, grain[here])
            np.put_along_axis(w[here], index, some, axis=1)
        return w, v

    def _runs(self) -> Iterator[tuple[slice, Indices]]:
        start = 0
        for _, run in groupby(self.coalitions, len):
            index = np.array(list(run), dtype=int)
            yield slice(start, start + len(index)), index
            start += len(index)


def weights_by_attribute(levels: Levels, grain: Array, gain: Callable[[Array], Array]) -> Array:
    """``W = wᵀ ⊗ G(v)`` of coalitions, with each attribute's own grain.

    Parameters
    ----------
    grain : (N,) or (..., B, N)
        By attribute.
    gain
        Returns ``G(v)``, (..., B, N, N), of (B,) multiples.

    Returns
    -------
    ndarray of shape (..., B, N, MN)
    """
    w, v = levels.of_copies
    W = spread_out(w, gain(v))
    felt = grain.max(axis=-1) ** 2 * np.einsum("bm,bm->b", w, w) > TRIFLE * levels.extremes[0]
    steps = np.where(felt[..., None], np.exp2(np.ceil(np.log2(grain))), 0.0)
    for step in np.unique(steps[felt]):
        w, v = levels.best(np.full(len(w), step))
        W = np.where((steps == step)[..., None], spread_out(w, gain(v)), W)
    return W


def spread_out(w: Array, G: Array) -> Array:
    """Maps ``wᵀ ⊗ G`` of the stacked copies, shape (..., B, N, MN)."""
    W = w[:, None, :, None] * G[..., :, None, :]
    return W.reshape(*W.shape[:-2], -1)

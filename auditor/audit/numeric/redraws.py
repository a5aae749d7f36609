"""Redraws of moments, for error bars of linear attacks with estimates.

A jackknife over rows misses the randomness of estimates for all records. So noise, matrices and
known records are drawn again.

| symbol | meaning | shape |
| --- | --- | --- |
| ``A`` | ``[1, X]ᵀ[1, X]``: moments of the original, which are fixed | (N+1, N+1) |
| ``U`` | ``n`` rows of independent components, mean 0, variance 1; ``Z = U Lᵀ`` with ``L Lᵀ = K_Z`` | (n, q) |
| ``G`` | ``[1, X]ᵀU = A^½ G``, G standard normal | (N+1, q) |
| ``UᵀU`` | ``GᵀG + W``, W Wishart, identity scale, ``n − N − 1`` degrees of freedom | (q, q) |

For Gaussian noise this is the exact joint law of all second moments, given the table (Cochran). A
redraw reads no row. For other noise, mean and variance of each second moment are exact and its
distribution normal (large n).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from auditor.adversary.knowledge import Knowledge, KnownSample
from auditor.adversary.view import Records, SampleMoments, View
from auditor.audit.numeric.views import Gathered, as_seen
from auditor.base.types import Array
from auditor.numerics.blocks import BLOCK_VALUES
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.schemes.base.noise_law import NoiseLaw, Transformed, psd_root

STRIP = 512
"""Columns of a triangular factor that are multiplied at a time."""


def seed_of(seed: int, scheme: str, replicate: int, number: int) -> int:
    """Seed of a redraw of a release."""
    return int(stream(seed, "redraw", scheme, replicate, number).integers(2**63))


def redrawn_moments(original: Moments, law: NoiseLaw, rng: np.random.Generator) -> Moments:
    """Moments of ``[X, X + Z_1 … X + Z_M]`` with other noise.

    ``original`` are moments of X alone, and ``law`` is the law of Z.
    """
    n, N = original.count, original.size
    q = law.copies * N
    corner, total = np.full((1, 1), float(n)), original.total
    A = np.block([[corner, total[None]], [total[:, None], original.products]])
    G = rng.standard_normal((N + 1, q))
    # Cochran: UᵀU is GᵀG along [1, X], plus an independent Wishart matrix of the other n − N − 1
    # dimensions
    UU = G.T @ G + wishart(max(n - N - 1, 0), q, rng)
    # Var Σ u² is (2 + κ) n, and 2n for Gaussian components: stretch the diagonal about n
    if law.excess_kurtosis is not None:
        stretch = np.sqrt(1.0 + law.excess_kurtosis / 2.0)
        UU[np.diag_indices(q)] = np.clip(n + (np.diag(UU) - n) * stretch, 0.0, None)
    across, ZZ = law.coloured(psd_root(A) @ G), law.coloured(law.coloured(UU).T)
    # [X, Y_1 … Y_M] = X H + [0, Z_1 … Z_M], H the identity M + 1 times
    times = law.copies + 1
    total, products = np.tile(total, times), np.tile(original.products, (times, times))
    total[N:] += across[0]
    XZ = np.tile(across[1:], (times, 1))
    products[:, N:] += XZ
    products[N:] += XZ.T
    products[N:, N:] += ZZ
    return Moments(n, total, products)


def wishart(degrees: int, size: int, rng: np.random.Generator) -> Array:
    """Wishart draw with identity scale, shape (size, size), perhaps singular.

    Bartlett's decomposition ``T Tᵀ``: T lower triangular, standard normal below and ``√χ²(degrees −
    i)`` on the diagonal.
    """
    if degrees <= size:
        rows = rng.standard_normal((degrees, size))
        return rows.T @ rows
    T = np.tril(rng.standard_normal((size, size)), -1)
    T[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    product = np.zeros((size, size))
    # strips of columns, 0 above their first row: a third of the product
    for first in range(0, size, STRIP):
        strip = T[first:, first : first + STRIP]
        product[first:, first:] += strip @ strip.T
    return product


class Redraws:
    """Redraws of an adversary's view, in moments.

    Parameters
    ----------
    gathered : Gathered
        Of the release itself.
    law : NoiseLaw
        Of the noise, before copies were transformed.
    """

    def __init__(self, gathered: Gathered, knowledge: Knowledge, law: NoiseLaw) -> None:
        self._gathered, self._knowledge, self._law = gathered, knowledge, law
        table, moments = gathered.copies.table, gathered.copies.moments
        self._all = Moments.merge(gathered.groups).parts([1], table.width)
        self._draw = gathered.rows.draw(knowledge)
        self._rows = None
        # by shape alone: files and tables in memory agree
        if self._draw is not None and table.rows * table.width <= BLOCK_VALUES:
            self._rows = table.read(0, table.rows) - moments.mean

    def one(self, seed: int, transformed: Transformed | None) -> tuple[View, Moments]:
        """Adversary's view, and moments of the judged rows, in another draw."""
        knowledge, rng, law = self._knowledge, stream(seed, "moments"), self._law
        view = replace(self._gathered.view(knowledge), seed=seed)

        def of_copies(moments: Moments) -> Moments:
            return as_seen(transformed, moments).of_copies(view.copies, self._all.size)

        if self._draw is None:
            released = redrawn_moments(self._all, law, rng)
            return replace(view, released=of_copies(released)), released
        given = self._given(rng)
        rest = redrawn_moments(self._all - given, law, rng)
        chosen = redrawn_moments(given, law, rng)
        both, told = Moments.merge([chosen, rest]), view.given
        if isinstance(told, SampleMoments):
            told = replace(told, copies=of_copies(chosen))
        elif isinstance(told, Records):
            told = replace(told, moments=as_seen(transformed, chosen))
        released = rest if isinstance(knowledge, KnownSample) else both
        view = replace(view, released=of_copies(released), given=told)
        return view, rest if self._draw.clear else both

    def _given(self, rng: np.random.Generator) -> Moments:
        assert self._draw is not None
        if self._rows is not None:
            return Moments.of(self._rows[rng.permutation(len(self._rows))[: len(self._draw.rows)]])
        folds = self._gathered.folds(self._knowledge)
        some = (folds[place] for place in rng.integers(0, len(folds), len(folds)))
        return Moments.merge(some).parts([1], self._all.size)

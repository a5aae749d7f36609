"""Error bars of attacks that estimate something: their errors in other draws of the same release, which the audit makes itself.

Where an attack estimates a prior, a number of components or a regression from the copies, or from
records it was given, that estimate is drawn once for all records. Leaving rows out (a jackknife)
shows neither how it jumps nor what it did not see. The audit has the table and the law, so it draws
again: other noise, another matrix, other records given.

| symbol | meaning | shape |
| --- | --- | --- |
| ``A`` | ``[1, X]ᵀ[1, X]``: moments of the original, which stay as they are | (N+1, N+1) |
| ``U`` | ``n`` rows of independent components of mean 0, variance 1; noise is ``Z = U Lᵀ``, ``L Lᵀ = K_Z`` | (n, q) |
| ``G`` | ``[1, X]ᵀU = A^½ G``, G standard normal | (N+1, q) |
| ``UᵀU`` | ``GᵀG + W``, W Wishart with identity scale on ``n − N − 1`` degrees of freedom | (q, q) |

For Gaussian noise these are the exact joint law of all second moments, given the table (Cochran): a
redraw costs as much as a few matrix products and touches no row. For other noise the mean and
variance of each second moment are exact, their shape is normal (n is large).

The spread of the redraws is the error bar: it covers an estimated prior, a changed number of
components and other records given. Rare changes need many redraws to be seen at all, hence 39 where
they cost no rows. Attacks on rows are carried out again on nine whole releases.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from auditor.adversary.given import Records, SampleMoments
from auditor.adversary.knowledge import Knowledge, KnownSample
from auditor.adversary.view import View
from auditor.audit.numeric.transformed_copies import seen
from auditor.audit.numeric.views import Gathered
from auditor.numerics.blocks import BLOCK_VALUES
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.schemes.base.noise_law import NoiseLaw, psd_root
from auditor.schemes.base.transform import Transformed
from auditor.types import Array

STRIP = 512
"""Columns of a triangular factor that are multiplied at a time."""
MOST_KEPT = 2**14
"""Moments of at most so many products are kept, 39 times: some twenty megabytes."""


def seed_of(seed: int, scheme: str, replicate: int, number: int) -> int:
    """Return the seed of a redraw: it is the same release under another seed."""
    return int(stream(seed, "redraw", scheme, replicate, number).integers(2**63))


def redrawn_moments(original: Moments, law: NoiseLaw, rng: np.random.Generator) -> Moments:
    """Return moments of ``[X, X + Z_1 … X + Z_M]`` with other noise, for the same rows of X.

    Parameters
    ----------
    original : Moments
        Of X alone, d = N.
    law : NoiseLaw
        Of Z.
    rng : Generator
    """
    n, N = original.count, original.size
    q = law.copies * N
    # Second moments hold of the noise only its products with these N + 1 columns, and its products
    # with itself.
    A = np.block(
        [
            [np.full((1, 1), float(n)), original.total[None]],
            [original.total[:, None], original.products],
        ]
    )
    G = rng.standard_normal((N + 1, q))
    # Cochran: UᵀU is the part along the columns of [1, X], GᵀG, plus an independent Wishart matrix
    # of the n − N − 1 other dimensions.
    UU = G.T @ G + wishart(max(n - N - 1, 0), q, rng)
    # with κ, Var Σ u² = (2 + κ) n where Gaussian components have 2n: stretch the diagonal about n
    if law.excess_kurtosis is not None:
        UU[np.diag_indices(q)] = np.clip(
            n + (np.diag(UU) - n) * np.sqrt(1.0 + law.excess_kurtosis / 2.0), 0.0, None
        )
    across, ZZ = law.coloured(psd_root(A) @ G), law.coloured(law.coloured(UU).T)
    # [X, Y_1 … Y_M] = X H + [0, Z_1 … Z_M], H the identity M + 1 times: a product with it is a
    # repetition.
    times = law.copies + 1
    total, products = np.tile(original.total, times), np.tile(original.products, (times, times))
    total[N:] += across[0]
    XZ = np.tile(across[1:], (times, 1))
    products[:, N:] += XZ
    products[N:] += XZ.T
    products[N:, N:] += ZZ
    return Moments(n, total, products)


def wishart(degrees: int, size: int, rng: np.random.Generator) -> Array:
    """Return a draw from the Wishart law with identity scale, shape (size, size); singular for fewer degrees than size.

    Bartlett's decomposition ``T Tᵀ``: T lower triangular, standard normal below and ``√χ²(degrees −
    i)`` on the diagonal.
    """
    if degrees <= size:
        rows = rng.standard_normal((degrees, size))
        return rows.T @ rows
    T = np.tril(rng.standard_normal((size, size)), -1)
    T[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    product = np.zeros((size, size))
    # strips of columns, each 0 above its first row: a third of the whole product
    for first in range(0, size, STRIP):
        strip = T[first:, first : first + STRIP]
        product[first:, first:] += strip @ strip.T
    return product


def original_alone(moments: Moments, width: int) -> Moments:
    """Return the moments of X, of those of ``[X, …]``."""
    return Moments(moments.count, moments.total[:width], moments.products[:width, :width])


class Redraws:
    """Draws what an adversary of one release might as well have seen, in moments.

    Parameters
    ----------
    gathered : Gathered
        Of the release itself.
    knowledge : Knowledge
    law : NoiseLaw
        Of the noise, before copies were transformed.
    """

    def __init__(self, gathered: Gathered, knowledge: Knowledge, law: NoiseLaw) -> None:
        self._gathered, self._knowledge, self._law = gathered, knowledge, law
        self._kept: dict[int, tuple[View, Moments]] = {}
        table, moments = gathered.copies.table, gathered.copies.moments
        self._all = original_alone(Moments.merge(gathered.groups), table.width)
        self._draw = gathered.rows.draw(knowledge)
        # by shape alone: a table in a file must give the figures of one in memory
        small = table.rows * table.width <= BLOCK_VALUES
        self._rows = (
            table.read(0, table.rows) - moments.mean if self._draw is not None and small else None
        )

    def one(self, number: int, seed: int, transformed: Transformed | None) -> tuple[View, Moments]:
        """Return an adversary's view and the moments of the rows it is judged on, in another draw; small ones are kept."""
        if number in self._kept:
            return self._kept[number]
        found = self._one(seed, transformed)
        if found[1].products.size <= MOST_KEPT:
            self._kept[number] = found
        return found

    def _one(self, seed: int, transformed: Transformed | None) -> tuple[View, Moments]:
        knowledge, N, rng = self._knowledge, self._all.size, stream(seed, "moments")
        view = self._gathered.view(knowledge)
        if self._draw is None:
            released = redrawn_moments(self._all, self._law, rng)
            return replace(
                view, released=seen(transformed, released).of_copies(view.copies, N), seed=seed
            ), released
        given = self._given(rng)
        rest = redrawn_moments(self._all - given, self._law, rng)
        chosen = redrawn_moments(given, self._law, rng)
        both = Moments.merge([chosen, rest])
        released = rest if isinstance(knowledge, KnownSample) else both
        view = replace(
            view, released=seen(transformed, released).of_copies(view.copies, N), seed=seed
        )
        if isinstance(view.given, SampleMoments):
            view = replace(
                view,
                given=replace(
                    view.given, copies=seen(transformed, chosen).of_copies(view.copies, N)
                ),
            )
        elif isinstance(view.given, Records):
            view = replace(view, given=replace(view.given, moments=seen(transformed, chosen)))
        return view, rest if self._draw.clear else both

    def _given(self, rng: np.random.Generator) -> Moments:
        """Return moments of X over other rows: any rows of a small table; of a large one, parts of those that were chosen, resampled."""
        assert self._draw is not None
        if self._rows is not None:
            return Moments.of(self._rows[rng.permutation(len(self._rows))[: len(self._draw.rows)]])
        parts = self._gathered.parts(self._knowledge)
        return original_alone(
            Moments.merge(parts[place] for place in rng.integers(0, len(parts), len(parts))),
            self._all.size,
        )

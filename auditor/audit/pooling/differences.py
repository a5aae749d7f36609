"""Copies so nearly equal that their difference is lost in second moments: the differences, taken row by row, are added as columns.

| symbol | meaning | shape |
| --- | --- | --- |
| ``D_j`` | ``Y_j − Y_r``, r the first copy that is near copy j; 0 for r itself | (n, N) |
| ``E`` | ``[Y_1 … Y_M, D_1 … D_M]`` | (n, 2MN) |

The variance of ``Y_j − Y_r`` from moments of either is known to ε of their variances; the
subtraction of two doubles within a factor of two of each other is exact (Sterbenz). Whatever is
linear in a coalition's copies is linear in one copy of each near group and the others' differences
from it, and a regression can tell these apart: of linearly dependent copies at 0.5 and 0.5 + 10⁻⁹
the difference holds the noise itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from auditor.audit.numeric.linear_maps import by_size
from auditor.audit.numeric.moment_pass import plus
from auditor.numerics.blocks import moment_groups
from auditor.numerics.linear_algebra import of_differences
from auditor.numerics.moments import Moments
from auditor.types import Array, Coalition, Indices

NEAR = 1e-6
"""Share of a copy's variance that its difference from another may have and count as near: moments
then know it to 1e-10 of itself."""
RESOLVED = 1e-11
"""Share of its copies' variance that a combination of three or more may have and be known from
moments, whose last bit is 1e-16 of it."""


def near_copies(total: Moments, N: int) -> Indices | None:
    """Return for each copy the place of the first one near it, its own if there is none before, shape (M,); None where all are apart."""
    P = np.einsum("injn->nij", total.products.reshape(total.size // N, N, -1, N))[:, 1:, 1:]
    own = np.einsum("nii->ni", P)
    first = np.arange(own.shape[1])
    for copy in range(1, first.size):
        earlier = np.flatnonzero(first[:copy] == np.arange(copy))
        apart = own[:, [copy]] - 2.0 * P[:, copy, earlier] + own[:, earlier]
        near = earlier[(apart <= NEAR * own[:, earlier]).all(axis=0)]
        first[copy] = near[0] if near.size else copy
    return None if (first == np.arange(first.size)).all() else first


def with_differences(
    blocks: Iterable[tuple[int, Array, list[Array]]], rows: int, centre: Array, near: Indices
) -> list[Moments]:
    """Return the moments of ``[X, E]`` by row group, in one pass."""
    groups: dict[int, Moments] = {}
    cuts = moment_groups(rows, centre.size, (2 * near.size + 1) * centre.size)
    for index, x, copies in blocks:
        first = cuts[index][0][1]
        for number, start, stop in cuts[index]:
            here = slice(start - first, stop - first)
            apart = [copy[here] - copies[r][here] for copy, r in zip(copies, near, strict=True)]
            plus(
                groups,
                number,
                Moments.of(
                    np.hstack([x[here] - centre, *(copy[here] - centre for copy in copies), *apart])
                ),
            )
    return [groups[number] for number in sorted(groups)]


def regressors(index: Indices, near: Indices | None) -> tuple[Indices, Indices | None]:
    """Return what stands for each copy of some coalitions in a regression: the block of ``E`` added and the one taken off, shapes (B, k).

    Parameters
    ----------
    index : ndarray of shape (B, k)
        Places of each coalition's copies.
    near : ndarray of shape (M,) or None
        As ``near_copies`` returns it. Without it the copies stand for themselves, and nothing is
        taken off.
    """
    if near is None:
        return index, None
    M, group = near.size, near[index]
    leader = index[
        np.arange(len(index))[:, None], (group[:, :, None] == group[:, None, :]).argmax(axis=2)
    ]
    nothing = M + group  # the difference of a group's first copy from itself
    return np.where(leader == index, index, M + index), np.where(
        leader == index, nothing, M + leader
    )


def unresolved(
    coalitions: Sequence[Coalition], total: Moments, N: int, near: Indices | None
) -> set[Coalition]:
    """Return the coalitions of which some combination of copies is lost in second moments, though no two of the copies are near.

    Of ``Y_1 = X + Z_1``, ``Y_2 = Y_1 + Z_2`` and ``Y_3 = X + (1+g) Z_1 + ½ Z_2`` the combination
    ``Y_3 − ½ Y_1 − ½ Y_2 = g Z_1`` gives the record away, however small g is; its variance is
    ``g²`` of theirs. Looked for attribute by attribute: a total beside its parts, which depends on
    them in every copy alike, is no such combination.

    Parameters
    ----------
    coalitions : sequence of tuple of int
    total : Moments
        Of ``[X, Y_1 … Y_M]``, or of ``[X, E]``.
    N : int
    near : ndarray of shape (M,) or None
        As ``near_copies`` returns it.
    """
    K, lost = total.covariance()[N:, N:], set[Coalition]()
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 2]):
        added, off = regressors(np.array(run) - 1, near)
        least = np.ones(len(run))
        for attribute in range(N):
            each = K[attribute::N, attribute::N]
            C = (
                each[added[:, :, None], added[:, None, :]]
                if off is None
                else of_differences(each, added, off)
            )
            own = np.einsum("bkk->bk", C)
            scale = np.sqrt(np.where(own > 0, own, 1.0))
            # What is 0, as the difference of equal copies, is left out: it counts as independent of
            # all others.
            R = np.where(
                own[:, :, None] > 0, C / (scale[:, :, None] * scale[:, None, :]), np.eye(C.shape[1])
            )
            least = np.minimum(least, np.linalg.eigvalsh(R)[:, 0])
        lost.update(c for c, share in zip(run, least.tolist(), strict=True) if share < RESOLVED)
    return lost

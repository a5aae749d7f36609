"""Second moments of Gaussian noise over all rows.

| symbol | meaning | under the law |
| --- | --- | --- |
| ``t_a`` | noise of one attribute in one copy over its deviation, or one whitened coordinate | N(0, 1), correlations ``ρ_ab`` |
| ``Σ t_a²`` | over n rows | χ²(n) |
| ``r(t_a, t_b − ρ_ab t_a)`` | correlation about 0 of two independent variables | ``r √((n − 1)/(1 − r²)) ~ t(n − 1)`` |
| ``Σ t_a / √n``, ``Σ x_j t_a / ‖x_j‖`` | mean, and correlation with attribute j | N(0, 1) |

All are exact at any number of rows and for any table. Coordinates below the rounding of the sums
are left to single rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from auditor.audit.law_tests.battery import Largest
from auditor.audit.law_tests.chosen_rows import MOST_COORDINATES, some_copies
from auditor.audit.law_tests.scores import COARSEST, coordinate_name, whitening
from auditor.numerics.moments import Moments
from auditor.numerics.statistics import correlation_tail, tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array

DIGITS = 2.0**-46
"""Rounding of a sum of products, relative to the squares in it."""


def moment_tests(
    law: NoiseLaw, groups: Sequence[Moments], names: Sequence[str], grain: Array | float = 0.0
) -> list[LawTest]:
    """Return the tests of Gaussian noise from the moments of all rows.

    Parameters
    ----------
    law : NoiseLaw
        Of all M copies.
    groups : sequence of Moments
        Of ``[X, Y_1 … Y_M]``, by row group.
    names : sequence of str
        The N attributes.
    grain : ndarray of shape (M', N), optional
        Spacing of the grid of each of the copies that are tested, which adds ``grain²/12`` to the
        variance of their noise.
    """
    N, total = len(names), Moments.merge(groups)
    n, chosen = total.count, some_copies(law.copies, N, MOST_COORDINATES)
    if n < 3 or law.distribution != "gaussian":
        return []
    K = law.of(chosen).covariance
    h = np.broadcast_to(grain, (len(chosen), N)).ravel()
    K = K + np.diag(np.where(np.diag(K) > 0, h**2 / 12.0, 0.0))
    index = (np.array([0, *chosen])[:, None] * N + np.arange(N)).ravel()
    P = total.products[np.ix_(index, index)]
    D = np.hstack([np.tile(-np.eye(N), (len(chosen), 1)), np.eye(len(K))])  # z = D [x, y]
    S, cross, sums = D @ P @ D.T, D @ P[:, :N], D @ total.total[index]
    size = np.sqrt(np.diag(P)[N:] + np.tile(np.diag(P)[:N], len(chosen)))
    x_size = np.sqrt(np.diag(P)[:N])
    loud, white = np.flatnonzero(np.diag(K) > (h / COARSEST) ** 2), whitening(K, N, h)
    places = [coordinate_name(names, chosen, a // N, a % N, False) for a in loud.tolist()]
    kinds = [
        f"whitened {coordinate_name(names, chosen, *place)}"
        for place in zip(
            white.copy.tolist(), white.attribute.tolist(), white.new.tolist(), strict=True
        )
    ]
    found: list[tuple[str, Largest, int]] = []
    for W, labels in (
        (np.eye(len(K))[loud] / np.sqrt(np.diag(K)[loud])[:, None], places),
        (white.W, kinds),
    ):
        # noise of 1e-301 has rounding of 1e285 deviations
        with np.errstate(over="ignore", invalid="ignore"):
            known = (np.abs(W) @ size) ** 2 * DIGITS <= 0.01 * math.sqrt(n)
        W, labels = (
            W[known],
            [label for label, fine in zip(labels, known.tolist(), strict=True) if fine],
        )
        if len(W):
            found += _tests(
                W @ S @ W.T,
                W @ K @ W.T,
                np.abs(W) @ h,
                W @ cross,
                W @ sums,
                x_size,
                n,
                labels,
                names,
            )
    return [
        _combined(statistic, [one for one in found if one[0] == statistic], n)
        for statistic in ("covariance", "mean", "correlation with the data")
        if any(one[0] == statistic for one in found)
    ]


def _tests(
    S: Array,
    R: Array,
    coarse: Array,
    cross: Array,
    sums: Array,
    x_size: Array,
    n: int,
    labels: Sequence[str],
    names: Sequence[str],
) -> list[tuple[str, Largest, int]]:
    """Return findings for coordinates with sums of products S.

    R holds the correlations under the law. A finding has a statistic, the least p-value, and the
    number of comparisons.

    Coordinates are known to ``coarse`` deviations; of two that are nearly the same the difference
    may be rounding.
    """
    square, d = np.clip(np.diag(S), 0.0, None), len(S)
    p = 2.0 * np.minimum(scipy.special.chdtr(n, square), scipy.special.chdtrc(n, square))
    a = int(p.argmin())
    where = f"the variance of the {labels[a]}, in units of the law's, is"
    found = [("covariance", Largest(float(p[a]), float(square[a] / n), 1.0, where), d)]
    # of t_b − ρ_ab t_a
    left = np.clip(square[None, :] - 2.0 * R * S + R**2 * square[:, None], 0.0, None)
    length = np.sqrt(square[:, None] * left)
    own = np.sqrt(np.clip(1.0 - R**2, 0.0, None))
    free = (own > 1e-3) & (own > (coarse[:, None] + coarse) / COARSEST) & (length > 1e-12 * n)
    r = np.where(free, (S - R * square[:, None]) / np.where(free, length, 1.0), 0.0)
    if free.any():
        a, b = (int(place) for place in np.unravel_index(int(np.abs(r).argmax()), r.shape))
        p_r = 2.0 * correlation_tail(min(abs(float(r[a, b])), 1.0 - 1e-15), n)
        where = (
            f"the covariance of the {labels[a]} and the {labels[b]}, in the law's deviations, is"
        )
        found.append(
            ("covariance", Largest(p_r, float(S[a, b] / n), float(R[a, b]), where), int(free.sum()))
        )
    z = sums / math.sqrt(n)
    a = int(np.abs(z).argmax())
    found.append(
        (
            "mean",
            Largest(
                2.0 * tail(abs(float(z[a]))),
                float(z[a] / math.sqrt(n)),
                0.0,
                f"the mean of the {labels[a]}, in the law's deviations, is",
            ),
            d,
        )
    )
    z = cross / np.where(x_size > 0, x_size, np.inf)
    a, b = (int(place) for place in np.unravel_index(int(np.abs(z).argmax()), z.shape))
    where = f"the {labels[a]} is correlated with {names[b]!r}: r ="
    found.append(
        (
            "correlation with the data",
            Largest(2.0 * tail(abs(float(z[a, b]))), float(z[a, b]) / math.sqrt(n), 0.0, where),
            z.size,
        )
    )
    return found


def _combined(statistic: str, found: Sequence[tuple[str, Largest, int]], n: int) -> LawTest:
    return min(one for _, one, _ in found).as_test(statistic, sum(count for *_, count in found), n)

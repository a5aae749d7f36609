"""The noise that was drawn against the law that is stated, in sums over all rows: covariance, mean, and correlation with the data.

The auditor has ``Z = Y − X``. Brought to unit variance, noise that follows its law is independent normal, whatever the data are, so
that these tests are exact at any number of rows and for any table. For uniform noise, whose squares vary less, they are bounds, as n grows;
of noise with heavier tails squares vary by ``2 + κ``, κ the excess kurtosis, and whitened coordinates are its increments.

| symbol | meaning | law | shape |
| --- | --- | --- | --- |
| ``W`` | ``W K_Z Wᵀ = I``, on the directions that have noise | | (r, MN) |
| ``u`` | ``W z``, one row's noise | N(0, I) | (r,) |
| ``Σ u_k²`` | over n rows | ``χ²(n)`` | |
| ``r_kl`` | correlation of two of them, about 0 | ``r √((n − 1)/(1 − r²)) ~ t(n − 1)`` | |
| ``Σ u_k / √n``, ``Σ x_j u_k / ‖x_j‖`` | mean, and correlation with attribute j | N(0, 1) | |
| ``Σ_g (Σ u_k)²/n_g`` | over G groups of rows | ``χ²(G)`` | |

Directions are left out that the sums cannot tell from rounding: noise far below the data. Those are looked at row by row
(``auditor.audit.drawn_law.rows``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.audit.drawn_law.chosen_rows import some_copies
from auditor.numerics.moments import Moments
from auditor.numerics.statistics import correlation_tail, tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.increment_density import is_process
from auditor.schemes.base.noise_law import DenseNoise, NoiseLaw
from auditor.types import Array

HARDLY_ANY = 1e-10
"""Directions with less of the noise's variance than that, beside that of each coordinate, count as having none."""
MOST_COORDINATES = 1024
"""Copies times attributes whose moments are looked at: of more, some copies, evenly among all."""
DIGITS = 2.0**-46
"""Rounding of a sum of products, beside the squares that went into it."""
FEWEST_ROWS = 1024
"""Rows from which sums of noise that is not Gaussian are normal enough, out to chances of 1e-9 or so; of heavier tails as many more as
squares vary more."""
FOR_PRODUCTS = 54
"""Rows beside the squared kurtosis, from which sums of products of two such coordinates are: ``(3 + κ)² z⁴/24`` is no more than them at
``z = 6``."""


class Whitening(NamedTuple):
    """What brings noise of one covariance to independent coordinates of variance 1.

    Attributes
    ----------
    rows : ndarray of shape (r, k)
        ``W``.
    null : ndarray of shape (m, k)
        Combinations that have no noise by law, of coordinates brought to unit variance.
    """

    rows: Array
    null: Array


def whitening(K: Array) -> Whitening:
    """Return the whitening of a covariance of shape (k, k), by its eigenvectors in units of each coordinate."""
    deviation = np.sqrt(np.clip(np.diag(K), 0.0, None))
    loud = np.flatnonzero(deviation > 0)
    values, vectors = np.linalg.eigh(K[np.ix_(loud, loud)] / np.outer(deviation[loud], deviation[loud]))
    kept = values > HARDLY_ANY * len(K)
    parts = []
    for part in (vectors[:, kept] / np.sqrt(values[kept]), vectors[:, ~kept]):
        rows = np.zeros((part.shape[1], len(K)))
        rows[:, loud] = part.T / deviation[loud]
        parts.append(rows)
    return Whitening(*parts)


def factors(law: NoiseLaw) -> tuple[Array, Array]:
    """Return two covariances of which ``K_Z`` is the Kronecker product: of copies and of attributes, where the law is made so."""
    return (np.eye(1), law.covariance) if isinstance(law, DenseNoise) else (law.level_covariance, law.shape)


def moment_tests(
    law: NoiseLaw, groups: Sequence[Moments], names: Sequence[str], runs: Sequence[Moments] | None = None
) -> list[LawTest]:  # fmt: skip
    """Return one test a statistic, from the moments of all rows.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise in all copies.
    groups : sequence of Moments
        Of ``[X, Y_1 … Y_M]``, by row group.
    names : sequence of str
        The N attributes.
    runs : sequence of Moments, optional
        Of each row group how many rows it has and their totals, where ``groups`` are of all rows together.
    """
    runs = groups if runs is None else runs
    N, total = len(names), Moments.merge(groups)
    n, chosen = total.count, some_copies(law.copies, len(names), MOST_COORDINATES)
    if n < 3 or law.distribution == "unstated" or (law.distribution != "gaussian" and n < FEWEST_ROWS):
        return []
    law = law.of(chosen)
    A, B = factors(law)
    W_A, W_B, shape = _whitening_of_levels(law, A), whitening(B).rows, (len(A), len(B))
    P, parts = _of_noise(total, chosen, N)
    # Rounding of a sum, in whitened units, must be small beside its own spread of about √n.
    with np.errstate(over="ignore", invalid="ignore"):  # noise of 1e-301 is all rounding, as many times its own size as there are numbers
        rounding = (np.abs(W_A) @ parts.size.reshape(shape) @ np.abs(W_B).T) ** 2 * DIGITS
        kept = (rounding <= 0.01 * np.sqrt(n)).ravel()
    excess = _excess(law)
    kept &= (excess == 0.0) | (n >= np.maximum(FEWEST_ROWS * (1.0 + excess / 2.0), FOR_PRODUCTS * (3.0 + excess) ** 2))
    if not kept.any():
        return []
    excess = excess[kept]
    S = np.einsum("ki,injm,oj->knom", W_A, P.reshape(*shape, *shape), W_A, optimize=True)
    S = np.einsum("ln,knom,rm->klor", W_B, S, W_B, optimize=True).reshape(kept.size, kept.size)[np.ix_(kept, kept)]

    def white(rows: Array) -> Array:
        """Return ``W`` times sums over noise, shape (…, r)."""
        outer = rows.shape[:-2]
        u = np.einsum("ki,...ij,lj->...kl", W_A, rows.reshape(*outer, *shape), W_B, optimize=True)
        return np.asarray(u.reshape(*outer, kept.size)[..., kept])

    sums = np.array([_totals(group, chosen, N) for group in runs])
    counts = np.array([group.count for group in runs])
    spread = np.einsum("gk,g->k", white(sums) ** 2, 1.0 / counts)
    tests = [
        _covariance(S, n, law, P / n, names, chosen, excess),
        _normal("mean", white(sums.sum(axis=0)) / np.sqrt(n), n, "a mean of the noise, in standard errors, is"),
        LawTest("means of groups of rows",
                min(1.0, spread.size * float(_chi(spread, len(runs), excess * (len(runs) / n)).min())), spread.size, n,
                float(spread.max() / len(runs)), 1.0, "the variance of the noise's mean over groups of rows, beside the law's, is"),
    ]  # fmt: skip
    if not (excess > 0.0).any():  # one record far out would carry its own noise's tails into the sum
        sizes = np.where(parts.x_size > 0, parts.x_size, np.inf)  # a column that is the same in all these rows is correlated with nothing
        tests.append(_normal("correlation with the data", white(parts.cross) / sizes[:, None], n,
                             "a correlation of noise and data, in standard errors, is"))  # fmt: skip
    return tests


def _whitening_of_levels(law: NoiseLaw, Sigma: Array) -> Array:
    """Return W of Sigma, shape (r, M); of one process its increments, which alone are independent and not just uncorrelated."""
    if not is_process(law) or not law.one_process:
        return whitening(Sigma).rows
    levels = np.diag(Sigma)
    order = np.argsort(levels, kind="stable")
    W = np.eye(len(levels))[order]
    W[1:] -= W[:-1].copy()
    steps = np.diff(levels[order], prepend=0.0)
    return np.asarray(W[steps > 0] / np.sqrt(steps[steps > 0])[:, None])


def _excess(law: NoiseLaw) -> Array:
    """Return the excess kurtosis of each whitened coordinate, shape (r,), in the order of ``W``; 0 where tails are not heavy."""
    A, B = factors(law)
    if not is_process(law):
        return np.zeros(len(whitening(A).rows) * len(whitening(B).rows))
    K = np.asarray(law.excess_kurtosis).reshape(law.copies, law.width)
    levels, loud = np.diag(A), np.diag(B) > 0
    order = np.argsort(levels, kind="stable") if law.one_process else np.arange(len(levels))
    steps = np.diff(levels[order], prepend=0.0) if law.one_process else levels
    return np.asarray(K[order[steps > 0]][:, loud]).ravel()


class _Parts(NamedTuple):
    """Sums over data and noise: ``Σ x zᵀ`` of shape (N, M, N), ``‖x_j‖`` of shape (N,), and squares that rounding is of, (M, N)."""

    cross: Array
    x_size: Array
    size: Array


def _of_noise(total: Moments, chosen: Sequence[int], N: int) -> tuple[Array, _Parts]:
    """Return ``Σ z zᵀ`` over all rows, shape (MN, MN), and the other sums."""
    copies, M = [0, *chosen], len(chosen)
    index = (np.asarray(copies)[:, None] * N + np.arange(N)).ravel()
    P = total.products if index.size == total.size else total.products[np.ix_(index, index)]
    P = P.reshape(M + 1, N, M + 1, N)
    S = P[1:, :, 1:] - P[:1, :, 1:] - P[1:, :, :1] + P[:1, :, :1]
    squares = np.einsum("inin->in", P)
    cross = (P[0, :, 1:] - P[0, :, :1]).reshape(N, M, N)
    return S.reshape(M * N, M * N), _Parts(cross, np.sqrt(squares[0]), np.sqrt(squares[1:] + squares[0]))


def _totals(group: Moments, chosen: Sequence[int], N: int) -> Array:
    parts = group.total.reshape(-1, N)
    return np.asarray(parts[np.asarray(chosen)] - parts[0])


def _covariance(
    S: Array, n: int, law: NoiseLaw, found: Array, names: Sequence[str], chosen: Sequence[int], excess: Array
) -> LawTest:
    """Return the test that ``S`` is a Wishart matrix of n rows and covariance I, stated by the entry of ``K_Z`` that is furthest off."""
    size, own = len(S), np.clip(np.diag(S), 0.0, None)  # of a direction without any noise, rounding may leave less than nothing
    worst = float(_chi(own, n, excess).min())  # bounded noise varies less than that
    if size > 1:
        both = np.sqrt(np.outer(own, own))
        r = np.divide(S, both, out=np.zeros_like(S), where=both > 0)
        np.fill_diagonal(r, 0.0)
        largest = min(float(np.abs(r).max()), 1.0 - 1e-15)
        worst = min(worst, 2.0 * correlation_tail(largest, n))
    tests = size * (size + 1) // 2
    K = law.covariance
    scale = np.sqrt(np.clip(np.diag(K), 0.0, None))
    units = np.where(scale > 0, scale, np.inf)
    seen, stated = found / np.outer(units, units), K / np.outer(units, units)
    a, b = divmod(int((np.abs(seen - stated) / np.sqrt(1.0 + stated**2)).argmax()), len(K))
    pair = f"the variance of {_place(a, names, chosen)}" if a == b else (
        f"the covariance of {_place(a, names, chosen)} and {_place(b, names, chosen)}")  # fmt: skip
    where = f"{pair}, in units of the law's own deviations, is"
    return LawTest("covariance", min(1.0, tests * worst), tests, n, float(seen[a, b]), float(stated[a, b]), where)


def _place(place: int, names: Sequence[str], chosen: Sequence[int]) -> str:
    copy, attribute = divmod(place, len(names))
    return f"{names[attribute]!r} in copy {chosen[copy]}"


def _normal(statistic: str, values: Array, n: int, where: str) -> LawTest:
    """Return the test that each of these is N(0, 1)."""
    finite = np.where(np.isfinite(values), values, 0.0)
    worst = float(np.abs(finite).max())
    return LawTest(statistic, min(1.0, 2.0 * finite.size * tail(worst)), finite.size, n, worst, 0.0, where)


def _chi(values: Array, degrees: float, excess: Array) -> Array:
    """Return two-sided p-values of sums of so many squares, each of variance ``2 + excess``: of χ² with as many degrees as vary so much."""
    spread = 1.0 + excess / 2.0
    values, few = values / spread, degrees / spread
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(scipy.special.chdtr(few, values), scipy.special.chdtrc(few, values))))

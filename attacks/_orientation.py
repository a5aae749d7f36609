"""Which attributes of a copy stand the other way up, by a sample of the population: values with the other sign look like nothing it has.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``Q_v`` | quantiles of values v at 100 evenly spaced shares: no long tail decides alone | (100,) | |
| ``λ(y, x)`` | least ``1 − corr(Q_y, Q_h(x))²`` over the increasing h of ``recodings``: what no scale explains | scalar | |
| ``J_v`` | share of all values that equal ``Q_v``, of the same shares: where heaps lie, whatever the scale | (100,) | |
| ``τ(y, x)`` | ``1 − max(0, corr(J_y, J_x))²``: whether heaps lie at the same places | scalar | |
| ``f`` | what two samples of one distribution differ by, ``FEW / min(n, m)`` | scalar | |
| ``a_j`` | ``log (λ(−y, x) + f)/(λ(y, x) + f) + log (τ(−y, x) + f)/(τ(y, x) + f)``, above 0 for the way up that y has | (N,) | |
| ``s_jk`` | sign of the rank correlation of j and k in the copy times that in the sample: −1 where one of the two is turned | (N, N) | |
| ``o_j`` | −1 if j is turned: ``o_j o_k = s_jk`` of sure pairs; of all so linked ``Σ o_j a_j + DOUBT·mean(o_j)`` is greatest | (N,) | |

Signs of rank correlations do not depend on any scale, but stay if all linked attributes are turned together; then shapes decide, and copies
are right way up unless shapes say clearly otherwise. *Nobody can tell* a symmetric attribute that no other one goes with, nor logarithms
of a long tail whose own logarithm is symmetric from their negatives.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from auditor.numerics.statistics import column_ranks, ranks
from auditor.plugin import Array

SHARES = (np.arange(100) + 0.5) / 100
FEW = 4.0
"""``f`` times the records of the smaller table: by as much two samples of long tails differ, and those of normal values by half of it."""
DOUBT = float(np.log(6.0))
"""How much better a copy must fit when it is turned. Of 21 attributes under 17 increasing recodings and noises, 7,140 tables, 5 are turned:
cut off at their median, or symmetric ones multiplied by long-tailed noise."""
SURE = 5.0
"""Standard errors from which on a rank correlation's sign is taken for sure, in the copy and in the sample."""


def orientation(Y: Array, X: Array) -> Array:
    """Return ``o``, shape (N,), of a copy's rows, shape (n, N), by those of a sample, shape (m, N)."""
    N, pairs = X.shape[1], linked(Y, X)
    evidence = np.array([upright(y, x) for y, x in zip(Y.T, X.T, strict=True)])
    o, group = np.ones(N), np.arange(N)
    strength = np.abs(np.triu(pairs, 1))
    surest = np.argsort(-strength, axis=None, kind="stable")[: np.count_nonzero(strength)]
    for j, k in zip(*np.unravel_index(surest, strength.shape), strict=True):
        if group[j] != group[k]:  # the surest pairs first; of a ring the least sure says nothing new
            joined = group == group[k]
            o[joined] *= np.sign(pairs[j, k]) * o[j] * o[k]
            group[joined] = group[j]
    for members in (group == one for one in np.unique(group)):
        o[members] *= 1.0 if o[members] @ evidence[members] + DOUBT * o[members].mean() >= 0.0 else -1.0
    return o


def linked(Y: Array, X: Array) -> Array:
    """Return how sure each ``s`` is, with its sign, in standard errors, shape (N, N): the fewer of the two tables'; 0 if not sure."""
    z = [np.arctanh(np.clip(_rank_correlations(part), -1 + 1e-12, 1 - 1e-12)) * np.sqrt(max(0, len(part) - 3)) for part in (Y, X)]
    least = np.minimum(*np.abs(z))
    return np.asarray(np.where(least >= SURE, least, 0.0) * np.sign(z[0] * z[1]))


def upright(y: Array, x: Array) -> float:
    """Return ``a`` of a copy's values of one attribute, shape (n,), by a sample's, shape (m,): above 0 if they fit better as they are."""
    y, x = (values / (np.abs(values).max() or 1.0) for values in (y, x))  # no unit matters, and squares of 1e300 are beyond a double
    f, scales, heaps = FEW / min(len(y), len(x)), [quantiles(scale) for scale in recodings(x)], heights(x)
    left = [
        (min(misfit(quantiles(values), scale) for scale in scales) + f) * (misfit(heights(values), heaps) + f) for values in (-y, y)
    ]
    return float(np.log(left[0] / left[1]))


def recodings(x: Array) -> Iterator[Array]:
    """Yield values in scales that tables have: as they are, ranks, squares, exponentials, and roots and logarithms where these are real."""
    yield from (x, ranks(x), x * np.abs(x), np.exp((x - x.max()) / (x.std() or 1.0)), np.log(x - x.min() + (x.std() or 1.0) / 10.0))
    if x.min() >= 0:
        yield np.sqrt(x)
    if x.min() > 0:
        yield np.log(x)


def quantiles(values: Array) -> Array:
    """Return ``Q``."""
    return np.asarray(np.quantile(values, SHARES, method="hazen"))


def heights(values: Array) -> Array:
    """Return ``J``.

    Examples
    --------
    >>> np.unique(heights(np.array([0.0, 0.0, 0.0, 5.0])), return_counts=True)
    (array([0.25, 0.75]), array([25, 75]))
    """
    _, counts = np.unique(values, return_counts=True)
    return np.asarray(np.repeat(counts / len(values), counts)[(SHARES * len(values)).astype(int)])


def misfit(of_y: Array, of_x: Array) -> float:
    """Return ``1 − max(0, corr)²`` of what is said at the same shares of copy and sample; 1 where either does not vary.

    Examples
    --------
    >>> misfit(np.array([5.0, 3.0, 1.0]), np.array([2.0, 1.0, 0.0])) < 1e-12, misfit(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    (True, 1.0)
    """
    y, x = of_y - of_y.mean(), of_x - of_x.mean()
    size = np.linalg.norm(y) * np.linalg.norm(x)
    told = size > 1e-12 * np.abs(of_y).max() * np.abs(of_x).max()
    return max(0.0, 1.0 - max(0.0, float(y @ x / size)) ** 2) if told else 1.0


def _rank_correlations(X: Array) -> Array:
    """Return Spearman's correlations of columns, shape (N, N); 0 with one that does not vary."""
    of = column_ranks(X)
    of -= of.mean(axis=0)
    size = np.sqrt((of**2).sum(axis=0))
    of /= np.where(size > 1e-12, size, 1.0)
    return np.asarray(of.T @ of)

"""Match the quantiles of a copy to a population sample's.

Any monotone recoding keeps each value's rank.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``G(y)`` | share of the copy's values below y, plus half of the share equal to y | scalar | |
| ``Q(u)`` | u-quantile of the sample | scalar | |
| ``o`` | 1, or −1 if the copy reverses the attribute | scalar | |
| ``x̂`` | ``Q(G(o·y))``, the monotone map between the distributions; the mean over several copies | (N,) | villani2003 |

A copy's quantiles use at most ``MOST_ROWS`` rows. Copies are upright unless the sample
clearly shows otherwise.

Attributes of reversed sign in a copy are detected by the sample:

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``Q_v`` | quantiles of values v at 100 evenly spaced shares; robust to long tails | (100,) | |
| ``λ(y, x)`` | least ``1 − corr(Q_y, Q_h(x))²`` over the increasing h of ``recodings`` | scalar | |
| ``J_v`` | share of all values that equal ``Q_v``, at the same shares: position of ties on any scale | (100,) | |
| ``τ(y, x)`` | ``1 − max(0, corr(J_y, J_x))²``: mismatch of ties | scalar | |
| ``f`` | difference expected between two samples of one distribution, ``FEW / min(n, m)`` | scalar | |
| ``a_j`` | ``log (λ(−y, x) + f)/(λ(y, x) + f) + log (τ(−y, x) + f)/(τ(y, x) + f)``, positive if y is upright | (N,) | |
| ``s_jk`` | sign of the rank correlation of j and k in the copy times the sample's: −1 if exactly one is reversed | (N, N) | |
| ``o_j`` | −1 if j is reversed: ``o_j o_k = s_jk`` of sure pairs; per linked group ``Σ o_j a_j + DOUBT·mean(o_j)`` is maximal | (N,) | |

Shapes decide if all linked attributes may be reversed, with a prior for upright copies. *Not
identifiable*: a symmetric attribute without correlations; logarithms of a long tail if their own
logarithm is symmetric.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from auditor.adversary.view import Originals
from auditor.numerics.statistics import column_ranks, standard_ranks
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Reconstruction,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

from ._fits import some_rows

SHARES = (np.arange(100) + 0.5) / 100
FEW = 4.0
"""``f`` times the smaller table's records: the difference of two long-tailed samples, twice that of
normal ones."""
DOUBT = float(np.log(6.0))
"""Log-evidence needed to reverse a copy. It reverses 5 of 7,140 upright tables."""
SURE = 5.0
"""Standard errors, in copy and sample, from which a rank correlation's sign is trusted."""


class Match(NamedTuple):
    """Sorted values of an attribute, and estimates; ``turned`` −1 if reversed."""

    shown: Array
    meant: Array
    turned: float = 1.0

    def __call__(self, y: Array) -> Array:
        return np.interp(self.turned * y, self.shown, self.meant)


@register
class QuantileMatching(RowAttack):
    """Match quantiles of a copy to a population sample's quantiles."""

    name = "quantile-matching"
    reference = "villani2003"
    attack_kind = "with a sample"
    knowledge = ("known-sample", "unmatched-records", "known-records")
    assumes = "The adversary has records of the same population, and copies keep values' order, or turn it round. No law need be known."
    wins = "Wins on copies in other units, of ranks, or otherwise changed but for the order of values; fails where that changes."

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        known = view.need(Originals).original
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        copies = np.split(rows, len(view.copies), axis=1)
        return _Matched(
            view.weights,
            [[*map(match, copy.T, known.T, orientation(copy, known))] for copy in copies],
        )


@unprinted
class _Matched(Reconstruction):
    """``weights`` by copy, shape (k,), and ``matches`` by copy and attribute."""

    weights: Array
    matches: Sequence[Sequence[Match]]

    def rows(self, copies: Arrays) -> Array:
        meant = [
            [of(y) for of, y in zip(each, copy.T, strict=True)]
            for each, copy in zip(self.matches, copies, strict=True)
        ]
        return np.tensordot(self.weights, meant, axes=1).T


def match(y: Array, x: Array, o: float = 1.0) -> Match:
    """Quantile map of one attribute from copy to sample values.

    ``o`` is 1, or −1 if the copy reverses the attribute.
    """
    shown, counts = np.unique(o * y, return_counts=True)
    place = (np.cumsum(counts) - 0.5 * counts) / len(y)
    return Match(shown, np.quantile(x, place, method="hazen"), o)


def orientation(Y: Array, X: Array) -> Array:
    """``o``, shape (N,), of a copy, (n, N), given a sample, (m, N)."""
    N, pairs = X.shape[1], linked(Y, X)
    evidence = np.array([upright(y, x) for y, x in zip(Y.T, X.T, strict=True)])
    o, group = np.ones(N), np.arange(N)
    strength = np.abs(np.triu(pairs, 1))
    surest = np.argsort(-strength, axis=None, kind="stable")[: np.count_nonzero(strength)]
    for j, k in zip(*np.unravel_index(surest, strength.shape), strict=True):
        # surest pairs first; a pair that closes a cycle adds no information
        if group[j] != group[k]:
            joined = group == group[k]
            o[joined] *= np.sign(pairs[j, k]) * o[j] * o[k]
            group[joined] = group[j]
    for members in (group == one for one in np.unique(group)):
        o[members] *= (
            1.0 if o[members] @ evidence[members] + DOUBT * o[members].mean() >= 0.0 else -1.0
        )
    return o


def linked(Y: Array, X: Array) -> Array:
    """``s`` times the smaller certainty, shape (N, N); 0 if not sure."""
    z = [
        np.arctanh(np.clip(ranks.T @ ranks / len(ranks), -1 + 1e-12, 1 - 1e-12))
        * np.sqrt(max(0, len(ranks) - 3))
        for ranks in map(standard_ranks, (Y, X))
    ]
    least = np.minimum(*np.abs(z))
    return np.where(least >= SURE, least, 0.0) * np.sign(z[0] * z[1])


def upright(y: Array, x: Array) -> float:
    """``a`` of copy values, shape (n,), by sample values, shape (m,)."""
    y, x = (values / (np.abs(values).max() or 1.0) for values in (y, x))
    f, scales, heaps = (
        FEW / min(len(y), len(x)),
        [quantiles(scale) for scale in recodings(x)],
        heights(x),
    )
    left = [
        (min(misfit(quantiles(values), scale) for scale in scales) + f)
        * (misfit(heights(values), heaps) + f)
        for values in (-y, y)
    ]
    return float(np.log(left[0] / left[1]))


def recodings(x: Array) -> Iterator[Array]:
    """Yield values unchanged, and in common increasing scales."""
    yield from (
        x,
        column_ranks(x),
        x * np.abs(x),
        np.exp((x - x.max()) / (x.std() or 1.0)),
        np.log(x - x.min() + (x.std() or 1.0) / 10.0),
    )
    if x.min() >= 0:
        yield np.sqrt(x)
    if x.min() > 0:
        yield np.log(x)


def quantiles(values: Array) -> Array:
    """``Q``, shape (100,)."""
    return np.quantile(values, SHARES, method="hazen")


def heights(values: Array) -> Array:
    """``J``, shape (100,).

    Examples
    --------
    >>> np.unique(heights(np.array([0.0, 0.0, 0.0, 5.0])), return_counts=True)
    (array([0.25, 0.75]), array([25, 75]))
    """
    _, counts = np.unique(values, return_counts=True)
    return np.repeat(counts / len(values), counts)[(SHARES * len(values)).astype(int)]


def misfit(of_y: Array, of_x: Array) -> float:
    """``1 − max(0, corr)²`` of two profiles; 1 if either is constant.

    Examples
    --------
    >>> misfit(np.array([5.0, 3.0, 1.0]), np.array([2.0, 1.0, 0.0])) < 1e-12, misfit(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    (True, 1.0)
    """
    y, x = of_y - of_y.mean(), of_x - of_x.mean()
    size = np.linalg.norm(y) * np.linalg.norm(x)
    told = size > 1e-12 * np.abs(of_y).max() * np.abs(of_x).max()
    return max(0.0, 1.0 - max(0.0, float(y @ x / size)) ** 2) if told else 1.0

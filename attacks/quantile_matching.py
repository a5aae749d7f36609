"""Quantiles of a copy matched to a sample's: a copy whose law nobody states may be the table in other units, or its ranks.

Whatever keeps the order of an attribute's values keeps each value's place among them, and whoever has a sample of the population knows
which value that place belongs to. What turns the order round keeps it, too.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``G(y)`` | share of the copy's values below y, and half of those that equal it | scalar | |
| ``Q(u)`` | u-quantile of the sample | scalar | |
| ``o`` | 1, or −1 of an attribute that a copy has the other way up (``_orientation``) | scalar | |
| ``x̂`` | ``Q(G(o·y))``, the map in order from one distribution to another; over several copies their mean | (N,) | villani2003 |

A copy's quantiles are those of at most ``MOST_ROWS`` of its rows. Copies are taken to be the right way up unless the sample says clearly
otherwise: of symmetric attributes without any other that goes with them nobody can tell.

A noisy value is at another place than its own: of noisy copies this is no better than taking them for the original. That the sample is of
the same population is *not checked*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from auditor.plugin import (
    Array,
    KnownRecords,
    KnownSample,
    Reconstruction,
    Records,
    RowAttack,
    UnmatchedRecords,
    UnpairedRecords,
    View,
    register,
    stream,
)

from ._fastica import some_rows
from ._orientation import orientation


class Match(NamedTuple):
    """The values that a copy shows of one attribute, turned round if need be, sorted, shape (q,), and what each is taken for."""

    shown: Array
    meant: Array
    turned: float = 1.0

    def __call__(self, y: Array) -> Array:
        """Return what values stand for, those between two that were looked at being between what these stand for."""
        return np.asarray(np.interp(self.turned * y, self.shown, self.meant))


@register
class QuantileMatching(RowAttack):
    """Takes each value of a copy for the value of a population sample at the same quantile; pooled copies are averaged."""

    name = "quantile-matching"
    reference = "villani2003"
    attack_kind = "with a sample"
    knowledge = (KnownSample.name, UnmatchedRecords.name, KnownRecords.name)
    assumes = "The adversary has records of the same population, and copies keep values' order, or turn it round. No law need be known."
    wins = "Wins on copies in other units, of ranks, or otherwise changed but for the order of values; fails where that changes."

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the map of each attribute of each copy; copies count by their noise, where its law is known."""
        known = view.given.original if isinstance(view.given, Records) else view.need(UnpairedRecords).original
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        copies = np.split(rows, len(view.copies), axis=1)
        return _Matched(view.weights, [[*map(match, copy.T, known.T, orientation(copy, known))] for copy in copies])


class _Matched(Reconstruction):
    """``x̂`` row by row; ``weights`` by copy, shape (k,), and ``matches`` by copy and attribute."""

    def __init__(self, weights: Array, matches: Sequence[Sequence[Match]]) -> None:
        self._weights, self._matches = weights, matches

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the mean of what the copies' values are taken for."""
        meant = [[of(y) for of, y in zip(each, copy.T, strict=True)] for each, copy in zip(self._matches, copies, strict=True)]
        return np.asarray(np.tensordot(self._weights, meant, axes=1).T)


def match(y: Array, x: Array, o: float = 1.0) -> Match:
    """Return what a copy's values of one attribute stand for, by a sample of its values.

    Parameters
    ----------
    y : ndarray of shape (n,)
    x : ndarray of shape (m,)
    o : float
        1, or −1 if the copy has them the other way up.
    """
    shown, counts = np.unique(o * y, return_counts=True)
    place = (np.cumsum(counts) - 0.5 * counts) / len(y)
    return Match(shown, np.asarray(np.quantile(x, place, method="hazen")), o)

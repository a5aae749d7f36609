"""Match the quantiles of a copy to a population sample's.

Any monotone recoding keeps each value's rank.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``G(y)`` | share of the copy's values below y, plus half of the share equal to y | scalar | |
| ``Q(u)`` | u-quantile of the sample | scalar | |
| ``o`` | 1, or −1 if the copy reverses the attribute (``_orientation``) | scalar | |
| ``x̂`` | ``Q(G(o·y))``, the monotone map between the distributions; the mean over several copies | (N,) | villani2003 |

A copy's quantiles use at most ``MOST_ROWS`` rows. Copies are upright unless the sample
clearly shows otherwise.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.adversary.view import Originals
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
from ._orientation import orientation


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

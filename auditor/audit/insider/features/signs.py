"""Products of signs, sizes and row parities, by a Walsh–Hadamard transform."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import Column, Feature, Known, Shown
from auditor.process.deferred import scipy
from auditor.registry import register
from auditor.types import Array, Flags, Indices

MOST_BITS, PLACE_BITS = 14, 2
"""Signs and sizes that are multiplied, and low bits of the row number: signs may alternate along
the file."""
SURE = 5.0
"""Amount by which the largest of m powers exceeds ln m once in 150 times."""


@register
class Signs(Feature):
    """The product of signs, sizes and row parities that predicts the residual best."""

    name, learns = "signs", True

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the column."""
        there = np.flatnonzero(np.isfinite(known.left))
        left = known.left[there] - known.left[there].mean()
        above = bits(shown)
        if not left.any():
            return
        pattern = above[there] @ (1 << np.arange(above.shape[1]))
        sums = walsh(np.bincount(pattern, left, 1 << above.shape[1]).astype(np.float64)[None])[0]
        power = sums**2 / (2.0 * (left**2).sum())
        power[0] = 0.0
        product = int(power.argmax())
        if power[product] - above.shape[1] * np.log(2.0) > SURE:
            yield "product of signs", partial(parity, product)


def bits(shown: Shown) -> Flags:
    """Return which values are above their median, and which of the differences are large, and low bits of the row number, shape (n, b)."""
    few = MOST_BITS // 2
    d = np.hstack([shown.differences[:, : few - 1], shown.flat])[:, :few]
    values = np.hstack([d, np.abs(d - np.median(d, axis=0))])
    # Equal values are ranked in a random order, which does not depend on the rows.
    lot = np.random.default_rng(0).permutation(len(values))
    ranks = np.empty(values.shape, dtype=np.intp)
    ranks[lot] = values[lot].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    place = (np.arange(len(values))[:, None] >> np.arange(PLACE_BITS) & 1).astype(bool)
    return np.hstack([2 * ranks >= len(values), place])


def parity(product: int, shown: Shown) -> Indices:
    """Return whether an even number of the bits in a product are set."""
    above = bits(shown)
    return (above & (((product >> np.arange(above.shape[1])) & 1) > 0)).sum(axis=1) % 2


def walsh(sums: Array) -> Array:
    """Return the Walsh–Hadamard transform of each row: its sums with every product of signs."""
    H, length = (
        scipy.linalg.hadamard(1 << (sums.shape[1].bit_length() // 2)).astype(np.float64),
        sums.shape[1],
    )
    rest = scipy.linalg.hadamard(length // len(H)).astype(np.float64)
    return (rest @ sums.reshape(len(sums), len(rest), len(H)) @ H).reshape(len(sums), -1)

"""Residues and low digits of cells and differences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from auditor.audit.insider.feature import FEW, MOST_PAIRED, Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array

POWERS, MOST_SERIES = 10, 12
"""Powers of ten that are tried as moduli, from the largest below a column's range, and columns that
they are tried on."""


@register
class Residues(Feature):
    """Remainders by powers of ten, remainders of sums of ranks, and exclusive or of whole numbers."""

    name = "residues"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        for c, v in enumerate(shown.series.T[:MOST_SERIES]):
            top = int(np.floor(np.log10(np.ptp(v)))) if np.ptp(v) > 0 else 0
            for power in range(top, top - POWERS, -1):
                yield f"remainder of series {c} by 10^{power}", partial(remainder, c, power)
        for a, b in combinations(range(min(shown.differences.shape[1], MOST_PAIRED)), 2):
            for sign in (1, -1):
                yield (
                    f"ranks of differences {a} and {b} added modulo 1 ({sign:+d})",
                    partial(ranks_added, a, b, sign),
                )
        for a, b in combinations(range(min(shown.cells.shape[1], FEW)), 2):
            for j in range(min(shown.cells.shape[2], FEW)):
                yield (
                    f"exclusive or of copies {a} and {b} in attribute {j}",
                    partial(exclusive_or, a, b, j),
                )


def remainder(c: int, power: int, shown: Shown) -> Array:
    """Return the remainder of a column by a power of ten; 0 where a double cannot hold it."""
    v = shown.series[:, c]
    # Powers below 1 are no sums of powers of two, so the quotient is taken first; whole quotients
    # leave 0.
    parts = np.mod(v, 10.0**power) if power >= 0 else v * 10.0**-power
    if power >= 0:
        return parts
    rounded = 4.0 * np.finfo(np.float64).eps * np.abs(parts).max()
    # Moved up by more than division rounds, equal remainders fall into one step of 1/1024.
    return (
        np.floor(np.mod(parts + rounded, 1.0) * 1024.0)
        if rounded < 1.0 / 4096.0
        else np.zeros_like(v)
    )


def ranks_added(a: int, b: int, sign: int, shown: Shown) -> Array:
    """Return the sum or difference of two columns' ranks, modulo 1."""
    return (shown.ranks[:, a] + sign * shown.ranks[:, b]) % 1.0


def exclusive_or(a: int, b: int, j: int, shown: Shown) -> Array:
    """Return the exclusive or of two copies' cells; 0 where they are no whole numbers."""
    y, z = shown.filled[:, a, j], shown.filled[:, b, j]
    whole = all(
        0 <= part.min() and part.max() < 2.0**53 and (part == np.floor(part)).all()
        for part in (y, z)
    )
    return (
        (y.astype(np.int64) ^ z.astype(np.int64)).astype(np.float64) if whole else np.zeros_like(y)
    )

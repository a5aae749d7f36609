"""Sums over records of a step's posteriors as JSON values, to be written to disk until their pass is whole.

Written are sums by original value, so a step's may be only where each value that the table has is
that of ten of its records or more, and so may those by row group. A value that the step lacks is a
count, too: that of none. Counts of outcomes, of which some are of one record in nearly every step,
are counted again instead (``python -m benchmarks.small_counts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.audit.categorical.posterior_measures import Sums
from auditor.results.codec import CodecError, codec
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.types import Coalition

MOST_NUMBERS = 2**15
"""Numbers in what is kept of some stripes: 600 kB of text."""

Name = tuple[str, str]
"""An attack's id and a state of knowledge's label."""
Parts = dict[Name, dict[Coalition, Sums]]

_Numbers = tuple[
    list[float], list[float], dict[str, list[float]], list[tuple[int, float]], dict[str, float]
]
"""Records, squares and sums by value; sums by row group; largest growth."""
_STORED = list[list[tuple[Name, Coalition, _Numbers]]]
"""Of each stripe."""


def stored(stripes: Sequence[Parts], held: NDArray[np.bool_], short: frozenset[int]) -> object:
    """Return what is kept of some stripes' sums; None where some are over too few records, or there are too many.

    Parameters
    ----------
    held : ndarray of shape (s,)
        Values that some record of the table has.
    short : frozenset of int
        Row groups of which a stripe may have too few records.
    """
    every = [sums for stripe in stripes for parts in stripe.values() for sums in parts.values()]
    if not every or sum(sums.size * (len(sums.means) + 2) for sums in every) > MOST_NUMBERS:
        return None
    if any(
        sums.apart
        or (sums.counts[held] < FEWEST_RECORDS).any()
        or not short.isdisjoint(_groups(sums))
        for sums in every
    ):
        return None
    return codec(_STORED)[0](
        [
            [
                (name, coalition, _numbers(sums))
                for name, parts in stripe.items()
                for coalition, sums in parts.items()
            ]
            for stripe in stripes
        ]
    )


def _groups(sums: Sums) -> list[int]:
    found: list[int] = np.flatnonzero(sums.groups).tolist()
    return found


def restored(
    kept: object, size: int, groups: int, wanted: Iterable[tuple[Name, Coalition]]
) -> list[Parts]:
    """Return the sums that this was kept of, stripe by stripe; none where nothing was, or nothing that is of what is ``wanted``.

    Parameters
    ----------
    size, groups : int
        Values, and row groups of the table.
    wanted : iterable
        Attack and state of knowledge, and coalition, of all sums of a stripe.
    """
    every, found = set(wanted), list[Parts]()
    try:
        for stripe in codec(_STORED)[1](kept):
            parts: Parts = {}
            for name, coalition, numbers in stripe:
                parts.setdefault(name, {})[coalition] = _sums(size, groups, numbers)
            if {(name, coalition) for name, some in parts.items() for coalition in some} != every:
                return []
            found.append(parts)
    except (CodecError, TypeError, ValueError, IndexError):
        return []
    return found


def _numbers(sums: Sums) -> _Numbers:
    means = {what: each.tolist() for what, each in sums.means.items()}
    return (
        sums.counts.tolist(),
        sums.squares.tolist(),
        means,
        [(group, float(sums.groups[group])) for group in _groups(sums)],
        sums.growth,
    )


def _sums(size: int, groups: int, numbers: _Numbers) -> Sums:
    counts, squares, means, by_group, growth = numbers
    if {len(counts), len(squares), *map(len, means.values())} != {size} or min(
        (group for group, _ in by_group), default=0
    ) < 0:
        raise ValueError("sums of another domain")
    sums = Sums(size, groups)
    sums.counts, sums.squares = (
        np.array(counts, dtype=np.float64),
        np.array(squares, dtype=np.float64),
    )
    sums.means = {what: np.array(each, dtype=np.float64) for what, each in means.items()}
    for group, value in by_group:
        sums.groups[group] = value
    sums.growth = growth
    return sums

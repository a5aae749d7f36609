"""Segments of one copy's coins that come again, value by value: a period, of which chance makes none of such a length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.results.evidence import LawTest
from auditor.types import Array

SEGMENT_ROWS = 2**16
"""Records whose coins are compared, the first of every block."""
NEVER = 1e-9
"""Chance that a segment comes again."""
LONGEST = 2**12
FACTOR = np.uint64(0x9E3779B97F4A7C15)


def segment_length(level: float, size: int, rows: int, pi: Array | None = None) -> int | None:
    """Return a length of segments of which no two are equal in so many rows, but for a chance of ``NEVER``; None where it would be long.

    A segment and a later one that shares no row with it agree with chance ``(Σ q²)^L``, q the chances of the differences y − x; one that
    overlaps it, with ``(max q)^L`` at most. Where π is not uniform q hangs on x: these are the largest of any x (Cauchy–Schwarz).
    """
    if pi is None:
        other = (1.0 - level) / size
        same, most = (level + other) ** 2 + (size - 1) * other**2, level + other
    else:
        top = (1.0 - level) * float(pi.max())
        same, most = level**2 + 2.0 * level * top + (1.0 - level) ** 2 * float(pi @ pi), level + top
    if size < 2 or most >= 1.0:
        return None
    length = 8
    while length <= LONGEST and rows**2 / 2 * same**length + rows * length * most**length > NEVER / 2:
        length *= 2
    return length if length <= LONGEST else None


def fingerprints(coins: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Return a 64-bit polynomial of every segment of a length that is a power of 2, shape (n − length + 1,)."""
    found, factor, done = coins + np.uint64(1), FACTOR, 1
    with np.errstate(over="ignore"):
        while done < length:
            found, factor, done = found[:-done] * factor + found[done:], factor * factor, 2 * done
    return found


def repeats(segments: Mapping[int, Sequence[NDArray[np.uint64]]], rows: int) -> list[LawTest]:
    """Test that no segment of coins comes again, from fingerprints by copy; nothing where there are none."""
    if not segments:
        return []
    again = {copy: _again(np.concatenate(prints)) for copy, prints in segments.items()}
    copy = max(again, key=again.__getitem__)
    p = min(1.0, len(again) * NEVER) if again[copy] else 1.0
    where = f"the share of segments of records that copy {copy} changed in the same way is"
    return [LawTest("repeats", p, len(again), min(rows, SEGMENT_ROWS), again[copy], 0.0, where)]


def _again(prints: NDArray[np.uint64]) -> float:
    apart = np.count_nonzero(np.diff(np.sort(prints)))  # np.unique would hash these, which all differ, and take six times as long
    return 1.0 - (1 + apart) / prints.size

"""How a copy hangs on its two neighbours among those released before it: the paper's coin, and how often it fell so."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from auditor.results.evidence import Drawn
from auditor.schemes.replacement.draws import coins
from auditor.schemes.replacement.law import step

MOST_COPIES = 50


class Between(NamedTuple):
    """A copy, and its neighbours by level among those released before it; ``left`` is 0 where that is the original."""

    copy: int
    left: int
    right: int


def between(levels: Sequence[float]) -> list[Between]:
    """Return every copy with a more perturbed one before it; without a less perturbed one X is the left neighbour."""
    found = []
    for number, level in enumerate(levels[:MOST_COPIES], start=1):
        before = sorted((other, k) for k, other in enumerate(levels[: number - 1], start=1))
        place = bisect_left(before, (level, 0))
        if place and not any(other == level for other, _ in before):
            found.append(Between(number, before[place][1] if place < len(before) else 0, before[place - 1][1]))
    return found


def drawn_between(levels: Sequence[float], size: int, copies: Sequence[Between], counts: NDArray[Any]) -> list[Drawn]:
    """Return coin and outcomes of each, from records where the neighbours agree and where all three do, shape (d, 2)."""
    found = []
    for three, (agreeing, same) in zip(copies, counts.tolist(), strict=True):
        high = 1.0 if three.left == 0 else levels[three.left - 1]
        level, low = levels[three.copy - 1], levels[three.right - 1]
        equal, _ = coins(high, level, low, size)
        kept = equal.left + equal.right + (1.0 - equal.left - equal.right) / size
        found.append(Drawn(three.copy, step(high, level), equal.right, kept, agreeing, same))
    return found

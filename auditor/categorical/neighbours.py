"""How a copy hangs on its two neighbours among those released before it: the paper's coin, and how often it fell so."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from auditor.categorical.draws import Codes, coins
from auditor.categorical.law import step

MOST_COPIES = 50


class Drawn(NamedTuple):
    """One copy between two others, over the records where these two agree.

    Attributes
    ----------
    copy : int
        Its number.
    heads, tails : float
        ``u`` and ``v`` of xiao2009, eqs. 3 and 4, first cases.
    kept : float
        Chance that the new value is the neighbours': ``u + v + (1 − u − v)/s``.
    agreeing, same : int
        Records where the neighbours agree, and those of them where the new copy agrees too.
    """

    copy: int
    heads: float
    tails: float
    kept: float
    agreeing: int
    same: int


def drawn_between(original: Codes, size: int, levels: Sequence[float], copy: Callable[[int], Codes]) -> list[Drawn]:
    """Return coin and outcomes for every copy with a more perturbed one before it; without a less perturbed one X is the left neighbour."""
    found: list[Drawn] = []
    for number, level in enumerate(levels[:MOST_COPIES], start=1):
        before = sorted((other, k) for k, other in enumerate(levels[: number - 1], start=1))
        place = bisect_left(before, (level, 0))
        if place == 0 or any(other == level for other, _ in before):
            continue
        low, right = before[place - 1]
        high, left = before[place] if place < len(before) else (1.0, 0)
        y_l = original if left == 0 else copy(left)
        equal, _ = coins(high, level, low, size)
        agree = y_l == copy(right)
        kept = equal.left + equal.right + (1.0 - equal.left - equal.right) / size
        found.append(Drawn(number, step(high, level), equal.right, kept, int(agree.sum()), int((copy(number) == y_l)[agree].sum())))
    return found

"""How a copy hangs on its two neighbours among those released before it: the paper's coin, and how often it fell so."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from auditor.results.evidence import Drawn
from auditor.schemes.replacement.draws import coins
from auditor.schemes.replacement.law import UniformLaw, step
from auditor.types import Array

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


def drawn_between(law: UniformLaw, prior: Array, copies: Sequence[Between], counts: NDArray[Any]) -> list[Drawn]:
    """Return coin and outcomes of each, from records where the neighbours agree and where all three do, shape (d, 2).

    Where π is not uniform the coin hangs on the value that the neighbours agree on: stated is its mean over such records of a table with
    shares ``prior``, in which they agree on c with chance ``(p_l q_c + (1 − p_l)π_c)·T(p_r/p_l)[c, c]``.
    """
    found, levels = [], law.levels
    for three, (agreeing, same) in zip(copies, counts.tolist(), strict=True):
        high = 1.0 if three.left == 0 else levels[three.left - 1]
        level, low = levels[three.copy - 1], levels[three.right - 1]
        equal, _ = coins(high, level, low, law.size, law.pi)
        fresh = 1.0 - equal.left - equal.right
        if law.pi is None:
            tails, kept = equal.right, equal.left + equal.right + fresh / law.size
        else:
            rho = step(high, low)
            agree = (high * prior + (1.0 - high) * law.pi) * (rho + (1.0 - rho) * law.pi)
            tails, kept = (float(agree @ part / agree.sum()) for part in (equal.right, 1.0 - fresh * (1.0 - law.pi)))
        found.append(Drawn(three.copy, step(high, level), float(tails), float(kept), agreeing, same))
    return found

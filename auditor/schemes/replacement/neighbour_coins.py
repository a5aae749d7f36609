"""Dependence of a copy on its two neighbours: stated and observed coins."""

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
    """A copy and its neighbours by level among earlier copies.

    ``left`` is 0 if the neighbour is the original.
    """

    copy: int
    left: int
    right: int


def between(levels: Sequence[float]) -> list[Between]:
    """Return every copy with a more perturbed copy before it.

    Without a less perturbed copy X is the left neighbour.
    """
    found = []
    for number, level in enumerate(levels[:MOST_COPIES], start=1):
        before = sorted((other, k) for k, other in enumerate(levels[: number - 1], start=1))
        place = bisect_left(before, (level, 0))
        if place and not any(other == level for other, _ in before):
            found.append(
                Between(
                    number, before[place][1] if place < len(before) else 0, before[place - 1][1]
                )
            )
    return found


def drawn_between(
    law: UniformLaw, prior: Array, copies: Sequence[Between], counts: NDArray[Any]
) -> list[Drawn]:
    """Return each copy's coin with its observed frequencies.

    ``counts``, shape (d, 2), are the records where the neighbours agree and where all three do. If
    π is not uniform the coin depends on the shared value c. The stated coin is then its mean over a
    table with shares ``prior``, with neighbours that agree on c with probability
    ``(p_l q_c + (1 − p_l)π_c)·T(p_r/p_l)[c, c]``.
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
            tails, kept = (
                float(agree @ part / agree.sum())
                for part in (equal.right, 1.0 - fresh * (1.0 - law.pi))
            )
        found.append(
            Drawn(three.copy, step(high, level), float(tails), float(kept), agreeing, same)
        )
    return found

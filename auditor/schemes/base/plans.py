"""Plans that schemes share: bridge, upward and fresh draws."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from auditor.schemes.base.additive import ORIGINAL, Step
from auditor.types import Array


def min_covariance(levels: Sequence[float]) -> Array:
    """Return ``Sigma_ij = min(σ_i², σ_j²)``, shape (M, M) (li2011 (19)).

    The covariance of a process with independent increments.
    """
    s = np.asarray(levels, dtype=np.float64)
    return np.minimum(s[:, None], s[None, :])


def fresh_plan(levels: Sequence[float], existing: int = 0) -> list[Step]:
    """Return ``Y_i = X + σ_i g_i`` for every new copy."""
    return [
        Step(copy, ((ORIGINAL, 1.0),), ((copy, float(np.sqrt(level))),) if level > 0 else ())
        for copy, level in enumerate(levels, start=1)
        if copy > existing
    ]


def upward_plan(levels: Sequence[float], existing: int = 0) -> list[Step]:
    """Return the bridge's steps from the lowest new level up."""
    return bridge_plan(
        levels,
        existing,
        sorted(range(existing + 1, len(levels) + 1), key=lambda copy: (levels[copy - 1], copy)),
    )


def bridge_plan(
    levels: Sequence[float], existing: int = 0, order: Sequence[int] = ()
) -> list[Step]:
    """Return one step per copy, from its two neighbouring levels only.

    In order of release, or in ``order``. The Brownian bridge, equal to li2012 (17)–(18); ``O(log
    M)`` comparisons per copy.
    """
    new = order or range(existing + 1, len(levels) + 1)
    # six times as fast as np.asarray, which inspects each number
    held = np.fromiter(levels, np.float64, existing)
    # Only neighbours of new copies are searched for, so the cost does not grow with the number of
    # existing copies.
    ordered, drawn = [0.0, *_next_to(held, [levels[copy - 1] for copy in new])], {0.0: ORIGINAL}

    def holder(level: float) -> int:
        return drawn[level] if level in drawn else int((held == level).argmax()) + 1

    steps = []
    for copy in new:
        s = float(levels[copy - 1])
        place = bisect_left(ordered, s)
        steps.append(_bridge_step(copy, s, place, ordered, holder))
        if place == len(ordered) or ordered[place] != s:
            ordered.insert(place, s)
            drawn[s] = copy
    return steps


def _next_to(held: Array, levels: Sequence[float]) -> list[float]:
    """Return the held levels adjacent or equal to other levels, ascending."""
    if not held.size:
        return []
    place = np.searchsorted(ordered := np.sort(held), levels)
    places: list[int] = np.unique(np.clip([place - 1, place], 0, held.size - 1)).tolist()
    return [float(ordered[k]) for k in places]


def _bridge_step(
    copy: int, s: float, place: int, ordered: Sequence[float], holder: Callable[[float], int]
) -> Step:
    if place == len(ordered):
        return Step(copy, ((holder(ordered[-1]), 1.0),), ((copy, float(np.sqrt(s - ordered[-1]))),))
    if ordered[place] == s:
        return Step(copy, ((holder(s), 1.0),))
    a, b = ordered[place - 1], ordered[place]
    t = (s - a) / (b - a)
    # (s−a)(b−s)/(b−a) as t·(b−s): no product of two tiny gaps that could underflow
    return Step(
        copy, ((holder(a), 1.0 - t), (holder(b), t)), ((copy, float(np.sqrt(t * (b - s)))),)
    )

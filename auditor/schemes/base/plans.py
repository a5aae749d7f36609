"""Plans that schemes share: a copy from its two neighbours, from the lowest level up, or from the original alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from auditor.schemes.base.additive import ORIGINAL, Step
from auditor.types import Array


def min_covariance(levels: Sequence[float]) -> Array:
    """Return ``Sigma_ij = min(σ_i², σ_j²)``, shape (M, M): that of a process with independent increments (li2011 (19))."""
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
    return bridge_plan(levels, existing, sorted(range(existing + 1, len(levels) + 1), key=lambda copy: (levels[copy - 1], copy)))


def bridge_plan(levels: Sequence[float], existing: int = 0, order: Sequence[int] = ()) -> list[Step]:
    """Return one step a copy, in order of release or another one, from its two neighbouring levels only.

    Source: the Brownian bridge; equal to li2012 (17)–(18), see the module's notes. ``O(log M)`` comparisons a copy.
    """
    new = order or range(existing + 1, len(levels) + 1)
    held = np.fromiter(levels, np.float64, existing)  # six times as fast as np.asarray, which asks each number what it is
    # Of the copies that exist only a new one's neighbours are looked for, so that many cost no more than few.
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
    """Return those of the levels held that some others lie between, or are equal to, ascending."""
    if not held.size:
        return []
    place = np.searchsorted(ordered := np.sort(held), levels)
    places: list[int] = np.unique(np.clip([place - 1, place], 0, held.size - 1)).tolist()
    return [float(ordered[k]) for k in places]


def _bridge_step(copy: int, s: float, place: int, ordered: Sequence[float], holder: Callable[[float], int]) -> Step:
    """Return the step of a new level that belongs at ``place`` among the ordered ones."""
    if place == len(ordered):
        return Step(copy, ((holder(ordered[-1]), 1.0),), ((copy, float(np.sqrt(s - ordered[-1]))),))
    if ordered[place] == s:
        return Step(copy, ((holder(s), 1.0),))
    a, b = ordered[place - 1], ordered[place]
    t = (s - a) / (b - a)
    # (s−a)(b−s)/(b−a) as t·(b−s): no product of two tiny gaps that could underflow
    return Step(copy, ((holder(a), 1.0 - t), (holder(b), t)), ((copy, float(np.sqrt(t * (b - s)))),))

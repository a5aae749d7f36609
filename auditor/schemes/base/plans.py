"""Plans: which earlier copies and innovations each copy is drawn from."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from auditor.base.types import Array
from auditor.schemes.base.noise_law import psd_root

ORIGINAL = 0
"""Number of ``X`` among a step's parents (level 0)."""


@dataclass(frozen=True)
class Step:
    """Draw of one copy from earlier copies and fresh innovations.

    ``Y_copy = Σ weight_j · Y_j + Σ scale_k · g_k``, with ``Y_0 = X`` and ``g_k ~ N(0, K_0)``.

    Attributes
    ----------
    copy : int
        Number of the copy drawn.
    parents : tuple of (int, float)
        Copies drawn before (0 is the original) and their weights, which sum to 1.
    fresh : tuple of (int, float)
        Innovation streams, named by copy number, and their standard deviations.
    """

    copy: int
    parents: tuple[tuple[int, float], ...]
    fresh: tuple[tuple[int, float], ...] = ()


def check_plan(steps: Sequence[Step], copies: int, existing: int) -> None:
    """Refuse a plan that omits a new copy or uses an unavailable input.

    Copies of one request may share innovations. Innovations of earlier requests are not kept, so a
    step cannot reuse one.

    Raises
    ------
    ValueError
        Naming the step and the missing input.
    """
    # memory would be released as found
    if sorted(step.copy for step in steps) != list(range(existing + 1, copies + 1)):
        raise ValueError("`plan` must draw every new copy once")
    drawn = set(range(existing + 1))
    for step in steps:
        for parent, _ in step.parents:
            if parent not in drawn:
                raise ValueError(
                    f"`plan` draws copy {step.copy} from copy {parent}, which is not drawn by then"
                )
        drawn.add(step.copy)
        for innovation, _ in step.fresh:
            if not existing < innovation <= copies:
                out = 0 < innovation <= existing
                why = (
                    "is out already and whose noise is not kept"
                    if out
                    else "is not among the new ones"
                )
                raise ValueError(
                    f"`plan` draws copy {step.copy} with the innovation of copy {innovation}, which {why}"
                )


def implied_level_covariance(
    steps: Sequence[Step], copies: int, before: Array | None = None
) -> Array:
    """Return the exact ``Sigma`` of a plan, shape (M, M).

    ``Z = A Z + B g`` with A the weights on earlier copies and B the scales. Substitution gives ``Z
    = C g`` and ``Sigma = C Cᵀ``.

    Parameters
    ----------
    steps : sequence of Step
    copies : int
        ``M``.
    before : ndarray of shape (m, m), optional
        ``Sigma`` of the m existing copies; the steps draw the others.
    """
    C = np.zeros((copies + 1, copies + 1))
    if before is not None:  # any root will do: no step may use its innovations
        C[1 : len(before) + 1, 1 : len(before) + 1] = psd_root(before)
    for step in steps:
        for parent, weight in step.parents:
            C[step.copy] += weight * C[parent]
        for innovation, scale in step.fresh:
            C[step.copy, innovation] += scale
    return C[1:, 1:] @ C[1:, 1:].T


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

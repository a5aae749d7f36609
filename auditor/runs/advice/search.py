"""The search for the weakest level of a grid that meets a target, in few steps, each of which is an audit."""

from __future__ import annotations

from collections.abc import Callable

STEPS = 24
"""Levels of the grid in every decade: each is 10 % more noise than the one before."""


def noise_grid(low: int = -3, high: int = 3) -> tuple[float, ...]:
    """Return noise multiples from ``10^low`` to ``10^high`` in geometric steps, to three digits as a person would write them.

    Examples
    --------
    >>> noise_grid(0, 1)[:15]
    (1.0, 1.1, 1.21, 1.33, 1.47, 1.62, 1.78, 1.96, 2.15, 2.37, 2.61, 2.87, 3.16, 3.48, 3.83)
    """
    return tuple(
        float(f"{10 ** (step / STEPS):.3g}") for step in range(low * STEPS, high * STEPS + 1)
    )


def weakest(meets: Callable[[int], bool], start: int, steps: int) -> int | None:
    """Return the first place of a grid from which on a target is met, or None if it is met at none.

    Parameters
    ----------
    meets : callable
        Whether the target is met at a place; asked at few of them, each once. From some place on it
        must hold, and before that not: *not checked*, and where error bars make it waver at the
        border a place is returned that meets after one that does not.
    start : int
        No place before it meets the target.
    steps : int
        Places of the grid, which are numbered from 0.

    Examples
    --------
    >>> weakest(lambda place: place >= 5, 2, 100), weakest(lambda place: False, 2, 100)
    (5, None)
    """
    failed, place, stride = start - 1, start, 1
    while not meets(place):
        if place >= steps - 1:
            return None
        failed, place, stride = place, min(place + stride, steps - 1), 2 * stride
    while place - failed > 1:
        middle = (failed + place) // 2
        failed, place = (failed, middle) if meets(middle) else (middle, place)
    return place

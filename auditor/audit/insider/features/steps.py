"""Noise in whole steps: remainders by the largest step that all noise values share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import Column, Feature, Known, Shown
from auditor.registry import register
from auditor.types import Array


@register
class Steps(Feature):
    """Remainders by the largest number of which all differences of noise values are multiples."""

    name, learns = "steps", True

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        x = known.x[:, known.attribute]
        there = np.flatnonzero(np.isfinite(x))
        for c in range(shown.series.shape[1] if len(there) else 0):
            for sign in (1, -1):
                apart = x[there] - sign * shown.series[there, c]
                if step := common_step(apart - apart[0]):
                    # Shifted so that the remainder begins at the attribute's least value.
                    shift = float((apart[0] - known.least) % step)
                    yield (
                        f"remainder of series {c} by {sign * step:g}",
                        partial(remainder, c, sign, shift, step),
                    )


def remainder(c: int, sign: int, shift: float, step: float, shown: Shown) -> Array:
    """Return the remainder of a shifted column."""
    return np.mod(sign * shown.series[:, c] + shift, step)


def common_step(values: Array) -> float:
    """Return the largest number of which all values are multiples, with up to six decimals; 0 if there is none.

    Examples
    --------
    >>> common_step(np.array([0.0, 0.5, -2.0])), common_step(np.array([0.0, 300.0, 800.0])), common_step(np.array([0.0, np.pi]))
    (0.5, 100.0, 0.0)
    """
    for unit in 10.0 ** np.arange(7):
        scaled = values * unit
        whole = np.round(scaled)
        size = np.abs(whole)
        if (
            size.max(initial=0.0) < 2.0**53
            and (np.abs(scaled - whole) <= 1e-6 + 1e-12 * size).all()
        ):
            return float(np.gcd.reduce(whole.astype(np.int64)) / unit)
    return 0.0

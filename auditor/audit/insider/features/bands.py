"""Bands: a wave of any frequency along a column's values, found by a Fourier transform."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.process.deferred import scipy
from auditor.registry import register
from auditor.types import Array

GRID = 2**16
"""Points of the grid that a column's values are put on."""
SURE = 5.0
"""Amount by which the largest of m exponential powers exceeds ln m once in 150 times."""


@register
class Bands(Feature):
    """The phase of the wave along a column's values that predicts the residual best."""

    name, learns = "bands", True

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        there = np.flatnonzero(np.isfinite(known.left))
        left = known.left[there] - known.left[there].mean()
        scale = float((left**2).sum())
        for c in range(min(shown.series.shape[1], 2 * MOST_PAIRED) if scale > 0 else 0):
            d = shown.series[there, c]
            low, high = d.min(), d.max()
            if high > low:
                places = ((d - low) * ((GRID - 1) / (high - low))).astype(np.intp)
                power = (
                    np.abs(scipy.fft.rfft(np.bincount(places, left, GRID).astype(np.float32))) ** 2
                    / scale
                )
                power[:8] = 0.0  # slow waves are seen by quantiles
                if (f := int(power.argmax())) and power[f] - np.log(GRID / 2) > SURE:
                    yield f"band of series {c}", partial(phase, c, f / (high - low))


def phase(c: int, frequency: float, shown: Shown) -> Array:
    """Return the phase of a column's values, from 0 to 1."""
    return (shown.series[:, c] * frequency) % 1.0

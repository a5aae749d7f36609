"""Place of a record in the file: its rank, its key's rank, and noise that is periodic along the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.numerics.statistics import BY_CHANCE
from auditor.process.deferred import scipy
from auditor.registry import register
from auditor.types import Array, Indices

SHORT = 128
"""Rows of the short stretches, in which noise is found whose frequency changes along the rows."""


@register
class Place(Feature):
    """Normal scores of a record's place and key, and the periodic part of each cell, of all rows and of short stretches."""

    name = "place"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        yield "place", lambda s: scores(np.arange(len(s.cells)))
        if shown.keys is not None:
            yield "key", lambda s: scores(np.arange(len(s.cells)) if s.keys is None else s.keys)
        for c in range(min(shown.series.shape[1], MOST_PAIRED)):
            for which, part in (("", periodic), (" in short stretches", periodic_in_stretches)):
                yield f"periodic part of series {c}{which}", partial(part, c)
                yield f"series {c} less its periodic part{which}", partial(less, part, c)


def scores(order: Indices) -> Array:
    """Return the normal scores of an order, shape (n,)."""
    places = order.argsort(kind="stable").argsort(kind="stable")
    return scipy.special.ndtri((places + 0.5) / len(order))


def periodic(c: int, shown: Shown) -> Array:
    """Return the part of a column at frequencies that stand out of its periodogram."""
    y = shown.series[:, c] - shown.series[:, c].mean()
    return standing_out(y[None], len(y))[0]


def less(part: Callable[[int, Shown], Array], c: int, shown: Shown) -> Array:
    """Return a column less one of its parts."""
    return shown.series[:, c] - part(c, shown)


def periodic_in_stretches(c: int, shown: Shown) -> Array:
    """Return the same of stretches of ``SHORT`` rows, which overlap by half; the weights (1 − cos)/2 of two stretches add up to 1."""
    y, half = shown.series[:, c] - shown.series[:, c].mean(), SHORT // 2
    padded = np.pad(y, (half, half - len(y) % half + half))
    frames = np.stack(
        [padded[start : start + SHORT] for start in range(0, len(padded) - half, half)]
    )
    short = standing_out(frames * np.sin(np.pi * np.arange(SHORT) / SHORT) ** 2, len(y))
    return (short[:-1, half:] + short[1:, :half]).ravel()[: len(y)]


def standing_out(frames: Array, n: int) -> Array:
    """Return the part of each stretch, shape (w, rows), whose power is too large for white noise of n rows."""
    F = np.fft.rfft(frames, axis=1)
    power = np.abs(F) ** 2
    usual = np.maximum(np.median(power, axis=1, keepdims=True), np.median(power))
    F[power <= usual / np.log(2.0) * np.log(n / BY_CHANCE)] = 0.0
    return np.fft.irfft(F, frames.shape[1], axis=1)

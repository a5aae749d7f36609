"""Densities of noise, as fine as held-out rows warrant.

A density is a histogram on the scale ``asinh(e / s)``, s the median absolute value, so that long
tails take few cells. Its smoothing is the Gaussian width with the largest likelihood of rows that
were left out. A conditional density first removes the mean and the standard deviation of the noise
near each original, and may then have a histogram of its own for each of ``BINS`` ranges of the
original.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from auditor.process.deferred import scipy
from auditor.types import Array, Indices

CELLS = {1: 1024, 2: 96}
"""Cells along an axis, by the number of axes."""
WIDTHS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Standard deviations of the smoothing, in cells."""
FLOOR = 1e-3
"""Share of a wide density that is mixed in: no value has probability 0."""
BINS, KNOTS = 4, 16
"""Ranges of the original with densities of their own, and ranges whose means and deviations are
interpolated."""
WORTH = 0.002
"""Gain in mean log-likelihood from which on a density conditional on the original is used."""


@dataclass(frozen=True, eq=False)
class Density:
    """Density of d-dimensional values as logarithms in a table of cells.

    Attributes
    ----------
    scale, low, step : ndarray of shape (d,)
        ``s``; the first cell's edge and the cells' width on the scale of asinh.
    log : ndarray of shape (K,) * d
        Logarithms of the density in the values' own units, by cell.
    """

    scale: Array
    low: Array
    step: Array
    log: Array

    def cells(self, values: Array) -> tuple[Indices, ...]:
        """Return the nearest cell of values, shape (..., d), along each axis."""
        places = (np.arcsinh(values / self.scale) - self.low) / self.step
        return tuple(
            np.clip(places[..., axis], 0, self.log.shape[0] - 1).astype(np.intp)
            for axis in range(values.shape[-1])
        )

    def __call__(self, values: Array) -> Array:
        """Return the log-density of values, shape (..., d)."""
        return self.log[self.cells(values)]


def fitted_density(values: Array) -> Density:
    """Return the density of a sample, shape (m, d), with d 1 or 2.

    The width of the smoothing is chosen by the likelihood of every second row, of a density of the
    other rows.
    """
    d = values.shape[1]
    scale = np.maximum(np.median(np.abs(values), axis=0), 1e-3 * values.std(axis=0) + 1e-300)
    u, K = np.arcsinh(values / scale), CELLS[d]
    spread = np.ptp(u, axis=0) + 1e-9
    low, step = u.min(axis=0) - 0.05 * spread, 1.1 * spread / K
    empty = Density(scale, low, step, np.zeros((K,) * d))
    parts = [
        np.bincount(np.ravel_multi_index(empty.cells(part), (K,) * d), minlength=K**d)
        for part in (values[::2], values[1::2])
    ]
    a, b = (_smoothed(part.reshape((K,) * d)) for part in parts)
    likelihood = [
        parts[0] @ np.log(other).ravel() + parts[1] @ np.log(one).ravel()
        for one, other in zip(a, b, strict=True)
    ]
    best = _smoothed((parts[0] + parts[1]).reshape((K,) * d))[int(np.argmax(likelihood))]
    log = np.log(best)
    for axis in range(d):
        edges = scale[axis] * np.sinh(low[axis] + step[axis] * np.arange(K + 1))
        log -= np.log(np.diff(edges)).reshape([-1 if place == axis else 1 for place in range(d)])
    return Density(scale, low, step, log)


def _smoothed(counts: Array) -> Array:
    """Return probabilities of cells for every width, widths first."""
    d = counts.ndim
    found = scipy.fft.irfftn(
        scipy.fft.rfftn(counts) * _transfer(d), s=counts.shape, axes=range(1, d + 1)
    )
    found = np.maximum(found, 0.0) / counts.sum()
    wide = 0.99 * found[-1] + 0.01 / counts.size
    return (1.0 - FLOOR) * found[:-1] + FLOOR * wide


@cache
def _transfer(d: int) -> Array:
    """Return Fourier transforms of Gaussians of all widths, the widest last."""
    K = CELLS[d]
    axes = np.meshgrid(*[np.fft.fftfreq(K)] * (d - 1), np.fft.rfftfreq(K), indexing="ij")
    widths = np.array([*WIDTHS, K / 24.0]).reshape(-1, *[1] * d)
    return np.exp(-2.0 * (np.pi * widths) ** 2 * sum(axis**2 for axis in axes))


@dataclass(frozen=True, eq=False)
class ConditionalDensity:
    """Density of one-dimensional noise given the original.

    Attributes
    ----------
    knots, means, deviations : ndarray of shape (KNOTS,)
        Mean and standard deviation of the noise near some originals; interpolated between them.
    edges : ndarray
        Between ranges of the original that have densities of their own.
    parts : tuple of Density
    """

    knots: Array
    means: Array
    deviations: Array
    edges: Array
    parts: tuple[Density, ...]

    def __call__(self, values: Array, given: Array) -> Array:
        """Return the log-density of values, shape (..., 1), given originals."""
        mean, deviation = (
            np.interp(given, self.knots, part) for part in (self.means, self.deviations)
        )
        rest = (values[..., 0] - mean) / deviation
        found = self.parts[0](rest[..., None])
        which = np.broadcast_to(np.searchsorted(self.edges, given), rest.shape)
        for number in range(1, len(self.parts)):
            here = which == number
            found[here] = self.parts[number](rest[here][:, None])
        return found - np.log(deviation)


def conditional_density(values: Array, given: Array) -> Density | ConditionalDensity:
    """Return the density of noise, given originals if that is likelier.

    Values and originals have shape (m, d); likelihood is judged on held-out rows.

    With d above 1 the density is unconditional.
    """
    plain = fitted_density(values)
    x, learn, judge = given[:, 0], slice(0, None, 2), slice(1, None, 2)
    knots = np.unique(np.quantile(x, (np.arange(KNOTS) + 0.5) / KNOTS))
    if values.shape[1] > 1 or len(knots) < KNOTS:
        return plain

    def fit(rows: slice, bins: int) -> ConditionalDensity:
        near = np.abs(x[rows][:, None] - knots).argmin(axis=1)
        e, counts = values[rows, 0], np.bincount(near, minlength=KNOTS)
        means = np.bincount(near, e, KNOTS) / np.maximum(counts, 1)
        squares = np.bincount(near, (e - means[near]) ** 2, KNOTS)
        deviations = np.sqrt(squares / np.maximum(counts, 1)) + 1e-3 * e.std() + 1e-300
        rest = (e - np.interp(x[rows], knots, means)) / np.interp(x[rows], knots, deviations)
        edges = np.quantile(x, np.arange(1, bins) / bins)
        which = np.searchsorted(edges, x[rows])
        parts = tuple(fitted_density(rest[which == number][:, None]) for number in range(bins))
        return ConditionalDensity(knots, means, deviations, edges, parts)

    score, chosen = float(fitted_density(values[learn])(values[judge]).mean()) + WORTH, 0
    for bins in (1, BINS):
        if (
            np.bincount(
                np.searchsorted(np.quantile(x, np.arange(1, bins) / bins), x[learn]), minlength=bins
            ).min()
            < 100
        ):
            continue
        found = float(fit(learn, bins)(values[judge], x[judge]).mean())
        if found > score:
            score, chosen = found + WORTH, bins
    return fit(slice(None), chosen) if chosen else plain

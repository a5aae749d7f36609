"""Likelihood of a value under Laplace, geometric or Skellam noise.

| symbol | meaning | shape |
| --- | --- | --- |
| ``y_i`` | relevant copies: all, or the least perturbed of one process | (k,) |
| ``f_i`` | density of the noise in copy i, on a lattice its probability | |
| ``L(x)`` | ``Π_i f_i(y_i − x)`` | |

The densities and their product are log-concave. So ``L`` has one peak, and the best point of a bin
is the one nearest to it. Independent copies have no one-dimensional sufficient statistic: under
Laplace noise ``L`` has a kink at each copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.plugin import Array, KroneckerNoise, NoiseDensity

from ._channel import Channel

LEAST = -1e100
"""Log-likelihood of an impossible value, for instance off the stated lattice."""

CURVED = np.arange(-12.0, 13.0)
"""Knots of a curved log-density, in half deviations from its peak."""


@dataclass(frozen=True)
class Product(Channel):
    """Laplace, geometric or Skellam noise, independent between copies.

    Attributes
    ----------
    densities : tuple of NoiseDensity
        ``f_i``, each with a positive deviation.
    places : tuple of int
        Indices of the relevant copies in the coalition.

    Notes
    -----
    The log-likelihood is taken as linear between bin edges and copies. This is exact for Laplace
    and geometric noise, and approximate for Skellam noise if bins are narrower than the noise. A
    lattice bin no wider than the unit holds one possible point.
    """

    densities: tuple[NoiseDensity, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, law: KroneckerNoise, attribute: int) -> Product:
        """Return one attribute's channel.

        Of copies from one process only the least perturbed is relevant.
        """
        levels = np.diag(law.level_covariance)
        places: Sequence[int] = (int(np.argmin(levels)),) if law.one_process else range(len(levels))
        return cls(
            tuple(law.density_at(float(levels[place]), attribute) for place in places),
            tuple(places),
        )

    @property
    def noise(self) -> NoiseDensity:  # type: ignore[override]
        """Noise of the least noisy copy."""
        return min(self.densities, key=lambda density: density.std)

    @property
    def smooth(self) -> bool:
        """Whether one copy is relevant and its noise is continuous."""
        return len(self.densities) == 1 and not self.noise.on_lattice

    def alone(self) -> Product:
        """Return the channel of the one relevant copy."""
        return Product(self.densities, (0,))

    def observed(self, copies: Array) -> Array:
        """Return the least noisy copy."""
        return copies[:, self.places[self.densities.index(self.noise)]]

    def value(self, copies: Array) -> Array:
        """Return the most likely of the copies and their weighted mean.

        Shape (b,). This is the peak under Laplace and geometric noise, where it is a kink.
        """
        if len(self.places) == 1:
            return self.observed(copies)
        held = copies[:, self.places]
        precision = np.array([density.std**-2.0 for density in self.densities])
        candidates = np.column_stack(
            [held, self._snapped(copies, (held @ precision / precision.sum())[:, None])]
        )
        best = self.log_likelihood(copies, candidates).argmax(axis=1)
        return np.asarray(np.take_along_axis(candidates, best[:, None], axis=1)[:, 0])

    def knots(self, copies: Array) -> Array:
        """Return ascending knots of the log-likelihood, shape (b, P)."""
        noise, held = self.noise, copies[:, self.places]
        step = noise.unit * np.ceil(noise.std / 2.0 / noise.unit) if noise.on_lattice else noise.std
        if noise.distribution == "skellam":
            return np.asarray(self._snapped(copies, self.value(copies)[:, None]) + step * CURVED)
        low, high = held.min(axis=1, keepdims=True), held.max(axis=1, keepdims=True)
        return np.sort(np.concatenate([low - step, held, high + step], axis=1), axis=1)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return ``Σ_i log f_i(y_i − x)``."""
        parts = (
            density.log_pdf_of_differences(copies[:, [place]], x)
            for density, place in zip(self.densities, self.places, strict=True)
        )
        return np.asarray(sum(parts))

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the likelihood averaged over each bin; the best node has 1."""
        return self.within(copies, edges)[0]

    def possible(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the one lattice point in a bin as narrow as its unit."""
        if not self.noise.on_lattice:
            return low, high
        point = self._snapped(copies, ((low + high) / 2.0)[:, None])[:, 0]
        narrow = self._narrow(high - low)
        return np.where(narrow, point, low), np.where(narrow, point, high)

    def best_points(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return each bin's most likely point and its log-likelihood."""
        margin = np.minimum(self.noise.unit if self.noise.on_lattice else 0.0, np.diff(edges)) / 2.0
        points = self._snapped(
            copies, np.clip(self.value(copies)[:, None], edges[:-1] + margin, edges[1:] - margin)
        )
        return points, self.log_likelihood(copies, points)

    def _narrow(self, width: Array) -> Array:
        return np.asarray(width <= self.noise.unit * (1.0 + 1e-9))

    def _snapped(self, copies: Array, x: Array) -> Array:
        """Round x, shape (b, C), to possible lattice values, if on a lattice."""
        if not self.noise.on_lattice:
            return x
        y, unit = copies[:, [self.places[0]]], self.noise.unit
        return np.asarray(y + unit * np.floor((x - y) / unit + 0.5))

    def _straight(self, copies: Array, x: Array) -> Array:
        """Return the log-likelihood, shape (b, P), linear between lattice points."""
        if not self.noise.on_lattice:
            return self.log_likelihood(copies, x)
        low = self._snapped(copies, x - self.noise.unit / 2.0)
        share = np.clip((x - low) / self.noise.unit, 0.0, 1.0)
        ends = (
            np.maximum(self.log_likelihood(copies, end), LEAST)
            for end in (low, low + self.noise.unit)
        )
        return np.asarray((1.0 - share) * next(ends) + share * next(ends))

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood`` and the mean value within each bin."""
        b, B, width = len(copies), len(edges) - 1, np.diff(edges)
        held = np.clip(copies[:, self.places], edges[0], edges[-1])
        nodes = np.sort(np.concatenate([np.broadcast_to(edges, (b, B + 1)), held], axis=1), axis=1)
        log_f = self._straight(copies, nodes)
        top = log_f.max(axis=1, keepdims=True)
        mass, mean = log_linear(nodes, log_f - top)
        bins = np.clip(
            np.searchsorted(edges, (nodes[:, :-1] + nodes[:, 1:]) / 2.0, side="right") - 1, 0, B - 1
        )
        flat = (bins + B * np.arange(b)[:, None]).ravel()
        total, first = (
            np.bincount(flat, part.ravel(), b * B).reshape(b, B) for part in (mass, mass * mean)
        )
        middle = np.broadcast_to((edges[:-1] + edges[1:]) / 2.0, (b, B))
        inside = np.clip(
            np.divide(first, total, out=middle.copy(), where=total > 0), edges[:-1], edges[1:]
        )
        average = total / width
        if self.noise.on_lattice and (narrow := self._narrow(width)).any():
            points = self._snapped(copies, middle[:, narrow])
            average[:, narrow], inside[:, narrow] = (
                np.exp(self.log_likelihood(copies, points) - top),
                points,
            )
        return average, inside


def log_linear(x: Array, log_f: Array) -> tuple[Array, Array]:
    """Return mass and mean of ``f`` between nodes, with ``log f`` linear.

    Shapes (b, P − 1). With δ the rise of ``log f`` over a width w, the mass is ``w·f_max·(1 −
    e^{−|δ|})/|δ|``. The mean lies at a share ``1/(1 − e^{−δ}) − 1/δ`` of the width.
    """
    width, rise = np.diff(x, axis=1), np.diff(log_f, axis=1)
    flat = np.abs(rise) < 1e-5  # series; its next terms are below 1e-11
    d = np.where(flat, 1.0, rise)
    with np.errstate(over="ignore"):
        share = np.where(flat, 0.5 + rise / 12.0, -1.0 / np.expm1(-d) - 1.0 / d)
    height = np.exp(np.maximum(log_f[:, :-1], log_f[:, 1:]))
    mass = (
        width * height * np.where(flat, 1.0 - np.abs(rise) / 2.0, -np.expm1(-np.abs(d)) / np.abs(d))
    )
    return np.asarray(mass), np.asarray(x[:, :-1] + share * width)

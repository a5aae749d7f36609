"""The likelihood of an attribute's value given copies with Laplace, two-sided geometric or Skellam noise, on a lattice or not.

| symbol | meaning | shape |
| --- | --- | --- |
| ``y_i`` | the copies that count: all, or the least perturbed of one process | (k,) |
| ``f_i`` | density of the noise in copy i, on a lattice its probability | |
| ``L(x)`` | ``Π_i f_i(y_i − x)`` | |

These densities are log-concave, and so is their product: it has one peak, and in every bin the best point is the one nearest to it. No one
number says all that independent copies say: under Laplace noise ``L`` has a kink at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.plugin import Array, KroneckerNoise, NoiseDensity

from ._channel import Channel

LEAST = -1e100
"""Log-likelihood of what noise cannot have led to, as of copies that are not on the lattice that the law states."""

CURVED = np.arange(-12.0, 13.0)
"""Knots of a log-density that is nowhere straight, in half deviations from its peak."""


@dataclass(frozen=True)
class Product(Channel):
    """Laplace, two-sided geometric or Skellam noise, independent between the copies that count.

    Attributes
    ----------
    densities : tuple of NoiseDensity
        ``f_i``, each with a deviation above 0.
    places : tuple of int
        The copies that count, by their place among the coalition's.

    Notes
    -----
    Between edges of bins and copies the log-likelihood is taken to be straight: so it is of Laplace noise, whose density has its one kink
    at the copy, and of geometric noise; of Skellam noise it is but nearly so, with bins narrower than the noise. On a lattice a bin no
    wider than its unit holds one point that noise can have led from, and the likelihood is that point's.
    """

    densities: tuple[NoiseDensity, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, law: KroneckerNoise, attribute: int) -> Product:
        """Return the channel of one attribute; of one process its least perturbed copy's."""
        levels = np.diag(law.level_covariance)
        places: Sequence[int] = (int(np.argmin(levels)),) if law.one_process else range(len(levels))
        return cls(tuple(law.density_at(float(levels[place]), attribute) for place in places), tuple(places))

    @property
    def noise(self) -> NoiseDensity:  # type: ignore[override]
        """Of the least noisy copy."""
        return min(self.densities, key=lambda density: density.std)

    @property
    def smooth(self) -> bool:
        """With one copy whose noise is on no lattice."""
        return len(self.densities) == 1 and not self.noise.on_lattice

    def alone(self) -> Product:
        """Return the channel of the one copy that counts."""
        return Product(self.densities, (0,))

    def observed(self, copies: Array) -> Array:
        """Return the least noisy copy."""
        return copies[:, self.places[self.densities.index(self.noise)]]

    def value(self, copies: Array) -> Array:
        """Return the copy of highest joint likelihood: the peak, where that is a kink, as under Laplace and geometric noise."""
        if len(self.places) == 1:
            return self.observed(copies)
        held = copies[:, self.places]
        precision = np.array([density.std**-2.0 for density in self.densities])
        candidates = np.column_stack([held, self._snapped(copies, (held @ precision / precision.sum())[:, None])])
        best = self.log_likelihood(copies, candidates).argmax(axis=1)
        return np.asarray(np.take_along_axis(candidates, best[:, None], axis=1)[:, 0])

    def knots(self, copies: Array) -> Array:
        """Return ascending values, shape (b, P), between and beyond which the log-likelihood is straight, of Skellam noise nearly so."""
        noise, held = self.noise, copies[:, self.places]
        step = noise.unit * np.ceil(noise.std / 2.0 / noise.unit) if noise.on_lattice else noise.std
        if noise.distribution == "skellam":
            return np.asarray(self._snapped(copies, self.value(copies)[:, None]) + step * CURVED)
        low, high = held.min(axis=1, keepdims=True), held.max(axis=1, keepdims=True)
        return np.sort(np.concatenate([low - step, held, high + step], axis=1), axis=1)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return ``Σ_i log f_i(y_i − x)``."""
        parts = (density.log_pdf_of_differences(copies[:, [place]], x) for density, place in zip(self.densities, self.places, strict=True))
        return np.asarray(sum(parts))

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the likelihood averaged over each bin, that of the best node 1."""
        return self.within(copies, edges)[0]

    def possible(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the one point of the lattice in a bin as narrow as its unit."""
        if not self.noise.on_lattice:
            return low, high
        point = self._snapped(copies, ((low + high) / 2.0)[:, None])[:, 0]
        narrow = self._narrow(high - low)
        return np.where(narrow, point, low), np.where(narrow, point, high)

    def best_points(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return each bin's point of highest likelihood and its log-likelihood, shapes (b, B): the density is log-concave."""
        margin = np.minimum(self.noise.unit if self.noise.on_lattice else 0.0, np.diff(edges)) / 2.0
        points = self._snapped(copies, np.clip(self.value(copies)[:, None], edges[:-1] + margin, edges[1:] - margin))
        return points, self.log_likelihood(copies, points)

    def _narrow(self, width: Array) -> Array:
        return np.asarray(width <= self.noise.unit * (1.0 + 1e-9))

    def _snapped(self, copies: Array, x: Array) -> Array:
        """Return the nearest values, shape (b, C), that lattice noise can have led from to the copies; without a lattice x itself."""
        if not self.noise.on_lattice:
            return x
        y, unit = copies[:, [self.places[0]]], self.noise.unit
        return np.asarray(y + unit * np.floor((x - y) / unit + 0.5))

    def _straight(self, copies: Array, x: Array) -> Array:
        """Return the log-likelihood, shape (b, P), straight between points of the lattice if there is one."""
        if not self.noise.on_lattice:
            return self.log_likelihood(copies, x)
        low = self._snapped(copies, x - self.noise.unit / 2.0)
        share = np.clip((x - low) / self.noise.unit, 0.0, 1.0)
        ends = (np.maximum(self.log_likelihood(copies, end), LEAST) for end in (low, low + self.noise.unit))
        return np.asarray((1.0 - share) * next(ends) + share * next(ends))

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood``, and the mean of the likelihood cut to each bin."""
        b, B, width = len(copies), len(edges) - 1, np.diff(edges)
        held = np.clip(copies[:, self.places], edges[0], edges[-1])
        nodes = np.sort(np.concatenate([np.broadcast_to(edges, (b, B + 1)), held], axis=1), axis=1)
        log_f = self._straight(copies, nodes)
        top = log_f.max(axis=1, keepdims=True)
        mass, mean = log_linear(nodes, log_f - top)
        bins = np.clip(np.searchsorted(edges, (nodes[:, :-1] + nodes[:, 1:]) / 2.0, side="right") - 1, 0, B - 1)
        flat = (bins + B * np.arange(b)[:, None]).ravel()
        total, first = (np.bincount(flat, part.ravel(), b * B).reshape(b, B) for part in (mass, mass * mean))
        middle = np.broadcast_to((edges[:-1] + edges[1:]) / 2.0, (b, B))
        inside = np.clip(np.divide(first, total, out=middle.copy(), where=total > 0), edges[:-1], edges[1:])
        average = total / width
        if self.noise.on_lattice and (narrow := self._narrow(width)).any():
            points = self._snapped(copies, middle[:, narrow])
            average[:, narrow], inside[:, narrow] = np.exp(self.log_likelihood(copies, points) - top), points
        return average, inside


def log_linear(x: Array, log_f: Array) -> tuple[Array, Array]:
    """Return mass and mean of ``f`` between neighbouring nodes, shapes (b, P − 1), with ``log f`` straight between them.

    With δ the rise of ``log f`` over a width w the mass is ``w·f_max·(1 − e^{−|δ|})/|δ|`` and the mean lies at a share
    ``1/(1 − e^{−δ}) − 1/δ`` of the way.
    """
    width, rise = np.diff(x, axis=1), np.diff(log_f, axis=1)
    flat = np.abs(rise) < 1e-5  # there the series, whose next terms are below 1e-11
    d = np.where(flat, 1.0, rise)
    with np.errstate(over="ignore"):
        share = np.where(flat, 0.5 + rise / 12.0, -1.0 / np.expm1(-d) - 1.0 / d)
    height = np.exp(np.maximum(log_f[:, :-1], log_f[:, 1:]))
    mass = width * height * np.where(flat, 1.0 - np.abs(rise) / 2.0, -np.expm1(-np.abs(d)) / np.abs(d))
    return np.asarray(mass), np.asarray(x[:, :-1] + share * width)

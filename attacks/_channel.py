"""Likelihood of one attribute's value given a coalition's copies.

| law | statistic of k copies | likelihood of x |
| --- | --- | --- |
| Gaussian | ``ȳ = Σ w_i y_i`` with minimum-variance weights, variance ``s² = v·(K_0)_jj``: sufficient | normal density at ``ȳ − x`` |
| uniform | the overlap ``[max(y_i − a_i), min(y_i + a_i)]``, ``a_i = √3 σ_i``: sufficient | flat inside, 0 outside |
| one process with independent increments | its least perturbed copy: sufficient | its density ``f(y − x)`` |
| independent between copies | all copies | ``Π_i f_i(y_i − x)`` |

Module ``_product`` has the last two. Each attribute is treated alone; dependence between attributes
is not used.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from auditor.plugin import Array, NoiseDensity, scipy


class Channel:
    """Likelihood of one attribute given its copies.

    Copies have shape (b, k). Bins are given by B + 1 ascending edges.
    """

    noise: NoiseDensity
    """Noise of ``observed``."""

    @property
    def exact(self) -> bool:
        """Whether the copies determine the value."""
        return self.noise.std == 0.0

    @property
    def smooth(self) -> bool:
        """Whether estimates are smooth functions of ``value`` alone."""
        return False

    def alone(self) -> Channel:
        """Return the channel of one copy equal to ``value``, if ``smooth``."""
        raise NotImplementedError

    @abstractmethod
    def observed(self, copies: Array) -> Array:
        """Return the perturbed values, shape (b,), used to reconstruct a prior."""

    @abstractmethod
    def value(self, copies: Array) -> Array:
        """Return the estimate from the copies alone, shape (b,)."""

    @abstractmethod
    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return the log-likelihood of points up to a constant, shape (b, C).

        ``x`` has shape (C,) or (b, C). Impossible points get −∞.
        """

    @abstractmethod
    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return each bin's mean likelihood up to a factor per row, shape (b, B)."""

    @abstractmethod
    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood`` and the mean value within each bin, shapes (b, B).

        The mean is taken under the likelihood truncated to the bin.
        """

    def possible(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the ends, shape (b,), of one bin's possible part per row."""
        return low, high

    def cut(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Clip both ends of an interval to the possible values."""
        return low, high


@dataclass(frozen=True, eq=False)
class Combined(Channel):
    """Channel of Gaussian noise: the weighted mean of copies is sufficient.

    Attributes
    ----------
    noise : NoiseDensity
        Noise of the weighted mean.
    weights : ndarray of shape (k,)
    """

    noise: NoiseDensity
    weights: Array = field(repr=False)

    @property
    def smooth(self) -> bool:
        """Always true."""
        return True

    def alone(self) -> Combined:
        """Return the channel of ``ȳ``."""
        return Combined(self.noise, np.ones(1))

    def observed(self, copies: Array) -> Array:
        """Return ``ȳ``."""
        return np.asarray(copies @ self.weights)

    value = observed

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return the normal log-density at ``ȳ − x``."""
        return self.noise.log_pdf(self.value(copies)[:, None] - x)

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the noise's probability between the edges over the bin's width."""
        return self.noise.likelihood(self.value(copies), edges)

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood`` and the mean of a normal truncated to each bin."""
        y = self.value(copies)[:, None]
        mass, phi = self.noise.between(y - edges), self.noise.std * self.noise.pdf(y - edges)
        # y + σ(φ(low) − φ(high)) / mass, as in truncated_mean; each shared edge is computed once
        shift = np.divide(
            phi[:, :-1] - phi[:, 1:], mass, out=np.zeros_like(mass), where=mass > 1e-300
        )
        return mass / np.diff(edges), np.clip(y + self.noise.std * shift, edges[:-1], edges[1:])


@dataclass(frozen=True, eq=False)
class Overlap(Channel):
    """Channel of uniform noise: the intersection of the copies' intervals.

    Attributes
    ----------
    noise : NoiseDensity
        Noise of the least noisy copy.
    reaches : ndarray of shape (k,)
        ``a_i``, half-widths.
    """

    noise: NoiseDensity
    reaches: Array = field(repr=False)

    def observed(self, copies: Array) -> Array:
        """Return the least noisy copy, since a mean's noise would not be uniform."""
        return copies[:, int(np.argmin(self.reaches))]

    def value(self, copies: Array) -> Array:
        """Return the midpoint of the overlap."""
        low, high = self.overlap(copies)
        return np.asarray((low + high) / 2.0)

    def overlap(self, copies: Array) -> tuple[Array, Array]:
        """Return both ends of the overlap, sorted in case rounding swaps them."""
        low, high = (copies - self.reaches).max(axis=1), (copies + self.reaches).min(axis=1)
        return np.minimum(low, high), np.maximum(low, high)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return 0 inside the overlap and −∞ outside."""
        low, high = self.overlap(copies)
        return np.where((x >= low[:, None]) & (x <= high[:, None]), 0.0, -np.inf)

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the share of each bin that is possible."""
        low, high = self.overlap(copies)
        shared = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
        return np.asarray(np.clip(shared, 0.0, None) / np.diff(edges))

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood`` and the midpoint of each bin's possible part."""
        left, right = self.parts(copies, edges)
        return self.likelihood(copies, edges), np.asarray((left + right) / 2.0)

    def parts(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return both ends of each bin's possible part, shapes (b, B).

        The ends are reversed if the part is empty.
        """
        low, high = self.overlap(copies)
        return np.maximum(low[:, None], edges[:-1]), np.minimum(high[:, None], edges[1:])

    def possible(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the bin's part in the overlap."""
        start, stop = self.overlap(copies)
        return np.maximum(low, np.minimum(start, high)), np.minimum(high, np.maximum(stop, low))

    def cut(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the interval's part in the overlap."""
        left, right = self.overlap(copies)
        return np.clip(low, left, right), np.clip(high, left, right)


def truncated_mean(mean: Array, std: Array | float, low: Array, high: Array) -> Array:
    """Return the mean of a normal distribution truncated to [low, high].

    ``mean + std·(φ(a) − φ(b)) / (Φ(b) − Φ(a))``, evaluated in the lower tail to avoid cancellation.
    An interval without mass gives its nearer end. Arguments broadcast.
    """
    a, b = (low - mean) / std, (high - mean) / std
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    mass = scipy.special.ndtr(b) - scipy.special.ndtr(a)
    gap = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
    shift = np.divide(gap, mass, out=np.zeros_like(gap), where=mass > 1e-300)
    inside = np.clip(mean + std * np.where(flip, -shift, shift), low, high)
    return np.asarray(np.where(mass > 1e-300, inside, np.clip(mean, low, high)))

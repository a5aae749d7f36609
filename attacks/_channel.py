"""What a coalition's copies of one attribute say of its value: the likelihood of candidate values, for every law of noise.

| law | k copies boil down to | the likelihood of x |
| --- | --- | --- |
| Gaussian | ``ȳ = Σ w_i y_i`` with the weights of least noise, variance ``s² = v·(K_0)_jj``: sufficient | normal density at ``ȳ − x`` |
| uniform | the overlap ``[max(y_i − a_i), min(y_i + a_i)]``, ``a_i = √3 σ_i``: sufficient | flat inside, 0 outside |
| one process with independent increments | its least perturbed copy: sufficient | its density ``f(y − x)`` |
| independent between copies | nothing less than all of them | ``Π_i f_i(y_i − x)`` |

The first two are here, the others in ``_product``. Attributes are looked at one at a time: what others say of this one is left to
the attacks that use covariances.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from auditor.plugin import Array, NoiseDensity, scipy


class Channel:
    """What the copies of one attribute say of it; copies are of shape (b, k), bins given by B + 1 ascending edges."""

    noise: NoiseDensity
    """Of ``observed``."""

    @property
    def exact(self) -> bool:
        """Whether the copies give the value away."""
        return self.noise.std == 0.0

    @property
    def smooth(self) -> bool:
        """Whether estimates are functions of ``value`` alone, and can be read off between points of a grid."""
        return False

    def alone(self) -> Channel:
        """Return the channel of one copy that is ``value``; where ``smooth``."""
        raise NotImplementedError

    @abstractmethod
    def observed(self, copies: Array) -> Array:
        """Return the one perturbed value, shape (b,), that a prior is reconstructed from."""

    @abstractmethod
    def value(self, copies: Array) -> Array:
        """Return the estimate from the copies alone, shape (b,)."""

    @abstractmethod
    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return the log-likelihood of points, of shape (C,) or (b, C), up to a constant, shape (b, C); −∞ for the impossible."""

    @abstractmethod
    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the likelihood averaged over each bin, up to a factor of each row's own, shape (b, B)."""

    @abstractmethod
    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood``, and the mean of the likelihood cut to each bin, shapes (b, B)."""

    def possible(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the part of one bin a row, its ends of shape (b,), that the noise leaves possible."""
        return low, high

    def cut(self, copies: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Return both ends of an interval, put where the noise leaves a value possible."""
        return low, high


@dataclass(frozen=True, eq=False)
class Combined(Channel):
    """Gaussian noise: the combination says all.

    Attributes
    ----------
    noise : NoiseDensity
        Of the combination.
    weights : ndarray of shape (k,)
    """

    noise: NoiseDensity
    weights: Array = field(repr=False)

    @property
    def smooth(self) -> bool:
        """Always."""
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
        """Return ``ȳ``'s probability between the edges over the bin's width."""
        return self.noise.likelihood(self.value(copies), edges)

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood``, and the mean of a normal cut to each bin."""
        y = self.value(copies)[:, None]
        mass, phi = self.noise.between(y - edges), self.noise.std * self.noise.pdf(y - edges)
        # y + σ(φ(low) − φ(high)) / mass, as in truncated_mean; here every edge, which two bins share, is worked out once
        shift = np.divide(phi[:, :-1] - phi[:, 1:], mass, out=np.zeros_like(mass), where=mass > 1e-300)
        return mass / np.diff(edges), np.clip(y + self.noise.std * shift, edges[:-1], edges[1:])


@dataclass(frozen=True, eq=False)
class Overlap(Channel):
    """Uniform noise: what all copies leave possible.

    Attributes
    ----------
    noise : NoiseDensity
        Of the least noisy copy.
    reaches : ndarray of shape (k,)
        ``a_i``, half-widths.
    """

    noise: NoiseDensity
    reaches: Array = field(repr=False)

    def observed(self, copies: Array) -> Array:
        """Return the least noisy copy: a combination's noise would not be uniform."""
        return copies[:, int(np.argmin(self.reaches))]

    def value(self, copies: Array) -> Array:
        """Return the middle of the overlap."""
        low, high = self.overlap(copies)
        return np.asarray((low + high) / 2.0)

    def overlap(self, copies: Array) -> tuple[Array, Array]:
        """Return the interval that uniform noise leaves possible; rounding must not turn it inside out."""
        low, high = (copies - self.reaches).max(axis=1), (copies + self.reaches).min(axis=1)
        return np.minimum(low, high), np.maximum(low, high)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Return 0 inside the overlap, and −∞ outside."""
        low, high = self.overlap(copies)
        return np.where((x >= low[:, None]) & (x <= high[:, None]), 0.0, -np.inf)

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Return the share of each bin that is possible."""
        low, high = self.overlap(copies)
        shared = np.minimum(high[:, None], edges[1:]) - np.maximum(low[:, None], edges[:-1])
        return np.asarray(np.clip(shared, 0.0, None) / np.diff(edges))

    def within(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return ``likelihood``, and the middle of each bin's possible part."""
        left, right = self.parts(copies, edges)
        return self.likelihood(copies, edges), np.asarray((left + right) / 2.0)

    def parts(self, copies: Array, edges: Array) -> tuple[Array, Array]:
        """Return both ends of each bin's possible part, shapes (b, B); the wrong way round where there is none."""
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
    """Return the mean of a normal distribution cut to [low, high], all of shapes that broadcast; its nearer end where it has no mass.

    ``mean + std·(φ(a) − φ(b)) / (Φ(b) − Φ(a))``, taken on the side of the origin where the difference keeps its digits.
    """
    a, b = (low - mean) / std, (high - mean) / std
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    mass = scipy.special.ndtr(b) - scipy.special.ndtr(a)
    gap = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / np.sqrt(2.0 * np.pi)
    shift = np.divide(gap, mass, out=np.zeros_like(gap), where=mass > 1e-300)
    inside = np.clip(mean + std * np.where(flip, -shift, shift), low, high)
    return np.asarray(np.where(mass > 1e-300, inside, np.clip(mean, low, high)))

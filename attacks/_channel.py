"""Likelihood of one attribute's value given a coalition's copies.

| law | statistic of k copies | likelihood of x |
| --- | --- | --- |
| Gaussian | ``ȳ = Σ w_i y_i`` with minimum-variance weights, variance ``s² = v·(K_0)_jj``: sufficient | normal density at ``ȳ − x`` |
| uniform | the overlap ``[max(y_i − a_i), min(y_i + a_i)]``, ``a_i = √3 σ_i``: sufficient | flat inside, 0 outside |
| one process with independent increments | its least perturbed copy: sufficient | its density ``f(y − x)`` |
| independent between copies | all copies | ``Π_i f_i(y_i − x)``, on a lattice a product of probabilities |

Laplace, geometric and Skellam densities and their products are log-concave. Their best point in a
bin is the nearest to the peak, which under Laplace noise is a copy.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from auditor.numerics.linear_algebra import deviations, is_diagonal, quotient
from auditor.plugin import Array, Arrays, NoiseDensity, NotApplicable, Pair, View, unprinted

LEAST = -1e100
"""Log-likelihood of an impossible value, for instance off the stated lattice."""
CURVED = np.arange(-12.0, 13.0)
"""Knots of a curved log-density, in half deviations from its peak."""
MOST_POINTS = 32
"""Lattice points evaluated per bin; a wider bin gets so many, evenly spaced."""


class Channel(ABC):
    """Likelihood of one attribute given copies, shape (b, k).

    At points, or in bins of B + 1 edges.
    """

    noise: NoiseDensity
    """Noise of ``observed``."""
    smooth: bool = False
    """Whether estimates are smooth functions of ``value`` alone."""

    @property
    def exact(self) -> bool:
        """Whether the copies determine the value."""
        return self.noise.std == 0.0

    @abstractmethod
    def observed(self, copies: Array) -> Array:
        """Perturbed values, shape (b,)."""

    @abstractmethod
    def value(self, copies: Array) -> Array:
        """Estimate from the copies alone, shape (b,)."""

    @abstractmethod
    def log_likelihood(self, copies: Array, x: Array) -> Array:
        """Log-likelihoods of points up to a constant, shape (b, C).

        ``x`` is (C,) or (b, C); impossible points get −∞.
        """

    @abstractmethod
    def within(self, copies: Array, edges: Array) -> Pair:
        """Each bin's mean likelihood and mean value, shapes (b, B).

        Likelihoods have an unknown factor per row.
        """

    def likelihood(self, copies: Array, edges: Array) -> Array:
        """Each bin's mean likelihood up to a factor, shape (b, B)."""
        return self.within(copies, edges)[0]

    def peaks(self, copies: Array, edges: Array) -> Pair:
        """Each bin's likeliest point and its log-likelihood, (b, B)."""
        points = np.clip(self.value(copies)[:, None], edges[:-1], edges[1:])
        return points, self.log_likelihood(copies, points)

    def normal_like(self, copies: Array) -> tuple[Array, float]:
        """Mean and variance of a normal close to the likelihood."""
        return self.value(copies), self.noise.std**2

    def possible(self, copies: Array, low: Array, high: Array) -> Pair:
        """Ends of the possible part of intervals, shapes (b,)."""
        return low, high


@unprinted
class Combined(Channel):
    """Channel of Gaussian noise: the weighted mean of copies is sufficient.

    ``noise`` is of the weighted mean.
    """

    noise: NoiseDensity
    weights: Array
    smooth = True

    def observed(self, copies: Array) -> Array:
        return copies @ self.weights

    value = observed

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        return self.noise.log_pdf(self.value(copies)[:, None] - x)

    def likelihood(self, copies: Array, edges: Array) -> Array:
        return self.noise.likelihood(self.value(copies), edges)

    def within(self, copies: Array, edges: Array) -> Pair:
        y, s = self.value(copies)[:, None], self.noise.std
        mass, phi = self.noise.between(y - edges), s * self.noise.pdf(y - edges)
        # y + σ(φ(low) − φ(high)) / mass
        shift = quotient(-np.diff(phi), mass, where=mass > 1e-300)
        return mass / np.diff(edges), np.clip(y + s * shift, edges[:-1], edges[1:])


@unprinted
class Overlap(Channel):
    """Channel of uniform noise: the intersection of the copies' intervals.

    ``noise`` is of the least noisy copy; ``reaches``, shape (k,), are the half-widths ``a_i``.
    """

    noise: NoiseDensity
    reaches: Array

    def observed(self, copies: Array) -> Array:
        return copies[:, int(np.argmin(self.reaches))]

    def value(self, copies: Array) -> Array:
        low, high = self.overlap(copies)
        return (low + high) / 2.0

    def overlap(self, copies: Array) -> Pair:
        low, high = (copies - self.reaches).max(axis=1), (copies + self.reaches).min(axis=1)
        return np.minimum(low, high), np.maximum(low, high)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        low, high = self.overlap(copies)
        return np.where((x >= low[:, None]) & (x <= high[:, None]), 0.0, -np.inf)

    def _parts(self, copies: Array, edges: Array) -> Pair:
        low, high = self.overlap(copies)
        left, right = np.maximum(low[:, None], edges[:-1]), np.minimum(high[:, None], edges[1:])
        return np.clip(right - left, 0.0, None), (left + right) / 2.0

    def within(self, copies: Array, edges: Array) -> Pair:
        length, middle = self._parts(copies, edges)
        return length / np.diff(edges), middle

    def peaks(self, copies: Array, edges: Array) -> Pair:
        length, middle = self._parts(copies, edges)
        return middle, np.where(length > 0, 0.0, -np.inf)

    def possible(self, copies: Array, low: Array, high: Array) -> Pair:
        start, stop = self.overlap(copies)
        return np.clip(low, start, stop), np.clip(high, start, stop)


@dataclass(frozen=True)
class Product(Channel):
    """Channel of Laplace, geometric or Skellam noise, independent between copies.

    Of ``densities`` ``f_i`` of the relevant copies, at ``places`` in the coalition. Exact under Laplace
    noise, and on a lattice up to ``MOST_POINTS`` points per bin.
    """

    densities: tuple[NoiseDensity, ...]
    places: tuple[int, ...]

    @property
    def noise(self) -> NoiseDensity:  # type: ignore[override]
        return min(self.densities, key=lambda density: density.std)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return len(self.densities) == 1 and not self.noise.on_lattice

    def observed(self, copies: Array) -> Array:
        return copies[:, self.places[self.densities.index(self.noise)]]

    def normal_like(self, copies: Array) -> tuple[Array, float]:
        precision = np.array([density.std**-2.0 for density in self.densities])
        return copies[:, self.places] @ precision / precision.sum(), float(1.0 / precision.sum())

    def value(self, copies: Array) -> Array:
        """Likelier of the copies and their weighted mean, (b,)."""
        if len(self.places) == 1:
            return self.observed(copies)
        mean = self._on_lattice(copies, self.normal_like(copies)[0][:, None])
        candidates = np.column_stack([copies[:, self.places], mean])
        best = self.log_likelihood(copies, candidates).argmax(axis=1)
        return candidates[np.arange(len(best)), best]

    def knots(self, copies: Array) -> Array:
        noise, held = self.noise, copies[:, self.places]
        step = noise.unit * np.ceil(noise.std / 2.0 / noise.unit) if noise.on_lattice else noise.std
        if noise.distribution == "skellam":
            return self._on_lattice(copies, self.value(copies)[:, None]) + step * CURVED
        low, high = held.min(axis=1, keepdims=True), held.max(axis=1, keepdims=True)
        return np.sort(np.concatenate([low - step, held, high + step], axis=1), axis=1)

    def log_likelihood(self, copies: Array, x: Array) -> Array:
        parts = [
            density.log_pdf_of_differences(copies[:, [place]], x)
            for density, place in zip(self.densities, self.places, strict=True)
        ]
        return np.sum(parts, axis=0)

    def within(self, copies: Array, edges: Array) -> Pair:
        b, B, width = len(copies), len(edges) - 1, np.diff(edges)
        middle = (edges[:-1] + edges[1:]) / 2.0
        if self.noise.on_lattice:
            m = int(np.clip(np.rint(width.max() / self.noise.unit), 1, MOST_POINTS))
            points = edges[:-1, None] + width[:, None] * (np.arange(m) + 0.5) / m
            points = self._on_lattice(copies, points.reshape(1, -1))
            log_f = self.log_likelihood(copies, points)
            f = np.exp(log_f - np.maximum(log_f.max(axis=1, keepdims=True), LEAST))
            mass, first = (part.reshape(b, B, m).mean(axis=2) for part in (f, f * points))
        else:
            held = np.clip(copies[:, self.places], edges[0], edges[-1])
            nodes = np.sort(np.hstack([np.tile(edges, (b, 1)), held]), axis=1)
            log_f = self.log_likelihood(copies, nodes)
            mass, mean = log_linear(nodes, log_f - log_f.max(axis=1, keepdims=True))
            bins = np.searchsorted(edges, (nodes[:, :-1] + nodes[:, 1:]) / 2.0, side="right") - 1
            flat = (np.clip(bins, 0, B - 1) + B * np.arange(b)[:, None]).ravel()
            mass, first = (
                np.bincount(flat, part.ravel(), b * B).reshape(b, B) / width
                for part in (mass, mass * mean)
            )
        inside = quotient(first, mass, middle)
        return mass, np.clip(inside, edges[:-1], edges[1:])

    def peaks(self, copies: Array, edges: Array) -> Pair:
        margin = np.minimum(self.noise.unit if self.noise.on_lattice else 0.0, np.diff(edges)) / 2.0
        nearest = np.clip(self.value(copies)[:, None], edges[:-1] + margin, edges[1:] - margin)
        points = self._on_lattice(copies, nearest)
        return points, self.log_likelihood(copies, points)

    def possible(self, copies: Array, low: Array, high: Array) -> Pair:
        if not self.noise.on_lattice:
            return low, high
        point = self._on_lattice(copies, ((low + high) / 2.0)[:, None])[:, 0]
        narrow = high - low <= self.noise.unit * (1.0 + 1e-9)
        return np.where(narrow, point, low), np.where(narrow, point, high)

    def _on_lattice(self, copies: Array, x: Array) -> Array:
        if not self.noise.on_lattice:
            return x
        y, unit = copies[:, [self.places[0]]], self.noise.unit
        return y + unit * np.floor((x - y) / unit + 0.5)


def log_linear(x: Array, log_f: Array) -> Pair:
    """Mass and mean of ``f`` between nodes, with ``log f`` linear.

    Shapes (b, P − 1). With δ the rise of ``log f`` over a width w, the mass is ``w·f_max·(1 −
    e^{−|δ|})/|δ|``, the mean at a share ``1/(1 − e^{−δ}) − 1/δ`` of the width.
    """
    width, rise = np.diff(x, axis=1), np.diff(log_f, axis=1)
    flat = np.abs(rise) < 1e-5
    d = np.where(flat, 1.0, rise)
    with np.errstate(over="ignore"):
        share = np.where(flat, 0.5 + rise / 12.0, -1.0 / np.expm1(-d) - 1.0 / d)
    height = width * np.exp(np.maximum(log_f[:, :-1], log_f[:, 1:]))
    mass = height * np.where(flat, 1.0 - np.abs(rise) / 2.0, -np.expm1(-np.abs(d)) / np.abs(d))
    return mass, x[:, :-1] + share * width


def joint_of(channel: Channel, copies: Array, values: Array, prior: Array) -> Array:
    """Values' priors times likelihoods, over each row's largest, (b, C); 0 if impossible."""
    log_joint = channel.log_likelihood(copies, values) + np.log(prior)
    top = log_joint.max(axis=1, keepdims=True)
    possible = np.isfinite(top)
    return np.where(possible, np.exp(log_joint - np.where(possible, top, 0.0)), 0.0)


def alone(channel: Channel) -> Channel:
    """Channel of a smooth channel's ``value`` as the only copy."""
    if isinstance(channel, Combined):
        return Combined(channel.noise, np.ones(1))
    return Product((channel.noise,), (0,))


def channels(view: View) -> list[Channel]:
    """Channel of each attribute for a coalition's copies.

    ``NotApplicable`` if the law is unknown, mixes shapes, or is uniform and correlated.
    """
    law = view.one_shape
    levels, std = np.diag(law.level_covariance), deviations(law.shape)
    least = float(levels.min())
    if law.distribution == "uniform":
        if not is_diagonal(law.shape):
            raise NotApplicable(
                "uniform noise that is correlated between attributes is not uniform in any one of them"
            )
        return [
            Overlap(NoiseDensity("uniform", float(np.sqrt(least) * s)), np.sqrt(3.0 * levels) * s)
            for s in std
        ]
    v = view.combined_variance
    places = (int(np.argmin(levels)),) if law.one_process else tuple(range(len(levels)))
    return [
        Combined(NoiseDensity("gaussian", float(np.sqrt(v) * s)), view.weights)
        if law.distribution == "gaussian" or s == 0.0 or least <= 0.0
        else Product(tuple(law.density_at(float(levels[place]), j) for place in places), places)
        for j, s in enumerate(std)
    ]


def by_attribute(copies: Arrays) -> list[Array]:
    """Regroup k copies of shape (b, N) into N arrays of shape (b, k)."""
    return [np.stack([copy[:, j] for copy in copies], axis=1) for j in range(copies[0].shape[1])]

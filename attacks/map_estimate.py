"""Posterior mode or mean of each record, for a prior of any shape.

A Gaussian prior gives the linear Bayes estimate, a flat prior the released value.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``f_X`` | prior density: ``gaussian``, ``flat``, ``histogram``, ``kde`` or ``known`` | | |
| ``f_R`` | density of the noise in the coalition's copies | | |
| mode | ``argmax_x f_R(y − x) f_X(x)`` | (N,) | liu2008, (12.3) |
| mean | ``∫ x f_R(y − x) f_X(x) dx / ∫ f_R(y − x) f_X(x) dx`` | (N,) | huang2005, section 4 |

``histogram``: reconstructed (``auditor.adversary.density``), flat in every bin; mode and mean are
exact. ``kde``: the histogram smoothed by a normal kernel one bin wide; Newton's method finds the
mode from the best grid point. ``known``: the table's own value shares, with ``perfect`` knowledge;
the posterior is exact for any law. These three treat attributes one at a time, and so does the
Gaussian prior under other noise. ``histogram`` with ``estimate: mean`` is the univariate
reconstruction (UDR) of huang2005, section 4.

Several copies are combined by ``_channel``.

Reference: liu2008, section 3.5. With the right prior the mean has the least squared error of all
estimates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.adversary.density import Histogram, Method
from auditor.plugin import (
    Array,
    Cost,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
)

from ._channel import Channel, Combined, Overlap, truncated_mean
from ._posterior import (
    ByAttribute,
    channels,
    estimated_by_attribute,
    posterior_mass,
    reconstructed_priors,
)
from ._prior_bins import normal_bins, smoothed
from ._product import Product
from ._value_posterior import of_values
from .llse import llse_weights


@register
class MaximumAPosteriori(RowAttack):
    """Posterior mode or mean per record, under a chosen prior."""

    name = "map-estimate"
    attack_kind = "per attribute"
    combines = True
    cost = Cost(3e-3, 1.5e-7)
    reference = "liu2008, section 3.5, eq. 12.3"
    assumes = (
        "The adversary knows the law of the noise; a gaussian prior needs the data's moments, a known one every attribute's distribution, "
        "the others only the copies."
    )
    wins = (
        "Wins on skewed or clustered attributes while their shape shows through the noise; on normal data an estimated prior "
        "loses to llse; a gaussian prior equals bayes-estimate, a flat one ndr."
    )

    class Parameters(PluginParameters):
        """Prior and point estimate."""

        prior: Literal["gaussian", "flat", "histogram", "kde", "known"] = Field(
            "histogram",
            description="shape of the prior f_X; known: the table's own distribution, with perfect knowledge",
        )
        estimate: Literal["mode", "mean"] = Field(
            "mode", description="what to take of the posterior"
        )
        method: Method = Field(
            "em", description="how a prior is reconstructed: em, or Agrawal and Srikant's iteration"
        )
        bins: Annotated[int, Field(ge=2, le=2000)] | None = Field(
            None, description="bins of a reconstructed prior; by default 100 to 400"
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return Bayes' rule with a known or reconstructed prior."""
        p, found = self.parameters, channels(view)
        if p.prior == "flat":
            return ByAttribute([channel.value for channel in found])
        if p.prior == "known":
            return ByAttribute(
                [
                    of_values(view, channel, j, p.estimate == "mode")
                    for j, channel in enumerate(found)
                ]
            )
        if p.prior == "gaussian":
            return _with_normal_prior(view, found, p.estimate)
        priors = reconstructed_priors(found, blocks, p.method, p.bins, None)
        return estimated_by_attribute(
            ESTIMATES[p.prior, p.estimate], found, priors, view.released.count
        )


def _with_normal_prior(
    view: View, found: Sequence[Channel], estimate: Literal["mode", "mean"]
) -> Reconstruction:
    """Bayes' rule with a Gaussian prior, joint only under Gaussian noise."""
    (mu_X, K_X), law = view.data_moments, view.known_law
    std = np.sqrt(np.clip(np.diag(K_X), 0.0, None))  # estimated variances may be rounded below 0
    if law.distribution == "gaussian":
        return _Linear(llse_weights(K_X, law, view.grain), mu_X)
    if law.distribution == "uniform":
        return _Cut(
            [channel for channel in found if isinstance(channel, Overlap)], mu_X, std, estimate
        )
    priors = [normal_bins(*each) for each in zip(mu_X, std, found, strict=True)]
    return estimated_by_attribute(
        ESTIMATES["histogram", estimate], found, priors, view.released.count
    )


class _Linear(Reconstruction):
    """Gaussian prior and noise: mode and mean are the joint LLSE."""

    def __init__(self, W: Array, mu: Array) -> None:
        self._W, self._mu = W, mu

    def rows(self, copies: Sequence[Array]) -> Array:
        return self._mu + np.hstack([copy - self._mu for copy in copies]) @ self._W.T


class _Cut(Reconstruction):
    """Gaussian prior, uniform noise: a truncated normal per attribute."""

    def __init__(self, found: Sequence[Overlap], mu: Array, std: Array, estimate: str) -> None:
        self._found, self._mu, self._std, self._mode = found, mu, std, estimate == "mode"

    def rows(self, copies: Sequence[Array]) -> Array:
        out = np.empty_like(copies[0])
        for j, channel in enumerate(self._found):
            low, high = channel.overlap(np.stack([copy[:, j] for copy in copies], axis=1))
            mu = np.full(len(low), self._mu[j])
            out[:, j] = (
                np.clip(mu, low, high)
                if self._mode
                else truncated_mean(mu, self._std[j], low, high)
            )
        return out


def histogram_mean(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Return the exact posterior mean under a prior flat in every bin, (b,).

    Parameters
    ----------
    prior : Histogram
    channel : Channel
    copies : ndarray of shape (b, k)
        One attribute's released values. A row that the prior cannot explain gets the estimate from
        its copies alone.
    """
    likelihood, inside = channel.within(copies, prior.edges)
    mass, explained = posterior_mass(prior, likelihood)
    return np.where(explained, np.einsum("rb,rb->r", mass, inside), channel.value(copies))


def histogram_mode(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Return the posterior mode under a prior flat in every bin, shape (b,).

    Gaussian noise: the point nearest to ``ȳ`` in the bin of largest density there. Uniform noise:
    the midpoint of the densest bin's possible part. Other noise: each bin's most likely point.
    """
    log_prior = np.log(np.maximum(prior.density, 1e-300))
    if isinstance(channel, Product):
        points, log_likelihood = channel.best_points(copies, prior.edges)
        return np.asarray(
            np.take_along_axis(
                points, (log_prior + log_likelihood).argmax(axis=1)[:, None], axis=1
            )[:, 0]
        )
    y, low, high = channel.value(copies)[:, None], prior.edges[:-1], prior.edges[1:]
    if isinstance(channel, Overlap):
        left, right = channel.parts(copies, prior.edges)
        best = np.where(right > left, log_prior, -np.inf)
        place = best.argmax(axis=1)
        middle = np.take_along_axis((left + right) / 2.0, place[:, None], axis=1)[:, 0]
        return np.where(np.isfinite(best.max(axis=1)), middle, y[:, 0])
    nearest = np.clip(y, low, high)
    best = log_prior - 0.5 * ((y - nearest) / channel.noise.std) ** 2
    return np.asarray(np.take_along_axis(nearest, best.argmax(axis=1)[:, None], axis=1)[:, 0])


def kde_mean(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Return the posterior mean under normals at the bins' midpoints, (b,).

    Each normal is one bin wide. Closed form under Gaussian and uniform noise; else by finer bins.
    """
    if isinstance(channel, Product):
        return histogram_mean(smoothed(prior, channel.noise), channel, copies)
    c, h = prior.midpoints, np.diff(prior.edges)
    y = channel.value(copies)[:, None]
    if isinstance(channel, Overlap):
        start, stop = (end[:, None] for end in channel.overlap(copies))
        mass = prior.mass * (
            scipy.special.ndtr((stop - c) / h) - scipy.special.ndtr((start - c) / h)
        )
        inside = truncated_mean(np.broadcast_to(c, mass.shape), h, start, stop)
    else:
        s2 = channel.noise.std**2
        log_mass = (
            np.log(np.maximum(prior.mass, 1e-300))
            - 0.5 * np.log(h**2 + s2)
            - 0.5 * (y - c) ** 2 / (h**2 + s2)
        )
        mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
        inside = (c * s2 + y * h**2) / (h**2 + s2)
    total = mass.sum(axis=1)
    return np.where(
        total > 0, np.einsum("rb,rb->r", mass, inside) / np.where(total > 0, total, 1.0), y[:, 0]
    )


NEWTON_STEPS = 12


def kde_mode(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Return the posterior mode under the mixture of ``kde_mean``, shape (b,).

    Newton's method from the best grid point. A step that leaves the neighbouring grid points or
    approaches a minimum is replaced by bisection. Under uniform noise the ends of the possible
    interval are candidates too. Other noise uses finer bins.
    """
    if isinstance(channel, Product):
        return histogram_mode(smoothed(prior, channel.noise), channel, copies)
    y = channel.value(copies)
    grid = np.unique(np.concatenate([prior.midpoints, prior.edges]))
    log_f = _log_mixture(prior, grid)[0]
    if isinstance(channel, Combined):
        precision = 1.0 / channel.noise.std**2
        place = (log_f - 0.5 * precision * (y[:, None] - grid) ** 2).argmax(axis=1)
        low, high = grid[np.maximum(place - 1, 0)], grid[np.minimum(place + 1, len(grid) - 1)]
        return _climb(prior, grid[place], low, high, y, precision)
    assert isinstance(channel, Overlap)
    start, stop = channel.overlap(copies)
    posterior = np.where((grid >= start[:, None]) & (grid <= stop[:, None]), log_f, -np.inf)
    place, found = posterior.argmax(axis=1), np.isfinite(posterior.max(axis=1))
    low = np.where(found, np.maximum(grid[np.maximum(place - 1, 0)], start), start)
    high = np.where(found, np.minimum(grid[np.minimum(place + 1, len(grid) - 1)], stop), stop)
    inside = _climb(prior, np.where(found, grid[place], y), low, high, y, 0.0)
    candidates = np.stack([inside, start, stop])
    best = np.stack([_log_mixture(prior, candidate)[0] for candidate in candidates]).argmax(axis=0)
    return np.asarray(np.take_along_axis(candidates, best[None], axis=0)[0])


def _climb(
    prior: Histogram, x: Array, low: Array, high: Array, y: Array, precision: float
) -> Array:
    """Maximise ``log f(x) − precision·(y − x)²/2`` between low and high, (b,)."""
    for _ in range(NEWTON_STEPS):
        _, slope, bend = _log_mixture(prior, x)
        slope, bend = slope + precision * (y - x), bend - precision
        low, high = np.where(slope > 0, x, low), np.where(slope < 0, x, high)
        newton = x - np.divide(slope, bend, out=np.zeros_like(slope), where=bend < 0)
        x = np.where((bend < 0) & (newton >= low) & (newton <= high), newton, (low + high) / 2.0)
    return x


def _log_mixture(prior: Histogram, x: Array) -> tuple[Array, Array, Array]:
    """``log f`` and its first two derivatives at points of shape (b,)."""
    c, h = prior.midpoints, np.diff(prior.edges)
    z = (x[:, None] - c) / h
    log_parts = np.log(np.maximum(prior.mass / h, 1e-300)) - 0.5 * z * z
    top = log_parts.max(axis=1, keepdims=True)
    parts = np.exp(log_parts - top)
    f = parts.sum(axis=1)
    slope = -(parts * z / h).sum(axis=1) / f
    bend = (parts * (z * z - 1.0) / h**2).sum(axis=1) / f - slope**2
    return np.log(f) + top[:, 0], slope, bend


ESTIMATES = {
    ("histogram", "mode"): histogram_mode,
    ("histogram", "mean"): histogram_mean,
    ("kde", "mode"): kde_mode,
    ("kde", "mean"): kde_mean,
}
"""By prior and estimate. A flat prior uses ``Channel.value`` for both."""

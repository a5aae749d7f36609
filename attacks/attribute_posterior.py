"""Posteriors of one attribute under a prior in bins, fitted to the copies.

A smooth channel's estimate is a function of one number, so it is tabulated and interpolated.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.adversary.attack import filter_map
from auditor.adversary.view import Histogram, Method, combined_noise, reconstruct
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import deviations, quotient
from auditor.plugin import (
    Affine,
    Array,
    Arrays,
    Attack,
    CopyBlocks,
    Cost,
    ExactMoments,
    Flags,
    LinearAttack,
    NoiseDensity,
    NotApplicable,
    Pair,
    Perfect,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
    scipy,
    stream,
    unprinted,
)

from ._channel import Channel, alone, by_attribute, channels, joint_of
from ._fits import fitted_once, some_rows
from .known_io_map import LinearMap
from .llse import llse_weights

MOST_CELLS = 4096
"""Most cells that count perturbed values, and their number on a lattice."""
FEWEST_CELLS, CELLS_A_DEVIATION = 256, 32
"""Fewest cells, and cells per noise deviation: their width adds 8·10⁻⁵ to the noise variance."""
CORE = 0.001
"""Share of the perturbed values on either side that may lie in the outermost bins."""
MOST_BINS = 400
PARTS = 4
"""Bins of a smoothed prior per histogram bin: a normal density varies by a percent within one."""
NORMAL_BINS = 512
"""Least bins of a normal prior over ten deviations on either side: 1/25 of a deviation each."""
FINE, BEYOND, MOST_TABLED = 32, 5.0, 2**14
"""Points of a table per noise deviation, deviations beyond the prior's bins, and most points. The
interpolation error of a mean is about 1.6e-4 of a deviation."""
CHUNK_ROWS = 1024

Estimate = Callable[[Array], Array]
"""Map copies of one attribute, shape (b, k), to estimates, shape (b,) or (e, b)."""
Estimator = Callable[[Histogram, Channel, Array], Array]


def lattice_bins(low: float, high: float, most: int, unit: float) -> Array:
    """Edges half a unit off the lattice, for at most ``most`` bins.

    The bins cover low to high, each with the same whole number of units.

    Examples
    --------
    >>> lattice_bins(2.0, 5.0, 4, 1.0)
    array([1.5, 2.5, 3.5, 4.5, 5.5])
    >>> lattice_bins(2.0, 5.0, 2, 1.0)
    array([1.5, 3.5, 5.5])
    """
    first, last = np.floor(low / unit + 0.5), np.floor(high / unit + 0.5)
    wide = max(1.0, np.ceil((last - first + 1.0) / most))
    return (first - 0.5 + wide * np.arange(np.ceil((last - first + 1.0) / wide) + 1.0)) * unit


def even_bins(low: float, high: float, count: int, noise: NoiseDensity) -> Array:
    """Edges of equal bins, at most ``count``, whole units wide on a lattice."""
    if noise.on_lattice:
        return lattice_bins(low, high, count, noise.unit)
    return np.linspace(low, high, count + 1)


def smoothed(prior: Histogram, noise: NoiseDensity) -> Histogram:
    """Smooth by a normal kernel one bin wide; bins get a quarter as wide.

    On a lattice they stay.
    """
    edges, h = prior.edges, np.diff(prior.edges)
    if not noise.on_lattice:
        edges = np.append(edges[:-1, None] + h[:, None] * np.arange(PARTS) / PARTS, edges[-1])
    mass = np.diff(scipy.special.ndtr((edges[:, None] - prior.midpoints) / h), axis=0) @ prior.mass
    return Histogram(edges, mass / mass.sum())


def normal_bins(mean: float, std: float, channel: Channel) -> Histogram | None:
    """Normal distribution in bins narrow relative to the noise.

    None without noise.
    """
    if channel.exact:
        return None
    noise = channel.noise
    spread = max(std, 1e-3 * noise.std)
    count = int(np.clip(np.ceil(40.0 * spread / noise.std), NORMAL_BINS, 4 * NORMAL_BINS))
    edges = even_bins(mean - 10.0 * spread, mean + 10.0 * spread, count, noise)
    mass = np.diff(scipy.special.ndtr((edges - mean) / spread))
    return Histogram(edges, mass / mass.sum())


def reconstructed_priors(
    found: Sequence[Channel],
    view: View,
    blocks: CopyBlocks,
    method: Method,
    bins: int | None,
    domain: Sequence[float] | None = None,
) -> list[Histogram | None]:
    """Estimate each attribute's distribution from random rows; None if exact.

    Parameters
    ----------
    bins : int or None
        None: 100 to 400, with bins no wider than half the noise deviation.
    domain : [low, high] or None
        Range of the originals. None: the central 99.8 % of released values, and a bin beyond on
        either side.
    """
    # the random rows of all attacks are equal, so that reconstructions are shared
    rows = some_rows(blocks, stream(view.seed, "distribution"))
    copies = by_attribute(np.split(rows, len(view.copies), axis=1))
    return [
        None
        if channel.exact
        else _reconstructed(channel.observed(y), channel.noise, method, bins, domain)
        for channel, y in zip(found, copies, strict=True)
    ]


def _reconstructed(
    y: Array, noise: NoiseDensity, method: Method, bins: int | None, domain: Sequence[float] | None
) -> Histogram:
    low, high = float(y.min()), float(y.max())
    count = MOST_CELLS
    if not noise.on_lattice:
        fine = CELLS_A_DEVIATION * (high - low) / noise.std
        count = int(np.clip(fine, FEWEST_CELLS, MOST_CELLS))
    counts, cells = np.histogram(y, even_bins(low, high, count, noise))
    cumulative = np.append(0.0, np.cumsum(counts)) / counts.sum()
    low, high = domain or np.interp([CORE, 1.0 - CORE], cumulative, cells)
    most, beyond, ends = bins or MOST_BINS, noise.std, 0
    if noise.on_lattice:
        beyond = noise.unit * np.ceil(beyond / noise.unit)
    else:
        ends = 2 * (domain is None)
        most = bins or int(np.clip(np.ceil(2.0 * (high - low) / beyond), 100, MOST_BINS))
    edges = core = even_bins(low, high, most - ends, noise)
    if domain is None:
        reached = np.append(cells[[0, -1]], core)
        edges = np.unique([reached.min() - beyond, *core, reached.max() + beyond])
    middle = (cells[:-1] + cells[1:]) / 2.0
    kind, observed = ("histogram", noise, method), (middle, counts.astype(float), edges)
    return fitted_once(lambda: reconstruct(*observed, noise, method), kind, *observed)


def posterior_mass(prior: Histogram, likelihood: Array) -> tuple[Array, Flags]:
    """Bins' posterior, (b, B), and mask of explained rows, (b,)."""
    mass = likelihood * prior.mass
    total = mass.sum(axis=1, keepdims=True)
    return quotient(mass, total), total[:, 0] > 0


def histogram_mean(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Posterior mean under a prior flat in every bin, shape (b,).

    A row that the prior cannot explain gets the estimate from its copies alone.
    """
    likelihood, inside = channel.within(copies, prior.edges)
    mass, explained = posterior_mass(prior, likelihood)
    return np.where(explained, np.einsum("rb,rb->r", mass, inside), channel.value(copies))


def histogram_mode(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Posterior mode under a prior flat in every bin, shape (b,).

    The most likely point of the bin of largest density; under uniform noise its midpoint.
    """
    points, log_likelihood = channel.peaks(copies, prior.edges)
    log_posterior = np.log(np.maximum(prior.density, 1e-300)) + log_likelihood
    rows, best = np.arange(len(points)), log_posterior.argmax(axis=1)
    possible = np.isfinite(log_posterior[rows, best])
    return np.where(possible, points[rows, best], channel.value(copies))


def read_off(estimate: Estimator, prior: Histogram, channel: Channel) -> Estimate:
    """Estimate, (b,) or (e, b), tabulated for a smooth channel."""

    def direct(copies: Array, channel: Channel = channel) -> Array:
        parts = np.array_split(copies, max(1, len(copies) // CHUNK_ROWS))
        return np.concatenate([estimate(prior, channel, part) for part in parts], axis=-1)

    if channel.noise.on_lattice:
        return lambda copies: _each_once(direct, copies)
    reach = BEYOND * channel.noise.std
    low, high = prior.edges[0] - reach, prior.edges[-1] + reach
    count = int(FINE * (high - low) / channel.noise.std)
    if not channel.smooth or count > MOST_TABLED:
        return direct
    table = direct(np.linspace(low, high, count + 1)[:, None], alone(channel))
    rise = np.diff(table, append=table[..., -1:])

    def interpolated(copies: Array) -> Array:
        place = np.clip((channel.value(copies) - low) * count / (high - low), 0.0, count)
        k = place.astype(int)
        return table[..., k] + (place - k) * rise[..., k]

    return interpolated


def _each_once(estimate: Estimate, copies: Array) -> Array:
    found, place = np.unique(copies, axis=0, return_inverse=True)
    return estimate(found)[..., place.ravel()]


@unprinted
class ByAttribute(Reconstruction):
    """Estimate each attribute separately."""

    estimates: Sequence[Estimate]

    def rows(self, copies: Arrays) -> Array:
        each = zip(self.estimates, by_attribute(copies), strict=True)
        return np.stack([estimate(y) for estimate, y in each], axis=-1)


def estimated_by_attribute(
    estimate: Estimator, found: Sequence[Channel], priors: Sequence[Histogram | None]
) -> ByAttribute:
    """One estimator per attribute; a prior of None means exact."""
    return ByAttribute(
        [
            channel.value if prior is None else read_off(estimate, prior, channel)
            for channel, prior in zip(found, priors, strict=True)
        ]
    )


@register
class UnivariateReconstruction(LinearAttack):
    """Posterior mean of each attribute alone, without correlations.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``f_X, f_R`` | densities of one attribute, and of the noise in its combined copies | | huang2005, section 4 |
    | ``x̂_j`` | ``∫ x f_X(x) f_R(y_j − x) dx / ∫ f_X(x) f_R(y_j − x) dx`` | scalar | huang2005, section 4 |
    | ``λ_jj`` | variance of attribute j, ``K_X``'s diagonal | scalar | |
    | ``σ_j²`` | variance of the noise in attribute j of the combined copies | scalar | |
    | ``g_j`` | ``λ_jj / (λ_jj + σ_j²)`` | scalar | |
    | gaussian ``x̂_j`` | ``mu_j + g_j (y_j − mu_j)``, with error ``λ_jj σ_j² / (λ_jj + σ_j²)`` | scalar | |

    ``prior: gaussian`` is the best linear estimate from one attribute for any distribution.
    ``estimated`` knowledge uses ``λ̂_jj = max(0, Var(y_j) − σ_j²)`` and the mean of its rows. ``prior:
    reconstructed`` is the paper's: ``f_X`` is estimated from the copies, flat in every bin, and the
    integrals are exact, for noise of any law.

    Copies are averaged with minimum-variance weights (``auditor.adversary.view``); a
    reconstructed prior under other noise than Gaussian uses all copies (``_channel``).

    Equal to ``bayes-estimate`` if attributes and noise are uncorrelated and normal. A reconstructed
    prior loses accuracy with few records or strong noise.
    """

    name = "udr"
    in_all = False
    attack_kind = "per attribute"
    reference = "huang2005, section 4.2, eq. 4"
    knowledge = ("perfect", "estimated")
    assumes = (
        "The adversary knows the law of the noise; a gaussian prior needs each attribute's mean and variance, "
        "or rows to estimate them from."
    )
    wins = (
        "As good as any attack on uncorrelated attributes, with the prior that fits: gaussian on normal data, reconstructed on "
        "clustered or skewed ones; loses to all that use correlations where there are any."
    )

    class Parameters(PluginParameters):
        """Source of the prior."""

        prior: Literal["gaussian", "reconstructed"] = "gaussian"
        """gaussian: the closed form, linear; reconstructed: f_X estimated from the copies"""
        method: Method = "em"
        """how a prior is reconstructed: em, or Agrawal and Srikant's iteration"""
        bins: int | None = Field(None, ge=1, le=2000)
        """bins of a reconstructed prior; by default 100 to 400"""

    def form(self) -> Attack:
        return (
            ReconstructedPrior(self.parameters)
            if self.parameters.prior == "reconstructed"
            else self
        )

    def affine(self, view: View) -> Affine:
        known = isinstance(view.knowledge, Perfect)
        mean, covariance = view.data_moments if known else view.combined
        noise, spread = np.diag(combined_noise(view, covariance)), np.diag(covariance)
        if not known:
            spread = np.clip(spread - noise, 0.0, None)
        return filter_map(view, np.diag(univariate_gain(spread, noise)), mean, fixed=known)


class ReconstructedPrior(RowAttack):
    """Posterior means under reconstructed distributions, for any knowledge."""

    name = UnivariateReconstruction.name
    combines = True
    cost = Cost(4e-3, 1.6e-6)

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        p, found = self.parameters, channels(view)
        priors = reconstructed_priors(found, view, blocks, p.method, p.bins)
        return estimated_by_attribute(histogram_mean, found, priors)


def univariate_gain(variance: Array, noise: Array) -> Array:
    """``g_j = λ_jj / (λ_jj + σ_j²)``, shape (N,); 0 for a constant.

    Parameters
    ----------
    variance, noise : ndarrays of shape (N,)
        ``λ_jj`` and ``σ_j²``, in squared data units.

    Examples
    --------
    >>> univariate_gain(np.array([100.0, 0.0]), np.array([25.0, 25.0]))
    array([0.8, 0. ])
    """
    return quotient(variance, variance + noise, where=variance > 0)


TINY = 1e-300


@register
class DistributionAnalysis(RowAttack):
    """Shortest posterior interval under a reconstructed distribution.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``π_b`` | reconstructed probability of bin b | (B,) | agrawal2000; agrawal2001 |
    | ``P(b | y)`` | ``π_b L_b(y) / Σ π_b' L_b'(y)`` | (B,) | liu2008, section 3.6 |
    | interval | the shortest that holds a share c of ``P(· | y)`` | [low, high] | |
    | ``x̂`` | the median of ``P(· | y)`` | scalar | |

    Attributes are treated separately. Few records or strong noise blur the reconstruction or make
    spikes.
    """

    name = "distribution-analysis"
    attack_kind = "per attribute"
    combines = True
    cost = Cost(4e-3, 1.2e-6)
    reference = "liu2008, section 3.6"
    assumes = "The adversary knows the law of the noise, and that records are independent draws of one distribution."
    wins = "Wins on clustered attributes and bounded noise; on normal data it is udr with an estimated prior."

    class Parameters(PluginParameters):
        """Reconstruction of the distribution."""

        method: Method = "em"
        """em, or Agrawal and Srikant's iteration"""
        bins: int | None = Field(None, ge=2, le=2000)
        """bins of the distribution; by default 100 to 400"""
        domain: list[float] | None = Field(None, min_length=2, max_length=2)
        """[low, high] of every attribute, in data units; by default estimated"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        p, found = self.parameters, channels(view)
        return Localised(
            found, reconstructed_priors(found, view, blocks, p.method, p.bins, p.domain)
        )


class Localised(Reconstruction):
    """Posteriors over bins, per attribute; exact copies give a point."""

    def __init__(self, found: Sequence[Channel], priors: Sequence[Histogram | None]) -> None:
        self._found, self._priors = found, priors
        self._medians = estimated_by_attribute(median, found, priors)
        self._ends: dict[float, ByAttribute] = {}

    def rows(self, copies: Arrays) -> Array:
        return self._medians.rows(copies)

    def intervals(self, copies: Arrays, confidence: float) -> Pair:
        if confidence not in self._ends:
            each = zip(self._found, self._priors, strict=True)
            self._ends[confidence] = ByAttribute([_ends(*one, confidence) for one in each])
        low, high = self._ends[confidence].rows(copies)
        return low, high


def _ends(channel: Channel, prior: Histogram | None, confidence: float) -> Estimate:
    if prior is None:
        return lambda copies: np.stack([channel.value(copies)] * 2)

    def interval(prior: Histogram, channel: Channel, copies: Array) -> Array:
        return np.stack(shortest_interval(prior, channel, copies, confidence))

    return read_off(interval, prior, channel)


def median(prior: Histogram, channel: Channel, copies: Array) -> Array:
    """Posterior median, linear within its bin, shape (b,).

    From the copies alone if the prior cannot explain a row.
    """
    mass, explained = posterior_mass(prior, channel.likelihood(copies, prior.edges))
    cumulative = np.cumsum(mass, axis=1)
    place = np.minimum((cumulative < 0.5).sum(axis=1), mass.shape[1] - 1)[:, None]
    here = np.take_along_axis(mass, place, axis=1)
    before = np.take_along_axis(cumulative, place, axis=1) - here
    share = np.clip(quotient(0.5 - before, here, 0.5, here > TINY), 0.0, 1.0)[:, 0]
    low, high = channel.possible(copies, prior.edges[place[:, 0]], prior.edges[place[:, 0] + 1])
    return np.where(explained, low + share * (high - low), channel.value(copies))


def shortest_interval(prior: Histogram, channel: Channel, copies: Array, confidence: float) -> Pair:
    """Shortest interval with a share of the posterior, shapes (b,).

    One end is a bin edge; the other is linear within its bin. Impossible values are cut off.
    """
    mass, explained = posterior_mass(prior, channel.likelihood(copies, prior.edges))
    y = channel.value(copies)
    low, high = (np.where(explained, end, y) for end in shortest(mass, prior.edges, confidence))
    return channel.possible(copies, low, high)


def shortest(mass: Array, edges: Array, confidence: float) -> Pair:
    """Shortest intervals from bin probabilities, shape (b, B)."""
    up = _from_each_edge(mass, edges, confidence)
    down = -_from_each_edge(mass[:, ::-1], -edges[::-1], confidence)[:, ::-1]
    widths = np.concatenate([up - edges, edges - down], axis=1)
    place = np.nanargmin(np.where(np.isfinite(widths), widths, np.inf), axis=1)
    rows, B1 = np.arange(len(mass)), len(edges)
    upward, edge = place < B1, place % B1
    low = np.where(upward, edges[edge], down[rows, edge])
    high = np.where(upward, up[rows, edge], edges[edge])
    return low, high


def _from_each_edge(mass: Array, edges: Array, confidence: float) -> Array:
    """Ends of the intervals from each edge, (b, B + 1); ∞ if none."""
    cumulative = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)], axis=1)
    target = cumulative + confidence * (1.0 - 1e-12)
    # one search over all rows, offset by 2 each
    rows = np.arange(len(mass))[:, None]
    flat = (cumulative + 2.0 * rows).ravel()
    stop = (
        np.searchsorted(flat, (target + 2.0 * rows).ravel()).reshape(cumulative.shape)
        - rows * cumulative.shape[1]
    )
    reached = stop <= mass.shape[1]
    stop = np.clip(stop, 1, mass.shape[1])
    before, here = cumulative[rows, stop - 1], mass[rows, stop - 1]
    share = quotient(target - before, here, 1.0, here > TINY)
    end = edges[stop - 1] + np.clip(share, 0.0, 1.0) * (edges[stop] - edges[stop - 1])
    return np.where(reached, end, np.inf)


MOST_VALUES = 10_000
"""Most distinct values of an attribute with a known prior."""
CHUNK_VALUES = 2**20


@register
class MaximumAPosteriori(RowAttack):
    """Posterior mode or mean per record, under a chosen prior.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``f_X`` | prior density: ``gaussian``, ``flat``, ``histogram``, ``kde`` or ``known`` | | |
    | ``f_R`` | density of the noise in the coalition's copies | | |
    | mode | ``argmax_x f_R(y − x) f_X(x)`` | (N,) | liu2008, (12.3) |
    | mean | ``∫ x f_R(y − x) f_X(x) dx / ∫ f_R(y − x) f_X(x) dx`` | (N,) | huang2005, section 4 |

    ``histogram`` is reconstructed (``auditor.adversary.view``) and flat in every bin. ``kde``
    smooths it by a normal kernel one bin wide. ``known`` is the table's own value shares, with
    ``perfect`` knowledge: ``P(x | y) ∝ π_x Π_i f_i(y_i − x)`` over the distinct values. These treat
    attributes one at a time, as the Gaussian prior does under other noise. ``histogram`` with
    ``estimate: mean`` is the univariate reconstruction (UDR) of huang2005, section 4.
    """

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

        prior: Literal["gaussian", "flat", "histogram", "kde", "known"] = "histogram"
        """shape of the prior f_X; known: the table's own distribution, with perfect knowledge"""
        estimate: Literal["mode", "mean"] = "mode"
        """what to take of the posterior"""
        method: Method = "em"
        """how a prior is reconstructed: em, or Agrawal and Srikant's iteration"""
        bins: int | None = Field(None, ge=2, le=2000)
        """bins of a reconstructed prior; by default 100 to 400"""

    @property
    def least_squares(self) -> bool:
        return self.parameters.estimate == "mean"

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        p, found = self.parameters, channels(view)
        if p.prior == "flat":
            return ByAttribute([channel.value for channel in found])
        if p.prior == "known":
            mode = p.estimate == "mode"
            return ByAttribute([of_values(view, each, j, mode) for j, each in enumerate(found)])
        if p.prior == "gaussian":
            mu_X, K_X = view.data_moments
            if view.known_law.distribution == "gaussian":
                W = llse_weights(K_X, view.known_law, view.grain)
                return LinearMap(mu_X, np.tile(mu_X, len(view.copies)), W)
            std = deviations(K_X)
            priors = [normal_bins(*each) for each in zip(mu_X, std, found, strict=True)]
        else:
            priors = reconstructed_priors(found, view, blocks, p.method, p.bins)
        if p.prior == "kde":
            priors = [
                prior and smoothed(prior, each.noise)
                for prior, each in zip(priors, found, strict=True)
            ]
        estimate = histogram_mode if p.estimate == "mode" else histogram_mean
        return estimated_by_attribute(estimate, found, priors)


def of_values(view: View, channel: Channel, attribute: int, mode: bool) -> Estimate:
    """Estimator of one attribute's posterior mode or mean.

    Raises
    ------
    NotApplicable
        This knowledge does not give the attribute's distribution, or it has too many values.
    """
    known = view.given.distribution if isinstance(view.given, ExactMoments) else None
    if known is None:
        raise NotApplicable(
            f"needs the distribution of every attribute's values, which {view.knowledge.label} knowledge does not give"
        )
    values, shares = known(attribute)
    if len(values) > MOST_VALUES:
        reason = f"exact posteriors go over at most {MOST_VALUES:,} values"
        raise NotApplicable(
            f"{view.attributes[attribute]} has {len(values):,} distinct values; {reason}"
        )

    def estimate(copies: Array) -> Array:
        parts = (
            copies[start:stop] for start, stop in evenly(0, len(copies), len(values), CHUNK_VALUES)
        )
        return np.concatenate(
            [posterior_estimate(values, shares, channel, part, mode) for part in parts]
        )

    return (lambda copies: _each_once(estimate, copies)) if channel.noise.on_lattice else estimate


def posterior_estimate(
    values: Array, shares: Array, channel: Channel, copies: Array, mode: bool
) -> Array:
    """Mode or mean of the posterior over values, shape (b,).

    A row that no value explains gets the estimate from its copies alone.

    Parameters
    ----------
    values, shares : ndarrays of shape (V,)
        Distinct values and their shares.
    copies : ndarray of shape (b, k)
    """
    if channel.exact:
        return channel.value(copies)
    joint = joint_of(channel, copies, values, shares)
    alone, total = channel.value(copies), joint.sum(axis=1)
    if mode:
        return np.where(total > 0, values[joint.argmax(axis=1)], alone)
    return quotient(joint @ values, total, alone)

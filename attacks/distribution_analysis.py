"""Distribution analysis: localise records by a reconstructed distribution.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``π_b`` | reconstructed probability of bin b | (B,) | agrawal2000; agrawal2001 |
| ``P(b | y)`` | ``π_b L_b(y) / Σ π_b' L_b'(y)`` | (B,) | liu2008, section 3.6 |
| interval | the shortest that holds a share c of ``P(· | y)`` | [low, high] | |
| ``x̂`` | the median of ``P(· | y)`` | scalar | |

Attributes are treated separately. Few records or strong noise blur the reconstruction or make
spikes.
"""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from auditor.adversary.single_copy import Histogram, Method
from auditor.numerics.linear_algebra import quotient
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    Pair,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
)

from ._channel import Channel, channels
from ._posterior import (
    ByAttribute,
    Estimate,
    estimated_by_attribute,
    posterior_mass,
    read_off,
    reconstructed_priors,
)

TINY = 1e-300


@register
class DistributionAnalysis(RowAttack):
    """Shortest posterior interval under a reconstructed distribution."""

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

"""Joint posterior mean with a population sample as the prior.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``ȳ, Sigma_r`` | the copies' least noisy combination, and the covariance of its noise | (N,), (N, N) | ``mixture_estimate`` |
| ``x_j`` | records of the sample, m of them | (m, N) | robbins1956, with a sample for its prior |
| ``h² K`` | covariance of a normal kernel about each: ``K`` of the data, from records and copies, h the bandwidth | (N, N) | |
| ``q_j`` | ``∝ N(ȳ; x_j, h² K + Sigma_r)`` | scalar | |
| ``x̂`` | ``Σ_j q_j (x_j + h² K (h² K + Sigma_r)⁻¹ (ȳ − x_j))`` | (N,) | |

Work is linear in rows and in the sample. The bandwidth maximises the likelihood of at most 2,000
rows of the copies; 0 suits discrete values. ``K`` combines the records' covariance and the copies'
less their noise (``weighed_covariance``).

Under noise of another law the weights are ``q_j ∝ Π_a Π_i f_ia(y_ia − x_ja)`` over attributes and
copies. The kernels are replaced by random points: 2,000 in all, or one per record of a larger
sample.

Tends to the exact posterior mean as the sample grows. *Not checked*: that it is of this population.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import Field

from auditor.adversary.view import Originals
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import Pencil, quotient
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    PluginParameters,
    Reconstruction,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

from ._channel import LEAST, Channel, by_attribute, channels
from ._deconvolution import GRAIN, normalised
from ._fits import some_rows
from .mixture_estimate import Seen, least_noise, normal_prior

POINTS = 2_000
"""Points drawn from the kernels in all. A larger sample has one per record."""
CHUNK_VALUES = 2**18
"""Pairs of a row and a record per piece: two megabytes, which stay in the cache."""
JUDGING_ROWS = 2_000
"""Rows of the copies used to choose the bandwidth."""
JUDGING_POINTS = 200
"""Rows used if points are drawn from the kernels, which is slower."""
BANDWIDTHS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
"""In standard deviations of the data; the likelihood changes little between neighbours."""


@register
class SampleEstimate(RowAttack):
    """Joint posterior mean over a population sample or known records."""

    name = "sample-estimate"
    attack_kind = "with a sample"
    combines = True
    cost = Cost(3e-3, 5e-6)
    reference = "robbins1956; huang2005, eq. 4"
    knowledge = ("known-sample", "unmatched-records", "known-records")
    assumes = "The adversary knows the law of the noise, and has records of the same population."
    wins = (
        "Wins with a sample that fills the space that the data do, whatever their distribution; with few records it loses to "
        "mixture-estimate, and gains nothing from a second corner-wave copy."
    )

    class Parameters(PluginParameters):
        """Width of the kernels."""

        bandwidth: float | None = Field(None, ge=0, le=10)
        """of the kernel, in standard deviations of the data; by default the one that makes the copies most likely"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        known = view.need(Originals).original
        seen, bandwidth = seen_with(view, known), self.parameters.bandwidth
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        widths = BANDWIDTHS if bandwidth is None else [bandwidth]
        if view.law is None or view.law.distribution == "gaussian":
            records = (known - seen.mu) @ seen.pencil.inverse.T
            kernels = [Kernel(records, seen.pencil.share, width) for width in widths]
            u = seen.coordinates(np.split(rows[:JUDGING_ROWS], len(view.copies), axis=1))
            return _OverSample(seen, max(kernels, key=lambda kernel: kernel.log_likelihood(u)))
        found = channels(view)
        drawn = [
            kernel_points(known, seen.pencil, h, found, stream(view.seed, self.name, "kernel"))
            for h in widths
        ]
        judging = np.split(rows[:: max(1, len(rows) // JUDGING_POINTS)], len(view.copies), axis=1)
        priors = [OverRecords(found, points) for points in drawn]
        return max(priors, key=lambda prior: prior.log_likelihood(judging))


def seen_with(view: View, known: Array) -> Seen:
    """Coalition's combination, with ``K`` improved by records.

    Known records have shape (m, N).

    ``NotApplicable`` without a noise law.
    """
    W = least_noise(view)
    mu, from_copies, Sigma_r = normal_prior(view, W)
    K = weighed_covariance(
        np.atleast_2d(np.cov(known.T, bias=True)), len(known), from_copies, view.held.count, Sigma_r
    )
    return Seen(W, view.centre, mu, Pencil.of(K, Sigma_r))


def weighed_covariance(
    from_records: Array, m: int, from_copies: Array, n: int, Sigma_r: Array
) -> Array:
    """Data's covariance from m records and n copies, shape (N, N).

    Weighted by precision, per attribute: variances are ``2K²/m``, and ``2(K + Sigma_r)²/n`` for the
    copies. Roots of the weights on both sides keep the sum positive semi-definite.
    """
    # a few records may all be equal
    own = np.where(np.diag(from_records) > 0, np.diag(from_records), np.diag(from_copies))
    total = own + np.diag(Sigma_r)
    precision = n * quotient(own, total, 1.0) ** 2
    records = m - 1
    share = quotient(precision, precision + records, 1.0)
    a, b = np.sqrt(1.0 - share), np.sqrt(share)
    return np.outer(a, a) * from_records + np.outer(b, b) * from_copies


class Kernel:
    """Normal kernels at records, with noise of variances ``1 − c``.

    Both are diagonal. ``records`` have shape (m, r); ``share``, shape (r,), is ``c``, the data's variance
    per direction. Data and noise have 1 together.
    """

    def __init__(self, records: Array, share: Array, bandwidth: float) -> None:
        width = bandwidth**2 * share
        total = width + 1.0 - share + GRAIN
        self._records, self._towards, self._scale = records, width / total, 1.0 / np.sqrt(total)
        self._points = records * self._scale
        self._half_squares = 0.5 * (self._points**2).sum(axis=1)

    def _weigh(self, u: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield pieces of rows, their ``q``, (m, b), and log-sums, (b,)."""
        for start, stop in evenly(0, len(u), len(self._records), CHUNK_VALUES):
            z = u[start:stop] * self._scale
            q, log_sum = normalised(self._points @ z.T - self._half_squares[:, None])
            yield slice(start, stop), q, log_sum - 0.5 * (z**2).sum(axis=1)

    def log_likelihood(self, u: Array) -> float:
        """Log-likelihood of rows, up to a constant of all kernels."""
        found = len(u) * float(np.log(self._scale).sum())
        return found + sum(float(log_sum.sum()) for _, _, log_sum in self._weigh(u))

    def mean(self, u: Array) -> Array:
        """``Σ_j q_j (x_j + g (u − x_j))``, shape (b, r).

        g is the kernel's share of the variance.
        """
        out = np.empty_like(u)
        for here, q, _ in self._weigh(u):
            out[here] = q.T @ self._records
        return out + self._towards * (u - out)


@unprinted
class _OverSample(Reconstruction):
    seen: Seen
    kernel: Kernel

    def rows(self, copies: Arrays) -> Array:
        return self.seen.values(self.kernel.mean(self.seen.coordinates(copies)))


def kernel_points(
    records: Array,
    pencil: Pencil,
    bandwidth: float,
    found: Sequence[Channel],
    rng: np.random.Generator,
) -> Array:
    """Draw about ``POINTS`` points, at least one per record.

    Whole units on a lattice.
    """
    if bandwidth == 0.0:
        return records
    points = np.tile(records, (-(-POINTS // len(records)), 1))
    normal = rng.standard_normal((len(points), pencil.share.size)) * np.sqrt(pencil.share)
    steps = bandwidth * normal @ pencil.basis.T
    unit = np.array([channel.noise.unit if channel.noise.on_lattice else 0.0 for channel in found])
    return points + np.where(unit > 0, unit * np.rint(steps / np.where(unit > 0, unit, 1.0)), steps)


class OverRecords(Reconstruction):
    """Posterior mean over equally likely points, under noise of any law."""

    def __init__(self, found: Sequence[Channel], records: Array) -> None:
        self._found, self._records = found, records
        self._noisy = np.array([not channel.exact for channel in found])

    def rows(self, copies: Arrays) -> Array:
        means = []
        for seen, q, log_sum in self._weigh(copies):
            each = [channel.value(y) for channel, y in zip(self._found, seen, strict=True)]
            possible = (log_sum > LEAST)[:, None] & self._noisy
            means.append(np.where(possible, q.T @ self._records, np.column_stack(each)))
        return np.concatenate(means)

    def log_likelihood(self, copies: Arrays) -> float:
        """Log-likelihood of rows; an impossible row counts ``LEAST``."""
        return sum(float(log_sum.sum()) for _, _, log_sum in self._weigh(copies))

    def _weigh(self, copies: Arrays) -> Iterator[tuple[list[Array], Array, Array]]:
        """Yield pieces of rows by attribute, ``q``, (m, b), and log-means, (b,)."""
        for start, stop in evenly(0, len(copies[0]), len(self._records), CHUNK_VALUES):
            seen = by_attribute([copy[start:stop] for copy in copies])
            log_q = np.zeros((len(seen[0]), len(self._records)))
            for channel, y, values in zip(self._found, seen, self._records.T, strict=True):
                log_q += 0.0 if channel.exact else channel.log_likelihood(y, values)
            q, log_sum = normalised(np.maximum(log_q.T, LEAST))
            yield seen, q, log_sum - np.log(len(self._records))

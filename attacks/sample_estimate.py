"""Joint posterior mean with a population sample as the prior.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``ȳ, Sigma_r`` | the copies' least noisy combination, and the covariance of its noise | (N,), (N, N) | ``mixture_estimate`` |
| ``x_j`` | records of the sample, m of them | (m, N) | robbins1956, with a sample for its prior |
| ``h² K`` | covariance of a normal kernel about each: ``K`` of the data, from records and copies, h the bandwidth | (N, N) | |
| ``q_j`` | ``∝ N(ȳ; x_j, h² K + Sigma_r)`` | scalar | |
| ``x̂`` | ``Σ_j q_j (x_j + h² K (h² K + Sigma_r)⁻¹ (ȳ − x_j))`` | (N,) | |

In coordinates with diagonal ``K`` and ``Sigma_r`` (``Pencil``) the work is linear in rows and in
the sample. Bandwidth 0 suits discrete values but leaves gaps in a small sample. So the bandwidth
maximises the likelihood of at most 2,000 rows of the copies. ``K`` combines the records' covariance
and the copies' less their noise (``weighed_covariance``).

Under noise of another law the weights are ``q_j ∝ Π_a Π_i f_ia(y_ia − x_ja)`` over attributes and
copies. The kernels are replaced by random points: 2,000 in all, or one per record of a larger
sample.

As the sample grows this tends to the exact posterior mean, optimal in squared error for any
distribution. Fails with few records or many attributes, where distances between records exceed the
noise. That the sample is of this population is *not checked*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import Pencil
from auditor.plugin import (
    Array,
    Cost,
    KnownRecords,
    KnownSample,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    UnmatchedRecords,
    UnpairedRecords,
    View,
    register,
    stream,
)

from ._deconvolution import GRAIN
from ._fastica import some_rows
from ._posterior import channels
from ._sample_points import OverRecords, kernel_points
from .mixture_estimate import Seen, least_noise, normal_prior

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
    knowledge = (KnownSample.name, UnmatchedRecords.name, KnownRecords.name)
    assumes = "The adversary knows the law of the noise, and has records of the same population."
    wins = (
        "Wins with a sample that fills the space that the data do, whatever their distribution; with few records it loses to "
        "mixture-estimate, and gains nothing from a second corner-wave copy."
    )

    class Parameters(PluginParameters):
        """Width of the kernels."""

        bandwidth: Annotated[float, Field(ge=0, le=10)] | None = Field(
            None,
            description="of the kernel, in standard deviations of the data; by default the one that makes the copies most likely",
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the posterior mean over the sample."""
        known = (
            view.given.original
            if isinstance(view.given, Records)
            else view.need(UnpairedRecords).original
        )
        seen = seen_with(view, known)
        if view.law is not None and view.law.distribution != "gaussian":
            return self._under_any_law(view, blocks, known, seen)
        records = (known - seen.mu) @ seen.pencil.inverse.T
        if self.parameters.bandwidth is not None:
            return _OverSample(seen, Kernel(records, seen.pencil.share, self.parameters.bandwidth))
        u = some_rows(blocks, stream(view.seed, self.name, "rows"), seen.coordinates)[:JUDGING_ROWS]
        kernels = [Kernel(records, seen.pencil.share, bandwidth) for bandwidth in BANDWIDTHS]
        return _OverSample(seen, max(kernels, key=lambda kernel: kernel.log_likelihood(u)))

    def _under_any_law(
        self, view: View, blocks: Iterable[list[Array]], known: Array, seen: Seen
    ) -> OverRecords:
        """Return the posterior mean over points drawn from the kernels."""
        found, bandwidth = channels(view), self.parameters.bandwidth

        def over(width: float) -> OverRecords:
            return OverRecords(
                found,
                kernel_points(
                    known, seen.pencil, width, found, stream(view.seed, self.name, "kernel")
                ),
            )

        if bandwidth is not None:
            return over(bandwidth)
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        judging = np.split(rows[:: max(1, len(rows) // JUDGING_POINTS)], len(view.copies), axis=1)
        return max(map(over, BANDWIDTHS), key=lambda kernel: kernel.log_likelihood(judging))


def seen_with(view: View, known: Array) -> Seen:
    """Return a coalition's combination, with ``K`` improved by known records.

    ``known`` has shape (m, N).

    Raises
    ------
    NotApplicable
        The law of the noise is unknown.
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
    """Return the data's covariance from m records and n copies, shape (N, N).

    Both estimates are weighted by precision. The variances are ``2K²/m``, and ``2(K + Sigma_r)²/n``
    for the copies less their noise. Weights are per attribute; their roots on both sides keep the
    sum positive semi-definite.
    """
    # a few records may all be equal
    own = np.where(np.diag(from_records) > 0, np.diag(from_records), np.diag(from_copies))
    total = own + np.diag(Sigma_r)
    # of the copies, in units of 1/2K²
    precision = n * np.divide(own, total, out=np.ones_like(total), where=total > 0) ** 2
    records = m - 1  # one number: rounding of a sum could leave a share above 1
    share = np.divide(
        precision, precision + records, out=np.ones_like(total), where=precision + records > 0
    )
    a, b = np.sqrt(1.0 - share), np.sqrt(share)
    return np.asarray(np.outer(a, a) * from_records + np.outer(b, b) * from_copies)


class Kernel:
    """Normal kernels at records, with noise of variances ``1 − c``.

    Both are diagonal in these coordinates.

    Parameters
    ----------
    records : ndarray of shape (m, r)
        ``x_j``.
    share : ndarray of shape (r,)
        ``c``, the data's variance per direction; data and noise have 1 together.
    bandwidth : float
        ``h``.
    """

    def __init__(self, records: Array, share: Array, bandwidth: float) -> None:
        width, noise = bandwidth**2 * share, 1.0 - share
        total = width + noise + GRAIN
        self._records, self._towards = records, width / total
        self._scale = 1.0 / np.sqrt(total)
        self._points = records * self._scale
        self._half_squares = 0.5 * np.einsum("mr,mr->m", self._points, self._points)

    def _weigh(self, u: Array) -> tuple[Array, Array]:
        """Return ``q`` up to a factor per row, (b, m), and the largest log, (b,)."""
        q = (u * self._scale) @ self._points.T
        q -= self._half_squares
        top = q.max(axis=1, keepdims=True)
        q -= top
        np.exp(q, out=q)
        return q, top[:, 0]

    def log_likelihood(self, u: Array) -> float:
        """Return the log-likelihood of rows, up to a constant of all kernels."""
        found = len(u) * float(np.log(self._scale).sum())
        for start, stop in evenly(0, len(u), len(self._records), CHUNK_VALUES):
            q, top = self._weigh(u[start:stop])
            found += float((np.log(q.sum(axis=1)) + top).sum())
        return found - 0.5 * float(((u * self._scale) ** 2).sum())

    def mean(self, u: Array) -> Array:
        """Return ``Σ_j q_j (x_j + g (u − x_j))``, shape (b, r).

        ``g`` is the kernel's share of the variance of kernel and noise.
        """
        out = np.empty_like(u)
        for start, stop in evenly(0, len(u), len(self._records), CHUNK_VALUES):
            q, _ = self._weigh(u[start:stop])
            out[start:stop] = (q @ self._records) / q.sum(axis=1, keepdims=True)
        return np.asarray(out + self._towards * (u - out))


class _OverSample(Reconstruction):
    def __init__(self, seen: Seen, kernel: Kernel) -> None:
        self._seen, self._kernel = seen, kernel

    def rows(self, copies: Sequence[Array]) -> Array:
        return self._seen.values(self._kernel.mean(self._seen.coordinates(copies)))

"""Posterior mean of all attributes together, with a sample of the population for a prior: which of the people I know could this copy be of?

Whoever has other draws from the population, or some of the table's records in clear, needs no model of it: every record of the sample is a
guess, weighed by how likely the noise is that would make the copies of it.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``ȳ, Sigma_r`` | the copies' combination of least noise, and the covariance of its noise | (N,), (N, N) | ``mixture_estimate`` |
| ``x_j`` | records of the sample, m of them | (m, N) | robbins1956, with a sample for its prior |
| ``h² K`` | covariance of a normal kernel about each: ``K`` of the data, from records and copies, h the bandwidth | (N, N) | |
| ``q_j`` | ``∝ N(ȳ; x_j, h² K + Sigma_r)`` | scalar | |
| ``x̂`` | ``Σ_j q_j (x_j + h² K (h² K + Sigma_r)⁻¹ (ȳ − x_j))`` | (N,) | |

In coordinates in which ``K`` and ``Sigma_r`` are diagonal (``Pencil``) the kernel is so, too, and all rows against all records of the
sample are two matrix products and an exponential, block by block: linear in rows and in the sample. With no bandwidth the posterior is over
the sample's records themselves, which is right where values are few; between the points of a small sample there is nothing then. So the
bandwidth is chosen under which the copies are most likely, on at most 2,000 of their rows.

``K`` is the records' covariance and the copies' less their noise, each weighed as far as it is known (``weighed_covariance``). So strong
noise leaves the sample's mean; without a bandwidth weak noise leaves the nearest of its records, with one the value itself; and a large
sample of normal data is ``llse``.

Under noise of another law the weights are products of its densities over attributes and copies, ``q_j ∝ Π_a Π_i f_ia(y_ia − x_ja)``, of any
number of copies. A normal kernel has no closed density behind such noise, so points are drawn from it instead: 2,000 in all, or one for
each record of a larger sample. Weak noise then needs more of them than strong noise does.

Best of all attacks, in squared error, as the sample grows, whatever the distribution: with ever more records it is the exact posterior
mean. Wins with a sample that fills the space that the data do; fails with few records or many attributes, as distances between records are
then larger than the noise: ``mixture-estimate`` learns a prior from all the copies' rows. That the sample is of the same population is
*not checked*.
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
"""Pairs of a row and a record of the sample that are weighed at once: two megabytes, which stay in the cache."""
JUDGING_ROWS = 2_000
"""Rows of the copies that choose the bandwidth."""
JUDGING_POINTS = 200
"""The same where points are drawn from the kernels, which takes longer."""
BANDWIDTHS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
"""In standard deviations of the data; the likelihood changes little between neighbours."""


@register
class SampleEstimate(RowAttack):
    """Posterior mean of all attributes together, over the records of a population sample, or of records known in clear."""

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
        """How far each record of the sample stands for others."""

        bandwidth: Annotated[float, Field(ge=0, le=10)] | None = Field(
            None,
            description="of the kernel, in standard deviations of the data; by default the one that makes the copies most likely",
        )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the posterior mean over the sample."""
        known = view.given.original if isinstance(view.given, Records) else view.need(UnpairedRecords).original
        seen = seen_with(view, known)
        if view.law is not None and view.law.distribution != "gaussian":
            return self._under_any_law(view, blocks, known, seen)
        records = (known - seen.mu) @ seen.pencil.inverse.T
        if self.parameters.bandwidth is not None:
            return _OverSample(seen, Kernel(records, seen.pencil.share, self.parameters.bandwidth))
        u = some_rows(blocks, stream(view.seed, self.name, "rows"), seen.coordinates)[:JUDGING_ROWS]
        kernels = [Kernel(records, seen.pencil.share, bandwidth) for bandwidth in BANDWIDTHS]
        return _OverSample(seen, max(kernels, key=lambda kernel: kernel.log_likelihood(u)))


    def _under_any_law(self, view: View, blocks: Iterable[list[Array]], known: Array, seen: Seen) -> OverRecords:
        """Return the posterior mean over points drawn from the kernels."""
        found, bandwidth = channels(view), self.parameters.bandwidth

        def over(width: float) -> OverRecords:
            return OverRecords(found, kernel_points(known, seen.pencil, width, found, stream(view.seed, self.name, "kernel")))

        if bandwidth is not None:
            return over(bandwidth)
        rows = some_rows(blocks, stream(view.seed, self.name, "rows"))
        judging = np.split(rows[:: max(1, len(rows) // JUDGING_POINTS)], len(view.copies), axis=1)
        return max(map(over, BANDWIDTHS), key=lambda kernel: kernel.log_likelihood(judging))


def seen_with(view: View, known: Array) -> Seen:
    """Return what a coalition sees, its estimate of the data's covariance sharpened by records in clear, shape (m, N).

    Raises
    ------
    NotApplicable
        The law of the noise is unknown.
    """
    W = least_noise(view)
    mu, from_copies, Sigma_r = normal_prior(view, W)
    K = weighed_covariance(np.atleast_2d(np.cov(known.T, bias=True)), len(known), from_copies, view.held.count, Sigma_r)
    return Seen(W, view.centre, mu, Pencil.of(K, Sigma_r))


def weighed_covariance(from_records: Array, m: int, from_copies: Array, n: int, Sigma_r: Array) -> Array:
    """Return the data's covariance, shape (N, N), from m records in clear and n copies less their noise, each as far as it is known.

    Variances are estimated to ``2K²/m`` and to ``2(K + Sigma_r)²/n``: where noise is strong a few records in clear tell more than all of
    the copies, whose covariance is a small difference of large numbers. Every attribute has its own weights; roots of them on both sides
    keep the sum positive semi-definite.
    """
    own = np.where(np.diag(from_records) > 0, np.diag(from_records), np.diag(from_copies))  # of few records all may be the same
    total = own + np.diag(Sigma_r)
    precision = n * np.divide(own, total, out=np.ones_like(total), where=total > 0) ** 2  # of the copies, in units of 1/2K²
    records = m - 1  # added as one number: a sum that rounding left below precision would be a share above 1
    share = np.divide(precision, precision + records, out=np.ones_like(total), where=precision + records > 0)
    a, b = np.sqrt(1.0 - share), np.sqrt(share)
    return np.asarray(np.outer(a, a) * from_records + np.outer(b, b) * from_copies)


class Kernel:
    """A normal about each record of a sample, seen through noise of variances ``1 − c``, in coordinates where both are diagonal.

    Parameters
    ----------
    records : ndarray of shape (m, r)
        ``x_j``.
    share : ndarray of shape (r,)
        ``c``, the data's variance in each direction, where data and noise together have 1.
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
        """Return ``q`` up to each row's own factor, shape (b, m), and the largest exponent, less what is the row's own, shape (b,)."""
        q = (u * self._scale) @ self._points.T
        q -= self._half_squares
        top = q.max(axis=1, keepdims=True)
        q -= top
        np.exp(q, out=q)
        return q, top[:, 0]

    def log_likelihood(self, u: Array) -> float:
        """Return the log-likelihood of rows, up to a constant that is the same for every kernel."""
        found = len(u) * float(np.log(self._scale).sum())
        for start, stop in evenly(0, len(u), len(self._records), CHUNK_VALUES):
            q, top = self._weigh(u[start:stop])
            found += float((np.log(q.sum(axis=1)) + top).sum())
        return found - 0.5 * float(((u * self._scale) ** 2).sum())

    def mean(self, u: Array) -> Array:
        """Return ``Σ_j q_j (x_j + g (u − x_j))``, shape (b, r), with ``g`` the kernel's share of kernel and noise."""
        out = np.empty_like(u)
        for start, stop in evenly(0, len(u), len(self._records), CHUNK_VALUES):
            q, _ = self._weigh(u[start:stop])
            out[start:stop] = (q @ self._records) / q.sum(axis=1, keepdims=True)
        return np.asarray(out + self._towards * (u - out))


class _OverSample(Reconstruction):
    """``x̂`` row by row."""

    def __init__(self, seen: Seen, kernel: Kernel) -> None:
        self._seen, self._kernel = seen, kernel

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the posterior means of one block of rows."""
        return self._seen.values(self._kernel.mean(self._seen.coordinates(copies)))

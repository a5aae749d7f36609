"""Bayes' rule over sample points, for noise of any law.

Noise must be independent between attributes. ``q_j ∝ Π_a Π_i f_ia(y_ia − x_ja)`` over attributes a
and copies i weights point j. A ``Channel`` gives each attribute's likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import Pencil
from auditor.plugin import Array, Reconstruction

from ._channel import Channel
from ._posterior import by_attribute
from ._product import LEAST

POINTS = 2_000
"""Kernel points in all. A larger sample has one per record."""
CHUNK_VALUES = 2**16
"""Pairs of row and point per piece: half a megabyte, which stays in the cache."""


def kernel_points(
    records: Array,
    pencil: Pencil,
    bandwidth: float,
    found: Sequence[Channel],
    rng: np.random.Generator,
) -> Array:
    """Draw about ``POINTS`` points from normal kernels at the records.

    At least one per record. On a lattice the steps are whole units.
    """
    if bandwidth == 0.0:
        return records
    points = np.tile(records, (-(-POINTS // len(records)), 1))
    steps = (
        bandwidth
        * (rng.standard_normal((len(points), pencil.share.size)) * np.sqrt(pencil.share))
        @ pencil.basis.T
    )
    unit = np.array([channel.noise.unit if channel.noise.on_lattice else 0.0 for channel in found])
    return points + np.where(unit > 0, unit * np.rint(steps / np.where(unit > 0, unit, 1.0)), steps)


class OverRecords(Reconstruction):
    """Posterior mean over equally likely points.

    Parameters
    ----------
    found : sequence of N Channel
    records : ndarray of shape (m, N)
    """

    def __init__(self, found: Sequence[Channel], records: Array) -> None:
        self._found, self._records = found, records

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the posterior means of one block of rows.

        A row that no point can explain gets the estimate from its copies alone.
        """
        return np.concatenate([self._means(part) for part in self._parts(copies)])

    def log_likelihood(self, copies: Sequence[Array]) -> float:
        """Return the log-likelihood of rows; an impossible row counts ``LEAST``."""
        found = 0.0
        for part in self._parts(copies):
            q, top = self._weigh(part)
            found += float(
                (np.log(np.maximum(q.mean(axis=1), 1e-300)) + np.maximum(top[:, 0], LEAST)).sum()
            )
        return found

    def _parts(self, copies: Sequence[Array]) -> Iterator[list[Array]]:
        for start, stop in evenly(0, len(copies[0]), len(self._records), CHUNK_VALUES):
            yield by_attribute([copy[start:stop] for copy in copies])

    def _weigh(self, seen: Sequence[Array]) -> tuple[Array, Array]:
        """Return ``q`` over each row's largest, (b, m), and its log, (b, 1)."""
        log_q = np.zeros((len(seen[0]), len(self._records)))
        for channel, y, values in zip(self._found, seen, self._records.T, strict=True):
            log_q += 0.0 if channel.exact else channel.log_likelihood(y, values)
        top = log_q.max(axis=1, keepdims=True)
        return np.exp(log_q - np.where(np.isfinite(top), top, 0.0)), top

    def _means(self, seen: Sequence[Array]) -> Array:
        alone = np.column_stack(
            [channel.value(y) for channel, y in zip(self._found, seen, strict=True)]
        )
        noisy = np.array([not channel.exact for channel in self._found])
        q, top = self._weigh(seen)
        possible = np.isfinite(top)
        means = q @ self._records / np.where(possible, q.sum(axis=1, keepdims=True), 1.0)
        return np.where(possible & noisy, means, alone)

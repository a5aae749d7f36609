"""Directions with independent noise: attributes less their regressions.

| symbol | meaning | shape |
| --- | --- | --- |
| ``W`` | combination of k copies that is sufficient under Gaussian noise | (N, kN) |
| ``Σ_r`` | covariance of its noise | (N, N) |
| ``T`` | ``T Σ_r Tᵀ`` is diagonal within each group of attributes | (N, N) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.numerics.linear_algebra import regression
from auditor.plugin import Array, Indices, NoiseDensity, View

from ._channel import Channel, Combined
from ._posterior import channels
from .mixture_estimate import least_noise, normal_prior


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions with independent noise, and one channel for each.

    Attributes
    ----------
    TW : ndarray of shape (N, kN) or None
        From copies to the sufficient combination along the directions. None uses the copies
        unchanged.
    T, back : ndarrays of shape (N, N)
        From attributes to directions, and back.
    channels : sequence of N Channel
    """

    TW: Array | None = field(repr=False)
    T: Array = field(repr=False)
    back: Array = field(repr=False)
    channels: Sequence[Channel] = field(repr=False)

    def copies(self, copies: Sequence[Array]) -> list[Array]:
        """Return copies, or their sufficient combination, along the directions."""
        return [np.asarray(np.hstack(copies) @ self.TW.T)] if self.TW is not None else list(copies)


def directions(view: View, groups: Sequence[Indices]) -> Directions:
    """Return directions with independent noise within every group.

    Raises
    ------
    NotApplicable
        The noise law is unknown, or neither Gaussian nor independent between attributes.
    """
    identity = np.eye(view.width)
    if view.law is not None and view.law.distribution != "gaussian":
        return Directions(None, identity, identity, channels(view))
    W = least_noise(view)
    Sigma_r = normal_prior(view, W)[2]
    T, std = identity.copy(), np.zeros(view.width)
    for group in groups:
        T[np.ix_(group, group)], std[group] = independent(Sigma_r[np.ix_(group, group)])
    return Directions(
        T @ W,
        T,
        np.asarray(np.linalg.inv(T)),
        [Combined(NoiseDensity("gaussian", float(s)), np.ones(1)) for s in std],
    )


def independent(Sigma: Array) -> tuple[Array, Array]:
    """Return ``T``, unit lower triangular, and the deviations of ``T z``.

    ``T z`` has independent entries: each attribute less its regression on the attributes before it.
    ``Sigma``, shape (p, p), may be singular.

    Examples
    --------
    >>> T, std = independent(np.array([[4.0, 2.0], [2.0, 2.0]]))
    >>> T.tolist(), std.tolist()
    ([[1.0, 0.0], [-0.5, 1.0]], [2.0, 1.0])
    """
    T = np.eye(len(Sigma))
    for j in range(1, len(Sigma)):
        T[j, :j] = -regression(Sigma[j : j + 1, :j], Sigma[:j, :j])
    return T, np.sqrt(np.clip(np.einsum("ij,jk,ik->i", T, Sigma, T), 0.0, None))

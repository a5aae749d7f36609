"""Record linkage: find a target's row in perturbed copies by known values.

The odds compare a row's likelihood as the target's copy and as any person's (Fellegi and Sunter).

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``x_K`` | a target's known values | (|K|,) | |
| ``ȳ, Sigma_r`` | the copies' least noisy combination, and the covariance of its noise | (N,), (N, N) | ``mixture_estimate`` |
| ``m, K_{X|K}`` | ``mu_X + B (x_K − mu_K)`` and its covariance, given the known | (N,), (N, N) | ``partial_disclosure`` |
| odds | ``N(ȳ; m, K_{X|K} + Sigma_r) / N(ȳ; mu_X, K_X + Sigma_r)`` | scalar | fellegi1969 |
| distance | ``(ȳ_K − x_K)ᵀ (Sigma_r,KK + D)⁻¹ (ȳ_K − x_K)``: Mahalanobis, on the known attributes alone | scalar | |
| ``D`` | diagonal covariance of the noise in the adversary's ``x_K`` | (|K|, |K|) | |
| assignment | ``argmax_σ Σ_t log odds(t, σ(t))`` over all one-to-one maps from targets to rows | | |

On normal data no rule names more rows correctly than the odds. The assignment is the
maximum-likelihood pairing of all targets. The estimate is ``llse``'s of the named row.

Under noise of another law the known attributes use their exact log-likelihood, ``Σ_a Σ_i log
f_ia(y_ia − x_a)``, and the others the odds. Copies without a law need ``distance``: Euclidean to
the copies' mean, in deviations of each attribute.

The adversary's values are exact unless ``noise`` is set; their noise is normal and independent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import in_own_units, regression
from auditor.plugin import (
    Array,
    Arrays,
    AuditorError,
    CopyBlocks,
    Cost,
    Indices,
    NoiseDensity,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    Table,
    View,
    register,
    scipy,
)

from ._channel import LEAST, Channel, Combined, channels
from .mixture_estimate import least_noise
from .partial_disclosure import given

FINEST = 1e-14
"""Least variance of a difference relative to the data's: the resolution of covariances in
doubles."""

ASSIGNMENT = Cost(4e-4, 2e-7, memory=64 * 2**20)
"""Cost of an assignment: up to four million odds, twice, and the solver."""
MOST_ROWS = 20_000
"""Most rows of a table for an assignment; every hundredth is a target in the largest."""
Share = Annotated[float, Field(ge=0, le=1e6)]


@register
class RecordLinkage(RowAttack):
    """Name each target's row by known attributes."""

    name = "record-linkage"
    attack_kind = "naming"
    reference = "fellegi1969; liu2008, section 3.5"
    knowledge = ("known-attributes",)
    assumes = "The adversary knows the law of the noise (not needed by distance), the data's moments, and attributes of its targets."
    wins = (
        "Wins with little noise on several known attributes; under noise as large as the data it names hardly more than chance does, and "
        "gains nothing from a second corner-wave copy."
    )

    class Parameters(PluginParameters):
        """Comparison of rows."""

        by: Literal["odds", "distance"] = "odds"
        """posterior odds, or Mahalanobis distance on the known attributes alone"""
        noise: Share | dict[str, Share] = 0.0
        """variance of the noise in what is known of targets, as a share of the attribute's: of all of them, or by name"""
        assignment: bool = False
        """name all targets at once, each row once at most; tables of at most 20,000 rows"""

    def cost_under(self, distribution: str | None) -> Cost:
        return ASSIGNMENT if self.parameters.assignment else self.cost

    def check_table(self, table: Table) -> None:
        noise = self.parameters.noise
        unknown = sorted(set(noise) - set(table.attributes)) if isinstance(noise, dict) else []
        if unknown:
            raise AuditorError(
                f"noise: the table has no attribute {unknown[0]!r}; it has {', '.join(table.attributes)}"
            )

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        if self.parameters.assignment and view.released.count > MOST_ROWS:
            raise NotApplicable(
                "an assignment weighs all rows against all targets at once, at most 20,000 rows of them"
            )
        known, (mu, K_X) = view.known_columns, view.data_moments
        own = self._own_noise([view.attributes[place] for place in known]) * np.diag(K_X)[known]
        alone = self.parameters.by == "distance"
        if alone and view.law is None:  # equal weights
            W, Sigma_r, gain = view.averaging, np.diag(np.diag(K_X)), np.eye(view.width)
        else:
            W = least_noise(view)
            Sigma_r = W @ view.known_law.covariance @ W.T
            gain = regression(K_X, K_X + Sigma_r)
        pick, seen = np.eye(view.width), []
        if alone:
            U = np.ix_(known, known)
            B, R_0 = pick[:, known], np.zeros((0, view.width))
            R = whitening(Sigma_r[U] + np.diag(own), K_X[U]) @ pick[known]
        else:
            used = np.arange(view.width)
            if view.known_law.distribution != "gaussian":
                seen, used = _known_channels(view, K_X, own), np.setdiff1d(used, known)
            U, (B, conditional) = np.ix_(used, used), given(K_X, known, own)
            R, R_0 = (whitening((K + Sigma_r)[U], K_X[U]) @ pick[used] for K in (conditional, K_X))
        comparison = Comparison(W, view.centre, mu, gain, known, B, R, R_0, seen)
        comparison.known_noise = np.sqrt(own) if own.any() else None
        comparison.assigns = self.parameters.assignment
        return comparison

    def _own_noise(self, names: Sequence[str]) -> Array:
        noise = self.parameters.noise
        by_name = noise if isinstance(noise, dict) else dict.fromkeys(names, noise)
        return np.array([float(by_name.get(name, 0.0)) for name in names])


def _known_channels(view: View, K_X: Array, own: Array) -> list[Channel]:
    """Channels of known attributes; exact ones get the least noise resolved."""
    if own.any():
        reason = "normal noise in what is known has no closed density beside"
        raise NotApplicable(
            f"{reason} {view.known_law.distribution} noise in the copies; by distance it is weighed"
        )
    found, least = channels(view), np.sqrt(FINEST * np.diag(K_X))
    return [
        Combined(NoiseDensity("gaussian", least[j] or 1.0), view.weights)
        if found[j].exact
        else found[j]
        for j in view.known_columns
    ]


def whitening(M: Array, K_X: Array) -> Array:
    """``R`` with ``RᵀR = M⁻¹``, shape (N, N), with a least variance."""
    _, std = in_own_units(K_X)
    unit = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(M / np.outer(unit, unit))
    return (vectors / np.sqrt(np.maximum(values, FINEST))).T / unit


@dataclass(eq=False, repr=False)
class Comparison(Reconstruction):
    """Log odds of rows: ``½‖R_0(ȳ − mu)‖² − ½‖R(ȳ − m)‖²`` plus a constant.

    The channels ``seen`` of known attributes, if any, add their log-likelihood.
    """

    W: Array
    centre: Array
    mu: Array
    gain: Array
    known: Indices
    B: Array
    R: Array
    R_0: Array
    seen: Sequence[Channel] = ()

    def _combined(self, copies: Arrays) -> Array:
        offset = self.mu - self.centre
        return np.hstack([copy - self.centre for copy in copies]) @ self.W.T - offset

    def rows(self, copies: Arrays) -> Array:
        return self.mu + self._combined(copies) @ self.gain.T

    def likeness(self, known: Array, copies: Arrays) -> Array:
        combined = self._combined(copies)
        m = (known - self.mu[self.known]) @ self.B.T
        # expanded squares would lose the decisive digits under little noise
        apart = scipy.spatial.distance.cdist(m @ self.R.T, combined @ self.R.T, "sqeuclidean")
        odds = 0.5 * ((combined @ self.R_0.T) ** 2).sum(axis=1) - 0.5 * apart
        for j, channel in enumerate(self.seen):
            y = np.stack([copy[:, self.known[j]] for copy in copies], axis=1)
            odds += np.maximum(channel.log_likelihood(y, known[:, j]).T, LEAST)
        return odds

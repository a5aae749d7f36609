"""Record linkage: find a target's row in perturbed copies by known values.

The odds of a row compare its likelihood as the target's copy with its likelihood as any person's
(Fellegi and Sunter).

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``x_K`` | a target's known values | (|K|,) | |
| ``ȳ, Sigma_r`` | the copies' least noisy combination, and the covariance of its noise | (N,), (N, N) | ``mixture_estimate`` |
| ``m, K_{X|K}`` | ``mu_X + B (x_K − mu_K)`` and its covariance, given the known | (N,), (N, N) | ``partial_disclosure`` |
| odds | ``N(ȳ; m, K_{X|K} + Sigma_r) / N(ȳ; mu_X, K_X + Sigma_r)`` | scalar | fellegi1969 |
| distance | ``(ȳ_K − x_K)ᵀ (Sigma_r,KK + D)⁻¹ (ȳ_K − x_K)``: Mahalanobis, on the known attributes alone | scalar | |
| ``D`` | covariance of the noise in the adversary's own values: ``x_K`` is then true values plus that noise; diagonal | (|K|, |K|) | |
| assignment | ``argmax_σ Σ_t log odds(t, σ(t))`` over all one-to-one maps from targets to rows | | |

On normal data no rule names more rows correctly than the odds. Distance ignores how common a row
is. The assignment names all targets at once, on normal data by the maximum-likelihood pairing. The
estimate is ``llse``'s of the named row.

Under noise of another law the known attributes use their exact log-likelihood, ``Σ_a Σ_i log
f_ia(y_ia − x_a)``, and the others the odds. The known attributes' denominator has no closed form
and is omitted, which does not affect an assignment. Copies without a law need ``distance``:
Euclidean to the copies' mean, in deviations of each attribute.

Wins with little noise on several known attributes. Fails under noise as large as the data, in the
copies or in the adversary's values. These are exact unless ``noise`` is set; their noise is normal
and independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import in_own_units, regression
from auditor.plugin import (
    Array,
    AuditorError,
    Cost,
    Indices,
    KnownAttributes,
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
    knowledge = (KnownAttributes.name,)
    assumes = "The adversary knows the law of the noise (not needed by distance), the data's moments, and attributes of its targets."
    wins = (
        "Wins with little noise on several known attributes; under noise as large as the data it names hardly more than chance does, and "
        "gains nothing from a second corner-wave copy."
    )

    class Parameters(PluginParameters):
        """Comparison of rows."""

        by: Literal["odds", "distance"] = Field(
            "odds",
            description="posterior odds, or Mahalanobis distance on the known attributes alone",
        )
        noise: Share | dict[str, Share] = Field(
            0.0,
            description="variance of the noise in what is known of targets, as a share of the attribute's: of all of them, or by name",
        )
        assignment: bool = Field(
            False,
            description="name all targets at once, each row once at most; tables of at most 20,000 rows",
        )

    def cost_under(self, distribution: str | None) -> Cost:
        """Return the cost of a fit, higher for an assignment."""
        return ASSIGNMENT if self.parameters.assignment else self.cost

    def check_table(self, table: Table) -> None:
        """Refuse noise of attributes that the table does not have."""
        noise = self.parameters.noise
        unknown = sorted(set(noise) - set(table.attributes)) if isinstance(noise, dict) else []
        if unknown:
            raise AuditorError(
                f"noise: the table has no attribute {unknown[0]!r}; it has {', '.join(table.attributes)}"
            )

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the comparison of targets with rows, from the law alone."""
        if self.parameters.assignment and view.released.count > MOST_ROWS:
            raise NotApplicable(
                "an assignment weighs all rows against all targets at once, at most 20,000 rows of them"
            )
        known, (mu, K_X) = view.known_columns, view.data_moments
        own = self._own_noise([view.attributes[place] for place in known]) * np.diag(K_X)[known]
        W, Sigma_r, gain = self._least_noise(view, K_X)
        combination = Combination(W, view.centre, mu, gain)
        if self.parameters.by == "distance":
            R = np.zeros((len(known), view.width))
            R[:, known] = whitening(
                Sigma_r[np.ix_(known, known)] + np.diag(own), K_X[np.ix_(known, known)]
            )
            comparison = Comparison(
                combination, known, np.eye(view.width)[:, known], R, np.zeros((0, view.width))
            )
        elif view.known_law.distribution == "gaussian":
            B, conditional = given(K_X, known, own)
            comparison = Comparison(
                combination,
                known,
                B,
                whitening(conditional + Sigma_r, K_X),
                whitening(K_X + Sigma_r, K_X),
            )
        else:
            comparison = self._by_likelihood(view, combination, K_X, Sigma_r, own)
        comparison.known_noise, comparison.assigns = (
            np.sqrt(own) if own.any() else None,
            self.parameters.assignment,
        )
        return comparison

    def _least_noise(self, view: View, K_X: Array) -> tuple[Array, Array, Array]:
        """Return ``W``, ``Sigma_r`` and the gain of the best linear estimate.

        Distance without a law uses equal weights, the data's variances, and the released values as
        the estimate.
        """
        if view.law is None and self.parameters.by == "distance":
            return view.averaging, np.diag(np.diag(K_X)), np.eye(view.width)
        W = least_noise(view)
        Sigma_r = np.asarray(W @ view.known_law.covariance @ W.T)
        return W, Sigma_r, regression(K_X, K_X + Sigma_r)

    def _by_likelihood(
        self, view: View, combination: Combination, K_X: Array, Sigma_r: Array, own: Array
    ) -> Comparison:
        """Compare by exact densities of known attributes and odds of others."""
        if own.any():
            reason = "normal noise in what is known has no closed density beside"
            raise NotApplicable(
                f"{reason} {view.known_law.distribution} noise in the copies; by distance it is weighed"
            )
        known, others = view.known_columns, np.setdiff1d(np.arange(view.width), view.known_columns)
        B, conditional = given(K_X, known)
        found, least = channels(view), np.sqrt(FINEST * np.diag(K_X))
        seen = [
            Combined(NoiseDensity("gaussian", least[j] or 1.0), view.weights)
            if found[j].exact
            else found[j]
            for j in known
        ]  # exact attributes get the least noise that covariances resolve
        U = np.ix_(others, others)
        pick = np.eye(view.width)[others]
        R, R_0 = (whitening((K + Sigma_r)[U], K_X[U]) @ pick for K in (conditional, K_X))
        return Comparison(combination, known, B, R, R_0, seen)

    def _own_noise(self, names: Sequence[str]) -> Array:
        """Noise of known values relative to the attributes' variances, (|K|,)."""
        noise = self.parameters.noise
        return np.array(
            [noise.get(name, 0.0) if isinstance(noise, dict) else noise for name in names],
            dtype=np.float64,
        )


def whitening(M: Array, K_X: Array) -> Array:
    """Return ``R`` with ``RᵀR = M⁻¹``, shape (N, N), with a least variance.

    Computed in units of the data's deviations, so scales of attributes do not matter.
    """
    _, std = in_own_units(K_X)
    unit = np.where(std > 0, std, 1.0)
    values, vectors = np.linalg.eigh(M / np.outer(unit, unit))
    return (vectors / np.sqrt(np.maximum(values, FINEST))).T / unit


class Combination:
    """``ȳ − mu`` of rows of copies, and the best linear estimate from it."""

    def __init__(self, W: Array, centre: Array, mu: Array, gain: Array) -> None:
        self._W, self._centre, self.mu, self._gain = W, centre, mu, gain

    def of(self, copies: Sequence[Array]) -> Array:
        """Return ``ȳ − mu``, shape (b, N)."""
        return np.hstack([copy - self._centre for copy in copies]) @ self._W.T - (
            self.mu - self._centre
        )

    def estimate(self, copies: Sequence[Array]) -> Array:
        """Return ``mu + G (ȳ − mu)``, shape (b, N)."""
        return self.mu + self.of(copies) @ self._gain.T


class Comparison(Reconstruction):
    """Log odds of rows: ``½‖R_0(ȳ − mu)‖² − ½‖R(ȳ − m)‖²`` plus a constant.

    The log-likelihood of the channels ``seen`` is added: one for each known attribute, or none.
    """

    def __init__(
        self,
        combination: Combination,
        known: Indices,
        B: Array,
        R: Array,
        R_0: Array,
        seen: Sequence[Channel] = (),
    ) -> None:
        self._combination, self._known, self._B, self._R, self._R_0, self._seen = (
            combination,
            known,
            B,
            R,
            R_0,
            seen,
        )

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the best linear estimate of every row."""
        return self._combination.estimate(copies)

    def likeness(self, known: Array, copies: Sequence[Array]) -> Array:
        """Return the log odds, shape (t, b)."""
        combined = self._combination.of(copies)
        m = (known - self._combination.mu[self._known]) @ self._B.T
        # Distances from differences: expanded squares would lose the decisive digits under little
        # noise.
        apart = scipy.spatial.distance.cdist(m @ self._R.T, combined @ self._R.T, "sqeuclidean")
        odds = np.asarray(0.5 * ((combined @ self._R_0.T) ** 2).sum(axis=1) - 0.5 * apart)
        for j, channel in enumerate(self._seen):
            y = np.stack([copy[:, self._known[j]] for copy in copies], axis=1)
            odds += np.maximum(channel.log_likelihood(y, known[:, j]).T, LEAST)
        return odds

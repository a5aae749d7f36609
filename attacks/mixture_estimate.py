"""Joint posterior mean under a normal mixture fitted to the copies alone.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``W`` | minimum-variance weights of the copies: a sufficient combination under Gaussian noise | (N, kN) | ``least_noise`` |
| ``ȳ, Sigma_r`` | the combination, and the covariance of its noise | (N,), (N, N) | |
| ``α, m, V`` | prior: weights, means and covariances of K normals | (K,), (K, N), (K, N, N) | bovy2011 |
| ``q_k`` | ``∝ α_k N(ȳ; m_k, V_k + Sigma_r)``, posterior probability of component k | scalar | bovy2011 |
| ``x̂`` | ``Σ_k q_k (m_k + V_k (V_k + Sigma_r)⁻¹ (ȳ − m_k))``: weighted LLSE of the components | (N,) | bovy2011 |

The prior is fitted by EM under the noise law (``_deconvolution``), to at most 20,000 random rows.
Learnt weights correct each attribute's margin, on its lattice if it is recorded in steps. Under
Gaussian noise the estimate averages posterior means under the mixture, one normal, each attribute
alone and independent components (``_lattice.averaged``).

Reference: bovy2011, huang2005 (13). Optimal in squared error if the data are a normal mixture (*not
checked*) and the rows suffice. Components need 15 rows each.

``interval-privacy`` reports the shortest interval of each attribute's posterior under Gaussian noise,
a mixture of K normals with weights ``q_k`` (agrawal2000, zhu2004). Atoms make it too short;
``localised_share`` reports coverage.

*Other noise laws*, independent between attributes, use expectation propagation
(``_expectation_propagation``, minka2001) on 5,000 rows. Components and weights of each attribute's
values maximise its likelihood given all others. *Approximate*: the error exceeds the exact posterior
mean's by about 1e-4.

*Values times factors drawn in logs* (kim2003): ``log |y| + v/2`` is ``log |x|`` with Gaussian noise.
With its posterior means ``b_k`` and variances ``B_k``, ``x̂ = ± Σ_k q_k exp(b_k + B_k/2)``. 0 stays 0.
Other factors: ``_factors``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from auditor.adversary.view import combined_noise, estimated_covariance
from auditor.numerics.blocks import evenly
from auditor.numerics.linear_algebra import Pencil, regression
from auditor.plugin import (
    Array,
    Arrays,
    Cost,
    DenseNoise,
    Estimated,
    KroneckerNoise,
    Moments,
    Perfect,
    PluginParameters,
    Reconstruction,
    RowAttack,
    SampleMoments,
    View,
    register,
    scipy,
    stream,
    unprinted,
)

from ._channel import Channel, channels
from ._deconvolution import (
    CHUNK_VALUES,
    SETTLED,
    Mixture,
    NoisyRows,
    Placing,
    Posterior,
    climbed,
    learn,
)
from ._expectation_propagation import Reweighted, RowsInAnyNoise
from ._factors import of_factors
from ._fits import fitted_once, some_rows
from ._lattice import Averaged, OnLattices, averaged, filled_steps, reweighted
from .attribute_posterior import shortest

POINTS = np.linspace(-8.0, 8.0, 129)
"""Possible ends of intervals, in deviations of a mixture about its mean."""
ATOM = 1e-3
MOST_ROWS = 5_000
"""Rows used to fit a prior under non-Gaussian noise, where EM is slower."""


@register
class MixtureEstimate(RowAttack):
    """Joint posterior mean under a normal mixture fitted to the copies."""

    name = "mixture-estimate"
    combines = True
    cost = Cost(3e-3, 3.5e-6)
    reference = "bovy2011; huang2005, eq. 13"
    assumes = "The adversary knows the law of the noise; the prior is learnt from the copies."
    wins = (
        "Wins on curved, clustered, long-tailed or heaped attributes, which it takes together; on normal data and noise it is llse; gains "
        "nothing from a second corner-wave copy, and little over llse where noise hides the shape or rows are few."
    )

    class Parameters(PluginParameters):
        """Size of the mixture."""

        components: Annotated[int, Field(ge=1, le=64)] = Field(
            16, description="most components; with 1 it is bayes-estimate"
        )

    def cost_under(self, distribution: str | None) -> Cost:
        if distribution in (None, "gaussian"):
            return self.cost
        return Cost(0.2, 4e-5) if distribution == "unstated" else Cost(0.01, 2.5e-5)

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        if view.scheme.get("name") == "multiplicative-noise":
            held, v = some_rows(blocks, stream(view.seed, self.name, "rows")), np.array(view.levels)
            copies = np.stack(np.split(held, v.size, axis=1))
            if view.scheme["logs"]:
                return of_factors_in_logs(self, view, copies, v)
            if v.all():
                mu, K, _ = normal_prior(view, least_noise(view))
                return of_factors(copies, v, mu, K, view.steps())
        if view.law is not None and view.law.distribution != "gaussian":
            return self._under_any_law(view, blocks)
        return gaussian(self, view, blocks)

    def _under_any_law(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        seen, found = Seen.of(view), channels(view)
        unit = np.array([channel.noise.std or 1.0 for channel in found])
        K = (seen.pencil.basis * seen.pencil.share) @ seen.pencil.basis.T / np.outer(unit, unit)
        placed = Reweighted(Mixture(np.ones(1), np.zeros((1, len(K))), K[None]), {})
        if self.parameters.components > 1 and not all(channel.exact for channel in found):
            held = some_rows(blocks, stream(view.seed, self.name, "rows"))
            held = held[:: -(-len(held) // MOST_ROWS)]
            # equal combinations may come from different copies
            held = held[np.lexsort(held.T)]
            copies, most = np.split(held, len(view.copies), axis=1), self.parameters.components
            rows, steps = RowsInAnyNoise.of(found, copies, seen.mu, unit), view.steps()
            grid, told = (seen.mu / unit, steps / unit), (held, K, unit, seen.mu, steps)
            placing, A, kind = partial(Reweighted.fitted, *grid), np.diag(unit), ("mixture", found)
            facts = kind, placed.prior, rows, A, most, told, placing
            prior = fitted_prior(*facts, fit_to_release(view, K))
            placed = placing(prior, rows)
            view.starts.setdefault("mixture", (view.seed, K, prior))
        return _MeanInAnyNoise(found, seen.mu, unit, placed)


def gaussian(attack: MixtureEstimate, view: View, blocks: Iterable[list[Array]]) -> PosteriorMean:
    """Posterior mean, with noise treated as Gaussian."""
    seen, most = Seen.of(view), attack.parameters.components
    share, A, mu, steps = seen.pencil.share, seen.pencil.basis, seen.mu, view.steps()
    prior = Mixture(np.ones(1), np.zeros((1, share.size)), np.diag(share)[None])
    rows = NoisyRows(np.empty((0, share.size)), 1.0 - share, np.zeros_like(share))
    start, rng = prior, stream(view.seed, attack.name, "axes")
    if most > 1 and rows.s.any():
        u = some_rows(blocks, stream(view.seed, attack.name, "rows"), seen.coordinates)
        rows, steps = replace(rows, u=u), filled_steps(steps, np.sqrt(A**2 @ rows.s))
    placing, inputs = partial(reweighted, A, mu, steps), (rows.u, rows.s, A, mu, steps)
    before = fit_to_release(view, A)
    known = before and before.first.posterior.prior
    prior = fitted_prior("mixture", start, rows, A, most, inputs, placing, known)

    make = partial(averaged, A, mu, steps, start, prior, rows, rng)
    make = partial(before.again, start, prior, rows) if before else make
    placed = fitted_once(make, "placed", *prior.arrays, *inputs)
    view.starts.setdefault("mixture", (view.seed, A, placed))
    return PosteriorMean(seen, placed)


def fit_to_release(view: View, A: Array) -> Any:
    """Fit in these coordinates to the release that is redrawn, or None.

    It halves the time of all attacks on 1,000 rows.
    """
    seed, coordinates, fit = view.starts.get("mixture", (view.seed, A, None))
    return fit if seed != view.seed and np.array_equal(coordinates, A) else None


def of_factors_in_logs(
    attack: MixtureEstimate, view: View, copies: Array, v: Array
) -> Reconstruction:
    """Posterior mean of values times factors ``exp(√v g − v/2)``."""
    sizes, N = np.abs(copies), view.width
    least = np.where(sizes > 0, sizes, sizes.max() + 1.0).min(axis=1)
    rows = logs(copies, v, least)
    moments = Moments.of(np.hstack(rows))
    in_logs = replace(
        view,
        law=KroneckerNoise(np.diag(v), np.eye(N)),
        knowledge=Estimated(rows=max(2, len(rows[0]))),
        centre=np.zeros(N),
        released=moments,
        given=SampleMoments(moments),
        steps=lambda: np.full(N, np.nan),
    )
    return _MeanOfFactors(v, least, gaussian(attack, in_logs, [rows]))


def on_lattices(
    view: View,
    kind: str,
    prior: Mixture,
    rows: NoisyRows,
    A: Array,
    mu: Array,
    first: int = 0,
    steps: Array | None = None,
) -> OnLattices:
    """Posterior means of attributes from ``first``, ``mu + A v``.

    With fitted weights; ``steps`` are by default the recorded ones.
    """
    steps = view.steps()[first : first + len(A)] if steps is None else steps
    inputs = *prior.arrays, rows.u, rows.s, A, mu, steps
    heaps = fitted_once(lambda: reweighted(A, mu, steps, prior, rows).heaps, kind, *inputs)
    return OnLattices(Posterior(prior, rows.s), A, mu, heaps)


def fitted_prior(
    kind: object,
    start: Mixture,
    rows: NoisyRows,
    A: Array,
    most: int,
    inputs: Sequence[Array],
    placing: Placing | None = None,
    before: Mixture | None = None,
) -> Mixture:
    """Mixture learnt from rows, or by EM from one ``before``.

    Once for equal ``kind`` and ``inputs``. ``inputs`` determine ``rows`` and ``start``. Other
    parameters as for ``learn``.
    """
    if before is None:
        return fitted_once(lambda: learn(start, rows, A, most, placing), (kind, most), *inputs)
    # EM would move one normal from the known moments
    return before if before.size == 1 else climbed(before, rows, SETTLED)


def least_noise(view: View) -> Array:
    """Weights ``W`` of the least noisy unbiased combination, (N, kN).

    ``NotApplicable`` without a noise law.
    """
    law = view.stated_law
    if isinstance(law, KroneckerNoise):
        return view.averaging
    return generalised_least_squares(law.covariance, view.width)


def generalised_least_squares(K_Z: Array, N: int) -> Array:
    """Weights of the least noisy unbiased combination, (N, kN).

    ``W = (Hᵀ M⁺ H)⁻¹ Hᵀ M⁺`` with ``M = K_Z + H U Hᵀ`` and ``H`` k identities stacked. ``H U Hᵀ``
    has no effect if ``K_Z`` is invertible (Rao 1971, unified theory of least squares).

    ``K_Z`` has shape (kN, kN).
    """
    k, own = len(K_Z) // N, np.diag(K_Z).reshape(-1, N).mean(axis=0)
    U = np.diag(np.where(own > 0, own, 1.0))
    projected = regression(np.tile(U, k), K_Z + np.tile(U, (k, k)))  # U Hᵀ M⁺
    return np.asarray(np.linalg.solve(projected @ np.tile(np.eye(N), (k, 1)), projected))


def normal_prior(view: View, W: Array) -> tuple[Array, Array, Array]:
    """Data's mean and covariance, and the combination's noise.

    Data moments are known or estimated. Shapes (N,), (N, N) and (N, N).
    """
    held = view.held
    mean, covariance = (
        view.centre + W @ held.mean,
        W @ held.covariance(max(1, held.count - 1)) @ W.T,
    )
    if isinstance(view.law, DenseNoise):
        root = W @ view.law.passed_root
        Sigma_r = root @ root.T
    else:
        Sigma_r = combined_noise(view, covariance)
    if isinstance(view.knowledge, Perfect):
        return *view.data_moments, Sigma_r
    return mean, estimated_covariance(covariance, Sigma_r), Sigma_r


@unprinted
class Seen:
    """The copies' combination in coordinates with diagonal data and noise.

    Of total variance 1.

    Attributes
    ----------
    W : ndarray of shape (N, kN)
    centre, mu : ndarrays of shape (N,)
        The view's centre, and the data's mean.
    pencil : Pencil
    """

    W: Array
    centre: Array
    mu: Array
    pencil: Pencil

    @classmethod
    def of(cls, view: View) -> Seen:
        """Coalition's combination; ``NotApplicable`` without a law."""
        W = least_noise(view)
        mu, K, Sigma_r = normal_prior(view, W)
        return cls(W, view.centre, mu, Pencil.of(K, Sigma_r))

    def coordinates(self, copies: Sequence[Array]) -> Array:
        """``u = A⁺(ȳ − mu)``, shape (b, r), of copies of shape (b, N)."""
        found = -self.pencil.inverse @ (self.mu - self.centre)[:, None]
        for copy, W in zip(
            copies, np.split(self.pencil.inverse @ self.W, len(copies), axis=1), strict=True
        ):
            found = found + W @ (np.ascontiguousarray(copy.T) - self.centre[:, None])
        return found.T

    def values(self, u: Array) -> Array:
        """``mu + A u`` in data units, shape (b, N)."""
        return np.ascontiguousarray((self.pencil.basis @ u.T + self.mu[:, None]).T)


class PosteriorMean(Reconstruction):
    """Posterior mean and intervals of rows, each given itself."""

    def __init__(self, seen: Seen, placed: Averaged) -> None:
        self.seen, self.placed, self.posterior = seen, placed, placed.first.posterior

    def rows(self, copies: Sequence[Array]) -> Array:
        return self.placed.mean(self.seen.coordinates(copies))

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array]:
        """Shortest intervals; lattices are treated as continuous."""
        ends, wide = np.empty((2, *copies[0].shape)), self.posterior.size * len(POINTS)
        for start, stop in evenly(0, len(copies[0]), wide, CHUNK_VALUES):
            u = self.seen.coordinates([copy[start:stop] for copy in copies])
            for j, a in enumerate(self.seen.pencil.basis):
                q, mean, spread, _ = self.posterior.along(u, a)
                low, high = shortest_of_mixture(q.T, mean.T, spread, confidence)
                ends[:, start:stop, j] = self.seen.mu[j] + low, self.seen.mu[j] + high
        return ends[0], ends[1]


def shortest_of_mixture(
    q: Array, mean: Array, std: Array, confidence: float
) -> tuple[Array, Array]:
    """Both ends, shapes (b,), of shortest intervals of normal mixtures.

    One end is on a grid of an eighth of the mixture's deviation. The other is interpolated. q and means
    have shape (b, K), deviations (K,), 0 for an atom.
    """
    centre = (q * mean).sum(axis=1)
    width = np.sqrt((q * (std**2 + (mean - centre[:, None]) ** 2)).sum(axis=1))
    unit = np.where(width > 0, width, 1.0)
    # in units of the mixture's deviation all rows share one grid
    z, own = (mean - centre[:, None]) / unit[:, None], np.maximum(std / unit[:, None], ATOM)
    below = np.einsum(
        "bk,bkg->bg", q, scipy.special.ndtr((POINTS - z[:, :, None]) / own[:, :, None])
    )
    below[:, 0], below[:, -1] = 0.0, 1.0
    low, high = shortest(np.diff(below, axis=1), POINTS, confidence)
    return centre + width * low, centre + width * high


@dataclass(eq=False, repr=False)
class _MeanInAnyNoise(Reconstruction):
    found: Sequence[Channel]
    mu: Array
    unit: Array
    placed: Reweighted

    def rows(self, copies: Sequence[Array]) -> Array:
        rows = RowsInAnyNoise.of(self.found, copies, self.mu, self.unit)
        return self.mu + self.unit * self.placed.mean(rows)


def logs(copies: Array, v: Array, least: Array) -> list[Array]:
    """Logarithms at levels (k,), with sizes (k, N) for 0."""
    sizes = np.maximum(np.abs(copies), least[:, None])
    return [*(np.log(sizes) + v[:, None, None] / 2.0)]


@dataclass(eq=False, repr=False)
class _MeanOfFactors(Reconstruction):
    v: Array
    least: Array
    fitted: PosteriorMean

    def rows(self, copies: Arrays) -> Array:
        seen, x = self.fitted.seen, np.sign(copies[0])
        u = seen.coordinates(logs(np.stack(copies), self.v, self.least))
        for j, a in enumerate(seen.pencil.basis):
            q, b, std, _ = self.fitted.posterior.along(u, a)
            x[:, j] *= (q * np.exp(seen.mu[j] + b + 0.5 * std[:, None] ** 2)).sum(axis=0)
        return x

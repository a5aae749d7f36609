"""Views of an adversary (moments, noise law) and its knowledge.

| knowledge | given besides the copies |
| --- | --- |
| ``perfect``, ``known-attributes`` | ``ExactMoments``, each attribute's distribution |
| ``estimated`` | ``SampleMoments`` of the copies |
| ``model`` | ``ModelledMoments`` or ``TreeMoments`` |
| ``known-records`` | original ``Records`` with their copies' rows |
| ``unmatched-records``, ``known-sample`` | original ``UnpairedRecords`` |

For categories: a ``Prior`` (exact, or by published ``rules``), ``SampleCounts`` of the copies'
values, or ``KnownPairs``. ``uniform-prior`` gives none.

Copies combined into one, its filter, and the reconstruction of one distribution:

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``w`` | weights, sum 1, that minimise ``wᵀ Sigma w``; equal without a law | (k,) | |
| ``y`` | ``Σ w_i y_i``: the combined copy | (N,) | |
| ``Sigma_r`` | covariance of its noise, ``v·K_0`` | (N, N) | huang2005 (14) |
| ``x̂`` | ``m + F(y − m)``, F the filter | (N,) | liu2008, Protocols 2 and 3, with ERRATA's mean |
| ``π_b`` | probability that ``x`` lies in bin b | (B,) | |
| ``c_m`` | count in cell m, ``n`` in all | (m,) | |
| ``L_mb`` | likelihood of cell m given bin b, at midpoints (iteration) or averaged (EM) | (m, B) | |
| step | ``π_b ← (π_b/n) Σ_m c_m L_mb / Σ_b' L_mb' π_b'`` | | agrawal2000; agrawal2001 |

Iterations stop early, since convergence makes spikes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Literal, TypeVar

import numpy as np

from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.base import NotApplicable, scipy
from auditor.base.types import (
    Array,
    Arrays,
    Coalition,
    Codes,
    Indices,
    Options,
    Pair,
    Plain,
    frozen,
    unprinted,
)
from auditor.data.table import ShownColumn
from auditor.numerics.blocks import Moments as Moments, seal
from auditor.numerics.combination import combination_by_moments
from auditor.numerics.linear_algebra import EPS, Pencil, clip_to_psd, descending_eigen, quotient
from auditor.schemes.base.noise_density import NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw


@frozen
class Given:
    """Base class, and the data of an uninformed adversary."""

    what: ClassVar[str] = "nothing"
    """Name in messages if an attack needs it."""
    by_copy: ClassVar[str] = ""
    """Field with one part a copy."""

    def __post_init__(self) -> None:
        seal(*vars(self).values())

    def of(self, places: Sequence[int], width: int) -> Given:
        """Restrict to some copies, numbered from 1 among the held copies."""
        if not self.by_copy:
            return self
        held = getattr(self, self.by_copy)
        of_moments = isinstance(held, Moments)
        some = held.parts(places, width) if of_moments else tuple(held[k - 1] for k in places)
        return replace(self, **{self.by_copy: some})


NOTHING = Given()
G = TypeVar("G", bound=Given)


class Informed:
    """A view with given data."""

    given: Given

    def need(self, kind: type[G]) -> G:
        """Return the given data of the kind, or raise ``NotApplicable``."""
        if not isinstance(self.given, kind):
            raise NotApplicable(f"needs {kind.what}")
        return self.given


@unprinted
class ExactMoments(Given):
    """The table's own moments.

    ``mu_X``, ``K_X`` (divisor n); ``distribution``: ascending distinct values and shares by
    attribute, or None.
    """

    what = "the data's exact mean and covariance"
    mean: Array
    covariance: Array
    distribution: Callable[[int], Pair] | None = None


@dataclass(frozen=True, repr=False)
class SampleMoments(Given):
    """Moments of the stacked copies in a sample, about the view's centre, kN."""

    what = "released rows to estimate from"
    by_copy = "copies"
    copies: Moments

    def completed(self, mean: Array, covariance: Array) -> Pair:
        """Add published knowledge to the estimated moments; none here."""
        return mean, covariance


@unprinted
class Originals(Given):
    """Original records, shape (p, N), in data units."""

    what = "records of the population"
    original: Array


@unprinted
class Records(Originals):
    """Original records, matched to their copies' rows, shapes (p, N).

    ``moments`` of ``[X, Y_1 … Y_k]`` are about the view's centre; None for another width.
    """

    what = "records in clear with their copies' rows"
    by_copy = "copies"
    copies: tuple[Array, ...]
    moments: Moments | None = None

    def of(self, places: Sequence[int], width: int) -> Given:
        joint = [1, *(place + 1 for place in places)]
        some = replace(self, moments=self.moments and self.moments.parts(joint, width))
        return super(Records, some).of(places, width)


class UnpairedRecords(Originals):
    """Original records without their rows in the copies, in random order."""


@unprinted
class Prior(Given):
    """The prior of the domain's values, shape (s,)."""

    what = "the prior, which this knowledge does not give"
    probabilities: Array


@unprinted
class SampleCounts(Given):
    """Counts of each value in a sample of each copy, shapes (s,)."""

    what = "released rows to estimate the prior from"
    by_copy = "counts"
    counts: tuple[Array, ...]


@unprinted
class KnownPairs(Given):
    """Original records, shape (r,), with their copies, shapes (r,)."""

    what = "known records"
    by_copy = "copies"
    original: Codes
    copies: tuple[Codes, ...]


SMALL = 64
"""Most columns of copies whose coalitions are solved one at a time."""
MOST_HALVES = 2**21
"""Most numbers of an intermediate product."""


def grain_of_copies(law: KroneckerNoise, loudest: Array, square: Array) -> Array:
    """Rounding of copies in roots of noise multiples, (..., N).

    ``loudest`` has levels, shape (...), and ``square`` mean squares, shape (..., N).
    """
    noise, loudest = np.diag(law.shape), np.asarray(loudest)[..., None]
    size = np.sqrt(np.clip(square + loudest * noise, np.finfo(float).tiny, None))
    relative = size / np.sqrt(np.where(noise > 0, noise, 1.0))
    return EPS * np.where(noise > 0, relative, np.sqrt(np.maximum(loudest, EPS)))


def combinations(w: Array, mean: Array, covariance: Array) -> Pair:
    """Means, (B, N), and covariances, (B, N, N), of ``Σ w_i Y_i``.

    Weights of shape (B, M).
    """
    (B, M), N = w.shape, mean.size // w.shape[1]
    combined, step = np.empty((B, N, N)), max(1, MOST_HALVES // (M * N * N))
    by_row = covariance.reshape(M, N, M * N).swapaxes(0, 1)
    for start in range(0, B, step):
        some = w[start : start + step]
        half = (some @ by_row).reshape(N, -1, M, N)
        combined[start : start + step] = np.einsum("bj,nbjp->bnp", some, half)
    return w @ mean.reshape(M, N), combined


def without_noise(covariance: Array, v: Array, law: KroneckerNoise) -> Array:
    """``K_X``, shape (..., N, N), without the copies' noise.

    Noise multiples ``v``, shape (...).
    """
    v = v[..., None, None]
    if law.follows_data:
        return covariance / (1.0 + v)
    return clip_to_psd(covariance - v * law.shape, covariance)


@unprinted
class View(Informed):
    """Moments of copies, and knowledge; never the original.

    Attributes
    ----------
    attributes : tuple of N str
    copies
        Copy numbers, ascending; k of them.
    levels
        Empty if unknown.
    law
        None if unknown.
    centre : (N,)
        Origin of moments; transformed copies have their own means.
    released
        Of the stacked copies over all released rows, d = kN.
    given
        See ``need``.
    scheme
        Its public ``name`` and parameters.
    seed
        For random guesses.
    steps
        Returns public recording steps, (N,), NaN for none.
    shown
        Returns the shown columns of every copy.
    starts
        Fits by name, for redraws; ``release`` holds fits for noisier coalitions, which follow.
    """

    attributes: tuple[str, ...]
    copies: Coalition
    levels: tuple[float, ...]
    knowledge: Knowledge
    law: NoiseLaw | None
    centre: Array
    released: Moments
    given: Given = NOTHING
    scheme: Options = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0
    steps: Callable[[], Array] = lambda: np.full(1, np.nan)
    shown: Callable[[], Sequence[ShownColumn]] = tuple
    starts: Plain = field(default_factory=dict)

    def __post_init__(self) -> None:
        seal(self.centre, self.released, *(() if self.law is None else vars(self.law).values()))

    @property
    def width(self) -> int:
        """``N``."""
        return len(self.attributes)

    def coalition(self, copies: Sequence[int]) -> View:
        """View of a smaller coalition."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(
            self,
            copies=tuple(copies),
            levels=tuple(self.levels[place - 1] for place in places) if self.levels else (),
            law=None if self.law is None else self.law.of(places),
            released=self.released.parts(places, self.width),
            given=self.given.of(places, self.width),
        )

    @property
    def held(self) -> Moments:
        """Moments of the adversary's rows: its sample, else all released."""
        return self.given.copies if isinstance(self.given, SampleMoments) else self.released

    @cached_property
    def held_covariance(self) -> Array:
        """Covariance of the held copies, divisor r − 1, shape (kN, kN)."""
        return self.held.covariance(max(1, self.held.count - 1))

    @property
    def known_columns(self) -> Indices:
        """Indices of attributes with known true values."""
        return np.flatnonzero(np.isin(self.attributes, self.knowledge.in_clear))

    @cached_property
    def weights(self) -> Array:
        """Weights of the least noisy unbiased combination of copies, shape (k,).

        Sum 1; equal without a law.
        """
        if self._combination is None:
            return np.full(len(self.copies), 1.0 / len(self.copies))
        return self._combination[0]

    @property
    def averaging(self) -> Array:
        """``weights`` on the stacked copies, ``wᵀ ⊗ I``, shape (N, kN)."""
        return np.asarray(np.kron(self.weights, np.eye(self.width)))

    @property
    def counting(self) -> Coalition:
        """Copies that are jointly sufficient by the law, or show more columns, else all."""
        law = self.law
        if not isinstance(law, KroneckerNoise):
            return tuple(self.copies)
        if law.one_process:
            counts = np.arange(len(self.copies)) == np.argmin(np.diag(law.level_covariance))
        elif law.distribution == "gaussian":
            counts = self.weights != 0
        else:
            return tuple(self.copies)
        more = {column.copy for column in self.shown()}
        return tuple(
            copy for copy, one in zip(self.copies, counts, strict=True) if one or copy in more
        )

    @cached_property
    def _combination(self) -> Pair | None:
        if not isinstance(self.law, KroneckerNoise):
            return None
        Sigma = np.asarray(self.law.level_covariance, dtype=float)
        w, v = combination_by_moments(Sigma.tobytes(), len(Sigma))
        return w.copy(), v

    @cached_property
    def grain(self) -> Array:
        """Rounding of the copies in roots of noise multiples, shape (N,)."""
        law = self.law
        if not isinstance(law, KroneckerNoise):
            return np.full(self.width, EPS)
        if isinstance(self.given, ExactMoments):
            variances = np.diag(self.given.covariance)
        else:
            variances = self.held.variances[: self.width]
        return grain_of_copies(
            law, np.diag(law.level_covariance).max(initial=0.0), self.centre**2 + variances
        )

    @cached_property
    def combined_variance(self) -> float:
        """Noise multiple ``v`` of the combination, or ``NotApplicable``."""
        if self._combination is None:
            raise NotApplicable(
                "the law of the noise is not known to have one shape across the copies"
            )
        return float(self._combination[1])

    @cached_property
    def combined(self) -> Pair:
        """Mean, (N,), and covariance, (N, N), of ``Σ w_i Y_i`` over the held rows."""
        mean, combined = combinations(self.weights[None], self.held.mean, self.held_covariance)
        return self.centre + mean[0], combined[0]

    @cached_property
    def spectrum(self) -> tuple[Array, Array, Array, Array]:
        """Mean, covariance, eigenvalues and vectors of the combination."""
        mean, covariance = self.combined
        return mean, covariance, *descending_eigen(covariance)

    @cached_property
    def data_moments(self) -> Pair:
        """``mu_X``, shape (N,), and ``K_X``, shape (N, N), as known or estimated.

        ``Estimated``: ``Cov − v·K_0`` of the best combination, clipped to be positive
        semi-definite, or ``Cov / (1 + v)`` if the noise follows the data (li2012, section 6.1);
        then a published model is applied. ``NotApplicable`` without moments.
        """
        if isinstance(self.given, ExactMoments):
            return self.given.mean, self.given.covariance
        if not isinstance(self.given, SampleMoments):
            raise NotApplicable(
                f"needs the data's mean and covariance, which {self.knowledge.label} knowledge does not give"
            )
        return self.given.completed(*self.estimated_moments)

    @cached_property
    def estimated_moments(self) -> Pair:
        """Moments of the data estimated from the held rows, or ``NotApplicable``."""
        mean, covariance = self.combined
        v = self.combined_variance
        assert isinstance(self.law, KroneckerNoise)
        return mean, without_noise(covariance, np.asarray(v), self.law)

    @cached_property
    def pencil(self) -> Pencil:
        """``K_X`` and ``K_0`` diagonalised jointly, or ``NotApplicable``."""
        return Pencil.of(self.data_moments[1], self.one_shape.shape)

    @property
    def one_shape(self) -> KroneckerNoise:
        """The known law if of one shape across the copies, else ``NotApplicable``."""
        law = self.known_law
        if not isinstance(law, KroneckerNoise):
            raise NotApplicable(
                "the law of the noise is not known to have one shape across the copies"
            )
        return law

    @property
    def stated_law(self) -> NoiseLaw:
        """The noise law, or ``NotApplicable``."""
        if self.law is None:
            raise NotApplicable("needs the law of the noise, which these copies come without")
        return self.law

    @cached_property
    def known_law(self) -> NoiseLaw:
        """``stated_law``, with ``Sigma ⊗ K̂_X`` if it follows the data."""
        law = self.stated_law
        if isinstance(law, KroneckerNoise) and law.follows_data:
            return replace(law, shape=self.data_moments[1])
        return law


# -- one sufficient copy: its noise, and the distribution that it discloses ------------------------


def combined_noise(view: View, covariance: Array) -> Array:
    """``Sigma_r``, the noise covariance of ``Σ w_i y_i``, shape (N, N).

    ``v/(1+v)`` of ``covariance``, (N, N), with unknown ``K_X`` and noise ``v·K_X``.
    ``NotApplicable`` without a law.
    """
    law = view.stated_law
    if not isinstance(law, KroneckerNoise):
        W = view.averaging
        return W @ law.covariance @ W.T
    return noise_of(view, law, np.asarray(view.combined_variance), covariance)


def noise_of(view: View, law: KroneckerNoise, v: Array, covariance: Array) -> Array:
    """``combined_noise`` of noise multiples ``v``, shape (..., N, N)."""
    if law.follows_data and not isinstance(view.knowledge, Perfect):
        return covariance * (v / (1.0 + v))
    return v * law.shape


def estimated_covariance(covariance: Array, Sigma_r: Array) -> Array:
    """``Cov(Y) − Sigma_r``, shape (N, N), with eigenvalues ≥ 0.

    Source: huang2005, Theorems 5.1 and 8.2; ERRATA sets negative eigenvalues to 0.
    """
    return clip_to_psd(covariance - Sigma_r, covariance)


Method = Literal["em", "iteration"]

MOST_STEPS = 2000
LEAST_LIKELIHOOD = 1e-250
"""Likelihood below which a cell is impossible under every bin."""
GAIN = 0.1
"""Least gain in log-likelihood of an EM step, in nats."""
CHI_SQUARE_SHARE = 0.01
"""Least change of a step, as a share of the χ² test's 95 % point (agrawal2000)."""


@unprinted
class Histogram:
    """Histogram: a distribution flat within bins.

    Attributes
    ----------
    edges : (B + 1,)
        Ascending, in data units.
    mass : (B,)
        Probabilities, sum 1.
    """

    edges: Array
    mass: Array

    @property
    def midpoints(self) -> Array:
        """Midpoints of the bins, shape (B,)."""
        return (self.edges[:-1] + self.edges[1:]) / 2.0

    @property
    def density(self) -> Array:
        """Density in each bin, shape (B,)."""
        return self.mass / np.diff(self.edges)


def reconstruct(
    y: Array,
    counts: Array,
    edges: Array,
    noise: NoiseDensity,
    method: Method = "em",
    steps: int = MOST_STEPS,
) -> Histogram:
    """Distribution of original values, given perturbed counts.

    Parameters
    ----------
    y, counts : (m,)
        Midpoints of the cells, narrow relative to the noise (*not checked*), and ``c_m``.
    edges : (B + 1,)
        Of the original values.
    method : 'em' or 'iteration'
    steps
        Most steps.

    Notes
    -----
    Source: agrawal2000, agrawal2001. Impossible cells are omitted; flat if all are.
    """
    y, c = y[counts > 0], counts[counts > 0]
    L = noise.likelihood(y, edges, midpoints=method == "iteration")
    enough = CHI_SQUARE_SHARE * float(scipy.special.chdtri(max(1, len(edges) - 2), 0.05))
    stop = (GAIN, 0.0) if method == "em" else (-np.inf, enough)
    return Histogram(edges, expected_mass(c, [L], [edges], steps, *stop)[1])


def expected_mass(
    counts: Array, L: Arrays, edges: Arrays, steps: int, gain: float, enough: float = 0.0
) -> Pair:
    """``π``, shape (B_1, …, B_p), before and after the last step of EM.

    Parameters
    ----------
    counts : (C_1, …, C_p)
    L : p arrays of shapes (C_j, B_j)
        Likelihood of each cell of released values given each bin.
    edges : p arrays
        Of the bins; EM starts with a flat density.
    gain, enough
        Least rise of the log-likelihood, in nats, and χ² of a step, that continue.
    """
    new, last = np.ones(()), -np.inf
    for e in edges:
        new = np.multiply.outer(new, np.diff(e) / (e[-1] - e[0]))
    for _ in range(steps):
        mass, mixed = new, along(new, L)
        possible = (counts > 0) & (mixed > LEAST_LIKELIHOOD)
        if not possible.any():
            break
        likelihood = float((counts[possible] * np.log(mixed[possible])).sum())
        ratio = quotient(counts, mixed, where=possible)
        new = mass * along(ratio, [matrix.T for matrix in L])
        new /= new.sum()
        change = counts.sum() * ((new - mass) ** 2 / np.maximum(mass, 1e-300)).sum()
        if likelihood - last < gain or change < enough:
            break
        last = likelihood
    return mass, new


def along(tensor: Array, matrices: Arrays) -> Array:
    """Apply one matrix to each axis of a tensor."""
    for matrix in matrices:  # each moves its axis to the end
        rest = tensor.shape[1:]
        tensor = (tensor.reshape(len(tensor), -1).T @ matrix.T).reshape(*rest, len(matrix))
    return tensor

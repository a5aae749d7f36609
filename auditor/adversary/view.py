"""What an adversary has: its coalition's copies in moments, the law of their noise, and its knowledge. Never the original."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import NOTHING, ExactMoments, Given, Informed, SampleMoments
from auditor.adversary.knowledge import Knowledge
from auditor.errors import NotApplicable
from auditor.numerics.combination import best_unbiased_combination, grain_of_moments
from auditor.numerics.linear_algebra import EPS, Pencil, clip_to_psd, descending_eigen
from auditor.numerics.moments import Moments, attribute_index, neighbours, square
from auditor.numerics.read_only import seal
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

MOST_KEPT, SMALL = 32, 64
"""Views of coalitions that a view keeps, if its copies have at most so many columns together: a megabyte."""
MOST_NEIGHBOURS, MOST_HALVES = 64, 2**21
"""Combinations of copies that are worked out together, and numbers on the way to their covariances: sixteen megabytes."""
FEW_COPIES = 16
"""Of so many copies combinations are kept: each is asked for by every attack in every redraw, and takes longer than all else there."""


@lru_cache(maxsize=4096)
def _found_before(Sigma: bytes, k: int, grain: float) -> tuple[Array, Array]:
    """Return the best combination of k copies, of which many attacks and redraws ask."""
    weights, variance = best_unbiased_combination(np.frombuffer(Sigma).reshape(k, k), grain)
    seal(weights)
    return weights, variance


def grain_of_copies(law: KroneckerNoise, loudest: Array, square: Array) -> Array:
    """Return what doubles round copies to, in roots of noise multiples, shape (..., N): ε of their size over the noise's own.

    Of copies up to a level, shape (...), of values with these mean squares, shape (..., N).
    """
    noise, loudest = np.diag(law.shape), np.asarray(loudest)[..., None]
    size = np.sqrt(np.clip(square + loudest * noise, np.finfo(float).tiny, None))
    return np.asarray(EPS * np.where(noise > 0, size / np.sqrt(np.where(noise > 0, noise, 1.0)), np.sqrt(np.maximum(loudest, EPS))))


def combinations(w: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Return means, shape (B, N), and covariances, shape (B, N, N), of several combinations ``Σ w_i Y_i`` of the same copies.

    Parameters
    ----------
    w : ndarray of shape (B, M)
        Of neighbours that hold much the same copies, such as prefixes, those from the first to the last are read once.
    mean, covariance : ndarrays of shapes (MN,) and (MN, MN)
        Of the stacked copies.
    """
    (B, M), N = w.shape, mean.size // w.shape[1]
    combined, step = np.empty((B, N, N)), max(1, min(MOST_NEIGHBOURS, MOST_HALVES // (M * N * N)))
    for here in (slice(start, start + step) for start in range(0, B, step)):
        held = np.flatnonzero(w[here].any(axis=0))
        some = w[here, held[0] : held[-1] + 1]
        k, window = some.shape[1], slice(held[0] * N, (held[-1] + 1) * N)
        # W = wᵀ ⊗ I, never written out: W m = Σ w_i m_i, and W C Wᵀ = Σ w_i C_ij w_j
        half = some @ covariance[window, window].reshape(k, N, k * N).swapaxes(0, 1)
        combined[here] = np.einsum("bj,nbjp->bnp", some, half.reshape(N, -1, k, N))
    return w @ mean.reshape(M, N), combined


def without_noise(covariance: Array, v: Array, law: KroneckerNoise) -> Array:
    """Return ``K_X``, shape (..., N, N), by the covariance of copies, or of combinations of them, with noise multiples v of shape (...)."""
    v = v[..., None, None]
    if law.follows_data:
        return np.asarray(covariance / (1.0 + v))
    return clip_to_psd(covariance - v * law.shape, covariance)


@dataclass(frozen=True, eq=False)
class View(Informed):
    """Everything an adversary has: its coalition's copies, in moments, and its knowledge. Never the original.

    Attributes
    ----------
    attributes : tuple of str
        Column names, N of them.
    copies : tuple of int
        The coalition, by copy number, ascending; k of them.
    levels : tuple of float
        Their levels; empty when nobody has said what they are.
    knowledge : Knowledge
        What else the adversary knows.
    law : NoiseLaw or None
        The law of the noise in the coalition's copies; None when nobody has stated it.
    centre : ndarray of shape (N,)
        A point near the data that moments are taken about. An attack may use it for nothing else. Copies that were transformed are far
        from it: their moments are about their own means, whatever those are.
    released : Moments
        Moments of the coalition's stacked copies over all rows released, about the centre, d = kN.
    given : Given
        What its knowledge gives: exact moments, moments of a sample, or records; see ``need`` and ``auditor.adversary.given``.
    scheme : mapping
        The scheme's ``name`` and parameters, which are no secret; its random numbers are.
    seed : int
        Of the guesses of an attack that guesses; says nothing of the scheme's.
    """

    attributes: tuple[str, ...]
    copies: tuple[int, ...]
    levels: tuple[float, ...]
    knowledge: Knowledge
    law: NoiseLaw | None
    centre: Array = field(repr=False)
    released: Moments = field(repr=False)
    given: Given = NOTHING
    scheme: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    seed: int = 0

    def __post_init__(self) -> None:
        """Seal every array: an attack that wrote to one would change what the next is shown."""
        seal(self.centre, *(() if self.law is None else vars(self.law).values()))
        if type(self.released) is Moments:  # those awaited are nobody else's
            seal(self.released.total, self.released.products)

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return len(self.attributes)

    def coalition(self, copies: Sequence[int]) -> View:
        """Return the view of a smaller coalition; copy numbers must be among this view's. Some are kept, as every attack asks for them."""
        kept = self._kept.get(tuple(copies))
        if kept is None:
            kept = self._coalition(copies)
            if len(self._kept) < MOST_KEPT and len(self.copies) * self.width <= SMALL:
                self._kept[tuple(copies)] = kept
        return kept

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], View]:
        return {}

    def _coalition(self, copies: Sequence[int]) -> View:
        places = [self._places[copy] for copy in copies]
        kept = replace(
            self,
            copies=tuple(copies),
            levels=tuple(self.levels[place - 1] for place in places) if self.levels else (),
            law=None if self.law is None else self.law.of(places),
            released=self.released.parts(places, self.width),
            given=self.given.of(places, self.width),
        )
        # weakly, as this view keeps that one: a circle would hold both until the collector comes
        vars(kept)["_within"] = weakref.ref(self), neighbours(attribute_index(places, self.width))
        return kept

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place of each copy among those held, from 1."""
        return {copy: place for place, copy in enumerate(self.copies, start=1)}

    @property
    def held(self) -> Moments:
        """Moments of the copies' rows that the adversary estimates from: its sample's with ``Estimated`` knowledge, else all released."""
        return self.given.copies if isinstance(self.given, SampleMoments) else self.released

    @cached_property
    def held_covariance(self) -> Array:
        """Covariance of these copies, divisor r − 1, shape (kN, kN): of all that are held it serves every coalition."""
        if (within := vars(self).get("_within")) is not None:  # not a field: a view that others make of this one is within none
            whole, places = within[0](), within[1]
            if whole is not None:
                return np.asarray(whole.held_covariance[square(places)])
        return self.held.covariance(max(1, self.held.count - 1))

    @property
    def known_columns(self) -> NDArray[np.intp]:
        """Places of the attributes whose true values the adversary has for every record."""
        return np.flatnonzero(np.isin(self.attributes, self.knowledge.in_clear))

    @cached_property
    def weights(self) -> Array:
        """Weights, shape (k,), of the unbiased combination ``Σ w_i Y_i`` of least variance that the law allows; sum 1.

        Without a law the copies count alike. Bounded so that moments still resolve the combination.
        """
        return np.full(len(self.copies), 1.0 / len(self.copies)) if self._combination is None else self._combination[0]

    @property
    def counting(self) -> tuple[int, ...]:
        """Copies that say all that the coalition's do by law: of one process the best, of Gaussian noise those combined, else all."""
        if isinstance(self.law, KroneckerNoise) and self.law.one_process:
            return (self.copies[int(np.argmin(np.diag(self.law.level_covariance)))],)
        if not isinstance(self.law, KroneckerNoise) or self.law.distribution != "gaussian":
            return tuple(self.copies)
        return tuple(copy for copy, weight in zip(self.copies, self.weights, strict=True) if weight)

    @cached_property
    def _combination(self) -> tuple[Array, Array] | None:
        """The combination and its noise multiple, its weights bounded by the grain of second moments: ε of what they are sums of."""
        if not isinstance(self.law, KroneckerNoise):
            return None
        Sigma = self.law.level_covariance
        grain = float(grain_of_moments(np.diag(Sigma).max()))
        if len(Sigma) > FEW_COPIES:
            return best_unbiased_combination(Sigma, grain)
        return _found_before(np.ascontiguousarray(Sigma, dtype=np.float64).tobytes(), len(Sigma), grain)

    @cached_property
    def grain(self) -> Array:
        """What doubles round the coalition's copies to, in roots of noise multiples, shape (N,): ε of their size over the noise's own."""
        law = self.law  # its own shape where that is to be estimated, too: an order of magnitude is all that is asked
        if not isinstance(law, KroneckerNoise):
            return np.full(self.width, EPS)
        variances = np.diag(self.given.covariance) if isinstance(self.given, ExactMoments) else self.held.variances[: self.width]
        return grain_of_copies(law, np.diag(law.level_covariance).max(initial=0.0), self.centre**2 + variances)

    @cached_property
    def combined_variance(self) -> float:
        """Noise multiple ``v`` of that combination, so that its noise has covariance ``v·K_0``.

        Raises
        ------
        NotApplicable
            The law is not known, or mixes shapes.
        """
        if self._combination is None:
            raise NotApplicable("the law of the noise is not known to have one shape across the copies")
        return float(self._combination[1])

    def combined(self, moments: Moments) -> tuple[Array, Array]:
        """Return mean, shape (N,), and covariance, shape (N, N), divisor r − 1, of ``Σ w_i Y_i`` over the rows of ``moments``."""
        covariance = self.held_covariance if moments is self.held else moments.covariance(max(1, moments.count - 1))
        mean, combined = combinations(self.weights[None], moments.mean, covariance)
        return self.centre + mean[0], combined[0]

    @cached_property
    def spectrum(self) -> tuple[Array, Array, Array, Array]:
        """Mean and covariance of the best combination of the rows held, and its eigenvalues and vectors, the largest first."""
        mean, covariance = self.combined(self.held)
        return mean, covariance, *descending_eigen(covariance)

    @cached_property
    def data_moments(self) -> tuple[Array, Array]:
        """``mu_X``, shape (N,), and ``K_X``, shape (N, N), as this adversary knows or estimates them.

        With ``Estimated`` knowledge the covariance of the copies' best combination less its noise, ``Cov − v·K_0`` (clipped to be
        positive semi-definite), or ``Cov / (1 + v)`` when the noise follows the data (li2012, section 6.1); then with the regression
        or tree that was published, if one was.

        Raises
        ------
        NotApplicable
            This knowledge does not give moments.
        """
        if isinstance(self.given, ExactMoments):
            return self.given.mean, self.given.covariance
        if not isinstance(self.given, SampleMoments):
            raise NotApplicable(f"needs the data's mean and covariance, which {self.knowledge.label} knowledge does not give")
        return self.given.completed(*self.estimated_moments)

    @cached_property
    def estimated_moments(self) -> tuple[Array, Array]:
        """Those moments as estimated from the rows held, without what was published.

        Raises
        ------
        NotApplicable
            The law of the noise is not known to have one shape across the copies.
        """
        mean, covariance = self.combined(self.held)
        v = self.combined_variance
        assert isinstance(self.law, KroneckerNoise)
        return mean, without_noise(covariance, np.asarray(v), self.law)

    @cached_property
    def pencil(self) -> Pencil:
        """``K_X`` and ``K_0`` diagonalised together, as this adversary knows them: one decomposition for every coalition.

        Raises
        ------
        NotApplicable
            This knowledge does not give moments, or the law of the noise is not known to have one shape across the copies.
        """
        law = self.known_law
        if not isinstance(law, KroneckerNoise):
            raise NotApplicable("the law of the noise is not known to have one shape across the copies")
        return Pencil.of(self.data_moments[1], law.shape)

    @cached_property
    def known_law(self) -> NoiseLaw:
        """The law with everything in it that the adversary must estimate put to its estimate: ``Sigma ⊗ K̂_X`` when it follows the data.

        Raises
        ------
        NotApplicable
            Nobody has stated the law of the noise.
        """
        if self.law is None:
            raise NotApplicable("needs the law of the noise, which these copies come without")
        if isinstance(self.law, KroneckerNoise) and self.law.follows_data:
            return replace(self.law, shape=self.data_moments[1])
        return self.law

"""Secret matrices, known on the span of known records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from auditor.numerics.linear_algebra import haar, quotient
from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    Cost,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    View,
    register,
    scipy,
    stream,
    unprinted,
)

RANK = 1e-10
"""Directions with less than this share of the known records' largest singular value count as
unknown."""


@register
class KnownInputOutputRotation(RowAttack):
    """Random rotation that fits known records, exact in their span.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``X_p, Y_p`` | known records and their copies, as rows | (p, N) | liu2008, section 4.1 |
    | ``V_1, V_2`` | orthonormal bases of the known records' span and of the rest | (N, r), (N, c) | SVD of ``X_p`` |
    | ``W_1, W_2`` | bases for the copies; ``W_1 = M V_1`` | (N, r), (N, c) | |
    | ``M̂`` | ``W_1 V_1ᵀ + W_2 Q V_2ᵀ``, Q Haar on O(c) | (N, N) | liu2006 |
    | ``x̂`` | ``M̂ᵀ y`` | (N,) | (12.5) |
    | ``d`` | distance of x from the span, ``‖W_2ᵀ y‖`` | scalar | |
    | ``θ`` | ``2 arcsin(‖x‖ε / 2d)``; the angle within which a guess is a hit | scalar | |
    | ``ρ(x, ε)`` | share of the sphere ``S^{c−1}`` within θ of a point: ``½ I_{sin²θ}((c−1)/2, ½)``; its complement beyond π/2 | scalar | |

    The printed (12.6), ``θ/π``, is right for c = 2 only. For c = 1 the probability is ½ until θ = π. A
    record in the span, or with ``‖x‖ε ≥ 2d``, is a certain hit.

    The mean squared error is ``2d²``, and ``d²`` for the mean of all guesses (``estimate: centre``).
    With a translation records are centred, and probabilities are unknown.

    Only the first copy is used: the others add no information.
    """

    name = "known-io-rotation"
    attack_kind = "with records"
    reference = "liu2006; liu2008, section 4.1, eqs. 12.5 and 12.6"
    families = frozenset({"rotation"})
    knowledge = ("known-records",)
    assumes = "The adversary has some records in clear, knows which released rows are theirs, and that the map is orthogonal."
    wins = "Exact for every record in the known records' span, so for all once N independent ones are known; else a blind guess outside it."

    class Parameters(PluginParameters):
        """Choice among fitting matrices, and number of guesses for hit rates."""

        estimate: Literal["guess", "centre"] = "guess"
        """one matrix that fits, or the mean over all of them"""
        guesses: int = Field(100, ge=1, le=100_000)
        """guesses that records-within averages over"""

    def cost_under(self, distribution: str | None) -> Cost:
        more = self.parameters.guesses
        return self.cost._replace(fit=self.cost.fit + 2e-5 * more, row=self.cost.row + 5e-9 * more)

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        records = view.need(Records)
        moved = bool(view.scheme.get("translation", False))
        fitting = FittingRotations.of(records.original, records.copies[0], moved)
        c, p = fitting.unknown, self.parameters
        rng = stream(view.seed, self.name)
        turns = haar(c, rng, p.guesses) if c else np.zeros((1, 0, 0))
        return RotationGuess(fitting, turns, p.estimate == "centre", moved)


def span(X: Array, Y: Array) -> tuple[Array, Array, Array]:
    """Bases of the span of X and of the rest, and ``M`` on the first.

    Rows of ``Y``, shape (p, n'), are ``M x`` of those of ``X``, shape (p, N).
    """
    U, s, Vt = np.linalg.svd(X, full_matrices=True)
    r = int((s > RANK * max(float(s[0]), np.finfo(float).tiny)).sum())
    return Vt[:r].T, Vt[r:].T, Y.T @ (U[:, :r] / s[:r])


@unprinted
class FittingRotations:
    """All orthogonal matrices that map known records to their copies.

    Centred if ``moved``.

    ``centre`` and ``copied_centre`` of the known records are 0 without a translation. Bases are named as
    above.
    """

    spanned: Array
    rest: Array
    transformed: Array
    rest_transformed: Array
    centre: Array
    copied_centre: Array

    @classmethod
    def of(cls, X_p: Array, Y_p: Array, moved: bool = False) -> FittingRotations:
        """Matrices for known records and copies of shape (p, N).

        Records may be dependent. That ``Y_p`` is a rotation of ``X_p`` is *not checked*.
        """
        N = X_p.shape[1]
        centre, copied = (
            (X_p.mean(axis=0), Y_p.mean(axis=0)) if moved else (np.zeros(N), np.zeros(N))
        )
        spanned, rest, W = span(X_p - centre, Y_p - copied)
        # QR keeps the leading columns; the nearest orthonormal basis would spread rounding over all
        Q, R = np.linalg.qr(W, mode="complete")
        transformed = Q[:, : len(R.T)] * np.where(np.diag(R) < 0, -1.0, 1.0)
        return cls(spanned, rest, transformed, Q[:, len(R.T) :], centre, copied)

    @property
    def unknown(self) -> int:
        """``c = N − r``, the unknown dimensions."""
        return int(self.rest.shape[1])

    def inside(self, y: Array) -> Array:
        """Known part of the records, shape (b, N)."""
        return self.centre + (y - self.copied_centre) @ self.transformed @ self.spanned.T

    def outside(self, y: Array) -> Array:
        """Coordinates of the unknown part, up to a rotation, shape (b, c)."""
        return (y - self.copied_centre) @ self.rest_transformed


@unprinted
class RotationGuess(Reconstruction):
    """One fitting rotation, and alternatives of equal probability."""

    fitting: FittingRotations
    turns: Array
    centre: bool
    moved: bool

    def rows(self, copies: Arrays) -> Array:
        if self.centre:
            return self.fitting.inside(copies[0])
        return next(self.guesses(copies))

    def guesses(self, copies: Arrays) -> Iterator[Array]:
        inside, outside = self.fitting.inside(copies[0]), self.fitting.outside(copies[0])
        for Q in [np.zeros((self.fitting.unknown,) * 2)] if self.centre else self.turns:
            yield inside + outside @ Q @ self.fitting.rest.T

    def chances(self, copies: Arrays, tolerance: float) -> Array | None:
        if self.moved or self.centre:
            return None
        length = np.linalg.norm(copies[0], axis=1)
        distance = np.linalg.norm(self.fitting.outside(copies[0]), axis=1)
        return success_probability(length, distance, tolerance, self.fitting.unknown)

    def expected(self, x: Array) -> Array:
        d2 = ((x - self.fitting.centre) @ self.fitting.rest) ** 2
        return d2.sum(axis=1) * (1.0 if self.centre else 2.0)


def success_probability(length: Array, distance: Array, tolerance: float, unknown: int) -> Array:
    """``ρ(x, ε)``, the probability of a guess within ``ε‖x‖``.

    A guess is a random fitting rotation. Source: ERRATA to (12.6).

    Parameters
    ----------
    length, distance : ndarrays of shape (b,)
        ``‖x‖`` and ``d(x, X_p)``.
    tolerance : float
        ``ε``, ≥ 0.
    unknown : int
        ``c = N − rank(X_p)``.

    Examples
    --------
    >>> one = np.ones(1)
    >>> [round(float(success_probability(one, one, 1.0, c)[0]), 4) for c in (1, 2, 3)]
    [0.5, 0.3333, 0.25]
    """
    certain = length * tolerance >= 2.0 * distance
    certain |= distance <= 1e-9 * length
    if unknown == 0:
        return np.ones(len(length))
    if unknown == 1:
        return np.where(certain, 1.0, 0.5)
    half = quotient(length * tolerance, 2.0 * distance, 1.0, ~certain)
    theta = 2.0 * np.arcsin(half)
    cap = 0.5 * scipy.special.betainc((unknown - 1) / 2.0, 0.5, np.sin(theta) ** 2)
    return np.where(certain, 1.0, np.where(theta <= np.pi / 2.0, cap, 1.0 - cap))


@register
class KnownInputOutputProjection(RowAttack):
    """MAP estimate against a random projection, exact in the known span.

    | symbol | meaning | shape | source |
    | --- | --- | --- | --- |
    | ``X_p, Y_p`` | known records and their copies, as rows; r the rank of ``X_p`` | (p, N), (p, n') | liu2008, section 4.1 |
    | ``V`` | orthonormal basis of the known records' span | (N, r) | SVD of ``X_p`` |
    | ``G`` | ``M V``, known exactly: independent N(0, σ²) entries | (n', r) | |
    | ``x_∥, x_⊥`` | parts of x in the span and orthogonal to it | (N,) | |
    | ``y`` | ``G Vᵀx + M x_⊥``, the last N(0, σ²‖x_⊥‖² I) independent of G | (n',) | (12.8), Theorem 12.2 |
    | ``x̂_∥`` | ``V G⁺ y`` | (N,) | ERRATA to (12.8) |
    | ``‖x̂_⊥‖²`` | ``‖y − G G⁺ y‖² / (n' σ²)`` | scalar | |

    The likelihood ``(σ²‖x_⊥‖²)^{−n'/2} exp(−‖y − G Vᵀx‖² / 2σ²‖x_⊥‖²)`` is largest at the last two
    rows, in any direction orthogonal to the span. ``estimate: map`` draws a direction; ``centre`` uses
    none, which is closer.

    | expected ``‖x̂ − x‖²``, given G | over G too, where finite | when |
    | --- | --- | --- |
    | 0 | 0 | x lies in the span and r ≤ n' |
    | ``‖x_⊥‖² (1 + σ² tr (GᵀG)⁻¹)``, plus ``‖x_⊥‖² (n'−r)/n'`` for a drawn direction | ``1 + r/(n'−r−1)`` | r ≤ n' |
    | ``‖x_⊥‖² (1 + σ² tr (GGᵀ)⁻¹) + ‖(I − G⁺G) Vᵀ(x − x̄)‖²`` | ``1 + n'/(r−n'−1)``; ``‖x_∥ − x̄‖² (1 − n'/r)`` | r > n' |

    For r ≥ n' the estimate is ``x_⊥ = 0``, where the likelihood is unbounded. For r > n' the fit nearest
    to the known mean x̄ is used. Theory is the first column. k copies of n' columns are one of kn'.

    Reference: liu2007.
    """

    name = "known-io-projection"
    attack_kind = "with records"
    reference = "liu2007; liu2008, section 4.1, eq. 12.8"
    families = frozenset({"random-projection"})
    knowledge = ("known-records",)
    assumes = "The adversary has some records in clear with their rows, and knows that entries are normal, and their variance."
    wins = "Exact for records in the known records' span while these are no more than dimensions; gains with every copy."

    class Parameters(PluginParameters):
        """Direction that the likelihood leaves open."""

        estimate: Literal["map", "centre"] = "map"
        """a point of greatest likelihood, or the centre of all of them"""

    def fit(self, view: View, blocks: CopyBlocks) -> Reconstruction:
        records = view.need(Records)
        if view.scheme.get("matrix", "gaussian") != "gaussian":
            raise NotApplicable(
                "supposes a matrix of independent normal entries; this one is a cosine transform"
            )
        known = KnownSpan.of(records.original, np.hstack(records.copies))
        away = known.rest @ _direction(known.rest.shape[1], view.seed, self.name)
        return ProjectionMAP(
            known,
            float(view.scheme["variance"]),
            away if self.parameters.estimate == "map" else None,
        )


def _direction(size: int, seed: int, name: str) -> Array:
    u = stream(seed, name).standard_normal(size)
    return u / np.linalg.norm(u) if size else u


@unprinted
class KnownSpan:
    """A linear map on the span of known records.

    Attributes
    ----------
    spanned, rest : ndarrays of shape (N, r), (N, N − r)
        ``V`` and a basis of its orthogonal complement.
    image : ndarray of shape (n', r)
        ``G = M V``.
    mean : ndarray of shape (N,)
        Of the known records.
    """

    spanned: Array
    rest: Array
    image: Array
    mean: Array

    @classmethod
    def of(cls, X_p: Array, Y_p: Array) -> KnownSpan:
        """Span of known records, shape (p, N), with copies (p, n')."""
        return cls(*span(X_p, Y_p), X_p.mean(axis=0))

    @property
    def determined(self) -> bool:
        """Whether a copy determines the part in the span, r ≤ n'."""
        return bool(self.image.shape[1] <= self.image.shape[0])


class ProjectionMAP(Reconstruction):
    """The closed form of (12.8)."""

    def __init__(self, known: KnownSpan, variance: float, away: Array | None) -> None:
        self._known, self._variance, self._away = known, variance, away
        self._inverse = np.linalg.pinv(known.image, rcond=RANK)

    def rows(self, copies: Arrays) -> Array:
        known, y = self._known, np.hstack(list(copies))
        start = known.mean @ known.spanned
        residual = y - start @ known.image.T
        coordinates = start + residual @ self._inverse.T
        estimate = coordinates @ known.spanned.T
        if self._away is None or not known.determined:
            return estimate
        left = y - coordinates @ known.image.T
        return estimate + beside(left, y, self._variance)[:, None] * self._away

    def expected(self, x: Array) -> Array:
        known = self._known
        n, r = known.image.shape
        across = ((x @ known.rest) ** 2).sum(axis=1)
        guessed = (n - r) / n if self._away is not None and known.determined else 0.0
        away = across * (1.0 + self._variance * (self._inverse**2).sum() + guessed)
        if known.determined:
            return away
        along = (x - known.mean) @ known.spanned
        return away + ((along - along @ known.image.T @ self._inverse.T) ** 2).sum(axis=1)


def beside(left: Array, y: Array, variance: float) -> Array:
    """``‖x̂_⊥‖ = ‖left‖ / sqrt(n' σ²)``, shape (b,); 0 below rounding.

    ``left = y − G G⁺ y`` and y for scale, shapes (b, n'); the variance is ``σ²``.
    """
    size = np.linalg.norm(left, axis=1)
    size = np.where(size > 1e-9 * np.linalg.norm(y, axis=1), size, 0.0)
    return size / np.sqrt(left.shape[1] * variance)

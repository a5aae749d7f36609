"""MAP estimate against a random projection, given known records.

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

from __future__ import annotations

from typing import Literal

import numpy as np

from auditor.plugin import (
    Array,
    Arrays,
    CopyBlocks,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    Records,
    RowAttack,
    View,
    register,
    stream,
    unprinted,
)

from .known_io_rotation import RANK, span


@register
class KnownInputOutputProjection(RowAttack):
    """MAP estimate against a random projection, exact in the known span."""

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

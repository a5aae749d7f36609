"""Gaussian tables with chosen moments: the papers' optimal attacks' law.

=======  ==============================================  ==============  ============================
symbol   meaning                                         shape           source
=======  ==============================================  ==============  ============================
mu_X     mean                                            (N,)            parameter ``mean``
K_X      covariance ``V diag(lam) Vᵀ``                   (N, N)          parameter ``covariance``
lam      eigenvalues, in squared data units              (N,)            parameter ``spectrum``
V        eigenvectors; Haar-random for a spectrum        (N, N)          Mezzadri 2007
=======  ==============================================  ==============  ============================

A two-level spectrum tests spectral filtering and PCA attacks.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from auditor.base.errors import DataError
from auditor.base.text import counted
from auditor.base.types import Array
from auditor.data.source import RecordLaw, Synthetic
from auditor.numerics.linear_algebra import haar, in_own_units, widely_scaled
from auditor.registry import PluginParameters, register

DEFAULT_ROWS = 1000
MOST_ATTRIBUTES = 5000
"""A covariance of this width takes 200 MB."""

ROUNDING = 1e-10
"""Share of the largest below which eigenvalues and asymmetries count as rounding."""

Eigenvalue = Annotated[float, Field(ge=0)]


class TwoLevels(PluginParameters):
    """A spectrum of ``count`` eigenvalues ``large``, the rest ``small``.

    ``large`` is given, or follows from the mean variance.
    """

    large: float | None = Field(
        default=None, gt=0, description="The large eigenvalues, in squared data units."
    )
    mean_variance: float | None = Field(
        default=None,
        gt=0,
        description="Instead of large: what the attributes' variances average to, in squared data units.",
    )
    count: int = Field(ge=1, description="How many eigenvalues are large.")
    small: float = Field(ge=0, description="The other eigenvalues, in squared data units.")
    attributes: int = Field(ge=1, le=MOST_ATTRIBUTES, description="Number of attributes N.")

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.count > self.attributes:
            raise ValueError(
                f"count ({self.count}) must not be more than attributes ({self.attributes})"
            )
        if (self.large is None) == (self.mean_variance is None):
            raise ValueError("give either large or mean-variance")
        if self.upper <= 0:
            raise ValueError(
                f"mean-variance ({self.mean_variance:g}) must be more than the small eigenvalues alone make"
            )
        return self

    @property
    def upper(self) -> float:
        """Large eigenvalues; the trace is the sum of variances (huang2005, (12))."""
        if self.large is not None:
            return self.large
        assert self.mean_variance is not None
        return (
            self.mean_variance * self.attributes - self.small * (self.attributes - self.count)
        ) / self.count


def _shape(value: Any) -> str:
    if isinstance(value, (dict, TwoLevels)):
        return "levels"
    return "list" if isinstance(value, list) else "number"


@register
class Gaussian(Synthetic):
    """Synthetic Gaussian records with any covariance or spectrum.

    Any mean; eigenvectors of a spectrum are random. Attributes are ``x1`` to ``xN``. ``rows``
    (default 1,000) is the number of records drawn.
    """

    name = "gaussian"
    reference = "F. Mezzadri, How to generate random matrices from the classical compact groups, Notices AMS 54 (2007)"
    description = "Synthetic Gaussian records"
    trial = MappingProxyType(
        {
            "spectrum": {"large": 4.0, "count": 1, "small": 0.5, "attributes": 3},
            "mean": [0.0, 1.0, 2.0],
        }
    )

    class Parameters(PluginParameters):
        """The law of the records; either ``covariance`` or ``spectrum``."""

        mean: Annotated[
            Annotated[float, Tag("number")] | Annotated[list[float], Tag("list")],
            Discriminator(_shape),
        ] = Field(
            default=0.0, description="Mean, one for all attributes or one for each, in data units."
        )
        covariance: list[list[float]] | None = Field(
            default=None,
            min_length=1,
            max_length=MOST_ATTRIBUTES,
            description="N rows of N: symmetric and positive semidefinite; may be singular. In squared data units.",
        )
        spectrum: (
            Annotated[
                Annotated[TwoLevels, Tag("levels")]
                | Annotated[
                    list[Eigenvalue], Tag("list"), Field(min_length=1, max_length=MOST_ATTRIBUTES)
                ],
                Discriminator(lambda value: "list" if isinstance(value, list) else "levels"),
            ]
            | None
        ) = Field(
            default=None,
            description="Eigenvalues of the covariance, a list or {large, count, small, attributes}; "
            "the eigenvectors are random. In squared data units; mean-variance may stand for large.",
        )
        exact: bool = Field(
            default=False,
            description="Whether the table drawn has exactly this mean and covariance (divisor n).",
        )

        @model_validator(mode="after")
        def _consistent(self) -> Self:
            if self.covariance is None and self.spectrum is None:
                raise ValueError("needs covariance, or spectrum")
            if self.covariance is not None and self.spectrum is not None:
                raise ValueError("takes covariance or spectrum, not both")
            if self.covariance is not None:
                _check_covariance(self.covariance)
            elif not any(eigenvalues(self.spectrum)):
                raise ValueError("spectrum must have an eigenvalue above 0")
            width = len(self.covariance or eigenvalues(self.spectrum))
            if isinstance(self.mean, list) and len(self.mean) != width:
                raise ValueError(
                    f"mean has length {len(self.mean)}; there are {counted(width, 'attribute')}"
                )
            return self

    def width(self) -> int:
        return len(self.parameters.covariance or eigenvalues(self.parameters.spectrum))

    def law(self) -> RecordLaw:
        return RecordLaw()

    def numbers(self, rows: int | None, rng: np.random.Generator) -> dict[str, Array]:
        """Draw ``rows`` records of ``x1`` to ``xN``.

        Unless ``exact``, a larger table extends a smaller one.
        """
        n = DEFAULT_ROWS if rows is None else rows
        lam, V, size = self._law(rng)
        values = np.array(self.parameters.mean) + size * draw(
            n, lam, V, rng, exact=self.parameters.exact
        )
        return {f"x{i}": column for i, column in enumerate(values.T, 1)}

    def population(self, rng: np.random.Generator) -> Array:
        """``K_X = V diag(lam) Vᵀ``, shape (N, N)."""
        lam, V, size = self._law(rng)
        return np.asarray((V * lam) @ V.T * np.multiply.outer(size, size))

    def _law(self, rng: np.random.Generator) -> tuple[Array, Array, Array | float]:
        given = self.parameters
        if given.covariance is None:
            lam = np.array(eigenvalues(given.spectrum), dtype=np.float64)
            # first, to be independent of the number of records
            return lam, haar(len(lam), rng), 1.0
        K_X = np.array(given.covariance, dtype=np.float64)
        K_X, size = in_own_units(K_X) if widely_scaled(K_X) else (K_X, 1.0)
        return *spectral(K_X), size


def eigenvalues(spectrum: TwoLevels | list[float] | None) -> list[float]:
    """Full spectrum, of length N."""
    if isinstance(spectrum, TwoLevels):
        return [spectrum.upper] * spectrum.count + [spectrum.small] * (
            spectrum.attributes - spectrum.count
        )
    return list(spectrum or ())


def spectral(K_X: Array) -> tuple[Array, Array]:
    """Eigenvalues (N,), exactly 0 up to rounding, and eigenvectors."""
    lam, V = np.linalg.eigh(K_X)
    return np.where(lam > ROUNDING * lam[-1], lam, 0.0), V


def draw(n: int, lam: Array, V: Array, rng: np.random.Generator, *, exact: bool = False) -> Array:
    """Draw n records of ``N(0, V diag(lam) Vᵀ)``, shape (n, N).

    By the symmetric root, and for ``exact`` symmetric whitening. Both are unique up to rounding,
    unlike eigenvectors.

    Raises
    ------
    DataError
        ``exact`` is set, and n records cannot have a covariance of this rank.
    """
    used = lam > 0
    rank = int(used.sum())
    if exact and n <= rank:
        raise DataError(
            f"source 'gaussian': exact moments of rank {rank} need at least {rank + 1} rows; got {n}"
        )
    # X − mu_X = G V diag(√lam) Vᵀ,  G standard normal
    scores = rng.standard_normal((n, len(lam))) @ V[:, used]
    scores = whitened(scores) if exact else scores
    return np.asarray((scores * np.sqrt(lam[used])) @ V[:, used].T)


def whitened(scores: Array) -> Array:
    """Smallest change of scores (n, r) to mean 0, covariance I (divisor n)."""
    centred = scores - scores.mean(axis=0)
    # C^(−1/2) = U diag(s^(−1/2)) Uᵀ
    s, U = np.linalg.eigh(centred.T @ centred / len(centred))
    return np.asarray(centred @ ((U / np.sqrt(s)) @ U.T))


def _check_covariance(rows: list[list[float]]) -> None:
    N = len(rows)
    wrong = next((i for i, row in enumerate(rows, 1) if len(row) != N), None)
    if wrong is not None:
        raise ValueError(
            f"covariance must be square: {counted(N, 'row')}, but {len(rows[wrong - 1])} entries in row {wrong}"
        )
    K_X = np.array(rows, dtype=np.float64)
    scale = float(np.abs(K_X).max())
    apart = np.argwhere(np.abs(K_X - K_X.T) > ROUNDING * scale)
    if len(apart):
        i, j = apart[0] + 1
        raise ValueError(f"covariance must be symmetric: entries ({i}, {j}) and ({j}, {i}) differ")
    if scale == 0:
        raise ValueError("covariance must not be all zeros")
    lam = np.linalg.eigvalsh(K_X)
    if (np.diag(K_X) < 0).any() or np.linalg.eigvalsh(in_own_units(K_X)[0])[0] < -ROUNDING * N:
        raise ValueError(
            f"covariance must be positive semidefinite; its eigenvalues go from {lam[0]:.3g} to {lam[-1]:.3g}"
        )

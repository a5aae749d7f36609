"""Tables with chosen moments: Gaussian, or of independent components.

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

from collections.abc import Callable
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from auditor.base import DataError, counted, scipy
from auditor.base.types import Array, Generator, Pair
from auditor.data.source import NORMAL, RecordLaw, RecordShape, Synthetic, normal_cdf
from auditor.numerics.linear_algebra import check_covariance, haar, in_own_units, widely_scaled
from auditor.registry import PluginParameters, register

MOST_ATTRIBUTES = 5000
"""A covariance of this width takes 200 MB."""

ROUNDING = 1e-10
"""Share of the largest below which eigenvalues and asymmetries count as rounding."""

Spectrum = Annotated[
    list[Annotated[float, Field(ge=0)]], Field(min_length=1, max_length=MOST_ATTRIBUTES)
]


class TwoLevels(PluginParameters):
    """A spectrum of ``count`` eigenvalues ``large``, the rest ``small``.

    ``large`` is given, or follows from the mean variance.
    """

    large: float | None = Field(None, gt=0)
    """The large eigenvalues, in squared data units."""
    mean_variance: float | None = Field(None, gt=0)
    """Instead of large: what the attributes' variances average to, in squared data units."""
    count: int = Field(ge=1)
    """How many eigenvalues are large."""
    small: float = Field(ge=0)
    """The other eigenvalues, in squared data units."""
    attributes: int = Field(ge=1, le=MOST_ATTRIBUTES)
    """Number of attributes N."""

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

        mean: float | list[float] = 0.0
        """Mean, one for all attributes or one for each, in data units."""
        covariance: list[list[float]] | None = Field(None, min_length=1, max_length=MOST_ATTRIBUTES)
        """N rows of N: symmetric and positive semidefinite; may be singular. In squared data units."""
        spectrum: (
            Annotated[
                Annotated[TwoLevels, Tag("levels")] | Annotated[Spectrum, Tag("list")],
                Discriminator(lambda value: "list" if isinstance(value, list) else "levels"),
            ]
            | None
        ) = Field(
            default=None,
            description="Eigenvalues of the covariance, a list or {large, count, small, attributes}; "
            "the eigenvectors are random. In squared data units; mean-variance may stand for large.",
        )
        exact: bool = False
        """Whether the table drawn has exactly this mean and covariance (divisor n)."""

        @model_validator(mode="after")
        def _consistent(self) -> Self:
            if (self.covariance is None) == (self.spectrum is None):
                raise ValueError("needs either covariance or spectrum")
            if self.covariance is not None:
                try:
                    check_covariance(self.covariance)
                except ValueError as error:
                    raise ValueError(f"covariance {error}") from None
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

    def records(self, n: int, rng: Generator) -> Array:
        """Draw n records; unless ``exact``, a larger table extends a smaller one."""
        lam, V, size = self._law(rng)
        drawn = draw(n, lam, V, rng, exact=self.parameters.exact)
        return np.array(self.parameters.mean) + size * drawn

    def population(self, rng: Generator) -> Array:
        """``K_X = V diag(lam) Vᵀ``, shape (N, N)."""
        lam, V, size = self._law(rng)
        return (V * lam) @ V.T * np.multiply.outer(size, size)

    def _law(self, rng: Generator) -> tuple[Array, Array, Array | float]:
        given = self.parameters
        if given.covariance is None:
            lam = np.array(eigenvalues(given.spectrum), dtype=float)
            # first, to be independent of the number of records
            return lam, haar(len(lam), rng), 1.0
        K_X = np.array(given.covariance, dtype=float)
        K_X, size = in_own_units(K_X) if widely_scaled(K_X) else (K_X, 1.0)
        return *spectral(K_X), size


def eigenvalues(spectrum: TwoLevels | list[float] | None) -> list[float]:
    """Full spectrum, of length N."""
    if isinstance(spectrum, TwoLevels):
        return [spectrum.upper] * spectrum.count + [spectrum.small] * (
            spectrum.attributes - spectrum.count
        )
    return list(spectrum or ())


def spectral(K_X: Array) -> Pair:
    """Eigenvalues (N,), exactly 0 up to rounding, and eigenvectors."""
    lam, V = np.linalg.eigh(K_X)
    return np.where(lam > ROUNDING * lam[-1], lam, 0.0), V


def draw(n: int, lam: Array, V: Array, rng: Generator, *, exact: bool = False) -> Array:
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
    return (scores * np.sqrt(lam[used])) @ V[:, used].T


def whitened(scores: Array) -> Array:
    """Smallest change of scores (n, r) to mean 0, covariance I (divisor n)."""
    centred = scores - scores.mean(axis=0)
    # C^(−1/2) = U diag(s^(−1/2)) Uᵀ
    s, U = np.linalg.eigh(centred.T @ centred / len(centred))
    return centred @ ((U / np.sqrt(s)) @ U.T)


# -- Independent attributes with chosen shapes, for tests of identification ------------------------


Shape = Literal["normal", "exponential", "gamma", "uniform", "laplace", "bimodal"]


DRAW: dict[str, Callable[[int, Generator], Array]] = {
    "normal": lambda n, rng: rng.standard_normal(n),
    "exponential": lambda n, rng: rng.standard_exponential(n) - 1.0,
    "gamma": lambda n, rng: (rng.standard_gamma(4.0, n) - 4.0) / 2.0,
    "uniform": lambda n, rng: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), n),
    "laplace": lambda n, rng: rng.laplace(scale=np.sqrt(0.5), size=n),
    "bimodal": lambda n, rng: (
        (rng.choice([-1.0, 1.0], n) + 0.3 * rng.standard_normal(n)) / np.sqrt(1.09)
    ),
}

ROOT_3, BIMODAL = float(np.sqrt(3.0)), float(np.sqrt(1.09))

SHAPES: dict[str, RecordShape] = {
    "normal": NORMAL,
    "exponential": RecordShape(lambda t: -np.expm1(-np.clip(t + 1.0, 0.0, None)), -1.0, 27.0),
    "gamma": RecordShape(
        lambda t: scipy.special.gammainc(4.0, np.clip(2.0 * t + 4.0, 0.0, None)), -2.0, 18.0
    ),
    "uniform": RecordShape(lambda t: np.clip(0.5 + 0.5 * t / ROOT_3, 0.0, 1.0), -ROOT_3, ROOT_3),
    "laplace": RecordShape(
        lambda t: 0.5 + 0.5 * np.sign(t) * -np.expm1(-np.sqrt(2.0) * np.abs(t)), -20.0, 20.0
    ),
    "bimodal": RecordShape(
        lambda t: (
            0.5 * (normal_cdf((BIMODAL * t - 1.0) / 0.3) + normal_cdf((BIMODAL * t + 1.0) / 0.3))
        ),
        -3.2,
        3.2,
    ),
}
"""The laws of the draws of ``DRAW``."""


@register
class Components(Synthetic):
    """Synthetic records with independent attributes, optionally mixed.

    Any shapes, means and deviations, and a mixing matrix. Attributes are ``x1`` to ``xN``. ``rows``
    (default 1,000) is the number of records drawn.
    """

    name = "components"
    description = "Synthetic records with independent attributes"
    trial = MappingProxyType({"shapes": ["normal", "uniform"]})

    class Parameters(PluginParameters):
        """Shape, mean and deviation of each attribute."""

        shapes: list[Shape] = Field(min_length=1, max_length=1000)
        """law of each attribute, repeated over `attributes`"""
        attributes: Annotated[int, Field(ge=1, le=1000)] | None = None
        """how many; as many as shapes by default"""
        mean: float = 0.0
        """mean of every attribute, in its own standard deviations"""
        ratio: float = Field(1.5, ge=1, le=10)
        """each one's deviation over the one before; the first's is 1"""
        mixing: list[list[float]] | None = None
        """N rows of N: the attributes are this matrix times the components"""

        @model_validator(mode="after")
        def _square(self) -> Any:
            N = self.attributes or len(self.shapes)
            if self.mixing is not None and (
                len(self.mixing) != N or any(len(row) != N for row in self.mixing)
            ):
                raise ValueError(f"mixing must be {N} rows of {N}")
            return self

    def width(self) -> int:
        return self.parameters.attributes or len(self.parameters.shapes)

    def law(self) -> RecordLaw | None:
        """Law of the data if attributes are independent or normal, else None."""
        given = self.parameters
        if set(given.shapes) == {"normal"}:
            return RecordLaw()
        if given.mixing is not None:
            return None
        return RecordLaw(
            {f"x{j + 1}": SHAPES[given.shapes[j % len(given.shapes)]] for j in range(self.width())}
        )

    def records(self, n: int, rng: Generator) -> Array:
        given = self.parameters
        N = given.attributes or len(given.shapes)
        columns = [DRAW[given.shapes[j % len(given.shapes)]](n, rng) for j in range(N)]
        values: Array = (np.column_stack(columns) + given.mean) * given.ratio ** np.arange(N)
        if given.mixing is not None:
            values = values @ np.array(given.mixing).T
        return values


@register
class Intervals(Synthetic):
    """Synthetic records of one attribute, ``x``, uniform on a few intervals.

    Each has probability in proportion to its length. ``rows`` (default 10,000) is the number of
    records drawn.
    """

    name = "intervals"
    reference = "liu2008, section 3.6"
    usual_rows = 10_000
    description = "Synthetic records, uniform on a few intervals"

    class Parameters(PluginParameters):
        """The intervals."""

        intervals: list[list[float]] = Field([[0.0, 1.0], [5.0, 6.0]], min_length=1)
        """[low, high] of each, ascending and apart, in data units"""

        @field_validator("intervals")
        @classmethod
        def _ascending(cls, intervals: list[list[float]]) -> list[list[float]]:
            flat = [end for interval in intervals for end in interval]
            if (
                any(len(interval) != 2 for interval in intervals)
                or sorted(flat) != flat
                or len(set(flat)) != len(flat)
            ):
                raise ValueError("must be [low, high] pairs, ascending and apart")
            return intervals

    def width(self) -> int:
        return 1

    def law(self) -> RecordLaw:
        ends = np.array(self.parameters.intervals, dtype=float)
        length = np.diff(ends, axis=1)[:, 0]
        share = length / length.sum()
        mean = float(share @ ends.mean(axis=1))
        std = float(np.sqrt(share @ (length**2 / 12.0 + (ends.mean(axis=1) - mean) ** 2)))
        at, reached = (ends.ravel() - mean) / std, np.repeat(np.cumsum([0.0, *share]), 2)[1:-1]
        return RecordLaw(
            {"x": RecordShape(lambda t: np.interp(t, at, reached), float(at[0]), float(at[-1]))}
        )

    def numbers(self, rows: int | None, rng: Generator) -> dict[str, Array]:
        low, high = np.array(self.parameters.intervals, dtype=float).T
        n = self.usual_rows if rows is None else rows
        place = rng.choice(len(low), size=n, p=(high - low) / (high - low).sum())
        return {"x": low[place] + rng.random(n) * (high - low)[place]}

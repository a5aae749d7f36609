"""Base class of data sources."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor import registry
from auditor.process.deferred import pd, scipy
from auditor.registry import Plugin
from auditor.types import Array


class Outline(NamedTuple):
    """Properties of a source's table known in advance.

    Attributes
    ----------
    columns : tuple of N str
    rows : int
        ``n``.
    mean : ndarray of shape (N,)
    covariance : ndarray of shape (N, N)
        Divisor n; exact up to rounding, like the mean.
    """

    columns: tuple[str, ...]
    rows: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


class Source(Plugin):
    """A named source of microdata; ``frame`` returns raw columns.

    `auditor.data.load` selects, checks and standardises. A purely numeric source may define
    ``numbers`` instead of ``frame``, which avoids the import of pandas.
    """

    kind = "source"
    description: ClassVar[str] = ""
    licence: ClassVar[str] = ""
    labels: ClassVar[tuple[str, ...]] = ()
    """Class columns, excluded unless ``columns:`` names them."""

    def width(self) -> int:
        """Return the number of attributes of a synthetic source, else 0."""
        return 0

    def domains(self) -> dict[str, list[Any]]:
        """Return the domains of categorical columns; none by default."""
        return {}

    def law(self) -> RecordLaw | None:
        """Return the law of independent records; None if unknown or dependent."""
        return None

    def outline(self, rows: int | None) -> Outline | None:
        """Return the known properties of ``frame`` for ``rows`` records, or None.

        ``auditor check`` then need not build it. Only for complete, finite numeric columns that
        vary.
        """
        return None

    public: ClassVar[bool] = False
    """Whether its records are synthetic or published, so that figures are not rounded."""

    def population(self, rng: np.random.Generator) -> NDArray[np.float64] | None:
        """Return the population covariance of all columns, if stated.

        Parameters
        ----------
        rng : Generator
            As given to ``frame``, so a random law is drawn again identically.
        """
        return None

    def frame(self, rows: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """Return the source's columns.

        Parameters
        ----------
        rows : int or None
            For a synthetic source the number of records to draw (None: its default). A source with
            its own data returns its first ``rows`` records, or all if it has fewer; the loader
            notifies the user.
        rng : Generator
            The only randomness a source may use.
        """
        return pd.DataFrame(dict(self.numbers(rows, rng)))

    def numbers(self, rows: int | None, rng: np.random.Generator) -> Mapping[str, NDArray[Any]]:
        """Return the columns by name, for arguments as in ``frame``.

        Integers or floats of shape (n,), NaN if missing. Only audited columns are accessed.
        """
        raise NotImplementedError


def is_public(source: str) -> bool:
    """Whether a source's records are public; a file's are private."""
    return registry.has("source", source) and bool(registry.get("source", source).public)


def noise_seed(source: str, seed: int, fingerprint: str) -> int:
    """Return the seed of an audit's noise.

    The scenario's seed; for a private table mixed with its fingerprint. A scenario's seed is
    public. If the noise could be reproduced, every figure would be an equation for the records, and
    enough figures would determine them. So only a holder of the table can reproduce it.
    """
    return (
        seed
        if is_public(source)
        else int.from_bytes(hashlib.sha256(f"{seed} {fingerprint}".encode()).digest(), "little")
    )


@dataclass(frozen=True)
class RecordShape:
    """Distribution of one attribute, standardised.

    Attributes
    ----------
    cdf : callable
        Distribution function of arrays; continuous.
    low, high : float
        Ends of the support, or of all but a share of 1e-12.
    """

    cdf: Callable[[Array], Array]
    low: float
    high: float


def normal_cdf(t: Array) -> Array:
    """Return ``Φ(t)``."""
    return np.asarray(scipy.special.ndtr(t))


NORMAL = RecordShape(normal_cdf, -7.5, 7.5)


@dataclass(frozen=True)
class RecordLaw:
    """Law of independent records, up to means and covariances.

    Attributes
    ----------
    shapes : mapping
        Attribute → its shape, if attributes are independent. Empty: jointly normal.
    """

    shapes: Mapping[str, RecordShape] = field(default_factory=dict)

    @property
    def normal(self) -> bool:
        """Whether records are jointly normal."""
        return not self.shapes

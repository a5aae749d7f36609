"""Law of a synthetic source's records; the basis of bounds on all attacks.

Without means and covariances: the table's own values are used, as in the whole audit. The
difference is of order 1/n in an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from auditor.process.deferred import scipy
from auditor.types import Array


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

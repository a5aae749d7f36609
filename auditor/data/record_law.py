"""The law that a synthetic source draws its records from: what nobody can know of a file, and what bounds on every attack rest on.

Means and covariances are left out of it: those of the table at hand stand for them, as everywhere in an audit. They differ from the law's
by what n records leave open, of order 1/n in an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from auditor.process.deferred import scipy
from auditor.types import Array


@dataclass(frozen=True)
class RecordShape:
    """The law of one attribute, brought to mean 0 and variance 1.

    Attributes
    ----------
    cdf : callable
        Distribution function of arrays; continuous.
    low, high : float
        Ends of the support, or where all but a trillionth lies within.
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
    """Records drawn independently of one another from one law, up to means and covariances.

    Attributes
    ----------
    shapes : mapping
        Attribute → its shape, where attributes are independent. Empty: they are jointly normal.
    """

    shapes: Mapping[str, RecordShape] = field(default_factory=dict)

    @property
    def normal(self) -> bool:
        """Whether records are jointly normal."""
        return not self.shapes

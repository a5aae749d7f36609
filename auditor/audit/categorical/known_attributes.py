"""Posterior when some attributes are known exactly.

The true values of the known attributes are a function of the record's value. So one array holds the
posteriors for every possible record: for each value z of the domain
``P(z | y, z's own combination of known attributes)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array, Indices


@dataclass(frozen=True)
class KnownPart:
    """Combination of known attributes' values, one of G, for each value of the domain.

    Attributes
    ----------
    known : ndarray of shape (s,) or None
        The combination of each value, 0 … G − 1. None: no attribute is known.
    """

    known: Indices | None

    def of(self, x: Indices) -> Indices | int:
        """Return the combination of values x."""
        return 0 if self.known is None else self.known[x]

    def reduced(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Reduce values of shape (u, s) within each combination, shape (u, G)."""
        if self.known is None:
            return function.reduce(values, axis=1, keepdims=True)
        order = np.argsort(self.known, kind="stable")
        starts = np.flatnonzero(np.diff(self.known[order], prepend=-1))
        return function.reduceat(values[:, order], starts, axis=1)

    def posterior(self, P: Array) -> Array:
        """Return ``P(z | the combination is z's)``, shape (u, s) as P.

        A combination of probability 0 contradicts the adversary's prior: its values are then
        equally likely.
        """
        if self.known is None:
            return P
        share = self.reduced(np.add, P)[:, self.known]
        uniform = (1.0 / np.bincount(self.known))[self.known]
        return np.where(
            share > 0, np.divide(P, share, out=np.zeros_like(P), where=share > 0), uniform
        )

    def best(self, P: Array) -> Indices:
        """Return the likeliest value of each combination, the first of ties, shape (u, G)."""
        if self.known is None:
            return P.argmax(axis=1)[:, None]
        highest = self.reduced(np.maximum, P)[:, self.known]
        places = np.where(highest == P, np.arange(self.known.size), self.known.size)
        return np.asarray(self.reduced(np.minimum, places), dtype=np.intp)

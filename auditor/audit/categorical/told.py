"""Posteriors of an adversary who is told some attributes of every record: it has to tell apart only the values that have the true ones.

Which these are is a function of the truth. So one table has the posteriors of all whom a row of
copies may be: for each value z of the domain ``P(z | y, z's own combination of the known
attributes' values)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array


@dataclass(frozen=True)
class Told:
    """What is known of a record besides its copies: which combination of some attributes' values it has, of G; nothing where None.

    Attributes
    ----------
    known : ndarray of shape (s,) or None
        The combination of each value of the domain, 0 … G − 1, each of some value.
    """

    known: NDArray[np.intp] | None

    def of(self, x: NDArray[np.intp]) -> NDArray[np.intp] | int:
        """Return the combination of values x."""
        return 0 if self.known is None else self.known[x]

    def reduced(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Return a ufunc's reduction of values, shape (u, s), over each combination, shape (u, G)."""
        if self.known is None:
            return np.asarray(function.reduce(values, axis=1, keepdims=True))
        order = np.argsort(self.known, kind="stable")
        return np.asarray(
            function.reduceat(
                values[:, order], np.flatnonzero(np.diff(self.known[order], prepend=-1)), axis=1
            )
        )

    def posterior(self, P: Array) -> Array:
        """Return ``P(z | the combination is z's)``, shape (u, s) as P: for each combination a posterior over its values.

        One that P gives no chance is met by who was told wrongly of the data: its values are alike
        then.
        """
        if self.known is None:
            return P
        share, alike = (
            self.reduced(np.add, P)[:, self.known],
            (1.0 / np.bincount(self.known))[self.known],
        )
        return np.where(
            share > 0, np.divide(P, share, out=np.zeros_like(P), where=share > 0), alike
        )

    def best(self, P: Array) -> NDArray[np.intp]:
        """Return the likeliest value of each combination, the first of equals, shape (u, G)."""
        if self.known is None:
            return np.asarray(P.argmax(axis=1)[:, None])
        highest = self.reduced(np.maximum, P)[:, self.known]
        return np.asarray(
            self.reduced(
                np.minimum, np.where(highest == P, np.arange(self.known.size), self.known.size)
            ),
            dtype=np.intp,
        )

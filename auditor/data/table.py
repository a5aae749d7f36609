"""The table that is audited, as every other module sees it: named numeric columns, read block by block."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.data.categorical import CategoricalTable


@dataclass(frozen=True)
class Table:
    """Numeric microdata: ``n`` records (rows) by ``N`` attributes (columns).

    Attributes
    ----------
    attributes : tuple of str
        Column names, unique.
    values : ndarray of shape (n, N)
        Finite, C-contiguous float64, in data units.
    source : str
        Where it came from, as written in the scenario.
    description, licence : str
        Shown wherever the data are named.
    categorical : CategoricalTable or None
        The same records as categories, when the scenario bins a column or names categories; ``N`` may be 0 then.
    """

    attributes: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)
    source: str = "array"
    description: str = ""
    licence: str = ""
    categorical: CategoricalTable | None = field(default=None, repr=False)

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return int(self.values.shape[0])

    @property
    def width(self) -> int:
        """Number of attributes ``N``."""
        return int(self.values.shape[1])

    def read(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return rows ``start`` to ``stop`` (exclusive) as an array of shape (stop − start, N); do not write to it."""
        return self.values[start:stop]

    def fingerprint(self) -> str:
        """Return a SHA-256 over names, shape and values: tells tables apart, says nothing of a large one's content."""
        digest = hashlib.sha256(repr((self.attributes, self.values.shape)).encode())
        digest.update(np.ascontiguousarray(self.values).data)
        if self.categorical is not None:
            digest.update(self.categorical.fingerprint().encode())
        return digest.hexdigest()

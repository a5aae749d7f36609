"""Result of one insider attack on one coalition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from auditor.audit.measures.every_cell import unbiased_errors
from auditor.base.types import Array, Coalition


@dataclass(frozen=True, eq=False)
class Finding:
    """Squared errors of an attack, with its cause in words.

    Attributes
    ----------
    coalition : tuple of int
        Copy numbers, from 1.
    squares : ndarray of shape (m, N)
        By judged record and attribute, in squared data units.
    variances : ndarray of shape (N,)
        By attribute.
    cause : str
        One clause without any value of the table; empty if a line does as well.
    """

    attack: str
    coalition: Coalition
    squares: Array
    variances: Array
    cause: str

    @property
    def left(self) -> Array:
        """Normalized error of each attribute, shape (N,)."""
        return self.squares.mean(axis=0) / self.variances

    @property
    def std_error(self) -> Array:
        """Standard error of ``left`` for independent records, shape (N,)."""
        return self.squares.std(axis=0) / np.sqrt(len(self.squares)) / self.variances


def line_squares(X: Array, copies: Sequence[Array]) -> Array:
    """Squared errors of the regression of X on all cells, shape (n, N)."""
    return unbiased_errors(X, np.hstack(copies)) ** 2


def copies_in_words(coalition: Sequence[int]) -> str:
    """Few copy numbers in words.

    >>> copies_in_words([2]), copies_in_words([1, 2, 3, 4, 5])
    ('copy 2', 'copies 1, 2, 3, 4, …')
    """
    numbers = ", ".join(map(str, coalition[:4])) + (", …" if len(coalition) > 4 else "")
    return f"cop{'y' if len(coalition) == 1 else 'ies'} {numbers}"

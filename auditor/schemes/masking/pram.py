"""PRAM: categories randomised by a published transition matrix.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``P`` | ``matrix``: chance that x (row) becomes y (column); rows sum to 1 | (s, s) | gouweleeuw1998 |
| level | ``p``, share unchanged | scalar in [0, 1] | |
| ``T(p)`` | ``p·I + (1 − p)·P``; retention-replacement if P has equal rows | (s, s) | |
| ``Q`` | ``Q[y, x] = q_x P[x, y] / Σ_x' q_x' P[x', y]``, q the table's shares | (s, s) | |
| ``PQ`` | ``invariant``: replaces P and preserves shares, ``q P Q = q`` | (s, s) | gouweleeuw1998 |

Columns are perturbed independently. A value that two copies show is probably the original. The
matrix is public.
"""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, field_validator

from auditor.base import AuditorError
from auditor.base.types import Array, Codes, Levels
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.table import DataUse, Table
from auditor.numerics.linear_algebra import quotient
from auditor.numerics.random_streams import Rng
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import (
    Copies,
    FreshCopies,
    UniformScheme,
    by_attribute,
    categories_of,
    check_chances,
    columns_of,
    sent_through,
)
from auditor.schemes.replacement.law import MatrixLaw

Matrix = Annotated[list[list[float]], Field(min_length=1)]
MOST_VALUES = 1_000
"""Most values in a domain."""


@register
class Pram(UniformScheme):
    """Categories randomised by a stated matrix, independently in every copy.

    Level = share of records left unchanged.
    """

    name = "pram"
    multilevel = False
    by_retention: ClassVar[bool] = False
    claims = "Nothing under collusion: a value that all copies show is probably the original. One copy keeps the ε of its matrix."
    reference = "gouweleeuw1998; hundepool2012, chapter 3"
    assumes = "Recipients never pool their copies, and tuples are independent."
    trial = MappingProxyType({"matrix": [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.05, 0.25, 0.7]]})
    trial_levels = (0.0, 0.6, 0.3)

    class Parameters(PluginParameters):
        """The matrix, and whether to preserve shares."""

        matrix: Matrix | dict[str, Matrix]
        """rows of probabilities: each category (row) becomes each (column), in order; {column: [[...]]} for several columns"""
        invariant: bool = False
        """whether to follow with the reverse matrix (Bayes' rule), which preserves shares"""

        @field_validator("matrix")
        @classmethod
        def _stochastic(cls, stated: Matrix | dict[str, Matrix]) -> Matrix | dict[str, Matrix]:
            for column, matrix in columns_of(stated):
                for number, row in enumerate(matrix, start=1):
                    of = f"{column}row {number} "
                    if len(row) != len(matrix):
                        wanted = f"one chance for each of {len(matrix)} rows"
                        raise ValueError(f"{of}must have {wanted}; got {len(row)}")
                    check_chances(of, row)
            return stated

    def check_table(self, table: Table, asked: DataUse) -> None:
        super().check_table(table, asked)
        self.over(categories_of(table))

    def _fit(self, table: CategoricalTable) -> Array:
        if table.size > MOST_VALUES:
            raise AuditorError(
                f"pram is for at most {MOST_VALUES:,} values; the domain has {table.size:,}: take fewer columns"
            )
        remedy = "; {column: [[...]]} gives one for each"
        parts = by_attribute(self.parameters.matrix, table, "matrix", "none", "rows", remedy)
        P = reduce(np.kron, map(np.array, parts))
        return invariant(P, table.prior) if self.parameters.invariant else P

    def transition(self, level: float, size: int) -> Array:
        """``T(p)``, shape (s, s).

        ``AuditorError`` before ``over``.
        """
        return level * np.eye(size) + (1.0 - level) * self.fitted(size)

    def channel(self, levels: Levels, size: int) -> MatrixLaw:
        return MatrixLaw(
            tuple(levels),
            size,
            False,
            transitions=tuple(self.transition(level, size) for level in levels),
        )

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return PramCopies(original, size, key, self)


class PramCopies(FreshCopies):
    """Copies drawn through the matrix, redrawn on request."""

    def __init__(self, original: Codes, size: int, key: Key, scheme: Pram) -> None:
        super().__init__(original, size, key)
        self._scheme = scheme

    def _drawn(self, level: float, rng: Rng) -> Codes:
        return sent_through(self.original, self._scheme.transition(level, self.size), rng)


def invariant(P: Array, q: Array) -> Array:
    """``P Q``, shape (s, s), which preserves shares: ``q P Q = q``.

    Q reverses P by Bayes' rule.

    Examples
    --------
    >>> invariant(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.5, 0.5])).round(3).tolist()
    [[0.667, 0.333], [0.333, 0.667]]
    """
    joint = q[:, None] * P
    Q = quotient(joint, joint.sum(axis=0)).T
    # outputs of probability 0 are spread by q
    return P @ Q + np.outer(1.0 - (P @ Q).sum(axis=1), q)

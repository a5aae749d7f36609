"""Serially dependent noise: one autoregression for copies and attributes.

| symbol | meaning | shape |
| --- | --- | --- |
| ``R`` | ``r_{|t−u|}``, correlation of the noise of records t and u (``auditor.numerics.autoregression``) | (n, n) |
| ``K_Z`` | ``R ⊗ Sigma ⊗ K_0``: the noise of all records, copies and attributes | (nMN, nMN) |

Every innovation of a plan is drawn with covariance R along the rows, not I, so the law keeps its
form. The least perturbed copy of corner-wave noise stays sufficient, for one record or all (li2012,
Theorem 4, with R ⊗ K_0 for K_0).

Blocks are drawn in any order, each from its own stream. The last p rows of every block have a
separate stream. The next block starts from these rows, and the block itself is conditioned on them.

An adversary who knows neighbouring records can predict a record's noise from theirs. So a guarantee
uses the conditional deviation of the noise given all other records (``Autoregression.precision``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Annotated, Literal

from pydantic import AfterValidator

from auditor.errors import AuditorError
from auditor.numerics.autoregression import Autoregression, yule_walker
from auditor.numerics.blocks import block_rows
from auditor.numerics.random_streams import Rng
from auditor.schemes.base.scheme import MOST_LAGS, TableMoments
from auditor.types import Array

FORGOTTEN = 1e-6
"""Correlation over a whole block that counts as zero."""


def _stationary(
    serial: Literal["none", "data"] | list[float],
) -> Literal["none", "data"] | list[float]:
    if not isinstance(serial, str):
        if not 1 <= len(serial) <= MOST_LAGS:
            raise ValueError(f"must have 1 to {MOST_LAGS} coefficients; got {len(serial)}")
        Autoregression(tuple(serial))
    return serial


Serial = Annotated[Literal["none", "data"] | list[float], AfterValidator(_stationary)]
SERIAL = "dependence of noise between consecutive records: none, like the data's (data), or stated coefficients of an autoregression"


def serial_law(
    serial: Literal["none", "data"] | list[float], table: TableMoments
) -> Autoregression | None:
    """Return the autoregression of the noise, or None if independent.

    Independent by default, and for data without an order.

    Raises
    ------
    AuditorError
        The memory is longer than a block of records; a block depends only on the block before.
    """
    coefficients = (
        yule_walker(*table.autocorrelations)
        if serial == "data"
        else ()
        if serial == "none"
        else tuple(serial)
    )
    if not any(coefficients):
        return None
    width = len(table.mean)
    found, rows = Autoregression(coefficients), block_rows(width)
    if found.memory**rows > FORGOTTEN:
        # rounded up it might be 1, and no stationary series has a root of 1
        longest = floor(FORGOTTEN ** (1 / rows) * 1e6) / 1e6
        raise AuditorError(
            f"serial: noise that fades by a factor of {found.memory:.6g} a record still shows after {rows:,} records, as many as are drawn "
            f"at once of {width} attributes; state some of less memory, as [{longest:g}], or perturb fewer columns"
        )
    return found


class SerialRows:
    """Consecutive rows of one block, read in order like draws of normals."""

    def __init__(self, rows: Array) -> None:
        self._rows, self._given = rows, 0

    @classmethod
    def drawn(
        cls, law: Autoregression, shape: tuple[int, int], rng: Rng, before: Array, end: Array | None
    ) -> SerialRows:
        """Draw a block after p rows ``before``, conditioned on p rows ``end``."""
        rows = law.continued(before, rng.standard_normal(shape))
        if end is not None:
            law.lead(rows, end)
        return cls(rows)

    def standard_normal(self, shape: tuple[int, ...]) -> Array:
        """Return the next rows."""
        self._given += shape[0]
        return self._rows[self._given - shape[0] : self._given]


def whitened(law: Autoregression, x: Array, copies: Sequence[Array]) -> list[Array]:
    """Return copies of one block with serially independent noise.

    The innovations ``Sigma ⊗ K_0`` replace the noise. Needs the original; for tests that assume
    independent records.
    """
    return [x + law.innovations(copy - x) for copy in copies]

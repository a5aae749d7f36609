"""Noise that follows on from record to record, as the data do in time: one autoregression for all copies and attributes.

| symbol | meaning | shape |
| --- | --- | --- |
| ``R`` | ``r_{|t−u|}``, correlation of the noise of records t and u (``auditor.numerics.autoregression``) | (n, n) |
| ``K_Z`` | ``R ⊗ Sigma ⊗ K_0``: the noise of all records, copies and attributes | (nMN, nMN) |

Every innovation of a plan is drawn with R along the rows in place of I, so the law keeps its form: the least perturbed copy of corner-wave
noise says all that its others do, of one record or of all (li2012, Theorem 4, with R ⊗ K_0 in the place of K_0).

The blocks of a table are drawn in any order, each from its own stream. The last p rows of every block have a stream of their own as well:
they are what the next block goes on from, and what the block itself is led to.

Who may change one record, or knows its neighbours in clear, has an easier game: noise that hangs together can be foretold from its
neighbours. So the deviation that a guarantee is made of is that of the noise given all other records' (``Autoregression.precision``).
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
from auditor.schemes.base.autocorrelation import MOST_LAGS
from auditor.schemes.base.scheme import TableMoments
from auditor.types import Array

FORGOTTEN = 1e-6
"""Correlation over a whole block that is taken for none."""


def _stationary(serial: Literal["none", "data"] | list[float]) -> Literal["none", "data"] | list[float]:
    if not isinstance(serial, str):
        if not 1 <= len(serial) <= MOST_LAGS:
            raise ValueError(f"must have 1 to {MOST_LAGS} coefficients; got {len(serial)}")
        Autoregression(tuple(serial))
    return serial


Serial = Annotated[Literal["none", "data"] | list[float], AfterValidator(_stationary)]
SERIAL = "how noise follows on from record to record: not (none), as the data do (data), or by stated coefficients of an autoregression"


def serial_law(serial: Literal["none", "data"] | list[float], table: TableMoments) -> Autoregression | None:
    """Return the autoregression that noise follows; None where it is drawn afresh for every record, as beside data in no order.

    Raises
    ------
    AuditorError
        It remembers more than a block of records, which are drawn without regard to those before the block before.
    """
    coefficients = yule_walker(*table.autocorrelations) if serial == "data" else () if serial == "none" else tuple(serial)
    if not any(coefficients):
        return None
    width = len(table.mean)
    found, rows = Autoregression(coefficients), block_rows(width)
    if found.memory**rows > FORGOTTEN:
        longest = floor(FORGOTTEN ** (1 / rows) * 1e6) / 1e6  # rounded up it might be 1, which no stationary series has
        raise AuditorError(
            f"serial: noise that fades by a factor of {found.memory:.6g} a record still shows after {rows:,} records, as many as are drawn "
            f"at once of {width} attributes; state some of less memory, as [{longest:g}], or perturb fewer columns"
        )
    return found


class SerialRows:
    """Rows of one block that follow one another, handed out in order as a generator draws normals."""

    def __init__(self, rows: Array) -> None:
        self._rows, self._given = rows, 0

    @classmethod
    def drawn(cls, law: Autoregression, shape: tuple[int, int], rng: Rng, before: Array, end: Array | None) -> SerialRows:
        """Draw a block of so many rows and columns from p rows ``before`` on, led to p rows ``end`` if there are any."""
        rows = law.continued(before, rng.standard_normal(shape))
        if end is not None:
            law.lead(rows, end)
        return cls(rows)

    def standard_normal(self, out: Array) -> None:
        """Fill an array with the next rows."""
        out[...] = self._rows[self._given : self._given + len(out)]
        self._given += len(out)


def whitened(law: Autoregression, x: Array, copies: Sequence[Array]) -> list[Array]:
    """Return copies of one block with the innovations of their noise in its place: ``Sigma ⊗ K_0`` for every record, drawn afresh.

    For whoever has the original, and tests that suppose such noise.
    """
    return [x + law.innovations(copy - x) for copy in copies]

"""Identifiers of records, to join copies to the original; never shown.

A key is a whole number or text. ``007`` and ``7.0`` are equal if all keys of both files are whole
numbers; otherwise text is compared without surrounding blanks.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import DataError
from auditor.base.text import counted, quoted
from auditor.base.types import Indices
from auditor.data.columns.checks import Series, cells_where
from auditor.process.deferred import pd

WHOLE = re.compile(r"([+-]?)0*([0-9]+?)(?:\.0*)?")
"""A whole number of any length: sign, and digits without leading zeros."""


@dataclass(frozen=True, eq=False)
class RecordKeys:
    """One distinct key for each record.

    Attributes
    ----------
    name
        The column's.
    cells : ndarray of shape (n,)
        Text.
    """

    name: str
    cells: NDArray[np.object_] = field(repr=False)

    @cached_property
    def whole(self) -> NDArray[np.object_] | None:
        """Canonical whole numbers, (n,); None if some are none, or repeat."""
        found = [WHOLE.fullmatch(cell) for cell in self.cells]
        spelt = [match[1].replace("+", "") + match[2] for match in found if match]
        return _objects(spelt) if len(set(spelt)) == len(self.cells) else None

    @property
    def in_order(self) -> Indices:
        """Each key's rank, shape (n,), as numbers if possible, else as text."""
        numbers = None if self.whole is None else [int(cell) for cell in self.whole]
        return (
            np.asarray(
                pd.Series(self.cells if numbers is None else numbers, dtype=object)
                .rank()
                .to_numpy(),
                dtype=np.intp,
            )
            - 1
        )

    def some(self, rows: NDArray[Any]) -> RecordKeys:
        """Keys of some records."""
        return RecordKeys(self.name, self.cells[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 over name and keys."""
        return hashlib.sha256(
            repr((self.name, self.cells.tolist())).encode(errors="surrogatepass")
        ).hexdigest()

    def places_in(self, original: RecordKeys) -> Indices:
        """Each record's place in the original, shape (n,); −1 if absent."""
        mine, theirs = self.whole, original.whole
        if mine is None or theirs is None:
            mine, theirs = self.cells, original.cells
        return np.asarray(
            pd.Index(theirs, dtype=object).get_indexer(pd.Index(mine, dtype=object)), dtype=np.intp
        )


def record_keys(name: str, column: Series) -> RecordKeys:
    """A column's values as keys.

    Raises
    ------
    DataError
        Keys are blank, repeat, or are neither whole numbers nor text.
    """
    texts = _objects([_text(cell) for cell in column.tolist()])
    every = "every record needs a key of its own"
    repeats = pd.Series(texts).duplicated().to_numpy()
    for wrong, has, noun, why in (
        (texts == "", "has", "blank cell", every),
        (pd.isna(texts), "has", "cell", "neither whole numbers nor text, which keys must be"),
        (repeats, "repeats: it has", "record", f"with the key of an earlier one; {every}"),
    ):
        if wrong.any():
            found = cells_where(wrong, noun)
            raise DataError(f"key column {quoted(name)} {has} {found}: {why}", ("key",))
    return RecordKeys(name, texts)


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return cell.strip()
    if cell is None or cell is pd.NA or cell is pd.NaT:
        return ""
    if isinstance(cell, Integral) and not isinstance(cell, bool):
        return str(int(cell))
    if not isinstance(cell, (float, Decimal)):
        return None
    if cell.is_nan() if isinstance(cell, Decimal) else math.isnan(cell):
        return ""
    return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else None


def _objects(cells: Sequence[Any]) -> NDArray[np.object_]:
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


def in_order_of(frame: pd.DataFrame, order: str) -> pd.DataFrame:
    """Records sorted by one column, renumbered; stable.

    Text is sorted by characters (2026-11-22 by time).

    Raises
    ------
    DataError
        Values are missing, or without a common order.
    """
    missing = int(frame[order].isna().sum())
    if missing:
        raise DataError(
            f"{counted(missing, 'record')} miss column {quoted(order)}, and have no place in the order",
            ("order",),
        )
    try:
        return frame.sort_values(order, kind="stable", ignore_index=True)
    except TypeError:
        raise DataError(
            f"column {quoted(order)} holds values of several kinds, which have no order", ("order",)
        ) from None


def follows_the_one_before(runs: Sequence[Series]) -> tuple[float, int]:
    """Lag-1 rank correlation of a column, and its number of pairs.

    ``runs`` are consecutive numbers; a pair is two present values within a run.

    Examples
    --------
    >>> follows_the_one_before([pd.Series([1.0, 2.0, 4.0, 3.0, 9.0, 11.0])])
    (0.7, 5)
    """
    ranks = pd.concat(runs, ignore_index=True).rank()
    # no neighbours across runs
    ends = np.cumsum([len(run) for run in runs])[:-1] - 1
    now, after = ranks.to_numpy()[:-1], ranks.to_numpy()[1:]
    pairs = ~(np.isnan(now) | np.isnan(after))
    pairs[ends[ends >= 0]] = False
    now, after = now[pairs], after[pairs]
    if len(now) < 3 or np.ptp(now) == 0 or np.ptp(after) == 0:
        return 0.0, int(pairs.sum())
    return round(float(np.corrcoef(now, after)[0, 1]), 12), int(pairs.sum())

"""Read a copy from a file and match it to the original by row or key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.clean import Asked, cleaned
from auditor.data.columns.category_rules import Categories
from auditor.data.columns.checks import check_variance
from auditor.data.columns.dates import in_days
from auditor.data.columns.record_keys import RecordKeys, record_keys
from auditor.data.formats import readers as reading
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.formats.parts import Held, column_as_written, pieces_of, whole_frame
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError
from auditor.process.deferred import pd, scipy
from auditor.results.files import located
from auditor.text.column_names import listed, nearest, quoted
from auditor.types import Array, Indices

JOIN_REMEDY = "join files with `key: COLUMN` where a column identifies the records"


@dataclass(frozen=True)
class Copy:
    """A copy in the original's records and columns.

    Attributes
    ----------
    name : str
        The file's.
    values : ndarray of shape (n, N)
        NaN in missing cells, and in records and columns that the copy lacks.
    held : ndarray of shape (n,)
        Whether the copy has the record.
    said : ndarray of shape (N,)
        Whether the copy has the column, and any cell in it.
    others : tuple of str
        Its columns that the original lacks.
    beyond : int
        Number of its records that the original lacks.
    """

    name: str
    values: Array = field(repr=False)
    held: NDArray[np.bool_] = field(repr=False)
    said: NDArray[np.bool_] = field(repr=False)
    others: tuple[str, ...] = ()
    beyond: int = 0
    rows: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp), repr=False)
    """File row of each original record, shape (n,), −1 where the copy lacks it."""
    order: Array | None = field(default=None, repr=False)
    """Normal scores of the records' file positions, shape (n,), NaN for absent records; None in the
    original's order.
    """

    @property
    def cells(self) -> Array:
        """All information of each record, NaN where missing.

        Its values, and its position in a file of another order.
        """
        return self.values if self.order is None else np.column_stack([self.values, self.order])

    @property
    def suppressed(self) -> NDArray[np.bool_]:
        """Missing cells in records and columns of the copy, shape (n, N)."""
        return np.asarray(np.isnan(self.values) & self.held[:, None] & self.said)

    def full(self, columns: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the records complete in some columns, shape (n,)."""
        return np.asarray(~np.isnan(self.values[:, columns]).any(axis=1))


@contextmanager
def named_after(path: Path) -> Iterator[None]:
    """Prefix errors with the file's name."""
    try:
        yield
    except AuditorError as error:
        raise AuditorError(
            str(error) if str(error).startswith(path.name) else f"{path.name}: {error}"
        ) from None


def check_rows_match(path: Path, found: int, rows: int, exact: bool, why: str) -> None:
    """Refuse a copy with fewer records, or with more if ``exact``."""
    if found < rows or (exact and found > rows):
        unequal = f"{path.name}: has {found:,} rows where the original has {rows:,}; rows must match one to one{why}"
        raise AuditorError(f"{unequal}; or {JOIN_REMEDY}")


def copy_file(name: str, base: Path | None) -> Path:
    """Return the path of a copy's file.

    Relative to the scenario's folder, else the current one.
    """
    for path in located(name, base):
        if path.is_file():
            return path
    raise AuditorError(f"copies: no such file: {quoted(name)}")


def check_joined_by_row(asked: DataUse) -> None:
    """Refuse to match by row if the data are reordered or incomplete."""
    if asked.order is not None:
        alike = "sort all files alike, and leave `data.order` out"
        raise AuditorError(
            f"published copies are in the original's own order: {alike}, or {JOIN_REMEDY}"
        )
    if asked.missing == "drop" and asked.rows is not None:
        unknown = "with `rows` and `missing: drop` together nobody can tell which records the copies still match"
        raise AuditorError(f"{unknown}; {JOIN_REMEDY}")


def read_copy(
    path: Path, table: Table, key: str | None = None, exact: bool = False, why: str = ""
) -> Copy:
    """Return a copy read from a file.

    Parameters
    ----------
    path : Path
    table : Table
        The original; with its keys if records are joined by them.
    key : str, optional
        The column that identifies records. Otherwise the copy's first records are the original's,
        in its order.
    exact : bool
        Whether surplus rows are refused.
    why : str
        Possible reason for a different number of rows, for the message.

    Raises
    ------
    AuditorError
        The file is missing, has no column of the original or holds values other than numbers; its
        keys are invalid; or it has another number of rows.
    """
    with named_after(path):
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"a copy is {SAID}")
        known = reading.header(path)
        values = _numbers(path, table, known)
        kept = np.arange(len(values))
        # `missing: drop` also applies to copies that kept their blanks
        if key is None and table.dropped and len(values) > table.rows:
            kept = np.flatnonzero(~np.isnan(values).any(axis=1))
            values = values[kept]
        places = (
            np.arange(len(values)) if key is None else places_by_key(path, table.keys, key, known)
        )
    if key is None:
        check_rows_match(path, len(values), table.rows, exact, why)
    found = (places >= 0) & (places < table.rows)
    joined, held = np.full((table.rows, table.width), np.nan), np.zeros(table.rows, dtype=bool)
    joined[places[found]], held[places[found]] = values[found], True
    rows = np.full(table.rows, -1)
    rows[places[found]] = kept[found]
    others = tuple(name for name in known if name not in (*table.attributes, key, ""))
    beyond = 0 if key is None else int((~found).sum())
    return Copy(
        path.name,
        joined,
        held,
        np.asarray(np.isfinite(values).any(axis=0)),
        others,
        beyond,
        rows,
        _order(places[found], table.rows),
    )


def _order(places: NDArray[np.intp], rows: int) -> Array | None:
    """Return normal scores of file positions; None if the orders agree."""
    if (np.diff(places) > 0).all():
        return None
    scores = np.full(rows, np.nan)
    scores[places] = scipy.special.ndtri((np.arange(len(places)) + 0.5) / len(places))
    return scores


def _numbers(path: Path, table: Table, known: Sequence[str]) -> Array:
    names = table.attributes
    there = [j for j, name in enumerate(names) if name in known]
    if not there:
        raise DataError(
            f"has none of the original's columns, {listed(names)}; it has {listed(filter(None, known))}"
        )
    had = tuple(names[j] for j in there)
    frame = whole_frame(pieces_of(path), had, None)
    frame = in_days(frame, {name: table.dates[name] for name in had if name in table.dates})
    found = cleaned([Held(frame, len(frame))], had, Asked(None, "keep", True), Categories())
    values = np.full((len(frame), len(names)), np.nan)
    values[:, there] = found.numbers.read(0, len(frame))
    said = np.flatnonzero(~np.isnan(values).all(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):
        check_variance(tuple(names[j] for j in said), np.nanvar(values[:, said], axis=0))
    return values


def places_by_key(
    path: Path, keys: RecordKeys | None, key: str, known: Sequence[str]
) -> NDArray[np.intp]:
    """Return each record's place in the original; −1 if absent."""
    assert keys is not None, "a scenario's data have the key of its schemes"
    if key not in known:
        raise DataError(f"there is no key column {quoted(key)}{nearest(key, filter(None, known))}")
    return record_keys(
        key, pd.Series(column_as_written(pieces_of(path), key), dtype=object)
    ).places_in(keys)

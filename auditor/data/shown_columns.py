"""Columns of copies beside the audited ones: everything else that a recipient sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import pieces_of
from auditor.process.deferred import pd
from auditor.types import Array, Indices

MOST_COLUMNS = 40
"""Columns of one file that are used, the first ones."""
FEWEST_NUMBERS = 12
"""Different values from which on a column of numbers is ordered, too."""


class ShownColumn(NamedTuple):
    """One column in the original's records.

    Attributes
    ----------
    copy : int
        Number of the first copy that shows it; 0 if every adversary knows it.
    name : str
    values : ndarray of shape (n,)
        Numbers, or codes without an order (integers).
    """

    copy: int
    name: str
    values: Array | Indices


def shown_columns(
    files: Iterable[tuple[Path, Indices]], audited: Sequence[str]
) -> list[ShownColumn]:
    """Return the columns that copies show and that are not audited.

    Parameters
    ----------
    files : iterable of (path, rows)
        ``rows`` is the file row of each original record, shape (n,), −1 if the copy lacks it.
    audited : sequence of str
        Names of audited columns, and of the key.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    found: dict[str, ShownColumn] = {}
    for number, (path, rows) in enumerate(files, start=1):
        names = [name for name in reading.header(path) if name not in (*audited, "")]
        names = names[:MOST_COLUMNS]
        if not names:
            continue
        pieces = [
            part for piece in pieces_of(path) for part in piece.frames(names, as_written=True)
        ]
        frame = pd.concat(pieces, ignore_index=True)
        for name in names:
            cells = frame[name].reindex(rows).reset_index(drop=True)
            for kind, values in _readings(cells):
                same = found.get(f"{name} {kind}")
                if same is None or not np.array_equal(same.values, values):
                    key = f"{name} {kind}" if same is None else f"{name} {kind} {number}"
                    found[key] = ShownColumn(number, name, values)
    return list(found.values())


def _readings(cells: pd.Series[str]) -> list[tuple[str, Array | Indices]]:
    """Return a column as numbers, and as codes unless every record has its own."""
    given = cells.where(cells.notna() & (cells.astype(str).str.strip() != ""))
    numbers = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    codes, labels = pd.factorize(given.astype(str).where(given.notna()), sort=True)
    found: list[tuple[str, Array | Indices]] = []
    there = np.isfinite(numbers)
    if there.sum() == given.notna().sum() and len(labels) >= FEWEST_NUMBERS:
        found.append(("number", np.where(there, numbers, numbers[there].mean())))
    if 1 < len(labels) + (codes < 0).any() and len(labels) < len(cells):
        found.append(("code", np.asarray(codes + 1, dtype=np.intp)))
    return found

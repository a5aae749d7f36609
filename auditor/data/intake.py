"""Numbers out of raw columns: what is missing, infinite or no number is found, and refused, left out or filled in, as was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.blocks import row_blocks
from auditor.data import streamed
from auditor.data.checks import Missing, Survey
from auditor.data.naming import counted
from auditor.data.pieces import Piece
from auditor.data.streamed import FileRows, complete, fill_values
from auditor.errors import DataError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """What a scenario asks of the records.

    Attributes
    ----------
    rows : int or None
        The first so many.
    missing : {'refuse', 'drop', 'mean'}
    booleans : bool
        Whether booleans may stand for 0 and 1.
    """

    rows: int | None
    missing: Missing
    booleans: bool


def check_rows(found: int, asked: int | None) -> None:
    """Raise `DataError` when there are too few records."""
    if asked is not None and found < asked:
        raise DataError(f"rows: {asked} asks for more than there are; the table has {counted(found, 'record')}", ("rows",))
    if found < 2:
        raise DataError(f"an audit needs at least 2 records; the table has {counted(found, 'record')}")


def numbers_of_frame(frame: pd.DataFrame, asked: Asked) -> Array:
    """Return a frame's columns as finite numbers, shape (n, N), C-contiguous.

    Raises
    ------
    DataError
        They are not, in what way, and where; no message holds a value.
    """
    survey = Survey(tuple(frame.columns), asked.booleans)
    values = survey.add(frame)
    rows = _cleaned(values, survey, asked)
    assert not isinstance(rows, FileRows)
    return rows


def numbers_of_pieces(pieces: Sequence[Piece], names: tuple[str, ...], asked: Asked) -> Array | FileRows:
    """Return the columns of files as finite numbers: in memory when they are few, or else where they are.

    Raises
    ------
    DataError
        As for ``numbers_of_frame``.
    """
    survey = Survey(names, asked.booleans)
    held: list[Array] = []
    small, counts, taken = True, [], []
    for piece in pieces:
        if asked.rows is not None and piece.rows < 0:
            piece = replace(piece, rows=asked.rows - survey.rows)
        before, kept = survey.rows, 0
        for frame in piece.frames(names):
            values = survey.add(frame)
            kept += len(complete(values) if asked.missing == "drop" else values)
            small = small and survey.rows * len(names) * 8 <= streamed.HELD_BYTES
            held = [*held, values] if small else []
        counts.append(kept)
        taken.append(replace(piece, rows=survey.rows - before))
        if survey.rows == asked.rows:
            break
    check_rows(survey.rows, asked.rows)
    if small:
        return _cleaned(np.concatenate(held), survey, asked)
    return _cleaned(FileRows(names, tuple(taken), tuple(counts), asked.missing == "drop"), survey, asked)


def _cleaned(rows: Array | FileRows, survey: Survey, asked: Asked) -> Array | FileRows:
    survey.check_kinds()
    survey.check_values(asked.missing)
    if not survey.missing.count.any():
        return rows
    if asked.missing == "drop":
        rows = rows if isinstance(rows, FileRows) else complete(rows)
        if rows.shape[0] < 2:
            raise DataError(f"an audit needs at least 2 records; `missing: drop` leaves {counted(rows.shape[0], 'record')}")
        return rows
    fill = fill_values(rows, row_blocks(*rows.shape), survey.missing.count)
    return replace(rows, fill=fill) if isinstance(rows, FileRows) else np.where(np.isnan(rows), fill, rows)

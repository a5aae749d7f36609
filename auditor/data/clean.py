"""Convert raw columns to finite numbers; treat gaps as requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import Gaps, Survey, check_rows
from auditor.data.columns.kinds import identifies
from auditor.data.columns.scan import Scan, scan
from auditor.data.columns.threads import in_threads
from auditor.data.formats.parts import Piece, are_plain
from auditor.data.streamed import rows as streamed
from auditor.data.streamed.rows import FileRows, complete, fill_values
from auditor.errors import DataError
from auditor.numerics.blocks import row_blocks
from auditor.process.deferred import pd
from auditor.text.column_names import counted
from auditor.types import Array


@dataclass(frozen=True)
class Asked:
    """A scenario's selection of records.

    Attributes
    ----------
    rows : int or None
        The first so many.
    missing : {'refuse', 'drop', 'mean', 'keep'}
    booleans : bool
        Whether booleans may mean 0 and 1.
    """

    rows: int | None
    missing: Gaps
    booleans: bool


def numbers_of_frame(frame: pd.DataFrame, asked: Asked) -> Array:
    """Return a frame's columns as finite numbers, shape (n, N), C-contiguous.

    Raises
    ------
    DataError
        They are not, with kind and place; no message holds a value.
    """
    survey = Survey(tuple(frame.columns), asked.booleans)
    values = survey.add(frame)
    rows = _cleaned(values, survey, asked)
    assert not isinstance(rows, FileRows)
    return rows


def numbers_of_columns(columns: Mapping[str, NDArray[Any]], asked: Asked) -> Array:
    """Return integer and float columns as finite numbers, without pandas.

    Like ``numbers_of_frame``.
    """
    survey, values = (
        Survey(tuple(columns), asked.booleans),
        np.column_stack([*columns.values()]).astype(np.float64, copy=False),
    )
    survey.add_numbers(values)
    rows = _cleaned(values, survey, asked)
    assert not isinstance(rows, FileRows)
    return rows


def scanned_rows(
    pieces: Sequence[Piece], names: tuple[str, ...], asked: Asked
) -> tuple[FileRows, Scan] | None:
    """Return columns of large files with their scan, if all are finite.

    One pass. None if any value needs attention; ``numbers_of_pieces`` then reads them again.

    Raises
    ------
    DataError
        There are too few records.
    """
    known = sum(piece.rows for piece in pieces)
    if not are_plain(pieces, names) or known * len(names) * 8 <= streamed.HELD_BYTES:
        return None
    check_rows(known, asked.rows)
    rows = FileRows(names, tuple(pieces), tuple(piece.rows for piece in pieces))
    found = scan(lambda: replace(rows).read, *rows.shape)
    return (rows, found) if np.isfinite([found.low, found.high]).all() else None


def numbers_of_pieces(
    pieces: Sequence[Piece],
    names: tuple[str, ...],
    asked: Asked,
    beside: tuple[str, ...] | None = None,
) -> Array | FileRows:
    """Return the columns of files as finite numbers, in memory if small.

    Parameters
    ----------
    pieces : sequence of Piece
    names : tuple of N str
    asked : Asked
    beside : tuple of str, optional
        Other columns of the table whose gaps also exclude records; the numbers then stay in the
        files.

    Raises
    ------
    DataError
        As for ``numbers_of_frame``.
    """
    survey = Survey(names, asked.booleans)
    held: list[Array] = []
    counts, taken = [], []
    known = sum(piece.rows for piece in pieces) if all(piece.rows >= 0 for piece in pieces) else 0
    small = beside is None and known * len(names) * 8 <= streamed.HELD_BYTES
    found_in = in_threads(
        partial(_surveyed, names=names, asked=asked, hold=small, beside=beside or ()), pieces
    )
    for piece, (found, values, kept) in zip(pieces, found_in, strict=False):
        left = found.rows if asked.rows is None else asked.rows - survey.rows
        if left < found.rows:  # a piece of uncounted records may exceed the request
            piece = replace(piece, rows=left)
            found, values, kept = _surveyed(piece, names, asked, small, beside or ())
        survey.join(found)
        small = small and survey.rows * len(names) * 8 <= streamed.HELD_BYTES
        held = [*held, *values] if small else []
        counts.append(kept)
        taken.append(replace(piece, rows=found.rows))
        if survey.rows == asked.rows:
            break
    check_rows(survey.rows, asked.rows)
    if small:
        return _cleaned(np.concatenate(held), survey, asked)
    return _cleaned(
        FileRows(names, tuple(taken), tuple(counts), asked.missing == "drop", beside=beside or ()),
        survey,
        asked,
    )


def _surveyed(
    piece: Piece, names: tuple[str, ...], asked: Asked, hold: bool, beside: tuple[str, ...]
) -> tuple[Survey, list[Array], int]:
    survey, kept = Survey(names, asked.booleans), 0
    held: list[Array] = []
    if asked.rows is not None and piece.rows < 0:
        piece = replace(piece, rows=asked.rows)
    for frame in piece.frames([*names, *beside]):
        values = survey.add(frame)
        if asked.missing != "drop":
            kept += len(values)
        else:
            kept += int(frame.notna().all(axis=1).sum()) if beside else len(complete(values))
        held += [values] if hold else []
    return survey, held, kept


def _cleaned(rows: Array | FileRows, survey: Survey, asked: Asked) -> Array | FileRows:
    survey.check_kinds(identifies)
    survey.check_values(asked.missing)
    if not survey.missing.count.any() or asked.missing == "keep":
        return rows
    if asked.missing == "drop":
        rows = rows if isinstance(rows, FileRows) else complete(rows)
        if rows.shape[0] < 2:
            raise DataError(
                f"an audit needs at least 2 records; `missing: drop` leaves {counted(rows.shape[0], 'record')}"
            )
        return rows
    fill = fill_values(rows, row_blocks(*rows.shape), survey.missing.count)
    return (
        replace(rows, fill=fill)
        if isinstance(rows, FileRows)
        else np.where(np.isnan(rows), fill, rows)
    )

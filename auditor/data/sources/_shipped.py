"""The data files that come with the package."""

from __future__ import annotations

from importlib import resources
from typing import Any

from numpy.typing import NDArray

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import first_rows, pieces_of, whole_columns, whole_frame
from auditor.process.deferred import pd

FILES = resources.files("auditor.data").joinpath("files")


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a file in ``auditor/data/files``, or all of them."""
    with resources.as_file(FILES / file) as path:
        return whole_frame(first_rows(pieces_of(path), rows), reading.header(path), rows)


def shipped_numbers(file: str, rows: int | None) -> dict[str, NDArray[Any]]:
    """Return the same of a Parquet file of numbers, none of them missing."""
    with resources.as_file(FILES / file) as path:
        return whole_columns(first_rows(pieces_of(path), rows), reading.header(path))

"""Data files in the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from numpy.typing import NDArray

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import first_rows, pieces_of, whole_columns, whole_frame
from auditor.process.deferred import pd

FILES = resources.files("auditor.data").joinpath("files")


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a shipped file, or all."""
    with resources.as_file(FILES / file) as path:
        return whole_frame(first_rows(pieces_of(path), rows), reading.header(path), rows)


class ShippedNumbers(Mapping[str, NDArray[Any]]):
    """A shipped Parquet file of complete numbers; columns are read on access."""

    def __init__(self, file: str, rows: int | None) -> None:
        self._file, self._rows = FILES / file, rows

    def __getitem__(self, column: str) -> NDArray[Any]:
        with resources.as_file(self._file) as path:
            return whole_columns(first_rows(pieces_of(path), self._rows), [column])[column]

    def __iter__(self) -> Iterator[str]:
        with resources.as_file(self._file) as path:
            return iter(reading.header(path))

    def __len__(self) -> int:
        return len(list(iter(self)))

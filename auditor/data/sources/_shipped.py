"""Data files in the package."""

from __future__ import annotations

from importlib import resources

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import first_rows, pieces_of, whole_frame
from auditor.process.deferred import pd

FILES = resources.files("auditor.data").joinpath("files")


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a shipped file, or all."""
    with resources.as_file(FILES / file) as path:
        return whole_frame(first_rows(pieces_of(path), rows), reading.header(path), rows)

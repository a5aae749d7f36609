"""The data files that come with the package."""

from __future__ import annotations

from importlib import resources

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import first_rows, pieces_of, whole_frame
from auditor.process.deferred import pd


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a file in ``auditor/data/files``, or all of them."""
    with resources.as_file(resources.files("auditor.data").joinpath("files", file)) as path:
        return whole_frame(first_rows(pieces_of(path), rows), reading.header(path), rows)

"""The data files that come with the package."""

from __future__ import annotations

from importlib import resources

import pandas as pd

from auditor.data.formats import readers as reading
from auditor.data.formats.parts import first_rows, pieces_of, whole_frame


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a file in ``auditor/data/files``, or all of them."""
    with resources.as_file(resources.files("auditor.data").joinpath("files", file)) as path:
        return whole_frame(first_rows(pieces_of(path), rows), reading.header(path), rows)

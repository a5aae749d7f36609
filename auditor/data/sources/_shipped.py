"""The data files that come with the package."""

from __future__ import annotations

from importlib import resources

import pandas as pd

from auditor.data import reading


def shipped(file: str, rows: int | None) -> pd.DataFrame:
    """Return the first ``rows`` records of a file in ``auditor/data/files``, or all of them."""
    with resources.as_file(resources.files("auditor.data").joinpath("files", file)) as path:
        return reading.read(path, reading.header(path), rows)

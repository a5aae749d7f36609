"""Reads a copy from a file and holds it against the original's columns and rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.checks import MISSING_REMEDY
from auditor.data.load import load_table
from auditor.errors import AuditorError

COMPLETE_REMEDY = "a copy's records must match the original's one to one: leave those records out of the original and of every copy"


def read_copy(path: Path, attributes: Sequence[str], rows: int, exact: bool = False, why: str = "") -> NDArray[np.float64]:
    """Return a copy handed in as a file, shape (n, N), its columns in the original's order.

    Parameters
    ----------
    path : Path
    attributes : sequence of str
        The original's columns.
    rows : int
        How many of its first rows to take.
    exact : bool
        Whether the file may have no more rows than that.
    why : str
        What may have made another number of rows, for whoever reads that.

    Raises
    ------
    AuditorError
        The file is missing, lacks a column, or has another number of rows.
    """
    try:
        table = load_table(str(path), columns=list(attributes), parameters={}, rng=np.random.default_rng(0), base=None, varied=False)
    except AuditorError as error:
        problem = str(error).replace(MISSING_REMEDY, COMPLETE_REMEDY)
        raise AuditorError(problem if problem.startswith(path.name) else f"{path.name}: {problem}") from None
    if table.rows < rows or (exact and table.rows > rows):
        raise AuditorError(f"{path.name}: has {table.rows:,} rows where the original has {rows:,}; rows must match one to one{why}")
    return table.values[:rows]

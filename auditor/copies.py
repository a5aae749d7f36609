"""Write perturbed copies as files: what is handed to recipients, and nothing that would let them undo it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor import registry
from auditor.data.categorical import split
from auditor.data.categories import Categories
from auditor.data.load import load_table
from auditor.errors import AuditorError
from auditor.release import perturb
from auditor.results import write_atomically
from auditor.streams import stream

MANIFEST = "release.json"


def write_copies(
    data: str,
    scheme: str,
    levels: Sequence[float],
    seed: int | None,
    output: Path,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    form: str | None = None,
) -> list[Path]:
    """Perturb a table and write ``copy-1``, ``copy-2`` … and a manifest; return the paths written.

    Parameters
    ----------
    data : str
        A registered source, or a path to .csv or .parquet.
    scheme, levels, parameters
        As for ``auditor.perturb``.
    seed : int, optional
        Left out, the system's randomness. The manifest does not hold it: who knows it can take the noise off again.
    output : Path
        Folder, made if need be. Files appear under their names only when they are whole.
    columns, rows
        Selection, as in a scenario's ``data``.
    form : 'csv' or 'parquet', optional
        Like the data by default, csv for a registered source.

    Raises
    ------
    AuditorError
        The data, the scheme or the levels cannot be used, or the folder cannot be written.
    """
    frame = _frame(data, registry.get("scheme", scheme).family, columns, rows, seed or 0)
    release = perturb(frame, scheme, list(levels), seed, **dict(parameters or {}))
    kind = form or ("parquet" if data.lower().endswith(".parquet") else "csv")
    try:
        output.mkdir(parents=True, exist_ok=True)
        written = [_write_copy(output / f"copy-{k}.{kind}", copy) for k, copy in enumerate(release.copies, start=1)]
        manifest = {
            "schema_version": 1,
            "scheme": release.scheme.name,
            "parameters": release.scheme.parameters.model_dump(mode="json", by_alias=True),
            "levels": list(release.levels),
            "attributes": list(frame.columns),
            "rows": len(frame),
            "copies": [path.name for path in written],
        }
        write_atomically(output / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise AuditorError(f"{output}: cannot be written ({error.strerror})") from None
    return [*written, output / MANIFEST]


def _frame(data: str, family: str, columns: Sequence[str] | None, rows: int | None, seed: int) -> pd.DataFrame:
    """Return the table to perturb: numbers, or for uniform schemes categories with the domains observed or declared by the source."""
    rng = stream(seed, "data")
    if family != "uniform":
        table = load_table(data, columns=columns, rows=rows, parameters={}, rng=rng, base=None)
        return pd.DataFrame(table.values, columns=list(table.attributes))
    chosen = Categories({}, dict.fromkeys(columns or ()))
    held = load_table(data, columns=columns, rows=rows, parameters={}, rng=rng, base=None, categories=chosen).categorical
    if held is None:
        raise AuditorError("a uniform scheme perturbs categories: name the columns to take as such")
    return pd.DataFrame({
        attribute.name: pd.Categorical.from_codes(codes, categories=pd.Index(attribute.labels))
        for attribute, codes in zip(held.attributes, split(held, held.codes), strict=True)
    })  # fmt: skip


def _write_copy(path: Path, copy: pd.DataFrame) -> Path:
    buffer = io.BytesIO()
    if path.suffix == ".parquet":
        copy.to_parquet(buffer, index=False)
    else:
        copy.to_csv(buffer, index=False)
    write_atomically(path, buffer.getvalue())
    return path


def read_copy(path: Path, attributes: Sequence[str], rows: int, exact: bool = False) -> NDArray[np.float64]:
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

    Raises
    ------
    AuditorError
        The file is missing, lacks a column, or has another number of rows.
    """
    try:
        table = load_table(str(path), columns=list(attributes), parameters={}, rng=np.random.default_rng(0), base=None)
    except AuditorError as error:
        told = str(error)
        raise AuditorError(told if told.startswith(path.name) else f"{path.name}: {told}") from None
    if table.rows < rows or (exact and table.rows > rows):
        raise AuditorError(f"{path.name}: has {table.rows:,} rows where the original has {rows:,}; rows must match one to one")
    return table.values[:rows]

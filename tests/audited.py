from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor
from auditor.data.microdata import as_table
from auditor.numerics.blocks import row_blocks
from auditor.registry import get
from auditor.results.records import Measurement
from auditor.schemes.base.scheme import Key, table_moments


def as_audited(
    X: np.ndarray, scheme: str, levels: list[float], seed: int, **parameters: Any
) -> auditor.Release:
    made, copies = get("scheme", scheme)(**parameters), [np.empty_like(X) for _ in levels]
    sampler = made.sampler(levels, table_moments(as_table(X)), Key(seed, scheme))
    for index, (a, b) in enumerate(row_blocks(*X.shape)):
        sampler.block(index, X[a:b], [copy[a:b] for copy in copies])
    return auditor.Release(X, tuple(copies), tuple(levels), made)


def written(folder: Path, table: pd.DataFrame, copies: Iterable[pd.DataFrame]) -> list[str]:
    """Write ``table.csv`` and its copies to a folder; return the paths of the copies."""
    table.to_csv(folder / "table.csv", index=False)
    names = []
    for place, copy in enumerate(copies):
        names.append(str(folder / f"copy-{place}.csv"))
        copy.to_csv(names[-1], index=False)
    return names


def record(value: float, error: float | None = 0.01, **changes: Any) -> Measurement:
    """Return a figure of an attack on one copy."""
    fields = dict.fromkeys(Measurement._fields) | {
        "sweep": {}, "scheme": "s", "knowledge": "perfect", "attack": "llse", "coalition": (1,), "levels": (0.5,), "replicate": 1,
        "attribute": "*", "metric": "normalized_error", "value": value, "std_error": error, "status": "ok", "error_bar": "closed-form",
    }  # fmt: skip
    return Measurement(**(fields | changes))

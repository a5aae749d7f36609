from typing import Any

import numpy as np

import auditor
from auditor.data.microdata import as_table
from auditor.numerics.blocks import row_blocks
from auditor.registry import get
from auditor.schemes.base.scheme import Key, table_moments


def as_audited(
    X: np.ndarray, scheme: str, levels: list[float], seed: int, **parameters: Any
) -> auditor.Release:
    made, copies = get("scheme", scheme)(**parameters), [np.empty_like(X) for _ in levels]
    sampler = made.sampler(levels, table_moments(as_table(X)), Key(seed, scheme))
    for index, (a, b) in enumerate(row_blocks(*X.shape)):
        sampler.block(index, X[a:b], [copy[a:b] for copy in copies])
    return auditor.Release(X, tuple(copies), tuple(levels), made)

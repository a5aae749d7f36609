"""Autocorrelation of a table's consecutive records."""

from __future__ import annotations

import numpy as np

from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.schemes.base.noise_law import undo_root
from auditor.types import Array

MOST_LAGS = 12
"""Largest lag: a year of months."""


def data_autocorrelations(table: Table, mean: Array, K_X: Array) -> tuple[Array, int]:
    """Return mean autocorrelations by lag, and the number of values used.

    ``r_h = tr(K_X⁺ C_h) / rank K_X``, shape (P + 1,), from ``n · rank K_X`` values; one pass over
    the table. ``C_h = Σ_{t>h} (x_t − μ)(x_{t−h} − μ)ᵀ / n``. The mean is over all directions of the
    data, each scaled to variance 1.
    """
    most = min(MOST_LAGS, table.rows // 4)
    undo, sums, past = undo_root(K_X), np.zeros(most + 1), np.zeros((most, len(K_X)))
    for a, b in row_blocks(table.rows, table.width):
        rows = np.concatenate([past, (table.read(a, b) - mean) @ undo.T])
        sums += [np.vdot(rows[most:], rows[most - h : len(rows) - h]) for h in range(most + 1)]
        past = rows[len(rows) - most :]
    return sums / sums[0], round(sums[0])

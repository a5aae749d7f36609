"""Tables and releases that the benchmarks measure on."""

from __future__ import annotations

import numpy as np

from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.registry import get
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, TableMoments, table_moments
from auditor.types import Array


def table_of(n: int, N: int) -> Table:
    """Return a table of correlated attributes."""
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((N, N)) + 2 * np.eye(N)
    return Table(
        tuple(f"x{j}" for j in range(N)),
        np.ascontiguousarray(rng.standard_normal((n, N)) @ mixing.T + 5.0),
    )


def levels_of(M: int) -> tuple[float, ...]:
    """Return levels, in no order."""
    return tuple(np.random.default_rng(1).uniform(0.25, 1.0, M).tolist())


def released(
    table: Table, scheme: str, levels: tuple[float, ...], **parameters: object
) -> tuple[list[Array], TableMoments, KroneckerNoise]:
    """Return a release's copies, the table's moments, and the law of the noise."""
    moments, made = table_moments(table), get("scheme", scheme)(**parameters)
    copies = [np.zeros((table.rows, table.width)) for _ in levels]
    sampler = made.sampler(levels, moments, Key(1, scheme))
    for index, (a, b) in enumerate(row_blocks(table.rows, table.width)):
        sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])
    return copies, moments, made.law(levels, moments)


def read_and_write(copies: list[Array], out: Array) -> None:
    """Read every copy once and write one: the least that a reconstruction takes. A maximum is numpy's fastest way to read."""
    for copy in copies:
        copy.reshape(-1).max()
    out.fill(1.0)

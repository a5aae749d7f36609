"""Draws a release block by block, for whoever makes copies rather than audits them."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.blocks import row_blocks
from auditor.numerics.cipher import ReleaseKey
from auditor.numerics.random_streams import Seed
from auditor.schemes.base.grid import DOUBLE_BITS, grid_of
from auditor.schemes.base.noise_law import GaussianNoise
from auditor.schemes.base.scheme import Key, RowsOf, Scheme, table_moments
from auditor.schemes.replacement.base import UniformScheme
from auditor.types import Array, Codes, Microdata


def checked_seed(seed: int | None) -> int:
    """Return a seed that a user gave, or 128 bits of the operating system's entropy.

    Raises
    ------
    AuditorError
        It is no whole number of at least 0.
    """
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise AuditorError(f"seed must be an integer of at least 0; got {seed!r}")
    return int(seed)


def secret_of(seed: int | None, fingerprint: str) -> Seed:
    """Return what the noise of one release is drawn from: without a seed a secret key, else a number made of seed and table.

    With the seed alone the copies of two tables would have the same noise, and their difference would show every cell that differs.
    """
    if seed is None:
        return ReleaseKey()
    return int.from_bytes(hashlib.sha256(f"{checked_seed(seed)} {fingerprint}".encode()).digest())


def drawn_blocks(
    scheme: Scheme, table: Table, levels: tuple[float, ...], key: Key, copies: Sequence[Array] | None = None, existing: int = 0
) -> Iterator[tuple[int, int, Sequence[Array]]]:
    """Make the copies of a table block by block; yield first and last row (exclusive) and the block's rows of every copy.

    Parameters
    ----------
    scheme : Scheme
    table : Table
    levels : tuple of M floats
    key : Key
        As ``key_of`` makes it.
    copies : sequence of M ndarrays of n rows, optional
        Where to write them; the first ``existing`` are only read. Without it each block is written over the one before.
    """
    if scheme.makes_copies and scheme.needs_table:
        scheme.table = table
    sampler = scheme.sampler(levels, table_moments(table), key, existing)
    bounds = row_blocks(table.rows, table.width)
    memory = None if copies is not None else [scheme.blank(bounds[0][1], table.width) for _ in levels]
    for index, (a, b) in enumerate(bounds):
        out = RowsOf(copies, a, b) if copies is not None else [block[: b - a] for block in memory or ()]
        sampler.block(index, table.read(a, b), out, existing)
        yield a, b, out


def key_of(scheme: Scheme, table: Table, levels: tuple[float, ...], seed: int | None, bits: int = DOUBLE_BITS) -> Key:
    """Return what the copies of a table of numbers are drawn from, and the grid they lie on; see ``released_grid`` for its errors."""
    return Key(secret_of(seed, table.scan.digest), scheme.name, grid=released_grid(scheme, table, levels, bits))


def released_grid(scheme: Scheme, table: Table, levels: tuple[float, ...], bits: int = DOUBLE_BITS) -> tuple[float, ...]:
    """Return what released values are multiples of, by attribute, 0 for one without noise; nothing for a scheme that adds none.

    Raises
    ------
    AuditorError
        A column's noise is so small beside its values that numbers of so many bits cannot hold both.
    """
    noise = noise_deviations(scheme, table, levels) if scheme.on_grid else None
    if noise is None:
        return ()
    grid = grid_of(noise, np.maximum(np.abs(table.scan.low), np.abs(table.scan.high)), bits)
    if np.isnan(grid).any():
        column = table.attributes[int(np.isnan(grid).argmax())]
        raise AuditorError(
            f"column {column!r}: its noise is lost in the last digits of {64 if bits == DOUBLE_BITS else 32}-bit numbers "
            f"of its values' size; {'subtract an offset, or raise the levels' if bits == DOUBLE_BITS else 'write it in double precision'}"
        )
    return tuple(grid.tolist())


def noise_deviations(scheme: Scheme, table: Table, levels: tuple[float, ...]) -> Array | None:
    """Return each copy's noise in each attribute, a standard deviation, shape (M, N); None where the scheme states no law."""
    law = scheme.law(levels, table_moments(table)) if scheme.makes_copies else None
    if law is None:
        return None
    variances = np.outer(np.diag(law.level_covariance), np.diag(law.shape)) if isinstance(law, GaussianNoise) else np.diag(law.covariance)
    return np.sqrt(np.clip(variances.reshape(law.copies, law.width), 0.0, None))


def drawn_codes(scheme: UniformScheme, table: CategoricalTable, levels: tuple[float, ...], seed: int | None) -> Iterator[list[Codes]]:
    """Make the copies of categories block by block; yield the block's codes of every copy."""
    key = Key(secret_of(seed, "" if seed is None else codes_digest(table)), scheme.name)
    for block, (a, b) in enumerate(row_blocks(table.rows, BLOCK_WIDTH)):
        made = scheme.copies(table.read(a, b), table.size, replace(key, block=block))
        yield [made.ask(level) for level in levels]


def codes_digest(table: CategoricalTable) -> str:
    """Return a SHA-256 over the records' codes; unlike the fingerprint the same in memory and in a file, whatever the labels are."""
    digest = hashlib.sha256()
    for a, b in row_blocks(table.rows, BLOCK_WIDTH):
        digest.update(np.ascontiguousarray(table.read(a, b)).data)
    return digest.hexdigest()


class HeldCopies(Sequence[Array]):
    """Copies released before and new ones as arrays of one shape; an old one is turned into an array only when it is read."""

    def __init__(self, before: Sequence[Microdata], new: Sequence[Array], shape: tuple[int, ...]) -> None:
        self._before = before
        self._new = new
        self._shape = shape
        self._arrays: dict[int, Array] = {}

    def __len__(self) -> int:
        return len(self._before) + len(self._new)

    def __getitem__(self, place: Any) -> Any:
        if place >= len(self._before):
            return self._new[place - len(self._before)]
        if place not in self._arrays:
            self._arrays[place] = np.ascontiguousarray(self._before[place], dtype=np.float64).reshape(self._shape)
        return self._arrays[place]

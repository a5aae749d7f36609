"""Draw the copies of a release block by block."""

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from auditor.base import AuditorError
from auditor.base.types import Array, Arrays, Codes, Flags, Levels
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.random_streams import ReleaseKey, Seed
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, table_moments
from auditor.schemes.corner_wave import DOUBLE_BITS, FARTHEST, FARTHEST_OF_LONG_TAILS, grid_of
from auditor.schemes.replacement.base import Copies, UniformScheme
from auditor.schemes.uniform import MultiPertCopies


def checked_seed(seed: int | None) -> int:
    """User's seed, or 128 bits of entropy.

    ``AuditorError`` if invalid.
    """
    if seed is None:
        return secrets.randbits(128)
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise AuditorError(f"seed must be an integer of at least 0; got {seed!r}")
    return int(seed)


def secret_of(seed: int | None, fingerprint: str) -> Seed:
    """Noise seed of one release: a secret key, or seed and table mixed."""
    if seed is None:
        return ReleaseKey()
    return int.from_bytes(hashlib.sha256(f"{checked_seed(seed)} {fingerprint}".encode()).digest())


def drawn_blocks(
    scheme: Scheme,
    table: Table,
    levels: Levels,
    key: Key,
    copies: Arrays | None = None,
    existing: int = 0,
    scale: TableMoments | None = None,
    seen: Callable[[Array], None] | None = None,
) -> Iterator[tuple[int, int, Arrays]]:
    """Yield first and last row (exclusive) and all copies' rows, block by block.

    Parameters
    ----------
    copies : sequence of M ndarrays of n rows
        Destination; the first ``existing`` are only read.
    scale
        Moments that noise is scaled to.
    seen
        Called with each block of the table.
    """
    if scheme.makes_copies and scheme.needs_table:
        scheme.table = table
    sampler = scheme.sampler(levels, scale or table_moments(table).scale, key, existing)
    bounds, kept = row_blocks(table.rows, table.width), copies is not None
    held = copies or [scheme.blank(bounds[0][1], table.width) for _ in levels]
    for index, (a, b) in enumerate(bounds):
        rows, x = slice(a, b) if kept else slice(b - a), table.read(a, b)
        out = [copy[rows] for copy in held]
        if seen is not None:
            seen(x)
        sampler.block(index, x, out, existing)
        yield a, b, out


def check_takes_batches(scheme: Scheme) -> None:
    """Refuse schemes that perturb records dependently."""
    if scheme.engine == "numeric" and not (scheme.adds_noise and scheme.makes_copies):
        raise AuditorError(
            f"{scheme.name}: no records can be appended; its copies are not each record plus noise of its own, so "
            "records that come later cannot have theirs drawn alone"
        )


def key_of(
    scheme: Scheme,
    table: Table,
    levels: Levels,
    seed: int | None,
    bits: int = DOUBLE_BITS,
    scale: TableMoments | None = None,
    records_before: int = 0,
) -> Key:
    """Key and grid of a numeric table's copies.

    Errors as in ``released_grid``. Batches have keys by earlier records.
    """
    secret = secret_of(seed, _after(table.scan.digest, records_before))
    return Key(secret, scheme.name, grid=released_grid(scheme, table, levels, bits, scale))


def released_grid(
    scheme: Scheme,
    table: Table,
    levels: Levels,
    bits: int = DOUBLE_BITS,
    scale: TableMoments | None = None,
) -> tuple[float, ...]:
    """Grid of released values by attribute, 0 without noise.

    ``AuditorError`` if noise is too small for these bits.
    """
    noise = noise_deviations(scheme, table, levels, scale) if scheme.on_grid else None
    if noise is None:
        return ()
    farthest = (
        FARTHEST if scheme.distribution in ("gaussian", "uniform") else FARTHEST_OF_LONG_TAILS
    )
    grid = grid_of(noise, table.scan.largest, bits, lattice_units(scheme, table, scale), farthest)
    if np.isnan(grid).any():
        column = table.attributes[int(np.isnan(grid).argmax())]
        raise AuditorError(
            f"column {column!r}: its noise is lost in the last digits of {64 if bits == DOUBLE_BITS else 32}-bit numbers "
            f"of its values' size; {'subtract an offset, or raise the levels' if bits == DOUBLE_BITS else 'write it in double precision'}"
        )
    return tuple(grid.tolist())


def lattice_units(scheme: Scheme, table: Table, scale: TableMoments | None) -> Array | None:
    """Lattice unit of each attribute, shape (N,); None without one.

    ``AuditorError`` if a later batch's values are not multiples of the first one's unit.
    """
    own = table_moments(table)
    law = scheme.law((), scale or own.scale) if scheme.on_lattice else None
    if not isinstance(law, KroneckerNoise) or law.units is None:
        return None
    if scale is not None:
        from auditor.schemes.divisible_noise import units_of

        units_of(
            dict(zip(table.attributes, law.units.tolist(), strict=True)),
            own.recorded,
            np.diag(law.shape),
        )
    return law.units


def whole_columns(scheme: Scheme, table: Table, scale: TableMoments | None) -> Flags | None:
    """Columns with whole-number copies, (N,), or None."""
    units = lattice_units(scheme, table, scale)
    return None if units is None else units % 1 == 0


def noise_deviations(
    scheme: Scheme, table: Table, levels: Levels, scale: TableMoments | None
) -> Array | None:
    """Each copy's noise deviations, shape (M, N).

    None without a law.
    """
    law = scheme.law(levels, scale or table_moments(table).scale) if scheme.makes_copies else None
    return None if law is None else law.deviations


def drawn_codes(
    scheme: UniformScheme,
    table: CategoricalTable,
    levels: Levels,
    key: Key,
    released: Sequence[Codes] = (),
) -> Iterator[tuple[Codes, list[Codes]]]:
    """Yield each block's codes, and its new copies' codes.

    ``levels`` begin with levels of ``released`` copies, (n,), which multilevel copies continue by
    the bridge.
    """
    scheme, out = scheme.over(table), len(released)
    for block, (a, b) in enumerate(row_blocks(table.rows, BLOCK_WIDTH)):
        codes, own = table.read(a, b), replace(key, block=block)
        if out and scheme.multilevel:
            pi, before = scheme.replaced_by(table.size), [copy[a:b] for copy in released]
            made: Copies = MultiPertCopies(codes, table.size, own, pi, levels[:out], before)
        else:
            made = scheme.copies(codes, table.size, own)
            for level in levels[:out]:
                made.skip(level)
        yield codes, [made.ask(level) for level in levels[out:]]


def codes_key_of(
    scheme: UniformScheme, table: CategoricalTable, seed: int | None, records_before: int
) -> Key:
    """Key of categorical copies."""
    return Key(
        secret_of(seed, "" if seed is None else _after(codes_digest(table), records_before)),
        scheme.name,
    )


def _after(fingerprint: str, records_before: int) -> str:
    return f"{fingerprint} after {records_before}" if records_before else fingerprint


def codes_digest(table: CategoricalTable) -> str:
    """SHA-256 over the records' codes."""
    digest = hashlib.sha256()
    for a, b in row_blocks(table.rows, BLOCK_WIDTH):
        digest.update(np.ascontiguousarray(table.read(a, b)).data)
    return digest.hexdigest()

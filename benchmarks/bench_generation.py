"""Generating copies."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from auditor.numerics.blocks import row_blocks
from auditor.numerics.cipher import ReleaseKey
from auditor.registry import get
from auditor.schemes.base.scheme import Key, RowsOf, table_moments
from auditor.schemes.draw import released_grid
from benchmarks.conftest import Compare
from benchmarks.tables import levels_of, table_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.mark.parametrize(("M", "n", "N"), [(30, 100_000, 1), (10, 1_000_000, 2), (5, 100_000, 10)])
def test_generation(compare: Compare, M: int, n: int, N: int) -> None:
    table, levels = table_of(n, N), levels_of(M)
    copies, bounds = [np.zeros((n, N)) for _ in range(M)], row_blocks(n, N)
    sampler = get("scheme", "corner-wave")().sampler(levels, table_moments(table), Key(1, "corner-wave"))

    def generate() -> None:
        for index, (a, b) in enumerate(bounds):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

    def normals() -> None:
        rng = np.random.Generator(np.random.SFC64(1))
        for copy in copies:
            rng.standard_normal(out=copy)

    compare(f"{M} corner-wave copies of {n:,} × {N}", "drawing the M·n·N normals", generate, normals, at_most=1.2)


def test_noise_for_release(compare: Compare) -> None:
    """From a cipher and on a grid, against what an audit draws: copies that nobody can make again must not be a luxury."""
    M, n, N = 5, 1_000_000, 2
    table, levels, scheme = table_of(n, N), levels_of(M), get("scheme", "corner-wave")()
    copies, bounds = [np.zeros((n, N)) for _ in range(M)], row_blocks(n, N)

    def drawn(key: Key) -> Callable[[], None]:
        sampler = scheme.sampler(levels, table_moments(table), key)

        def generate() -> None:
            for index, (a, b) in enumerate(bounds):
                sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

        return generate

    release = Key(ReleaseKey(), "corner-wave", grid=released_grid(scheme, table, levels))
    compare(f"{M} copies of {n:,} × {N} for release", "as an audit draws them", drawn(release), drawn(Key(1, "corner-wave")), at_most=2.5)


def test_one_more_copy(compare: Compare) -> None:
    """Plan and draw; the copies that exist share memory, as only two of them are read."""
    few, many, n = 10, 1000, 100_000
    table = table_of(n, 1)
    moments, bounds = table_moments(table), row_blocks(n, 1)
    shared, target = [np.zeros((n, 1)) for _ in range(4)], np.zeros((n, 1))

    def extend(M: int) -> Callable[[], None]:
        levels, scheme = (*levels_of(M), 0.6), get("scheme", "corner-wave")()
        copies = [*(shared[k % 4] for k in range(M)), target]

        def run() -> None:
            for _ in range(5):
                sampler = scheme.sampler(levels, moments, Key(1, "corner-wave"), M)
                for index, (a, b) in enumerate(bounds):
                    sampler.block(index, table.read(a, b), RowsOf(copies, a, b), M)

        return run

    compare(f"one copy more at M = {many:,}, {n:,} × 1", f"at M = {few}", extend(many), extend(few), at_most=1.05, rounds=41)

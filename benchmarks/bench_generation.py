"""Generating copies."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.random_streams import ReleaseKey
from auditor.registry import get
from auditor.schemes.base.additive import CHUNK_VALUES
from auditor.schemes.base.scheme import Key, RowsOf, table_moments
from auditor.schemes.draw import released_grid
from auditor.types import Array
from benchmarks.conftest import Compare
from benchmarks.tables import levels_of, table_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.mark.parametrize(("M", "n", "N"), [(30, 100_000, 1), (10, 1_000_000, 2), (5, 100_000, 10)])
def test_generation(compare: Compare, M: int, n: int, N: int) -> None:
    table, levels = table_of(n, N), levels_of(M)
    copies, bounds = [np.zeros((n, N)) for _ in range(M)], row_blocks(n, N)
    sampler = get("scheme", "corner-wave")().sampler(
        levels, table_moments(table), Key(1, "corner-wave")
    )

    def generate() -> None:
        for index, (a, b) in enumerate(bounds):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

    def normals() -> None:
        rng = np.random.Generator(np.random.SFC64(1))
        for copy in copies:
            rng.standard_normal(out=copy)

    compare(
        f"{M} corner-wave copies of {n:,} × {N}",
        "drawing the M·n·N normals",
        generate,
        normals,
        at_most=1.2,
    )


NUMPY: dict[str, Callable[[np.random.Generator, Array], object]] = {
    "laplace-multilevel": lambda rng, out: rng.laplace(size=out.shape),
    "geometric-multilevel": lambda rng, out: rng.geometric(0.3, out.shape),
    "skellam-multilevel": lambda rng, out: rng.poisson(4.0, out.shape),
}
"""What numpy draws such noise with, or half of it."""


@pytest.mark.parametrize("scheme", NUMPY)
def test_processes(compare: Compare, scheme: str) -> None:
    """Levels in no order, so that most copies are drawn between two others where the scheme does not sort them; whole numbers."""
    M, n, N = 5, 500_000, 2
    table, levels = Table(("x0", "x1"), np.rint(10.0 * table_of(n, N).values)), levels_of(M)
    copies, bounds = [np.zeros((n, N)) for _ in range(M)], row_blocks(n, N)
    sampler = get("scheme", scheme)().sampler(levels, table_moments(table), Key(1, scheme))

    def generate() -> None:
        for index, (a, b) in enumerate(bounds):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

    def numbers() -> None:
        rng = np.random.Generator(np.random.SFC64(1))
        for copy in copies:
            NUMPY[scheme](rng, copy)

    name = scheme.removesuffix("-multilevel").replace("skellam", "poisson")
    compare(
        f"{M} {scheme} copies of {n:,} × {N}",
        f"as many draws of numpy's `{name}`",
        generate,
        numbers,
        at_most=3.0,
        rounds=5,
    )


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
    compare(
        f"{M} copies of {n:,} × {N} for release",
        "as an audit draws them",
        drawn(release),
        drawn(Key(1, "corner-wave")),
        at_most=2.5,
    )


@pytest.mark.parametrize(
    "name", ["corner-wave", "laplace-multilevel", "geometric-multilevel", "skellam-multilevel"]
)
def test_one_more_copy(compare: Compare, name: str) -> None:
    """Plan and draw; the copies that exist share memory, as only two of them are read. The new copy's neighbours are at the same levels."""
    few, many, n = 10, 1000, 100_000
    table = Table(("x0",), np.rint(10.0 * table_of(n, 1).values))
    moments, bounds = table_moments(table), row_blocks(n, 1)
    shared, target = [np.zeros((n, 1)) for _ in range(4)], np.zeros((n, 1))

    def extend(M: int) -> Callable[[], None]:
        others = [level for level in levels_of(M - 2) if abs(level - 0.6) > 0.05]
        levels, scheme = (*others, 0.55, 0.65, 0.6), get("scheme", name)()
        copies = [*(shared[k % 4] for k in range(len(others) + 2)), target]

        def run() -> None:
            for _ in range(1 if name == "skellam-multilevel" else 5):
                sampler = scheme.sampler(levels, moments, Key(1, name), len(copies) - 1)
                for index, (a, b) in enumerate(bounds):
                    sampler.block(index, table.read(a, b), RowsOf(copies, a, b), len(copies) - 1)

        return run

    compare(
        f"one {name} copy more at M = {many:,}, {n:,} × 1",
        f"at M = {few}",
        extend(many),
        extend(few),
        at_most=1.05,
        rounds=41,
    )


def _numpy_bridge(scheme: str, gap: Array, v: float) -> Callable[[], None]:
    """Return draws that numpy has, as many as the bridge of whole-number noise is made of: of one law for all values."""
    rng, d = np.random.Generator(np.random.SFC64(1)), np.abs(gap).astype(np.int64)

    def numbers() -> None:
        if scheme == "geometric-multilevel":
            rng.geometric(0.3, d.shape)
        else:
            n = rng.poisson(v / 2.0, d.shape)
            rng.binomial(n, 0.5)
            rng.binomial(n + d, 0.5)

    return numbers


@pytest.mark.parametrize("scheme", ["geometric-multilevel", "skellam-multilevel"])
def test_whole_numbers_between_two_copies(compare: Compare, scheme: str) -> None:
    """A copy on demand between two others, value by value."""
    process, v, n = get("scheme", scheme).process, 100.0, CHUNK_VALUES
    rng, low, middle, high = (
        np.random.Generator(np.random.SFC64(2)),
        np.array([0.0]),
        np.array([0.5 * v]),
        np.array([v]),
    )
    gap = process.increment(rng, low, high, (n, 1))
    against = (
        "as many draws of numpy's `geometric`"
        if scheme == "geometric-multilevel"
        else "of numpy's `poisson` and two `binomial`"
    )
    compare(
        f"{n:,} values between two {scheme} copies",
        against,
        lambda: process.bridge(rng, gap, low, middle, high),
        _numpy_bridge(scheme, gap, v),
        at_most=3.0,
        rounds=41,
    )

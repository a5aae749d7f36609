"""Gaussian releases and their audit: generation against drawing the normals, coalitions against naive reconstruction."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from auditor.audit import table_moments
from auditor.blocks import row_blocks, row_groups
from auditor.data.table import Table
from auditor.linear import Maps, audit_linear
from auditor.moments import Moments, stack
from auditor.noise import GaussianNoise
from auditor.registry import get
from auditor.scenario.coalitions import Coalitions
from auditor.scheme import Key, RowsOf
from benchmarks.timing import Ratio, ratio


def _table(n: int, N: int) -> Table:
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((N, N)) + 2 * np.eye(N)
    return Table(tuple(f"x{j}" for j in range(N)), np.ascontiguousarray(rng.standard_normal((n, N)) @ mixing.T))


def _levels(M: int) -> tuple[float, ...]:
    return tuple(np.random.default_rng(1).uniform(0.25, 1.0, M).tolist())


def generation(n: int, N: int, M: int) -> Ratio:
    """Batch generation of M copies against drawing the M·n·N normals into memory of the same size."""
    table, levels = _table(n, N), _levels(M)
    moments = table_moments(table)
    copies = [np.zeros((n, N)) for _ in range(M)]
    bounds = row_blocks(n, N)
    sampler = get("scheme", "corner-wave")().sampler(levels, moments, Key(1, "corner-wave"))

    def generate() -> None:
        for index, (a, b) in enumerate(bounds):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

    def normals() -> None:
        rng = np.random.Generator(np.random.SFC64(1))
        for copy in copies:
            rng.standard_normal(out=copy)

    return ratio(f"generate {M} copies of {n:,} × {N}", "drawing the normals", generate, normals, at_most=1.25)


def one_more_copy(few: int = 10, many: int = 1000, n: int = 100_000) -> Ratio:
    """One more on-demand copy when many exist against when few do: plan and draw, existing copies shared."""
    table = _table(n, 1)
    moments = table_moments(table)
    shared = [np.zeros((n, 1)) for _ in range(4)]
    target = np.zeros((n, 1))
    bounds = row_blocks(n, 1)

    def extend(M: int) -> Callable[[], None]:
        levels = (*_levels(M), 0.6)
        scheme = get("scheme", "corner-wave")()
        copies = [shared[k % 4] for k in range(M)] + [target]

        def run() -> None:
            sampler = scheme.sampler(levels, moments, Key(1, "corner-wave"), M)
            for index, (a, b) in enumerate(bounds):
                sampler.block(index, table.read(a, b), RowsOf(copies, a, b), M)

        return run

    return ratio(f"one more copy at M = {many:,}", f"at M = {few}", extend(many), extend(few), at_most=1.1)


def coalitions(n: int = 100_000, N: int = 2, M: int = 10) -> Ratio:
    """All 2^M − 1 coalitions through moments, the pass included, against reconstructing the table once a coalition in plain numpy."""
    table, levels = _table(n, N), _levels(M)
    moments = table_moments(table)
    scheme = get("scheme", "correlated")()
    copies = [np.zeros((n, N)) for _ in range(M)]
    sampler = scheme.sampler(levels, moments, Key(1, "correlated"))
    for index, (a, b) in enumerate(row_blocks(n, N)):
        sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])
    subsets = sorted(Coalitions("subsets").expand(M, 0), key=lambda c: (len(c), c))
    law = scheme.law(levels, moments)

    def through_moments() -> None:
        groups = list(_gather(table, copies, moments.mean))
        audit_subsets(subsets, groups, table, moments, law, levels)

    K_X, mu = moments.covariance, moments.mean

    def naive() -> None:
        for coalition in subsets[:: len(subsets) // 33]:
            H = np.tile(np.eye(N), (len(coalition), 1))
            K_Z = np.kron(np.diag([levels[c - 1] for c in coalition]), K_X)
            W = K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z)
            Y = np.concatenate([copies[c - 1] for c in coalition], axis=1)
            X_hat = mu + (Y - np.tile(mu, len(coalition))) @ W.T
            ((X_hat - table.values) ** 2).mean()

    share = len(range(0, len(subsets), len(subsets) // 33)) / len(subsets)
    measured = ratio("", "", naive, through_moments, rounds=5)
    return Ratio(f"{len(subsets):,} coalitions of {n:,} × {N} × {M}", "reconstructing once a coalition, times faster",
                 measured.value / share, at_least=50.0)  # fmt: skip


def audit_subsets(subsets, groups, table, moments, law: GaussianNoise, levels) -> object:  # type: ignore[no-untyped-def]
    """Audit the joint LLSE on every subset, as the engine does."""
    from auditor.attack import View
    from auditor.knowledge import Perfect
    from auditor.linear import by_size

    everybody = tuple(range(1, len(levels) + 1))
    view = View(table.attributes, table.rows, everybody, levels, Perfect(), law, moments.mean, moments.mean, moments.covariance,
                Moments.merge(groups).of_copies(everybody, table.width))  # fmt: skip
    attack = get("attack", "llse")()
    affines = [affine for _, batch in by_size(subsets) for affine in attack.affine_batch(view, batch)]
    return audit_linear(subsets, Maps.pad(affines, subsets, len(levels)), groups, moments.covariance, law)


def _gather(table: Table, copies: list[np.ndarray], centre: np.ndarray) -> Iterator[Moments]:
    cuts = row_groups(table.rows, table.width)
    buffer = None
    for index, (a, b) in enumerate(row_blocks(table.rows, table.width)):
        buffer = np.empty((b - a, (len(copies) + 1) * table.width)) if buffer is None else buffer
        v = stack(table.read(a, b), [copy[a:b] for copy in copies], centre, buffer)
        for start, stop in cuts[index]:
            yield Moments.of(v[start - a : stop - a])


def all_ratios() -> Iterator[Ratio]:
    """Yield every ratio."""
    for n, N, M in ((100_000, 1, 30), (1_000_000, 2, 10), (100_000, 10, 5)):
        yield generation(n, N, M)
    yield one_more_copy()
    yield coalitions()

"""Filters on a wide table, against one XᵀX plus one n×N×N product: `python benchmarks/bench_filters.py --rows 1000000`.

Two uses are timed, all in one process, each figure the median of ratios to the floor measured right before it:

- reconstruct: moments of the copy, the filter, and every row's estimate written: what the attack costs an adversary;
- audit: from moments gathered once, all attacks' errors; the pass itself is timed against the same floor.

CPU time is compared. Prints the memory that grows with the rows beyond copy and estimate, too (numpy's own allocations, by tracemalloc).
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from auditor import registry
from auditor.attack import LinearAttack, View
from auditor.blocks import chunks, row_blocks
from auditor.knowledge import Estimated, Perfect
from auditor.linear import Maps, audit_linear
from auditor.moments import Moments, stack
from auditor.noise import GaussianNoise

ATTACKS = [
    ("udr", {}),
    ("spectral-filter", {}),
    ("spectral-filter", {"shrinkage": "optimal", "noise_variance": "unknown"}),
    ("svd-filter", {}),
    ("pca-filter", {"components": 10}),
    ("bayes-estimate", {}),
]


def make(rows: int, width: int) -> tuple[np.ndarray, np.ndarray, GaussianNoise]:
    """Return a table with ten strong components, one copy with white noise, and the noise's law."""
    rng = np.random.default_rng(2005)
    V = np.linalg.qr(rng.standard_normal((width, width)))[0]
    root = np.sqrt(np.r_[np.full(min(10, width), 400.0), np.full(max(0, width - 10), 10.0)])[:, None] * V.T
    X, Y = np.empty((rows, width)), np.empty((rows, width))
    for a, b in row_blocks(rows, width):
        np.matmul(rng.standard_normal((b - a, width)), root, out=X[a:b])
        Y[a:b] = X[a:b] + 50.0 + 5.0 * rng.standard_normal((b - a, width))
        X[a:b] += 50.0
    return X, Y, GaussianNoise(np.eye(1), 25.0 * np.eye(width))


def moments_of(centre: np.ndarray, Y: np.ndarray) -> Moments:
    """Return the moments of one table, piece by piece."""
    bounds = chunks(*Y.shape)
    buffer = np.empty((bounds[0][1], Y.shape[1]))
    return Moments.merge(Moments.of(stack(Y[a:b], [], centre, buffer)) for a, b in bounds)


def view_of(Y: np.ndarray, law: GaussianNoise, knowledge: Perfect | Estimated, mean: np.ndarray, K_X: np.ndarray) -> View:
    """Return the adversary's view: one pass over the copy."""
    moments = moments_of(mean, Y)
    exact = isinstance(knowledge, Perfect)
    names = tuple(f"x{j}" for j in range(Y.shape[1]))
    return View(
        names, len(Y), (1,), (1.0,), knowledge, law, mean, mean if exact else None, K_X if exact else None, moments,
        None if exact else moments,
    )  # fmt: skip


def clock(work: Callable[[], object]) -> float:
    """Return CPU seconds: all is one thread's arithmetic, and the machine may be shared."""
    start = time.process_time()
    work()
    return time.process_time() - start


def peak_mb(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--attributes", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    n, N, repeat = arguments.rows, arguments.attributes, arguments.repeat
    with threadpool_limits(limits=1):
        X, Y, law = make(n, N)
        out, F = np.full((n, N), 0.0), np.eye(N) + 0.01

        def floor() -> float:
            return clock(lambda: Y.T @ Y) + clock(lambda: np.matmul(Y, F, out=out))

        mean = X.mean(axis=0)
        K_X = moments_of(mean, X).covariance()
        floor()
        print(f"{n:,} rows × {N} attributes, {n * N * 8 / 1e6:,.0f} MB a table; one thread; medians of {repeat} ratios")
        print(f"floor (XᵀX plus one n×N×N product): {statistics.median(floor() for _ in range(repeat)):.2f} s\n")
        print(f"{'reconstruct':58} {'ratio':>6} {'memory beyond copy and estimate':>32}")
        for name, parameters in ATTACKS:
            attack = registry.get("attack", name)(**parameters)
            for knowledge in (Perfect(), Estimated(n)):
                reconstruct = reconstruction(attack, Y, law, knowledge, mean, K_X, out)
                ratios = []
                for _ in range(repeat):
                    base = floor()
                    ratios.append(clock(reconstruct) / base)
                title = f"{name} {parameters or ''} ({knowledge.label})"
                print(f"{title[:58]:58} {statistics.median(ratios):6.2f} {peak_mb(reconstruct):29.1f} MB")
        audit(X, Y, law, mean, K_X, floor, repeat)


def reconstruction(
    attack: LinearAttack, Y: np.ndarray, law: GaussianNoise, knowledge: Perfect | Estimated, mean: np.ndarray, K_X: np.ndarray,
    out: np.ndarray,
) -> Callable[[], object]:  # fmt: skip
    """Return the whole attack as one call: moments, filter, estimates."""

    def work() -> None:
        view = view_of(Y, law, knowledge, mean, K_X)
        attack.affine(view).apply([Y], view.centre, out)

    return work


def audit(
    X: np.ndarray, Y: np.ndarray, law: GaussianNoise, mean: np.ndarray, K_X: np.ndarray, floor: Callable[[], float], repeat: int
) -> None:
    """Time the moment pass over original and copy, and then all attacks from the moments alone."""
    n, N = X.shape
    found: list[Moments] = []

    def gather() -> None:
        bounds = row_blocks(n, N)
        buffer = np.empty((bounds[0][1], 2 * N))
        found[:] = [Moments.merge(Moments.of(stack(X[a:b], [Y[a:b]], mean, buffer)) for a, b in bounds)]

    view = view_of(Y, law, Perfect(), mean, K_X)

    def judge() -> None:
        for name, parameters in ATTACKS:
            affine = registry.get("attack", name)(**parameters).affine(view)
            audit_linear([(1,)], Maps.pad([affine], [(1,)], 1), found, K_X, law)

    passes, judged = [], []
    for _ in range(repeat):
        base = floor()
        passes.append(clock(gather) / base)
        judged.append(clock(judge) / base)
    print(f"\naudit: one moment pass over original and copy {statistics.median(passes):.2f} ({peak_mb(gather):.1f} MB); ", end="")
    print(f"then all {len(ATTACKS)} attacks together {statistics.median(judged):.3f}")


if __name__ == "__main__":
    main()

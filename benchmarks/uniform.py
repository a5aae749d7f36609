"""Uniform releases: a look-up against drawing 2n uniforms, early against late, memory, and the audit of ε."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from auditor.categorical.measures import retention_for_epsilon
from auditor.categorical.scheme import Copies
from auditor.distinguishing import empirical_epsilon
from auditor.registry import get
from auditor.scheme import Key
from benchmarks.timing import Ratio, ratio

ROWS, VALUES = 600_000, 50
MOST_BYTES = 160


def _copies(before: int, rows: int = ROWS) -> Copies:
    """A release of the replacement process with so many copies out, all events drawn."""
    original = np.random.default_rng(0).integers(0, VALUES, rows)
    copies = get("scheme", "uniform-multilevel")().copies(original, VALUES, Key(1, "uniform-multilevel"))
    levels = np.random.default_rng(1).uniform(0.001, 0.5, before)
    copies.warm([0.001])
    for level in levels[:-20]:
        copies.skip(float(level))
    for level in levels[-20:]:
        copies.ask(float(level))
    return copies


def _requests(copies: Copies) -> Callable[[], None]:
    levels = np.random.default_rng(2).uniform(0.001, 0.5, 20)
    many = len(copies.levels)

    def run() -> None:
        for level in levels:
            copies.ask(float(level))
        del copies.levels[many:]

    return run


def one_release() -> Ratio:
    """Twenty releases at random levels against twenty times 2n uniforms drawn into place."""
    buffer = np.empty(2 * ROWS)
    rng = np.random.Generator(np.random.SFC64(1))

    def uniforms() -> None:
        for _ in range(20):
            rng.random(out=buffer)

    return ratio(f"one release of {ROWS:,} tuples", "drawing 2n uniforms", _requests(_copies(10)), uniforms, at_most=0.3)


def late_release() -> Ratio:
    """A release when 10,000 are out against one when 10 are."""
    return ratio("one release at m = 10,000", "at m = 10", _requests(_copies(10_000)), _requests(_copies(10)), at_most=1.2)


def memory() -> Ratio:
    """Bytes a tuple of events and snapshots after 10,000 releases, over 160."""
    blocks = _copies(10_000).blocks  # type: ignore[attr-defined]
    return Ratio("bytes a tuple, m = 10,000", f"{MOST_BYTES} bytes", sum(block.bytes for block in blocks) / ROWS / MOST_BYTES, at_most=1.0)


def multi_pert(rows: int = 60_000) -> Ratio:
    """The paper's algorithm on compressed histories, vectorised, against the process: how many times slower."""
    original = np.random.default_rng(0).integers(0, VALUES, rows)
    levels = np.random.default_rng(1).uniform(0.001, 0.5, 20)

    def release(implementation: str) -> Callable[[], None]:
        def run() -> None:
            copies = get("scheme", "uniform-multilevel")(implementation=implementation).copies(original, VALUES, Key(1, "u"))
            for level in levels:
                copies.ask(float(level))

        return run

    return ratio("20 releases by multi-pert", "by the process, set-up included", release("multi-pert"), release("process"), at_least=1.0)


def epsilon_audit(trials: int = 1_000_000, k: int = 25) -> Ratio:
    """The audit of a million trials of k-ary randomized response at ε = 1 against drawing them."""
    rng = np.random.default_rng(1)

    def draw() -> list[np.ndarray]:
        p = retention_for_epsilon(1.0, k)
        return [np.where(rng.random(trials // 2) < p, value, rng.integers(0, k, trials // 2)) for value in (0, 1)]

    outputs = draw()
    return ratio(f"audit of ε, {trials:,} trials, k = {k}", "drawing the trials", lambda: empirical_epsilon(*outputs, k), draw, at_most=2.0)


def all_ratios() -> Iterator[Ratio]:
    """Yield every ratio."""
    yield one_release()
    yield late_release()
    yield memory()
    yield multi_pert()
    yield epsilon_audit()

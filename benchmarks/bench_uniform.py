"""Uniform perturbation of categories."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from auditor.registry import get
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies
from benchmarks.conftest import Compare

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROWS, VALUES, EACH = 600_000, 50, 20
MOST_BYTES = 160


def copies_of(before: int) -> Copies:
    """Return a release of which so many copies were made, at random levels."""
    original = np.random.default_rng(0).integers(0, VALUES, ROWS)
    copies: Copies = get("scheme", "uniform-multilevel")().blocked(
        original, VALUES, Key(1, "uniform-multilevel")
    )
    levels = np.random.default_rng(1).uniform(0.001, 0.5, before)
    copies.ask(0.001)
    for level in levels:
        copies.ask(float(level))
    return copies


def requests(copies: Copies) -> Callable[[], None]:
    levels, many = np.random.default_rng(2).uniform(0.001, 0.5, EACH), len(copies.levels)

    def run() -> None:
        for level in levels:
            copies.ask(float(level))
        del copies.levels[many:]

    return run


def test_one_release(compare: Compare) -> None:
    buffer, rng = np.empty(2 * ROWS), np.random.Generator(np.random.SFC64(1))

    def uniforms() -> None:
        for _ in range(EACH):
            rng.random(out=buffer)

    compare(
        f"one release of {ROWS:,} tuples",
        "drawing 2n uniforms",
        requests(copies_of(10)),
        uniforms,
        at_most=0.3,
    )


@pytest.mark.parametrize("many", [100, 10_000])
def test_late_release(compare: Compare, many: int) -> None:
    compare(
        f"one release at m = {many:,}",
        "at m = 10",
        requests(copies_of(many)),
        requests(copies_of(10)),
        at_most=1.2,
    )


def test_memory(compare: Compare, benchmark: Any) -> None:
    benchmark.pedantic(lambda: None, rounds=1)
    made: Any = copies_of(10_000)
    held = sum(
        part.nbytes for block in made.blocks for segment in block._segments for part in segment
    )
    held += sum(snapshot.nbytes for block in made.blocks for snapshot in block._snapshots)
    compare.keep(
        "bytes a tuple at m = 10,000", f"{MOST_BYTES} bytes", [held / ROWS / MOST_BYTES], 1.0
    )


def test_multi_pert(compare: Compare) -> None:
    """The paper's algorithm on compressed histories, vectorised."""
    rows = 60_000
    original, levels = (
        np.random.default_rng(0).integers(0, VALUES, rows),
        np.random.default_rng(1).uniform(0.001, 0.5, EACH),
    )

    def release(implementation: str) -> Callable[[], None]:
        def run() -> None:
            copies = get("scheme", "uniform-multilevel")(implementation=implementation).copies(
                original, VALUES, Key(1, "u")
            )
            for level in levels:
                copies.ask(float(level))

        return run

    compare(
        f"{EACH} releases by the process, set-up included: how many times faster",
        "multi-pert, vectorised",
        release("process"),
        release("multi-pert"),
        at_least=1.0,
        rounds=3,
        figure=lambda work, floor: floor / work,
    )

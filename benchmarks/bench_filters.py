"""Filters on a million rows of a hundred attributes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import registry
from auditor.adversary.given import ExactMoments, SampleMoments
from auditor.adversary.knowledge import Estimated, Knowledge, Perfect
from auditor.adversary.view import View
from auditor.audit.numeric.known_rows import RowSelection
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.data.table import Table
from auditor.numerics import moments
from auditor.numerics.moments import Awaited, of_rows
from auditor.runs.estimate import in_blocks
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import TableMoments
from benchmarks.conftest import Compare

pytestmark = pytest.mark.benchmark(timer=time.process_time)

ROWS, WIDTH, STRONG = 1_000_000, 100, 10
SHRUNK = {"shrinkage": "optimal", "noise_variance": "unknown"}
USES: list[tuple[str, dict[str, Any], Knowledge]] = [
    ("udr", {}, Estimated(ROWS)),
    ("spectral-filter", {}, Perfect()),
    ("spectral-filter", SHRUNK, Perfect()),
    ("svd-filter", {}, Perfect()),
    ("pca-filter", {"components": 10}, Perfect()),
    ("bayes-estimate", {}, Perfect()),
    ("bayes-estimate", {}, Estimated(10_000)),
    ("bayes-estimate", {}, Estimated(ROWS)),
]


@dataclass
class Wide:
    """A table with ten strong components of a hundred, one copy with white noise, and memory to write to."""

    X: NDArray[np.float64]
    Y: NDArray[np.float64]
    out: NDArray[np.float64]
    law: KroneckerNoise
    moments: TableMoments

    def floor(self) -> None:
        self.Y.T @ self.Y
        np.matmul(self.Y, self.moments.covariance, out=self.out)

    def rebuild(
        self, name: str, parameters: dict[str, Any], knowledge: Knowledge
    ) -> Callable[[], None]:
        """Return the whole attack: the moments that it asks for, its map, and every row's estimate."""
        attack, mean, exact = (
            registry.get("attack", name)(**parameters),
            self.moments.mean,
            isinstance(knowledge, Perfect),
        )
        names = tuple(f"x{j}" for j in range(WIDTH))
        rows = knowledge.rows if isinstance(knowledge, Estimated) else len(self.Y)

        def work() -> None:
            released = Awaited(lambda: of_rows([self.Y], mean))
            sample = (
                released
                if exact or rows == len(self.Y)
                else of_rows([self.Y[:rows]], mean, self.moments.deviation)
            )
            given = ExactMoments(mean, self.moments.covariance) if exact else SampleMoments(sample)
            view = View(names, (1,), (1.0,), knowledge, self.law, mean, released, given)
            attack.affine(view).apply([self.Y], mean, self.out)

        return work


def make(rows: int) -> Wide:
    rng = np.random.default_rng(2005)
    V = np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    root = np.sqrt(np.r_[np.full(STRONG, 400.0), np.full(WIDTH - STRONG, 10.0)])[:, None] * V.T
    X, Y, out = (np.empty((rows, WIDTH)) for _ in range(3))
    for a in range(0, rows, 2000):
        here = slice(a, min(a + 2000, rows))
        np.matmul(rng.standard_normal(X[here].shape), root, out=X[here])
        X[here] += 50.0
        Y[here] = X[here] + 5.0 * rng.standard_normal(X[here].shape)
    out.fill(0.0)
    mean = X.mean(axis=0)
    return Wide(
        X,
        Y,
        out,
        KroneckerNoise(np.eye(1), 25.0 * np.eye(WIDTH)),
        TableMoments(mean, of_rows([X], mean).covariance(), rows),
    )


@pytest.fixture(scope="module")
def wide() -> Wide:
    return make(ROWS)


@pytest.mark.parametrize(("name", "parameters", "knowledge"), USES, ids=str)
def test_filter(
    compare: Compare, wide: Wide, name: str, parameters: dict[str, Any], knowledge: Knowledge
) -> None:
    told = ", ".join(
        [
            *(f"{key.replace('_', '-')}: {value}" for key, value in parameters.items()),
            f"{knowledge.label} knowledge",
        ]
    )
    work = wide.rebuild(name, parameters, knowledge)
    # Whoever takes moments of all rows, centring them, and then multiplies every row does what the
    # floor does and more
    whole = name == "bayes-estimate" and knowledge == Estimated(ROWS)
    compare(
        f"{name} ({told})",
        "one XᵀX and one n×N×N product",
        work,
        wide.floor,
        at_most=1.1 if whole else 1.0,
        rounds=3,
    )


def peak(work: Callable[[], object]) -> float:
    """Return the bytes that numpy held at most."""
    tracemalloc.start()
    work()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(found)


@pytest.mark.parametrize("what", ["bayes-estimate", "the moments of an audit"])
def test_memory(compare: Compare, wide: Wide, benchmark: Any, what: str) -> None:
    few = 250_000

    def bytes_at(rows: int) -> float:
        # a thread keeps it: it would count in the first of the two alone
        moments._ROOM.values, moments._ROOM.laid = np.empty(0), (None, 0)
        part = Wide(wide.X[:rows], wide.Y[:rows], wide.out[:rows], wide.law, wide.moments)
        if what == "bayes-estimate":
            return peak(part.rebuild(what, {}, Estimated(rows)))
        table = Table(tuple(f"x{j}" for j in range(WIDTH)), part.X)
        copies = ReleasedCopies(table, wide.moments, (1.0,), wide.law, in_blocks(table, [part.Y]))
        return peak(lambda: Gathered(copies, RowSelection(table, [Perfect()], 0, 1)))

    benchmark.pedantic(lambda: None, rounds=1)
    compare.keep(
        f"memory of {what} beyond copy and estimate, {ROWS:,} rows",
        f"at {few:,} rows",
        [bytes_at(ROWS) / bytes_at(few)],
        1.05,
    )

"""Auditing from moments."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pytest

import auditor
from auditor.adversary.coalitions import Coalitions
from auditor.adversary.knowledge import Perfect
from auditor.adversary.view import View
from auditor.audit.numeric.known_rows import RowSelection
from auditor.audit.numeric.linear_errors import audit_linear
from auditor.audit.numeric.linear_maps import Maps, by_size
from auditor.audit.numeric.views import Gathered, ReleasedCopies
from auditor.numerics.blocks import row_blocks
from auditor.registry import get
from auditor.runs.estimate import in_blocks
from auditor.schemes.base.scheme import Key
from auditor.types import Array, Coalition
from benchmarks.conftest import Compare
from benchmarks.tables import levels_of, released, table_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)


@pytest.mark.parametrize(
    ("M", "n", "N"),
    [(10, 1_000_000, 1), (10, 1_000_000, 2), (5, 200_000, 10), (2, 200_000, 30), (1, 200_000, 100)],
)
def test_moment_pass(compare: Compare, M: int, n: int, N: int) -> None:
    """The pass centres, sums, and keeps groups for error bars; the product does not."""
    table, levels = table_of(n, N), levels_of(M)
    copies, moments, law = released(table, "independent", levels)
    columns = np.concatenate([table.values, *copies], axis=1)

    def gather() -> None:
        Gathered(
            ReleasedCopies(table, moments, levels, law, in_blocks(table, copies)),
            RowSelection(table, [Perfect()], 0, 1),
        )

    compare(
        f"moment pass over {n:,} × {N}, {M} copies",
        "one XᵀX of the same columns",
        gather,
        lambda: columns.T @ columns,
        at_most=1.2,
    )


def test_all_coalitions(compare: Compare) -> None:
    """The pass included; naive reconstruction is plain numpy, for a sample of the coalitions, and scaled to all."""
    n, N, M = 100_000, 2, 10
    table, levels = table_of(n, N), levels_of(M)
    copies, moments, law = released(table, "correlated", levels)
    subsets = sorted(Coalitions("subsets").expand(M, 0), key=lambda c: (len(c), c))
    sample = subsets[:: len(subsets) // 33]
    K_X, mu = moments.covariance, moments.mean

    def from_moments() -> None:
        gathered = Gathered(
            ReleasedCopies(table, moments, levels, law, in_blocks(table, copies)),
            RowSelection(table, [Perfect()], 0, 1),
        )
        view: View = gathered.view(Perfect())
        attack = get("attack", "llse")()
        batches = [attack.affine_batch(view, run) for _, run in by_size(subsets)]
        audit_linear(subsets, Maps.pad(batches, subsets, M), gathered.groups, K_X, law)

    def naive() -> None:
        for coalition in sample:
            H = np.tile(np.eye(N), (len(coalition), 1))
            K_Z = np.kron(np.diag([levels[c - 1] for c in coalition]), K_X)
            W = K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z)
            Y = np.concatenate([copies[c - 1] for c in coalition], axis=1)
            ((mu + (Y - np.tile(mu, len(coalition))) @ W.T - table.values) ** 2).mean()

    share = len(sample) / len(subsets)
    compare(
        f"{len(subsets):,} coalitions of {n:,} × {N} × {M}: how many times faster",
        "reconstructing once a coalition",
        from_moments,
        naive,
        at_least=100.0,
        rounds=5,
        figure=lambda work, floor: floor / share / work,
    )


def moment_script(X: Array, levels: Sequence[float]) -> dict[Coalition, tuple[Array, ...]]:
    """Return distortion, rmse, normalized error and gain of the best linear attack, as a competent script does it, without error bars."""
    n, N = X.shape
    M, rng = len(levels), np.random.default_rng(0)
    centred = X - X.mean(axis=0)
    K_X = centred.T @ centred / n
    root = np.linalg.cholesky(K_X)
    copies = [centred + np.sqrt(level) * rng.standard_normal((n, N)) @ root.T for level in levels]
    v = np.concatenate([centred, *copies], axis=1)
    P, K_Y = v.T @ v / n, np.kron(1.0 + np.diag(levels), K_X)
    errors = {}
    for size in range(1, M + 1):
        for held in combinations(range(M), size):
            index = (np.array(held)[:, None] * N + np.arange(N)).ravel()
            W = np.linalg.solve(K_Y[np.ix_(index, index)], np.tile(K_X, (size, 1))).T
            R = np.zeros((N, N * (M + 1)))
            R[:, :N], R[:, N + index] = np.eye(N), -W
            errors[held] = np.einsum("id,de,ie->i", R, P, R)
    return {
        held: (
            error,
            np.sqrt(error),
            error / np.diag(K_X),
            1.0 - error / np.min([errors[copy,] for copy in held], axis=0),
        )
        for held, error in errors.items()
    }


SCENARIO = {
    "data": {"source": "census-like", "rows": 100_000, "columns": ["age", "income"]},
    "coalitions": ["subsets"],
    "attacks": ["llse"],
    "schemes": [{"name": "correlated", "levels": {"uniform": [0.25, 1.0], "count": 10}}],
    "seed": 3,
}
AS_CALLED = "as a user calls it: `auditor.run`, 1,023 coalitions of 100,000 × 2 × 10"
SCRIPT = "a plain numpy moment script without error bars"


@pytest.fixture(scope="module")
def scripted() -> Callable[[], object]:
    """Return the script's work."""
    return partial(moment_script, table_of(100_000, 2).values, levels_of(10))


def test_all_coalitions_as_a_user_calls_it(
    compare: Compare, scripted: Callable[[], object]
) -> None:
    """All that `auditor.run` does, tests of the noise and error bars included; the script draws, solves and says no more than errors."""
    compare(AS_CALLED, SCRIPT, lambda: auditor.run(SCENARIO), scripted, at_most=0.25)


def test_the_same_without_tests_of_the_noise(
    compare: Compare, scripted: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of it without the tests of the noise against its law, which no script has."""
    monkeypatch.setattr("auditor.audit.numeric_engine.law_tests", lambda *_: [])
    compare(
        f"{AS_CALLED}, the noise not tested against its law",
        SCRIPT,
        lambda: auditor.run(SCENARIO),
        scripted,
    )


def test_the_least_of_it(compare: Compare, scripted: Callable[[], object]) -> None:
    """Copies drawn and moments taken, without which no audit can be."""
    table, levels = table_of(100_000, 2), levels_of(10)
    copies, moments, law = released(table, "correlated", levels)
    sampler = get("scheme", "correlated")().sampler(levels, moments, Key(1, "correlated"))

    def least() -> None:
        for index, (a, b) in enumerate(row_blocks(100_000, 2)):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])
        Gathered(
            ReleasedCopies(table, moments, levels, law, in_blocks(table, copies)),
            RowSelection(table, [Perfect()], 0, 1),
        )

    compare(
        "the least of it: ten copies of 100,000 × 2 drawn, and their moments taken",
        SCRIPT,
        least,
        scripted,
    )


def test_all_coalitions_beside_perturbing(compare: Compare) -> None:
    """What asking for all 1,023 coalitions adds, errors, error bars, gains and closed forms, against making the ten copies they hold."""
    n, N, M = 100_000, 2, 10
    table, levels = table_of(n, N), levels_of(M)
    copies, moments, law = released(table, "correlated", levels)
    subsets = sorted(Coalitions("subsets").expand(M, 0), key=lambda c: (len(c), c))
    gathered = Gathered(
        ReleasedCopies(table, moments, levels, law, in_blocks(table, copies)),
        RowSelection(table, [Perfect()], 0, 1),
    )
    sampler = get("scheme", "correlated")().sampler(levels, moments, Key(1, "correlated"))

    def audit() -> None:
        view: View = gathered.view(Perfect())
        attack = get("attack", "llse")()
        batches = [attack.affine_batch(view, run) for _, run in by_size(subsets)]
        audit_linear(
            subsets, Maps.pad(batches, subsets, M), gathered.groups, moments.covariance, law
        )

    def perturb() -> None:
        for index, (a, b) in enumerate(row_blocks(n, N)):
            sampler.block(index, table.read(a, b), [copy[a:b] for copy in copies])

    compare(
        f"auditing {len(subsets):,} coalitions of {n:,} × {N} × {M}, moments taken",
        "making the copies",
        audit,
        perturb,
        rounds=21,
    )

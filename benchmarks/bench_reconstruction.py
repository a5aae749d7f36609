"""Rebuilding rows by the joint LLSE."""

from __future__ import annotations

import time

import numpy as np
import pytest

import auditor
from auditor.adversary.given import ExactMoments
from auditor.adversary.knowledge import Perfect
from auditor.adversary.view import View
from auditor.numerics.moments import Moments
from auditor.registry import get
from auditor.schemes.base.noise_law import KroneckerNoise
from benchmarks.conftest import Compare
from benchmarks.tables import levels_of, read_and_write, released, table_of

pytestmark = pytest.mark.benchmark(timer=time.process_time)

NO_ROWS = Moments(0, np.empty(0), np.empty((0, 0)))


@pytest.mark.parametrize(
    ("scheme", "n", "N", "M"),
    [
        ("correlated", 1_000_000, 1, 10),
        ("correlated", 1_000_000, 2, 10),
        ("independent", 1_000_000, 2, 10),
        ("independent", 200_000, 10, 10),
        ("corner-wave", 2_000_000, 2, 10),
    ],
)
def test_llse(compare: Compare, scheme: str, n: int, N: int, M: int) -> None:
    """Weights and rows; white noise (``independent``) takes an N×N product a row, noise of the data's shape none, corner-wave one copy."""
    table, levels = table_of(n, N), levels_of(M)
    copies, moments, law = released(table, scheme, levels)
    assert isinstance(law, KroneckerNoise)
    everybody = tuple(range(1, M + 1))
    view = View(
        table.attributes,
        everybody,
        levels,
        Perfect(),
        law,
        moments.mean,
        NO_ROWS,
        ExactMoments(moments.mean, moments.covariance),
    )
    out = np.zeros((n, N))

    def rebuild() -> None:
        get("attack", "llse")().affine(view).apply(copies, moments.mean, out)

    compare(
        f"{scheme}, {M} copies of {n:,} × {N}",
        "reading all copies and writing one",
        rebuild,
        lambda: read_and_write(copies, out),
        at_most=1.5,
        rounds=21,
    )


def test_attack_from_python(compare: Compare) -> None:
    """All that ``auditor.attack`` does: checks, weights, rows in fresh memory, closed form, and the error measured."""
    n, N, M = 1_000_000, 2, 10
    release = auditor.perturb(table_of(n, N).values, "correlated", levels_of(M), seed=1)
    out = np.zeros((n, N))
    compare(
        f"auditor.attack, correlated, {M} copies of {n:,} × {N}",
        "reading all copies and writing one",
        lambda: auditor.attack("llse", release),
        lambda: read_and_write(list(release.copies), out),
    )

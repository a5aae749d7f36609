"""What a user calls.

Everything around a kernel is in these figures: reading what was passed in, checking it, and making
what is handed back. A peer is the script that somebody competent would write for the same answer,
which is compared before anything is timed."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import FastICA

import auditor
from auditor.types import Array
from benchmarks.conftest import Compare
from benchmarks.tables import levels_of
from benchmarks.timing import run_python

processor = pytest.mark.benchmark(timer=time.process_time)


@cache
def normal_rows(rows: int) -> Array:
    return np.random.default_rng(0).multivariate_normal([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]], rows)


@processor
@pytest.mark.parametrize("seed", [1, None], ids=["seed", "secret"])
def test_perturb(compare: Compare, seed: int | None) -> None:
    X, levels, rng = normal_rows(100_000), levels_of(10), np.random.default_rng(1)
    purpose = "for study" if seed else "for release"
    compare(
        f"`auditor.perturb`, ten corner-wave copies of 100,000 × 2, {purpose}",
        "a numpy script of fresh noise",
        lambda: auditor.perturb(X, "corner-wave", levels, seed=seed),
        lambda: [X + v**0.5 * rng.standard_normal(X.shape) for v in levels],
        at_most=1.5,
        rounds=21,
    )


@processor
def test_perturb_categories(compare: Compare) -> None:
    rows, values, rng = 600_000, 50, np.random.default_rng(1)
    codes = rng.integers(0, values, rows)
    compare(
        "`auditor.perturb`, 600,000 categories",
        "`np.where(rng.random(n) < p, x, rng.integers(s, size=n))`",
        lambda: auditor.perturb(codes, "uniform", [0.3], seed=1),
        lambda: np.where(rng.random(rows) < 0.3, codes, rng.integers(0, values, rows)),
        at_most=1.5,
        rounds=21,
    )


@processor
def test_the_copy_as_it_is(compare: Compare) -> None:
    X = normal_rows(1_000_000)
    release = auditor.perturb(X, "independent", [0.5], seed=1)
    copy = release.copies[0]

    def script() -> float:
        rebuilt = copy.copy()
        return float(((rebuilt - X) ** 2).mean())

    assert auditor.attack("ndr", release).distortion == pytest.approx(script())
    compare(
        '`auditor.attack("ndr")`, 1,000,000 × 2',
        "copying the copy, and its mean squared error",
        lambda: auditor.attack("ndr", release),
        script,
        at_most=1.5,
        rounds=21,
    )


@processor
def test_distribution_analysis(compare: Compare) -> None:
    X, level = normal_rows(100_000), 0.5
    release = auditor.perturb(X, "independent", [level], seed=1)
    copy = release.copies[0]

    def script(bins: int = 200) -> Array:
        return np.stack(
            [
                binned_median(copy[:, j], level**0.5 * X[:, j].std(), bins)
                for j in range(X.shape[1])
            ],
            axis=1,
        )

    assert auditor.attack("distribution-analysis", release).distortion == pytest.approx(
        ((script() - X) ** 2).mean(), rel=0.01
    )
    compare(
        '`auditor.attack("distribution-analysis")`, 100,000 × 2',
        "a binned EM, and posterior medians by bin",
        lambda: auditor.attack("distribution-analysis", release),
        script,
        at_most=1.5,
        rounds=11,
    )


def binned_median(y: Array, std: float, bins: int) -> Array:
    """Return posterior medians under a prior that EM learns on a grid, interpolated between bins."""
    edges = np.linspace(y.min(), y.max(), bins + 1)
    middle, counts = (edges[1:] + edges[:-1]) / 2.0, np.histogram(y, edges)[0]
    L = np.exp(-0.5 * ((middle[:, None] - middle) / std) ** 2)
    L /= L.sum(axis=0)
    prior = np.full(bins, 1.0 / bins)
    for _ in range(500):
        again = prior * (L.T @ (counts / np.maximum(L @ prior, 1e-300))) / len(y)
        moved, prior = np.abs(again - prior).sum(), again
        if moved < 1e-5:
            break
    posterior = prior * L
    below = np.cumsum(posterior / np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300), axis=1)
    return np.interp(y, middle, middle[np.minimum((below < 0.5).sum(axis=1), bins - 1)])


@processor
def test_ica(compare: Compare) -> None:
    """Five starts to scikit-learn's one, each taken to its fixed point: one start in five ends far from the truth."""
    X = np.random.default_rng(0).exponential(size=(8_000, 4))
    release = auditor.perturb(X, "rotation", [0.0], seed=1)
    Y = release.copies[0]
    known = {"known-records": 50}

    def five() -> list[Array]:
        return [
            FastICA(
                4, whiten="unit-variance", tol=1e-6, max_iter=300, random_state=k
            ).fit_transform(Y)
            for k in range(5)
        ]

    assert auditor.attack("ica", release, knowledge=known).normalized_error < 0.02
    for found in five():
        closeness = np.abs(np.corrcoef(found.T, X.T)[:4, 4:]).max(axis=0)
        assert closeness.min() > 0.98
    compare(
        '`auditor.attack("ica")`, 8,000 × 4',
        "scikit-learn's FastICA from as many starts",
        lambda: auditor.attack("ica", release, knowledge=known),
        five,
        at_most=1.5,
        rounds=9,
    )


COMMANDS = {
    "list": ["list"],
    "show llse": ["show", "llse"],
    "new --template uniform": ["new", "{new}", "--template", "uniform", "--force"],
    "check li2012-fig3": ["check", "scenarios/li2012-fig3.yaml"],
    "check quickstart": ["check", "scenarios/quickstart.yaml"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_answers(compare: Compare, command: str, tmp_path: Path) -> None:
    """By the clock; most of `check` is the import of numpy, pydantic, PyYAML, and of all attacks for the quickstart."""
    words = [word.format(new=tmp_path / "new.yaml") for word in COMMANDS[command]]
    compare(
        f"`auditor {command}`",
        "`auditor --help`",
        lambda: run_python("-m", "auditor", *words),
        lambda: run_python("-m", "auditor", "--help"),
        at_most=2.5,
        rounds=9,
    )


@processor
def test_the_machine_itself(compare: Compare) -> None:
    """The spread of a ratio that is 1: figures that differ by less do not differ."""
    A = np.random.default_rng(0).standard_normal((700, 700))
    compare(
        "a product of matrices: the spread of this machine",
        "the same product",
        lambda: A @ A,
        lambda: A @ A,
        rounds=41,
    )

"""Boosted trees in numpy are scikit-learn's to the last bit, whatever columns look like and however fits are grown together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from auditor.numerics import boosted_trees
from auditor.numerics.boosted_trees import LEAVES, PENALTY, RATE, TREES, Task, foretold

COLUMNS = {
    "normals": lambda x: x,
    "heaps and few values": lambda x: np.column_stack([np.maximum(x[:, 0], 0.0), np.round(x[:, 1]), np.round(x[:, 2:], 2)]),
    "heavy tails": lambda x: np.exp(5.0 * x),
    "a constant": lambda x: np.column_stack([np.full(len(x), 7.0), x]),
}


def reference(task: Task, least: int) -> np.ndarray:
    learner = HistGradientBoostingRegressor(
        max_iter=TREES, learning_rate=RATE, max_leaf_nodes=LEAVES, l2_regularization=PENALTY, early_stopping=False, min_samples_leaf=least
    )
    known = task.columns[task.taught]
    return np.column_stack([learner.fit(known, y[task.taught]).predict(task.columns) for y in task.targets.T])


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize(("rows", "least"), [(2_000, 20), (600, 120), (60, 40)])
@pytest.mark.parametrize("at_once", [boosted_trees.AT_ONCE, 5_000])
def test_figures_are_scikit_learns(kind: str, rows: int, least: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "AT_ONCE", at_once)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((rows, 4))
    y = np.column_stack([np.sin(3.0 * x[:, 0]) * x[:, 1] + 0.3 * rng.standard_normal(rows), rng.standard_normal(rows)])
    half, few = np.arange(rows) % 20 < 10, rng.uniform(size=rows) < 0.4
    tasks = [Task(COLUMNS[kind](x), y, half), Task(x[:, :2], y, ~half), Task(rng.permuted(x, axis=0), np.zeros_like(y), few)]
    for task, found in zip(tasks, foretold(tasks, least), strict=True):
        np.testing.assert_array_equal(found, reference(task, least))

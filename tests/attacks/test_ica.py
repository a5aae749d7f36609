"""ica: what each state of knowledge settles, when components cannot be found, and Guo and Wu's variant."""

import numpy as np
import pytest

from attacks.ica import Unmixing, match, standard
from auditor.data.sources.components import DRAW
from auditor.errors import NotApplicable
from auditor.release import attack, perturb

SHAPES = ("exponential", "uniform", "laplace", "bimodal")


def table(shapes=SHAPES, rows=4000, seed=3, mean=2.0):
    rng = np.random.default_rng(seed)
    return (np.column_stack([DRAW[shape](rows, rng) for shape in shapes]) + mean) * 1.3 ** np.arange(len(shapes))


@pytest.mark.parametrize(("scheme", "parameters"), [("rotation", {}), ("random-projection", {"dimensions": 7})])
@pytest.mark.parametrize("knowledge", [{"known-records": 15}, {"known-sample": 1500}, {"unmatched-records": 1500}])
def test_independent_attributes_are_rebuilt_through_any_matrix(scheme, parameters, knowledge):
    release = perturb(table(), scheme, [0], seed=1, **parameters)
    assert attack("ica", release, knowledge=knowledge, coalition=[1]).normalized_error < 0.03


def test_without_a_mean_the_signs_of_symmetric_attributes_need_pairs():
    release = perturb(table(("uniform", "laplace", "bimodal"), mean=0.0), "rotation", [0], seed=2)
    assert attack("ica", release, knowledge={"known-records": 15}, coalition=[1]).normalized_error < 0.03


def test_gaussian_attributes_are_not_found():
    errors = [attack("ica", perturb(table(("normal",) * 4, seed=s), "rotation", [0], seed=s), knowledge={"known-records": 15},
                     coalition=[1]).normalized_error for s in range(6)]  # fmt: skip
    assert np.mean(errors) > 0.2


def test_guo_and_wu_rebuild_mixtures():
    X = table(rows=6000) @ np.random.default_rng(0).standard_normal((4, 4))
    release = perturb(X, "rotation", [0], seed=3)
    knowledge = {"unmatched-records": 2000}
    assert attack("ica", release, knowledge=knowledge, coalition=[1], components="latent").normalized_error < 0.05
    assert attack("ica", release, knowledge=knowledge, coalition=[1]).normalized_error > 0.2


@pytest.mark.parametrize("dimensions", [1, 3])
def test_fewer_columns_than_attributes_do_not_apply(dimensions):
    release = perturb(table(rows=300), "random-projection", [0], seed=1, dimensions=dimensions)
    with pytest.raises(NotApplicable, match="cannot be unmixed"):
        attack("ica", release, knowledge={"known-records": 15}, coalition=[1])


def test_matching_finds_order_and_signs():
    X = table(rows=3000)
    order, sign = match(standard(X, False), standard(X[:, [2, 0, 3, 1]] * [1, -1, -1, 1], False))
    assert order.tolist() == [1, 3, 0, 2]
    assert sign.tolist() == [-1, 1, 1, -1]


def test_over_tables_it_is_as_good_as_the_asymptotic_law_of_symmetric_fastica():
    """Leakage between components over 150 tables of 4,000 records through random matrices, each of six entries within four standard errors
    of its variance and a twentieth for higher orders; one false alarm in 2,600 for normal leakage."""
    rng, tables, n = np.random.default_rng(0), 150, 4000
    draws = [lambda size: rng.laplace(size=size) / np.sqrt(2), lambda size: rng.uniform(-np.sqrt(3), np.sqrt(3), size),
             lambda size: rng.exponential(size=size) - 1.0]  # fmt: skip
    large = [draw(2_000_000) for draw in draws]
    gamma = np.array([np.mean(np.tanh(s) ** 2) - np.mean(s * np.tanh(s)) ** 2 for s in large])
    tau = np.array([abs(np.mean(s * np.tanh(s)) - np.mean(1 - np.tanh(s) ** 2)) for s in large])
    expected = (gamma[:, None] + gamma + tau**2) / (tau[:, None] + tau) ** 2
    found = np.zeros((tables, 3, 3))
    for table in range(tables):
        A = rng.normal(size=(3, 3))
        S = np.column_stack([draw(n) for draw in draws])
        gain = Unmixing.of(S @ A.T, 3, rng).matrix @ A
        found[table] = gain[np.abs(gain).argmax(axis=0)] ** 2
    off = ~np.eye(3, dtype=bool)
    ratio = (n * found.mean(axis=0) / expected)[off]
    assert np.abs(ratio - 1.0).max() < 4 * np.sqrt(2 / tables) + 0.05

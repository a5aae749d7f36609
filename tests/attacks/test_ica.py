"""Independent component analysis."""

import itertools

import numpy as np
import pytest

from auditor.base import NotApplicable
from auditor.data.sources.gaussian import DRAW
from auditor.runs.estimate import attack
from auditor.runs.perturb import perturb
from auditor_attacks.ica import Unmixing, fixed_point, leak_deviation, orthogonal, whitened

SHAPES = ("exponential", "uniform", "laplace", "bimodal")


def table(shapes=SHAPES, rows=4000, seed=3, mean=2.0):
    rng = np.random.default_rng(seed)
    return (
        np.column_stack([DRAW[shape](rows, rng) for shape in shapes]) + mean
    ) * 1.3 ** np.arange(len(shapes))


@pytest.mark.parametrize(
    ("scheme", "parameters"), [("rotation", {}), ("random-projection", {"dimensions": 7})]
)
@pytest.mark.parametrize("knowledge", [{"known-records": 15}, {"unmatched-records": 1500}])
def test_independent_attributes_are_rebuilt_through_any_matrix(scheme, parameters, knowledge):
    release = perturb(table(), scheme, [0], seed=1, **parameters)
    assert attack("ica", release, knowledge=knowledge, coalition=[1]).normalized_error < 0.03


@pytest.mark.parametrize("dimensions", [1, 3])
def test_fewer_columns_than_attributes_do_not_apply(dimensions):
    release = perturb(table(rows=300), "random-projection", [0], seed=1, dimensions=dimensions)
    with pytest.raises(NotApplicable, match="cannot be unmixed"):
        attack("ica", release, knowledge={"known-records": 15}, coalition=[1])


def test_guo_and_wu_rebuild_mixtures():
    X = table(rows=6000) @ np.random.default_rng(0).standard_normal((4, 4))
    release, knows = perturb(X, "rotation", [0], seed=3), {"unmatched-records": 2000}
    latent = attack("ica", release, knowledge=knows, coalition=[1], components="latent")
    assert latent.normalized_error < 0.05
    assert attack("ica", release, knowledge=knows, coalition=[1]).normalized_error > 0.2


def draws(shapes, rows, seed):
    """Return independent columns at variance 1 over the table."""
    rng = np.random.default_rng(seed)
    S = np.column_stack([DRAW[shape](rows, rng) for shape in shapes])
    return (S - S.mean(axis=0)) / S.std(axis=0)


def test_the_fixed_point_is_that_of_scikit_learn():
    from sklearn.decomposition import FastICA

    y = draws(SHAPES, 2000, 0) @ np.random.default_rng(1).standard_normal((4, 4)).T
    ours = Unmixing.of(y, 4, np.random.default_rng(2)).apply(y)
    start = np.random.default_rng(3).standard_normal((4, 4))
    theirs = FastICA(
        4, whiten="unit-variance", max_iter=2000, tol=1e-15, w_init=start
    ).fit_transform(y)
    correlation = np.abs(ours.T @ theirs / len(y))
    assert np.sort(correlation.max(axis=0)) == pytest.approx(np.ones(4), abs=1e-12)


def test_a_step_is_that_of_the_paper():
    """Hyvärinen and Oja 2000, (43) and section 6.2, written out by sums."""
    z, _, _ = whitened(draws(SHAPES[:2], 60, 1), 2)
    W = orthogonal(np.random.default_rng(0).standard_normal((2, 2)))
    new = np.zeros((2, 2))
    for k in range(2):
        for row in z.T:
            u = float(W[k] @ row)
            new[k] += (row * np.tanh(u) - (1 - np.tanh(u) ** 2) * W[k]) / len(z.T)
    values, vectors = np.linalg.eigh(new @ new.T)
    new = vectors @ np.diag(values**-0.5) @ vectors.T @ new
    found = fixed_point(z, W, 1)[0]
    assert found * np.sign((found * new).sum(axis=1))[:, None] == pytest.approx(new, abs=1e-12)
    assert ((found * W).sum(axis=1) >= 0).all()


def test_leaks_between_components_deviate_as_written_out():
    s = np.random.default_rng(1).laplace(size=(3, 50)) / 2
    g = np.tanh(s)
    own, squares = (s * g).mean(axis=1), (g * g).mean(axis=1)
    tau, gamma = own - 1 + squares, squares - own**2
    found = leak_deviation(s)
    for k, j in itertools.permutations(range(3), 2):
        variance = (gamma[k] + gamma[j] + tau[j] ** 2) / (abs(tau[k]) + abs(tau[j])) ** 2 / 50
        assert found[k, j] == pytest.approx(np.sqrt(variance))


def skewed(rows, seed):
    rng = np.random.default_rng(seed)
    few = (rng.random(rows) < 0.2) + 0.1 * rng.standard_normal(rows)
    return (np.column_stack([rng.exponential(size=rows), rng.gamma(4.0, size=rows), few, rng.beta(0.4, 0.8, rows)]) + 3.0)  # fmt: skip


MATRICES = [
    ("rotation", {"translation": True}),
    ("random-projection", {"dimensions": 9}),
    ("random-projection", {"dimensions": 2, "copies": 2}),
]
KNOWLEDGE = [({"known-records": 20}, "attributes"), ({"unmatched-records": 1500}, "latent")]


@pytest.mark.parametrize(
    ("knowledge", "components"),
    [KNOWLEDGE[0], *(pytest.param(*known, marks=pytest.mark.slow) for known in KNOWLEDGE[1:])],
)
@pytest.mark.parametrize(("scheme", "parameters"), MATRICES)
def test_theory_is_what_is_measured_through_any_matrix(scheme, parameters, knowledge, components):
    X = skewed(8000, seed=2)
    release = perturb(X, scheme, [0] * parameters.get("copies", 1), seed=5, **parameters)
    estimate = attack("ica", release, knowledge=knowledge, components=components)
    assert estimate.theory == pytest.approx(estimate.distortion, rel=1e-8)
    assert estimate.normalized_error < 0.05


@pytest.mark.slow
def test_over_tables_it_is_as_good_as_the_asymptotic_law_of_symmetric_fastica():
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

"""ica: what each state of knowledge settles, when components cannot be found, Guo and Wu's variant, and theory beside measurement."""

import itertools

import numpy as np
import pytest

import auditor
from auditor.data.sources.components import DRAW
from auditor.errors import NotApplicable
from auditor.runs.estimate import attack
from auditor.runs.perturb import perturb
from auditor_attacks import _fastica, _some_rows
from auditor_attacks._fastica import Unmixing, fixed_point, leak_deviation, orthogonal, whitened
from auditor_attacks._naming import match, standard
from auditor_attacks._some_rows import some_rows

SHAPES = ("exponential", "uniform", "laplace", "bimodal")
ONE_NORMAL = ("exponential", "normal", "laplace", "bimodal")
TWO_NORMAL = ("normal", "normal", "laplace", "bimodal")


def table(shapes=SHAPES, rows=4000, seed=3, mean=2.0):
    rng = np.random.default_rng(seed)
    return (
        np.column_stack([DRAW[shape](rows, rng) for shape in shapes]) + mean
    ) * 1.3 ** np.arange(len(shapes))


@pytest.mark.parametrize(
    ("scheme", "parameters"), [("rotation", {}), ("random-projection", {"dimensions": 7})]
)
@pytest.mark.parametrize(
    "knowledge", [{"known-records": 15}, {"known-sample": 1500}, {"unmatched-records": 1500}]
)
def test_independent_attributes_are_rebuilt_through_any_matrix(scheme, parameters, knowledge):
    release = perturb(table(), scheme, [0], seed=1, **parameters)
    assert attack("ica", release, knowledge=knowledge, coalition=[1]).normalized_error < 0.03


def test_without_a_mean_the_signs_of_symmetric_attributes_need_pairs():
    release = perturb(table(("uniform", "laplace", "bimodal"), mean=0.0), "rotation", [0], seed=2)
    assert (
        attack("ica", release, knowledge={"known-records": 15}, coalition=[1]).normalized_error
        < 0.03
    )


def test_gaussian_attributes_are_not_found():
    errors = [attack("ica", perturb(table(("normal",) * 4, seed=s), "rotation", [0], seed=s), knowledge={"known-records": 15},
                     coalition=[1]).normalized_error for s in range(6)]  # fmt: skip
    assert np.mean(errors) > 0.2


def test_guo_and_wu_rebuild_mixtures():
    X = table(rows=6000) @ np.random.default_rng(0).standard_normal((4, 4))
    release = perturb(X, "rotation", [0], seed=3)
    knowledge = {"unmatched-records": 2000}
    assert (
        attack(
            "ica", release, knowledge=knowledge, coalition=[1], components="latent"
        ).normalized_error
        < 0.05
    )
    assert attack("ica", release, knowledge=knowledge, coalition=[1]).normalized_error > 0.2


@pytest.mark.parametrize("dimensions", [1, 3])
def test_fewer_columns_than_attributes_do_not_apply(dimensions):
    release = perturb(table(rows=300), "random-projection", [0], seed=1, dimensions=dimensions)
    with pytest.raises(NotApplicable, match="cannot be unmixed"):
        attack("ica", release, knowledge={"known-records": 15}, coalition=[1])


def test_values_whose_inverse_is_no_double_do_not_apply():
    y = np.full((30, 4), 5e-324) * np.random.default_rng(0).integers(0, 2, (30, 4))
    with pytest.raises(NotApplicable, match="do not vary"):
        _fastica.whitened(y, 4)


def test_contrast_is_least_for_gaussian_components():
    """``Σ (E log cosh s − 0.3746)²``: of ±1, ``(log cosh 1 − 0.3746)²``; of a Gaussian component 0 but for sampling."""
    s = np.tile([1.0, -1.0], 500)[None, :]
    assert _fastica.contrast(s) == pytest.approx(
        (np.log(np.cosh(1.0)) - 0.37456720749) ** 2, rel=1e-9
    )
    assert _fastica.contrast(np.random.default_rng(0).standard_normal((1, 100_000))) < 16 / 100_000


def test_matching_finds_order_and_signs():
    X = table(rows=3000)
    order, sign = match(standard(X, False), standard(X[:, [2, 0, 3, 1]] * [1, -1, -1, 1], False))
    assert order.tolist() == [1, 3, 0, 2]
    assert sign.tolist() == [-1, 1, 1, -1]


def draws(shapes, rows, seed):
    """Return independent columns at variance 1 over the table."""
    rng = np.random.default_rng(seed)
    S = np.column_stack([DRAW[shape](rows, rng) for shape in shapes])
    return (S - S.mean(axis=0)) / S.std(axis=0)


def as_released(found, s):
    """Return what an unmixing of the table ``s``, or of a copy, makes of each attribute, in order and with the signs of the truth."""
    order = np.abs(found.apply(s).T @ s).argmax(axis=0)
    parts = found.apply(s)[:, order]
    return parts * np.sign((parts * s).sum(axis=0))


def test_the_fixed_point_is_that_of_scikit_learn():
    """From the same start, run until it rests: their tolerance of 1e-6 on cosines, as they advise, leaves angles of 1e-3."""
    from sklearn.decomposition import FastICA

    s = draws(SHAPES, 2000, 0)
    y = s @ np.random.default_rng(1).standard_normal((4, 4)).T
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


def naive_leaks(s, signs):
    """Return the share of component j in k to first order, by means over the table: ``K_kj − ρ_kj/2``."""
    N = s.shape[1]
    tau = [
        np.mean(s[:, k] * np.tanh(s[:, k])) - np.mean(1 - np.tanh(s[:, k]) ** 2) for k in range(N)
    ]
    slope = [
        np.mean(s[:, k] * np.tanh(s[:, k])) + np.mean(1 - np.tanh(s[:, k]) ** 2) for k in range(N)
    ]
    leaks = np.zeros((N, N))
    for k, j in itertools.permutations(range(N), 2):
        rho = np.mean(s[:, k] * s[:, j])
        o_kj = signs[k] * (np.mean(s[:, j] * np.tanh(s[:, k])) - rho / 2 * slope[k])
        o_jk = signs[j] * (np.mean(s[:, k] * np.tanh(s[:, j])) - rho / 2 * slope[j])
        leaks[k, j] = (o_kj - o_jk) / (abs(tau[k]) + abs(tau[j])) - rho / 2
    return leaks


@pytest.mark.parametrize("shapes", [SHAPES, ONE_NORMAL])
@pytest.mark.parametrize("rows", [1000, 20_000])
def test_the_fixed_point_is_the_first_order_one_but_for_second_order(shapes, rows):
    for seed in range(5):
        s = draws(shapes, rows, seed)
        best = Unmixing.beside(s, np.eye(4), Unmixing.beside(s, np.eye(4), np.ones(4)).signs)
        leaks = naive_leaks(s, best.signs)
        off = ~np.eye(4, dtype=bool)
        assert np.abs((best.matrix - leaks)[off]).max() < 8 * np.abs(leaks).max() ** 2
        assert np.abs(best.matrix - leaks)[off].max() < 0.3 * np.abs(leaks).max()


def by_hand(X, mean, scale, rows):
    """Return the error of ``mean + scale·z`` for attributes without any leak, z their values at mean 0 and variance 1."""
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    return float(((mean + scale * z - X)[rows] ** 2).mean())


def test_one_attribute_alone_is_wrong_by_what_the_records_say_of_mean_and_scale():
    X = table(("exponential",), rows=400)
    estimate = attack(
        "ica", perturb(X, "rotation", [0], seed=1), knowledge={"unmatched-records": 40}, seed=3
    )
    known = [i for i in range(400) if X[i, 0] in unmatched(X, 40, 3)]
    rest = np.setdiff1d(np.arange(400), known)
    expected = by_hand(X, X[known].mean(axis=0), X[known].std(axis=0), rest)
    assert estimate.theory == pytest.approx(expected, rel=1e-10)
    assert estimate.distortion == pytest.approx(expected, rel=1e-10)


def unmatched(X, count, seed):
    """Return the first column of the records that an adversary is given with this seed."""
    from auditor.audit.numeric.known_rows import draws_of
    from auditor.scenario.read_knowledge import parse_knowledge

    knows = parse_knowledge({"unmatched-records": count})
    return X[next(iter(draws_of([knows], len(X), seed, 1).values())).rows, 0]


def skewed(rows, seed):
    """Return four attributes that are skewed, each in its way."""
    rng = np.random.default_rng(seed)
    few = (rng.random(rows) < 0.2) + 0.1 * rng.standard_normal(rows)
    return (
        np.column_stack(
            [rng.exponential(size=rows), rng.gamma(4.0, size=rows), few, rng.beta(0.4, 0.8, rows)]
        )
        + 3.0
    )


MATRICES = [("rotation", {}), ("rotation", {"translation": True}), ("rotation", {"copies": 2}),
            ("random-projection", {"dimensions": 4}), ("random-projection", {"dimensions": 9}),
            ("random-projection", {"dimensions": 2, "copies": 2})]  # fmt: skip
KNOWLEDGE = [({"known-records": 20}, "attributes"), ({"known-sample": 1500}, "attributes"), ({"unmatched-records": 1500}, "attributes"),
             ({"known-sample": 1500}, "latent"), ({"unmatched-records": 1500}, "latent")]  # fmt: skip


@pytest.mark.parametrize(
    ("knowledge", "components"),
    [KNOWLEDGE[0], *(pytest.param(*known, marks=pytest.mark.slow) for known in KNOWLEDGE[1:])],
)
@pytest.mark.parametrize(("scheme", "parameters"), MATRICES)
def test_theory_is_what_is_measured_through_any_matrix(scheme, parameters, knowledge, components):
    """Of skewed attributes all, so that records of the population tell signs even where copies were moved."""
    X = skewed(8000, seed=2)
    release = perturb(X, scheme, [0] * parameters.get("copies", 1), seed=5, **parameters)
    estimate = attack("ica", release, knowledge=knowledge, components=components)
    assert estimate.theory == pytest.approx(estimate.distortion, rel=1e-8)
    assert estimate.normalized_error < 0.05


def test_theory_is_of_the_rows_that_were_learnt_from(monkeypatch):
    monkeypatch.setattr(_some_rows, "MOST_ROWS", 1500)
    release = perturb(table(rows=6000), "random-projection", [0], seed=2, dimensions=5)
    for knowledge in ({"known-records": 20}, {"known-sample": 1000}):
        estimate = attack("ica", release, knowledge=knowledge)
        assert estimate.theory == pytest.approx(estimate.distortion, rel=1e-8)
    monkeypatch.setattr(_some_rows, "MOST_ROWS", 20_000)
    assert attack("ica", release, knowledge=knowledge).theory != pytest.approx(
        estimate.theory, rel=1e-3
    )


def test_rows_are_chosen_alike_however_they_come():
    values = np.arange(50_000.0)[:, None]
    whole = some_rows([[values]], np.random.default_rng(1))
    parts = some_rows(([part] for part in np.array_split(values, 13)), np.random.default_rng(1))
    assert np.array_equal(whole, parts)
    assert (len(whole), len(np.unique(whole))) == (20_000, 20_000)
    assert (np.diff(whole[:, 0]) > 0).all()
    assert abs(whole.mean() - 24_999.5) < 4.5 * 14434 * np.sqrt(0.6 / 20_000)
    assert np.array_equal(some_rows([[values[:7]]], np.random.default_rng(1)), values[:7])


def test_a_gaussian_attribute_may_have_a_fixed_point_on_either_sign_and_theory_takes_the_one_that_was_found(
    monkeypatch,
):
    """In one table in fifteen or so of this kind there are two; a single random start decides, of several the larger contrast."""
    monkeypatch.setattr(_fastica, "STARTS", 1)
    s = draws(ONE_NORMAL, 1000, 15)
    ends = {}
    for start in range(20):
        found = Unmixing.of(s, 4, np.random.default_rng(start))
        order = np.abs(found.apply(s).T @ s).argmax(axis=0)
        ends.setdefault(found.signs[order[1]], []).append(as_released(found, s))
        best = Unmixing.beside(s, np.eye(4), found.signs[order])
        assert np.abs(as_released(best, s) - as_released(found, s)).max() < 1e-9
    assert set(ends) == {-1.0, 1.0}
    assert np.abs(ends[1.0][0] - ends[-1.0][0]).max() > 0.01


@pytest.mark.slow
def test_two_gaussian_components_have_no_theory_however_many_rows():
    for seed in range(300):
        s = draws(("normal", "normal"), 300, seed)
        assert leak_deviation(Unmixing.beside(s, np.eye(2), np.ones(2)).apply(s).T).max() > 0.1
    for rows in (500, 5000):
        release = perturb(table(TWO_NORMAL, rows=rows), "rotation", [0], seed=2)
        assert attack("ica", release, knowledge={"known-records": 20}).theory is None


def test_there_is_no_theory_for_copies_with_noise():
    X = table(rows=3000)
    clean, noisy = (perturb(X, "rotation-noise", [level], seed=1) for level in (0, 1e-6))
    assert attack("ica", clean, knowledge={"known-records": 20}).theory is not None
    assert attack("ica", noisy, knowledge={"known-records": 20}).theory is None


def judged(shapes, knowledge, mean=0.0):
    """Return the verdict of ``matches-theory`` on twelve releases."""
    result = auditor.run({
        "schema": 1, "seed": 5, "data": {"source": "components", "shapes": list(shapes), "rows": 1500, "mean": mean},
        "schemes": ["rotation"], "knowledge": [knowledge], "coalitions": ["all"], "attacks": ["ica"], "replicates": 12,
        "expect": [{"matches-theory": {"attack": "ica"}}],
    })  # fmt: skip
    return result.expectations[0].status


def test_components_taken_for_each_other_refute_theory():
    """Of two attributes with one distribution records of the population cannot tell which is which; pairs can."""
    assert judged(("laplace", "laplace", "uniform", "uniform"), {"known-records": 20}) == "holds"
    assert (
        judged(("laplace", "laplace", "uniform", "uniform"), {"unmatched-records": 300}) == "fails"
    )
    assert judged(("exponential", "bimodal"), {"unmatched-records": 300}, mean=2.0) == "holds"


@pytest.mark.slow
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

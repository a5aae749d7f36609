"""Neighbour mixture."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import auditor
from auditor.audit.attempts import over_rows
from auditor.base import NotApplicable
from auditor_attacks import _chain, neighbour_mixture
from auditor_attacks._chain import Chain, estimates, fitted_chain, transitions, with_moves
from auditor_attacks._spectra import FOLDS, group_rows
from auditor_attacks.neighbour_mixture import (
    NEAREST,
    around,
    fitted_groups,
    near_rows,
    predicted,
    ridge_by_fold,
)


def series(rows, rho, seed=0, attributes=3):
    rng = np.random.default_rng(seed)
    e = rng.multivariate_normal(np.zeros(attributes), 0.5 * np.eye(attributes) + 0.5, rows)
    x = e.copy()
    for t in range(1, rows):
        x[t] = rho * x[t - 1] + np.sqrt(1.0 - rho**2) * e[t]
    return np.exp(x)


def left(attack, release, **options):
    return auditor.attack(attack, release, **options).normalized_error


def test_on_a_skewed_series_it_beats_both_attacks_that_it_joins():
    release = auditor.perturb(series(4000, 0.95), "corner-wave", [0.3, 0.6], seed=3)
    joint = left("neighbour-mixture", release)
    assert joint < 0.7 * min(left("serial-filter", release), left("mixture-estimate", release))


def test_on_unordered_rows_it_is_the_mixture_estimate():
    for seed in range(5):
        release = auditor.perturb(series(800, 0.0, seed), "independent", [0.3], seed=seed)
        one, other = (auditor.attack(name, release).values for name in ("neighbour-mixture", "mixture-estimate"))  # fmt: skip
        np.testing.assert_array_equal(one, other)


def test_the_saved_share_of_one_attribute_s_error_is_the_hand_value():
    g, v = 0.3, 0.5  # share known from other rows, noise over data
    found = neighbour_mixture.saved(np.array([g]), np.array([v / (1 + v)]), np.ones((1, 1)))
    assert found == pytest.approx(g * v / (1 - g + v))


def test_noise_that_depends_along_the_rows_is_not_applicable():
    release = auditor.perturb(series(300, 0.9), "corner-wave", [0.5], seed=1, serial="data")
    with pytest.raises(NotApplicable, match="independent between rows"):
        auditor.attack("neighbour-mixture", release)


def test_features_and_the_map_do_not_use_the_row_itself():
    u, rows = np.random.default_rng(1).normal(size=(400, 2)), np.arange(400)
    changed = u.copy()
    changed[200] += 0.1  # too little to change the ridges
    near = (around(values, rows, 0, 400) for values in (u, changed))
    same = np.isclose(*near, atol=1e-12).all(axis=1)
    assert same[200]
    assert (~same).sum() == 2 * max(neighbour_mixture.WINDOWS)
    f, fold = np.hstack([np.zeros((400, 4)), around(u, rows, 0, 400)]), rows % FOLDS
    P = [predicted(f, fold, ridge_by_fold(f, values, fold))[200] for values in (u, changed)]
    np.testing.assert_allclose(*P, atol=1e-12)


def test_a_panel_s_units_are_found_and_used():
    """400 units of seven rows: half of the variance is constant within a unit."""
    rng = np.random.default_rng(8)
    X = np.repeat(rng.gamma(1.0, size=(400, 2)), 7, axis=0)
    X = np.column_stack([X, X[:, 0] + rng.normal(size=len(X))])
    assert group_rows(X - X.mean(axis=0), len(X)) == 7
    mixed = rng.permutation(X - X.mean(axis=0))
    assert group_rows(mixed, len(X)) == len(X)
    release = auditor.perturb(X, "corner-wave", [0.3], seed=2**40 + 9)
    # a unit's mean alone leaves 0.3/7 of the constant columns
    assert left("neighbour-mixture", release) < 0.12


def test_a_chain_s_estimates_are_sums_over_all_paths():
    """Two groups of four rows on a grid of five points, of a chain and of independent rows."""
    rng = np.random.default_rng(2**40)
    x, y, first = np.linspace(-1.0, 2.0, 5), rng.normal(size=8), rng.dirichlet(np.ones(5))
    laws = (0.0, 1.0), (0.7, 0.2)
    chains = [Chain(x, first, transitions(first, *law), 0.5, 4, law[1] < 1.0) for law in laws]
    expected = np.empty((3, 8, 2))
    for low, (a, chain) in product((0, 4), enumerate(chains)):
        paths = np.array(list(product(range(5), repeat=4)))
        steps = [chain.T[paths[:, t], paths[:, t + 1]] for t in range(3)]
        near = np.exp(-((y[low : low + 4] - x[paths]) ** 2))
        for t in range(4):
            p = first[paths[:, 0]] * np.prod(steps, axis=0) * np.delete(near, t, 1).prod(axis=1)
            expected[0, low + t, a] = p @ x[paths[:, t]] / p.sum()
            p = p * near[:, t]
            mean = expected[1, low + t, a] = p @ x[paths[:, t]] / p.sum()
            expected[2, low + t, a] = p @ (x[paths[:, t]] - mean) ** 2 / p.sum() / 0.5
    both = np.column_stack([y, y])
    # the second stretch starts a group later
    for found in estimates(chains, [(both, 0), (both, 4)]):
        np.testing.assert_allclose(found, expected, atol=1e-5)  # of a table


def test_chains_depend_on_order_alone():
    """A random walk, equal values in households, a cycle with gaps, and each in no order."""
    rng = np.random.default_rng(2**40)
    cycle = np.cumsum(1.0 + (rng.random(1200) < 0.1)) % 4.0
    for x in (np.cumsum(rng.normal(size=1200)), np.repeat(rng.gamma(1.0, size=400), 3), cycle):
        s = 0.5 * x.var()
        for values, ordered in ((x, True), *((rng.permutation(x), False) for _ in range(10))):
            y = values + np.sqrt(s) * rng.normal(size=len(x))
            chain = fitted_chain(y, s, len(y))[0]
            assert chain.dependent == ordered
        y = x + np.sqrt(s) * rng.normal(size=len(x))
        chain = fitted_chain(y, s, len(y))[0]
        (found,) = estimates([chain], [(y[:, None], 0)])
        left = ((found[1, :, 0] - x) ** 2).mean() / x.var()
        assert left < 0.24  # a row alone leaves 0.33 of normal values


@pytest.mark.parametrize("squared", [False, True])
def test_memory_is_found_in_values_and_squares_and_one_unordered_table_in_twenty(squared):
    """300 rows whose values, or deviations, are an autoregression; in no order, 200 times."""
    rng, x = np.random.default_rng(2**40), np.log(series(300, 0.8, attributes=1))[:, 0]
    x = np.exp(x) * rng.normal(size=300) if squared else x
    assert not _chain.independent(x)
    alarms = sum(not _chain.independent(rng.permutation(x)) for _ in range(200))
    assert alarms <= binom.isf(1e-4, 200, 0.05)


def test_no_likelihood_vanishes_in_a_chain_that_never_moves():
    chain = Chain(np.arange(3.0), np.full(3, 1 / 3), transitions(np.full(3, 1 / 3), 1.0, 0.0), 1e-6, 99, True)  # fmt: skip
    assert np.isfinite(estimates([chain], [(np.repeat([[0.0], [2.0]], 40, axis=0), 0)])[0]).all()


def test_moves_between_points_without_noise_are_counted():
    """Each of three windows of 16 rows has five moves of each kind, with one more by shares."""
    y, share = np.tile([0.0, 1.0, 3.0], 16), np.full(3, 1.0 / 3.0)
    chain = with_moves(Chain(np.array([0.2, 1.1, 2.8]), share, np.eye(3), 1e-3, 48, False), y)
    np.testing.assert_allclose(chain.x, [0.0, 1.0, 3.0], atol=1e-9)
    expected = (15.0 * np.roll(np.eye(3), 1, axis=1) + chain.first) / 16.0
    np.testing.assert_allclose(chain.T, expected, atol=1e-9)


def test_weights_of_least_risk_by_hand():
    """Errors of variances 1 and 4, independent, and no slopes: weights 0.8 and 0.2."""
    errors = np.array([[[1.0], [-1.0], [1.0], [-1.0]], [[2.0], [2.0], [-2.0], [-2.0]]])
    # a slope of 4 costs 8, more than the average gains
    for slope, weights in ((0.0, [0.8, 0.2]), (4.0, [0.0, 1.0])):
        found = neighbour_mixture.least_risk(errors, np.array([[slope], [0.0]]))[:, 0]
        np.testing.assert_allclose(found, weights, atol=1e-6)


def test_cycles_are_found_at_any_place():
    """One line under noise of eight times the variance: little is left."""
    t = np.arange(5000)
    X = np.column_stack([np.sin(2.0 * np.pi * t / 7.03), np.cos(2.0 * np.pi * t / 90.0)])
    release = auditor.perturb(X, "corner-wave", [8.0], seed=2**40)
    assert left("serial-filter", release) < 0.03
    assert left("neighbour-mixture", release) < 0.06


@pytest.mark.parametrize("level", [2.0, 8.0, 20.0])
def test_trends_are_used_under_strong_noise(level):
    """Half of the mixture's error is the trends' at least."""
    t = np.linspace(0.0, 1.0, 600)
    X = np.column_stack([np.exp(2.0 * t), t + np.sin(6.0 * t), np.sqrt(t)])
    for seed in range(3):
        release = auditor.perturb(X, "corner-wave", [level], seed=2**40 + seed)
        assert left("neighbour-mixture", release) < 0.5 * left("mixture-estimate", release)


@pytest.mark.slow
def test_redraws_give_the_bars_of_fits_from_nothing(tmp_path, monkeypatch):
    path = tmp_path / "series.csv"
    np.savetxt(path, series(2000, 0.95, 7, 2), delimiter=",", header="a,b", comments="")
    attacks = ["mixture-estimate", "neighbour-mixture", "serial-filter"]
    spec = {"seed": 2**40 + 5, "data": {"source": str(path)}, "attacks": attacks}
    spec |= {"schemes": [{"name": "corner-wave", "levels": [0.4]}], "knowledge": ["perfect"]}

    def figures():
        frame = auditor.run(spec).frame().query("metric == 'normalized_error' and attribute == '*'")
        return frame.set_index("attack").loc[attacks, ["value", "std_error"]].to_numpy().T

    value, bar = figures()
    fit = over_rows.fitted_to_rows
    monkeypatch.setattr(over_rows, "fitted_to_rows", lambda *given: fit(*given[:-1], {}))
    cold, its_bar = figures()
    np.testing.assert_array_equal(value, cold)
    # nine equal draws of noise for both: bars differ by the fits alone
    assert (np.abs(np.log(bar / its_bar)) < np.log(2.0)).all(), bar / its_bar


def test_effects_of_two_groups_by_hand():
    """Forty rows of 9 and 11, and of −9 and −11: every second part of ten rows has equal values."""
    u = np.tile([9.0, 11.0], 40) * np.repeat([1.0, -1.0], 40)
    (found,) = fitted_groups([np.repeat([3, 7], 40)], [u[:50, None], u[50:, None]])
    ratio = 40.0 / (8000.0 * 78.0 / 80.0 - 1.0)
    expected = np.array([310.0, 290.0, 310.0, 290.0]) / (30.0 + ratio)
    np.testing.assert_allclose(found.effects[:, 0], [*expected, *-expected])
    np.testing.assert_array_equal(found.parts, np.arange(80) % 4 + np.repeat([0, 4], 40))


@pytest.mark.parametrize("seed", range(4))
def test_effects_are_those_of_other_parts(seed):
    """A naive transcription, of unequal groups in no order; the second coordinate has no groups."""
    rng = np.random.default_rng(2**40 + seed)
    codes = rng.permutation(np.repeat(np.arange(90), rng.integers(1, 12, 90)))
    u = rng.normal(size=(len(codes), 2)) + np.outer(rng.normal(size=90)[codes], [2.0, 0.0])
    (found,) = fitted_groups([codes], [u])
    n, K, x, part = len(codes), 90, u[:, 0], found.parts % FOLDS
    sets = [x[codes == k] for k in range(K)]
    within = sum(each.var() * len(each) for each in sets) / (n - K)
    mean_square = sum(len(each) * (each.mean() - x.mean()) ** 2 for each in sets) / (K - 1)
    usual = (n - sum(len(each) ** 2 for each in sets) / n) / (K - 1)
    ratio = usual * within / (mean_square - within)
    for t in range(n):
        others = x[(codes == codes[t]) & (part != part[t])]
        effect = others.sum() / (len(others) + ratio)
        assert found.effects[found.parts[t], 0] == pytest.approx(effect)
    for k in range(K):
        assert np.ptp(np.bincount(part[codes == k], minlength=FOLDS)) <= 1
    assert not found.effects[:, 1].any()


def test_groups_by_chance_are_not_used():
    for seed in range(20):
        rng = np.random.default_rng(2**40 + seed)
        u, codes = np.exp(2.0 * rng.normal(size=(800, 2))), rng.integers(0, 2 + 20 * seed, 800)
        assert not [*fitted_groups([codes], [u - u.mean(axis=0)])]


@pytest.mark.parametrize("seed", range(3))
def test_near_rows_predict_a_field_and_nothing_else(seed):
    """The best of five means, by brute force; noise alone is not predicted, nor by other places."""
    rng = np.random.default_rng(2**40 + seed)
    at = rng.random((900, 2))
    u = np.column_stack([np.sin(9.0 * at).sum(axis=1), np.zeros(900)]) + rng.normal(size=(900, 2))
    u -= u.mean(axis=0)
    near = near_rows(at, u)
    distances = ((at[:, None] - at) ** 2).sum(axis=2)
    order = np.argsort(distances + np.where(np.eye(900), np.inf, 0.0), axis=1)
    means = [u[order[:, : k - 1], 0].mean(axis=1) for k in NEAREST]
    found = near.at(np.arange(900))
    least = min(np.mean((u[:, 0] - m * min(1.0, m @ u[:, 0] / (m @ m))) ** 2) for m in means)
    assert np.mean((u[:, 0] - found[:, 0]) ** 2) == pytest.approx(least)
    assert not found[:, 1].any()
    assert near_rows(rng.random((900, 2)), u) is None


@pytest.mark.usefixtures("few_redraws", "no_learner")
def test_households_in_no_order_reach_the_closed_form_without_a_collusion_gain(tmp_path):
    """2,000 groups of three, of variances 0.8 between and 0.2 within, under noise of 0.5."""
    rng = np.random.default_rng(2**40)
    home = rng.permutation(np.repeat(np.arange(2000), 3))
    x = np.sqrt(0.8) * rng.normal(size=2000)[home] + np.sqrt(0.2) * rng.normal(size=6000)
    path = tmp_path / "homes.csv"
    pd.DataFrame({"x": (x - x.mean()) / x.std(), "home": [f"h{k}" for k in home]}).to_csv(path)
    result = auditor.run({
        "seed": 2**40, "data": {"source": str(path), "columns": ["x"], "shown": "home"}, "coalitions": [[1], [1, 2]], "knowledge": ["perfect"],
        "schemes": [{"name": "corner-wave", "levels": [0.5, 0.8]}], "attacks": ["mixture-estimate", "neighbour-mixture"],
    })  # fmt: skip
    frame = result.frame().query("metric == 'normalized_error' and attribute == '*'")
    error = frame.set_index("attack").value
    # x̂ = c'V⁻¹y with V = 0.8·11' + 0.7·I leaves 0.235; four deviations over 2,000 groups
    assert error["neighbour-mixture"].to_numpy() == pytest.approx(0.235, abs=0.025)
    assert error["mixture-estimate"].min() > 0.31

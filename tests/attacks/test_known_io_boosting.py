"""Known input–output boosting: the recipe written out, its limits, the exact posterior mean beside it, and leaks that no linear attack sees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import auditor
from auditor.runs.perturb import Release
from auditor_attacks import known_io_boosting
from auditor_attacks.known_io_boosting import FEWEST_RECORDS, best_count, boosted_trees, features
from tests.tiers import every_pair


def signs(rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(rows, 1))


def error(attack, release, known, coalition, **more):
    return auditor.attack(
        attack, release, coalition=coalition, knowledge={"known-records": known}, seed=5, **more
    ).normalized_error


def test_trees_are_shown_the_linear_estimate_the_first_copy_and_differences_by_hand():
    estimate, copies = (
        np.array([[9.0, 8.0]]),
        [np.array([[1.0, 2.0]]), np.array([[4.0, 1.0]]), np.array([[4.0, 6.0]])],
    )
    np.testing.assert_array_equal(features(estimate, copies), [[9, 8, 1, 2, 3, -1, 0, 5]])


@pytest.mark.slow
def test_the_number_of_trees_is_that_of_a_naive_search():
    """Every number of trees by tens, each grown anew and judged on every third record; the first from which more are no better."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 2))
    left = np.sin(2 * z[:, 0]) + rng.normal(size=300)

    def loss(count):
        total = 0.0
        for fold in range(3):
            out = np.arange(300) % 3 == fold
            trees = HistGradientBoostingRegressor(
                max_iter=count, max_leaf_nodes=16, early_stopping=False, random_state=0
            )
            total += ((left[out] - trees.fit(z[~out], left[~out]).predict(z[out])) ** 2).sum()
        return total

    losses = [(left**2).sum(), *(loss(count) for count in (10, 20, 30))]
    assert best_count(z, left) == 10 * int(np.argmax(np.diff(losses) >= 0)) > 0


@pytest.mark.parametrize("known", [3, FEWEST_RECORDS - 1])
def test_of_few_records_it_is_the_ridge_regression(known):
    X = np.random.default_rng(2).exponential(size=(300, 2))
    release = auditor.perturb(X, "independent", [0.3, 0.6], seed=1)
    found, linear = (auditor.attack(name, release, knowledge={"known-records": known}, seed=5, **more).values
                     for name, more in [("known-io-boosting", {}), ("known-io-regression", {"ridge": "gcv"})])  # fmt: skip
    np.testing.assert_allclose(found, linear, rtol=1e-9)


def test_on_normal_data_trees_are_left_out():
    rng = np.random.default_rng(3)
    assert boosted_trees(rng.normal(size=(500, 2)), rng.normal(size=500)) is None


def test_it_comes_near_the_exact_posterior_mean_and_never_below_it():
    """x = ±1: E(x | y) = tanh(y / σ²), against which it is held record by record; a linear attack leaves σ²/(1 + σ²)."""
    x = signs(6000)
    release = auditor.perturb(x, "independent", [0.3], seed=1)
    found = auditor.attack("known-io-boosting", release, knowledge={"known-records": 1500}, seed=5)
    exact = (np.tanh(release.copies[0] / (0.3 * x.var())) - x) ** 2
    excess = (found.values - x) ** 2 - exact
    assert excess.mean() > -4 * excess.std() / np.sqrt(x.size)
    assert excess.mean() < 0.1 * (0.3 / 1.3 - exact.mean())


def test_pooling_corner_wave_copies_gives_nothing_on_data_that_trees_win_on():
    """Theorem 4 under this attack: a second copy is only more to learn. Against a copy of fresh noise it gains."""
    X = np.random.default_rng(6).exponential(size=(6000, 1)) ** 1.5
    nested, fresh = (
        auditor.perturb(X, scheme, [0.3, 0.6], seed=1) for scheme in ("corner-wave", "correlated")
    )
    alone = error("known-io-boosting", nested, 1000, [1])
    assert alone < 0.9 * error("known-io-regression", nested, 1000, [1])
    assert error("known-io-boosting", nested, 1000, [1, 2]) > 0.98 * alone
    assert error("known-io-boosting", fresh, 1000, [1, 2]) < 0.9 * error(
        "known-io-boosting", fresh, 1000, [1]
    )


LEAKS = {
    "a coin": lambda z, rng: z * rng.choice([-1.0, 1.0], size=z.shape),
    "the other attribute, and a coin": lambda z, rng: z[:, ::-1] * rng.choice([-1.0, 1.0], size=(len(z), 1)),
    "its square": lambda z, rng: (z**2 - 1) / np.sqrt(2),
}  # fmt: skip
"""What the second copy adds to the first, given the first's noise z: uncorrelated with z and as
large."""


@pytest.mark.parametrize(
    "leak",
    [pytest.param(leak, marks=() if leak == "a coin" else pytest.mark.slow) for leak in LEAKS],
)
def test_a_leak_with_exactly_corner_wave_s_covariance_is_found(leak):
    """No linear attack gains by it; but it tells how large the first copy's noise was."""
    rng = np.random.default_rng(7)
    x, z = rng.normal(size=(2, 6000, 2))
    honest = auditor.perturb(x, "corner-wave", [1.0, 2.0], seed=1)
    leaky = Release(x, (x + z, x + z + LEAKS[leak](z, rng)), honest.levels, honest.scheme)
    gains = {
        name: 1 - error(name, leaky, 1500, [1, 2]) / error(name, leaky, 1500, [1])
        for name in ("known-io-regression", "known-io-boosting")
    }
    assert gains["known-io-regression"] < 0.01
    assert gains["known-io-boosting"] > 0.1


def test_rounding_is_not_learnt_from(monkeypatch):
    """A rotation undone leaves errors of 1e-13, which trees would find a pattern in."""
    monkeypatch.setattr(known_io_boosting, "grower", None)
    release = auditor.perturb(
        1e3 + np.random.default_rng(9).exponential(size=(300, 3)), "rotation", [0], seed=1
    )
    assert error("known-io-boosting", release, 200, [1]) < 1e-12


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bytes_and_nothing_is_drawn_from_the_global_generator():
    rng = np.random.default_rng(8)
    z, before = rng.normal(size=(200, 6)), np.random.get_state()[1].copy()  # noqa: NPY002
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(
                known_io_boosting.grower(max_iter=2)
                .fit(z, np.abs(z[:, 0]) + 0.1 * z[:, 1])
                .predict(z)
            )
    assert found[0].tobytes() == found[1].tobytes()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_of_very_many_records_some_are_learnt_from(monkeypatch):
    sizes = []
    monkeypatch.setattr(known_io_boosting, "MOST_RECORDS", 80)
    monkeypatch.setattr(known_io_boosting, "boosted_trees", lambda z, left: sizes.append(len(z)))
    error("known-io-boosting", auditor.perturb(signs(400), "independent", [0.3], seed=1), 300, [1])
    assert sizes == [80]


OTHER_COLUMNS = [
    {"name": "random-projection", "dimensions": 2},
    {"name": "random-projection", "dimensions": 5},
    {"name": "rotation-noise", "noise": "corner-wave"},
]


@pytest.mark.parametrize(("scheme", "known"), every_pair(OTHER_COLUMNS, [300], quick=1), ids=str)
def test_copies_with_other_columns_are_learnt_from_too(scheme, known):
    X = np.random.default_rng(9).exponential(size=(800, 3))
    more = {key: value for key, value in scheme.items() if key != "name"}
    release = auditor.perturb(
        X, scheme["name"], [0.1, 0.2] if "noise" in scheme else [0], seed=1, **more
    )
    assert error("known-io-boosting", release, known, [1]) < 1.02 * error(
        "known-io-regression", release, known, [1], ridge="gcv"
    )

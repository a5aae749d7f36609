"""Known input-output boosting."""

import numpy as np
import pytest

import auditor
from auditor.runs.perturb import Release
from auditor_attacks.known_io_boosting import FEWEST_RECORDS


def signs(rows, seed=0):
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(rows, 1))


def error(attack, release, known, coalition, **more):
    return auditor.attack(
        attack, release, coalition=coalition, knowledge={"known-records": known}, seed=5, **more
    ).normalized_error


@pytest.mark.parametrize("known", [3, FEWEST_RECORDS - 1])
def test_of_few_records_it_is_the_ridge_regression(known):
    X = np.random.default_rng(2).exponential(size=(300, 2))
    release = auditor.perturb(X, "independent", [0.3, 0.6], seed=1)
    found, linear = (auditor.attack(name, release, knowledge={"known-records": known}, seed=5, **more).values
                     for name, more in [("known-io-boosting", {}), ("known-io-regression", {"ridge": "gcv"})])  # fmt: skip
    np.testing.assert_allclose(found, linear, rtol=1e-9)


def test_it_comes_near_the_exact_posterior_mean_and_never_below_it():
    """X = ±1."""
    x = signs(6000)
    release = auditor.perturb(x, "independent", [0.3], seed=1)
    found = auditor.attack("known-io-boosting", release, knowledge={"known-records": 1500}, seed=5)
    exact = (np.tanh(release.copies[0] / (0.3 * x.var())) - x) ** 2
    excess = (found.values - x) ** 2 - exact
    assert excess.mean() > -4 * excess.std() / np.sqrt(x.size)
    assert excess.mean() < 0.1 * (0.3 / 1.3 - exact.mean())


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

"""Schemes of official statistics: what they do to a table by hand, what they keep, and that leaks in them are found."""

import numpy as np
import pytest

import auditor
from auditor.errors import AuditorError, NotApplicable
from auditor.numerics.random_streams import stream
from auditor.registry import get
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.masking.multiplicative_noise import factors
from auditor.schemes.masking.rounding import rounded


def column(*values):
    return np.array(values, dtype=float)[:, None]


def made(name, **parameters):
    return get("scheme", name)(**parameters)


def rng(number=0):
    return stream(7, "test", number)


def people(rows=600, seed=1):
    """Age and income: one symmetric, one skewed, correlated."""
    g = np.random.default_rng(seed).normal(size=(rows, 2))
    return np.column_stack([40 + 12 * g[:, 0], np.exp(10 + 0.4 * g[:, 0] + 0.5 * g[:, 1])])


# -- rounding ----------------------------------------------------------------------------------------------------------


def test_rounding_by_hand():
    np.testing.assert_array_equal(rounded(column(12, 18, -4, 33), np.array([10.0]), np.array([3.0])), column(13, 23, -7, 33))
    X = np.array([[1.0, 5.0], [2.0, 5.0]])
    np.testing.assert_array_equal(rounded(X, np.array([2.0, 0.0]), np.zeros(2))[:, 1], [5.0, 5.0])  # a constant column stays


def test_unbiased_rounding_goes_to_one_of_the_two_multiples_around_and_keeps_the_mean():
    X = np.full((20_000, 1), 3.0)
    Y = rounded(X, np.array([10.0]), np.zeros(1), rng())
    assert set(Y.ravel()) == {0.0, 10.0}
    assert abs(Y.mean() - 3.0) < 5 * np.sqrt(0.3 * 0.7 * 100 / 20_000)


def test_rounded_values_are_within_half_a_base_and_two_origins_tell_more_than_one():
    X = people()
    release = auditor.perturb(X, "rounding", [0.5, 0.5], seed=3, origin="random")
    assert (np.abs(np.array(release.copies) - X).max(axis=1) <= 0.25 * X.std(axis=0) * (1 + 1e-12)).all()
    one, both = (auditor.attack("ndr", release, coalition=copies).normalized_error for copies in ([1], [1, 2]))
    assert one == pytest.approx(0.5**2 / 12, rel=0.2)
    assert both < 0.8 * one


# -- top coding --------------------------------------------------------------------------------------------------------


def test_top_coding_by_hand():
    X = column(*range(1, 12))
    np.testing.assert_array_equal(made("top-coding").mask(X, 0.2, rng()).ravel(), [*range(1, 10), 9, 9])
    kept = made("top-coding", code="mean").mask(X, 0.2, rng())
    np.testing.assert_array_equal(kept.ravel(), [*range(1, 10), 10.5, 10.5])
    both = made("top-coding", ends="both").mask(X, 0.2, rng())
    np.testing.assert_array_equal(both.ravel(), [3, 3, *range(3, 10), 9, 9])


def test_a_mean_for_code_keeps_the_total_and_ties_at_the_quantile_are_not_coded():
    X = people()
    assert made("top-coding", code="mean", ends="both").mask(X, 0.1, rng()).sum() == pytest.approx(X.sum())
    tied = column(1, 1, 2, 2, 2, 2)
    np.testing.assert_array_equal(made("top-coding").mask(tied, 0.3, rng()), tied)


# -- multiplicative noise ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("logs", [False, True])
def test_factors_have_mean_1_and_the_variance_stated(logs):
    scheme, f = made("multiplicative-noise", logs=logs), factors(0.3, (200_000, 1), rng(), logs)
    (w,) = scheme.factor_variances([0.3])
    assert abs(f.mean() - 1.0) < 5 * np.sqrt(w / f.size)
    squares = (f - 1.0) ** 2
    assert abs(squares.mean() - w) < 5 * squares.std() / np.sqrt(f.size)
    assert (factors(0.0, (3, 1), rng(), logs) == 1.0).all()


@pytest.mark.parametrize("logs", [False, True])
def test_noise_has_the_covariance_of_the_law_over_draws_of_one_table(logs):
    X, levels, draws = people(40), (0.1, 0.4), 400
    moments = TableMoments(X.mean(axis=0), np.cov(X.T, ddof=0), len(X))
    law = made("multiplicative-noise", logs=logs).law(levels, moments)
    w = np.expm1(levels) if logs else np.array(levels)
    np.testing.assert_allclose(law.covariance, np.kron(np.diag(w), np.diag((X**2).mean(axis=0))))
    releases = [auditor.perturb(X, "multiplicative-noise", levels, seed=seed, logs=logs).copies for seed in range(draws)]
    Z = np.array([np.hstack(copies) - np.hstack([X, X]) for copies in releases])
    found = np.einsum("dri,drj->dij", Z, Z) / len(X)
    assert (np.abs(found.mean(axis=0) - law.covariance) <= 5 * found.std(axis=0) / np.sqrt(draws)).all()
    cross = np.einsum("ri,drj->dij", X, Z) / len(X)
    assert (np.abs(cross.mean(axis=0)) <= 5 * cross.std(axis=0) / np.sqrt(draws)).all()


def test_linear_attacks_go_by_the_law_and_those_by_densities_do_not_apply():
    release = auditor.perturb(people(), "multiplicative-noise", [0.2, 0.2], seed=1)
    found = auditor.attack("llse", release)
    assert found.normalized_error == pytest.approx(found.theory / people().var(axis=0).mean(), rel=0.25)
    with pytest.raises(NotApplicable, match="of which only the covariance is stated"):
        auditor.attack("map-estimate", release, prior="histogram")


def test_theory_of_multiplicative_noise_is_met_over_replicates():
    result = auditor.run({
        "data": {"source": "inline", "values": {"age": people(80)[:, 0].tolist(), "income": people(80)[:, 1].tolist()}}, "seed": 3,
        "schemes": [{"name": "multiplicative-noise", "levels": [0.1, 0.3]}], "attacks": ["ndr", "llse"], "knowledge": ["perfect"],
        "coalitions": ["subsets"], "replicates": 40, "expect": [{"matches-theory": {}}, {"collusion-gain": {"coalition": "all", "at-least": 0.1}}],
    })  # fmt: skip
    assert [each.status for each in result.expectations] == ["holds", "holds"]


# -- all ---------------------------------------------------------------------------------------------------------------

LEAKS = [("rounding", {}, [0.01, 0.02]), ("top-coding", {}, [0.001, 0.002]), ("multiplicative-noise", {}, [1e-4, 1e-4])]  # fmt: skip


@pytest.mark.parametrize(("scheme", "parameters", "levels"), LEAKS)
def test_a_copy_that_is_nearly_the_table_is_found_out_from_known_records(scheme, parameters, levels):
    release = auditor.perturb(people(), scheme, levels, seed=1, **parameters)
    found = auditor.attack("known-io-regression", release, coalition=[1, 2], knowledge={"known-records": 100})
    assert found.normalized_error < 0.05


NO_LEVEL = [("rounding", -0.5), ("top-coding", 0.0), ("top-coding", 1.0), ("multiplicative-noise", -0.1)]  # fmt: skip


@pytest.mark.parametrize(("scheme", "level"), NO_LEVEL)
def test_a_level_that_cannot_be_is_refused(scheme, level):
    with pytest.raises(AuditorError, match="level 1 must be"):
        auditor.perturb(people(20), scheme, [level], seed=1)

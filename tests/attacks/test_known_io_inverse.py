"""Known input–output inverse against the survey's recipe written out, its limits, and beside the regression the other way round."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.adversary.knowledge import KnownRecords
from auditor.audit.numeric.known_rows import chosen_rows
from auditor_attacks.known_io_inverse import inverse_map

properties = settings(max_examples=30, deadline=None, derandomize=True)


def learnt(X, Y):
    C, N = np.cov(np.hstack([X, Y]).T, bias=True), X.shape[1]
    return inverse_map(C[:N, :N], C[:N, N:], np.sqrt(np.diag(C)[N:]))


def error(attack, release, known, coalition=(1,), seed=5):
    return auditor.attack(
        attack, release, coalition=list(coalition), knowledge={"known-records": known}, seed=seed
    ).normalized_error


def test_hand_value_one_line_through_three_points():
    """Originals 0, 1, 2 and copies 1, 3, 5: y = 1 + 2x, so x̂ = (y − 1)/2; the noise does not bend it."""
    np.testing.assert_allclose(
        learnt(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])), [[0.5]]
    )
    noisy = learnt(np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([[0.0], [2.0], [4.0], [6.0]]))
    np.testing.assert_allclose(noisy, [[0.5]])  # where the regression of x on y gives 0.4


@given(seed=st.integers(0, 2**32 - 1), N=st.integers(1, 3), k=st.integers(1, 3))
@properties
def test_it_is_the_survey_s_recipe(seed, N, k):
    """M̂ by least squares with an intercept, then M̂⁻¹(y − t̂); of pooled copies least squares again, each in units of its deviation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, N)) * 10.0 ** rng.integers(-2, 3, size=N)
    Y = np.hstack(
        [X @ rng.normal(size=(N, N)).T + 0.1 * rng.normal(size=(30, N)) for _ in range(k)]
    )
    t, M = np.split(
        np.linalg.lstsq(np.hstack([np.ones((30, 1)), X]), Y, rcond=None)[0].T, [1], axis=1
    )
    y, unit = rng.normal(size=k * N), Y.std(axis=0)
    naive = np.linalg.lstsq(M / unit[:, None], (y - t[:, 0]) / unit, rcond=None)[0]
    found = X.mean(axis=0) + learnt(X, Y) @ (y - Y.mean(axis=0))
    np.testing.assert_allclose(found / X.std(axis=0), naive / X.std(axis=0), rtol=1e-6, atol=1e-6)


def test_an_audit_measures_what_the_recipe_reconstructs():
    X = np.random.default_rng(5).lognormal(size=(300, 2))
    release = auditor.perturb(X, "independent", [0.5], seed=0)
    estimate = auditor.attack("known-io-inverse", release, knowledge={"known-records": 60}, seed=9)
    known = chosen_rows(KnownRecords(60), 300, 9, 1)
    t, M = np.split(
        np.linalg.lstsq(
            np.hstack([np.ones((60, 1)), X[known]]), release.copies[0][known], rcond=None
        )[0].T,
        [1],
        axis=1,
    )
    np.testing.assert_allclose(
        estimate.values, np.linalg.solve(M, release.copies[0].T - t).T, rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize(
    "scheme",
    [
        {"scheme": "rotation"},
        {"scheme": "rotation", "translation": True},
        {"scheme": "random-projection", "dimensions": 5},
    ],
    ids=str,
)
def test_a_matrix_without_noise_is_undone_by_one_record_more_than_attributes(scheme):
    X = 1e3 + np.random.default_rng(6).exponential(size=(200, 3))
    release = auditor.perturb(X, scheme.pop("scheme"), [0], seed=1, **scheme)
    assert error("known-io-inverse", release, 4) < 1e-12
    assert error("known-io-inverse", release, 3) > 1e-3


def test_a_total_beside_its_parts_is_undone_too():
    """Originals on a plane: M̂ is known on that plane alone, and no more is needed."""
    parts = np.random.default_rng(7).exponential(size=(200, 2))
    X = np.hstack([parts, parts.sum(axis=1, keepdims=True)])
    assert error("known-io-inverse", auditor.perturb(X, "rotation", [0], seed=1), 20) < 1e-12


def test_of_added_noise_it_leaves_all_and_the_regression_shrinks():
    """M̂ tends to the identity: error σ² = 0.5 and, of the other, σ²/(1 + σ²). Least squares on 2,000 of 6,000 records is within 1 % of both;
    the mean of 8,000 squared normals within 4 · √(2/8000) = 6.4 %."""
    X = np.random.default_rng(8).normal(size=(6000, 2))
    release = auditor.perturb(X, "correlated", [0.5], seed=1)
    assert error("known-io-inverse", release, 2000) == pytest.approx(0.5, rel=0.075)
    assert error("known-io-regression", release, 2000) == pytest.approx(1 / 3, rel=0.075)


def test_with_few_records_and_many_copies_it_needs_fewer():
    """Ten copies of two attributes and 22 known records: two coefficients a copy and not twenty an attribute. Mean over ten choices."""
    release = auditor.perturb(
        np.random.default_rng(9).normal(size=(500, 2)), "independent", [0.5] * 10, seed=1
    )
    found = {
        name: np.mean([error(name, release, 22, range(1, 11), seed) for seed in range(10)])
        for name in ("known-io-inverse", "known-io-regression")
    }
    assert found["known-io-inverse"] < 0.5 * found["known-io-regression"]


def test_pooling_corner_wave_copies_gives_nothing_and_theory_is_met():
    """Theorem 4 under this attack: copies count alike, so that a noisier one only does harm."""
    result = auditor.run({
        "seed": 4, "data": {"source": "gaussian", "rows": 4000, "covariance": [[4.0, 1.5], [1.5, 1.0]]},
        "schemes": [{"name": "corner-wave", "levels": [0.4, 0.7]}], "knowledge": [{"known-records": 100}], "coalitions": ["singles", "all"],
        "attacks": ["known-io-inverse"], "replicates": 8,
        "expect": [{"no-collusion-gain": {}}, {"matches-theory": {}}, {"collusion-gain": {"coalition": "all", "at-most": -0.05}}],
    })  # fmt: skip
    assert [e.status for e in result.expectations] == ["holds"] * 3

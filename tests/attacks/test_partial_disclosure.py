"""Partial disclosure: estimates with known attributes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.attack import Affine, check_affine
from auditor.audit.numeric.moment_pass import RowSelection
from auditor.audit.numeric.release import held_release
from auditor.audit.numeric.views import Gathered
from auditor.base import AuditorError, PluginError
from auditor.runs.perturb import as_table, table_moments
from auditor.scenario.read_plugins import parse_knowledge
from auditor_attacks.partial_disclosure import given as given_known

properties = settings(max_examples=40, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def table(seed: int, n: int = 60, N: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, N)) @ rng.normal(size=(N, N)) + 5.0


def test_hand_value_correlation_half():
    """K_X = [[1, ½], [½, 1]], attribute 1 known."""
    B, left = given_known(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([0]))
    np.testing.assert_allclose(B, [[1.0], [0.5]])
    np.testing.assert_allclose(left, [[0.0, 0.0], [0.0, 0.75]])


@given(seed=seeds, scheme=st.sampled_from(["independent", "correlated", "corner-wave", "linearly-dependent"]), known=st.sets(
    st.integers(0, 2), min_size=1, max_size=2))  # fmt: skip
@properties
def test_estimates_are_the_conditional_mean_written_out(seed, scheme, known):
    X = table(seed)
    release = auditor.perturb(X, scheme, [0.5, 1.0], seed=seed)
    names = [f"x{j + 1}" for j in sorted(known)]
    estimate = auditor.attack("partial-disclosure", release, knowledge={"known-attributes": names})
    K_X, mu, K = np.cov(X.T, bias=True), X.mean(axis=0), sorted(known)
    joint = np.tile(K_X, (3, 3))
    joint[3:, 3:] += release.noise_covariance()
    observed = np.array([*K, *range(3, 9)])
    W = joint[:3, observed] @ np.linalg.pinv(
        joint[np.ix_(observed, observed)], rcond=1e-10, hermitian=True
    )
    values = np.hstack([X[:, K], *release.copies])
    expected = mu + (values - np.concatenate([mu[K], mu, mu])) @ W.T
    np.testing.assert_allclose(estimate.values, expected, atol=1e-5 * np.abs(X).max())
    np.testing.assert_allclose(estimate.values[:, K], X[:, K], atol=1e-9 * np.abs(X).max())
    assert estimate.theory == pytest.approx(
        np.trace(K_X - W @ joint[observed, :3]) / 3, abs=1e-7 * np.trace(K_X)
    )


def run(knowledge, attacks=("partial-disclosure",), **more):
    return auditor.run({
        "seed": 6, "data": {"source": "cps", "columns": ["age", "salary"], "rows": 2000},
        "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}], "knowledge": knowledge, "attacks": list(attacks), **more,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("names", "message"), [(["agee"], "did you mean 'age'"), (["age", "salary"], "leaves none")]
)
def test_attributes_that_cannot_be_known_are_refused_before_anything_runs(names, message):
    with pytest.raises(AuditorError, match=message):
        run([{"known-attributes": names}])


def test_an_attack_may_not_weigh_values_its_adversary_does_not_know():
    release = auditor.perturb(table(1), "independent", [1.0], seed=1)
    data, knows = as_table(release.original), parse_knowledge({"known-attributes": ["x2"]})
    held = held_release(
        data, table_moments(data), release.scheme, release.levels, (1,), release.copies, release.law,
    )  # fmt: skip
    view = Gathered(held, RowSelection(data, [knows], 0, 1)).view(knows)
    V = np.zeros((3, 3))
    V[:, 1] = 1.0
    check_affine(Affine(np.zeros((3, 3)), np.zeros(3), known=V), view)
    V[0, 2] = 1e-3
    with pytest.raises(PluginError, match="does not know"):
        check_affine(Affine(np.zeros((3, 3)), np.zeros(3), known=V), view)

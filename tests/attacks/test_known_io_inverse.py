"""Known input-output inverse."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor_attacks.known_io_map import inverse_map

properties = settings(max_examples=30, deadline=None, derandomize=True)


def learnt(X, Y):
    C, N = np.cov(np.hstack([X, Y]).T, bias=True), X.shape[1]
    return inverse_map(C[:N, :N], C[:N, N:], np.sqrt(np.diag(C)[N:]))


def error(attack, release, known, coalition=(1,), seed=5):
    return auditor.attack(
        attack, release, coalition=list(coalition), knowledge={"known-records": known}, seed=seed
    ).normalized_error


def test_hand_value_one_line_through_three_points():
    """Originals 0, 1, 2 and copies 1, 3, 5."""
    np.testing.assert_allclose(
        learnt(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])), [[0.5]]
    )
    noisy = learnt(np.array([[0.0], [0.0], [2.0], [2.0]]), np.array([[0.0], [2.0], [4.0], [6.0]]))
    np.testing.assert_allclose(noisy, [[0.5]])  # the regression of x on y gives 0.4


@given(seed=st.integers(0, 2**32 - 1), N=st.integers(1, 3), k=st.integers(1, 3))
@properties
def test_it_is_the_survey_s_recipe(seed, N, k):
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

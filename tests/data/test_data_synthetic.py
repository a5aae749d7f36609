import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from auditor.base import DataError
from auditor.data.sources import gaussian
from auditor.data.sources.gaussian import SHAPES, Components, Intervals
from auditor.testing import check_source
from tests.loading import load_table


def load(source, seed=0, rows=None, **parameters):
    return load_table(source, rows=rows, parameters=parameters, rng=np.random.default_rng(seed))


def refusal(source, **request):
    with pytest.raises(DataError) as caught:
        load(source, **request)
    return str(caught.value)


def test_table_3_of_the_paper():
    table = load("census-like")
    assert table.attributes == ("age", "income")
    assert table.rows == 100_000
    # li2012, table 3
    np.testing.assert_allclose(table.values.mean(axis=0), [50.06, 16.57], rtol=1e-13)
    np.testing.assert_allclose(table.values.var(axis=0), [303.03, 219.92], rtol=1e-13)
    assert np.corrcoef(table.values.T)[0, 1] == pytest.approx(0.17, abs=1e-13)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 200), st.floats(-0.999, 0.999), st.integers(0, 2**32))
def test_moments_are_exact_at_any_size_and_correlation(rows, rho, seed):
    values = load("census-like", seed, rows, correlation=rho).values
    np.testing.assert_allclose(values.mean(axis=0), [50.06, 16.57], rtol=1e-10)
    np.testing.assert_allclose(values.var(axis=0), [303.03, 219.92], rtol=1e-10)
    assert np.corrcoef(values.T)[0, 1] == pytest.approx(rho, abs=1e-9)


K = [[4.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 1.0]]


def test_a_spectrum_by_its_mean_variance():
    values = load(
        "gaussian",
        spectrum={"mean-variance": 100, "count": 5, "small": 10, "attributes": 20},
        exact=True,
    ).values
    lam = np.linalg.eigvalsh(np.cov(values.T, bias=True))
    np.testing.assert_allclose(lam, [10] * 15 + [370] * 5, rtol=1e-10)  # (100·20 − 10·15)/5


def test_inexact_moments_follow_the_law():
    n = 20_000
    values = load("gaussian", 3, n, mean=5, covariance=K).values
    assert not np.allclose(values.mean(axis=0), 5, atol=1e-6)
    # Var of a sample covariance is (K_ii K_jj + K_ij²)/n; 5 standard deviations, 9 entries: false
    # alarm below 1e-5.
    K_X = np.array(K)
    spread = np.sqrt((np.outer(np.diag(K_X), np.diag(K_X)) + K_X**2) / n)
    assert (np.abs(np.cov(values.T, bias=True) - K_X) < 5 * spread).all()
    assert (np.abs(values.mean(axis=0) - 5) < 5 * np.sqrt(np.diag(K_X) / n)).all()


def test_haar():
    N, draws = 4, 4000
    rng = np.random.default_rng(11)
    V = np.array([gaussian.haar(N, rng) for _ in range(draws)])
    np.testing.assert_allclose(
        V @ V.transpose(0, 2, 1), np.broadcast_to(np.eye(N), V.shape), atol=1e-12
    )
    # Each entry v of a Haar matrix has (v + 1)/2 ~ Beta((N−1)/2, (N−1)/2): without the sign
    # correction it has not. 16 tests at 1e-5: false alarm below 2e-4, and the seed is fixed.
    law = stats.beta((N - 1) / 2, (N - 1) / 2)
    assert (
        min(stats.kstest((V[:, i, j] + 1) / 2, law.cdf).pvalue for i in range(N) for j in range(N))
        > 1e-5
    )
    assert abs((np.linalg.det(V) > 0).mean() - 0.5) < 5 * 0.5 / np.sqrt(draws)


@pytest.mark.parametrize(("parameters", "message"), [
    ({}, "needs either covariance or spectrum"),
    ({"covariance": [[1, 2], [2, 1]]}, "covariance must be positive semi-definite, as a covariance is"),
    ({"covariance": [[1, 2], [0, 1]]}, "covariance must be finite and symmetric, as a covariance is: see the entries (1, 2) and (2, 1)"),
    ({"covariance": [[1, 2]]}, "covariance must be a square matrix of numbers, every row as long as the first"),
    ({"spectrum": [1, 2], "mean": [1]}, "mean has length 1; there are 2 attributes"),
    ({"spectrum": {"large": 4, "count": 3, "small": 1, "attributes": 2}}, "count (3) must not be more than attributes"),
    ({"spectrum": {"count": 1, "small": 1, "attributes": 2}}, "give either large or mean-variance"),
    (
        {"spectrum": {"mean-variance": 1, "count": 1, "small": 4, "attributes": 3}},
        "mean-variance (1) must be more than the small eigenvalues alone make",
    ),
    ({"spectrum": [1, -2]}, "must be at least 0; got -2"),
    ({"covariance": [[float("nan")]]}, "must be a finite number; got nan"),
])  # fmt: skip
def test_impossible_laws(parameters, message):
    assert message in refusal("gaussian", **parameters)


def test_every_shape_of_components_is_drawn_from_the_law_that_is_stated():
    check_source(Components, {"shapes": list(SHAPES), "ratio": 1.2, "mean": 3.0})
    check_source(Intervals, {"intervals": [[-3.0, -1.0], [0.0, 0.5], [7.0, 7.2]]})
    for shape in SHAPES.values():
        assert shape.cdf(np.array([shape.low, shape.high])) == pytest.approx([0.0, 1.0], abs=1e-11)

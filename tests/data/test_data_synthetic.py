"""Synthetic sources: moments exactly as asked, shapes as documented, eigenvectors uniform."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auditor.data.load import load_table
from auditor.data.request import DataUse
from auditor.data.source import Outline, outlined_table
from auditor.data.sources import census_like, gaussian
from auditor.data.sources.components import SHAPES, Components, Intervals
from auditor.data.table import Table
from auditor.errors import DataError, PluginError
from auditor.testing import ContractError, check_source


def load(source: str, seed: int = 0, rows: int | None = None, **parameters: object) -> Table:
    return load_table(source, rows=rows, parameters=parameters, rng=np.random.default_rng(seed))


def refusal(source: str, **request: object) -> str:
    with pytest.raises(DataError) as caught:
        load(source, **request)  # type: ignore[arg-type]
    return str(caught.value)


# -- census-like
# -------------------------------------------------------------------------------------------------------


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


def test_its_records_are_made_when_one_is_asked_for():
    whole, made = (
        load_table("census-like", columns=["income"], rows=50, rng=np.random.default_rng(0)),
        [],
    )
    table = outlined_table(
        DataUse("census-like", columns=("income",), rows=50), lambda: made.append(whole) or whole
    )
    assert (table.attributes, table.rows, table.width, table.streamed) == (
        ("income",),
        50,
        1,
        False,
    )
    for known, found in zip(table.moments(), whole.moments(), strict=True):
        np.testing.assert_allclose(known, found, rtol=1e-12)
    assert not made
    assert table.fingerprint() == whole.fingerprint()
    np.testing.assert_array_equal(table.values, whole.values)
    np.testing.assert_array_equal(
        table.part(np.array([1, 3]), np.array([0])).values, whole.values[[1, 3]]
    )
    assert len(made) == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"rows": 2},
        {"rows": 10**12},
        {"columns": ("age", "wage")},
        {"parameters": {"correlation": 2.0}},
    ],
    ids=["rows", "room", "column", "parameter"],
)
def test_what_cannot_be_drawn_is_refused_without_being_drawn(asked):
    with pytest.raises(DataError) as ahead:
        outlined_table(DataUse("census-like", **asked), NotImplemented)
    with pytest.raises(DataError) as drawn:
        load_table("census-like", rng=np.random.default_rng(0), **asked)
    assert str(ahead.value) == str(drawn.value)


@pytest.mark.parametrize(
    "covariance", [np.eye(3), np.full((2, 2), np.nan)], ids=["shape", "finite"]
)
def test_an_outline_that_is_none_is_refused(covariance, monkeypatch):
    wrong = Outline(("age", "income"), 50, np.zeros(2), covariance)
    monkeypatch.setattr(census_like.CensusLike, "outline", lambda self, rows: wrong)
    with pytest.raises(PluginError, match="'census-like' broke its contract: `outline`"):
        outlined_table(DataUse("census-like", rows=50), NotImplemented)
    with pytest.raises(ContractError, match="an outline"):
        check_source(census_like.CensusLike)


@pytest.mark.parametrize(
    "changed",
    [{"bounds": {"age": (0.0, 120.0)}}, {"order": "age"}, {"first_batch": 9}, {"source": "iris"}],
)
def test_a_table_that_must_be_looked_at_has_no_outline(changed):
    assert outlined_table(DataUse(**{"source": "census-like"} | changed), NotImplemented) is None


def test_laws_have_the_moments_of_table_3():
    p = (np.arange(200_000) + 0.5) / 200_000
    for quantile, moments in (
        (census_like.age_quantile, (50.06, 303.03)),
        (census_like.income_quantile, (16.57, 219.92)),
    ):
        x = quantile(p)
        assert (x.mean(), x.var()) == pytest.approx(moments, rel=1e-3)


@pytest.mark.parametrize("rho", [-0.8, 0.17, 0.9])
@pytest.mark.slow_after_first
def test_copula_gives_the_correlation_before_anything_is_exact(rho):
    n = 200_000
    age, income = census_like.draw(n, rho, np.random.default_rng(5))
    # Five standard errors of a correlation, (1 − rho²)/√n for Gaussian data; three times that
    # allows for the skewness.
    assert np.corrcoef(age, income)[0, 1] == pytest.approx(rho, abs=15 * (1 - rho**2) / np.sqrt(n))


def test_copula_parameter_limits():
    assert census_like.copula_parameter(0.0) == pytest.approx(0, abs=1e-9)
    assert census_like.copula_parameter(0.99) == 1
    assert census_like.copula_parameter(-0.99) == -1


def test_two_rows_cannot_have_a_correlation():
    assert refusal("census-like", rows=2) == (
        "source 'census-like' needs at least 3 rows: two records always correlate fully"
    )


# -- gaussian
# ----------------------------------------------------------------------------------------------------------

K = [[4.0, 1.0, 0.0], [1.0, 2.0, -0.5], [0.0, -0.5, 1.0]]
SINGULAR = [[1.0, 1.0], [1.0, 1.0]]


def test_exact_mean_and_covariance():
    table = load("gaussian", rows=50, mean=[1, -2, 300], covariance=K, exact=True)
    assert table.attributes == ("x1", "x2", "x3")
    np.testing.assert_allclose(table.values.mean(axis=0), [1, -2, 300], atol=1e-12)
    np.testing.assert_allclose(np.cov(table.values.T, bias=True), K, atol=1e-12)


def test_exact_singular_covariance():
    values = load("gaussian", rows=5, covariance=SINGULAR, exact=True).values
    np.testing.assert_allclose(np.cov(values.T, bias=True), SINGULAR, atol=1e-12)
    np.testing.assert_allclose(values[:, 0], values[:, 1], atol=1e-12)


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


@pytest.mark.parametrize("law", [{"covariance": K}, {"spectrum": [3.0, 2.0, 1.0]}])
def test_more_rows_only_add(law):
    np.testing.assert_allclose(
        load("gaussian", rows=10, **law).values, load("gaussian", rows=30, **law).values[:10]
    )


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


def test_the_symmetric_root_does_not_depend_on_eigenvectors_chosen():
    lam, V = np.array([1.0, 1.0, 4.0]), gaussian.haar(3, np.random.default_rng(0))
    turn = np.eye(3)
    turn[:2, :2] = gaussian.haar(2, np.random.default_rng(1))  # within the double eigenvalue
    turn[2, 2] = -1
    for exact in (False, True):
        one, other = (
            gaussian.draw(20, lam, U, np.random.default_rng(2), exact=exact) for U in (V, V @ turn)
        )
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs covariance, or spectrum"),
        ({"covariance": K, "spectrum": [1.0]}, "takes covariance or spectrum, not both"),
        (
            {"covariance": [[1, 2], [2, 1]]},
            "covariance must be positive semidefinite; its eigenvalues go from -1 to 3",
        ),
        (
            {"covariance": [[1, 2], [0, 1]]},
            "covariance must be symmetric: entries (1, 2) and (2, 1) differ",
        ),
        ({"covariance": [[1, 2]]}, "covariance must be square: 1 row, but 2 entries in row 1"),
        ({"covariance": [[0, 0], [0, 0]]}, "covariance must not be all zeros"),
        ({"spectrum": [0, 0]}, "spectrum must have an eigenvalue above 0"),
        ({"spectrum": [1, 2], "mean": [1]}, "mean has length 1; there are 2 attributes"),
        (
            {"spectrum": {"large": 4, "count": 3, "small": 1, "attributes": 2}},
            "count (3) must not be more than attributes",
        ),
        (
            {"spectrum": {"count": 1, "small": 1, "attributes": 2}},
            "give either large or mean-variance",
        ),
        (
            {"spectrum": {"large": 4, "mean-variance": 2, "count": 1, "small": 1, "attributes": 2}},
            "give either large or mean-variance",
        ),
        (
            {"spectrum": {"mean-variance": 1, "count": 1, "small": 4, "attributes": 3}},
            "mean-variance (1) must be more than the small eigenvalues alone make",
        ),
        ({"spectrum": [1, -2]}, "Input should be greater than or equal to 0"),
        (
            {"spectrum": {"large": 4, "count": 1.5, "small": 1, "attributes": 2}},
            "Input should be a valid integer",
        ),
        ({"covariance": [[float("nan")]]}, "Input should be a finite number"),
        ({"mean": "zero", "spectrum": [1]}, "Input should be a valid number"),
    ],
)
def test_impossible_laws(parameters, message):
    assert message in refusal("gaussian", **parameters)


def test_exact_needs_more_rows_than_rank():
    assert refusal("gaussian", rows=5, spectrum=[1] * 5, exact=True) == (
        "source 'gaussian': exact moments of rank 5 need at least 6 rows; got 5"
    )
    assert load("gaussian", rows=6, spectrum=[1] * 5, exact=True).rows == 6


def test_an_attribute_without_variance_is_constant():
    assert refusal("gaussian", covariance=[[1, 0], [0, 0]]).startswith("column 'x2' is constant")


# -- laws
# --------------------------------------------------------------------------------------------------------------


def test_every_shape_of_components_is_drawn_from_the_law_that_is_stated():
    """Which ``check_source`` holds, of its ``trial`` alone; two ranges of ``intervals`` of unlike lengths, too."""
    check_source(Components, {"shapes": list(SHAPES), "ratio": 1.2, "mean": 3.0})
    check_source(Intervals, {"intervals": [[-3.0, -1.0], [0.0, 0.5], [7.0, 7.2]]})
    for shape in SHAPES.values():
        assert shape.cdf(np.array([shape.low, shape.high])) == pytest.approx([0.0, 1.0], abs=1e-11)

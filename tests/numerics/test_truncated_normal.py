"""Truncated normal distributions."""

import numpy as np
import pytest
import scipy.stats

from auditor.numerics.truncated_normal import cut_normal, inside

INF = np.inf


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 2.0), (0.0, INF), (-INF, -3.0), (4.0, 5.0), (-0.01, 0.01), (-7.0, -6.5), (12.0, INF)],
)
@pytest.mark.parametrize("turned", [False, True])
def test_one_dimension_is_scipys(low, high, turned):
    low, high = (-high, -low) if turned else (low, high)
    mean, std = 0.3, 0.8
    expected = scipy.stats.truncnorm((low - mean) / std, (high - mean) / std, mean, std)
    log_mass, found, variance = cut_normal(np.array([mean]), np.array([std**2]), low, high)
    # 1 − Φ(a) by its own tail: SciPy's masses are differences, so they are taken from the side
    # where they are small
    norm = scipy.stats.norm(mean, std)
    assert np.exp(log_mass[0]) == pytest.approx(
        max(norm.cdf(high) - norm.cdf(low), norm.sf(low) - norm.sf(high)), rel=1e-9
    )
    assert found[0] == pytest.approx(expected.mean(), abs=1e-9)
    assert variance[0] == pytest.approx(expected.var(), rel=1e-4)


def by_quadrature(mean, C, low, high):
    ends = [
        (max(a, m - 8 * s), min(b, m + 8 * s))
        for a, b, m, s in zip(low, high, mean, np.sqrt(np.diag(C)), strict=True)
    ]
    (x, dx), (y, dy) = (
        (a + (b - a) * (np.arange(801) + 0.5) / 801, (b - a) / 801) for a, b in ends
    )
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    p = scipy.stats.multivariate_normal(mean, C).pdf(grid) * dx * dy
    centre = p @ grid / p.sum()
    return p.sum(), centre, (grid - centre).T @ ((grid - centre) * p[:, None]) / p.sum()


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.5])
@pytest.mark.parametrize(
    ("low", "high"),
    [((0.0, 0.0), (INF, INF)), ((-INF, 0.5), (-0.2, 2.0)), ((0.5, -1.0), (1.0, 1.0))],
)
def test_two_dimensions_are_near_the_integral(rho, low, high):
    mean, C = np.array([0.2, -0.1]), np.array([[1.0, 2 * rho], [2 * rho, 4.0]])
    mass, centre, K = by_quadrature(mean, C, low, high)
    found = inside(mean[None], C, np.array(low), np.array(high))
    exact = rho == 0.0
    assert np.exp(found.log_mass[0]) == pytest.approx(mass, rel=1e-5 if exact else 0.03)
    std = np.sqrt(np.diag(C))
    np.testing.assert_allclose(found.mean[0] / std, centre / std, atol=1e-5 if exact else 5e-3)
    np.testing.assert_allclose(
        found.covariance[0] / np.outer(std, std),
        K / np.outer(std, std),
        atol=2e-5 if exact else 0.035,
    )

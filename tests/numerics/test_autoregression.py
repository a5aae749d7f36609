"""Autoregressions."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import toeplitz

from auditor.numerics.autoregression import Autoregression, yule_walker

LAWS = [Autoregression((0.6,)), Autoregression((-0.5,)), Autoregression((0.5, 0.3, -0.2))]


def test_of_order_one_it_is_the_textbook_s():
    law = Autoregression((0.95,))
    np.testing.assert_allclose(law.autocorrelations(5), 0.95 ** np.arange(5))
    assert law.innovation_variance == pytest.approx(1 - 0.95**2)
    assert law.precision == pytest.approx((1 + 0.95**2) / (1 - 0.95**2))  # 19.5
    assert law.memory == pytest.approx(0.95)


@pytest.mark.parametrize("law", LAWS)
def test_autocorrelations_solve_the_yule_walker_equations_and_precision_is_that_of_the_inverse(law):
    r, phi = law.autocorrelations(60), law.coefficients
    for h in range(1, 60):
        assert r[h] == pytest.approx(
            sum(phi[j - 1] * r[abs(h - j)] for j in range(1, law.order + 1)), abs=1e-12
        )
    assert np.linalg.inv(toeplitz(r))[30, 30] == pytest.approx(law.precision)
    assert law.autocorrelations(2).shape == (2,)


@pytest.mark.parametrize("law", LAWS)
def test_continued_is_the_naive_recursion_and_innovations_undo_it(law):
    rng, p = np.random.default_rng(0), law.order
    first, e = rng.normal(size=(p, 2)), rng.normal(size=(20, 2))
    rows = np.concatenate([law.stationary(first), np.zeros((20, 2))])
    for t in range(p, len(rows)):
        before = sum(phi * rows[t - j] for j, phi in enumerate(law.coefficients, start=1))
        rows[t] = before + np.sqrt(law.innovation_variance) * e[t - p]
    np.testing.assert_allclose(law.continued(rows[:p], e), rows[p:], atol=1e-12)
    np.testing.assert_allclose(law.innovations(rows), np.concatenate([first, e]), atol=1e-10)


@pytest.mark.parametrize("law", LAWS)
def test_what_was_drawn_from_its_past_and_led_to_its_end_has_the_exact_law(law):
    p, b = law.order, 60
    # a column for each normal: of the past, of the rows, of the end
    normals = np.eye(p + b + p)
    past, end = law.stationary(normals[:p]), law.stationary(normals[p + b :])
    rows = law.continued(past, normals[p : p + b])
    law.lead(rows, end)
    np.testing.assert_array_equal(rows[-p:], end)
    both = np.concatenate([past, rows])
    np.testing.assert_allclose(both @ both.T, toeplitz(law.autocorrelations(p + b)), atol=1e-12)


@given(st.lists(st.floats(-0.9, 0.9), min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_yule_walker_finds_the_coefficients_that_made_the_autocorrelations(partial):
    phi = np.zeros(0)
    # partial autocorrelations within (-1, 1) give stationary coefficients (Levinson, Durbin)
    for k in partial:
        phi = np.append(phi - k * phi[::-1], k)
    found = yule_walker(Autoregression(tuple(phi)).autocorrelations(9), 10**9)
    np.testing.assert_allclose(found, phi[: len(found)], atol=1e-5)
    # insignificant correlations are left out
    assert np.abs(phi[len(found) :]).max(initial=0.0) < 1e-3


@pytest.mark.parametrize("phi", [(1.0,), (0.6, 0.5), (float("nan"),), (2.0,), (-1.5, -0.5)])
def test_what_does_not_fade_is_refused(phi):
    with pytest.raises(ValueError, match="stationary"):
        Autoregression(phi)

"""Errors from known attributes without any copy."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from auditor.audit.categorical.posterior_measures import Frame, error_without_copies
from auditor.audit.measures.privacy import errors_alone


def test_the_linear_error_is_the_residual_of_a_regression():
    rng = np.random.default_rng(3)
    X = np.exp(rng.standard_normal((500, 3))) @ rng.standard_normal((3, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X -= X.mean(axis=0)
    found = errors_alone(X.T @ X / len(X), [1, 2])
    fitted = X[:, [1, 2]] @ np.linalg.lstsq(X[:, [1, 2]], X, rcond=None)[0]
    np.testing.assert_allclose(
        found, ((X - fitted) ** 2).mean(axis=0), atol=1e-9 * X.var(axis=0).max()
    )
    assert (found[[1, 2]] == 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=50)
def test_more_known_attributes_never_leave_more(seed, known):
    A = np.random.default_rng(seed).standard_normal((5, 5))
    fewer, more = errors_alone(A @ A.T, range(known - 1)), errors_alone(A @ A.T, range(known))
    assert (more <= fewer + 1e-9 * np.diag(A @ A.T)).all()
    np.testing.assert_allclose(errors_alone(A @ A.T, []), np.diag(A @ A.T))


def test_the_error_of_categories_is_that_of_every_record_s_own_posterior():
    rng = np.random.default_rng(4)
    # cells (a, b) of 2 × 3 values, b the faster
    q, prior = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    known = np.repeat([0, 1], 3)
    error = 0.0
    for x in range(6):
        same = [z for z in range(6) if known[z] == known[x]]
        share = sum(q[z] for z in same)
        error += prior[x] * sum(((z == x) - q[z] / share) ** 2 for z in same)
    assert error_without_copies(prior, Frame(q, known=known)) == pytest.approx(error)

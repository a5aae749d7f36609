"""Noise-distribution reconstruction."""

import numpy as np
import pytest

import auditor
from tests.audited import as_audited

X = np.random.default_rng(2).normal(size=(30, 2)) * [1.0, 20.0] + [5.0, 100.0]


def test_one_copy_is_the_estimate():
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 2.0], seed=1)
    np.testing.assert_allclose(
        auditor.attack("ndr", release, coalition=[2]).values, release.copies[1]
    )


def test_error_of_one_copy_is_the_noise_s_variance():
    """``D = σ² Tr(K_0)/N``: 2·v for level 2 and variance v = 9."""
    release = auditor.perturb(X, scheme="correlated", levels=[2.0], seed=1, noise={"variance": 9.0})
    assert auditor.attack("ndr", release).theory == pytest.approx(18.0)


def test_fresh_copies_are_weighed_by_precision():
    """Levels 1 and 4: weights 4/5 and 1/5, noise multiple 4/5."""
    release = auditor.perturb(X, scheme="correlated", levels=[1.0, 4.0], seed=1)
    estimate = auditor.attack("ndr", release)
    np.testing.assert_allclose(estimate.values, 0.8 * release.copies[0] + 0.2 * release.copies[1])
    assert estimate.theory == pytest.approx(0.8 * np.trace(np.cov(X.T, bias=True)) / 2)


def test_linearly_dependent_copies_give_the_table():
    release = auditor.perturb(X, scheme="linearly-dependent", levels=[1.0, 4.0], seed=1)
    np.testing.assert_allclose(auditor.attack("ndr", release).values, X, rtol=1e-10)


def test_no_knowledge_of_the_data_is_used():
    """``x̂`` moves with the copies."""
    here, there = (as_audited(x, "correlated", [1.0], 1) for x in (X, X + 1000.0))
    assert auditor.attack("ndr", there).distortion == pytest.approx(
        auditor.attack("ndr", here).distortion, rel=1e-9
    )

"""Attributes in very different units."""

import numpy as np
import pytest

import auditor
from auditor.schemes.base.noise_shapes import check_covariance

MIX = np.array([[1.0, 0.5, 0.3], [0.0, 1.0, 0.4], [0.0, 0.0, 0.8]])
SIZES = [np.array([1e-9, 1.0, 1e9])]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["corner-wave", "correlated", "linearly-dependent"])
def test_noise_protects_every_attribute_whatever_its_unit(scheme, size):
    """20,000 rows."""
    A = np.random.default_rng(0).normal(size=(20_000, 3)) @ MIX
    release = auditor.perturb(A * size, scheme, [0.5], seed=1)
    for knowledge in ("perfect", {"estimated": {"rows": 20_000}}):
        error = auditor.attack("llse", release, knowledge=knowledge).values / size - A
        np.testing.assert_allclose((error**2).mean(axis=0) / A.var(axis=0), 1 / 3, atol=0.017)


@pytest.mark.parametrize("K", [[[1e12, 0.0], [0.0, -100.0]], [[1e12, 2e6], [2e6, 1.0]]])
def test_a_large_attribute_hides_no_impossible_small_one(K):
    with pytest.raises(ValueError, match="positive semi-definite"):
        check_covariance(K)
    with pytest.raises(auditor.AuditorError, match="positive semidefinite"):
        auditor.run({
            "data": {"source": "gaussian", "covariance": K}, "schemes": [{"name": "correlated", "levels": [1]}], "attacks": ["ndr"],
        })  # fmt: skip

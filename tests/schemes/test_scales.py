"""Attributes in units far apart: what is drawn and rebuilt is the same as in units of their own, whatever K_0's eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.numerics.linear_algebra import clip_to_psd
from auditor.schemes.base.noise_law import psd_root
from auditor.schemes.base.noise_shapes import check_covariance

MIX = np.array([[1.0, 0.5, 0.3], [0.0, 1.0, 0.4], [0.0, 0.0, 0.8]])
SIZES = [np.array([1e-6, 1e-6, 1e6]), np.array([1e-9, 1.0, 1e9]), np.array([1.0, 1e7, 1.0])]


@pytest.mark.parametrize("size", SIZES)
def test_roots_are_exact_in_every_unit(size):
    C = MIX.T @ MIX
    K = C * np.outer(size, size)
    R = psd_root(K)
    np.testing.assert_allclose(R @ R.T / np.outer(size, size), C, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["corner-wave", "correlated", "linearly-dependent"])
def test_noise_protects_every_attribute_whatever_its_unit(scheme, size):
    """20,000 rows: a share of 1/3 is known to 0.33 %, so 5 standard errors are 0.017."""
    A = np.random.default_rng(0).normal(size=(20_000, 3)) @ MIX
    release = auditor.perturb(A * size, scheme, [0.5], seed=1)
    for knowledge in ("perfect", {"estimated": {"rows": 20_000}}):
        error = auditor.attack("llse", release, knowledge=knowledge).values / size - A
        np.testing.assert_allclose((error**2).mean(axis=0) / A.var(axis=0), 1 / 3, atol=0.017)


def test_a_small_attribute_is_clipped_in_its_own_unit():
    size = np.array([1e-6, 1e6])
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    clipped = clip_to_psd(K * np.outer(size, size), np.outer(size, size) * np.eye(2))
    np.testing.assert_allclose(clipped / np.outer(size, size), K, atol=1e-12)


@pytest.mark.parametrize("K", [[[1e12, 0.0], [0.0, -100.0]], [[1e12, 2e6], [2e6, 1.0]]])
def test_a_large_attribute_hides_no_impossible_small_one(K):
    with pytest.raises(ValueError, match="positive semi-definite"):
        check_covariance(K)
    with pytest.raises(auditor.AuditorError, match="positive semidefinite"):
        auditor.run({
            "data": {"source": "gaussian", "covariance": K}, "schemes": [{"name": "correlated", "levels": [1]}], "attacks": ["ndr"],
        })  # fmt: skip

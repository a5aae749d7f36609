"""Rotation, random projection and rotation with noise."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from auditor import registry
from auditor.data.microdata import as_table
from auditor.numerics.linear_algebra import haar
from auditor.runs.perturb import perturb
from auditor.schemes.base.scheme import Key, table_moments

X = (
    np.random.default_rng(0).standard_normal((300, 5))
    @ np.random.default_rng(1).standard_normal((5, 5))
    + 4
)


def transforms(name, copies=1, **parameters):
    scheme = registry.get("scheme", name)(**parameters)
    return scheme.transforms(copies, table_moments(as_table(X)), Key(7, name))


def test_haar_is_uniform():
    rng = np.random.default_rng(4)
    draws = [haar(3, rng) for _ in range(4000)]
    assert kstest([M[2, 0] for M in draws], "uniform", (-1, 2)).pvalue > 1e-4
    assert abs(np.mean([np.linalg.det(M) > 0 for M in draws]) - 0.5) < norm.isf(
        5e-5
    ) * 0.5 / np.sqrt(4000)


def test_a_rotation_keeps_lengths_and_distances():
    Y = perturb(X, "rotation", [0], seed=1).copies[0]
    np.testing.assert_allclose(np.linalg.norm(Y, axis=1), np.linalg.norm(X, axis=1))
    moved = perturb(X, "rotation", [0], seed=1, translation=True).copies[0]
    np.testing.assert_allclose(
        np.linalg.norm(moved[1:] - moved[:-1], axis=1), np.linalg.norm(X[1:] - X[:-1], axis=1)
    )
    assert not np.allclose(np.linalg.norm(moved, axis=1), np.linalg.norm(X, axis=1))


@pytest.mark.parametrize("noise", ["fresh", "corner-wave"])
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_rotation_noise_undone_is_the_additive_release(noise, rotations):
    levels = [0.3, 0.1, 0.6]
    release = perturb(X, "rotation-noise", levels, seed=9, noise=noise, rotations=rotations)
    table = as_table(X)
    transformed = release.scheme.transforms(
        3, table_moments(table), Key(release.matrices, "rotation-noise")
    )
    Z = np.hstack([t.undo(y) - X for t, y in zip(transformed, release.copies, strict=True)])
    scale = np.trace(table_moments(table).covariance) / 5
    Sigma = np.diag(levels) if noise == "fresh" else np.minimum.outer(levels, levels)
    K = Z.T @ Z / 300
    # Entries of a covariance of 300 draws: 225 entries, 5 standard errors.
    np.testing.assert_allclose(
        K, np.kron(Sigma, np.eye(5)) * scale, atol=5 * scale * 0.6 * np.sqrt(2 / 300)
    )
    assert (len({id(t) for t in transformed}) == 1) == (rotations == "shared")


@pytest.mark.parametrize("seeds", [(9, 9), (9, 10), (None, None)], ids=str)
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_nested_copies_can_be_added_later(seeds, rotations):
    release = perturb(
        X, "rotation-noise", [0.1, 0.9], seed=seeds[0], noise="corner-wave", rotations=rotations
    ).extend([0.5], seed=seeds[1])
    moments = table_moments(as_table(X))
    transformed = release.scheme.transforms(3, moments, Key(release.matrices, "rotation-noise"))
    Z = [(t.undo(y) - X).ravel() for t, y in zip(transformed, release.copies, strict=True)]
    found = np.cov(np.array(Z), bias=True) / (np.trace(moments.covariance) / 5)
    levels = [0.1, 0.9, 0.5]
    # 1,500 values: five standard errors of a covariance, at most 0.9·sqrt(2/1500)
    np.testing.assert_allclose(
        found, np.minimum.outer(levels, levels), atol=5 * 0.9 * np.sqrt(2 / 1500)
    )

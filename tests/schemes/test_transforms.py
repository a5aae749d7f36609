"""rotation, random-projection and rotation-noise: their matrices' law, what they keep, and their copies' streams."""

import numpy as np
import pytest
from scipy.fft import dct
from scipy.stats import kstest, norm

from auditor import registry
from auditor.data.microdata import as_table
from auditor.errors import AuditorError
from auditor.runs.estimate import attack
from auditor.runs.perturb import Release, perturb
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.base.transform import haar

X = (
    np.random.default_rng(0).standard_normal((300, 5))
    @ np.random.default_rng(1).standard_normal((5, 5))
    + 4
)


def transforms(name, copies=1, **parameters):
    scheme = registry.get("scheme", name)(**parameters)
    return scheme.transforms(copies, table_moments(as_table(X)), Key(7, name))


def test_haar_is_uniform():
    """A corner of a 3×3 Haar matrix is uniform on [−1, 1] (Archimedes), half of the determinants are negative; 1 in 10,000 each."""
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


def test_copies_have_a_matrix_each_and_extending_leaves_the_first_alone():
    release = perturb(X, "rotation", [0, 0], seed=1)
    assert not np.allclose(*release.copies)
    more = release.extend([0], seed=2)
    assert more.copies[0] is release.copies[0]
    assert len(more.copies) == 3


def test_projection_entries_have_the_variance_asked_for():
    """10,000 entries; two-sided 1 in 10,000."""
    M = transforms("random-projection", copies=400, dimensions=5, variance=2.0)
    entries = np.concatenate([one.matrix.ravel() for one in M])
    assert abs(np.mean(entries**2) / 2 - 1) < norm.isf(5e-5) * np.sqrt(2 / entries.size)


def test_the_cosine_transform_keeps_the_largest_coefficients():
    M = transforms("random-projection", dimensions=3, matrix="dct")[0].matrix
    coefficients = dct(X, norm="ortho", axis=1)
    kept = np.sort((coefficients**2).mean(axis=0))[::-1][:3]
    np.testing.assert_allclose(np.sort(((X @ M.T) ** 2).mean(axis=0))[::-1], kept)
    with pytest.raises(AuditorError, match="5 coefficients"):
        transforms("random-projection", dimensions=6, matrix="dct")


@pytest.mark.parametrize("noise", ["fresh", "corner-wave"])
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_rotation_noise_undone_is_the_additive_release(noise, rotations):
    levels = [0.3, 0.1, 0.6]
    release = perturb(X, "rotation-noise", levels, seed=9, noise=noise, rotations=rotations)
    table = as_table(X)
    transformed = release.scheme.transforms(
        3, table_moments(table), Key(release.state, "rotation-noise")
    )
    Z = np.hstack([t.undo(y) - X for t, y in zip(transformed, release.copies, strict=True)])
    scale = np.trace(table_moments(table).covariance) / 5
    Sigma = np.diag(levels) if noise == "fresh" else np.minimum.outer(levels, levels)
    K = Z.T @ Z / 300
    # Entries of a covariance of 300 draws: 5 standard errors, 225 of them.
    np.testing.assert_allclose(
        K, np.kron(Sigma, np.eye(5)) * scale, atol=5 * scale * 0.6 * np.sqrt(2 / 300)
    )
    assert (len({id(t) for t in transformed}) == 1) == (rotations == "shared")


@pytest.mark.parametrize("seeds", [(9, 9), (9, 10), (None, None)], ids=str)
@pytest.mark.parametrize("rotations", ["fresh", "shared"])
def test_nested_copies_can_be_added_later(seeds, rotations):
    """Between the two copies that are out, whatever the extension's own noise is drawn from: their matrices are the release's.

    With other matrices than theirs the old copies would be turned back into something else, and the
    new one be a look of its own at ``X``."""
    release = perturb(
        X, "rotation-noise", [0.1, 0.9], seed=seeds[0], noise="corner-wave", rotations=rotations
    ).extend([0.5], seed=seeds[1])
    moments = table_moments(as_table(X))
    transformed = release.scheme.transforms(3, moments, Key(release.state, "rotation-noise"))
    Z = [(t.undo(y) - X).ravel() for t, y in zip(transformed, release.copies, strict=True)]
    found = np.cov(np.array(Z), bias=True) / (np.trace(moments.covariance) / 5)
    levels = [0.1, 0.9, 0.5]
    # 1,500 values: five standard errors of a covariance, at most 0.9·sqrt(2/1500)
    np.testing.assert_allclose(
        found, np.minimum.outer(levels, levels), atol=5 * 0.9 * np.sqrt(2 / 1500)
    )


def test_an_extension_of_turned_copies_from_elsewhere_needs_their_matrices():
    release = perturb(X, "rotation-noise", [0.1, 0.9], noise="corner-wave")
    with pytest.raises(AuditorError, match="the matrices of copies made elsewhere are not known"):
        Release(X, release.copies, release.levels, release.scheme).extend([0.5])


def test_regression_learns_a_rotation_exactly_and_a_noisy_one_up_to_its_noise():
    exact = attack(
        "known-io-regression",
        perturb(X, "rotation", [0], seed=1),
        knowledge={"known-records": 20},
        coalition=[1],
    )
    noisy = attack(
        "known-io-regression",
        perturb(X, "rotation-noise", [0.1], seed=1),
        knowledge={"known-records": 100},
        coalition=[1],
    )
    assert exact.normalized_error < 1e-12
    assert 0.01 < noisy.normalized_error < 0.3

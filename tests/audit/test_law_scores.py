"""Scores are uniform and independent if the law is true, and give the noise back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from auditor import registry
from auditor.audit.law_tests.chosen_rows import Rows, grids, rows_of, runs
from auditor.audit.law_tests.numeric import null_combinations
from auditor.audit.law_tests.scores import increment_scores, increments, release_scores, whitening
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, psd_root
from tests.audit.law_faults import HONEST, drawn, table

NESTED = np.array([[1.0, 0.5, 0.5], [0.5, 0.5, 0.5], [0.5, 0.5, 2.0]])
K_0 = np.array([[4.0, 0.6e-6], [0.6e-6, 1e-12]])  # in units a million times apart


def scored(law, noise, grain=1e-12):
    n, M, N = noise.shape
    return release_scores(
        law,
        Rows(np.zeros((n, N)), noise, np.full((M, N), grain)),
        [f"x{j}" for j in range(N)],
        list(range(1, M + 1)),
    )


@pytest.mark.parametrize(
    ("scheme", "levels", "parameters"),
    [case for case in HONEST if case[0] not in ("rotation", "multiplicative-noise")],
)
def test_scores_of_honest_releases_are_uniform_and_independent(scheme, levels, parameters):
    """Kolmogorov's test and correlations of some columns: 1e-5 for each, of fixed seeds."""
    plugin = registry.get("scheme", scheme)(**parameters)
    X = table("skewed", 4000)
    release = drawn(np.rint(10 * X) if plugin.on_lattice else X, plugin, levels, 3)
    if scheme == "rotation-noise":
        release.copies = release.release.undo(release.copies)
    chosen = range(1, len(levels) + 1)
    rows = rows_of([(release.release.table.values, release.copies)], chosen, True)
    scores, _ = release_scores(release.law, rows, release.release.table.attributes, chosen)
    assert (
        len(scores.names) == len(scores.grain) == len(scores.groups) == scores.values.shape[1] > 0
    )
    assert min(stats.kstest(u, "uniform").pvalue for u in scores.values.T) > 1e-5
    r = np.corrcoef(ndtri(scores.values), rowvar=False) if scores.values.shape[1] > 1 else np.eye(1)
    assert np.abs(r - np.eye(len(r))).max() < 5.0 / np.sqrt(4000)


@pytest.mark.parametrize(
    "Sigma",
    [
        np.diag([0.5, 0.2, 1.0]),
        NESTED,
        np.array([[1.0, 0.3, 0.1], [0.3, 2.0, 0.4], [0.1, 0.4, 0.6]]),
    ],
)
def test_whitening_gives_the_identity_and_the_noise_back(Sigma):
    K = np.kron(Sigma, K_0)
    white = whitening(K, 2)
    np.testing.assert_allclose(white.W @ K @ white.W.T, np.eye(6), atol=1e-7)
    z = np.random.default_rng(1).normal(size=(5, 6)) @ psd_root(K).T
    np.testing.assert_allclose(z @ white.W.T @ np.linalg.inv(white.W).T, z, rtol=1e-6)


def test_a_copy_of_more_noise_is_scored_by_what_it_adds_in_the_coordinates_that_it_was_drawn_in():
    shape = np.array([[4.0, 1.0], [1.0, 2.0]])
    g = np.random.default_rng(2).normal(size=(2, 50, 2))
    z = np.cumsum(np.sqrt([0.3, 0.5])[:, None, None] * g, axis=0) @ psd_root(shape).T
    # the first copy is the noisier one
    law = KroneckerNoise(np.array([[0.8, 0.3], [0.3, 0.3]]), shape)
    scores, own = scored(law, np.stack([z[1], z[0]], axis=1))
    np.testing.assert_allclose(ndtri(scores.values), np.hstack([g[0], g[1]]), atol=1e-8)
    assert scores.names == [
        "noise of copy 2 ('x0')",
        "noise of copy 2 ('x1')",
        "new noise of copy 1 ('x0')",
        "new noise of copy 1 ('x1')",
    ]
    np.testing.assert_allclose(ndtri(own.values[:, 0]), z[1][:, 0] / np.sqrt(0.8 * 4.0), atol=1e-8)


def test_singular_laws_have_as_many_scores_as_their_rank():
    totals = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    for Sigma, rank in ((np.eye(2), 4), (np.ones((2, 2)), 2), (np.diag([0.0, 1.0]), 2)):
        law = KroneckerNoise(Sigma, totals)
        z = np.random.default_rng(3).normal(size=(2000, law.covariance.shape[0])) @ law.root.T
        scores, _ = scored(law, z.reshape(2000, 2, 3))
        assert scores.values.shape == (2000, rank)
        np.testing.assert_allclose(
            np.cov(ndtri(scores.values), rowvar=False), np.eye(rank), atol=0.15
        )
        dense, _ = scored(DenseNoise(law.covariance, 3), z.reshape(2000, 2, 3))
        np.testing.assert_allclose(dense.values, scores.values)
    null = null_combinations(totals)
    assert null.shape == (1, 3)
    assert null @ np.sqrt(np.diag(totals)) * 0.0 == pytest.approx(0.0)
    np.testing.assert_allclose(
        np.abs(null[0]) / np.abs(null[0]).max(), [1 / np.sqrt(2), 1 / np.sqrt(2), 1.0]
    )


def test_uniform_noise_is_scored_by_its_components():
    shape, u = np.array([[4.0, 1.0], [1.0, 2.0]]), np.random.default_rng(4).random((300, 2))
    z = np.sqrt(0.5) * (np.sqrt(12.0) * (u - 0.5)) @ psd_root(shape).T
    law = KroneckerNoise(np.array([[0.5]]), shape, distribution="uniform")
    np.testing.assert_allclose(scored(law, z[:, None])[0].values, u, atol=1e-9)
    singular = KroneckerNoise(np.array([[0.5]]), np.ones((2, 2)), distribution="uniform")
    assert scored(singular, z[:, None])[0].values.shape == (300, 0)


def test_laplace_and_lattice_increments_are_scored_within_their_atoms():
    laplace = KroneckerNoise(np.array([[2.0]]), np.eye(1), distribution="laplace", one_process=True)
    z = np.random.default_rng(5).laplace(0.0, 1.0, (200, 1, 1))
    u = scored(laplace, z)[0].values[:, 0]
    np.testing.assert_allclose(stats.laplace.ppf(u), z[:, 0, 0], rtol=1e-6)
    Sigma = np.array([[0.5, 0.5], [0.5, 2.0]])
    for distribution in ("geometric", "skellam", "laplace"):
        units = None if distribution == "laplace" else np.ones(1)
        law = KroneckerNoise(
            Sigma, np.eye(1), distribution=distribution, one_process=True, units=units
        )
        noise = np.random.default_rng(6).integers(-3, 4, (400, 2, 1)).astype(float)
        rows = Rows(np.zeros((400, 1)), noise, np.full((2, 1), 1e-12))
        for one in increments(law, True):
            d = noise[:, one.place, 0] - (noise[:, one.below, 0] if one.below >= 0 else 0.0)
            middle, jump = one.density.distribution(d)
            assert (np.abs(increment_scores(one, rows) - middle) <= jump / 2.0 + 1e-15).all()


@pytest.mark.parametrize("spacing", [1e-6, 0.01, 0.1, 0.4])
def test_gaussian_noise_on_a_grid_is_scored_as_if_it_were_not(spacing):
    """Rounding and spreading add h²/6 to the variance, and the law knows it: 1e-4 for either test, of 20,000 values."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(20_000, 1)) * 3.0
    y = np.round((x + rng.normal(size=x.shape)) / spacing) * spacing
    law = KroneckerNoise(np.eye(1), np.eye(1))
    scores, _ = release_scores(law, rows_of([(x, [y])], [1], True), ["x"], [1])
    assert stats.kstest(scores.values[:, 0], "uniform").pvalue > 1e-4
    assert abs(ndtri(scores.values).var() - 1.0) < 4.0 * np.sqrt(2.0 / 20_000)


def test_noise_that_a_grid_hides_has_no_scores():
    law = KroneckerNoise(np.eye(1), np.eye(1))
    assert scored(law, np.zeros((20, 1, 1)), grain=2.0)[0].values.shape == (20, 0)


# -- rows and grids
# --------------------------------------------------------------------------------------------------------


def test_the_grid_of_copies_is_found():
    values = np.random.default_rng(5).normal(size=(300, 5)) * 100
    values[:, 0] = np.round(values[:, 0])
    values[:, 1] = np.round(values[:, 1] / 0.05) * 0.05
    values[:, 2] = np.round(values[:, 2] * 1024) / 1024
    values[:, 3] = np.round(values[:, 3] * 3000) / 3000
    whole, twentieths, binary, parts, none = grids(values)
    assert (whole, binary) == (1.0, 1 / 1024)
    assert twentieths == pytest.approx(0.05)
    assert parts == pytest.approx(1 / 3000)
    assert none < 1e-12


def test_grids_that_are_hidden_by_rounding():
    """Off by the last bit of larger values, in single precision, thirds, significant digits; and continuous values have none."""
    values = np.random.default_rng(5).normal(size=(300, 6)) * 100
    values[:, 0] = np.round(values[:, 0], 2) + 1000.0 - 1000.0
    values[:, 1] = np.round(values[:, 1], 2).astype(np.float32)
    values[:, 2] = np.round(values[:, 2] * 3) / 3 * 1.1 / 1.1
    values[:, 3] = (
        np.round(values[:, 3] / (ten := 10.0 ** np.floor(np.log10(np.abs(values[:, 3])))), 4) * ten
    )
    values[:, 4] = values[:, 4].astype(np.float32)
    found = grids(values)
    assert found[:4] == pytest.approx([0.01, 0.01, 1 / 3, 0.01])
    assert 2.0**-24 * 64 < found[4] < 2.0**-23 * 512
    assert found[5] < 1e-12


@pytest.mark.parametrize(("length", "wanted"), [(10, 100), (1000, 128), (65_536, 4096), (200, 10)])
def test_rows_that_are_tested_include_the_first_and_the_last(length, wanted):
    chosen = runs(length, wanted)
    assert (chosen[0], chosen[-1]) == (0, length - 1)
    assert len(chosen) <= max(wanted, 128)
    assert np.unique(chosen).size == len(chosen)

"""Scores are uniform and independent under a true law."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from auditor import registry
from auditor.audit.law_tests.chosen_rows import Rows, rows_of
from auditor.audit.law_tests.scores import increment_scores, increments, release_scores
from auditor.schemes.base.noise_law import KroneckerNoise
from tests.audit.law_faults import HONEST, drawn, table


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
    plugin = registry.get("scheme", scheme)(**parameters)
    X = table("skewed", 4000)
    release = drawn(np.rint(10 * X) if plugin.on_lattice else X, plugin, levels, 3)
    if scheme == "rotation-noise":
        release.copies = release.release.undo(release.copies)
    chosen = range(1, len(levels) + 1)
    rows = rows_of([(release.release.table.values, release.copies)], chosen, True)
    scores, *_ = release_scores(release.law, rows, release.release.table.attributes, chosen)
    assert (
        len(scores.names) == len(scores.grain) == len(scores.groups) == scores.values.shape[1] > 0
    )
    assert min(stats.kstest(u, "uniform").pvalue for u in scores.values.T) > 1e-5
    r = np.corrcoef(ndtri(scores.values), rowvar=False) if scores.values.shape[1] > 1 else np.eye(1)
    assert np.abs(r - np.eye(len(r))).max() < 5.0 / np.sqrt(4000)


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

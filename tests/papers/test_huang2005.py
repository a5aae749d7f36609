"""Statements of Huang et al. (2005)."""

import math
from functools import lru_cache

import numpy as np
import pytest

import auditor
from auditor.adversary.view import Histogram, estimated_covariance
from auditor.audit.attempts import linear as attempts
from auditor.base import AuditorError
from auditor.registry import get
from auditor.runs import result_parts
from auditor.schemes.base.noise_density import (
    NoiseDensity,
    correlation_dissimilarity,
    dissimilar_spectrum,
)
from auditor.schemes.base.scheme import table_moments
from auditor_attacks._channel import Combined, Overlap, Product
from auditor_attacks.attribute_posterior import histogram_mean, histogram_mode
from tests.audited import cells
from tests.loading import load_table

SWEPT = {
    1: "data.spectrum.attributes", 2: "data.spectrum.count", 3: "data.spectrum.small",
    4: "schemes[0].noise.dissimilar",
}  # fmt: skip
ROWS, VARIANCE = 1000, 25.0
EXPERIMENTS = [pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 3, 4)]


@lru_cache(maxsize=4)
def run(experiment):
    asked = {"replicates": 1, "expect": [], "attacks": ["udr", "pca-filter", "bayes-estimate"]}
    return without_redraws(f"huang2005-exp{experiment}-exact", asked)


def without_redraws(name, overrides):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "REDRAWS", 2)  # the fewest that have a spread
        patch.setattr(
            result_parts, "remedy_of", lambda *_: None
        )  # two fifths of the remaining time
        return auditor.run(name, overrides=overrides)


def rmse(experiment, attack):
    """Figures by swept value."""
    found = cells(run(experiment), metric="rmse", attribute="*", attack=attack)
    return {r.sweep[SWEPT[experiment]]: r for r in found}


def eigenvalues(experiment, x):
    """ERRATA."""
    N = int(x) if experiment == 1 else 100
    p = {1: 5, 2: int(x), 3: 20, 4: 50}[experiment]
    small = x if experiment == 3 else 10.0
    large = (100.0 * N - small * (N - p)) / p if experiment in (1, 2) else 400.0
    return np.r_[np.full(p, large), np.full(N - p, small)]


def noise_eigenvalues(experiment, x):
    lam = eigenvalues(experiment, x)
    if experiment < 4:
        return np.full(len(lam), VARIANCE)
    data = lam / lam.mean()
    return VARIANCE * (
        (1 - 2 * x) * data + 2 * x if x <= 0.5 else (2 * x - 1) * data[::-1] + (2 - 2 * x)
    )


def principal(lam):
    """Footnote 1: the largest gap, ERRATA's gap to 0 included."""
    return int(np.argmax(lam - np.r_[lam[1:], 0.0])) + 1


def pca_terms(lam, r):
    p, m = principal(lam), len(lam)
    S, A = np.r_[r[:p], np.zeros(m - p)], np.r_[np.zeros(p), lam[p:]]
    return float((A + S).sum() / m), float((2 * S @ S + 4 * S @ A) / ROWS / m**2)


def bayes_terms(lam, r):
    """Σ λσ²/(λ + σ²) over the directions; and Monte Carlo variance."""
    m, g = len(lam), lam / (lam + r)
    S, A = g**2 * r, (1 - g) ** 2 * lam
    return float((lam * r / (lam + r)).sum() / m), float((2 * S @ S + 4 * S @ A) / ROWS / m**2)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(
    ("attack", "terms"), [("pca-filter", pca_terms), ("bayes-estimate", bayes_terms)]
)
def test_plotted_points_are_the_closed_form_where_covariances_are_known(experiment, attack, terms):
    points = rmse(experiment, attack)
    assert len(points) >= 7
    for x, found in points.items():
        expected, variance = terms(eigenvalues(experiment, x), noise_eigenvalues(experiment, x))
        assert found.theory == pytest.approx(math.sqrt(expected), rel=1e-6)
        # 64 points in all; 4.5 standard errors each give a false alarm in two thousand
        assert abs(found.value**2 - expected) < 4.5 * math.sqrt(variance)


@pytest.mark.parametrize("experiment", EXPERIMENTS[:3])
def test_udr_is_its_closed_form_too(experiment):
    # λ_jj vary with the eigenvectors: E is Jensen-bounded by the value at their mean, and close to
    # it
    for x, found in rmse(experiment, "udr").items():
        mean = eigenvalues(experiment, x).mean()
        bound = math.sqrt(mean * VARIANCE / (mean + VARIANCE))
        assert 0.93 * bound < found.theory <= bound * (1 + 1e-9)


# Section 7.1: the estimated curves, against a transcription of the procedure


def one_data_set(experiment, x, rng):
    lam, r = eigenvalues(experiment, x), noise_eigenvalues(experiment, x)
    n, m = ROWS, len(lam)
    Q = np.linalg.qr(rng.standard_normal((m, m)))[0]  # Gram-Schmidt
    C, Sigma_r = Q @ np.diag(lam) @ Q.T, Q @ np.diag(r) @ Q.T
    X = rng.standard_normal((n, m)) @ np.linalg.cholesky(C).T  # mvnrnd
    Y = X + rng.standard_normal((n, m)) @ np.linalg.cholesky(Sigma_r).T
    mu = Y.mean(axis=0)
    C_Y = (Y - mu).T @ (Y - mu) / n

    def error(X_hat):
        return math.sqrt(np.mean((X_hat - X) ** 2))

    # UDR, equation 4, for normal densities of one attribute each
    variance = np.maximum(np.diag(C_Y) - np.diag(Sigma_r), 0.0)
    udr = mu + (Y - mu) * variance / (variance + np.diag(Sigma_r))
    # SF (Kargupta et al.): eigenvalues that white noise of this variance does not have
    values, V = np.linalg.eigh(C_Y)
    kept = V[:, values > np.trace(Sigma_r) / m * (1 + math.sqrt(m / n)) ** 2]
    sf = mu + (Y - mu) @ kept @ kept.T
    # PCA-DR, section 5.2.2 with Theorem 8.2's covariance, and footnote 1's number of components
    values, V = np.linalg.eigh(C_Y - Sigma_r)
    values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
    kept = V[:, : principal(values)]
    pca = mu + (Y - mu) @ kept @ kept.T
    # BE-DR, equation 13, in the form that allows a singular estimate
    Sigma_x = V @ np.diag(values) @ V.T
    be = mu + (Y - mu) @ np.linalg.inv(Sigma_x + Sigma_r) @ Sigma_x
    return {
        "udr": error(udr), "spectral-filter": error(sf), "pca-filter": error(pca),
        "bayes-estimate": error(be),
    }  # fmt: skip


POINTS = {1: (10, 100), 2: (2, 100), 3: (1, 50), 4: (0.0, 1.0)}
DATA_SETS, SEEDS = 20, 3


def compared(experiment, points):
    asked = {"replicates": 1, "expect": [], "sweep": {SWEPT[experiment]: list(points)}}
    runs = [
        without_redraws(f"huang2005-exp{experiment}", {**asked, "seed": seed})
        for seed in range(1, SEEDS + 1)
    ]
    t = {}
    for x in points:
        rng = np.random.default_rng(2005)
        paper = [one_data_set(experiment, x, rng) for _ in range(DATA_SETS)]
        for attack in paper[0]:
            theirs = np.array([errors[attack] for errors in paper])
            ours = np.array([
                r.value for result in runs for r in cells(result, metric="rmse", attribute="*", attack=attack)
                if r.sweep[SWEPT[experiment]] == x
            ])  # fmt: skip
            assert len(ours) == SEEDS
            squares = ((theirs - theirs.mean()) ** 2).sum() + ((ours - ours.mean()) ** 2).sum()
            error = math.sqrt(squares / (DATA_SETS + SEEDS - 2) * (1 / DATA_SETS + 1 / SEEDS))
            t[x, attack] = float(ours.mean() - theirs.mean()) / error
    return t


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [1, 2, 3, 4])
def test_estimated_curves_are_those_of_the_papers_procedure(experiment):
    # 32 comparisons of 21 degrees of freedom: 5 standard errors give a false alarm in five hundred
    assert {
        place: t for place, t in compared(experiment, POINTS[experiment]).items() if abs(t) > 5.0
    } == {}


# Section 8: noise of any correlation dissimilarity


def naive_definition_8_1(C_X, C_R):
    m = len(C_X)
    return math.sqrt(
        sum((C_X[i, j] - C_R[i, j]) ** 2 for i in range(m) for j in range(m) if i != j) / (m**2 - m)
    )


def test_definition_8_1():
    assert correlation_dissimilarity(
        np.array([[1, 0.6], [0.6, 1]]), np.array([[1, -0.6], [-0.6, 1]])
    ) == pytest.approx(1.2)
    rng = np.random.default_rng(1)
    C_X, C_R = (np.corrcoef(rng.standard_normal((9, 5)).T) for _ in range(2))
    assert correlation_dissimilarity(C_X, C_R) == pytest.approx(
        naive_definition_8_1(C_X, C_R), rel=1e-12
    )
    assert correlation_dissimilarity(C_X, C_X) == 0.0


def noise_of_population(data, dissimilar=0.0):
    options = {key: data.pop(key) for key in ("columns", "standardize") if key in data}
    table = load_table(
        "gaussian", rows=60, parameters=data, rng=np.random.default_rng(5), **options
    )
    shape = {"dissimilar": dissimilar, "variance": 25.0, "of": "population"}
    scheme = get("scheme", "independent")
    return np.asarray(
        scheme(scheme.Parameters.model_validate({"noise": shape})).shape(table_moments(table))
    )


LAW = [[4.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 3.0]]


def test_who_states_no_law_is_told():
    X = np.random.default_rng(2).standard_normal((60, 3))
    with pytest.raises(AuditorError, match="needs a source that states the law of its records"):
        auditor.perturb(
            X, "independent", [1.0], noise={"dissimilar": 0.5, "variance": 1.0, "of": "population"},
            seed=4,
        )  # fmt: skip
    with pytest.raises(AuditorError, match="needs a source that states"):
        noise_of_population({"covariance": LAW, "standardize": True})


def test_spectrum_by_hand():
    # halfway from [6, 2] to [4, 4]
    np.testing.assert_allclose(dissimilar_spectrum(np.array([30.0, 10.0]), 0.25, 4.0), [5.0, 3.0])
    np.testing.assert_allclose(dissimilar_spectrum(np.array([30.0, 10.0]), 1.0, 4.0), [2.0, 6.0])


PRIOR = Histogram(np.array([-2.0, -1.0, 0.0, 3.0, 4.0]), np.array([0.5, 0.1, 0.1, 0.3]))
"""Lopsided, and far from normal: mean, mode and the copy itself are three different guesses."""

NOISES = {
    "gaussian": Combined(NoiseDensity("gaussian", 1.0), np.ones(1)),
    "uniform": Overlap(NoiseDensity("uniform", 1.0), np.full(1, np.sqrt(3.0))),
    "laplace": Product((NoiseDensity("laplace", 1.0),), (0,)),
}


def mean_square_error(y, guesses, channel):
    # middles of cells; every edge of a bin is an edge of a cell
    x = np.linspace(-2.0, 4.0, 60_001)[1:] - 5e-5
    f = PRIOR.density[np.searchsorted(PRIOR.edges, x) - 1] * channel.noise.pdf(y - x)
    f /= f.sum()
    return np.array([(f * (x - z) ** 2).sum() for z in guesses])


@pytest.mark.parametrize("noise", NOISES)
def test_theorem_4_1_the_posterior_mean_has_the_least_mean_square_error(noise):
    channel = NOISES[noise]
    for y in (-2.3, -0.7, 0.4, 1.9, 3.6):
        mean = float(histogram_mean(PRIOR, channel, np.array([[y]]))[0])
        away = np.array([0.0, 0.05, -0.05, 0.5, -0.5, 2.0, -2.0])
        e = mean_square_error(y, mean + away, channel)
        assert e.argmin() == 0
        # the sum's cells are 1e-4 wide; a jump of f adds as much
        np.testing.assert_allclose(e[1:] - e[0], away[1:] ** 2, atol=3e-4)


def test_theorem_4_1_no_other_guess_from_the_copy_does_better_on_records():
    rng, n = np.random.default_rng(41), 40_000
    place = rng.choice(4, n, p=PRIOR.mass)
    x = PRIOR.edges[place] + rng.random(n) * np.diff(PRIOR.edges)[place]
    y = (x + rng.standard_normal(n))[:, None]
    mean = float(PRIOR.mass @ PRIOR.midpoints)
    variance = float(PRIOR.mass @ (PRIOR.midpoints**2 + np.diff(PRIOR.edges) ** 2 / 12)) - mean**2
    channel = NOISES["gaussian"]
    best = (histogram_mean(PRIOR, channel, y) - x) ** 2
    line = mean + variance / (variance + 1.0) * (y[:, 0] - mean)
    for other in (histogram_mode(PRIOR, channel, y), y[:, 0], np.full(n, mean), line):
        worse = (other - x) ** 2 - best
        assert worse.mean() > 5 * worse.std() / np.sqrt(n)


SIGMA_R = {
    "white": ({"variance": 25.0}, 25.0 * np.eye(3)),
    "coloured": ({"matrix": [[9, 2, 0], [2, 4, 1], [0, 1, 16]]}, None),
}


@pytest.mark.parametrize("noise", SIGMA_R)
def test_theorems_5_1_and_8_2_the_copys_covariance_is_the_datas_and_the_noises(noise):
    """``Cov(X_i + R_i, X_j + R_j) = Cov(X_i, X_j) + σ²[i = j]``."""
    n, (spec, Sigma_r) = 20_000, SIGMA_R[noise]
    Sigma_r = np.array(spec["matrix"], dtype=float) if Sigma_r is None else Sigma_r
    X = np.random.default_rng(51).standard_normal((n, 3)) @ np.array(
        [[5.0, 3.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 4.0]]
    )
    K_X = np.cov(X.T, ddof=0)
    options = {"noise": spec, "seed": 52}
    K_Y = np.cov(auditor.perturb(X, "independent", [1.0], **options).copies[0].T, ddof=0)
    k, r = np.diag(K_X), np.diag(Sigma_r)
    both = np.outer(k, r)
    spread = np.sqrt((both + both.T + 2 * K_X * Sigma_r + np.outer(r, r) + Sigma_r**2) / n)
    assert (np.abs(K_Y - K_X - Sigma_r) < 4.5 * spread).all()
    # «All we need to do is to subtract σ²»: the filters' estimate of the data's covariance
    assert (np.abs(estimated_covariance(K_Y, Sigma_r) - K_X) < 4.5 * spread).all()

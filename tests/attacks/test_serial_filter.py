"""The filter along the rows: Wiener filter and Kalman smoother."""

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d
from scipy.stats import binom

import auditor
from auditor.data.sources.built_in import autoregression
from auditor.numerics.linear_algebra import Pencil
from auditor_attacks import _spectra
from auditor_attacks.serial_filter import Filtered
from auditor_attacks.trend_smoother import smoothed


def filtered(mu, *parts, known=False):
    """A filter without lines under noise that is independent between rows."""
    lines = _spectra.Lines.none(len(mu), len(mu))
    return Filtered(mu, *parts, known, None, lines, np.stack([parts[-1]] * _spectra.FOLDS))


def series(rows, a, N=1, seed=0):
    return autoregression(np.random.default_rng(seed).normal(size=(rows, N)), a)


def attacked(X, scheme="independent", levels=(1.0,), coalition=(1,), name="serial-filter", seed=3):
    release = auditor.perturb(X, scheme, list(levels), seed=seed)
    return auditor.attack(name, release, coalition=list(coalition))


def smoother_error(a, v):
    ahead = 1.0
    for _ in range(2000):  # the Riccati equation, to its fixed point
        now = ahead * v / (ahead + v)
        ahead = a * a * now + 1.0 - a * a
    J = a * now / ahead
    return (now - J * J * ahead) / (1.0 - J * J)  # Rauch–Tung–Striebel: P = P_f + J² (P − P_p)


def spectrum(a, frequencies):
    return (1.0 - a * a) / (1.0 + a * a - 2.0 * a * np.cos(2.0 * np.pi * frequencies))


@pytest.mark.parametrize(("a", "v"), [(0.95, 1.0), (0.5, 0.3), (-0.8, 2.0)])
def test_with_the_true_spectrum_it_leaves_what_the_kalman_smoother_leaves(a, v):
    frequencies, nu = np.arange(4097) / 8192, np.array([v / (1.0 + v)])
    S_Y = ((spectrum(a, frequencies) + v) / (1.0 + v))[:, None, None]
    G = _spectra.wiener_gain(S_Y, np.tile(nu, (4097, 1)))[:, 0, 0].real
    S_X = spectrum(a, frequencies)
    left = _spectra.over_frequencies(((1 - G) ** 2 * S_X + G**2 * v)[:, None])[0]
    assert left == pytest.approx(smoother_error(a, v), rel=1e-6)
    assert left == pytest.approx(
        _spectra.over_frequencies((S_X * v / (S_X + v))[:, None])[0], rel=1e-9
    )


def test_rows_are_the_naive_sum_over_neighbours():
    rng = np.random.default_rng(5)
    mu, taps, copies = (np.array([1.0, -2.0]), rng.normal(size=(5, 2, 2)), [rng.normal(size=(9, 2)) for _ in range(2)])  # fmt: skip
    pencil = Pencil.of(np.array([[2.0, 0.3], [0.3, 1.0]]), np.eye(2))
    fitted = filtered(mu, pencil, np.array([0.25, 0.75]), np.ones(2), np.arange(2), taps)
    assert fitted.neighbours == 2
    c = (0.25 * copies[0] + 0.75 * copies[1] - mu) @ pencil.inverse.T
    mirrored = np.concatenate([c[1::-1], c, c[:-3:-1]])
    naive = [mu + pencil.basis @ sum(taps[h + 2] @ mirrored[t + 2 - h] for h in range(-2, 3)) for t in range(9)]  # fmt: skip
    np.testing.assert_allclose(fitted.rows(copies), naive, atol=1e-10)


def test_a_shuffled_series_has_lost_what_it_tells():
    X = series(4000, 0.95)
    mixed = np.random.default_rng(0).permutation(X)
    assert attacked(X).normalized_error < 0.2
    llse = attacked(mixed, name="llse").normalized_error
    assert attacked(mixed).normalized_error == pytest.approx(llse, rel=0.01)


def test_theory_is_what_the_same_filter_leaves_of_other_noise():
    rng, X = np.random.default_rng(10), series(2000, 0.9, N=2, seed=3)
    K_X, K_Z = np.cov(X.T, bias=True), np.array([[0.5, 0.2], [0.2, 1.0]])
    pencil, taps = Pencil.of(K_X, K_Z), 0.2 * rng.normal(size=(9, 2, 2))
    fitted = filtered(X.mean(axis=0), pencil, np.ones(1), pencil.share, np.arange(2), taps, known=True)  # fmt: skip
    left = [((fitted.rows([X + rng.multivariate_normal([0, 0], K_Z, 2000)]) - X) ** 2).sum() for _ in range(60)]  # fmt: skip
    theory = fitted.expected(X).sum()
    # of mirrored noise: 8 rows of 2,000
    assert abs(np.mean(left) - theory) < 4 * np.std(left) / np.sqrt(60) + 0.005 * theory
    assert (filtered(fitted.mu, pencil, np.ones(1), pencil.share, np.arange(2), taps).expected(X) is None)  # fmt: skip


@pytest.mark.parametrize("a", [0.5, 0.95])
def test_of_noise_that_follows_the_data_in_time_it_leaves_what_the_llse_leaves(a):
    X = series(4000, a, N=2) @ [[1.0, 0.5], [0.0, 1.0]]
    for serial, gains in (("none", True), ("data", False), ([a], False)):
        release = auditor.perturb(X, "corner-wave", [0.3, 1.0], seed=3, serial=serial)
        llse, filtered = (auditor.attack(name, release, coalition=[1, 2]) for name in ("llse", "serial-filter"))  # fmt: skip
        if gains:
            assert filtered.normalized_error < 0.95 * llse.normalized_error
        else:  # memory is not sure to help, and is not used
            np.testing.assert_allclose(filtered.values, llse.values, atol=1e-9)


def test_trends_are_found_under_strong_noise_and_in_no_unordered_rows():
    rng = np.random.default_rng(2**40)
    X = np.sort(rng.gamma(2.0, size=(800, 2)), axis=0)
    release = auditor.perturb(X, "corner-wave", [8.0], seed=2**40)
    found = auditor.attack("serial-filter", release).normalized_error
    y = release.copies[0]
    averages = [uniform_filter1d(y, w, axis=0, mode="nearest") for w in (41, 81, 161)]
    assert found < 1.3 * min(((each - X) ** 2).mean() / X.var() for each in averages)
    shuffled = [_spectra.has_trend(rng.permutation(X)) for _ in range(200)]  # a chance of 0.02 each
    assert _spectra.has_trend(X)
    assert sum(shuffled) <= binom.isf(1e-4, 200, _spectra.TREND_ALARM)


def test_seasons_of_any_shape_are_found_and_none_in_no_order_or_in_red_noise():
    """505 rows of p places leave their noise's share p/505."""
    rng = np.random.default_rng(2**40)
    for p in (60, 21):
        place = np.arange(505) % p
        X = np.column_stack([place / 6.0, rng.normal(size=p)[place]])
        assert {_spectra.season(X + rng.normal(size=X.shape), np.ones(2)) for _ in range(20)} == {p}
        assert attacked(X).normalized_error < 1.5 * p / 505
    for x in (rng.permutation(X), series(505, 0.95, N=2)):
        found = [_spectra.season(x + rng.normal(size=X.shape), np.ones(2)) > 0 for _ in range(200)]
        assert sum(found) <= binom.isf(1e-4, 200, _spectra.LINE_ALARM)


def naive_smoother(c, nu, kappas, shares):
    """Posterior means in the rows' own coordinates, averaged over spectra, of rows c of shape (r, n)."""
    n = c.shape[1]
    D = np.diff(np.eye(n), axis=0)
    values, Q = np.linalg.eigh(D.T @ D)  # 2 − 2 cos(πk/n), the first 0
    means, own, likelihoods = [], [], []
    for d in (1, 2):
        for kappa in kappas:
            along = (values[1:] + kappa) ** -d
            rows = (Q[:, 1:] * along * n / along.sum()) @ Q[:, 1:].T + np.ones((n, n)) / n
            for share in shares:
                K = (1.0 - nu) * (share * rows + (1.0 - share) * np.eye(n))
                S = np.linalg.inv(K + nu * np.eye(n))
                own.append(np.diag(K @ S))
                means.append(c @ K @ S)
                squares = np.einsum("at,ts,as->a", c, S, c)
                likelihoods.append(0.5 * (np.linalg.slogdet(S)[1] - squares))
    L = np.exp(np.array(likelihoods) - np.max(likelihoods, axis=0))
    one_law, each = L.prod(axis=1), L / L.sum(axis=0)
    shared = one_law.mean() / (one_law.mean() + L.mean(axis=0).prod())
    weights = shared * (one_law / one_law.sum())[:, None] + (1.0 - shared) * each
    return np.einsum("ma,mat->at", weights, means), weights.T @ own


@pytest.mark.parametrize(("v", "n", "r"), [(20.0, 60, 1), (2.0, 31, 2)])
def test_smoothers_leave_what_posterior_means_of_random_walks_leave(v, n, r):
    c = np.random.default_rng(2**40).normal(size=(r, n)) / np.sqrt(1.0 + v)  # noise: the rougher
    c[0] += np.sqrt(v / (1.0 + v)) * np.linspace(-1, 1, n) * (r - 1)
    nu, kappas = v / (1.0 + v), (0.0, *(4.0**-j for j in range(n.bit_length())))
    for trend, *spectra in ((True, (0.0,), (1.0,)), (False, kappas, (1.0, 0.9, 0.7, 0.4, 0.0))):
        found, naive = smoothed(c, np.full(r, nu), trend), naive_smoother(c, nu, *spectra)
        np.testing.assert_allclose(found, naive, atol=1e-9)


def test_matern_spectra_find_what_few_rows_share_under_strong_noise():
    """Beside the error of the known process: 300 rows, 10 draws; in no order close to the LLSE's."""
    for a, v, most in ((0.9, 8.0, 1.25 * smoother_error(0.9, 8.0)), (0.0, 8.0, 1.1 * 8.0 / 9.0)):
        errors = [attacked(series(300, a, seed=2**40 + k), levels=(v,), name="matern-smoother", seed=2**40 + k).normalized_error for k in range(10)]  # fmt: skip
        assert np.mean(errors) < most


def test_an_assumed_trend_leaves_little_of_sorted_rows_under_noise_that_hides_it():
    X = np.sort(np.random.default_rng(2**40).gamma(2.0, size=(800, 1)), axis=0)
    for x, least, most in ((X, 0.0, 0.5), (np.random.default_rng(1).permutation(X), 0.9, 2.0)):
        found = [attacked(x, levels=(100.0,), name="trend-smoother", seed=2**40 + k).normalized_error for k in range(10)]  # fmt: skip
        assert least < np.mean(found) < most


def test_a_trend_is_used_only_where_it_lowers_the_risk():
    """Slow red noise is no trend; a wave of 20 periods needs more cosines than a line."""
    t = np.arange(3000) / 3000
    for x, v, most in (
        (series(3000, 0.95)[:, 0], 8.0, 1.4 * smoother_error(0.95, 8.0)),
        (t, 8.0, 8.0 * (1 + 8) / 3000),  # a line, and eight cosines that are not shrunk
        (np.cos(np.pi * 20 * t**2), 2.0, 2.0 * 90 / 3000),
    ):
        assert attacked(x[:, None], levels=(v,)).normalized_error < most

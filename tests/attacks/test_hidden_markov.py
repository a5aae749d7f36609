"""States of rows along the table: all paths, alternating groups and records in no order."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import multivariate_normal as normal

import auditor
from auditor.numerics.linear_algebra import clip_to_psd
from auditor_attacks._deconvolution import Mixture
from auditor_attacks.hidden_markov import Levels, States
from auditor_attacks.serial_posterior import by_row, expected, windows

COVARIANCES = np.array([np.diag([0.2, 0.1]), [[0.3, 0.1], [0.1, 0.4]]])
PRIOR = Mixture(np.full(2, 0.5), np.array([[-1.0, 0.0], [1.0, 0.5]]), COVARIANCES)
ALPHA, A = np.array([2.0, 1.0]) / 3.0, np.array([[0.8, 0.2], [0.4, 0.6]])


def test_means_and_moves_are_sums_over_all_paths():
    s, n = np.array([0.5, 0.2]), 6
    u = np.random.default_rng(0).normal(size=(n, 2))
    states, T = States(PRIOR, ALPHA, A), PRIOR.covariances + np.diag(s)
    q, moves, total = np.zeros((n, 2)), np.zeros((2, 2)), 0.0
    for path in product(range(2), repeat=n):
        chance = ALPHA[path[0]] * np.prod([A[a, b] for a, b in pairwise(path)])
        chance *= np.prod([normal.pdf(u[t], PRIOR.means[k], T[k]) for t, k in enumerate(path)])
        total += chance
        q[range(n), path] += chance
        np.add.at(moves, (path[:-1], path[1:]), chance)
    laws = zip(PRIOR.means, PRIOR.covariances, T, strict=True)
    means = [m + (u - m) @ np.linalg.solve(t, V) for m, V, t in laws]
    mean = np.einsum("nk,knr->nr", q / total, means)
    np.testing.assert_allclose(states.mean(u, s), mean, atol=1e-9)
    B, top = states.chances(u, s)
    P, *found = expected(A, ALPHA, windows(B, n))
    summed = q / total, moves / total, np.log(total) - top.sum()
    for ours, naive in zip((by_row(P), *found), summed, strict=True):
        np.testing.assert_allclose(ours, naive, atol=1e-9)


@pytest.mark.parametrize(("stay", "level"), [(0.98, 0.3), (0.05, 0.3), (0.05, 2.0)])
def test_groups_that_follow_or_alternate_leave_what_their_law_leaves(stay, level):
    """Groups 6 deviations apart in 400 rows, against the posterior under the true law."""
    errors, floors, linear = [], [], []
    for k in range(5):
        rng = np.random.default_rng(2**40 + k)
        group = np.cumsum(rng.random(400) > stay) % 2
        X = rng.normal(size=(400, 2)) + 6.0 * group[:, None]
        release = auditor.perturb(X, "corner-wave", [level], seed=2**40 + k)
        for name, into in (("hidden-markov", errors), ("llse", linear)):
            into.append(auditor.attack(name, release).normalized_error)
        values, Q = np.linalg.eigh(np.cov(X.T, bias=True))
        law = Mixture(np.full(2, 0.5), np.array([[0, 0], [6, 6]]) @ Q, np.array([np.eye(2)] * 2))
        A = stay * np.eye(2) + (1.0 - stay) * np.eye(2)[::-1]
        best = States(law, np.full(2, 0.5), A).mean(release.copies[0] @ Q, level * values)
        floors.append(((best - X @ Q) ** 2).sum() / ((X - X.mean(axis=0)) ** 2).sum())
    assert np.mean(floors) < np.mean(errors) < 1.2 * np.mean(floors) < 0.6 * np.mean(linear)


def test_levels_and_an_em_step_are_sums_over_all_segments():
    """Six rows, with 32 divisions into segments; a level has covariance B, a row about it T."""
    B, T, p, n = np.array([[0.5, 0.2], [0.2, 0.4]]), np.array([[0.6, -0.1], [-0.1, 0.8]]), 0.3, 6
    u, s = np.random.default_rng(2**40).normal(size=(n, 2)), np.array([0.2, 0.3])
    total = ends = 0.0
    theta, squares, rest = np.zeros((n, 2)), np.zeros((2, 2)), np.zeros((2, 2))
    for cuts in product([0, 1], repeat=n - 1):
        bounds = [0, *(np.flatnonzero(cuts) + 1), n]
        chance, means, square, left = 1.0, [], 0.0, 0.0
        for a, b in pairwise(bounds):
            m, V = b - a, np.kron(np.ones((b - a, b - a)), B) + np.kron(np.eye(b - a), T)
            chance *= p * (1.0 - p) ** (m - 1) * normal.pdf(u[a:b].ravel(), None, V)
            W = np.linalg.inv(np.linalg.inv(B) + m * np.linalg.inv(T))
            mean = W @ np.linalg.solve(T, u[a:b].sum(axis=0))
            square = square + m * (np.outer(mean, mean) + W)
            left = left + (u[a:b] - mean).T @ (u[a:b] - mean) + m * W
            means += [mean] * m
        total, ends = total + chance, ends + chance * (len(bounds) - 1)
        theta += chance * np.array(means)
        squares += chance * square
        rest += chance * left
    levels = Levels.of(B, T, p)
    found = levels.segments(u)
    np.testing.assert_allclose(found.levels @ levels.R.T, theta / total, atol=1e-9)
    assert found.log == pytest.approx(np.log(total) + n * np.log(2.0 * np.pi))
    B, T, data = squares / total / n, rest / total / n, np.diag(1.0 - s)
    w = np.mean(2 * np.diag(B) / (2 * np.diag(B) + np.diag(T)))
    rest = clip_to_psd(data - B)
    B, T = data - rest, np.diag(s) + clip_to_psd(w * (T - np.diag(s)) + (1 - w) * rest)
    following = found.fitted(levels, s)
    assert following.p == pytest.approx(min(ends / total / n, 0.5))
    np.testing.assert_allclose(following.R @ following.R.T, T, atol=1e-9)
    np.testing.assert_allclose(following.R * following.D @ following.R.T, B, atol=1e-9)


def test_levels_of_any_number_leave_little_more_than_by_their_law():
    """400 rows in about 20 segments, each with a new level; errors against the known law's."""
    errors, floors = [], []
    B, W, p = np.array([[2.0, -1.0], [-1.0, 1.0]]), np.array([[0.3, 0.2], [0.2, 0.4]]), 0.05
    for k in range(5):
        rng = np.random.default_rng(2**40 + k)
        place = np.cumsum(rng.random(400) < p)
        X = rng.multivariate_normal([0, 0], B, 400)[place] + rng.multivariate_normal([0, 0], W, 400)
        release = auditor.perturb(X, "corner-wave", [0.5], seed=2**40 + k)
        errors.append(auditor.attack("hidden-markov", release).normalized_error)
        K, y, mu = 0.5 * np.cov(X.T, bias=True), release.copies[0], X.mean(axis=0)
        levels = Levels.of(B, W + K, p)
        found = levels.segments(y - mu)
        best = y - (found.v - found.levels) @ levels.inverse @ K
        floors.append(((best - X) ** 2).sum() / ((X - mu) ** 2).sum())
    assert np.mean(floors) < np.mean(errors) < 1.2 * np.mean(floors)


def test_records_in_no_order_get_the_linear_estimate():
    rng = np.random.default_rng(2**40)
    tails = [rng.standard_t(1.5, size=(300, 2)) for _ in range(4)]
    for X in (rng.gamma(1.0, size=(600, 2)), *tails):
        release = auditor.perturb(X, "corner-wave", [0.3, 0.6], seed=2**40)
        for copies in ([1], [1, 2]):
            found = [auditor.attack(a, release, coalition=copies).values for a in ("hidden-markov", "llse")]  # fmt: skip
            np.testing.assert_allclose(*found, atol=1e-9 * X.std())


@pytest.mark.parametrize("rows", [99, 5_001])
def test_tables_too_small_or_large_are_refused(rows):
    X = np.random.default_rng(1).normal(size=(rows, 1))
    with pytest.raises(auditor.AuditorError, match="100 to 5,000 rows"):
        auditor.attack("hidden-markov", auditor.perturb(X, "corner-wave", [0.3], seed=2**40))

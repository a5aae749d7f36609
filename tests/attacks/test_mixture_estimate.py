"""Mixture estimate: extreme deconvolution (bovy2011)."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

import auditor
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks import _deconvolution
from auditor_attacks._channel import Overlap, Product
from auditor_attacks._deconvolution import Mixture, NoisyRows, Posterior, em_step, learn
from auditor_attacks._expectation_propagation import ROUNDS, Reweighted, RowsInAnyNoise, posterior
from auditor_attacks._lattice import Margins, OnLattices, densities, fitted_heaps, weights
from auditor_attacks.mixture_estimate import shortest_of_mixture
from tests.attacks.tables import table

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def covariance(rng, r):
    root = rng.normal(size=(r, r))
    return root @ root.T / r


def mixture(rng, K, r):
    return Mixture(rng.dirichlet(np.ones(K)), rng.normal(size=(K, r)), np.array([covariance(rng, r) for _ in range(K)]))  # fmt: skip


def drawn(prior, n, rng):
    which = rng.choice(prior.size, n, p=prior.weights)
    off = [rng.multivariate_normal(np.zeros(len(C)), C, n) for C in prior.covariances]
    return prior.means[which] + np.array(off)[which, np.arange(n)]


def test_hand_value_two_points():
    """X = ±1 with chance ½ each."""
    points = np.array([[1.0], [-1.0]])
    u = np.array([[-2.0], [0.0], [0.3]])
    even = Posterior(Mixture(np.full(2, 0.5), points, np.zeros((2, 1, 1))), np.array([0.5]))
    np.testing.assert_allclose(even.mean(u), np.tanh(u / 0.5), atol=1e-9)
    odd = Posterior(Mixture(np.array([0.75, 0.25]), points, np.zeros((2, 1, 1))), np.array([0.5]))
    assert odd.mean(u)[1, 0] == pytest.approx(0.5, abs=1e-9)


def naive_q_b(prior, u, s):
    q, b, total = np.empty((len(u), prior.size)), np.empty((len(u), *prior.means.shape)), 0.0
    for i, w in enumerate(u):
        for j in range(prior.size):
            V, m = prior.covariances[j], prior.means[j]
            T = V + np.diag(s)
            q[i, j] = prior.weights[j] * stats.multivariate_normal.pdf(w, m, T)
            b[i, j] = m + V @ np.linalg.inv(T) @ (w - m)
        total += np.log(q[i].sum())
        q[i] /= q[i].sum()
    return q, b, total


def in_normal_noise(u, s):
    return NoisyRows(u, s, np.zeros_like(s))


@given(seed=seeds, wide=st.sampled_from([0, 16]))
@properties
def test_a_step_and_the_posterior_mean_are_those_of_the_printed_equations(seed, wide):
    rng = np.random.default_rng(seed)
    prior, s = mixture(rng, 3, 2), rng.uniform(0.1, 1.0, 2)
    u = rng.normal(size=(12, 2)) * 1.5
    q, b, total = naive_q_b(prior, u, s)
    with mock.patch.object(_deconvolution, "WIDE", wide):
        found, likelihood = em_step(prior, in_normal_noise(u, s))
    assert likelihood == pytest.approx(total, rel=1e-7)
    np.testing.assert_allclose(found.weights, q.mean(axis=0), atol=1e-7)
    for j in range(3):
        V = prior.covariances[j]
        B = V - V @ np.linalg.inv(V + np.diag(s)) @ V
        m = (q[:, [j]] * b[:, j]).sum(axis=0) / q[:, j].sum()
        outer = (sum(q[i, j] * (np.outer(b[i, j] - m, b[i, j] - m) + B) for i in range(12)) / q[:, j].sum())  # fmt: skip
        np.testing.assert_allclose(found.means[j], m, atol=1e-7)
        np.testing.assert_allclose(found.covariances[j], outer, atol=1e-7)
    expected = np.einsum("ij,ijr->ir", q, b)
    np.testing.assert_allclose(Posterior(prior, s).mean(u), expected, atol=1e-7)


@given(seed=seeds, quiet=st.booleans())
@properties
def test_no_step_lowers_the_likelihood_whatever_noise_is_lacking(seed, quiet):
    rng = np.random.default_rng(seed)
    prior, s = mixture(rng, 3, 2), np.array([rng.uniform(0.1, 1.0), 0.0 if quiet else 0.5])
    u, last = rng.normal(size=(60, 2)), -np.inf
    for _ in range(6):
        prior, likelihood = em_step(prior, in_normal_noise(u, s))
        assert likelihood >= last - 1e-6
        last = likelihood


def test_a_heap_is_found_as_an_atom_and_rebuilt_better_for_it():
    rng = np.random.default_rng(3)
    n, s = 6000, np.array([0.05])
    x = np.where(rng.random(n) < 0.4, 0.0, 2.0 + rng.normal(size=n))[:, None]
    u = x + np.sqrt(s) * rng.normal(size=(n, 1))
    start = Mixture(np.ones(1), u.mean(axis=0)[None], np.array([[[u.var() - s[0]]]]))
    found = learn(start, in_normal_noise(u, s), np.eye(1), 8)
    atoms = found.covariances[:, 0, 0] < 0.25 * s
    assert found.weights[atoms].sum() == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / n) + 0.02)
    assert np.abs(found.means[atoms]).max() < 0.1  # noise is 0.22
    law = Mixture(np.array([0.4, 0.6]), np.array([[0.0], [2.0]]), np.array([[[0.0]], [[1.0]]]))
    exact, *each = (Posterior(prior, s).mean(u) for prior in (law, found, start))
    assert np.square(each[0] - exact).mean() < 0.1 * np.square(each[1] - exact).mean()


def test_a_row_far_from_all_others_keeps_its_place():
    rng, s = np.random.default_rng(2**40 + 8), np.ones(2)
    u = rng.normal(size=(400, 2)) * np.sqrt(1.01)
    u[7] = 60.0, -80.0
    start = Mixture(np.ones(1), np.zeros((1, 2)), np.diag(u.var(axis=0) - s)[None])
    found = Posterior(learn(start, in_normal_noise(u, s), np.eye(2), 8), s).mean(u)
    np.testing.assert_allclose(found[7], u[7], rtol=0.01)
    assert (np.delete(found, 7, axis=0) ** 2).mean() < 0.1  # one normal leaves 0.8 of the noise


def test_long_tails_are_rebuilt_nearly_as_by_their_law():
    X = np.random.default_rng(1).pareto(2.2, (4000, 3))
    release = auditor.perturb(X, "corner-wave", [8.0], seed=2**40 + 1)
    points = np.geomspace(1.0, 1e3, 1000) - 1.0
    off = release.copies[0][..., None] - points
    chance = np.exp(-(off**2) / 16.0 / X.var(axis=0)[:, None]) * (1.0 + points) ** -2.2
    exact = ((chance @ points / chance.sum(axis=2) - X) ** 2).sum() / X.var(axis=0).sum() / len(X)
    assert auditor.attack("mixture-estimate", release).normalized_error < 1.08 * exact


@pytest.mark.parametrize("scheme", ["independent", "corner-wave"])
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 40}}], ids=str)
def test_one_component_is_the_bayes_estimate_to_rounding(scheme, knowledge):
    X = table(90, [400.0, 90.0, 25.0], mean=1e6)
    # a total and its parts: K_X is singular
    release = auditor.perturb(np.column_stack([X, X.sum(axis=1)]), scheme, [0.3, 1.0], seed=4)
    bayes = auditor.attack("bayes-estimate", release, knowledge=knowledge)
    found = auditor.attack("mixture-estimate", release, knowledge=knowledge, components=1)
    np.testing.assert_allclose(found.values, bayes.values, rtol=0, atol=1e-6)  # of 1e6


CLUSTERS = Mixture(
    np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0]]),
    np.array([[[1.0, 0.9], [0.9, 1.0]], [[0.2, 0.0], [0.0, 2.0]], [[0.5, -0.3], [-0.3, 0.4]]]),
)  # fmt: skip
NOISE = 0.6


def excess(rows, seed, judged=4000):
    X = drawn(CLUSTERS, rows, np.random.default_rng(seed))
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": NOISE}, seed=seed)
    exact = Posterior(CLUSTERS, np.full(2, NOISE)).mean(np.asarray(release.copies[0]))
    found = auditor.attack("mixture-estimate", release)
    return ((found.values - exact) ** 2).sum(axis=1)[:judged].mean() / X.var(axis=0).sum()


def test_its_excess_over_the_exact_posterior_mean_goes_to_nothing_as_rows_grow():
    few, many = (np.mean([excess(rows, seed) for seed in (1, 2, 3)]) for rows in (400, 6400))
    assert many < min(0.4 * few, 0.002)  # of the variance; the exact posterior mean leaves a tenth


def seen_through(distribution, levels, x, rng):
    densities = [NoiseDensity(distribution, np.sqrt(level), 0.05) for level in levels]
    draw = {
        "laplace": lambda d: rng.laplace(scale=d.std / np.sqrt(2.0), size=x.shape),
        "uniform": lambda d: rng.uniform(-d.reach, d.reach, x.shape),
        "skellam": lambda d: (d.unit * np.subtract(*rng.poisson(d.std**2 / d.unit**2 / 2, (2, *x.shape)))),
    }[distribution]  # fmt: skip
    channel = Product(tuple(densities), tuple(range(len(levels))))
    if distribution == "uniform":
        channel = Overlap(densities[int(np.argmin(levels))], np.array([d.reach for d in densities]))
    return [channel] * x.shape[1], [x + draw(d) for d in densities]


def integrated(prior, channels, copies, points):
    g = np.linspace(-7.0, 9.0, points)
    both = np.stack(np.meshgrid(g, g, indexing="ij"), axis=-1).reshape(-1, 2)
    density = sum(
        weight * stats.multivariate_normal.pdf(both, m, V)
        for weight, m, V in zip(prior.weights, prior.means, prior.covariances, strict=True)
    ).reshape(points, points)
    f, h = (
        np.exp(channel.log_likelihood(np.stack([copy[:, a] for copy in copies], axis=1), g))
        for a, channel in enumerate(channels)
    )
    total = np.einsum("ni,ij,nj->n", f, density, h, optimize=True)
    first, second = ((f * g) @ density * h).sum(axis=1), (f @ density * h) @ g
    return np.column_stack([first, second]) / total[:, None], np.log(total)


@pytest.mark.parametrize("levels", [[0.2], [0.6, 1.0]], ids=str)
@pytest.mark.parametrize(("distribution", "off"), [("laplace", 1e-4), ("uniform", 5e-4)])
def test_expectation_propagation_is_near_the_integral_in_two_attributes(distribution, off, levels):
    rng = np.random.default_rng(8)
    x = drawn(CLUSTERS, 200, rng)
    channels, copies = seen_through(distribution, levels, x, rng)
    exact, log_likelihood = integrated(CLUSTERS, channels, copies, 801)
    rows = RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2))
    error = ((exact - x) ** 2).mean()
    assert ((Reweighted(CLUSTERS, {}).mean(rows) - exact) ** 2).mean() < off * error
    assert ((Posterior(CLUSTERS, rows.s).mean(rows.u) - exact) ** 2).mean() > 10 * off * error
    gap = posterior(CLUSTERS, rows, ROUNDS).log_likelihood - log_likelihood
    assert np.ptp(gap) < 0.15
    y, points = np.stack([copy[:, 0] for copy in copies], axis=1), np.arange(-2.0, 5.0)
    expected = np.exp(channels[0].log_likelihood(y, points))
    np.testing.assert_allclose(np.exp(rows.likelihoods[0].at(points)), expected, atol=1e-9)


@pytest.mark.parametrize("rounding", [0.0, 1e-8])
def test_likelihood_counts_at_an_atom_of_variance_below_0(rounding):
    """The second attribute is 0, so that only the density of its noise is left."""
    x, rng = np.zeros((50, 2)), np.random.default_rng(9)
    channels, copies = seen_through("laplace", [0.5], x, rng)
    rows = RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2))
    atom = Mixture(np.ones(1), np.zeros((1, 2)), np.diag([0.0, -rounding])[None])
    found, b = rows.chances(atom)[1], np.sqrt(0.5 / 2.0)
    expected = -np.abs(copies[0]).sum(axis=1) / b - 2.0 * np.log(2.0 * b)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("levels", [[4.0], [6.0, 9.0, 9.0]], ids=str)
def test_weights_under_laplace_noise_are_bayes_rule_over_points(levels):
    """Tens with a second attribute of correlation 0; then normal values, which have no weights."""
    rng = np.random.default_rng(11)
    x = np.column_stack([10.0 * rng.binomial(3, 0.3, 3000), rng.normal(0.0, 5.0, 3000)])
    channels, copies = seen_through("laplace", levels, x, rng)
    rows, zero = RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2)), np.zeros(2)
    prior = Mixture(np.ones(1), x.mean(axis=0)[None], np.diag(x.var(axis=0))[None])
    points, y = np.arange(-30.0, 61.0, 5.0), [copy[:, [0]] for copy in copies]
    likelihood = np.exp(sum(each.log_pdf(c - points) for each, c in zip(channels[0].densities, y, strict=True)))  # fmt: skip
    even = np.exp(-0.5 * (points - x[:, 0].mean()) ** 2 / x[:, 0].var())
    h = np.where(points % 10.0 == 0.0, 3.0, 1.0)
    by_hand = (likelihood * even * h) @ points / ((likelihood * even) @ h)
    found = Reweighted(prior, {0: (points, h)}).mean(rows)
    np.testing.assert_allclose(found[:, 0], by_hand, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found[:, 1], Reweighted(prior, {}).mean(rows)[:, 1])
    # a component that all rows exclude does not count
    both = np.add(prior.means, [[0.0], [1e4]]), np.tile(prior.covariances, (2, 1, 1))
    far = Mixture(np.full(2, 0.5), *both)
    np.testing.assert_allclose(Reweighted(far, {0: (points, h)}).mean(rows), found, rtol=1e-6)
    placed = Reweighted.fitted(zero, np.array([5.0, np.nan]), prior, rows)
    assert [*placed.heaps] == [0]
    narrow = Mixture(np.ones(1), 1e-3 * prior.means, 1e-6 * prior.covariances)
    assert not Reweighted.fitted(zero, np.full(2, np.nan), narrow, rows).heaps
    values, shares = np.unique(x[:, 0], return_counts=True)
    chance = shares * likelihood[:, np.isin(points, values)]
    true = chance @ values / chance.sum(axis=1)
    assert ((placed.mean(rows) - x)[:, 0] ** 2).mean() < 1.03 * ((true - x[:, 0]) ** 2).mean()
    # independent attributes: the risk is minus the log-likelihood, and weights lower it
    even = Reweighted(prior, {}).risk(rows)
    np.testing.assert_allclose(even, -rows.chances(prior)[1], atol=1e-6)
    assert placed.risk(rows).mean() < even.mean() - 0.1


def test_factors_in_logs_leave_what_bayes_rule_leaves_and_zeros_show():
    """Lognormal values of both signs: the posterior of a logarithm is normal."""
    rng, levels = np.random.default_rng(4), [0.5, 1.0]
    K, n, signs = np.array([[1.0, 0.6], [0.6, 0.8]]), 4000, np.array([1.0, -1.0])
    X = signs * np.exp(rng.multivariate_normal([3.0, -1.0], K, n))
    X[0] = 0.0
    release = auditor.perturb(X, "multiplicative-noise", levels, seed=2, logs=True)
    found = auditor.attack("mixture-estimate", release).values
    u = sum((np.log(np.abs(y[1:])) + v / 2) / v for y, v in zip(release.copies, levels, strict=True)) / 3.0  # fmt: skip
    gain = K @ np.linalg.inv(K + np.eye(2) / 3.0)
    mean, left = [3.0, -1.0] + (u - [3.0, -1.0]) @ gain.T, np.diag(K - gain @ K)
    bayes = ((signs * np.exp(mean + left / 2) - X[1:]) ** 2).mean(axis=0)
    assert (((found[1:] - X[1:]) ** 2).mean(axis=0) < 1.03 * bayes).all()
    assert not found[0].any()


def test_factors_leave_what_bayes_rule_leaves_and_zeros_show():
    """Three values, equal in both columns in four rows of five beyond chance."""
    rng, x, v = np.random.default_rng(4), np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.3])
    X = x[rng.integers(0, 3, (4000, 2))]
    X[:, 1] = np.where(rng.random(4000) < 0.8, X[:, 0], X[:, 1])
    X[0] = 0.0
    release = auditor.perturb(X, "multiplicative-noise", v.tolist(), seed=2)
    found = auditor.attack("mixture-estimate", release).values
    off = (np.stack(release.copies)[..., None] / x - 1.0) ** 2 / v[:, None, None, None]
    L = np.exp(-0.5 * off.sum(axis=0)) / x**2
    q = L[:, 0, :, None] * L[:, 1, None] * (0.8 * np.eye(3) / 3.0 + 0.2 / 9.0)
    bayes = np.stack([q.sum(axis=2) @ x, q.sum(axis=1) @ x]) / q.sum(axis=(1, 2))
    left, least = (((each - X)[1:] ** 2).mean(axis=0) for each in (found, bayes.T))
    assert (left < 1.25 * least).all(), left / least
    assert not found[0].any()


def test_the_shortest_interval_of_one_normal_by_hand():
    """90 % of N(3, ½²) lie within 1.645 deviations."""
    low, high = shortest_of_mixture(np.ones((1, 1)), np.array([[3.0]]), np.array([0.5]), 0.9)
    assert (low[0] + high[0]) / 2 == pytest.approx(3.0, abs=0.05)
    assert high[0] - low[0] == pytest.approx(1.645, rel=0.01)
    low, high = shortest_of_mixture(np.ones((1, 1)), np.array([[2.0]]), np.zeros(1), 0.9)
    assert low[0] == high[0] == 2.0


@pytest.mark.slow
def test_intervals_hold_what_they_claim_and_are_shorter_than_from_one_attribute():
    """Three clusters of two attributes, at 90 %; a nested copy does not help."""
    rng = np.random.default_rng(21)
    centres = np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0]])
    X = centres[rng.choice(3, 2000, p=[0.5, 0.3, 0.2])] + 0.4 * rng.normal(size=(2000, 2))
    found = {(r.attack, r.metric, r.coalition): r.value for r in auditor.run({
        "seed": 1, "data": {"source": "inline", "values": {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}},
        "schemes": [{"name": "corner-wave", "levels": [0.1, 0.2]}], "coalitions": ["subsets"],
        "attacks": ["mixture-estimate", "distribution-analysis"], "measures": [{"interval-privacy": 0.9}], "replicates": 5,
    }).measurements if r.attribute == "*" and r.replicate == 1}  # fmt: skip
    one, two, both = (found["mixture-estimate", "localised_width", c] for c in ((1,), (2,), (1, 2)))
    for copy in (1, 2):
        share = found["mixture-estimate", "localised_share", (copy,)]
        assert share == pytest.approx(0.9, abs=0.03)
    assert both == one < min(two, 0.9 * found["distribution-analysis", "localised_width", (1,)])


def test_a_lattice_s_posterior_is_bayes_rule_over_its_points():
    """A wide normal prior on whole numbers, heaps of known weights."""
    points, h = np.arange(-30.0, 31.0), np.where(np.arange(-30, 31) % 5 == 0, 8.0, 1.0)
    prior = Mixture(np.ones(1), np.zeros((1, 1)), np.array([[[25.0]]]))
    y, s = np.array([[4.4], [-0.5], [7.2]]), np.array([0.49])
    chance = h * np.exp(-0.5 * points**2 / 25.0 - 0.5 * (y - points) ** 2 / s)
    found = OnLattices(Posterior(prior, s), np.eye(1), np.zeros(1), {0: (points, h)}).mean(y)
    # a component of weight 1e-3 reaches all points
    np.testing.assert_allclose(found[:, 0], chance @ points / chance.sum(axis=1), rtol=3e-5)


def test_heaps_are_learnt_where_there_are_any():
    rng = np.random.default_rng(9)
    x, s = np.rint(rng.normal(0.0, 8.0, 6000)), np.array([4.0])
    x = np.where(rng.random(6000) < 0.7, 10.0 * np.rint(x / 10.0), x)  # most are tens
    y = (x + 2.0 * rng.normal(size=6000))[:, None]
    prior = Mixture(np.ones(1), np.zeros((1, 1)), np.array([[[x.var()]]]))
    posterior, one = Posterior(prior, s), np.array([1.0])
    heaps = fitted_heaps(posterior, y, np.eye(1), np.zeros(1), one)
    found = OnLattices(posterior, np.eye(1), np.zeros(1), heaps).mean(y)[:, 0]
    points, counts = np.unique(x, return_counts=True)
    chance = counts * np.exp(-0.5 * (y - points) ** 2 / s)
    true = chance @ points / chance.sum(axis=1)  # Bayes' rule with the values' own shares
    assert ((found - x) ** 2).mean() < 1.05 * ((true - x) ** 2).mean()
    z = rng.normal(0.0, 8.0, (6000, 1))
    noisy = z + 2.0 * rng.normal(size=z.shape)
    heaps = fitted_heaps(posterior, noisy, np.eye(1), np.zeros(1), np.sqrt(s) / 2.0)
    found = OnLattices(posterior, np.eye(1), np.zeros(1), heaps).mean(noisy)
    assert ((found - posterior.mean(noisy)) ** 2).mean() < 0.01 * s  # normal values have none
    # normal values on a fine lattice have no heaps: the weights stay even
    p, f = (densities(posterior, y, one, np.arange(-30.0, 31.0))[0] for _ in range(2))
    np.testing.assert_allclose(weights(p, f, np.ones(len(p))), 1.0)


def test_known_steps_are_used():
    """Independent counts under noise of a fifth of a step; unknown steps are mostly found."""
    X = np.random.default_rng(11).poisson(2.0, (3000, 3)).astype(float)
    release = auditor.perturb(X, "corner-wave", [0.02, 0.3], seed=2**40 + 6)
    scaled = auditor.perturb(X * np.pi, "corner-wave", [0.02, 0.3], seed=2**40 + 6)
    on, off = (
        auditor.attack("mixture-estimate", each, original=original).normalized_error
        for each, original in ((release, X), (scaled, X * np.pi))
    )
    assert on < off < 0.3 * 0.02 / 1.02


def test_the_estimated_risk_is_the_squared_error_s_expectation():
    """20,000 rows: three deviations of the mean difference."""
    rng = np.random.default_rng(5)
    x, s = drawn(CLUSTERS, 20_000, rng), np.full(2, NOISE)
    v = x + np.sqrt(s) * rng.normal(size=x.shape)
    A, mu = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([3.0, -1.0])
    points, h = np.arange(-4.0, 12.0, 0.4), np.linspace(0.5, 3.0, 40)
    for heaps in ({}, {0: (points, h)}):
        placed = OnLattices(Posterior(CLUSTERS, s), A, mu, heaps)
        error = ((placed.mean(v) - mu - x @ A.T) ** 2).sum(axis=1) / NOISE
        off = placed.risk(NoisyRows(v, s, np.zeros(2))) - error
        assert abs(off.mean()) < 3.0 * off.std() / np.sqrt(len(off))


@pytest.mark.parametrize("rows", [1000, 6000])
def test_independent_components_are_unmixed(rows):
    """Eight mixed signs, 256 clusters: near the exact posterior mean, tanh(y/0.3)."""
    rng = np.random.default_rng(13)
    x = rng.choice([-1.0, 1.0], (rows, 8))
    release = auditor.perturb(x @ rng.normal(size=(8, 8)), "corner-wave", [0.3], seed=2**40 + 3)
    exact = np.tanh((x + np.sqrt(0.3) * rng.normal(size=x.shape)) / 0.3)
    assert auditor.attack("mixture-estimate", release).normalized_error < 1.3 * ((exact - x) ** 2).mean()  # fmt: skip


def test_weights_count_for_other_attributes_with_the_same_noise():
    """Signs of correlation 0.6: four points by Bayes' rule."""
    rng, V = np.random.default_rng(17), np.array([[1.0, 0.6], [0.6, 1.0]])
    A, v = np.linalg.cholesky(V), np.sqrt(1.3) * rng.normal(size=(500, 2))  # noise 0.3 V
    posterior = Posterior(Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None]), np.full(2, 0.3))
    points = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    at = np.linalg.solve(A, points.T).T
    chance = np.exp(-0.5 * (at**2).sum(axis=1) - ((at - v[:, None]) ** 2).sum(axis=2) / 0.6)
    exact = chance @ points / chance.sum(axis=1, keepdims=True)
    heaps = dict.fromkeys((0, 1), (np.arange(-1.0, 2.0), np.array([1.0, 1e-9, 1.0])))
    one, joint = (OnLattices(posterior, A, np.zeros(2), heaps, each).mean(v) for each in (False, True))  # fmt: skip
    assert ((joint - exact) ** 2).mean() < 0.5 * ((one - exact) ** 2).mean()
    off = OnLattices(posterior, A, np.zeros(2), {1: heaps[1]}, True).mean(v) - posterior.mean(v) @ A.T  # fmt: skip
    np.testing.assert_allclose(off[:, 0], 0.6 * off[:, 1], atol=1e-9)  # by regression


def test_few_rows_of_many_attributes_have_components():
    """Three distant clusters in ten attributes: 240 rows, and 66 parameters in a component."""
    rng = np.random.default_rng(7)
    X = 3.0 * rng.normal(size=(3, 10))[rng.integers(0, 3, 240)] + rng.normal(size=(240, 10))
    release = auditor.perturb(X, "corner-wave", [0.1], seed=2**40 + 9)
    found, linear = (auditor.attack(name, release) for name in ("mixture-estimate", "llse"))
    assert found.normalized_error < 0.7 * linear.normalized_error


def test_shared_rows_by_hand():
    """Harmonic means: equal components and atoms stay."""
    V, s = np.array([[[1.0, 0.3], [0.3, 2.0]]] * 2), np.array([0.3, 0.2])
    alike = Mixture(np.array([0.6, 0.4]), np.zeros((2, 2)), V)
    np.testing.assert_allclose(_deconvolution.common(alike, s), V)
    # of T = 1 + 1 and 7 + 1 in equal shares 3.2, less the noise 2.2
    two = Mixture(np.array([0.5, 0.5]), np.zeros((2, 1)), np.array([[[1.0]], [[7.0]]]))
    found = _deconvolution.common(two, np.ones(1))[:, 0, 0]
    np.testing.assert_allclose(found, [2 * 2.2 / 3.2, 2 * 7 * 2.2 / 9.2])
    V[1, 0] = V[1, :, 0] = 0.0
    V[1, 0, 0] = -1e-17  # an atom's rounding error does not grow
    assert (_deconvolution.common(alike, s)[1, 0] == 0.0).all()


def test_slopes_of_directions_are_derivatives_along_correlated_noise():
    R, s = np.array([[0.6, 0.8], [-0.8, 0.6]]), np.array([0.2, 0.9])
    prior = Mixture(
        np.array([0.5, 0.5]), np.array([[-1.0, 0.5], [1.0, 0.0]]), np.stack([np.eye(2)] * 2)
    )
    A, v = np.array([[1.0, 0.3], [0.2, 2.0]]), np.array([[0.4, -0.7]])
    rows = NoisyRows(np.empty((0, 2)), s, np.zeros(2))
    margins = Margins.of(R, A @ R.T, np.zeros(2), np.zeros(2), prior, rows)
    ends = [[margins.moments(v + d * e, s)[0] for d in (1e-5, -1e-5)] for e in np.eye(2)]
    slope = [(up - down) / 2e-5 for up, down in ends]
    expected = sum(s[j] * slope[j] * A[:, j] for j in range(2))
    np.testing.assert_allclose(margins.moments(v, s)[1], expected, rtol=1e-6)

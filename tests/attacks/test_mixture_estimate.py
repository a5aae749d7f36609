"""The mixture estimate: extreme deconvolution as it is printed, the exact posterior mean it converges to, and the attacks it contains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import auditor
import auditor_attacks.mixture_estimate
from auditor.numerics.combination import best_unbiased_combination
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Channel, Overlap, Product
from auditor_attacks._deconvolution import (
    NARROW,
    Mixture,
    NoisyRows,
    Posterior,
    em_step,
    learn,
    split,
    with_atoms,
)
from auditor_attacks._expectation_propagation import ROUNDS, RowsInAnyNoise, posterior
from auditor_attacks.mixture_estimate import generalised_least_squares, shortest_of_mixture
from tests.attacks.tables import table

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def covariance(rng, r):
    root = rng.normal(size=(r, r))
    return root @ root.T / r


def mixture(rng, K, r):
    return Mixture(
        rng.dirichlet(np.ones(K)),
        rng.normal(size=(K, r)),
        np.array([covariance(rng, r) for _ in range(K)]),
    )


def drawn(prior, n, rng):
    """Rows of a mixture."""
    which = rng.choice(prior.size, n, p=prior.weights)
    return (
        prior.means[which]
        + np.array([rng.multivariate_normal(np.zeros(len(C)), C, n) for C in prior.covariances])[
            which, np.arange(n)
        ]
    )


# -- posterior and EM, as they are printed
# -----------------------------------------------------------------------------


def test_hand_value_two_points():
    """x = ±1 with chance ½ each: ``E[x|u] = tanh(u/s)``; with chance ¾ and ¼ the odds at u = 0 are 3 to 1, so ½."""
    points = np.array([[1.0], [-1.0]])
    u = np.array([[-2.0], [0.0], [0.3]])
    even = Posterior(Mixture(np.full(2, 0.5), points, np.zeros((2, 1, 1))), np.array([0.5]))
    np.testing.assert_allclose(even.mean(u), np.tanh(u / 0.5), atol=1e-9)
    odd = Posterior(Mixture(np.array([0.75, 0.25]), points, np.zeros((2, 1, 1))), np.array([0.5]))
    assert odd.mean(u)[1, 0] == pytest.approx(0.5, abs=1e-9)


def naive_q_b(prior, u, s):
    """``q_ij`` and ``b_ij`` of bovy2011, (16), with R = I, row by row and component by component, and the log-likelihood."""
    q, b, total = np.empty((len(u), prior.size)), np.empty((len(u), *prior.means.shape)), 0.0
    for i, w in enumerate(u):
        for j in range(prior.size):
            V, m = prior.covariances[j], prior.means[j]
            T = V + np.diag(s)
            q[i, j] = (
                prior.weights[j]
                * np.exp(-0.5 * (w - m) @ np.linalg.inv(T) @ (w - m))
                / np.sqrt(np.linalg.det(2 * np.pi * T))
            )
            b[i, j] = m + V @ np.linalg.inv(T) @ (w - m)
        total += np.log(q[i].sum())
        q[i] /= q[i].sum()
    return q, b, total


def in_normal_noise(u, s):
    return NoisyRows(u, s, np.zeros_like(s))


@given(seed=seeds)
@properties
def test_a_step_and_the_posterior_mean_are_those_of_the_printed_equations(seed):
    rng = np.random.default_rng(seed)
    prior, s = mixture(rng, 3, 2), rng.uniform(0.1, 1.0, 2)
    u = rng.normal(size=(12, 2)) * 1.5
    q, b, total = naive_q_b(prior, u, s)
    found, likelihood = em_step(prior, in_normal_noise(u, s))
    assert likelihood == pytest.approx(total, rel=1e-7)
    np.testing.assert_allclose(found.weights, q.mean(axis=0), atol=1e-7)
    for j in range(3):
        V = prior.covariances[j]
        B = V - V @ np.linalg.inv(V + np.diag(s)) @ V
        m = (q[:, [j]] * b[:, j]).sum(axis=0) / q[:, j].sum()
        outer = (
            sum(q[i, j] * (np.outer(b[i, j] - m, b[i, j] - m) + B) for i in range(12))
            / q[:, j].sum()
        )
        np.testing.assert_allclose(found.means[j], m, atol=1e-7)
        np.testing.assert_allclose(found.covariances[j], outer, atol=1e-7)
    np.testing.assert_allclose(
        Posterior(prior, s).mean(u), np.einsum("ij,ijr->ir", q, b), atol=1e-7
    )


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


@given(seed=seeds)
@properties
def test_halves_have_the_mean_and_covariance_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    prior, u = mixture(rng, 2, 3), rng.normal(size=(80, 3))
    both, three = (split(prior, in_normal_noise(u, np.full(3, 0.3)), most) for most in (4, 3))
    for whole, parts in ((prior, both), (prior, three)):
        assert parts.weights.sum() == pytest.approx(1.0)
        mean = [mixed.weights @ mixed.means for mixed in (whole, parts)]
        second = [
            np.einsum(
                "k,krs->rs", m.weights, m.covariances + m.means[:, :, None] * m.means[:, None, :]
            )
            for m in (whole, parts)
        ]
        np.testing.assert_allclose(mean[1], mean[0], atol=1e-12)
        np.testing.assert_allclose(second[1], second[0], atol=1e-12)
        assert np.linalg.eigvalsh(parts.covariances).min() > -1e-12
    assert (both.size, three.size) == (4, 3)


def test_an_atom_keeps_the_covariance_of_the_others_given_it():
    # narrow beside noise of variance 0.5 in the first attribute, not in the second
    V = np.array([[0.01, 0.05], [0.05, 1.0]])
    found = with_atoms(
        Mixture(np.ones(1), np.zeros((1, 2)), V[None]), np.array([0.5, 0.5]), np.eye(2)
    ).covariances[0]
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, 1.0 - 0.05**2 / 0.01]], atol=1e-15)
    wide = np.array([[NARROW * 0.51, 0.0], [0.0, 1.0]])
    same = with_atoms(
        Mixture(np.ones(1), np.zeros((1, 2)), wide[None]), np.array([0.5, 0.5]), np.eye(2)
    ).covariances[0]
    np.testing.assert_array_equal(same, wide)
    # a point in the first attribute; its covariance with the second is rounding
    rounded = np.array([[1e-18, 4e-10], [4e-10, 0.1]])
    kept = with_atoms(
        Mixture(np.ones(1), np.zeros((1, 2)), rounded[None]), np.array([0.5, 0.5]), np.eye(2)
    ).covariances[0]
    np.testing.assert_allclose(kept, np.diag([0.0, 0.1]), atol=1e-9)


def test_a_heap_is_found_as_an_atom_and_rebuilt_better_for_it():
    rng = np.random.default_rng(3)
    n, s = 6000, np.array([0.05])
    x = np.where(rng.random(n) < 0.4, 0.0, 2.0 + rng.normal(size=n))[:, None]
    u = x + np.sqrt(s) * rng.normal(size=(n, 1))
    start = Mixture(np.ones(1), u.mean(axis=0)[None], np.array([[[u.var() - s[0]]]]))
    found = learn(start, in_normal_noise(u, s), np.eye(1), 8)
    atoms = found.covariances[:, 0, 0] < 1e-12
    assert found.weights[atoms].sum() == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / n) + 0.02)
    assert np.abs(found.means[atoms]).max() < 0.1  # beside noise of 0.22
    exact = Posterior(
        Mixture(np.array([0.4, 0.6]), np.array([[0.0], [2.0]]), np.array([[[0.0]], [[1.0]]])), s
    ).mean(u)
    assert ((Posterior(found, s).mean(u) - exact) ** 2).mean() < 0.1 * (
        (Posterior(start, s).mean(u) - exact) ** 2
    ).mean()


# -- copies boiled down to one
# -----------------------------------------------------------------------------------------


@given(seed=seeds, k=st.integers(1, 3), rank=st.integers(1, 4))
@properties
def test_dense_noise_of_one_shape_is_combined_as_the_levels_say(seed, k, rank):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, min(rank, k)))
    Sigma, K_0 = root @ root.T, covariance(rng, 2)
    W = generalised_least_squares(np.kron(Sigma, K_0), 2)
    _, v = best_unbiased_combination(Sigma)
    np.testing.assert_allclose(W @ np.tile(np.eye(2), (k, 1)), np.eye(2), atol=1e-8)
    np.testing.assert_allclose(
        W @ np.kron(Sigma, K_0) @ W.T, v * K_0, atol=1e-7 * np.abs(np.kron(Sigma, K_0)).max()
    )


def test_a_stated_covariance_of_mixed_shapes_is_used(tmp_path):
    """Copy 1 hides the first attribute, copy 2 the second: whoever weighs them rightly has both."""
    rng = np.random.default_rng(4)
    X = np.sign(rng.normal(size=(400, 2))) + 0.2 * rng.normal(size=(400, 2))
    K_Z = np.diag([4.0, 0.05, 0.05, 4.0])
    Z = rng.multivariate_normal(np.zeros(4), K_Z, 400)
    np.savetxt(tmp_path / "K_Z.csv", K_Z, delimiter=",")
    for name, values in {"x": X, "y1": X + Z[:, :2], "y2": X + Z[:, 2:]}.items():
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",", header="a,b", comments="")
    scheme = {
        "name": "published",
        "copies": ["y1.csv", "y2.csv"],
        "levels": [1.0, 1.0],
        "aligned": True,
        "law": {"covariance": "K_Z.csv"},
    }
    (tmp_path / "s.yaml").write_text(
        f"schema: 1\ntitle: t\nseed: 1\ndata: {{source: x.csv}}\nschemes: [{scheme!r}]\nknowledge: [perfect]\ncoalitions: [all]\n"
        "attacks: [llse, mixture-estimate]\nexpect: []\n".replace("True", "true"), encoding="utf-8"
    )  # fmt: skip
    found = (
        auditor.run(tmp_path / "s.yaml")
        .frame()
        .query("metric == 'normalized_error' and attribute == '*'")
        .set_index("attack")
    )
    assert found.loc["mixture-estimate", "status"] == "ok"
    assert found.loc["mixture-estimate", "value"] < found.loc["llse", "value"] < 0.06


# -- the attacks it contains
# -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["independent", "correlated", "corner-wave"])
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 40}}], ids=str)
def test_one_component_is_the_bayes_estimate_to_rounding(scheme, knowledge):
    X = table(90, [400.0, 90.0, 25.0], mean=1e6)
    # a total beside its parts: K_X is singular
    release = auditor.perturb(np.column_stack([X, X.sum(axis=1)]), scheme, [0.3, 1.0], seed=4)
    bayes = auditor.attack("bayes-estimate", release, knowledge=knowledge)
    found = auditor.attack("mixture-estimate", release, knowledge=knowledge, components=1)
    np.testing.assert_allclose(found.values, bayes.values, rtol=0, atol=1e-6)  # of 1e6


def test_on_normal_data_it_finds_one_component_and_is_the_llse():
    release = auditor.perturb(
        np.random.default_rng(5).normal(size=(3000, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]]),
        "independent",
        [0.5],
        seed=6,
    )
    llse = auditor.attack("llse", release)
    np.testing.assert_allclose(
        auditor.attack("mixture-estimate", release).values, llse.values, atol=1e-8
    )


# -- a true mixture: the exact posterior mean
# --------------------------------------------------------------------------


CLUSTERS = Mixture(
    np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0]]),
    np.array([[[1.0, 0.9], [0.9, 1.0]], [[0.2, 0.0], [0.0, 2.0]], [[0.5, -0.3], [-0.3, 0.4]]]),
)  # fmt: skip
NOISE = 0.6


def excess(rows, seed, judged=4000):
    """Squared distance of the estimate from the exact posterior mean, which is its excess error, over the data's variance."""
    rng = np.random.default_rng(seed)
    X = drawn(CLUSTERS, rows, rng)
    release = auditor.perturb(X, "independent", [1.0], noise={"variance": NOISE}, seed=seed)
    exact = Posterior(CLUSTERS, np.full(2, NOISE)).mean(np.asarray(release.copies[0]))
    found = auditor.attack("mixture-estimate", release)
    return ((found.values - exact) ** 2).sum(axis=1)[:judged].mean() / X.var(axis=0).sum()


def test_its_excess_over_the_exact_posterior_mean_goes_to_nothing_as_rows_grow():
    """As the parameters over the rows, roughly: 16 times the rows leave well below a half, whatever number of components was chosen."""
    few, many = (np.mean([excess(rows, seed) for seed in (1, 2, 3)]) for rows in (400, 6400))
    assert many < 0.4 * few
    assert many < 0.002  # of the variance, where the exact posterior mean leaves a tenth


# -- what it is for
# ----------------------------------------------------------------------------------------------------


def curve(n, seed=0):
    """Three attributes on a bent line."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2.0, 2.0, n)
    return np.column_stack([t, t**2, np.sin(2.5 * t)]) / [1.15, 1.2, 0.7] + 0.1 * rng.normal(
        size=(n, 3)
    )


def test_on_a_curve_it_leaves_half_of_what_one_attribute_at_a_time_leaves():
    release = auditor.perturb(curve(4000), "corner-wave", [0.3], seed=2)
    left = {
        name: auditor.attack(name, release).normalized_error
        for name in ("mixture-estimate", "llse")
    }
    alone = auditor.attack("map-estimate", release, estimate="mean").normalized_error
    assert left["mixture-estimate"] < 0.145
    assert left["mixture-estimate"] < 0.7 * alone < alone < left["llse"]


def test_a_second_corner_wave_copy_changes_no_estimate_and_a_second_fresh_one_does(monkeypatch):
    learnt = []
    monkeypatch.setattr(
        auditor_attacks.mixture_estimate, "learn", lambda *given: learnt.append(1) or learn(*given)
    )
    wave, fresh = (
        auditor.perturb(curve(1500), scheme, [0.3, 0.5], seed=3)
        for scheme in ("corner-wave", "correlated")
    )
    best, pooled = (
        auditor.attack("mixture-estimate", wave, coalition=c).values for c in ([1], [1, 2])
    )
    np.testing.assert_array_equal(pooled, best)
    best, pooled = (
        auditor.attack("mixture-estimate", fresh, coalition=c).distortion for c in ([1], [1, 2])
    )
    assert pooled < 0.85 * best
    learnt.clear()
    data = {"source": "components", "shapes": ["bimodal"], "rows": 300}
    scenario = {"schema": 1, "title": "t", "seed": 1, "data": data, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.5, 0.4]}],
                "knowledge": ["perfect"], "coalitions": ["subsets"], "attacks": ["mixture-estimate"], "replicates": 5, "expect": []}  # fmt: skip
    auditor.run(scenario)
    assert len(learnt) == 5 * 3  # seven coalitions, three combinations


def test_of_many_attributes_and_few_rows_it_does_not_try_more_than_a_normal():
    """Two clusters in twelve attributes: 91 numbers a component, so 700 rows teach one and no more, and 2,000 teach two."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 12)) + 3.0 * np.where(rng.random((2000, 1)) < 0.5, 1.0, -1.0)
    few, many = (auditor.perturb(X[:rows], "independent", [3.0], seed=7) for rows in (700, 2000))
    np.testing.assert_allclose(
        auditor.attack("mixture-estimate", few).values,
        auditor.attack("llse", few).values,
        atol=1e-6,
    )
    assert (
        auditor.attack("mixture-estimate", many).distortion
        < 0.95 * auditor.attack("llse", many).distortion
    )


# -- noise that is not Gaussian: expectation propagation
# ---------------------------------------------------------------


def seen_through(distribution, levels, x, rng):
    """A channel for each attribute, of noise on steps of a twentieth where it is on a lattice, and copies of x through it."""
    densities = [NoiseDensity(distribution, np.sqrt(level), 0.05) for level in levels]
    draw = {
        "laplace": lambda d: rng.laplace(scale=d.std / np.sqrt(2.0), size=x.shape),
        "uniform": lambda d: rng.uniform(-d.reach, d.reach, x.shape),
        "skellam": lambda d: (
            d.unit
            * (
                rng.poisson(d.std**2 / d.unit**2 / 2, x.shape)
                - rng.poisson(d.std**2 / d.unit**2 / 2, x.shape)
            )
        ),
    }[distribution]
    channel: Channel = Product(tuple(densities), tuple(range(len(levels))))
    if distribution == "uniform":
        channel = Overlap(densities[int(np.argmin(levels))], np.array([d.reach for d in densities]))
    return [channel] * x.shape[1], [x + draw(d) for d in densities]


def integrated(prior, channels, copies, points):
    """Exact posterior means of rows in two attributes and log-likelihoods up to a constant, by sums over a fine grid."""
    g = np.linspace(-7.0, 9.0, points)
    both = np.stack(np.meshgrid(g, g, indexing="ij"), axis=-1).reshape(-1, 2)
    density = sum(
        weight
        * np.exp(-0.5 * np.einsum("na,ab,nb->n", both - m, np.linalg.inv(V), both - m))
        / np.sqrt(np.linalg.det(V))
        for weight, m, V in zip(prior.weights, prior.means, prior.covariances, strict=True)
    ).reshape(points, points)
    f, h = (
        np.exp(channel.log_likelihood(np.stack([copy[:, a] for copy in copies], axis=1), g))
        for a, channel in enumerate(channels)
    )
    total = np.einsum("ni,ij,nj->n", f, density, h, optimize=True)
    first, second = ((f * g) @ density * h).sum(axis=1), (f @ density * h) @ g
    return np.column_stack([first, second]) / total[:, None], np.log(total)


@pytest.mark.parametrize("levels", [[0.2], [2.0], [0.6, 1.0]], ids=str)
@pytest.mark.parametrize(("distribution", "off"), [("laplace", 1e-4), ("uniform", 5e-4)])
def test_expectation_propagation_is_near_the_integral_in_two_attributes(distribution, off, levels):
    """Errs by a ten-thousandth more than the exact mean, where taking the noise for Gaussian costs over a hundredth."""
    rng = np.random.default_rng(8)
    x = drawn(CLUSTERS, 200, rng)
    channels, copies = seen_through(distribution, levels, x, rng)
    exact, log_likelihood = integrated(CLUSTERS, channels, copies, 801)
    rows = RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2))
    error = ((exact - x) ** 2).mean()
    assert ((rows.mean(CLUSTERS) - exact) ** 2).mean() < off * error
    assert ((Posterior(CLUSTERS, rows.s).mean(rows.u) - exact) ** 2).mean() > 10 * off * error
    gap = posterior(CLUSTERS, rows, ROUNDS).log_likelihood - log_likelihood
    assert np.ptp(gap) < 0.15


@pytest.mark.parametrize("distribution", ["laplace", "uniform"])
def test_in_one_attribute_it_is_the_integral(distribution):
    rng = np.random.default_rng(9)
    prior = Mixture(np.array([0.7, 0.3]), np.array([[0.0], [2.0]]), np.array([[[0.5]], [[0.1]]]))
    channels, copies = seen_through(distribution, [0.5, 0.8], drawn(prior, 50, rng), rng)
    g = np.linspace(-8.0, 10.0, 40_001)
    density = sum(
        w * np.exp(-0.5 * (g - m[0]) ** 2 / V[0, 0]) / np.sqrt(V[0, 0])
        for w, m, V in zip(prior.weights, prior.means, prior.covariances, strict=True)
    )
    weights = density * np.exp(channels[0].log_likelihood(np.hstack(copies), g))
    exact = weights @ g / weights.sum(axis=1)
    # the estimate does not hang on origin and unit
    rows = RowsInAnyNoise.of(channels, copies, np.array([1.0]), np.array([0.5]))
    scaled = Mixture(prior.weights, (prior.means - 1.0) / 0.5, prior.covariances / 0.25)
    np.testing.assert_allclose(1.0 + 0.5 * rows.mean(scaled)[:, 0], exact, atol=5e-4)


def test_of_skellam_noise_of_many_steps_all_is_as_of_normal_noise():
    rng = np.random.default_rng(10)
    x = 0.05 * np.rint(drawn(CLUSTERS, 200, rng) / 0.05)
    channels, copies = seen_through("skellam", [0.3, 0.5], x, rng)  # 120 and 200 squared steps
    rows = RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2))
    np.testing.assert_allclose(
        rows.mean(CLUSTERS), Posterior(CLUSTERS, rows.s).mean(rows.u), atol=1e-6
    )
    found = em_step(CLUSTERS, rows)[0]
    normal = em_step(CLUSTERS, in_normal_noise(rows.u, rows.s))[0]
    for name in ("weights", "means", "covariances"):
        np.testing.assert_allclose(getattr(found, name), getattr(normal, name), atol=1e-6)


def test_a_step_raises_the_likelihood_under_laplace_noise():
    rng = np.random.default_rng(11)
    channels, copies = seen_through("laplace", [0.5], drawn(CLUSTERS, 400, rng), rng)
    rows, prior, last = (
        RowsInAnyNoise.of(channels, copies, np.zeros(2), np.ones(2)),
        mixture(rng, 3, 2),
        -np.inf,
    )
    for _ in range(8):
        prior, likelihood = em_step(prior, rows)
        assert likelihood > last
        last = likelihood


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_of_one_process_a_second_copy_changes_no_estimate_and_a_second_fresh_one_does(noise):
    X = np.rint(20.0 * curve(500)[:, :2])
    values = {}
    for scheme in (f"{noise}-multilevel", noise):
        release = auditor.perturb(X, scheme, [0.3, 0.4], seed=12)
        values[scheme] = [
            auditor.attack("mixture-estimate", release, original=X, coalition=c, components=2)
            for c in ([1], [1, 2])
        ]
    np.testing.assert_array_equal(*(found.values for found in values[f"{noise}-multilevel"]))
    assert values[noise][1].distortion < 0.85 * values[noise][0].distortion


@pytest.mark.parametrize(
    ("scheme", "law"), [("laplace-multilevel", {}), ("independent", {"distribution": "uniform"})]
)
def test_clusters_are_found_through_noise_that_is_not_gaussian(scheme, law):
    rng = np.random.default_rng(13)
    X = np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0]])[
        rng.choice(3, 1200, p=[0.5, 0.3, 0.2])
    ] + 0.4 * rng.normal(size=(1200, 2))
    release = auditor.perturb(X, scheme, [0.4], seed=14, **law)
    left = {name: auditor.attack(name, release, original=X, **p).distortion
            for name, p in (("mixture-estimate", {"components": 4}), ("llse", {}), ("map-estimate", {"estimate": "mean"}))}  # fmt: skip
    assert left["mixture-estimate"] < 0.75 * left["llse"]
    assert left["mixture-estimate"] < 0.9 * left["map-estimate"]


@pytest.mark.parametrize("scheme", ["laplace", "geometric-multilevel", "skellam"])
@pytest.mark.parametrize("level", [1e-6, 1e-3, 1e4])
def test_totals_and_extreme_levels(scheme, level):
    """With next to no noise it is the copy, with all too much the mean, and never worse than the line between."""
    X = np.rint(1000.0 * curve(200))
    X = np.column_stack([X, X.sum(axis=1)])
    release = auditor.perturb(X, scheme, [level, level], seed=15)
    found = auditor.attack("mixture-estimate", release, original=X, components=2)
    assert (
        found.normalized_error
        < 1.02 * auditor.attack("llse", release, original=X).normalized_error + 1e-9
    )


@pytest.mark.parametrize("scheme", ["laplace", "independent"])
def test_long_tails_and_values_nearly_given_away_are_no_noise_of_rounding(scheme):
    """Records far out, and overlaps of uniform noise that leave next to nothing: estimates stay between the copies and the mean."""
    X = np.random.default_rng(0).lognormal(size=(400, 2))
    options = {"distribution": "uniform"} if scheme == "independent" else {}
    release = auditor.perturb(X, scheme, [1e-4, 0.5, 1.0], seed=1, **options)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for coalition in ([1], [2, 3], "all"):
            found = auditor.attack(
                "mixture-estimate", release, coalition=coalition
            ).normalized_error
            assert (
                found < 1.1 * auditor.attack("llse", release, coalition=coalition).normalized_error
            )


# -- intervals of what is left: privacy by mixtures
# ---------------------------------------------------------------------


def test_the_shortest_interval_of_one_normal_by_hand():
    """90 % of N(3, ½²) lie within 1.645 deviations: 1.645 wide; of an atom at 2 nothing is left to know."""
    low, high = shortest_of_mixture(np.ones((1, 1)), np.array([[3.0]]), np.array([0.5]), 0.9)
    assert (low[0] + high[0]) / 2 == pytest.approx(3.0, abs=0.05)
    assert high[0] - low[0] == pytest.approx(1.645, rel=0.01)
    low, high = shortest_of_mixture(np.ones((1, 1)), np.array([[2.0]]), np.zeros(1), 0.9)
    assert low[0] == high[0] == 2.0


def test_of_two_clusters_the_shortest_interval_leaves_the_rarer_out_where_it_may():
    """95 % at 0 and 5 % at 10: at 90 % it lies about 0, at 99 % it spans both."""
    q, mean, std = np.array([[0.95, 0.05]]), np.array([[0.0, 10.0]]), np.array([0.5, 0.5])
    low, high = shortest_of_mixture(q, mean, std, 0.9)
    assert -2 < low[0] < 0 < high[0] < 2.2
    low, high = shortest_of_mixture(q, mean, std, 0.99)
    assert low[0] < 0
    assert high[0] > 10


@given(seed=seeds, K=st.integers(1, 4), confidence=st.floats(0.5, 0.99))
@properties
def test_no_interval_of_the_mixture_is_much_shorter(seed, K, confidence):
    """It holds the share, but for what is linear between points, and beats every interval on a fine grid by no less than two steps."""
    rng = np.random.default_rng(seed)
    q, mean, std = rng.dirichlet(np.ones(K)), 3.0 * rng.normal(size=K), 0.3 + rng.random(K)
    low, high = (end[0] for end in shortest_of_mixture(q[None], mean[None], std, confidence))
    grid = np.linspace(mean.min() - 9, mean.max() + 9, 1500)
    F = norm.cdf(grid[:, None], mean, std) @ q
    spread = np.sqrt(q @ (std**2 + (mean - q @ mean) ** 2))
    assert np.interp(high, grid, F) - np.interp(low, grid, F) == pytest.approx(confidence, abs=0.02)
    stop = np.searchsorted(F, F + confidence)
    possible = stop < len(grid)
    assert high - low <= (grid[stop[possible]] - grid[possible]).min() + 0.25 * spread


def test_the_components_left_of_a_row_are_bayes_rule():
    """``q ∝ α N(u; m, V + s)``, ``(V⁻¹ + s⁻¹)⁻¹`` and its mean, component by component; their mean is the estimate."""
    rng = np.random.default_rng(20)
    prior, s, u = mixture(rng, 3, 2), np.array([0.4, 0.9]), rng.normal(size=(5, 2))
    q, b, B = Posterior(prior, s).components(u)
    for k in range(3):
        m, V = prior.means[k], prior.covariances[k]
        np.testing.assert_allclose(
            B[k], np.linalg.inv(np.linalg.inv(V) + np.diag(1 / s)), atol=1e-8
        )
        np.testing.assert_allclose(b[:, k], (np.linalg.solve(V, m) + u / s) @ B[k], atol=1e-7)
    np.testing.assert_allclose(
        np.einsum("nk,nkr->nr", q, b), Posterior(prior, s).mean(u), atol=1e-8
    )


def test_intervals_from_all_attributes_hold_what_they_claim_and_are_shorter_than_from_one(tmp_path):
    """Three clusters of two attributes, 90 %; of 2,000 records ± 3 points, as much for the learnt prior. A nested copy adds nothing."""
    rng = np.random.default_rng(21)
    X = np.array([[0.0, 0.0], [3.0, 1.0], [-1.0, 4.0]])[
        rng.choice(3, 2000, p=[0.5, 0.3, 0.2])
    ] + 0.4 * rng.normal(size=(2000, 2))
    np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b", comments="")
    result = auditor.run({
        "seed": 1, "data": str(tmp_path / "x.csv"), "schemes": [{"name": "corner-wave", "levels": [0.1, 0.2]}], "coalitions": ["subsets"],
        "attacks": ["mixture-estimate", "distribution-analysis"], "measures": [{"interval-privacy": 0.9}], "replicates": 5,
    })  # fmt: skip
    found = {
        (r.attack, r.metric, r.coalition): r.value
        for r in result.measurements
        if r.attribute == "*" and r.replicate == 1
    }
    width, share = (
        lambda attack, copy, metric=metric: found[attack, metric, copy]
        for metric in ("localised_width", "localised_share")
    )
    assert all(abs(share("mixture-estimate", (copy,)) - 0.9) < 0.03 for copy in (1, 2))
    assert width("mixture-estimate", (1,)) < 0.9 * width("distribution-analysis", (1,))
    assert width("mixture-estimate", (1,)) < width("mixture-estimate", (2,))
    assert width("mixture-estimate", (1, 2)) == width("mixture-estimate", (1,))

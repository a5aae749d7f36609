"""The mixture estimate: extreme deconvolution as it is printed, the exact posterior mean it converges to, and the attacks it contains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attacks.mixture_estimate
import auditor
from attacks._deconvolution import NARROW, Mixture, Posterior, em_step, learn, split, with_atoms
from attacks.mixture_estimate import generalised_least_squares
from auditor.numerics.combination import best_unbiased_combination
from tests.attacks.tables import table

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)


def covariance(rng, r):
    root = rng.normal(size=(r, r))
    return root @ root.T / r


def mixture(rng, K, r):
    return Mixture(rng.dirichlet(np.ones(K)), rng.normal(size=(K, r)), np.array([covariance(rng, r) for _ in range(K)]))


def drawn(prior, n, rng):
    """Rows of a mixture."""
    which = rng.choice(prior.size, n, p=prior.weights)
    return prior.means[which] + np.array([rng.multivariate_normal(np.zeros(len(C)), C, n) for C in prior.covariances])[which, np.arange(n)]


# -- posterior and EM, as they are printed -----------------------------------------------------------------------------


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
            q[i, j] = prior.weights[j] * np.exp(-0.5 * (w - m) @ np.linalg.inv(T) @ (w - m)) / np.sqrt(np.linalg.det(2 * np.pi * T))
            b[i, j] = m + V @ np.linalg.inv(T) @ (w - m)
        total += np.log(q[i].sum())
        q[i] /= q[i].sum()
    return q, b, total


@given(seed=seeds)
@properties
def test_a_step_and_the_posterior_mean_are_those_of_the_printed_equations(seed):
    rng = np.random.default_rng(seed)
    prior, s = mixture(rng, 3, 2), rng.uniform(0.1, 1.0, 2)
    u = rng.normal(size=(12, 2)) * 1.5
    q, b, total = naive_q_b(prior, u, s)
    found, likelihood = em_step(prior, u, s)
    assert likelihood == pytest.approx(total, rel=1e-7)
    np.testing.assert_allclose(found.weights, q.mean(axis=0), atol=1e-7)
    for j in range(3):
        V = prior.covariances[j]
        B = V - V @ np.linalg.inv(V + np.diag(s)) @ V
        m = (q[:, [j]] * b[:, j]).sum(axis=0) / q[:, j].sum()
        outer = sum(q[i, j] * (np.outer(b[i, j] - m, b[i, j] - m) + B) for i in range(12)) / q[:, j].sum()
        np.testing.assert_allclose(found.means[j], m, atol=1e-7)
        np.testing.assert_allclose(found.covariances[j], outer, atol=1e-7)
    np.testing.assert_allclose(Posterior(prior, s).mean(u), np.einsum("ij,ijr->ir", q, b), atol=1e-7)


@given(seed=seeds, quiet=st.booleans())
@properties
def test_no_step_lowers_the_likelihood_whatever_noise_is_lacking(seed, quiet):
    rng = np.random.default_rng(seed)
    prior, s = mixture(rng, 3, 2), np.array([rng.uniform(0.1, 1.0), 0.0 if quiet else 0.5])
    u, last = rng.normal(size=(60, 2)), -np.inf
    for _ in range(6):
        prior, likelihood = em_step(prior, u, s)
        assert likelihood >= last - 1e-6
        last = likelihood


@given(seed=seeds)
@properties
def test_halves_have_the_mean_and_covariance_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    prior, u = mixture(rng, 2, 3), rng.normal(size=(80, 3))
    both, three = split(prior, u, np.full(3, 0.3), 4), split(prior, u, np.full(3, 0.3), 3)
    for whole, parts in ((prior, both), (prior, three)):
        assert parts.weights.sum() == pytest.approx(1.0)
        mean = [mixed.weights @ mixed.means for mixed in (whole, parts)]
        second = [np.einsum("k,krs->rs", m.weights, m.covariances + m.means[:, :, None] * m.means[:, None, :]) for m in (whole, parts)]
        np.testing.assert_allclose(mean[1], mean[0], atol=1e-12)
        np.testing.assert_allclose(second[1], second[0], atol=1e-12)
        assert np.linalg.eigvalsh(parts.covariances).min() > -1e-12
    assert (both.size, three.size) == (4, 3)


def test_an_atom_keeps_the_covariance_of_the_others_given_it():
    V = np.array([[0.01, 0.05], [0.05, 1.0]])  # narrow beside noise of variance 0.5 in the first attribute, not in the second
    found = with_atoms(Mixture(np.ones(1), np.zeros((1, 2)), V[None]), np.array([0.5, 0.5]), np.eye(2)).covariances[0]
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, 1.0 - 0.05**2 / 0.01]], atol=1e-15)
    wide = np.array([[NARROW * 0.51, 0.0], [0.0, 1.0]])
    same = with_atoms(Mixture(np.ones(1), np.zeros((1, 2)), wide[None]), np.array([0.5, 0.5]), np.eye(2)).covariances[0]
    np.testing.assert_array_equal(same, wide)


def test_a_heap_is_found_as_an_atom_and_rebuilt_better_for_it():
    rng = np.random.default_rng(3)
    n, s = 6000, np.array([0.05])
    x = np.where(rng.random(n) < 0.4, 0.0, 2.0 + rng.normal(size=n))[:, None]
    u = x + np.sqrt(s) * rng.normal(size=(n, 1))
    start = Mixture(np.ones(1), u.mean(axis=0)[None], np.array([[[u.var() - s[0]]]]))
    found = learn(start, u, s, np.eye(1), 8)
    atoms = found.covariances[:, 0, 0] < 1e-12
    assert found.weights[atoms].sum() == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / n) + 0.02)
    assert np.abs(found.means[atoms]).max() < 0.1  # beside noise of 0.22
    exact = Posterior(Mixture(np.array([0.4, 0.6]), np.array([[0.0], [2.0]]), np.array([[[0.0]], [[1.0]]])), s).mean(u)
    assert ((Posterior(found, s).mean(u) - exact) ** 2).mean() < 0.1 * ((Posterior(start, s).mean(u) - exact) ** 2).mean()


# -- copies boiled down to one -----------------------------------------------------------------------------------------


@given(seed=seeds, k=st.integers(1, 3), rank=st.integers(1, 4))
@properties
def test_dense_noise_of_one_shape_is_combined_as_the_levels_say(seed, k, rank):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, min(rank, k)))
    Sigma, K_0 = root @ root.T, covariance(rng, 2)
    W = generalised_least_squares(np.kron(Sigma, K_0), 2)
    _, v = best_unbiased_combination(Sigma)
    np.testing.assert_allclose(W @ np.tile(np.eye(2), (k, 1)), np.eye(2), atol=1e-8)
    np.testing.assert_allclose(W @ np.kron(Sigma, K_0) @ W.T, v * K_0, atol=1e-7 * np.abs(np.kron(Sigma, K_0)).max())


def test_a_stated_covariance_of_mixed_shapes_is_used(tmp_path):
    """Copy 1 hides the first attribute, copy 2 the second: whoever weighs them rightly has both."""
    rng = np.random.default_rng(4)
    X = np.sign(rng.normal(size=(400, 2))) + 0.2 * rng.normal(size=(400, 2))
    K_Z = np.diag([4.0, 0.05, 0.05, 4.0])
    Z = rng.multivariate_normal(np.zeros(4), K_Z, 400)
    np.savetxt(tmp_path / "K_Z.csv", K_Z, delimiter=",")
    for name, values in {"x": X, "y1": X + Z[:, :2], "y2": X + Z[:, 2:]}.items():
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",", header="a,b", comments="")
    scheme = {"name": "published", "copies": ["y1.csv", "y2.csv"], "levels": [1.0, 1.0], "aligned": True, "law": {"covariance": "K_Z.csv"}}
    (tmp_path / "s.yaml").write_text(
        f"schema: 1\ntitle: t\nseed: 1\ndata: {{source: x.csv}}\nschemes: [{scheme!r}]\nknowledge: [perfect]\ncoalitions: [all]\n"
        "attacks: [llse, mixture-estimate]\nexpect: []\n".replace("True", "true"), encoding="utf-8"
    )  # fmt: skip
    found = auditor.run(tmp_path / "s.yaml").frame().query("metric == 'normalized_error' and attribute == '*'").set_index("attack")
    assert found.loc["mixture-estimate", "status"] == "ok"
    assert found.loc["mixture-estimate", "value"] < found.loc["llse", "value"] < 0.06


# -- the attacks it contains -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["independent", "correlated", "corner-wave"])
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 40}}], ids=str)
def test_one_component_is_the_bayes_estimate_to_rounding(scheme, knowledge):
    X = table(90, [400.0, 90.0, 25.0], mean=1e6)
    release = auditor.perturb(np.column_stack([X, X.sum(axis=1)]), scheme, [0.3, 1.0], seed=4)  # a total beside its parts: K_X is singular
    bayes = auditor.attack("bayes-estimate", release, knowledge=knowledge)
    found = auditor.attack("mixture-estimate", release, knowledge=knowledge, components=1)
    np.testing.assert_allclose(found.values, bayes.values, rtol=0, atol=1e-6)  # of 1e6


def test_on_normal_data_it_finds_one_component_and_is_the_llse():
    release = auditor.perturb(
        np.random.default_rng(5).normal(size=(3000, 2)) @ np.array([[2.0, 1.0], [0.0, 1.0]]), "independent", [0.5], seed=6
    )
    llse = auditor.attack("llse", release)
    np.testing.assert_allclose(auditor.attack("mixture-estimate", release).values, llse.values, atol=1e-8)


def test_copies_that_give_the_value_away_are_taken_as_they_are():
    X = table(300, [9.0, 1.0])
    release = auditor.perturb(X, "linearly-dependent", [0.5, 1.0], seed=1)
    np.testing.assert_allclose(auditor.attack("mixture-estimate", release).values, X, atol=1e-7)


# -- a true mixture: the exact posterior mean --------------------------------------------------------------------------


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


@pytest.mark.slow
def test_its_excess_is_a_ten_thousandth_where_all_that_it_learns_from_is_held():
    assert excess(20_000, 7) < 5e-4


# -- what it is for ----------------------------------------------------------------------------------------------------


def curve(n, seed=0):
    """Three attributes on a bent line."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-2.0, 2.0, n)
    return np.column_stack([t, t**2, np.sin(2.5 * t)]) / [1.15, 1.2, 0.7] + 0.1 * rng.normal(size=(n, 3))


def test_on_a_curve_it_leaves_half_of_what_one_attribute_at_a_time_leaves():
    release = auditor.perturb(curve(4000), "corner-wave", [0.3], seed=2)
    left = {name: auditor.attack(name, release).normalized_error for name in ("mixture-estimate", "llse")}
    alone = auditor.attack("map-estimate", release, estimate="mean").normalized_error
    assert left["mixture-estimate"] < 0.145
    assert left["mixture-estimate"] < 0.7 * alone < alone < left["llse"]


def test_a_second_corner_wave_copy_changes_no_estimate_and_a_second_fresh_one_does(monkeypatch):
    learnt = []
    monkeypatch.setattr(attacks.mixture_estimate, "learn", lambda *given: learnt.append(1) or learn(*given))
    wave, fresh = (auditor.perturb(curve(1500), scheme, [0.3, 0.5], seed=3) for scheme in ("corner-wave", "correlated"))
    best, pooled = (auditor.attack("mixture-estimate", wave, coalition=c).values for c in ([1], [1, 2]))
    np.testing.assert_array_equal(pooled, best)
    best, pooled = (auditor.attack("mixture-estimate", fresh, coalition=c).distortion for c in ([1], [1, 2]))
    assert pooled < 0.85 * best
    learnt.clear()
    data = {"source": "components", "shapes": ["bimodal"], "rows": 300}
    scenario = {"schema": 1, "title": "t", "seed": 1, "data": data, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.5, 0.4]}],
                "knowledge": ["perfect"], "coalitions": ["subsets"], "attacks": ["mixture-estimate"], "replicates": 5, "expect": []}  # fmt: skip
    auditor.run(scenario)
    assert len(learnt) == 5 * 3  # seven coalitions, three combinations


def test_uniform_noise_is_refused_with_a_reason():
    release = auditor.perturb(table(50, [1.0, 2.0]), "independent", [0.5], distribution="uniform", seed=1)
    with pytest.raises(auditor.AuditorError, match="learnt under Gaussian noise, and this noise is uniform"):
        auditor.attack("mixture-estimate", release)


def test_a_column_twice_and_a_total_stay_what_they_are():
    X = curve(600)
    X = np.column_stack([X, X[:, 0], X.sum(axis=1)])
    values = auditor.attack("mixture-estimate", auditor.perturb(X, "corner-wave", [0.4], seed=5)).values
    np.testing.assert_allclose(values[:, 3], values[:, 0], atol=1e-7)
    np.testing.assert_allclose(values[:, :3].sum(axis=1), values[:, 4], atol=1e-7)


def test_of_many_attributes_and_few_rows_it_does_not_try_more_than_a_normal():
    """Two clusters in twelve attributes: 91 numbers a component, so 700 rows teach one and no more, and 2,000 teach two."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 12)) + 3.0 * np.where(rng.random((2000, 1)) < 0.5, 1.0, -1.0)
    few, many = (auditor.perturb(X[:rows], "independent", [3.0], seed=7) for rows in (700, 2000))
    np.testing.assert_allclose(auditor.attack("mixture-estimate", few).values, auditor.attack("llse", few).values, atol=1e-6)
    assert auditor.attack("mixture-estimate", many).distortion < 0.95 * auditor.attack("llse", many).distortion

"""Likelihoods and posteriors under Laplace and lattice noise: by hand, against sums written out, and in the limits where they are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import auditor
from auditor.adversary.density import Histogram
from auditor.adversary.given import ExactMoments
from auditor.adversary.knowledge import Perfect
from auditor.adversary.view import View
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_density import Distribution, NoiseDensity
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor_attacks._channel import Product, log_linear
from auditor_attacks._posterior import histogram_mean, histogram_mode
from auditor_attacks.distribution_analysis import median, shortest_interval
from auditor_attacks.map_estimate import MaximumAPosteriori, posterior_estimate

properties = settings(max_examples=25, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
LATTICE_LAWS: tuple[Distribution, ...] = ("geometric", "skellam")
PRODUCT_LAWS: tuple[Distribution, ...] = ("laplace", *LATTICE_LAWS)


def independent(distribution: Distribution, *stds: float) -> Product:
    return Product(tuple(NoiseDensity(distribution, std) for std in stds), tuple(range(len(stds))))


def naive_likelihood(channel: Product, copies: np.ndarray, points: np.ndarray) -> np.ndarray:
    """``Π_i f_i(y_i − x)``, number by number."""
    return np.array(
        [
            [
                np.prod(
                    [
                        float(f.pdf(np.array(y - x)))
                        for f, y in zip(channel.densities, row, strict=True)
                    ]
                )
                for x in points
            ]
            for row in copies
        ]
    )


def draws(rng: np.random.Generator, noise: NoiseDensity, n: int) -> np.ndarray:
    """Noise by inversion of its distribution function, or of the running sum of its probabilities."""
    if not noise.on_lattice:
        return rng.laplace(scale=noise.std / np.sqrt(2.0), size=n)
    k = np.arange(-400, 401) * noise.unit
    return rng.choice(k, size=n, p=noise.pdf(k) / noise.pdf(k).sum())


def test_mass_and_mean_of_an_exponential_by_hand() -> None:
    """``e^{−x}`` on [0, 1]: mass 1 − 1/e, mean 1 − 1/(e − 1); flat: mass 2, mean 2; so steep that only its foot counts."""
    mass, mean = log_linear(
        np.array([[0.0, 1.0], [1.0, 3.0], [0.0, 1.0]]),
        np.array([[0.0, -1.0], [0.0, 0.0], [0.0, -1e6]]),
    )
    np.testing.assert_allclose(mass[:, 0], [1 - np.exp(-1), 2.0, 1e-6], rtol=1e-12)
    np.testing.assert_allclose(mean[:, 0], [1 - 1 / (np.e - 1), 2.0, 1e-6], rtol=1e-9)


def test_laplace_noise_on_two_bins_by_hand() -> None:
    """Scale 1, y = 0, bins [−1, 0] and [0, 2]: averages 1 − e⁻¹ and (1 − e⁻²)/2, both up to one factor; means ∓(1 − 1/(e − 1)), …"""
    channel, edges = independent("laplace", np.sqrt(2.0)), np.array([-1.0, 0.0, 2.0])
    likelihood, inside = channel.within(np.zeros((1, 1)), edges)
    np.testing.assert_allclose(likelihood[0], [1 - np.exp(-1), (1 - np.exp(-2)) / 2], rtol=1e-12)
    np.testing.assert_allclose(
        inside[0], [-(1 - 1 / (np.e - 1)), (1 - 3 * np.exp(-2)) / (1 - np.exp(-2))], rtol=1e-12
    )


def test_a_laplace_prior_under_laplace_noise_of_its_own_scale() -> None:
    """Both of scale 1, y > 0: the posterior is e⁻ʸ between 0 and y, falling as e^{−2t} outside on both sides: so its mean is y/2."""
    edges = np.linspace(-40.0, 40.0, 16_001)
    cdf = np.where(edges > 0, 1 - 0.5 * np.exp(-np.abs(edges)), 0.5 * np.exp(-np.abs(edges)))
    prior, y = Histogram(edges, np.diff(cdf)), np.array([[0.0], [0.7], [3.0], [-5.0]])
    found = histogram_mean(prior, independent("laplace", np.sqrt(2.0)), y)
    np.testing.assert_allclose(found, y[:, 0] / 2, atol=1e-5)


@pytest.mark.parametrize("distribution", LATTICE_LAWS)
def test_a_coin_under_lattice_noise_by_hand(distribution: Distribution) -> None:
    """x is 0 or 1, as likely; y = 2: odds f(1) : f(2), whatever the law; bins of one unit hold one point each."""
    channel, noise = independent(distribution, 1.3), NoiseDensity(distribution, 1.3)
    f1, f2 = noise.pdf(np.array([1.0, 2.0]))
    prior = Histogram(np.array([-0.5, 0.5, 1.5]), np.array([0.5, 0.5]))
    assert histogram_mean(prior, channel, np.array([[2.0]]))[0] == pytest.approx(
        f1 / (f1 + f2), rel=1e-9
    )
    values, shares = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    assert posterior_estimate(values, shares, channel, np.array([[2.0]]), False)[
        0
    ] == pytest.approx(f1 / (f1 + f2), rel=1e-9)
    assert posterior_estimate(values, shares, channel, np.array([[2.0]]), True)[0] == 1.0


@given(seed=seeds, copies=st.integers(1, 3))
@properties
def test_laplace_posteriors_are_those_on_a_fine_grid(seed: int, copies: int) -> None:
    rng = np.random.default_rng(seed)
    channel = independent("laplace", *rng.uniform(0.1, 3.0, copies))
    edges = np.sort(rng.normal(size=7)) * 2.0 + 0.05 * np.arange(7)
    prior, y = Histogram(edges, rng.dirichlet(np.ones(6))), rng.normal(size=(2, copies)) * 3.0
    fine = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(4000) + 0.5) / 4000
    log_f = channel.log_likelihood(y, fine.ravel())
    np.testing.assert_allclose(
        np.exp(log_f[:1, ::400]), naive_likelihood(channel, y[:1], fine.ravel()[::400]), rtol=1e-9
    )
    weights = (
        np.exp(log_f - log_f.max(axis=1, keepdims=True)).reshape(2, 6, 4000) * prior.mass[:, None]
    )
    mean = (weights * fine).sum(axis=(1, 2)) / weights.sum(axis=(1, 2))
    np.testing.assert_allclose(histogram_mean(prior, channel, y), mean, atol=2e-3)
    mode = histogram_mode(prior, channel, y)
    log_posterior = log_f + np.log(np.repeat(prior.density, 4000))
    beside = np.array([mode - 1e-9, mode, mode + 1e-9]).T
    place = np.searchsorted(edges, beside) - 1
    inside = (place >= 0) & (place < 6)
    at_mode = np.where(
        inside,
        channel.log_likelihood(y, beside) + np.log(prior.density)[np.clip(place, 0, 5)],
        -np.inf,
    ).max(axis=1)
    assert (at_mode >= log_posterior.max(axis=1) - 1e-6).all()


@given(
    seed=seeds,
    distribution=st.sampled_from(LATTICE_LAWS),
    copies=st.integers(1, 3),
    unit=st.sampled_from([1.0, 0.25]),
)
@properties
def test_lattice_posteriors_are_the_sums_written_out(
    seed: int, distribution: Distribution, copies: int, unit: float
) -> None:
    rng = np.random.default_rng(seed)
    channel = Product(
        tuple(
            NoiseDensity(distribution, std * unit, unit) for std in rng.uniform(0.3, 4.0, copies)
        ),
        tuple(range(copies)),
    )
    values = np.arange(-3, 6) * unit
    shares, y = rng.dirichlet(np.ones(9)), rng.integers(-8, 9, size=(4, copies)) * unit
    joint = naive_likelihood(channel, y, values) * shares
    mean = joint @ values / joint.sum(axis=1)
    np.testing.assert_allclose(
        posterior_estimate(values, shares, channel, y, False), mean, atol=1e-9
    )
    binned = Histogram(np.arange(-3.5, 6) * unit, shares)
    np.testing.assert_allclose(histogram_mean(binned, channel, y), mean, atol=1e-9)
    best = values[joint.argmax(axis=1)]
    np.testing.assert_array_equal(posterior_estimate(values, shares, channel, y, True), best)
    np.testing.assert_allclose(histogram_mode(binned, channel, y), best, atol=1e-9)


@pytest.mark.parametrize("distribution", PRODUCT_LAWS)
@pytest.mark.parametrize("copies", [1, 2])
def test_wide_bins_on_a_lattice_and_faint_noise(distribution: Distribution, copies: int) -> None:
    """Noise far narrower than a bin leaves the copy itself; wide noise on wide bins is what the bins' points add up to."""
    prior = Histogram(np.linspace(-10.5, 49.5, 7), np.full(6, 1 / 6))
    rng = np.random.default_rng(3)
    x = rng.integers(-9, 49, size=200).astype(float)
    faint = independent(distribution, *[0.02] * copies)
    y = x[:, None] + np.zeros(copies)
    assert np.abs(histogram_mean(prior, faint, y) - x).max() < 0.03
    assert np.abs(histogram_mode(prior, faint, y) - x).max() < 1e-9
    wide, prior = (
        independent(distribution, *[12.0] * copies),
        Histogram(np.linspace(-10.5, 49.5, 21), np.full(20, 1 / 20)),
    )
    y = np.rint(x[:, None] + 12.0 * rng.normal(size=(200, copies)))
    points = np.arange(-10, 50) if distribution != "laplace" else np.linspace(-10.5, 49.5, 6001)
    f = np.exp(wide.log_likelihood(y, points.astype(float)))
    exact = f @ points / f.sum(axis=1)
    # A straight logarithm over a bin of 3 where it bends by 1/v: 3²/8v nats, and as a share of the
    # bin's mean's way.
    assert np.abs(histogram_mean(prior, wide, y) - exact).max() < 0.05


def view(law: KroneckerNoise, copies: list[np.ndarray], X: np.ndarray) -> View:
    K = np.atleast_2d(np.cov(X.T, bias=True))

    def shares(j: int) -> tuple[np.ndarray, np.ndarray]:
        values, counts = np.unique(X[:, j], return_counts=True)
        return values, counts / len(X)

    return View(
        attributes=tuple(f"x{j}" for j in range(X.shape[1])), copies=tuple(range(1, len(copies) + 1)), levels=tuple(np.diag(law.level_covariance)),
        knowledge=Perfect(), law=law, centre=X.mean(axis=0), released=Moments.of(np.hstack(copies) - np.tile(X.mean(axis=0), len(copies))),
        given=ExactMoments(X.mean(axis=0), K, shares),
    )  # fmt: skip


def estimates(
    law: KroneckerNoise, copies: list[np.ndarray], X: np.ndarray, **parameters: Any
) -> np.ndarray:
    attack = MaximumAPosteriori(MaximumAPosteriori.Parameters(**parameters))
    return attack.fit(view(law, copies, X), [copies]).rows(copies)


def noisy(X: np.ndarray, law: KroneckerNoise, seed: int) -> list[np.ndarray]:
    """Copies under independent noise of a product law."""
    rng = np.random.default_rng(seed)
    levels = np.diag(law.level_covariance)
    return [
        X + np.column_stack([draws(rng, law.density_at(v, j), len(X)) for j in range(X.shape[1])])
        for v in levels
    ]


@pytest.mark.parametrize("distribution", PRODUCT_LAWS)
def test_two_independent_copies_tell_more_than_their_better_one_and_one_process_does_not(
    distribution: Distribution,
) -> None:
    rng = np.random.default_rng(5)
    X = np.rint(8.0 * rng.gamma(1.5, size=(2500, 1)))
    levels, K_0 = np.array([30.0, 50.0]), np.eye(1)
    law = KroneckerNoise(np.diag(levels), K_0, distribution=distribution, units=np.ones(1))
    copies = noisy(X, law, 6)
    one, both = (law.of(held) for held in ([1], [1, 2]))
    process = KroneckerNoise(
        np.minimum.outer(levels, levels),
        K_0,
        distribution=distribution,
        one_process=True,
        units=np.ones(1),
    )
    for parameters in (
        {"prior": "known", "estimate": "mean"},
        {"prior": "histogram", "estimate": "mean"},
    ):
        alone, pooled = (
            estimates(each, copies[: each.copies], X, **parameters) for each in (one, both)
        )
        gains = (alone - X) ** 2 - (pooled - X) ** 2
        assert gains.mean() > 4 * gains.std() / np.sqrt(len(X))
        np.testing.assert_array_equal(estimates(process, copies, X, **parameters), alone)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"prior": p, "estimate": e} for p in ("gaussian", "histogram", "kde", "known") for e in ("mean", "mode")],
                         ids=lambda p: "-".join(p.values()))  # fmt: skip
@pytest.mark.parametrize("distribution", PRODUCT_LAWS)
def test_every_prior_beats_the_copy_and_faint_noise_leaves_the_value(
    distribution: Distribution, parameters: dict[str, str]
) -> None:
    X = np.rint(np.random.default_rng(7).gamma(2.0, 6.0, size=(800, 2)))
    X[:, 1] += X[:, 0]
    law = KroneckerNoise(np.diag([80.0]), np.eye(2), distribution=distribution, units=np.ones(2))
    copies = noisy(X, law, 8)
    assert ((estimates(law, copies, X, **parameters) - X) ** 2).mean() < 0.95 * (
        (copies[0] - X) ** 2
    ).mean()
    faint = KroneckerNoise(np.diag([1e-8]), np.eye(2), distribution=distribution, units=np.ones(2))
    np.testing.assert_allclose(estimates(faint, [X], X, **parameters), X, atol=0.01)


def test_under_heavy_tailed_noise_the_best_estimate_is_not_linear() -> None:
    """Normal data, Laplace noise of its variance: the linear estimate leaves ½; 20,000 draws tell 2 % apart at over four errors."""
    X = np.random.default_rng(9).normal(size=(20_000, 1))
    law = KroneckerNoise(np.eye(1), np.eye(1), distribution="laplace")
    copies = noisy(X, law, 10)
    best = estimates(law, copies, X, prior="gaussian", estimate="mean")
    gain = (copies[0] / 2 - X) ** 2 - (best - X) ** 2
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(X))


@pytest.mark.parametrize("distribution", PRODUCT_LAWS)
def test_intervals_and_medians_under_product_laws(distribution: Distribution) -> None:
    """From the right prior: 90 % intervals hold 90 % of the values or more (a lattice has no smaller steps), medians are among them."""
    rng = np.random.default_rng(11)
    shares = rng.dirichlet(np.ones(30))
    prior, channel = Histogram(np.arange(-0.5, 30), shares), independent(distribution, 3.0, 4.0)
    x = rng.choice(30, size=4000, p=shares).astype(float)
    if distribution == "laplace":
        x += rng.uniform(-0.5, 0.5, size=len(x))
    y = np.column_stack([x + draws(rng, noise, len(x)) for noise in channel.densities])
    low, high = shortest_interval(prior, channel, y, 0.9)
    held = np.mean((x >= low) & (x <= high))
    # Three binomial errors; a bin of a lattice that is cut counts wholly or not at all, as its
    # point falls.
    assert abs(held - 0.9) < (3 * np.sqrt(0.09 / 4000) if distribution == "laplace" else 0.05)
    middle = median(prior, channel, y)
    assert ((middle >= low - 1e-9) & (middle <= high + 1e-9)).all()
    assert (
        np.mean(x < middle) - 3 * np.sqrt(0.25 / 4000)
        < 0.5
        < np.mean(x <= middle) + 3 * np.sqrt(0.25 / 4000)
    )


@pytest.mark.parametrize("distribution", ["gaussian", "laplace", "geometric", "skellam", "uniform"])
def test_log_densities_are_logarithms_of_densities_and_go_on_beyond_them(
    distribution: Distribution,
) -> None:
    noise = NoiseDensity(distribution, 2.5)
    t = np.arange(-30.0, 31.0)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(noise.log_pdf(t), np.log(noise.pdf(t)), rtol=1e-9)
    if distribution != "uniform":
        far = noise.log_pdf(np.array([1e3, 1.001e3, 1e5]))
        assert np.isfinite(far).all()
        assert (np.diff(far) < 0).all()


def test_skellam_probabilities_far_out_and_of_huge_variance() -> None:
    """Beside 1e4 of (k, v) the expansion is scipy's to nine digits; at v = 1e10, where scipy has none, it is normal: −k²/2v − ½ log 2πv."""
    from scipy.special import ive

    k = np.array([0.0, 300.0, 900.0])
    np.testing.assert_allclose(
        NoiseDensity("skellam", np.sqrt(1.01e4)).log_pdf(k), np.log(ive(k, 1.01e4)), rtol=1e-9
    )
    huge = NoiseDensity("skellam", 1e5).log_pdf(np.array([0.0, 1e5]))
    np.testing.assert_allclose(
        huge, np.array([0.0, -0.5]) - 0.5 * np.log(2 * np.pi * 1e10), atol=1e-9
    )


def test_skellam_tails_of_large_variance_are_the_non_central_chi_square_s() -> None:
    """Just beyond 1e4 the saddlepoint takes over: 1e-6 of itself at most, out to ten deviations; of huge variance it takes no time."""
    from scipy.special import chndtr

    v, k = 1.0001e4, np.array([0.0, 10.0, 300.0, 1000.0])
    noise = NoiseDensity("skellam", np.sqrt(v))
    np.testing.assert_allclose(noise.cdf(-k - 0.5), chndtr(v, 2 * (k + 1), v), rtol=1e-6)
    assert NoiseDensity("skellam", 1e6).cdf(np.array([-1e6]))[0] == pytest.approx(
        0.158655, abs=1e-6
    )


# -- whole audits
# -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["geometric"])
def test_no_posterior_gains_from_a_second_copy_of_one_process_and_each_does_from_a_fresh_one(
    noise: str,
) -> None:
    """On whole numbers, with the exact posterior among the attacks; the gains of fresh copies show that so few records would tell."""
    rng = np.random.default_rng(12)
    values = {
        "x": (5.0 * rng.gamma(2.0, 2.0, 300)).round().tolist(),
        "w": (40.0 * rng.random(300)).round().tolist(),
    }
    attacks = [
        {"id": "exact mean", "name": "map-estimate", "prior": "known", "estimate": "mean"},
        {"id": "exact mode", "name": "map-estimate", "prior": "known"},
        {"id": "normal", "name": "map-estimate", "prior": "gaussian", "estimate": "mean"},
        {"id": "learnt", "name": "udr", "prior": "reconstructed"}, "distribution-analysis", "sample-estimate",
    ]  # fmt: skip
    result = auditor.run({
        "seed": 5, "data": {"source": "inline", "values": values}, "attacks": attacks, "coalitions": [[1], "all"],
        "schemes": [{"name": f"{noise}-multilevel", "levels": [0.3, 0.4]}, {"name": noise, "levels": [0.3, 0.4]}],
        "knowledge": ["perfect", {"known-sample": 100}], "replicates": 5,
    })  # fmt: skip
    found = [
        r
        for r in result.measurements
        if r.metric == "collusion_gain" and r.attribute == "*" and len(r.coalition) == 2
    ]
    gains: dict[tuple[str, str, str], list[float]] = {}
    for r in found:
        gains.setdefault((r.scheme, r.attack, r.knowledge), []).append(r.value)
    assert {attack for _, attack, _ in gains} == {
        "exact mean",
        "exact mode",
        "normal",
        "learnt",
        "distribution-analysis",
        "sample-estimate",
    }
    for (scheme, attack, knowledge), gain in gains.items():
        assert np.abs(gain).max() < 1e-9 if scheme != noise else np.mean(gain) > 0.1, (
            scheme,
            attack,
            knowledge,
        )


@pytest.mark.slow
def test_the_exact_posterior_leaves_least_of_all_that_look_at_one_attribute() -> None:
    """Counted over 4,000 records: paired differences of squared errors, four standard errors apart from each other attack's."""
    rng = np.random.default_rng(13)
    X = np.rint(rng.gamma(1.0, 9.0, size=(4000, 1)))
    law = KroneckerNoise(np.diag([60.0]), np.eye(1), distribution="geometric", units=np.ones(1))
    copies = noisy(X, law, 14)
    exact = estimates(law, copies, X, prior="known", estimate="mean")
    for other in (
        estimates(law, copies, X, prior="gaussian", estimate="mean"),
        estimates(law, copies, X, prior="known", estimate="mode"),
    ):
        excess = (other - X) ** 2 - (exact - X) ** 2
        assert excess.mean() > 4 * excess.std() / np.sqrt(len(X))


def test_who_does_not_know_the_distribution_or_meets_too_many_values_is_told_so() -> None:
    release = auditor.perturb(
        np.random.default_rng(1).normal(size=(12_000, 1)), "independent", [0.5], seed=1
    )
    with pytest.raises(
        auditor.AuditorError,
        match="12,000 distinct values; exact posteriors go over at most 10,000",
    ):
        auditor.attack("map-estimate", release, prior="known")
    with pytest.raises(
        auditor.AuditorError, match="distribution of every attribute's values, which estimated"
    ):
        auditor.attack(
            "map-estimate", release, knowledge={"estimated": {"rows": 50}}, prior="known"
        )


@pytest.mark.parametrize("distribution", ["gaussian", "uniform"])
def test_the_exact_posterior_under_gaussian_and_uniform_noise_by_hand(distribution: str) -> None:
    """x is ±1, as likely: ``tanh(y/v)`` under Gaussian noise of variance v; uniform noise on ±√(3v) rules one out or neither."""
    X = np.tile([1.0, -1.0], 100)[:, None]
    release = auditor.perturb(X, "independent", [0.5], seed=2, distribution=distribution)
    found, y = (
        np.asarray(each)[:, 0]
        for each in (
            auditor.attack("map-estimate", release, prior="known", estimate="mean").values,
            release.copies[0],
        )
    )
    reach = np.sqrt(1.5)
    exact = (
        np.tanh(y / 0.5)
        if distribution == "gaussian"
        else np.where(np.abs(y) <= reach - 1, 0.0, np.sign(y))
    )
    np.testing.assert_allclose(found, exact, atol=1e-9)


@pytest.mark.slow
def test_the_posterior_given_the_best_copy_is_that_given_both_copies_of_one_process() -> None:
    """Counted, not assumed: among 200,000 records with the same two copies, values are as often as the best copy's posterior has it.

    χ² over all pairs of copies with enough records, refused at 1 in 10,000; the same count refuses
    copies drawn afresh."""
    values, shares = np.arange(3.0), np.array([0.5, 0.3, 0.2])
    X = np.random.default_rng(15).choice(values, p=shares, size=(200_000, 1))

    def chance(scheme: str) -> float:
        release = auditor.perturb(X, scheme, [1.5, 2.5], noise={"variance": 1.0}, seed=16)
        best, other = (np.asarray(copy)[:, 0] for copy in release.copies)
        f = NoiseDensity("geometric", np.sqrt(1.5)).pdf(best[:, None] - values) * (
            np.bincount(X[:, 0].astype(int)) / len(X)
        )
        posterior = f / f.sum(axis=1, keepdims=True)
        pairs, place = np.unique(np.column_stack([best, other]), axis=0, return_inverse=True)
        place, P = place.ravel(), len(pairs)
        counts = np.bincount(3 * place + X[:, 0].astype(int), minlength=3 * P).reshape(P, 3)
        expected = np.column_stack([np.bincount(place, column, P) for column in posterior.T])
        enough = (expected >= 10).all(axis=1)
        assert enough.sum() > 20
        return float(chi2.sf(((counts - expected) ** 2 / expected)[enough].sum(), 2 * enough.sum()))

    assert chance("geometric-multilevel") > 1e-4
    assert chance("geometric") < 1e-12

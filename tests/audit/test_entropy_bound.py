"""The least error that any attack can have: by hand, against naive integrals, at its limits, and never above what an attack reaches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.audit.measures.entropy_bound import entropy_power, given_others, least_errors
from auditor.data.source import NORMAL, RecordLaw
from auditor.data.sources.components import SHAPES, Intervals
from auditor.errors import NotApplicable
from auditor.schemes.base.noise_density import Distribution, NoiseDensity
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise

few = settings(max_examples=15, deadline=None, derandomize=True)
OTHERS = {name: shape for name, shape in SHAPES.items() if name != "normal"}


def fresh(
    levels: list[float], distribution: Distribution = "gaussian", K_0: np.ndarray | None = None
) -> KroneckerNoise:
    return KroneckerNoise(
        np.diag(levels), np.eye(1) if K_0 is None else K_0, distribution=distribution
    )


def least(shape: str, law: KroneckerNoise) -> float:
    """Of an attribute of variance 1, from all copies."""
    copies = tuple(range(1, law.copies + 1))
    return float(
        least_errors(RecordLaw({"x": SHAPES[shape]}), ["x"], np.eye(1), law, [copies])[0, 0]
    )


# -- by hand
# -----------------------------------------------------------------------------------------------------------


def test_a_normal_s_entropy_power_is_its_variance_and_of_any_other_law_less() -> None:
    assert entropy_power(0.5 * np.log(2 * np.pi * np.e * 7.0)) == pytest.approx(7.0, rel=1e-12)
    # uniform on a width of 3, variance 0.75
    assert entropy_power(np.log(3.0)) == pytest.approx(9.0 / (2 * np.pi * np.e), rel=1e-12)
    loud = [1e4]
    by_hand = {  # e^{2h}/2πe of variance 1: h = ½ ln 12, 1, 1 + ½ ln 2
        "uniform": 12 / (2 * np.pi * np.e), "exponential": np.e**2 / (2 * np.pi * np.e), "laplace": 2 * np.e**2 / (2 * np.pi * np.e),
    }  # fmt: skip
    for shape, power in by_hand.items():
        assert least(shape, fresh(loud)) == pytest.approx(power, rel=3e-4)


def test_the_survey_s_example_by_hand() -> None:
    """[0, 1] or [5, 6] under noise on [−1, 1]: h(X) = h(Z) = ln 2, and Y has a trapezium about either, h(Y) = 2 ln 2 + ¼.

    So h(X|Y) = −¼ and no error is below e^{−½}/(2πe) = 0.0355; the posterior mean's is 1/16,
    whatever the attack."""
    noise = fresh([1.0], "uniform", np.array([[1 / 3]]))
    law, variance = Intervals(Intervals.Parameters()).law(), 1 / 12 + 6.25
    found = float(least_errors(law, ["x"], np.array([[variance]]), noise, [(1,)])[0, 0])
    assert found == pytest.approx(np.exp(-0.5) / (2 * np.pi * np.e), rel=5e-4)
    assert 1.7 < (1 / 16) / found < 1.8


# -- normal records and noise: the best linear error, met
# --------------------------------------------------------------


def naive_llse(K_X: np.ndarray, K_Z: np.ndarray) -> np.ndarray:
    """``K_X − K_X Hᵀ (H K_X Hᵀ + K_Z)⁻¹ H K_X``, li2012 (7) with the inverse as printed."""
    H = np.tile(np.eye(len(K_X)), (len(K_Z) // len(K_X), 1))
    return np.diag(K_X - K_X @ H.T @ np.linalg.inv(H @ K_X @ H.T + K_Z) @ H @ K_X)


def test_of_normal_records_and_noise_it_is_the_best_linear_error() -> None:
    rng = np.random.default_rng(3)
    A, B, C = rng.standard_normal((3, 3, 3))
    K_X, levels = A @ A.T + np.eye(3), np.array([0.2, 1.0, 3.0])
    Sigma = np.minimum.outer(levels, levels)
    G = rng.standard_normal((9, 9))
    for law in (
        KroneckerNoise(np.diag(levels), B @ B.T), KroneckerNoise(Sigma, K_X, follows_data=True), KroneckerNoise(Sigma, C @ C.T),
        DenseNoise(G @ G.T + np.eye(9), 3),
    ):  # fmt: skip
        coalitions = [(1,), (3,), (1, 3), (1, 2, 3)]
        found = least_errors(RecordLaw(), ["a", "b", "c"], K_X, law, coalitions)
        for row, coalition in zip(found, coalitions, strict=True):
            np.testing.assert_allclose(
                row, naive_llse(K_X, law.of(coalition).covariance), rtol=1e-9
            )


@pytest.mark.parametrize("level", [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3])
def test_the_integral_has_the_closed_form_of_a_normal(level: float) -> None:
    assert least("normal", fresh([level])) == pytest.approx(level / (1 + level), rel=1e-6)
    assert least("normal", fresh([2 * level, 2 * level])) == pytest.approx(
        level / (1 + level), rel=1e-6
    )


# -- against naive integrals
# -------------------------------------------------------------------------------------------


def naive(
    shape: str, distribution: Distribution, levels: list[float], seed: int
) -> tuple[float, float, float, float]:
    """``h(X|Y)`` in nats and the posterior mean's error, each with its standard error, by drawing x and the copies and integrating over x.

    ``h(X|Y) = E ln Σ_x f_X(x) Π f(y_i − x) dx − E ln f_X(x) Π f(y_i − x)``, with the sum over cells
    of the prior."""
    rng, draws = np.random.default_rng(seed), 2000
    law = SHAPES[shape]
    edges = np.linspace(law.low, law.high, 1501)
    mass = np.diff(law.cdf(edges))
    mass, middles, width = mass / mass.sum(), (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
    place = rng.choice(len(mass), draws, p=mass)
    x = edges[place] + width * rng.random(draws)
    likelihood, own = np.ones((draws, len(mass))), np.log(mass[place] / width)
    for level in levels:
        density = NoiseDensity(distribution, float(np.sqrt(level)))
        unit = {"gaussian": rng.standard_normal, "uniform": lambda n: rng.uniform(-np.sqrt(3), np.sqrt(3), n), "laplace":
                lambda n: rng.laplace(scale=np.sqrt(0.5), size=n)}[distribution](draws)  # fmt: skip
        y = x + density.std * unit
        likelihood *= density.pdf(y[:, None] - middles)
        own += density.log_pdf(y - x)
    whole = likelihood @ mass
    entropies = np.log(whole) - own
    errors = (x - (likelihood @ (mass * middles)) / whole) ** 2
    return tuple(
        float(part)
        for each in (entropies, errors)
        for part in (each.mean(), each.std() / np.sqrt(draws))
    )  # type: ignore[return-value]


CASES = [
    ("exponential", "laplace"),
    ("uniform", "gaussian"),
    ("bimodal", "laplace"),
    ("laplace", "uniform"),
    ("gamma", "gaussian"),
]


@pytest.mark.parametrize(("shape", "distribution"), CASES)
def test_one_copy_leaves_the_naive_integral_s_entropy(
    shape: str, distribution: Distribution
) -> None:
    """Within 4.5 standard errors of 2,000 draws (some 0.02 nats each), ten times; and the posterior mean's error is above, threefold at most."""
    for level in (0.2, 1.0):
        nats, error, best, spread = naive(shape, distribution, [level], seed=7)
        found = least(shape, fresh([level], distribution))
        assert abs(0.5 * np.log(2 * np.pi * np.e * found) - nats) < 4.5 * error + 0.003
        assert found - 4.5 * spread < best < 3.0 * found, (shape, distribution, level)


@pytest.mark.parametrize(
    ("shape", "distribution"),
    [("exponential", "laplace"), ("bimodal", "laplace"), ("laplace", "uniform")],
)
def test_of_fresh_copies_it_is_below_the_naive_integral_and_near(
    shape: str, distribution: Distribution
) -> None:
    for levels, factor in (([1.0, 1.0], 0.75), ([0.5, 2.0], 0.75), ([1.0] * 5, 0.4)):
        nats, error, *_ = naive(shape, distribution, levels, seed=8)
        found = least(shape, fresh(levels, distribution))
        assert 0.5 * np.log(2 * np.pi * np.e * found) < nats + 4.5 * error
        assert found > factor * entropy_power(nats), (shape, distribution, levels)


# -- limits and properties
# ---------------------------------------------------------------------------------------------

worlds = {
    "shape": st.sampled_from(sorted(SHAPES)), "distribution": st.sampled_from(["gaussian", "uniform", "laplace"]),
    "levels": st.lists(st.floats(-7, 7).map(lambda power: 10.0**power), min_size=1, max_size=4),
}  # fmt: skip


@given(**worlds)
@few
def test_it_is_never_above_the_best_line_s_error_and_another_copy_never_raises_it(
    shape: str, distribution: Distribution, levels: list[float]
) -> None:
    law = fresh(levels, distribution)
    found = least(shape, law)
    assert 0.0 < found <= 1.0 / (1.0 + sum(1.0 / level for level in levels)) * (1 + 1e-6)
    if len(levels) > 1:
        assert found <= least(shape, law.of(range(1, len(levels)))) * (1 + 1e-9)


def test_without_noise_nothing_is_left() -> None:
    assert least("uniform", fresh([0.0], "laplace")) == 0.0
    # linearly dependent copies
    assert least("uniform", KroneckerNoise(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(1))) == 0.0
    assert (least_errors(RecordLaw(), ["x"], np.eye(1), fresh([0.0]), [(1,)]) == 0.0).all()


def test_of_one_process_the_least_perturbed_copy_says_all() -> None:
    process = KroneckerNoise(
        np.minimum.outer([0.5, 2.0], [0.5, 2.0]),
        np.eye(1),
        distribution="laplace",
        one_process=True,
    )
    assert least("gamma", process) == least("gamma", fresh([0.5], "laplace"))


def test_given_others() -> None:
    A = np.random.default_rng(4).standard_normal((4, 4))
    K = A @ A.T
    np.testing.assert_allclose(given_others(K), 1 / np.diag(np.linalg.inv(K)), rtol=1e-8)
    np.testing.assert_array_equal(given_others(np.diag([3.0, 0.0])), [3.0, 0.0])
    assert (given_others(np.ones((2, 2))) < 1e-12).all()  # one attribute gives the other away
    np.testing.assert_allclose(
        given_others(K * np.outer([1e8, 1, 1, 1], [1e8, 1, 1, 1])),
        given_others(K) * [1e16, 1, 1, 1],
        rtol=1e-8,
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    distribution=st.sampled_from(["uniform", "laplace"]),
    level=st.floats(0.01, 10),
)
@few
def test_of_correlated_attributes_it_is_below_the_best_linear_error(
    seed: int, distribution: Distribution, level: float
) -> None:
    A = np.random.default_rng(seed).standard_normal((3, 3))
    K_X, noise = A @ A.T, level * np.diag(A @ A.T)
    law = KroneckerNoise(np.eye(1), np.diag(noise), distribution=distribution)
    found = least_errors(RecordLaw(), ["a", "b", "c"], K_X, law, [(1,)])[0]
    assert (found <= naive_llse(K_X, np.diag(noise)) * (1 + 1e-6)).all()


def test_where_the_entropy_is_not_known_it_is_not_guessed() -> None:
    law = RecordLaw({"a": OTHERS["uniform"], "b": NORMAL})
    correlated = np.array([[1.0, 0.5], [0.5, 1.0]])
    for noise, why in (
        (KroneckerNoise(np.eye(1), np.eye(2), distribution="skellam", units=np.ones(2)), "lattice"),
        (
            KroneckerNoise(np.eye(1), correlated, distribution="uniform"),
            "correlated between attributes",
        ),
        (
            KroneckerNoise(np.eye(1), np.eye(2), distribution="unstated"),
            "only the covariance is stated",
        ),
        (DenseNoise(np.eye(4), 2), "mixes shapes"),
    ):
        with pytest.raises(NotApplicable, match=why):
            least_errors(law, ["a", "b"], np.eye(2), noise, [(1,)])
    with pytest.raises(NotApplicable, match="only the covariance is stated"):
        least_errors(
            RecordLaw(),
            ["a"],
            np.eye(1),
            KroneckerNoise(np.eye(1), np.eye(1), distribution="unstated"),
            [(1,)],
        )

"""Low-order bits: which originals a double can come from, by brute force; leaks planted with numpy are found, and grids leave nothing."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.errors import AuditorError
from auditor.numerics.last_digits import (
    MANY,
    Generator,
    generators,
    grid_of_digits,
    likeliest,
    numpy_laplace,
    numpy_uniform,
    ratio,
    spacing,
)
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined, Product
from auditor_attacks.low_order_bits import Posterior
from tests.schemes.low_order_bits import possible


def sum_of(y, x, generator, grid=0.0):
    """``Σ_k [fl(x + z(k)) = y] δ / u`` one by one, over a hundred numbers of the generator to either side of the nearest."""
    z, u = y - x, max(math.ulp(y), grid)
    if generator.kind == "laplace":
        b = generator.scale
        k0 = round((0.5 * math.exp(z / b) if z < 0 else 1 - 0.5 * math.exp(-z / b)) * 2**53)
        made = [
            b * math.log(2 * U) if U < 0.5 else -b * math.log(2.0 - U - U)
            for U in ((k0 + j) / 2**53 for j in range(-100, 101))
            if 0 < U < 1
        ]
        apart = b * math.exp(abs(z) / b) / 2**52
    elif generator.kind == "uniform":
        a = generator.scale
        k0 = round((z + a) / (2 * a) * 2**53)
        made, apart = (
            [2.0 * a * ((k0 + j) / 2**53) - a for j in range(-100, 101) if 0 <= k0 + j < 2**53],
            a / 2**52,
        )
    else:
        g, apart = z / generator.scale, generator.scale * math.ulp(z / generator.scale)
        made = [generator.scale * (g + j * math.ulp(g)) for j in range(-100, 101)]
    return sum(x + each == y for each in made) * apart / u


def released(kind, n=3000, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 7, n).astype(float)
    noise = {
        "laplace": lambda: rng.laplace(0, 5.3, n),
        "uniform": lambda: rng.uniform(-9.1, 9.1, n),
        "product": lambda: rng.normal(0, 5.3, n),
    }
    return x, x + noise[kind](), Generator(kind, {"uniform": 9.1}.get(kind, 5.3))


# -- which originals are possible
# ---------------------------------------------------------------------------------------


def test_hand_worked_sums():
    """½ and the double above it: from 3 the noise is near −2½, where doubles are 2⁻⁵¹ apart: every fourth double near ½ is reached."""
    y = np.array([0.5, 0.5 + 2.0**-53])
    np.testing.assert_array_equal(ratio(y, np.full(2, 3.0), Generator("sum")), [4.0, 0.0])
    np.testing.assert_array_equal(ratio(y, np.zeros(2), Generator("sum")), [1.0, 1.0])
    # on a grid of 1/2 a smooth law would have had a chance 2⁵² times as large
    np.testing.assert_array_equal(ratio(y[:1], np.zeros(1), Generator("sum"), 0.5), [2.0**-52])
    assert grid_of_digits(np.array([0.75, -6.0, 0.0])) == 0.25
    assert grid_of_digits(np.zeros(3)) == 0.0


@pytest.mark.parametrize("kind", ["laplace", "uniform", "product", "sum"])
def test_counts_are_those_of_a_search_one_by_one(kind):
    _, y, generator = released("laplace" if kind == "sum" else kind)
    generator = Generator("sum") if kind == "sum" else generator
    y, x = np.repeat(y[:150], 7), np.tile(np.arange(7.0), 150)
    few = np.spacing(np.abs(y)) <= MANY * spacing(y - x, generator)
    found, expected = (
        ratio(y, x, generator)[few],
        np.array(
            [
                sum_of(*pair, generator)
                for pair in zip(y[few].tolist(), x[few].tolist(), strict=True)
            ]
        ),
    )
    off = np.abs(found - expected) > 1e-6 * expected
    assert few.sum() > 300
    # numpy's vector logarithm, in 0.3 % of values another last digit
    assert off.mean() <= (0.02 if kind == "laplace" else 0.0)


def test_products_are_ruled_out_as_by_trying_every_neighbouring_double():
    _, y, generator = released("product", 500)
    for x in (0.0, 3.0):
        few = np.spacing(np.abs(y)) <= MANY * spacing(y - x, generator)
        np.testing.assert_array_equal(
            (ratio(y, np.full_like(y, x), generator) > 0)[few],
            possible(y, x, generator.scale, lambda x, g: x + generator.scale * g)[few],
        )


def test_numpy_makes_these_numbers_of_its_uniforms():
    U = np.random.default_rng(5).random(20_000)
    ours, theirs = numpy_laplace(U, 3.3), np.random.default_rng(5).laplace(0.0, 3.3, len(U))
    assert (ours == theirs).mean() > 0.99
    np.testing.assert_allclose(ours, theirs, rtol=2.0**-51)
    np.testing.assert_array_equal(
        numpy_uniform(U, 3.3), np.random.default_rng(5).uniform(-3.3, 3.3, len(U))
    )


@pytest.mark.parametrize(
    ("kind", "distribution"),
    [("laplace", "laplace"), ("uniform", "uniform"), ("product", "gaussian")],
)
def test_the_true_original_is_never_ruled_out_and_chance_is_one_on_average(kind, distribution):
    """``E[r | x'] = 1`` over values that a smooth law would release of x'; the truth has at least as much by Jensen."""
    x, y, generator = released(kind)
    true = ratio(y, x, generator)
    assert (true == 0).mean() < 0.01
    assert true.mean() > 1.2
    smooth = x + generator.scale * np.random.default_rng(2).standard_t(8, len(x)) / np.pi / 3
    found = ratio(smooth, x, generator)[np.abs(smooth - x) < generator.scale / 2]
    assert found.mean() == pytest.approx(1.0, abs=5 * found.std() / np.sqrt(len(found)))


@given(
    kind=st.sampled_from(["sum", "product", "laplace", "uniform"]),
    size=st.floats(-20, 20),
    scale=st.floats(-20, 20),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_a_generator_made_it_can_have_made(kind, size, scale, seed):
    """Originals and scales of all sizes: the numbers tried beside the nearest are enough, at the ends of a binade and in the tails too."""
    rng, s = np.random.default_rng(seed), 1.0 if kind == "sum" else 10.0**scale
    x = np.rint(10.0 ** abs(size) * rng.standard_normal(200))
    k = rng.integers(1, 2**53, 200) * 2.0**-53
    # as far out as numpy's uniforms go
    tiny = np.minimum(k, rng.integers(1, 2**20, 200) * 2.0**-53)
    z = {"laplace": lambda: numpy_laplace(np.where(k < 0.5, tiny, k), s), "uniform": lambda: numpy_uniform(k, s),
         "product": lambda: s * rng.standard_normal(200), "sum": lambda: 10.0**scale * rng.standard_normal(200)}[kind]()  # fmt: skip
    assert (ratio(x + z, x, Generator(kind, s)) > 0).all()


@pytest.mark.parametrize(
    ("kind", "std"),
    [("laplace", 5.3 * math.sqrt(2)), ("uniform", 9.1 / math.sqrt(3)), ("product", 5.3)],
)
def test_the_generator_is_found_out_and_none_where_values_are_rounded(kind, std):
    distribution = {"product": "gaussian"}.get(kind, kind)
    _, y, generator = released(kind)
    weights, tried = np.full((len(y), 7), 1 / 7), generators(distribution, std)
    found = likeliest(y, np.arange(7.0), weights, tried, grid_of_digits(y))
    assert found is not None
    assert found.kind == kind
    assert found.scale == pytest.approx(generator.scale, rel=1e-15)
    for rounded in (
        np.round(y * 2.0**20) / 2.0**20,
        np.round(y, 2),
        np.round(y, 11),
        y.astype(np.float32).astype(float),
    ):
        assert likeliest(rounded, np.arange(7.0), weights, tried, grid_of_digits(rounded)) is None


# -- the attack
# --------------------------------------------------------------------------------------------------------

WHOLE = pd.DataFrame(
    {"hiv": np.arange(900) % 2, "children": np.random.default_rng(1).poisson(2.0, 900)}
).astype(float)


def test_released_copies_tell_it_nothing_beyond_their_law():
    """Copies for release lie on a public grid: last digits change no estimate, whatever the scheme and coalition."""
    for scheme, levels in (("independent", [10.0, 10.0, 10.0]), ("corner-wave", [1.0, 4.0, 10.0])):
        release = auditor.perturb(WHOLE, scheme, levels, seed=3)
        found, law = (
            auditor.attack("low-order-bits", release, step=1.0, digits=digits).values
            for digits in (True, False)
        )
        np.testing.assert_array_equal(found, law)


def test_a_level_that_leaves_the_values_is_taken_as_it_is_and_huge_noise_leaves_the_prior():
    for level, error in ((0.0, 0.0), (1e-12, 1e-9), (1e9, 1.0)):
        found = auditor.attack(
            "low-order-bits", auditor.perturb(WHOLE, "independent", [level], seed=3), step=1.0
        )
        assert found.normalized_error == pytest.approx(error, abs=0.02)


def test_an_attribute_with_too_many_candidates_is_estimated_by_line_and_alone_is_not_applicable():
    X = np.hstack([WHOLE.to_numpy()[:, :1], 1e7 * np.random.default_rng(2).random((900, 1))])
    release = auditor.perturb(X, "independent", [0.5], seed=1, noise={"variance": 4.0})
    both = auditor.attack("low-order-bits", release, step=1.0)
    assert both.normalized_error < 0.9
    with pytest.raises(AuditorError, match="more than 4,096 values"):
        auditor.attack(
            "low-order-bits", auditor.perturb(X[:, 1:], "independent", [0.5], seed=1), step=1.0
        )
    coarse = auditor.attack(
        "low-order-bits", auditor.perturb(1e6 * X[:, :1], "independent", [0.01], seed=1), step=1e6
    )
    assert coarse.normalized_error < 1e-3
    assert (
        auditor.attack("low-order-bits", release, step={"0": 1.0, "1": 1e5}).normalized_error < 0.9
    )


def test_candidates_are_the_values_of_a_known_sample():
    X = np.random.default_rng(0).choice([0.125, 17.25, 1e3 / 3], (600, 1))
    release = auditor.perturb(X, "independent", [0.04], seed=1)
    found = auditor.attack(
        "low-order-bits", release, step=1.0, knowledge={"known-sample": 100}, original=X
    )
    assert found.normalized_error < 0.02


# -- leaks planted with numpy
# ------------------------------------------------------------------------------------------

PLANTED = {
    "laplace": ("laplace", lambda rng, std: rng.laplace(0.0, std / np.sqrt(2.0), (300, 2))),
    "gaussian": ("independent", lambda rng, std: rng.normal(0.0, std, (300, 2))),
    "uniform": (
        "independent",
        lambda rng, std: rng.uniform(-np.sqrt(3.0) * std, np.sqrt(3.0) * std, (300, 2)),
    ),
}


def audited(folder, kind, write=lambda copy: copy, copies=5, units=1):
    """The audit of files made with numpy, and what the attack finds in them with last digits and without, all copies together."""
    rng, (scheme, noise) = np.random.default_rng(4), PLANTED[kind]
    X = pd.DataFrame({"children": rng.poisson(1.5, 300), "rooms": rng.integers(1, 9, 300)}) / units
    X.to_csv(folder / "table.csv", index=False)
    files = [folder / f"copy-{number}.csv" for number in range(copies)]
    for file in files:
        write(X + noise(rng, 8.0 / units)).to_csv(file, index=False)
    law = {"scheme": scheme, "noise": {"variance": (8.0 / units) ** 2}} | (
        {"distribution": kind} if scheme == "independent" else {}
    )
    use = {
        "name": "published",
        "copies": [str(file) for file in files],
        "aligned": True,
        "levels": [1.0] * copies,
        "law": law,
    }
    attacks = [
        {"name": "low-order-bits", "step": 1.0 / units},
        {"name": "low-order-bits", "id": "law", "step": 1.0 / units, "digits": False},
    ]
    result = auditor.run({
        "data": {"source": str(folder / "table.csv")}, "schemes": [use], "coalitions": ["all"], "attacks": attacks, "measures": ["exact", "candidates-left"],
    })  # fmt: skip
    wanted = [
        m
        for m in result.measurements
        if m.coalition == tuple(range(1, copies + 1)) and m.attribute == "*"
    ]
    return {(m.metric, m.attack): m.value for m in wanted}


@pytest.mark.parametrize(
    ("kind", "exact"), [("laplace", 0.98), ("uniform", 0.7), ("gaussian", 0.4)]
)
@pytest.mark.slow_after_first
def test_files_straight_from_numpy_give_whole_numbers_away(tmp_path, kind, exact):
    found = audited(tmp_path, kind)
    assert found["exact", "low-order-bits"] > exact
    assert found["exact", "law"] < 0.35
    assert found["candidates_left", "low-order-bits"] < 0.75 * found["candidates_left", "law"]


@pytest.mark.slow
def test_so_do_they_cents(tmp_path):
    """Candidates are the doubles that cents are written as, and not multiples of the one next to 0.01."""
    assert audited(tmp_path, "laplace", units=100)["exact", "low-order-bits"] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    "write",
    [lambda copy: copy.round(3), lambda copy: (copy * 2**12).round() / 2**12],
    ids=["decimals", "a grid"],
)
def test_files_without_their_last_digits_give_nothing_more_away(tmp_path, write):
    found = audited(tmp_path, "laplace", write, copies=2)
    for metric in ("exact", "candidates_left", "distortion"):
        assert found[metric, "low-order-bits"] == found[metric, "law"]


def test_a_value_that_no_candidate_explains_is_judged_by_the_law():
    """Another machine's logarithm must not cost a record all that the law says of it."""
    seen, y = Combined(NoiseDensity("gaussian", 2.0), np.ones(1)), np.array([[0.5 + 2.0**-53]])
    prior = np.array([3.0, 5.0]), np.array([0.5, 0.5])
    found, law = (
        Posterior(*prior, seen, made).weights(y) for made in (((0, Generator("sum"), 0.0),), ())
    )
    np.testing.assert_allclose(found, law, rtol=1e-12)
    assert law[0, 0] == pytest.approx(1 / (1 + math.exp(-(4.5**2 - 2.5**2) / 8)), rel=1e-9)


@pytest.mark.parametrize(("distribution", "std"), [("laplace", 8.0), ("gaussian", 8.0)])
def test_it_knows_how_sure_it_may_be(distribution, std):
    """Of a right posterior the mean probability of the truth is the mean of ``Σ q²``: five standard errors, at a false-alarm rate of 1e-6."""
    rng, n, values = np.random.default_rng(6), 4_000, np.arange(9.0)
    x = rng.integers(0, 9, n)
    made = {
        "laplace": Generator("laplace", std * math.sqrt(0.5)),
        "gaussian": Generator("product", std),
    }[distribution]
    y = x + (rng.laplace(0, made.scale, n) if distribution == "laplace" else rng.normal(0, std, n))
    noise = NoiseDensity(distribution, std)
    seen = Product((noise,), (0,)) if distribution == "laplace" else Combined(noise, np.ones(1))
    q = Posterior(values, np.full(9, 1 / 9), seen, ((0, made, 0.0),)).weights(y[:, None])
    excess = q[np.arange(n), x] - (q**2).sum(axis=1)
    assert abs(excess.mean()) < 5 * excess.std() / np.sqrt(n)
    assert q[np.arange(n), x].mean() > (0.3 if distribution == "laplace" else 0.12)

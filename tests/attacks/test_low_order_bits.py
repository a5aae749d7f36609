"""Low-order bits of noise from generators of doubles."""

import math

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.numerics.statistics import MANY, Generator, grid_of_digits, ratio, spacing
from tests.audited import audited_files, cells


def sum_of(y, x, generator, grid=0.0):
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
        made, apart = ([2.0 * a * ((k0 + j) / 2**53) - a for j in range(-100, 101) if 0 <= k0 + j < 2**53], a / 2**52)  # fmt: skip
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


def test_hand_worked_sums():
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
        np.array([sum_of(*pair, generator) for pair in zip(y[few].tolist(), x[few].tolist(), strict=True)]),
    )  # fmt: skip
    off = np.abs(found - expected) > 1e-6 * expected
    assert few.sum() > 300
    # numpy's vector logarithm, in 0.3 % of values another last digit
    assert off.mean() <= (0.02 if kind == "laplace" else 0.0)


WHOLE = pd.DataFrame(
    {"hiv": np.arange(900) % 2, "children": np.random.default_rng(1).poisson(2.0, 900)}
).astype(float)


def test_released_copies_tell_it_nothing_beyond_their_law():
    for scheme, levels in (("independent", [10.0, 10.0, 10.0]), ("corner-wave", [1.0, 4.0, 10.0])):
        release = auditor.perturb(WHOLE, scheme, levels, seed=3)
        found, law = (auditor.attack("low-order-bits", release, step=1.0, digits=digits).values for digits in (True, False))  # fmt: skip
        np.testing.assert_array_equal(found, law)


PLANTED = {
    "laplace": ("laplace", lambda rng, std: rng.laplace(0.0, std / np.sqrt(2.0), (300, 2))),
    "gaussian": ("independent", lambda rng, std: rng.normal(0.0, std, (300, 2))),
    "uniform": ("independent", lambda rng, std: rng.uniform(-np.sqrt(3.0) * std, np.sqrt(3.0) * std, (300, 2))),
}  # fmt: skip


def audited(folder, kind, write=lambda copy: copy, copies=5, units=1):
    rng, (scheme, noise) = np.random.default_rng(4), PLANTED[kind]
    X = pd.DataFrame({"children": rng.poisson(1.5, 300), "rooms": rng.integers(1, 9, 300)}) / units
    frames = [write(X + noise(rng, 8.0 / units)) for _ in range(copies)]
    law = {"scheme": scheme, "noise": {"variance": (8.0 / units) ** 2}} | (
        {"distribution": kind} if scheme == "independent" else {}
    )
    how = {"aligned": True, "levels": [1.0] * copies, "law": law}
    attacks = [
        {"name": "low-order-bits", "step": 1.0 / units},
        {"name": "low-order-bits", "id": "law", "step": 1.0 / units, "digits": False},
    ]
    who = {"coalitions": ["all"], "attacks": attacks, "measures": ["exact", "candidates-left"]}
    result = audited_files(folder, X, frames, None, how, **who)
    wanted = cells(result, coalition=tuple(range(1, copies + 1)), attribute="*")
    return {(m.metric, m.attack): m.value for m in wanted}


@pytest.mark.parametrize(
    ("kind", "exact"), [("laplace", 0.98), ("uniform", 0.7), ("gaussian", 0.4)]
)
@pytest.mark.slow_after_first
@pytest.mark.usefixtures("no_learner", "few_redraws")
def test_files_straight_from_numpy_give_whole_numbers_away(tmp_path, kind, exact):
    found = audited(tmp_path, kind)
    assert found["exact", "low-order-bits"] > exact
    assert found["exact", "law"] < 0.35
    assert found["candidates_left", "low-order-bits"] < 0.75 * found["candidates_left", "law"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "write",
    [lambda copy: copy.round(3), lambda copy: (copy * 2**12).round() / 2**12],
    ids=["decimals", "a grid"],
)
@pytest.mark.usefixtures("no_learner", "few_redraws")
def test_files_without_their_last_digits_give_nothing_more_away(tmp_path, write):
    found = audited(tmp_path, "laplace", write, copies=2)
    for metric in ("exact", "candidates_left", "distortion"):
        assert found[metric, "low-order-bits"] == found[metric, "law"]

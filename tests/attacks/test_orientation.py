"""Detection of attributes with a reversed order."""

import numpy as np
import pytest

from auditor.numerics.statistics import column_ranks
from auditor_attacks._orientation import orientation, recodings

RNG = np.random.default_rng


def pay(seed, rows):
    rng = RNG(seed)
    age = rng.gamma(9.0, 5.0, rows)
    salary = np.exp(10.0 + 0.015 * age + 0.6 * rng.standard_normal(rows)).round(-2)
    return np.column_stack([age, salary, np.maximum(0.0, salary - np.exp(10.2))])


@pytest.mark.parametrize("turned", [(1, 1, 1), (-1, 1, 1), (1, -1, -1)])
@pytest.mark.parametrize(
    "scale",
    [np.copy, np.cbrt, lambda x: np.column_stack([column_ranks(column) for column in x.T])],
    ids=["units", "roots", "ranks"],
)
def test_what_is_turned_is_told_by_signs_and_shapes(turned, scale):
    assert (orientation(scale(pay(1, 3_000) * turned), pay(2, 400)) == turned).all()


NOISES = {
    "none": lambda rng, x: x,
    "half": lambda rng, x: x + np.sqrt(0.5) * x.std(axis=0) * rng.standard_normal(x.shape),
    "four": lambda rng, x: x + 2.0 * x.std(axis=0) * rng.standard_normal(x.shape),
    "factors": lambda rng, x: x * np.exp(0.5 * rng.standard_normal(x.shape)),
    "swapped": lambda rng, x: rng.permuted(x, axis=0),
    "rounded": lambda rng, x: np.round(x / x.std(axis=0)),
    "logarithms": lambda rng, x: np.log1p(x),
    "squares": lambda rng, x: x**2,
}


@pytest.mark.parametrize("noise", NOISES)
def test_copies_the_right_way_up_are_not_turned(noise):
    """None of 40 draws each, of samples of 30 to 1,000 records."""
    for seed in range(40):
        X = pay(seed, 1_500)
        assert (
            orientation(
                NOISES[noise](RNG(seed), X), pay(100 + seed, (30, 100, 300, 1_000)[seed % 4])
            )
            == 1.0
        ).all()


def test_every_recoding_is_increasing():
    for x in (np.linspace(0.5, 9.0, 50), np.linspace(-3.0, 4.0, 50), np.arange(30.0)):
        assert all((np.diff(found) > 0).all() for found in recodings(x))

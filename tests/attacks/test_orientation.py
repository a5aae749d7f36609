"""Which attributes of a copy are turned round: by hand, by other attributes, by shapes and heaps, and left alone where nobody can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor.numerics.statistics import column_ranks
from auditor.types import Array
from auditor_attacks._orientation import linked, orientation, recodings

RNG = np.random.default_rng


def pay(seed: int, rows: int) -> Array:
    """Age, salary that goes with it, and a tax that three of ten do not pay."""
    rng = RNG(seed)
    age = rng.gamma(9.0, 5.0, rows)
    salary = np.exp(10.0 + 0.015 * age + 0.6 * rng.standard_normal(rows)).round(-2)
    return np.column_stack([age, salary, np.maximum(0.0, salary - np.exp(10.2))])


@pytest.mark.parametrize("turned", [(1, 1, 1), (-1, -1, -1), (1, -1, 1), (-1, 1, 1), (1, -1, -1)])
@pytest.mark.parametrize(
    "scale",
    [np.copy, np.cbrt, lambda x: np.column_stack([column_ranks(column) for column in x.T])],
    ids=["units", "roots", "ranks"],
)
def test_what_is_turned_is_told_by_signs_and_shapes(turned: tuple[int, ...], scale: Any) -> None:
    assert (orientation(scale(pay(1, 3_000) * turned), pay(2, 400)) == turned).all()


def test_signs_of_pairs_by_hand() -> None:
    """One of two attributes that rise together is turned: z is ``atanh(1 − 1e-12)·√(n − 3)``, of the smaller table; a pair that is not sure is 0."""
    x = np.column_stack([np.arange(40.0), np.arange(40.0) ** 3])
    assert linked(x * [2.0, -1.0], x[:19])[0, 1] == pytest.approx(-np.arctanh(1 - 1e-12) * 4.0)
    unsure = np.column_stack([np.arange(8.0), [1, 0, 3, 2, 5, 4, 7, 6]])
    assert (linked(unsure, unsure)[0, 1] == linked(x, np.ones((40, 2)))[0, 1] == 0.0).all()


def test_every_recoding_is_increasing() -> None:
    for x in (np.linspace(0.5, 9.0, 50), np.linspace(-3.0, 4.0, 50), np.arange(30.0)):
        assert all((np.diff(found) > 0).all() for found in recodings(x))


def test_what_nobody_can_tell_is_left_as_it_is() -> None:
    """Symmetric attributes; a long tail's logarithms; one value; a record; fewer values than shares."""
    rng = RNG(5)
    normal, tail = rng.standard_normal((500, 2)), np.exp(rng.standard_normal((500, 2)))
    for Y, X in [
        (-normal, normal[:300]),
        (-np.log(tail), tail[:300]),
        (-np.ones((9, 2)), normal),
        (-tail, tail[:1]),
        (-tail[:2], tail),
    ]:
        assert (orientation(Y, X) == 1.0).all()


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
def test_copies_the_right_way_up_are_not_turned(noise: str) -> None:
    """None of 40 draws each, of samples of 30 to 1,000 records: a rate of a tenth would leave that with a chance of 0.015."""
    for seed in range(40):
        X = pay(seed, 1_500)
        assert (
            orientation(
                NOISES[noise](RNG(seed), X), pay(100 + seed, (30, 100, 300, 1_000)[seed % 4])
            )
            == 1.0
        ).all()

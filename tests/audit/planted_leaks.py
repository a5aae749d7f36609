"""Planted leaks in copies without a law, and largest shares unknown."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from auditor.base.types import Array

RNG = np.random.default_rng
ROWS = 2_000


class Leak(NamedTuple):
    """A table, its copies, and the largest share unknown by attribute."""

    table: Callable[[np.random.Generator], Array]
    copies: Callable[[np.random.Generator, Array], list[Array]]
    left: tuple[float, ...]


def people(rng):
    """Age and salary in whole numbers, and a score of two decimals."""
    age = rng.gamma(9.0, 5.0, ROWS).round().clip(0, 99)
    salary = np.exp(10.0 + 0.5 * rng.standard_normal(ROWS)).round()
    return np.column_stack([age, salary, rng.normal(50.0, 9.0, ROWS).round(2)])


def normal(rng):
    return rng.standard_normal((ROWS, 2))


def skewed(rng):
    return np.exp(0.7 * rng.standard_normal((ROWS, 2)))


def loud(rng, X):
    return X + 6.0 * X.std(axis=0) * rng.standard_normal(X.shape)


def by_blocks(X, rows, turned):
    blocks = enumerate(X.reshape(-1, rows, X.shape[1]))
    moved = [b[::-1] if turned else np.roll(b, RNG(k).integers(1, rows), axis=0) for k, b in blocks]
    return np.concatenate(moved)


def shared_by_rows(rng, X, rows):
    noise = rng.standard_normal((ROWS // rows, X.shape[1]))
    return X + 6.0 * X.std(axis=0) * np.repeat(noise, rows, axis=0)


def shares_of_a_secret(rng, X):
    modulus = np.array([128, 2**18, 128])
    secret = rng.integers(0, modulus, X.shape)
    return [(X.astype(int) + secret) % modulus, secret]


def shared_by_code(rng, X):
    code, size = rng.integers(0, 40, ROWS), 6.0 * X[:, 1:].std(axis=0)
    return [np.column_stack([code, X[:, 1:] + size * rng.standard_normal((40, 2))[code]])]


def dealt(rng, X):
    return [np.concatenate([X[player::7] for player in range(7)])]


def held_in_halves(rng, X):
    return [np.where(rng.random((ROWS, 1)) < 0.5, X, X.mean(axis=0)) for _ in range(2)]


def exchanged(rng, X):
    return [np.where(rng.random(X.shape) < 0.4, rng.permutation(X), X) for _ in range(5)]


def swinging(rng, X):
    return [X + 4.0 * X.std(axis=0) * np.sin(np.pi * 0.4 * np.arange(ROWS)[:, None] ** 2 / ROWS)]


def riffle(X):
    return np.stack([X[: ROWS // 2], X[ROWS // 2 :]], axis=1).reshape(X.shape)


def codes(rng, X):
    return [np.column_stack([rng.permutation(400)[X[:, 0].astype(int)], loud(rng, X)[:, 1:]])]


STEPS = np.array([100, 10**6, 100]), np.array([128, 2**20, 128])
LEAKS = {
    "other units": Leak(normal, lambda rng, X: [2.54 * X + 1e3], (1e-9, 1e-9)),
    "another sign": Leak(normal, lambda rng, X: [-X], (1e-9, 1e-9)),
    "exponential": Leak(normal, lambda rng, X: [np.exp(X)], (0.05, 0.05)),
    "ranks": Leak(normal, lambda rng, X: [X.argsort(axis=0).argsort(axis=0).astype(float)], (0.05, 0.05)),
    "codes for values": Leak(lambda rng: np.column_stack([rng.integers(18, 80, ROWS), rng.normal(size=ROWS)]), codes, (0.01,)),
    "small noise in most records": Leak(
        normal, lambda rng, X: [X + rng.standard_normal(X.shape) * np.where(rng.random(X.shape) < 0.1, 50.0, 0.01)], (0.35, 0.35)),
    "half of the records in each copy": Leak(normal, held_in_halves, (0.35, 0.35)),
    "values that five copies agree on": Leak(normal, exchanged, (0.15, 0.15)),
    "a factor that another copy shows": Leak(skewed, lambda rng, X: [X * (f := skewed(rng)), f], (0.06, 0.06)),
    "factors of either sign": Leak(normal, lambda rng, X: [X * (f := 9.0 * rng.standard_normal(X.shape)), f], (0.01, 0.01)),
    "noise in whole hundreds": Leak(people, lambda rng, X: [X + STEPS[0] * rng.integers(-300, 301, X.shape)], (0.01, 0.01, 0.01)),
    "noise in steps of 128": Leak(people, lambda rng, X: [X + STEPS[1] * rng.integers(-300, 301, X.shape)], (0.01, 0.01, 0.01)),
    "low digits": Leak(people, lambda rng, X: [np.round(loud(rng, X)) + np.round(X) / 1e7], (0.01, 0.01, 0.01)),
    "low digits in whole numbers": Leak(people, lambda rng, X: [np.round(loud(rng, X) / 100) * 10**8 + X], (0.01, 0.01, 0.01)),
    "shares of a secret": Leak(people, shares_of_a_secret, (0.01, 0.01, 0.05)),
    "one-time pad": Leak(people, lambda rng, X: [X.astype(int) ^ (pad := rng.integers(0, 2**20, X.shape)), pad], (0.01, 0.01, 0.01)),
    "factors modulo 101": Leak(people, lambda rng, X: [f := rng.integers(1, 101, X.shape), f * X.astype(int) % 101], (0.05,)),
    "noise shared by a code": Leak(people, shared_by_code, (1.1, 0.1, 0.1)),
    "noise shared by five rows": Leak(people, lambda rng, X: [shared_by_rows(rng, X, 5)], (0.5, 0.5, 0.5)),
    "noise shared by twenty rows": Leak(people, lambda rng, X: [shared_by_rows(rng, X, 20)], (0.35, 0.35, 0.35)),
    "noise that comes again after 40 rows": Leak(
        normal, lambda rng, X: [X + np.tile(3.0 * rng.standard_normal((40, 2)), (ROWS // 40, 1))], (0.1, 0.1)),
    "noise that drifts": Leak(normal, lambda rng, X: [X + 3.0 * np.sin(np.linspace(0.0, 7.0, ROWS))[:, None]], (0.1, 0.1)),
    "noise that swings ever faster": Leak(skewed, swinging, (0.35, 0.35)),
    "rows moved by one": Leak(skewed, lambda rng, X: [np.roll(X, 1, axis=0)], (1e-9, 1e-9)),
    "rows from the end": Leak(skewed, lambda rng, X: [X[::-1]], (1e-9, 1e-9)),
    "three of four rows moved by one": Leak(
        normal, lambda rng, X: [np.where(rng.random(X.shape) < 0.75, np.roll(X, 1, axis=0), X)], (0.5, 0.5)),
    "running totals in shuffled rows": Leak(skewed, lambda rng, X: [X[o := rng.permutation(ROWS)].cumsum(axis=0)[o.argsort()]], (0.01, 0.01)),
    "blocks of 100 shifted": Leak(skewed, lambda rng, X: [by_blocks(X, 100, False)], (0.35, 0.35)),
    "blocks of 100 turned round": Leak(skewed, lambda rng, X: [by_blocks(X, 100, True)], (0.35, 0.35)),
    "blocks of 1,000 shifted": Leak(skewed, lambda rng, X: [by_blocks(X, 1_000, False)], (0.35, 0.35)),
    "blocks of 20 shifted": Leak(skewed, lambda rng, X: [by_blocks(X, 20, False)], (0.4, 0.4)),
    "two halves in turn": Leak(skewed, lambda rng, X: [riffle(X)], (0.3, 0.3)),
    "two halves in turn, in other units": Leak(skewed, lambda rng, X: [np.log(riffle(X))], (0.3, 0.3)),
    "dealt to seven": Leak(skewed, dealt, (0.35, 0.35)),
}  # fmt: skip
"""Copies by kind of leak."""

HONEST = {
    "noise": Leak(people, lambda rng, X: [loud(rng, X)], ()),
    "rounded noise": Leak(people, lambda rng, X: [np.round(loud(rng, X) / 100) * 100], ()),
    "two copies": Leak(people, lambda rng, X: [np.round(loud(rng, X)), np.round(loud(rng, X))], ()),
    "swapped": Leak(people, lambda rng, X: [rng.permuted(X, axis=0)], ()),
    "factors that nobody has": Leak(people, lambda rng, X: [(X - X.mean(axis=0)) * rng.standard_normal(X.shape)], ()),
    "long tails": Leak(lambda rng: rng.standard_t(1.2, (ROWS, 2)), lambda rng, X: [rng.standard_t(1.2, X.shape)], ()),
}  # fmt: skip
"""Copies of which at least nine tenths are unknown."""

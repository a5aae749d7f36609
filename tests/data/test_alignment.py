"""Whether a copy from a file holds the original's records in its order."""

import numpy as np
import pytest

from auditor.data.alignment import misaligned

NAMES = ("a", "b", "c")
ROWS = 1_000


def table(rng, rows=ROWS):
    age = rng.uniform(18, 90, rows)
    return np.column_stack([age, np.exp(rng.normal(size=rows)) * age * 500, rng.poisson(1.3, rows)])


def noisy(rng, X, variance=0.5):
    return X + rng.normal(size=X.shape) * X.std(axis=0) * np.sqrt(variance)


def lost(X):
    """Leave out the record in the middle and put a strange one at the end."""
    return np.vstack([X[: ROWS // 2], X[ROWS // 2 + 1 :], X[:1]])


DISORDER = {
    "shuffled": (lambda rng, X: rng.permutation(X), "hold the original's values in another order"),
    "shuffled and noisy": (lambda rng, X: rng.permutation(noisy(rng, X)), "another order"),
    "sorted by another column": (lambda rng, X: (Y := noisy(rng, X))[Y[:, 2].argsort()], "another order"),
    "one row down": (lambda rng, X: np.roll(noisy(rng, X), 1, axis=0), "are moved: row 2 of the copy is row 1 of the original"),
    "three rows up": (lambda rng, X: np.roll(noisy(rng, X), -3, axis=0), "are moved: row 1 of the copy is row 4 of the original"),
    "columns swapped": (lambda rng, X: noisy(rng, X)[:, [1, 0, 2]], "'a' holds 'b', 'b' holds 'a'"),
    "another table": (lambda rng, X: rng.normal(size=X.shape) * 40 + 7, "are not the original's records"),
    "other records of the same kind": (lambda rng, X: table(rng), "another order than the original's, or are other records"),
    "one record lost": (lambda rng, X: noisy(rng, lost(X)), "of the table on they differ"),
}  # fmt: skip


@pytest.mark.parametrize("what", DISORDER)
def test_disorder_is_found_and_named(what):
    rng = np.random.default_rng(14)
    X = table(rng)
    make, cause = DISORDER[what]
    found = misaligned(X, make(rng, X), NAMES)
    assert found is not None
    assert found.certain
    assert cause in found.cause


HONEST = {
    "as they are": lambda rng, X: X.copy(),
    "noise": noisy,
    "loud noise": lambda rng, X: noisy(rng, X, 25.0),
    "heavy-tailed noise": lambda rng, X: X + rng.standard_t(2, size=X.shape) * X.std(axis=0),
    "multiplied": lambda rng, X: X * rng.lognormal(size=X.shape),
    "rounded": lambda rng, X: np.round(X / X.std(axis=0)) * X.std(axis=0),
    "nearly all one value": lambda rng, X: np.maximum(X, np.quantile(X, 0.99, axis=0)),
    "top-coded": lambda rng, X: np.minimum(X, np.quantile(X, 0.5, axis=0)),
    "suppressed": lambda rng, X: np.zeros_like(X),
    "one column suppressed": lambda rng, X: X * [0, 1, 1],
    "other units": lambda rng, X: X * 7 + 3,
    "rotated": lambda rng, X: X @ np.linalg.qr(rng.normal(size=(3, 3)))[0],
    "a third retained": lambda rng, X: np.where(rng.random(X.shape) < 0.3, X, rng.permutation(X)),
    "one column swapped among records": lambda rng, X: np.column_stack(
        [X[:, :2], rng.permutation(X[:, 2])]
    ),
}


@pytest.mark.parametrize("what", HONEST)
def test_honest_copies_pass(what):
    for order in (lambda X: X, lambda X: X[X[:, 0].argsort()]):
        rng = np.random.default_rng(14)
        X = order(table(rng))
        assert misaligned(X, HONEST[what](rng, X), NAMES) is None


def test_noise_that_hides_the_order_is_not_blamed():
    rng = np.random.default_rng(14)
    X = table(rng)
    for Y in (noisy(rng, X, 1e6), rng.permutation(noisy(rng, X, 1e6))):
        found = misaligned(X, Y, NAMES)
        assert found is not None
        assert not found.certain


def test_a_few_records_are_not_enough():
    X = np.random.default_rng(14).normal(size=(9, 2))
    assert misaligned(X, X[::-1], NAMES[:2]).certain is False
    assert misaligned(X[:3], X[2::-1], NAMES[:2]) is None


@pytest.mark.slow
def test_honest_noise_is_refused_less_often_than_it_is_said():
    rng = np.random.default_rng(14)
    for draw in range(600):
        X = np.exp(rng.normal(size=(80, 2))) if draw % 2 else rng.normal(size=(80, 2))
        found = misaligned(X, noisy(rng, X, 10 ** rng.uniform(-2, 3)), NAMES[:2])
        assert found is None or not found.certain

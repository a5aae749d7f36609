"""The posterior along the rows: hidden Markov chain."""

import itertools

import numpy as np
import pytest

from auditor.base import AuditorError
from auditor.data.sources.built_in import MarkovChain
from auditor.schemes.replacement.law import UniformLaw
from auditor_attacks.posterior import Bayes
from auditor_attacks.serial_posterior import (
    FITTED_ROWS,
    WINDOW,
    SerialBayes,
    expected,
    fitted_chain,
    forward,
    posteriors,
)

A = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
PI = np.array([0.5, 0.3, 0.2])


def chain(rows, stay=0.95, values=5, seed=0):
    source = MarkovChain(MarkovChain.Parameters(stay=stay, values=values))
    return (source.numbers(rows, np.random.default_rng(seed))["state"] - 1).astype(np.uint8)


def seen(x, p, values=5, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(x.size) < p, x, rng.integers(0, values, x.size)).astype(np.uint8)


def named(P, x):
    return float((P.argmax(axis=1) == x).mean())


def true_chain(stay, values):
    other = (1 - stay) / (values - 1)
    return other + (stay - other) * np.eye(values)


def every_series(B):
    for series in itertools.product(range(3), repeat=len(B)):
        steps = np.prod([A[i, j] for i, j in itertools.pairwise(series)])
        yield series, PI[series[0]] * steps * np.prod([B[t, i] for t, i in enumerate(series)])


def along(pi, B):
    alpha, total = forward(A, pi, B[..., None])
    gamma = forward(A.T, np.ones(3), B[::-1, :, None])[0][::-1]
    P = alpha[..., 0] * np.vstack([gamma[1:, :, 0] @ A.T, np.ones(3)])
    return P / P.sum(axis=1, keepdims=True), total


def test_posteriors_moves_and_likelihood_are_sums_over_every_series():
    B = np.random.default_rng(0).uniform(0.1, 1.0, size=(9, 3))
    P, moves, total = np.zeros((9, 3)), np.zeros((3, 3)), 0.0
    for series, chance in every_series(B):
        total += chance
        P[np.arange(9), series] += chance
        np.add.at(moves, (series[:-1], series[1:]), chance)
    found, likelihood = along(PI, B)
    np.testing.assert_allclose(found, P / total, atol=1e-12)
    assert np.exp(likelihood) == pytest.approx(total)
    _, found, log_likelihood = expected(A, PI, B[..., None])
    np.testing.assert_allclose(found, moves / total, atol=1e-12)
    assert log_likelihood == pytest.approx(np.log(total))


def test_windows_with_warm_ups_give_the_posteriors_of_the_whole_series():
    B = np.random.default_rng(1).uniform(0.2, 1.0, size=(2 * WINDOW + 77, 3))
    stationary = np.linalg.matrix_power(A, 100)[0]
    np.testing.assert_allclose(posteriors(A, stationary, B), along(stationary, B)[0], atol=1e-9)


@pytest.mark.parametrize(("stay", "p", "values"), [(0.95, 0.4, 5), (0.99, 0.2, 5), (0.9, 0.5, 10)])
def test_it_names_nearly_as_many_as_who_knows_the_chain(stay, p, values):
    x = chain(FITTED_ROWS, stay, values)
    y, q, law = (seen(x, p, values), np.bincount(x, minlength=values) / x.size, UniformLaw((p,), values, False))  # fmt: skip
    found, alone = (named(SerialBayes(q, law).posterior([y]), x), named(Bayes(q, law).posterior([y]), x))  # fmt: skip
    best = named(posteriors(true_chain(stay, values), q, Bayes(q, law).posterior([y]) / q), x)
    assert best - 0.02 < found
    assert found > alone + 0.2


@pytest.mark.slow
def test_on_records_in_no_order_it_is_posterior():
    q, law, other = np.array([0.5, 0.2, 0.2, 0.1]), UniformLaw((0.4,), 4, False), 0
    for seed in range(15):
        x = np.random.default_rng(seed).choice(4, 1_000, p=q).astype(np.uint8)
        y = seen(x, 0.4, 4, seed + 100)
        if fitted_chain(Bayes(q, law).posterior([y]) / q, q) is not None:
            other += 1
        else:
            alone = Bayes(q, law).posterior([y])
            np.testing.assert_allclose(SerialBayes(q, law).posterior([y]), alone, rtol=1e-13)
    assert other <= 3  # of 15 at no more than 1 in 30: exceeded once in 500 runs at most


def test_copies_that_the_law_makes_impossible_are_an_error():
    x = chain(2_000)
    with pytest.raises(AuditorError, match="impossible under the law"):
        SerialBayes(np.full(5, 0.2), UniformLaw((1.0, 1.0), 5, False)).posterior([x, (x + 1) % 5])
    with pytest.raises(AuditorError, match="impossible under the law"):
        SerialBayes(np.array([0.5, 0.5, 0, 0, 0]), UniformLaw((1.0,), 5, False)).posterior([x])


@pytest.mark.parametrize("stay", [0.0, 0.95])
def test_redraws_start_from_the_chain_of_the_first_one(stay):
    x, law = chain(4_000, stay), UniformLaw((0.4,), 5, False)
    q = np.bincount(x, minlength=5) / x.size
    first, second = seen(x, 0.4, 5, 2**40), seen(x, 0.4, 5, 2**40 + 1)
    again, cold = SerialBayes(q, law).for_redraws(), SerialBayes(q, law)
    np.testing.assert_array_equal(again.posterior([first]), cold.posterior([first]))
    names = [named(each.posterior([second]), x) for each in (again, cold)]
    assert names[0] == pytest.approx(names[1], abs=0.01)

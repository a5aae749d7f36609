"""The posterior along the rows: against sums over every series there can be, who knows the chain, and on records in no order."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.data.sources.series import MarkovChain
from auditor.errors import AuditorError, NotApplicable
from auditor.schemes.replacement.law import UniformLaw, transition_matrix
from auditor_attacks.posterior import Bayes
from auditor_attacks.serial_posterior import (
    FITTED_ROWS,
    WINDOW,
    SerialBayes,
    backward,
    expected_moves,
    fitted_chain,
    forward,
    likelihood,
    posteriors,
    windows,
)

A = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
PI = np.array([0.5, 0.3, 0.2])


def chain(rows, stay=0.95, values=5, seed=0):
    frame = MarkovChain(MarkovChain.Parameters(stay=stay, values=values)).frame(
        rows, np.random.default_rng(seed)
    )
    return (frame["state"].to_numpy() - 1).astype(np.uint8)


def seen(x, p, values=5, seed=1):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(x.size) < p, x, rng.integers(0, values, x.size)).astype(np.uint8)


def named(P, x):
    return float((P.argmax(axis=1) == x).mean())


def true_chain(stay, values):
    return np.full((values, values), (1 - stay) / (values - 1)) + (
        stay - (1 - stay) / (values - 1)
    ) * np.eye(values)


def every_series(B):
    """Chances of whole series and what they show, one by one."""
    for series in itertools.product(range(3), repeat=len(B)):
        steps = np.prod([A[i, j] for i, j in itertools.pairwise(series)])
        yield series, PI[series[0]] * steps * np.prod([B[t, i] for t, i in enumerate(series)])


# -- forward and backward
# ------------------------------------------------------------------------------------------------------


def along(pi, B):
    """The posteriors of one series, and the factors of its likelihood."""
    (alpha, chances), gamma = forward(A, pi, B[:, None]), backward(A, B[:, None])
    P = alpha[:, 0] * np.vstack([gamma[1:, 0] @ A.T, np.ones(3)])
    return P / P.sum(axis=1, keepdims=True), chances


def test_posteriors_moves_and_likelihood_are_sums_over_every_series():
    B = np.random.default_rng(0).uniform(0.1, 1.0, size=(5, 3))
    P, moves, total = np.zeros((5, 3)), np.zeros((3, 3)), 0.0
    for series, chance in every_series(B):
        total += chance
        P[np.arange(5), series] += chance
        np.add.at(moves, (series[:-1], series[1:]), chance)
    found, chances = along(PI, B)
    np.testing.assert_allclose(found, P / total, atol=1e-12)
    assert chances.prod() == pytest.approx(total)
    expected, log_likelihood = expected_moves(A, PI, B[:, None])
    np.testing.assert_allclose(expected, moves / total, atol=1e-12)
    assert log_likelihood == pytest.approx(np.log(total))


def test_windows_with_warm_ups_give_the_posteriors_of_the_whole_series():
    rng = np.random.default_rng(1)
    B = rng.uniform(0.2, 1.0, size=(2 * WINDOW + 77, 3))
    stationary = np.linalg.matrix_power(A, 100)[0]
    np.testing.assert_allclose(posteriors(A, stationary, B), along(stationary, B)[0], atol=1e-9)


def test_windows_hold_every_record_once_and_know_nothing_beyond_the_ends():
    B = np.arange(1.0, 8.0)[:, None]
    assert windows(B, 3, 1)[:, :, 0].T.tolist() == [
        [1, 1, 2, 3, 4],
        [3, 4, 5, 6, 7],
        [6, 7, 1, 1, 1],
    ]


def test_likelihoods_are_those_of_the_law():
    y = np.arange(4, dtype=np.uint8)
    T = transition_matrix(0.4, 4)
    np.testing.assert_allclose(
        likelihood(UniformLaw((0.4,), 4, False), [y]), (T / T.max()).T, atol=1e-15
    )
    assert not likelihood(UniformLaw((1.0, 0.5), 4, False), [y, y]).sum() == 0


# -- what it names
# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stay", "p", "values"), [(0.95, 0.4, 5), (0.99, 0.2, 5), (0.9, 0.5, 10)])
def test_it_names_nearly_as_many_as_who_knows_the_chain(stay, p, values):
    x = chain(FITTED_ROWS, stay, values)
    y, q, law = (
        seen(x, p, values),
        np.bincount(x, minlength=values) / x.size,
        UniformLaw((p,), values, False),
    )
    found, alone = (
        named(SerialBayes(q, law).posterior([y]), x),
        named(Bayes(q, law).posterior([y]), x),
    )
    best = named(posteriors(true_chain(stay, values), q, likelihood(law, [y])), x)
    assert best - 0.02 < found
    assert found > alone + 0.2


def test_a_chain_that_goes_round_is_learnt_too():
    x = (np.cumsum(np.random.default_rng(3).random(8_000) < 0.9) % 5).astype(np.uint8)
    q, law = np.full(5, 0.2), UniformLaw((0.5,), 5, False)
    assert named(SerialBayes(q, law).posterior([seen(x, 0.5)]), x) > 0.85


@pytest.mark.slow
def test_on_records_in_no_order_it_is_posterior():
    q, law, other = np.array([0.5, 0.2, 0.2, 0.1]), UniformLaw((0.4,), 4, False), 0
    for seed in range(15):
        x = np.random.default_rng(seed).choice(4, 1_000, p=q).astype(np.uint8)
        y = seen(x, 0.4, 4, seed + 100)
        if fitted_chain(likelihood(law, [y]), q) is not None:
            other += 1
        else:
            np.testing.assert_array_equal(
                SerialBayes(q, law).posterior([y]), Bayes(q, law).posterior([y])
            )
    assert other <= 3  # of 15 at no more than 1 in 30: exceeded once in 500 runs at most


def test_pooling_multilevel_copies_is_the_best_copy_alone_and_pooling_fresh_ones_is_not():
    x, q = chain(3_000), np.full(5, 0.2)
    y = seen(x, 0.4)
    worse = seen(y, 0.5, seed=2)  # retention 0.2, made of the copy before it
    chained = UniformLaw((0.4, 0.2), 5, True)
    alone = SerialBayes(q, chained.of([1])).posterior([y])
    np.testing.assert_allclose(SerialBayes(q, chained).posterior([y, worse]), alone, atol=1e-9)
    fresh = UniformLaw((0.4, 0.4), 5, False)
    assert (
        named(SerialBayes(q, fresh).posterior([y, seen(x, 0.4, seed=5)]), x)
        > named(alone, x) + 0.03
    )


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_copies_that_say_nothing_or_all(p):
    x, q = chain(2_000), np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    P = SerialBayes(q, UniformLaw((p,), 5, False)).posterior([seen(x, p)])
    np.testing.assert_allclose(P, np.eye(5)[x] if p else np.tile(q, (x.size, 1)), atol=1e-9)


def test_copies_that_the_law_makes_impossible_are_an_error():
    x = chain(2_000)
    with pytest.raises(AuditorError, match="impossible under the law"):
        SerialBayes(np.full(5, 0.2), UniformLaw((1.0, 1.0), 5, False)).posterior([x, (x + 1) % 5])
    with pytest.raises(AuditorError, match="impossible under the law"):
        SerialBayes(np.array([0.5, 0.5, 0, 0, 0]), UniformLaw((1.0,), 5, False)).posterior([x])


def test_a_domain_too_wide_to_learn_is_not_applicable():
    column = pd.Series(pd.Categorical(np.arange(200)))
    release = auditor.perturb(column, "uniform", [0.5], seed=1)
    with pytest.raises(NotApplicable, match="at most 128 values"):
        auditor.attack("serial-posterior", release)


# -- in an audit
# -----------------------------------------------------------------------------------------------------------------


def scenario(**changes):
    return {
        "schema": 1, "seed": 3, "data": {"source": "markov-chain", "values": 4, "rows": 1200, "categorical": ["state"]},
        "schemes": [{"name": "uniform", "levels": [0.4]}], "knowledge": ["perfect"], "coalitions": ["singles"],
        "attacks": ["serial-posterior"], **changes,
    }  # fmt: skip


def figures(result, metric="accuracy"):
    return [m for m in result.measurements if m.metric == metric and m.status == "ok"]


@pytest.mark.slow
def test_an_audit_has_figures_and_bars_from_other_draws_and_no_theory():
    (found,) = figures(auditor.run(scenario()))
    assert found.value > 0.75
    assert found.error_bar == "redraws"
    assert found.theory is None
    assert found.ci_low < found.value < found.ci_high


@pytest.mark.slow
def test_results_do_not_depend_on_workers():
    one, two = (auditor.run(scenario(), workers=workers) for workers in (1, 2))
    assert [m.value for m in one.measurements] == [m.value for m in two.measurements]


def test_on_added_noise_it_is_not_applicable():
    result = auditor.run(scenario(data={"source": "iris", "columns": ["petal_length"], "bin": {"petal_length": {"quantile": 4}}},
                                  schemes=[{"name": "corner-wave", "levels": [0.5]}]))  # fmt: skip
    assert {m.status for m in result.measurements if m.attack == "serial-posterior"} == {
        "not-applicable"
    }


@pytest.mark.slow
def test_of_all_attacks_it_is_tried_on_the_coalitions_that_decide():
    found = auditor.run(
        scenario(
            schemes=[{"name": "uniform", "levels": [0.4, 0.3, 0.2]}],
            coalitions=["subsets"],
            attacks="all",
            replicates=5,
        )
    )
    tried = {
        attack: {tuple(m.coalition) for m in figures(found) if m.attack == attack}
        for attack in ("posterior", "serial-posterior")
    }
    assert len(tried["posterior"]) == 7
    assert tried["serial-posterior"] == {(1,), (2,), (3,), (1, 2), (1, 2, 3)}

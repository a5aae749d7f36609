"""Declared, estimated and PRAM laws of replacement."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.audit.categorical.attack_records import simulated
from auditor.base import AuditorError
from auditor.numerics.random_streams import stream
from auditor.schemes.replacement.base import sent_through
from auditor.schemes.replacement.law import (
    RECORDS_BY_LAW,
    MatrixLaw,
    UniformLaw,
    estimated,
    transition_matrix,
    transitions,
)
from auditor.schemes.uniform import invariant
from tests.audited import cells

P = np.array([[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.0, 0.25, 0.75]])
Q = np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])
LAW = MatrixLaw((0.0, 0.5), 3, False, transitions=(P, Q))


def answers(rows=4000):
    return pd.Series(
        np.random.default_rng(1).choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]), name="answer"
    ).astype("category")


def test_values_are_sent_as_their_row_says_and_never_where_it_says_nothing():
    x = np.repeat(np.arange(3, dtype=np.uint8), 20_000)
    y = sent_through(x, P, stream(1, "test"))
    found = np.array([np.bincount(y[x == value], minlength=3) / 20_000 for value in range(3)])
    assert (np.abs(found - P) <= 5 * np.sqrt(P * (1 - P) / 20_000)).all()
    assert found[2, 0] == 0.0


def test_the_law_is_the_product_of_the_matrices_and_bayes_goes_by_it():
    joint = LAW.given_original()
    for x, y, z in product(range(3), repeat=3):
        assert joint[x, y, z] == pytest.approx(P[x, y] * Q[x, z])
        assert LAW.likelihood([np.array([y]), np.array([z])])[0, x] == pytest.approx(joint[x, y, z])
    uniform = UniformLaw((0.3, 0.6), 3, False)
    np.testing.assert_allclose(
        uniform.likelihood([np.array([0, 1]), np.array([2, 1])])[0],
        uniform.given_original()[:, 0, 2],
    )


def test_epsilon_is_the_largest_log_ratio_over_all_outcomes():
    T = 0.9 * P + 0.1 / 3
    joint = MatrixLaw((0.0, 0.5), 3, False, transitions=(T, P @ T)).given_original().reshape(3, -1)
    naive = max(np.log(joint[x] / joint[other]).max() for x in range(3) for other in range(3))
    assert MatrixLaw((0.0, 0.5), 3, False, transitions=(T, P @ T)).epsilon() == pytest.approx(naive)
    assert LAW.epsilon() == np.inf  # c never becomes a
    flat = MatrixLaw((0.0,), 3, False, transitions=(np.tile(P[0], (3, 1)),))
    assert flat.epsilon() == 0.0


def test_an_invariant_matrix_keeps_shares():
    q = np.array([0.6, 0.3, 0.1])
    T = invariant(P, q)
    np.testing.assert_allclose(q @ T, q)
    np.testing.assert_allclose(T.sum(axis=1), 1.0)
    assert (T >= 0).all()
    # empty categories
    np.testing.assert_allclose(invariant(P, np.array([1.0, 0.0, 0.0])).sum(axis=1), 1.0)


def test_a_plain_inversion_and_the_pooled_gain_are_measured_as_theory_says():
    document = {
        "data": {"source": "cps", "columns": ["age", "salary"], "rows": 500, "bin": {"salary": {"quantile": 3}, "age": {"quantile": 2}}},
        "schemes": [{"name": "pram", "levels": [0.0, 0.3], "matrix": {"salary": P.tolist(), "age": [[0.9, 0.1], [0.3, 0.7]]}}],
        "knowledge": ["perfect", "uniform-prior", {"estimated": {"rows": 200}}, {"known-records": 200}], "attacks": ["posterior"],
        "coalitions": ["subsets"], "seed": 5, "measures": ["marginal-gap"],
        "expect": [{"matches-theory": {"attack": "posterior"}}, {"collusion-gain": {"coalition": "all", "knowledge": "perfect", "at-least": 0.1}}],
    }  # fmt: skip
    result = auditor.run(document)
    assert [each.status for each in result.expectations] == ["holds", "holds"]
    assert {m.status for m in result.measurements} == {"ok"}
    found = {
        m.knowledge: m.value
        for m in cells(result, metric="normalized_error", coalition=(1, 2), attribute="*")
    }
    assert found["perfect"] <= min(found.values()) + 0.03


@pytest.mark.parametrize(("matrix", "said"), [
    ([[0.5, 0.4], [0.5, 0.5]], "row 1 must be chances"), ([[1.5, -0.5], [0.5, 0.5]], "row 1 must be chances"), ([[1.0], [1.0]], "row 1 must have one chance for each of 2 rows; got 1"),
])  # fmt: skip
def test_what_is_no_matrix_of_chances_is_refused(matrix, said):
    with pytest.raises(AuditorError, match=said):
        auditor.perturb(answers(20), "pram", [0.0], seed=1, matrix=matrix)


def test_a_matrix_of_other_categories_is_refused_by_column():
    with pytest.raises(
        AuditorError,
        match="column 'answer' must have 3 rows, one for each category in order; got 2",
    ):
        auditor.perturb(answers(20), "pram", [0.0], seed=1, matrix=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(
        AuditorError, match="names column 'answr', which is not perturbed; did you mean 'answer'"
    ):
        auditor.perturb(answers(20), "pram", [0.0], seed=1, matrix={"answr": P.tolist()})


PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def test_chances_by_hand():
    x, y = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    U = transition_matrix((0.75 - 0.5) / 0.5, 2)
    n = np.array([[2, 1], [0, 1]])
    expected = [(n + w * U) / (n.sum(axis=1, keepdims=True) + w) for w in RECORDS_BY_LAW]
    assert any(np.allclose(transitions(x, y, [2])[0], T) for T in expected)


@pytest.mark.parametrize("multilevel", [True, False])
def test_it_finds_the_posterior_of_the_law_that_copies_were_drawn_by(multilevel):
    """40,000 records: of multilevel copies the best alone counts, of fresh ones all."""
    levels, rng = (0.3, 0.6, 0.45), np.random.default_rng(2**40)
    x = rng.choice(4, 40_000, p=PRIOR).astype(np.uint8)
    law = UniformLaw(levels, 4, multilevel)
    found = estimated(x, simulated(law, x, rng), [4])
    assert found.levels == pytest.approx(levels, abs=5 * 0.0036)
    outcomes = [part.ravel().astype(np.uint8) for part in np.indices((4, 4, 4))]
    posteriors = [PRIOR * each.likelihood(outcomes) for each in (found, law)]
    own, exact = (P / P.sum(axis=1, keepdims=True) for P in posteriors)
    # a chance has an error of 0.005 or less, and three are multiplied
    assert np.abs(own - exact).max() < 0.03
    assert found.of([1, 3]).redundant.any() == multilevel


SCHEMES = {name: registry.get("scheme", name) for name in registry.names("scheme")}
X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
COLOURS = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "green", "red", "blue"] * 8)})


def original_of(scheme):
    if SCHEMES[scheme].engine != "numeric":
        return COLOURS
    return (10 * X).round() if SCHEMES[scheme].on_lattice else X


@pytest.mark.parametrize(
    "scheme",
    [name for name, cls in SCHEMES.items() if cls.makes_copies and cls.level_of_original is not None],
)  # fmt: skip
def test_a_copy_at_the_level_of_the_original_is_the_original(scheme):
    original = original_of(scheme)
    (copy,) = auditor.perturb(
        original, scheme, [SCHEMES[scheme].level_of_original], seed=1, **SCHEMES[scheme].trial
    ).copies
    pd.testing.assert_frame_equal(copy, original)

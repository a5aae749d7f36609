"""Transform match: one known record names every coefficient; what is dropped is guessed by least squares; secret matrices are refused."""

from __future__ import annotations

import numpy as np
import pytest

import auditor
from auditor.errors import NotApplicable
from auditor.schemes.random_projection import cosine_transform
from auditor_attacks.transform_match import Named, moment_gaps, nearest_gaps
from benchmarks.coverage import tables


def table(rows=300, N=5, seed=0):
    rng = np.random.default_rng(seed)
    return 1e3 + rng.exponential(size=(rows, N)) @ rng.normal(size=(N, N)) + 10 * np.arange(N)


def projected(X, dimensions, **more):
    return auditor.perturb(
        X,
        "random-projection",
        [0] * more.get("copies", 1),
        seed=1,
        dimensions=dimensions,
        matrix="dct",
        **more,
    )


def attacked(release, knowledge, **more):
    return auditor.attack("transform-match", release, knowledge=knowledge, seed=3, **more)


KNOWLEDGE = [
    "perfect",
    {"known-records": 1},
    {"known-records": 40},
    {"unmatched-records": 1},
    {"unmatched-records": 40},
]


def test_two_attributes_by_hand():
    """C = [[1, 1], [1, −1]]/√2; x = (3, 1) has coefficients √8 and √2. Columns in the other order: y = (√2, √8)."""
    C = cosine_transform(2)
    np.testing.assert_allclose(C, np.array([[1, 1], [1, -1]]) / np.sqrt(2), atol=1e-15)
    y, c = np.sqrt([[2.0, 8.0]]), np.array([[3.0, 1.0]]) @ C.T
    named = Named.of(C, c[0], np.zeros((2, 2)), 1, (y.T - c) ** 2)
    np.testing.assert_array_equal(named.kept, [1, 0])
    np.testing.assert_allclose(named.rows([y]), [[3.0, 1.0]])


@pytest.mark.parametrize("knowledge", KNOWLEDGE, ids=str)
@pytest.mark.parametrize("coalition", [[1], [2, 3]], ids=str)
def test_a_transform_that_keeps_all_hides_nothing(knowledge, coalition):
    found = attacked(projected(table(), 5, copies=3), knowledge, coalition=coalition)
    assert found.normalized_error < 1e-20
    assert found.theory == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("knowledge", KNOWLEDGE, ids=str)
def test_what_is_dropped_is_guessed_as_well_as_least_squares_can(knowledge):
    """With exact moments by K_rest,π K_ππ⁺ over the table, written out; with one record only by that record's own coefficients."""
    X = table()
    found = attacked(projected(X, 3), knowledge)
    c = X @ cosine_transform(5).T
    kept = np.argsort(-(c**2).mean(axis=0))[:3]
    rest = np.setdiff1d(np.arange(5), kept)
    centred = c - c.mean(axis=0)
    left = (
        centred[:, rest]
        - centred[:, kept] @ np.linalg.lstsq(centred[:, kept], centred[:, rest], rcond=None)[0]
    )
    least = (left**2).sum() / X.size
    assert found.theory == pytest.approx(found.distortion, rel=1e-6)
    if knowledge == "perfect":
        assert found.distortion == pytest.approx(least, rel=1e-9)
    elif 1 not in knowledge.values():
        assert least * 0.9 < found.distortion < 1.6 * least  # forty records, four coefficients
    else:
        assert found.distortion > least


def test_nearest_values_are_those_of_a_naive_search_over_blocks():
    rng = np.random.default_rng(4)
    y, c = rng.normal(size=(50, 2)), rng.normal(size=(7, 3))
    naive = np.array(
        [
            [np.mean([np.abs(y[:, j] - value).min() ** 2 for value in c[:, i]]) for i in range(3)]
            for j in range(2)
        ]
    )
    np.testing.assert_allclose(nearest_gaps(c, [[y[:20]], [y[20:20]], [y[20:]]]), naive)


def test_moments_tell_columns_by_mean_and_deviation():
    gaps = moment_gaps(
        np.array([1.0, 2.0]), np.diag([4.0, 9.0]), (np.array([2.0]), np.array([[16.0]]), 9)
    )
    np.testing.assert_allclose(gaps, [[1 + 4, 0 + 1]])


def test_a_sample_names_coefficients_that_are_apart_and_states_no_theory():
    """Means 100 apart at deviation 1: a sample of 100 tells them. Coefficients that are alike it may take for each other: nothing is promised."""
    c = 100.0 * np.arange(5) + np.random.default_rng(2).normal(size=(300, 5))
    found = attacked(projected(c @ cosine_transform(5), 5), {"known-sample": 100})
    assert found.normalized_error < 1e-20
    assert found.theory is None


def test_a_record_whose_coefficients_are_the_same_promises_nothing():
    """All coefficients 0: every column fits every coefficient."""
    X = np.vstack([np.zeros((2, 3)), table(40, 3)])
    C = cosine_transform(3)
    named = Named.of(C, np.zeros(3), np.eye(3), 1, (X[:1].T - X[:1] @ C.T) ** 2)
    assert not named.certain
    assert named.expected(X) is None


@pytest.mark.parametrize(
    ("scheme", "level", "more"),
    [("rotation", 0, {}), ("rotation-noise", 0.1, {}), ("random-projection", 0, {"dimensions": 3})],
)
def test_a_secret_matrix_is_refused_with_the_reason(scheme, level, more):
    release = auditor.perturb(table(), scheme, [level], seed=1, **more)
    with pytest.raises(NotApplicable, match="the matrix of this scheme is secret"):
        attacked(release, {"known-records": 5})


@pytest.mark.slow
def test_pooling_copies_of_one_transform_gives_nothing_and_an_audit_meets_theory():
    result = auditor.run({
        "seed": 3, "data": {"source": "components", "shapes": ["exponential", "gamma", "laplace"], "attributes": 6, "mean": 1, "rows": 400},
        "schemes": [{"name": "random-projection", "dimensions": 4, "copies": 2, "matrix": "dct"}],
        "knowledge": ["perfect", {"known-records": 30}, {"unmatched-records": 30}], "coalitions": ["singles", "all"],
        "attacks": ["transform-match"],
        "expect": [{"matches-theory": {}}, {"collusion-gain": {"coalition": "all", "between": [-1e-9, 1e-9]}}],
    })  # fmt: skip
    assert [e.status for e in result.expectations] == ["holds", "holds"], [
        e.why for e in result.expectations
    ]


def test_an_error_bar_has_seen_names_that_are_right_and_wrong():
    """A sample of 30 takes columns for one another in one draw of ten, here in the release itself; nine other draws showed ± 2e-6 about 3.0."""
    found = auditor.run({
        "seed": 4, "data": tables()["breast cancer"], "schemes": [{"name": "random-projection", "dimensions": 3, "matrix": "dct"}],
        "knowledge": [{"known-sample": 30}], "attacks": ["transform-match"],
    })  # fmt: skip
    (error,) = [
        m for m in found.measurements if m.metric == "normalized_error" and m.attribute == "a1"
    ]
    assert error.std_error > 0.1 * error.value

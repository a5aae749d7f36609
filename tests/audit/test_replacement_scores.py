"""Scores of categories are uniform and independent on honest draws, and determine the copies."""

from __future__ import annotations

import numpy as np
import pytest
from categorical_law import law_tests
from scipy.stats import binom, kstest

from auditor.audit.law_tests.categorical import (
    count_tests,
    replacement_scores,
    scored_copies,
    scored_rows,
    sources,
    transitions,
)
from auditor.schemes.replacement.law import MatrixLaw, UniformLaw

PI, WITH_ZERO = (0.1, 0.2, 0.3, 0.4), (0.5, 0.0, 0.3, 0.2)
MATRICES = tuple(np.random.default_rng(k).dirichlet(np.ones(4), 4) for k in range(3))
LAWS = {
    "uniform": UniformLaw((0.3, 0.6, 0.15), 4, False),
    "multilevel": UniformLaw((0.3, 0.6, 0.15), 4, True),
    "unequal": UniformLaw((0.3, 0.6, 0.15), 4, True, PI),
    "never one value": UniformLaw((0.3, 0.6, 0.0), 4, True, WITH_ZERO),
    "matrices": MatrixLaw((0.3, 0.6, 0.15), 4, False, transitions=MATRICES),
}


def column(rows, size=4):
    return np.minimum(np.random.default_rng(14).geometric(0.3, rows) - 1, size - 1)


def inverse(step, a, u, from_source):
    """Return the copy that has scores u: a walk along the row of T that starts at o."""
    found = np.empty_like(a)
    for k in range(a.size):
        order = np.roll(np.arange(4), -a[k] if from_source else 0)
        found[k] = order[np.searchsorted(np.cumsum(step.matrix[a[k], order]), u[k], side="right")]
    return found


def drawn(law, x, rng):
    """Return original and copies in the order of their numbers, drawn row by row from the law."""
    columns = {0: x}
    for step in transitions(law):
        columns[step.copy] = inverse(step, columns[step.source], rng.random(x.size), True)
    return [columns[number] for number in range(len(law.levels) + 1)]


@pytest.mark.parametrize("from_source", [True, False])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_scores_determine_the_copies(law, from_source):
    rng, x = np.random.default_rng(1), column(300)
    columns, steps = drawn(law, x, rng), transitions(law)
    scores = replacement_scores(steps, columns, rng, from_source)
    for step, u in zip(steps, scores.T, strict=True):
        assert (inverse(step, columns[step.source], u, from_source) == columns[step.copy]).all()


@pytest.mark.parametrize("from_source", [True, False])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_scores_of_honest_draws_are_uniform_and_uncorrelated(law, from_source):
    """30 + 10·9 tests at 1e-6 each."""
    rng, x = np.random.default_rng(2), column(4000)
    scores = replacement_scores(transitions(law), drawn(law, x, rng), rng, from_source)
    assert min(kstest(u, "uniform").pvalue for u in scores.T) > 1e-6
    r = np.corrcoef(np.column_stack([scores, x]).T)
    assert np.abs(r[np.triu_indices(4, 1)]).max() * np.sqrt(4000) < 4.9


def test_a_chain_by_hand():
    steps = transitions(UniformLaw((0.25, 0.5, 0.125), 6, True))
    assert [(each.copy, each.source, each.kept) for each in steps] == [
        (2, 0, 0.5),
        (1, 2, 0.5),
        (3, 1, 0.5),
    ]
    assert sources(UniformLaw((0.25, 0.5, 0.125), 6, True), (7, 8, 9)) == [(8, 7), (7, 9)]
    fresh = transitions(UniformLaw((0.25, 0.5), 6, False))
    assert {each.copy: (each.source, each.kept) for each in fresh} == {2: (0, 0.5), 1: (0, 0.25)}


def test_scores_by_hand():
    """Half is kept of two values: T = (3/4, 1/4). Counted from the source a kept value is below 3/4."""
    x, y = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
    steps = transitions(UniformLaw((0.5,), 2, False))
    v = np.random.default_rng(3).random(4)
    coins = replacement_scores(steps, [x, y], np.random.default_rng(3))[:, 0]
    values = replacement_scores(steps, [x, y], np.random.default_rng(3), False)[:, 0]
    np.testing.assert_allclose(
        coins, [0.75 * v[0], 0.75 * v[1], 0.75 + 0.25 * v[2], 0.75 + 0.25 * v[3]]
    )
    np.testing.assert_allclose(
        values, [0.75 * v[0], 0.25 + 0.75 * v[1], 0.75 + 0.25 * v[2], 0.25 * v[3]]
    )


def test_which_copies_and_rows_are_scored():
    assert scored_copies([2, 5, 9], 100) == [2, 5, 9]
    assert scored_copies(range(1, 32), 2**20) == list(range(1, 32, 2))
    assert scored_copies(range(1, 32), 3000) == list(range(1, 32))
    assert scored_rows(16, 2**15) == [(0, 2**15)]
    k = 2**15 // 3
    assert scored_rows(3, 60_000) == [(0, k), (k, 2 * k), (60_000 - k, 60_000)]
    assert scored_rows(3, 100_000) == [(0, k), (2**16, 2**16 + k), (100_000 - k, 100_000)]
    assert scored_rows(64, 10**9)[0] == (0, 2**13 // 3)


def test_counts_of_transitions_by_hand():
    """8 of 10 records keep value 0, by law 6 of 10; value 1 has no record."""
    counts, law = np.array([[8, 2], [0, 0]]), UniformLaw((0.2,), 2, True)
    kept, cells = count_tests(law, [1], lambda source, copy: counts, 10)
    p = 2 * binom.sf(7, 10, 0.6)
    assert kept.p == pytest.approx(p)
    assert (kept.observed, kept.expected, kept.tests) == (0.8, pytest.approx(0.6), 1)
    assert (cells.p, cells.tests) == (pytest.approx(2 * p), 2)
    assert kept.telling == pytest.approx(np.sqrt(0.4 / 0.6))


def test_what_cannot_be_is_found_in_one_record():
    x, law = column(500), UniformLaw((0.5, 0.5), 4, True, WITH_ZERO)
    _, first, second = drawn(law, x, np.random.default_rng(4))
    assert min(test.p for test in law_tests(x, law, [first, second])) > 1e-6
    other = second.copy()
    other[17] = (other[17] + 1) % 4
    assert min(test.p for test in law_tests(x, law, [first, other])) == 0.0
    never = first.copy()
    never[np.flatnonzero(x != 1)[0]] = 1
    assert min(test.p for test in law_tests(x, law, [never, never])) == 0.0

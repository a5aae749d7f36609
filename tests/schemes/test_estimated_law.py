"""The law of categorical copies as estimated: by hand, against naive counts, and that it finds each law it can hold again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from auditor.audit.categorical.error_bars import simulated
from auditor.schemes.replacement.estimated_law import (
    BY_LAW,
    RECORDS_BY_LAW,
    estimated,
    estimated_pair,
    evidence,
    transitions,
)
from auditor.schemes.replacement.law import UniformLaw, transition_matrix

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def release(levels, size=4, multilevel=True, rows=40_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.choice(size, rows, p=PRIOR[:size] / PRIOR[:size].sum()).astype(np.uint8)
    return x, simulated(UniformLaw(levels, size, multilevel), x, rng)


def test_chances_by_hand():
    """Three records of x = 0, of which two keep it; of the uniform law at (m − 1/2)/(1/2) there are w more records."""
    x, y = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    U = transition_matrix((0.75 - 0.5) / 0.5, 2)
    found = transitions(x, y, [2])
    assert found[0] == pytest.approx((np.array([2, 1]) + BY_LAW * U[0]) / (3 + BY_LAW))
    assert found[1] == pytest.approx((np.array([0, 1]) + BY_LAW * U[1]) / (1 + BY_LAW))


def test_evidence_by_hand():
    """Chances uniform on [0, 1]: two of one value and one of the other have ``∫ p²(1 − p) dp = 1/12``, and a row without records 1."""
    counts = np.array([[2, 1], [0, 0]])
    assert evidence(counts, np.ones((2, 2))) == pytest.approx(np.log(1 / 12))
    several = np.array([[2, 1], [1, 0]])  # the second row's only record has chance ½
    assert evidence(several, np.ones((2, 2))) == pytest.approx(np.log(1 / 24))


def test_records_by_the_uniform_law_are_few_where_a_copy_is_far_from_it():
    """Uniform copies keep all of them; where four common values are exchanged and four rare ones never, rare ones are believed."""
    rng = np.random.default_rng(3)
    x = rng.choice(8, 6_000, p=[0.4, 0.3, 0.2, 0.08, 0.015, 0.003, 0.001, 0.001])
    uniform = np.where(rng.random(x.size) < 0.5, x, rng.integers(0, 8, x.size))
    rare = np.where((rng.random(x.size) < 0.5) | (x >= 4), x, rng.integers(0, 4, x.size))
    prior = np.bincount(x, minlength=8) / x.size
    for copy, likeliest in ((uniform, RECORDS_BY_LAW[:1]), (rare, RECORDS_BY_LAW[2:])):
        counts = np.zeros((8, 8))
        np.add.at(counts, (x, copy), 1)
        U = transition_matrix((np.mean(x == copy) - 1 / 8) / (7 / 8), 8)
        by_w = [(counts + w * U) / (counts.sum(axis=1, keepdims=True) + w) for w in likeliest]
        assert any(np.allclose(transitions(x, copy, [8]), T, rtol=1e-12) for T in by_w)
    shown = prior * transitions(x, rare, [8]).T
    # by 20 records of the uniform law 0.32 to 0.94
    assert (np.diag(shown / shown.sum(axis=1, keepdims=True))[4:] > 0.9).all()


@pytest.mark.parametrize("table", [True, False])
def test_chances_given_another_copy_sum_to_1_and_equal_the_formula_written_out(table):
    x, (y_i, y_j) = release((0.5, 0.3), rows=500)
    T = transitions(x, y_j, [4])
    pair = estimated_pair(x, y_i, y_j, T, table)
    values = [
        np.array(part, dtype=np.uint8)
        for part in zip(*itertools.product(range(4), repeat=2), strict=True)
    ]
    chances = pair.chances(*values).T.reshape(4, 4, 4)
    np.testing.assert_allclose(chances.sum(axis=2), 1.0, atol=1e-12)

    def naive(x_, i, j):
        kind = (0 if j == x_ else 1) if i == x_ else 2 if j == x_ else 3 if i == j else 4
        return T[x_, j] * pair.ratios[kind]

    for x_, i, j in itertools.product(range(4), repeat=3):
        by_pattern = naive(x_, i, j) / sum(naive(x_, i, y) for y in range(4))
        seen = (x == x_) & (y_i == i)
        expected = (
            ((seen & (y_j == j)).sum() + BY_LAW * by_pattern) / (seen.sum() + BY_LAW)
            if table
            else by_pattern
        )
        assert chances[x_, i, j] == pytest.approx(expected)


@pytest.mark.parametrize("multilevel", [True, False])
def test_it_finds_the_law_that_copies_were_drawn_by(multilevel):
    """40,000 records: a cell's chance has a standard error of 0.006 at most where 2,000 records are; the rarest pair has fewer."""
    levels = (0.3, 0.6, 0.45)
    x, copies = release(levels, multilevel=multilevel)
    law = estimated(x, dict(enumerate(copies, start=1)), [4], [(1, 2, 3)])
    assert law.levels == pytest.approx(levels, abs=5 * 0.0036)
    exact = UniformLaw(levels, 4, multilevel)
    joint = [np.einsum("x,x...->x...", PRIOR, each.given_original()) for each in (law, exact)]
    np.testing.assert_allclose(joint[0].sum(), 1.0, atol=1e-12)
    # total variation: about √(cells/n)/2 = 0.01 by chance
    assert np.abs(joint[0] - joint[1]).sum() / 2 < 0.02


def test_copies_that_were_all_made_from_the_best_hang_on_it():
    """Were copy 3 taken as a copy of 2, or as independent, the pooled belief would be surer than the best copy's."""
    rng = np.random.default_rng(2)
    x, (best,) = release((0.7,), rows=20_000)
    copies = {1: best} | {
        k: simulated(UniformLaw((p,), 4, False), best, rng)[0] for k, p in ((2, 0.8), (3, 0.6))
    }
    law = estimated(x, copies, [4], [(1, 2, 3)])
    belief = PRIOR * law.likelihood(list(copies.values()))
    alone = PRIOR * law.of([1]).likelihood([best])
    sure = [np.mean(each.max(axis=1) / each.sum(axis=1)) for each in (belief, alone)]
    assert sure[0] == pytest.approx(sure[1], abs=0.01)

"""The law of copies of categories, estimated."""

import itertools

import numpy as np
import pytest

from auditor.audit.categorical.error_bars import simulated
from auditor.schemes.replacement.estimated_law import BY_LAW, estimated, estimated_pair, transitions
from auditor.schemes.replacement.law import UniformLaw, transition_matrix

PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def release(levels, size=4, multilevel=True, rows=40_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.choice(size, rows, p=PRIOR[:size] / PRIOR[:size].sum()).astype(np.uint8)
    return x, simulated(UniformLaw(levels, size, multilevel), x, rng)


def test_chances_by_hand():
    x, y = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    U = transition_matrix((0.75 - 0.5) / 0.5, 2)
    found = transitions(x, y, [2])
    assert found[0] == pytest.approx((np.array([2, 1]) + BY_LAW * U[0]) / (3 + BY_LAW))
    assert found[1] == pytest.approx((np.array([0, 1]) + BY_LAW * U[1]) / (1 + BY_LAW))


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
    """40,000 records."""
    levels = (0.3, 0.6, 0.45)
    x, copies = release(levels, multilevel=multilevel)
    law = estimated(x, dict(enumerate(copies, start=1)), [4], [(1, 2, 3)])
    assert law.levels == pytest.approx(levels, abs=5 * 0.0036)
    exact = UniformLaw(levels, 4, multilevel)
    joint = [np.einsum("x,x...->x...", PRIOR, each.given_original()) for each in (law, exact)]
    np.testing.assert_allclose(joint[0].sum(), 1.0, atol=1e-12)
    # total variation: about √(cells/n)/2 = 0.01 by chance
    assert np.abs(joint[0] - joint[1]).sum() / 2 < 0.02

"""The law of copies of categories, estimated."""

import numpy as np
import pytest

from auditor.audit.categorical.error_bars import simulated
from auditor.schemes.replacement.law import (
    RECORDS_BY_LAW,
    UniformLaw,
    estimated,
    transition_matrix,
    transitions,
)

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

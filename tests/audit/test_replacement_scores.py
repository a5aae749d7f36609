"""Scores of categories under a true law."""

import numpy as np
import pytest
from scipy.stats import kstest

from auditor.audit.law_tests.categorical import replacement_scores, transitions
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
    found = np.empty_like(a)
    for k in range(a.size):
        order = np.roll(np.arange(4), -a[k] if from_source else 0)
        found[k] = order[np.searchsorted(np.cumsum(step.matrix[a[k], order]), u[k], side="right")]
    return found


def drawn(law, x, rng):
    columns = {0: x}
    for step in transitions(law):
        columns[step.copy] = inverse(step, columns[step.source], rng.random(x.size), True)
    return [columns[number] for number in range(len(law.levels) + 1)]


@pytest.mark.parametrize("from_source", [True, False])
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_scores_of_honest_draws_are_uniform_and_uncorrelated(law, from_source):
    """30 + 10·9 tests at 1e-6 each."""
    rng, x = np.random.default_rng(2), column(4000)
    scores = replacement_scores(transitions(law), drawn(law, x, rng), rng, from_source)
    assert min(kstest(u, "uniform").pvalue for u in scores.T) > 1e-6
    r = np.corrcoef(np.column_stack([scores, x]).T)
    assert np.abs(r[np.triu_indices(4, 1)]).max() * np.sqrt(4000) < 4.9


def test_scores_by_hand():
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

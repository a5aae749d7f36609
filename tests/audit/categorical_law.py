"""Test copies of categories against a law, as an audit does."""

import numpy as np

from auditor.audit.law_tests import categorical
from auditor.numerics.random_streams import stream


def law_tests(x, law, copies, seed=1):
    """Return the tests of copies, in order of their numbers, against a law."""
    numbers, columns = range(1, len(copies) + 1), [x, *copies]

    def pairs(source, copy):
        return categorical.pairs_of(columns[source], columns[copy], law.size)

    chosen = categorical.scored_copies(numbers, len(x))
    first = np.concatenate(
        [np.arange(*run) for run in categorical.scored_rows(len(chosen), len(x))]
    )
    scored = [columns[number][first] for number in (0, *chosen)]
    tests = categorical.count_tests(law, numbers, pairs, len(x))
    return tests + categorical.score_tests(
        law.of(chosen), scored, chosen, {"a": scored[0]}, stream(seed, "scores")
    )


def least(tests):
    """Return the least p-value, for all statistics together (Bonferroni)."""
    return min(test.p for test in tests) * len(tests)

"""Counts of pairs of values give the chi-square test of a whole table."""

import numpy as np
from scipy.special import chdtrc

from auditor.audit.categorical.first_pass import test_of_chances as of_pairs
from auditor.audit.law_tests.categorical import FEWEST_EXPECTED, Pairs, Transition, of_original
from auditor.schemes.replacement.law import UniformLaw


def naive(counts, share):
    """Pool the pairs of a dense table that expect fewer than five records."""
    if (counts[share <= 0] > 0).any():
        return 0.0, 1
    expected = counts.sum(axis=1, keepdims=True) * share
    possible, large = expected > 0, expected >= FEWEST_EXPECTED
    small = large.sum() + ~np.eye(len(expected), dtype=bool)
    cells = np.where(large, np.cumsum(large).reshape(large.shape) - 1, small)
    observed, forecast = (
        np.bincount(cells[possible], part[possible]) for part in (counts, expected)
    )
    keep, some = forecast >= FEWEST_EXPECTED, possible.any(axis=1)
    whole = (large | ~possible).all(axis=1) & some
    degrees = int(keep.sum() - whole.sum() - bool((~whole & some).any()))
    if degrees < 1:
        return 1.0, 0
    chi = ((observed[keep] - forecast[keep]) ** 2 / forecast[keep]).sum()
    return float(chdtrc(degrees, chi)), degrees


def test_pairs_alone_give_the_chi_square_test_of_the_whole_table():
    rng, degrees = np.random.default_rng(2**40 + 1), []
    for case in range(200):
        size, n = int(rng.integers(2, 25)), int(rng.integers(1, 4000))
        p, kept = (float(rng.choice([0, 0.1, 0.5, 0.9, 1])) for _ in range(2))
        pi = np.where(rng.random(size) < 0.2, 0.0, rng.dirichlet(np.full(size, 0.5)) + 1e-6)
        pi = None if case % 2 or not pi.any() else pi / pi.sum()
        law = of_original(UniformLaw((p,), size, True, None if pi is None else tuple(pi)), 1)
        law = law if case % 3 else Transition(1, 0, 0.0, law.matrix)
        x = rng.choice(size, n, p=rng.dirichlet(np.full(size, 0.3)))
        y = np.where(rng.random(n) < (kept if case % 5 == 0 else p), x, rng.choice(size, n, p=pi))
        keys, counts = np.unique(x * size + y, return_counts=True)
        dense = np.bincount(x * size + y, minlength=size**2).reshape(size, size)
        found = of_pairs(Pairs(keys // size, keys % size, counts), law)
        np.testing.assert_allclose(found, naive(dense, law.matrix), atol=1e-9)
        degrees.append(found[1])
    assert len(set(degrees)) > 50

"""Noise of processes against its law: honest releases are not accused, atoms and lattices included, and planted leaks are found.

Verdicts are those of `noise-follows-law`: Holm's correction over the statistics of a release, at 1e-4.
"""

from __future__ import annotations

import numpy as np
import pytest

from auditor.audit.drawn_law.chosen_rows import rows_of
from auditor.audit.drawn_law.moments import moment_tests
from auditor.audit.drawn_law.rows import row_tests
from auditor.data.table import Table
from auditor.numerics.moments import of_rows
from auditor.numerics.statistics import holm
from auditor.registry import get
from auditor.schemes.base.increment_density import increment_density
from auditor.schemes.base.noise_density import geometric_rate
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Key, table_moments
from auditor.schemes.laplace import increment

LEVEL = 1e-4
SCHEMES = ("laplace-multilevel", "geometric-multilevel", "skellam-multilevel", "laplace", "geometric", "skellam")
LEVELS = (0.5, 0.25, 1.0, 0.5, 0.9999)


def table(rows=3000):
    """Whole numbers: skewed and sorted by size, few and small, and constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack([7.0 * np.rint(np.exp(1.5 * rng.normal(size=rows))), rng.poisson(3, rows), np.full(rows, 3.0)])
    return Table(("a", "b", "c"), np.ascontiguousarray(X[X[:, 0].argsort()]))


def released(scheme, levels, source, seed):
    copies = [np.empty_like(source.values) for _ in levels]
    get("scheme", scheme)().sampler(levels, table_moments(source), Key(seed, scheme)).block(0, source.values, copies)
    return copies


def judged(scheme, levels, copies, source):
    """The statistics of a release that states this scheme's law, by their p-values after Holm's correction."""
    law, X, size = get("scheme", scheme)().law(levels, table_moments(source)), source.values, source.rows // 20
    groups = [of_rows([part[a : a + size] for part in (X, *copies)], X.mean(axis=0)) for a in range(0, 20 * size, size)]
    chosen = range(1, len(levels) + 1)
    tests = [*moment_tests(law, groups, source.attributes), *row_tests(law, rows_of([(X, copies)], chosen, True), source.attributes, chosen)]
    return dict(sorted(zip((test.statistic for test in tests), holm([test.p for test in tests]), strict=True)))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("scheme", SCHEMES)
def test_honest_releases_are_not_accused(scheme):
    source = table()
    found = [judged(scheme, LEVELS, released(scheme, LEVELS, source, seed), source) for seed in range(20)]
    assert {"distribution", "size", "equal copies", "joint law", "neighbouring rows", "dependence on the data", "repeats"} <= set(found[0])
    assert min(min(p.values()) for p in found) > LEVEL
    assert sum(min(p.values()) < 0.05 for p in found) <= 4  # of 20 a share of 0.05 at most, by Bonferroni: 5 or more with chance 0.003


# -- planted -----------------------------------------------------------------------------------------------------------


def laplace_pair(step, rows=20_000, first=lambda z, rng: z):
    """Copies at levels 0.5 and 1.0 of two skewed and normal columns: what ``step`` adds to the first copy makes the second."""
    rng = np.random.default_rng(1)
    X = np.column_stack([np.exp(1.5 * rng.normal(size=rows)), rng.normal(size=rows)])
    v = X.var(axis=0)
    z = first(increment(rng, 0 * v, 0.5 * v, X.shape), rng)
    return [X + z, X + z + step(rng, X, v, z)], Table(("a", "b"), X)


def at_rest(rng, share, v, shape, each=True):
    rest = rng.random(shape if each else (shape[0], 1)) < share
    return np.where(rest, 0.0, increment(rng, 0 * v, 0.5 / (1.0 - share) * v, shape))


def by_size(rng, X, v, z):
    """Increments lawful by themselves, and in every fifth row as large as the first copy's noise is."""
    lawful = increment(rng, 0.5 * v, v, X.shape)
    ranked = np.empty_like(lawful)
    np.put_along_axis(ranked, np.abs(z).argsort(axis=0), np.take_along_axis(lawful, np.abs(lawful).argsort(axis=0), 0), axis=0)
    return np.where(rng.random(X.shape) < 0.2, ranked, lawful)


PLANTED = {
    "independent noise": (lambda rng, X, v, z: increment(rng, 0 * v, v, X.shape) - z, "equal copies"),
    "an increment that is never at rest": (lambda rng, X, v, z: increment(rng, 0 * v, 0.5 * v, X.shape), "equal copies"),
    "one more cell in ten at rest": (lambda rng, X, v, z: at_rest(rng, 0.55, v, X.shape), "equal copies"),
    "at rest in all attributes at once": (lambda rng, X, v, z: at_rest(rng, 0.5, v, X.shape, each=False), "joint law"),
    "at rest above the median": (lambda rng, X, v, z: np.where(X > np.median(X, axis=0), 0.0, increment(rng, 0 * v, v, X.shape)), "dependence on the data"),
    "as large as the noise before": (by_size, "joint law"),
}  # fmt: skip


@pytest.mark.parametrize("leak", PLANTED)
def test_a_planted_leak_in_one_process_is_found(leak):
    step, statistic = PLANTED[leak]
    copies, source = laplace_pair(step)
    assert judged("laplace-multilevel", (0.5, 1.0), copies, source)[statistic] < LEVEL


def test_a_record_without_noise_is_found():
    def bare(z, rng):
        z[7] = 0.0
        return z

    copies, source = laplace_pair(lambda rng, X, v, z: increment(rng, 0.5 * v, v, X.shape), first=bare)
    assert judged("laplace-multilevel", (0.5, 1.0), copies, source)["rows without noise"] < LEVEL


def test_one_process_declared_as_independent_is_found():
    copies, source = laplace_pair(lambda rng, X, v, z: increment(rng, 0.5 * v, v, X.shape))
    assert judged("laplace", (0.5, 1.0), copies, source)["equal copies"] < LEVEL


@pytest.mark.parametrize("declared", ["geometric-multilevel", "skellam-multilevel"])
def test_whole_noise_that_is_not_its_law_s_is_found(declared):
    """Fresh noise of the other law; rows that repeat a stretch of rows; half a unit off the lattice."""
    source, levels = table(), (0.5, 1.0)
    other = released("skellam" if declared.startswith("geo") else "geometric", levels, source, 1)
    assert judged(declared, levels, other, source)["equal copies"] < LEVEL
    honest = released(declared, levels, source, 1)
    period = [source.values + np.resize((copy - source.values)[:500], copy.shape) for copy in honest]
    assert judged(declared, levels, period, source)["repeats"] < LEVEL
    off = [copy + 0.5 * (source.values != 3.0) * (np.arange(source.rows) % 100 == 0)[:, None] for copy in honest]
    assert judged(declared, levels, off, source)["lattice"] < LEVEL


# -- the law of an increment -------------------------------------------------------------------------------------------


def naive_increment(distribution, low, high, k):
    """Probabilities of whole increments from a Fourier series of the ratio of characteristic functions."""
    u = 2 * np.pi * np.arange(4096) / 4096
    psi = 1 - np.cos(u)
    ratio = (1 + low * psi) / (1 + high * psi) if distribution == "geometric" else np.exp(-(high - low) * psi)
    return np.fft.ifft(ratio).real[k]


@pytest.mark.parametrize("distribution", ["geometric", "skellam"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 2.0), (1.5, 2.0), (0.2, 9.0)])
def test_an_increment_on_a_lattice_has_the_probabilities_of_its_characteristic_function(distribution, low, high):
    law = KroneckerNoise(np.eye(1), np.eye(1), distribution=distribution, one_process=True, units=np.ones(1))
    found, k = increment_density(law, low, high, 0), np.arange(8)
    middle, chance = found.distribution(k.astype(float))
    expected = naive_increment(distribution, low, high, k)
    np.testing.assert_allclose(chance, expected, atol=1e-12)
    below = 0.5 * (1 - expected[0]) + np.cumsum(expected) - expected / 2
    np.testing.assert_allclose(middle, below, atol=1e-12)
    assert found.near_zero(1.0) == pytest.approx(expected[0] + 2 * expected[1], abs=1e-12)


def test_the_ratio_of_geometric_noise_gives_the_share_of_shared_cells():
    """``((1 − q_c)/(1 − q_b))²·q_b/q_c = v_b/v_c``."""
    b, c = (np.exp(-geometric_rate(v)) for v in (1.5, 7.0))
    assert ((1 - c) / (1 - b)) ** 2 * b / c == pytest.approx(1.5 / 7.0)

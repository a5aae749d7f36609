"""Figures of a release of categories itself, and evidence on pooling.

| symbol | meaning |
| --- | --- |
| ``T`` | chance of each released value by original, shape (s, s) |
| ``q, f`` | shares of the categories among the n originals, and in the copy |
| ``a`` | ``(1 − p)π`` |
| ``b`` | ``E f − q = a − (1 − p)q`` |
| ``C`` | covariance of f, ``(diag d − L)/n``, ``d = p(1 − p)q + a``, ``L = p(q aᵀ + a qᵀ) + a aᵀ``
|
| ``m`` | share of records that a copy leaves unchanged |
| ``p̂`` | ``(m − 1/s)/(1 − 1/s)``: likeliest retention, standard error ``√(m(1 − m)/n) / (1 −
1/s)`` |

``E‖f − q‖² = ‖b‖² + tr C``. Its variance is ``4 bᵀ C b + 2 tr C²``.

Two fresh copies agree by chance given the original; copies of one multilevel release agree with
probability ``T(p̂_j/p̂_i)``. As retentions are estimated, distances from these laws are no proof.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from auditor.audit.base.request import Bar
from auditor.audit.categorical.posterior_pass import (
    growth_bound,
    largest_retention_for_breach,
    largest_retention_for_growth,
)
from auditor.audit.categorical.release import Counted, UniformRelease
from auditor.audit.insider.category_gain import category_gains
from auditor.audit.insider.learner import MOST_ROWS
from auditor.audit.law_tests.categorical import of_original
from auditor.audit.measures.empirical_guarantee import category_bounds
from auditor.base.types import Array, Coalition, Codes, Integers, Options
from auditor.data.columns.categorical_table import split
from auditor.results.records import Measurement, Pooling
from auditor.schemes.base.scheme import schemes_held_against
from auditor.schemes.replacement.law import UniformLaw, fresh_chances, history_size, step
from auditor.schemes.uniform import PublishedCategories

LEARNT_BLOCKS = 4
"""Blocks of a long table for the insider's rows."""


def release_records(release: UniformRelease, counted: Counted) -> Iterator[Measurement]:
    """Yield time, history size, distances from the law, and leakage bounds."""
    law, asked, figure = release.law, release.scenario.measure, release.context.record
    everybody, by_retention = release.context.everybody, release.scheme.by_retention
    growth, breach = asked("delta-growth"), asked("rho-breach")

    def exact(metric: str, coalition: Coalition, value: float) -> Measurement:
        return figure(metric, coalition, value, theory=value)

    if asked("seconds"):
        yield figure("seconds", everybody, counted.seconds)
    if n := int(counted.history.sum()):
        sizes = np.arange(counted.history.size)
        mean = float(counted.history @ sizes / n)
        error = math.sqrt(float(counted.history @ (sizes - mean) ** 2 / n) / n)
        theory = history_size(law.levels, release.data.prior, law.pi)
        yield figure("history_size", everybody, mean, Bar.normal(error, "jackknife"), theory)
    of_law, of_shares = asked("marginal-gap"), by_retention and asked("share-gap")
    for number in release.singles if of_law or of_shares else ():
        pairs = counted.pairs[0, number].toarray()
        if of_law:
            gap, error = gap_of_chances(pairs, of_original(law, number).matrix)
            yield figure("marginal_gap", (number,), gap, Bar.normal(error, "closed-form"), 0.0)
        if of_shares:
            gap, error, mean = share_gap(pairs, law.levels[number - 1], law.pi)
            expected = (Bar.normal(error, "closed-form"), mean) if not release.estimated else ()
            yield figure("share_gap", (number,), gap, *expected, bounds=(0.0, 2.0))
    for coalition in release.coalitions if not release.estimated else ():
        of, unit = law.of(coalition), release.table.unit_size
        if math.isfinite(epsilon := of.epsilon() * unit):
            yield exact("epsilon", coalition, epsilon)
        if growth:
            yield exact("growth_bound", coalition, growth_bound(of.odds()))
    if (trials := asked("empirical-epsilon")) and release.scheme.makes_copies:
        yield from _empirical_epsilons(release, trials.options)
    if isinstance(release.scheme, PublishedCategories):
        yield from _estimated(release, release.scheme)
    if growth and by_retention:
        delta = float(growth.options["delta"])
        p = largest_retention_for_growth(delta, law.rarity)
        yield exact(f"admissible_retention(delta {delta:g})", everybody, p)
    if breach and by_retention:
        low, high = float(breach.options["rho1"]), float(breach.options["rho2"])
        p = largest_retention_for_breach(low, high, law.rarity)
        yield exact(f"admissible_retention(rho {low:g} {high:g})", everybody, p)


def _empirical_epsilons(release: UniformRelease, options: Options) -> Iterator[Measurement]:
    held, law, context = release.coalitions, release.law, release.context
    trials, confidence = int(options["trials"]), float(options["confidence"])
    key = replace(release.key, scheme=f"{release.key.scheme} trials")
    asked = release.scheme, context.levels, law.size, trials, key, held, confidence
    for coalition, found in zip(held, category_bounds(*asked), strict=True):
        epsilon = law.of(coalition).epsilon()
        theory = epsilon if math.isfinite(epsilon) else None
        yield context.record("empirical_epsilon", coalition, found, theory=theory)


def _estimated(release: UniformRelease, scheme: PublishedCategories) -> Iterator[Measurement]:
    data, figure, copies = release.data, release.context.record, scheme.held()
    x, size = data.codes, data.size
    for number, y in enumerate(copies, start=1):
        found = {"*": retention(x, y, size)}
        if len(data.attributes) > 1:
            each = zip(data.attributes, split(data, x), split(data, y), strict=True)
            found |= {one.name: retention(a, b, one.size) for one, a, b in each}
        for name, (value, error) in found.items():
            metric, bar = f"estimated_retention(copy {number})", Bar.normal(error, "closed-form")
            yield figure(metric, (number,), value, bar, attribute=name)
    for known in schemes_held_against("categorical") if len(copies) > 1 else ():
        distance = off_law(x, copies, size, known.multilevel)
        yield figure(f"off_law({known.name})", release.context.everybody, distance)


def gap_of_chances(counts: Integers, t: Array) -> tuple[float, float]:
    """Copy's squared distance from its law, and the standard error.

    Notes
    -----
    The squared L2 distance of xiao2009's Figure 6, averaged over records, has mean 0 under the law:
    ``Σ_y c(c − 1)/(n(n − 1)) − 2 Σ_y (c/n) T[x, y] + Σ_y T[x, y]²`` for the n records of value
    x, c of which show y. Its variance is ``2 tr Σ² / (n(n − 1))`` with ``Σ = diag(t) − t tᵀ``.
    Values of one record are omitted.
    """
    counts = counts.astype(float)
    n = counts.sum(axis=1)
    met = np.where(n >= 2, n, 0.0)
    if not met.any():
        return 0.0, 0.0
    pairs, squares = np.maximum(n * (n - 1), 1.0), (t**2).sum(axis=1)
    cross = 2 * (counts * t).sum(axis=1) / np.maximum(n, 1.0)
    G = (counts * (counts - 1)).sum(axis=1) / pairs - cross + squares
    trace = squares - 2 * (t**3).sum(axis=1) + squares**2
    error = np.sqrt((met**2) @ (2 * trace / pairs)) / met.sum()
    return float(met @ G / met.sum()), float(error)


def share_gap(
    counts: Integers, level: float, pi: Array | None = None
) -> tuple[float, float, float]:
    """``‖f − q‖²`` by counts (s, s), its standard error over the noise, and its mean.

    Examples
    --------
    >>> share_gap(np.array([[1, 1], [0, 0]]), 0.0)[0]
    0.5
    """
    n, p = int(counts.sum()), level
    q, f = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    a = np.broadcast_to(fresh_chances(p, q.size, pi), q.shape)
    b, qa = a - (1.0 - p) * q, p * np.outer(q, a)
    C = (np.diag(p * (1.0 - p) * q + a) - qa - qa.T - np.outer(a, a)) / n
    variance = max(0.0, float(4.0 * b @ C @ b + 2.0 * (C**2).sum()))
    return float((f - q) @ (f - q)), math.sqrt(variance), float(b @ b + np.trace(C))


def retention(x: Integers, y: Integers, size: int) -> tuple[float, float]:
    """``p̂`` and its standard error; negative if copies avoid the original.

    Examples
    --------
    >>> retention(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)[0]
    0.5
    """
    if size == 1:
        return 1.0, 0.0
    m, scale = float(np.mean(x == y)), 1.0 - 1.0 / size
    return (m - 1.0 / size) / scale, math.sqrt(m * (1.0 - m) / x.size) / scale


def off_law(x: Codes, copies: Sequence[Codes], size: int, multilevel: bool) -> float:
    """Distance from the law of fresh copies, or of one multilevel release.

    The largest difference in the share of records where two adjacent copies agree, among records
    that the better copy keeps or among the others.
    """
    levels, largest = tuple(min(1.0, max(0.0, retention(x, y, size)[0])) for y in copies), 0.0
    for i, j in pairwise(UniformLaw(levels, size, multilevel).descending):
        kept, agree = copies[i] == x, copies[i] == copies[j]
        p = step(levels[i], levels[j]) if multilevel else levels[j]
        same = p + (1.0 - p) / size
        by_law = np.where(kept | multilevel, same, (1.0 - p) / size)
        for some in (kept, ~kept):
            largest = max(largest, abs(float(np.mean(some & agree) - np.mean(some * by_law))))
    return largest


def pooling_evidence(release: UniformRelease) -> dict[Coalition, Pooling]:
    """Evidence on each pooled coalition's gain."""
    law, several = release.law, [c for c in release.needed if len(c) > 1]
    says = {c: None if release.estimated else law.of(c).best_is_sufficient() for c in several}

    def rows(numbers: Sequence[int]) -> tuple[Codes, dict[int, Codes]]:
        last = len(release.bounds) - 1
        few = np.unique(np.linspace(0, last, LEARNT_BLOCKS).astype(int)).tolist()
        each = -(-MOST_ROWS // len(few))
        heads = [(a, min(b, a + each)) for a, b in map(release.bounds.__getitem__, few)]
        x, *copies = release.rows(numbers, heads)
        return x, dict(zip(numbers, copies, strict=True))

    wanted = [c for c in several if says[c] is not False and release.key.replicate == 1]
    gains = category_gains(wanted, law.levels, release.data.size, rows)
    proved = release.scheme.makes_copies
    return {c: Pooling(says[c], insider=gains.get(c), proved=proved) for c in several}


# --------------------------------------------------------------------------------------------------

"""First pass over a release of categories: counts, tests, figures.

| symbol | meaning |
| --- | --- |
| ``T`` | chance of each released value by original, shape (s, s) |
| ``q, f`` | shares of the categories among the n originals, and in the copy |
| ``a`` | ``(1 − p)π`` |
| ``b`` | ``E f − q = a − (1 − p)q`` |
| ``C`` | covariance of f, ``(diag d − L)/n``, ``d = p(1 − p)q + a``, ``L = p(q aᵀ + a qᵀ) + a aᵀ`` |
| ``m`` | share of records that a copy leaves unchanged |
| ``p̂`` | ``(m − 1/s)/(1 − 1/s)``: likeliest retention, standard error ``√(m(1 − m)/n) / (1 − 1/s)`` |

``E‖f − q‖² = ‖b‖² + tr C``. As f is a mean over records, its variance is ``4 bᵀ C b + 2 tr C²``.

Two fresh copies agree by chance given the original; copies of one multilevel release agree with
probability ``T(p̂_j/p̂_i)``. Distances from these laws prove nothing, as retentions are estimated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.view import KnownPairs
from auditor.audit.categorical.outcome_counts import CodeBlock, Counts
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.law_tests.categorical import (
    FEWEST_EXPECTED,
    Pairs,
    Transition,
    count_tests,
    of_original,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.moment_pass import Draw, draws_of
from auditor.base.types import Array, Codes
from auditor.numerics.blocks import Job
from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.results.evidence import Facts, LawTest
from auditor.schemes.replacement.base import MOST_COPIES, Between, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw, UniformLaw, fresh_chances, step

PairCounts = NDArray[np.integer[Any]]


def test_of_chances(counted: Pairs, law: Transition) -> tuple[float, int]:
    """Return p-value and degrees of freedom of the chi-square test of a copy's law.

    Notes
    -----
    Pairs of values that expect fewer than five records are pooled, on and off the diagonal. An
    impossible outcome gives p = 0; too few records give p = 1 and 0 degrees.
    """
    size = law.fresh.shape[1]
    of, every = counted.of(size), np.arange(size)
    if (law.chance(counted.a, counted.y) <= 0).any():
        return 0.0, 1
    expecting = law.expecting(of, FEWEST_EXPECTED)
    found = counted.joined(expecting, size)
    expected = of[found.a] * law.chance(found.a, found.y)
    large, same = expected >= FEWEST_EXPECTED, found.a == found.y
    # each large pair by itself; two pools of small ones
    totals = np.array([of @ law.chance(every, every), of.sum()])
    totals[1] -= totals[0]
    pools = [
        (found.records[~large & on].sum(), total - expected[large & on].sum())
        for on, total in zip((same, ~same), totals, strict=True)
    ]
    observed = np.append(found.records[large], [each for each, _ in pools])
    forecast = np.append(expected[large], [each for _, each in pools])
    keep = forecast >= FEWEST_EXPECTED
    # every row total fixes one pair; rows with pooled pairs fix at most one together
    possible = (law.fresh > 0).sum(axis=1) + (law.kept > 0) * (
        law.fresh[law.row(every), every] <= 0
    )
    some = of > 0
    whole = some & (np.bincount(found.a[large], minlength=size) == possible)
    degrees = int(keep.sum() - whole.sum() - bool((~whole & some).any()))
    if degrees < 1:
        return 1.0, 0
    statistic = float(((observed[keep] - forecast[keep]) ** 2 / forecast[keep]).sum())
    return float(scipy.special.chdtrc(degrees, statistic)), degrees


def gap_of_chances(counts: PairCounts, t: Array) -> tuple[float, float]:
    """Return a copy's squared distance from its law, and its standard error under the law.

    Notes
    -----
    The squared L2 distance of xiao2009's Figure 6, averaged over records, with mean 0 under the
    law: ``Σ_y c(c − 1)/(n(n − 1)) − 2 Σ_y (c/n) T[x, y] + Σ_y T[x, y]²`` for the n records of value
    x, c of which show y. Its variance is ``2 tr Σ² / (n(n − 1))`` with ``Σ = diag(t) − t tᵀ``.
    Values of one record are left out; (0, 0) without others.
    """
    counts = counts.astype(np.float64)
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


class ShareGap(NamedTuple):
    """``‖f − q‖²``, its standard error over the noise, and its mean."""

    value: float
    std_error: float
    mean: float


def share_gap(counts: PairCounts, level: float, pi: Array | None = None) -> ShareGap:
    """Return the distance of a copy's shares from the original's, by counts of shape (s, s).

    Examples
    --------
    >>> share_gap(np.array([[1, 1], [0, 0]]), 0.0).value
    0.5
    """
    n, p = int(counts.sum()), level
    q, f = counts.sum(axis=1) / n, counts.sum(axis=0) / n
    a = np.broadcast_to(fresh_chances(p, q.size, pi), q.shape)
    b, d = a - (1.0 - p) * q, p * (1.0 - p) * q + a
    own = (2.0 * p * q + a) * a  # the diagonal of L
    aa, qa, qq = a @ a, q @ a, q @ q
    LL = 2.0 * p**2 * (qq * aa + qa**2) + 4.0 * p * qa * aa + aa**2  # tr L²
    squares = (d @ d - 2.0 * d @ own + LL) / n**2
    along = (d @ b**2 - 2.0 * p * (q @ b) * (a @ b) - (a @ b) ** 2) / n
    return ShareGap(
        float((f - q) @ (f - q)),
        float(np.sqrt(max(0.0, 4.0 * along + 2.0 * squares))),
        float(b @ b + (d - own).sum() / n),
    )


def retention(x: PairCounts, y: PairCounts, size: int) -> tuple[float, float]:
    """Return ``p̂`` and its standard error; below 0 for copies that avoid the original.

    Examples
    --------
    >>> retention(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)[0]
    0.5
    """
    if size == 1:
        return 1.0, 0.0
    m, scale = float(np.mean(x == y)), 1.0 - 1.0 / size
    return (m - 1.0 / size) / scale, math.sqrt(m * (1.0 - m) / x.size) / scale


def _level(x: Codes, y: Codes, size: int) -> float:
    return float(np.clip(retention(x, y, size)[0], 0.0, 1.0))


def off_law(x: Codes, copies: Sequence[Codes], size: int, multilevel: bool) -> float:
    """Return the distance from the law of fresh copies, or of one multilevel release.

    The largest difference in the share of records for which two adjacent copies by retention agree,
    either among records that the better copy keeps or among the others.
    """
    levels, largest = tuple(_level(x, y, size) for y in copies), 0.0
    for i, j in pairwise(UniformLaw(levels, size, multilevel).descending):
        kept, agree = copies[i] == x, copies[i] == copies[j]
        p = step(levels[i], levels[j]) if multilevel else levels[j]
        same = p + (1.0 - p) / size
        by_law = np.where(kept | multilevel, same, (1.0 - p) / size)
        for some in (kept, ~kept):
            largest = max(largest, abs(float(np.mean(some & agree) - np.mean(some * by_law))))
    return largest


@dataclass(repr=False)
class Counted:
    """Result of the pass.

    Attributes
    ----------
    transitions : dict of (int, int) to Counts
        By source (0 is the original, otherwise another copy) and copy: records of each pair of
        values, as ``x·s + y``.
    between : ndarray of shape (d, 2)
        For every copy between two others: records where these agree, and where all three agree.
    history : ndarray
        Records by the size of their history.
    samples : dict of str to ndarray of shape (k, s)
        By state of knowledge, counts of each value in each copy among the rows to estimate from.
    known : dict of str to lists of ndarrays
        By state of knowledge, known original rows and their rows of each copy, by block.
    rows : list of lists of ndarrays
        Scored records: originals and copies, run by run.
    seconds : float
        Time of the requests.
    """

    transitions: dict[tuple[int, int], Counts] = field(default_factory=dict)
    between: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    history: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    samples: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    known: dict[str, list[tuple[Codes, list[Codes]]]] = field(default_factory=dict)
    rows: list[list[Codes]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Counted) -> None:
        """Add the result of later records."""
        for place, counts in other.transitions.items():
            self.transitions.setdefault(place, Counts()).add(counts)
        self.between = self.between + other.between
        self.history = _plus(self.history, other.history)
        for key, sample in other.samples.items():
            self.samples[key] = self.samples.get(key, 0) + sample
        for key, rows in other.known.items():
            self.known.setdefault(key, []).extend(rows)
        self.rows += other.rows
        self.seconds += other.seconds

    def pairs(self, source: int, copy: int, size: int) -> Pairs:
        """Return records by value of a source and of a copy."""
        keys, counts = self.transitions[source, copy].all()
        return Pairs(keys // size, keys % size, counts)

    def dense(self, source: int, copy: int, size: int) -> NDArray[np.int64]:
        """Return records by value of a source and of a copy, shape (s, s)."""
        return self.transitions[source, copy].dense(size * size).reshape(size, size)

    def pairs_of(self, key: str) -> KnownPairs:
        """Return the known rows of a state of knowledge."""
        originals, copies = zip(*self.known[key], strict=True)
        shown = tuple(np.concatenate(parts) for parts in zip(*copies, strict=True))
        return KnownPairs(np.concatenate(originals), shown)


def _plus(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    total = np.zeros(max(one.size, other.size), dtype=np.int64)
    total[: one.size] += one
    total[: other.size] += other
    return total


@dataclass(frozen=True, repr=False)
class CountJob(Job[Counted]):
    """Counts of pairs of values, and chosen records.

    Attributes
    ----------
    size : int
        ``s``.
    singles : tuple of int
        Copies that some coalition holds.
    draws : mapping
        The rows that each state of knowledge chooses.
    history : bool
        Whether history sizes are measured.
    sources : sequence of (int, int)
        Copies made from another copy: the source, and the copy.
    scored : tuple of int
        Scored copies.
    scored_rows : sequence of (int, int)
        Runs of scored records: start and stop.
    """

    size: int
    singles: tuple[int, ...]
    between: Sequence[Between]
    draws: Mapping[str, Draw]
    history: bool
    sources: Sequence[tuple[int, int]] = ()
    scored: tuple[int, ...] = ()
    scored_rows: Sequence[tuple[int, int]] = ()
    exact = drawn = True

    def begin(self) -> Counted:
        """Return an empty result."""
        return Counted(between=np.zeros((len(self.between), 2), dtype=np.int64))

    def take(self, block: CodeBlock, into: Counted) -> None:
        """Count one block."""

        def values(number: int) -> Codes:
            return block.copy(number) if number else block.x

        x, made = block.x, block.made
        assert made is not None
        into.seconds += block.seconds
        for source, copy in [*((0, number) for number in self.singles), *self.sources]:
            keys = values(source).astype(np.int64) * self.size + values(copy)
            into.transitions.setdefault((source, copy), Counts()).take(keys)
        for place, three in enumerate(self.between):
            left = values(three.left)
            agree = left == values(three.right)
            all_three = agree & (values(three.copy) == left)
            into.between[place] += [int(agree.sum()), int(all_three.sum())]
        for start, stop in self.scored_rows if self.scored else ():
            rows = slice(max(0, start - block.first), max(0, stop - block.first))
            if rows.start < min(rows.stop, x.size):
                into.rows.append([values(number)[rows].copy() for number in (0, *self.scored)])
        if self.history:
            into.history = _plus(into.history, np.bincount(made.history_sizes()))
        for key, draw in self.draws.items():
            chosen, _ = draw.within(block.first, block.first + x.size)
            copies = [block.copy(number)[chosen] for number in self.singles]
            if draw.clear:
                into.known.setdefault(key, []).append((x[chosen], copies))
            else:
                counts = np.array([np.bincount(copy, minlength=self.size) for copy in copies])
                into.samples[key] = into.samples.get(key, 0) + counts


class Counting:
    """Counts of one release.

    Attributes
    ----------
    draws : dict
        The rows that each state of knowledge chooses.
    """

    def __init__(self, release: UniformRelease) -> None:
        self._release, scenario = release, release.scenario
        law, data, singles = release.law, release.data, tuple(release.singles)
        replicate = release.key.replicate
        few = law.multilevel and len(law.levels) <= MOST_COPIES
        # copies between two others: their random draws are tested
        self._between = between(law.levels) if few else []
        self.draws = draws_of(scenario.knowledge, data.rows, scenario.seed, replicate)
        # whether the law states each copy's transitions, from another copy or the original
        self._stated = law.by_retention or (isinstance(law, MatrixLaw) and not release.estimated)
        scored = scored_copies(singles, data.rows) if self._stated and replicate == 1 else ()
        self._scored = tuple(scored)
        self.counted = release.go_through(
            CountJob(
                data.size,
                singles,
                tuple(self._between),
                self.draws,
                law.multilevel and scenario.measure("history-size") is not None,
                sources(law.of(singles), singles) if self._stated else (),
                self._scored,
                scored_rows(len(self._scored), data.rows),
            )
        )

    def facts(self) -> Facts:
        """Return the tests of single copies, and of copies between two others."""
        release, counted = self._release, self.counted
        found: Facts = {"marginal": marginal_tests(release, counted)}
        if self._between:
            prior = release.data.prior
            found["drawn"] = drawn_between(release.law, prior, self._between, counted.between)
        return found

    def law_tests(self) -> list[LawTest]:
        """Return the tests of the stated law, if any."""
        release, data, singles = self._release, self._release.data, self._release.singles
        if not self._stated or not singles:
            return []
        pairs = partial(self.counted.pairs, size=data.size)
        tests = count_tests(release.law.of(singles), singles, pairs, data.rows)
        if self._scored:
            columns = [np.concatenate(parts) for parts in zip(*self.counted.rows, strict=True)]
            key, law = release.key, release.law.of(self._scored)
            rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
            values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
            originals = dict(zip(data.names, values, strict=True))
            tests += score_tests(law, columns, self._scored, originals, rng)
        return tests


def marginal_tests(
    release: UniformRelease, counted: Counted
) -> list[tuple[int, float, float, int]]:
    """Return number, level, p-value and degrees of freedom of each copy's chi-square test."""
    tests = []
    for number in release.singles if not release.estimated else ():
        pairs = counted.pairs(0, number, release.data.size)
        found = test_of_chances(pairs, of_original(release.law, number))
        tests.append((number, release.law.levels[number - 1], *found))
    return tests

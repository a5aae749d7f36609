"""First pass over a release of categories: counts, known rows, and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import KnownPairs
from auditor.audit.categorical.copy_figures import test_of_chances
from auditor.audit.categorical.release import UniformRelease
from auditor.audit.counts.outcome_counts import CodeBlock, Counts
from auditor.audit.law_tests.categorical import (
    count_tests,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.known_rows import Draw, draws_of
from auditor.numerics.passes import Job
from auditor.numerics.random_streams import stream
from auditor.results.evidence import Facts, LawTest
from auditor.schemes.replacement.draws import MOST_COPIES, Between, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw, transition_matrix
from auditor.types import Array, Codes


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
        # copies between two others, whose random draws are tested
        self._between = between(law.levels) if few else []
        self.draws = draws_of(scenario.knowledge, data.rows, scenario.seed, replicate)
        # whether the law states each copy's transitions, from another copy or the original
        self._stated = law.by_retention or isinstance(law, MatrixLaw)
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
        dense = partial(self.counted.dense, size=data.size)
        tests = count_tests(release.law.of(singles), singles, dense, data.rows)
        if self._scored:
            columns = [np.concatenate(parts) for parts in zip(*self.counted.rows, strict=True)]
            key, law = release.key, release.law.of(self._scored)
            rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
            values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
            originals = dict(zip(data.names, values, strict=True))
            tests += score_tests(law, columns, self._scored, originals, rng)
        return tests


def chances(release: UniformRelease, number: int) -> Array:
    """Return the chance of each released value by original, shape (s, s)."""
    law = release.law
    if release.scheme.by_retention:
        return transition_matrix(law.levels[number - 1], law.size, law.pi)
    return law.transition_matrix(None, number)


def marginal_tests(
    release: UniformRelease, counted: Counted
) -> list[tuple[int, float, float, int]]:
    """Return number, level, p-value and degrees of freedom of each copy's chi-square test."""
    tests = []
    for number in release.singles if not release.estimated else ():
        pairs = counted.dense(0, number, release.data.size)
        found = test_of_chances(pairs, chances(release, number))
        tests.append((number, release.law.levels[number - 1], *found))
    return tests

"""First pass over categories: counts, and tests of the law."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.audit.categorical.release import CodeBlock, UniformRelease
from auditor.audit.law_tests.categorical import (
    count_tests,
    pairs_of,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.moment_pass import Added, Draw, draws_of
from auditor.base.types import Codes, Integers, unprinted
from auditor.numerics.blocks import Job
from auditor.numerics.random_streams import stream
from auditor.results.records import Drawn, LawTest
from auditor.schemes.replacement.base import MOST_COPIES, Between, between, drawn_between
from auditor.schemes.replacement.law import MatrixLaw


@dataclass(repr=False)
class Counted(Added):
    """Result of the pass.

    Attributes
    ----------
    draws : mapping
        Chosen rows, by state of knowledge.
    pairs : dict of (int, int) to sparse arrays of shape (s, s)
        By source (0: the original) and copy.
    between : ndarray of shape (d, 2)
        For copies between two others: records where these, and where all three agree.
    history : ndarray of shape (M + 1,)
        Records by history size.
    rows : dict of str to lists of lists of ndarrays
        Chosen records by block: originals and copies.
    seconds : float
    """

    draws: Mapping[str, Draw]
    between: Integers
    history: Integers
    pairs: dict[tuple[int, int], Any] = field(default_factory=dict)
    rows: dict[str, list[list[Codes]]] = field(default_factory=dict)
    seconds: float = 0.0


@unprinted
class CountJob(Job[Counted]):
    """Counts of pairs of values, and chosen records.

    Attributes
    ----------
    singles : tuple of int
        Copies that some coalition holds.
    copies : int
        ``M`` for history sizes, else 0.
    pairs : sequence of (int, int)
        Source (0: the original) and copy.
    size : int
        ``s``.
    """

    singles: tuple[int, ...]
    between: Sequence[Between]
    draws: Mapping[str, Draw]
    copies: int
    pairs: Sequence[tuple[int, int]]
    size: int
    exact = drawn = True

    def begin(self) -> Counted:
        none = np.zeros((len(self.between), 2), dtype=np.int64)
        return Counted(self.draws, none, np.zeros(self.copies + 1, dtype=np.int64))

    def take(self, block: CodeBlock, into: Counted) -> None:
        n, values, rows = block.x.size, block.copy, dict[str, list[list[Codes]]]()

        pairs = {
            (source, copy): pairs_of(values(source), values(copy), self.size)
            for source, copy in self.pairs
        }
        found = np.zeros((len(self.between), 2), dtype=np.int64)
        for place, three in enumerate(self.between):
            agree = (left := values(three.left)) == values(three.right)
            found[place] = agree.sum(), (agree & (values(three.copy) == left)).sum()
        for key, draw in self.draws.items():
            some = draw.within(block.first, block.first + n)[0]
            rows[key] = [[values(number)[some].copy() for number in (0, *self.singles)]]
        history = np.zeros(1, dtype=np.int64)
        if self.copies and block.made is not None:
            history = np.bincount(block.made.history_sizes(), minlength=self.copies + 1)
        into.add(Counted({}, found, history, pairs, rows, block.seconds))


def _stated(release: UniformRelease) -> bool:
    law = release.law
    return law.by_retention or (isinstance(law, MatrixLaw) and not release.estimated)


def _between(release: UniformRelease) -> list[Between]:
    levels = release.law.levels
    return between(levels) if release.law.multilevel and len(levels) <= MOST_COPIES else []


def count_pairs(release: UniformRelease) -> Counted:
    """Counts of one release."""
    scenario, law, data, singles = release.scenario, release.law, release.data, release.singles
    others = sources(law.of(singles), singles) if _stated(release) else []
    history = law.multilevel and scenario.measure("history-size") is not None
    return release.go_through(
        CountJob(
            tuple(singles),
            _between(release),
            draws_of(scenario.knowledge, data.rows, scenario.seed, release.key.replicate),
            len(law.levels) * history,
            [*((0, number) for number in singles), *others],
            data.size,
        )
    )


def copies_between(release: UniformRelease, counted: Counted) -> list[Drawn]:
    """Copies between two others, over records where these agree."""
    middle = _between(release)
    return drawn_between(release.law, release.data.prior, middle, counted.between)


def law_tests(release: UniformRelease, counted: Counted) -> list[LawTest]:
    """Tests of the stated law, if any."""
    data, singles, key = release.data, release.singles, release.key
    if not _stated(release) or not singles:
        return []
    law, pairs = release.law.of(singles), counted.pairs
    tests = count_tests(law, singles, lambda *pair: pairs[pair], data.rows)
    if key.replicate == 1:
        scored = scored_copies(singles, data.rows)
        columns = release.rows(scored, scored_rows(len(scored), data.rows))
        rng = stream(key.audit_seed, key.scheme, key.replicate, "scores")
        values = np.unravel_index(columns[0], [attribute.size for attribute in data.attributes])
        originals = dict(zip(data.names, values, strict=True))
        tests += score_tests(release.law.of(scored), columns, scored, originals, rng)
    return tests

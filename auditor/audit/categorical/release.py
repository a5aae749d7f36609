"""One release of categories under audit, its counts, and tests of its law."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auditor.audit.base.request import ReleaseRequest, with_singles
from auditor.audit.law_tests.categorical import (
    count_tests,
    pairs_of,
    score_tests,
    scored_copies,
    scored_rows,
    sources,
)
from auditor.audit.numeric.moment_pass import Added, Draw, draws_of
from auditor.audit.numeric.release import Drawn, already_out, make_scheme
from auditor.base import PluginError
from auditor.base.types import Codes, Indices, Integers, unprinted
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.data.source import noise_seed
from auditor.numerics.blocks import Job, moment_groups, readable
from auditor.numerics.random_streams import stream
from auditor.results.records import Drawn as DrawnBetween, LawTest
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import (
    MOST_COPIES,
    Between,
    Copies,
    UniformScheme,
    between,
    categories_of,
    drawn_between,
)
from auditor.schemes.replacement.law import EstimatedLaw, MatrixLaw, UniformLaw
from auditor.schemes.uniform import PublishedCategories

LARGEST_KEY = 2**62
"""Largest key of a combination."""


@dataclass(repr=False)
class CodeBlock:
    """One block of records, with copies made on request.

    Attributes
    ----------
    index, first : int
        Numbers of the block and of its first record.
    x : ndarray of shape (b,)
        Originals.
    copy : callable
        Values of a copy by number, shape (b,); 0: the originals.
    made : Copies or None
        Generators, unless copies are kept.
    seconds : float
    """

    index: int
    first: int
    x: Codes
    copy: Callable[[int], Codes]
    made: Copies | None = None
    seconds: float = 0.0


def distinct(columns: Sequence[Integers], sizes: Sequence[int]) -> tuple[Indices, Indices]:
    """First record of each distinct combination, and each record's place.

    Parameters
    ----------
    columns : sequence of ndarrays of shape (b,)
    sizes : sequence of int
        One more than each column's largest number.

    Examples
    --------
    >>> [part.tolist() for part in distinct([np.array([2, 0, 2]), np.array([7, 9, 7])], [3, 10])]
    [[1, 0], [1, 0, 1]]
    """
    key, keys = np.zeros(columns[0].size, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if keys * size > LARGEST_KEY:
            key, keys = np.unique(key, return_inverse=True)[1].ravel(), key.size
        key, keys = key * size + column, keys * size
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place.ravel()


class UniformRelease(Drawn):
    """One release of categories; no copy is drawn yet.

    Attributes
    ----------
    data : CategoricalTable
    law : UniformLaw
        Without a stated law, an ``EstimatedLaw``.
    coalitions, needed : list of tuple of int
        As requested; and with single members, by size.
    groups : list
        Row groups of the blocks.
    """

    width = BLOCK_WIDTH

    def __init__(self, request: ReleaseRequest) -> None:
        self.scenario, self.table = request.scenario, request.table
        self.data, here = categories_of(self.table), self.scenario
        self.context = request.context(request.levels, request.copies)
        if self.data.streamed:
            self.share = request.in_steps(UniformRelease, BLOCK_WIDTH)
        seed = noise_seed(here.data.source, here.seed, self.table.fingerprint())
        self.key = Key(seed, request.use.id, request.replicate)
        scheme, M = make_scheme(request.use, here.base, self.table), request.copies
        if not isinstance(scheme, UniformScheme):
            raise PluginError(
                "the scheme names the categorical engine and states no law of categories"
            )
        self.scheme, size = scheme.over(self.data), self.data.size
        self.law = self.scheme.channel(request.levels, size)
        shape = M, size
        if not isinstance(self.law, UniformLaw) or (len(self.law.levels), self.law.size) != shape:
            raise PluginError(f"the scheme stated no law of {M} copies over {size} values")
        self.coalitions = request.coalitions
        self.needed = with_singles(self.coalitions)
        self._early = already_out(request.use, M)
        self.groups = moment_groups(self.data.rows, BLOCK_WIDTH)
        room = self.data.rows * len(self.singles) * self.data.code_type.itemsize
        self._keep, self._kept = self.fits(room), dict[int, dict[int, Codes]]()

    @property
    def estimated(self) -> bool:
        """Whether the law is estimated from the copies."""
        return isinstance(self.law, EstimatedLaw)

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def halves(self) -> list[tuple[Draw, EstimatedLaw]]:
        """Two random halves of the records with their estimated laws, if any.

        Each half's law attacks the other, as attacks on its own records would be flattered.
        """
        if not isinstance(self.scheme, PublishedCategories) or not self.estimated:
            return []
        rng = stream(self.scenario.seed, "halves", self.key.replicate)
        return [
            (Draw.of(rows, clear=True), self.scheme.estimated(np.sort(rows)).of(self.singles))
            for rows in np.array_split(rng.permutation(self.data.rows), 2)
        ]

    def rows(self, numbers: Sequence[int], runs: Sequence[tuple[int, int]]) -> list[Codes]:
        """Originals and copies of runs of records in order, ``(first, stop)``."""
        parts, size = list[list[Codes]](), self.bounds[0][1]
        for first, stop in runs:
            for index in range(first // size, -(-min(stop, self.data.rows) // size)):
                block = self.block(index)
                cut = slice(max(0, first - block.first), stop - block.first)
                parts.append([block.copy(number)[cut] for number in (0, *numbers)])
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def block(self, index: int, drawn: bool = False) -> CodeBlock:
        a, b = self.bounds[index]
        (x,) = readable([self.data.read(a, b)])
        if index in self._kept and not drawn:
            return CodeBlock(index, a, x, self._kept[index].__getitem__)
        timed = drawn and self.scenario.measure("seconds") is not None
        made, seconds = self._request(x, index, timed)
        held = {0: x}

        def copy(number: int) -> Codes:
            if number not in held:
                held[number] = checked_codes(made.copy(number), x.size, self.data.size)
            return held[number]

        if self._keep:
            for number in self.singles:
                copy(number)
            self._kept[index] = held
        return CodeBlock(index, a, x, copy, made, seconds)

    def _request(self, x: Codes, index: int, timed: bool) -> tuple[Copies, float]:
        early, levels = self.law.levels[: self._early], self.law.levels[self._early :]
        copies = self.scheme.copies(x, self.data.size, replace(self.key, block=index))
        for level in early:
            copies.skip(level)
        if timed and early:
            copies.warm(levels)
        start = time.thread_time()
        for level in levels:
            copies.ask(level) if timed else copies.skip(level)
        return copies, time.thread_time() - start


def checked_codes(codes: Any, rows: int, size: int) -> Codes:
    """Copy's values, checked.

    Raises
    ------
    PluginError
        Not one code of the domain for each record.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu" or found.shape != (rows,):
        raise PluginError("the scheme drew no column of codes, one for each record")
    if rows and not (0 <= found.min() and found.max() < size):
        raise PluginError(f"the scheme drew codes outside the domain of {size} values")
    return found


# -- First pass: counts, and tests of the law -------------------------------------------------------


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
            rows[key] = [[values(number)[some] for number in (0, *self.singles)]]
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


def copies_between(release: UniformRelease, counted: Counted) -> list[DrawnBetween]:
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

"""The values that were drawn against the law that is stated: what is kept, what replaces the rest, and how copies hang together.

| symbol | meaning |
| --- | --- |
| ``a`` | what copy y is drawn from by law: the copy perturbed next less in the same release, or the original |
| ``p`` | the chance to keep it: ``T(p)[a, y]`` is the law of y given a and everything before it (xiao2009, Lemma 1) |
| ``π`` | what is not kept is drawn from: uniform, unless the law says otherwise |
| ``b, c`` | two columns that say nothing more by law: the original and another copy, or two other copies |

Given a, b and c the records that show any outcome are binomial, exactly, whatever the data are; so every count is tested by itself,
two-sided. Where π is not uniform that holds of the cells, of one value each; a count over records of several values is a sum of binomials
of different chances, and is tested as one of their mean chance: that has the longer tails (Hoeffding 1956), so no false alarm is
added. Values beyond ``GROUPS`` are counted by their number modulo that, which follows a law of the same form. A segment of one copy's
coins that comes again, value by value, is a period: chance makes none of such a length. Rows that share their coins by any other rule of
places are told by correlations (``auditor.audit.drawn_law.shared_coins``). *Not checked*: records that are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.counts.code_blocks import CodeBlock
from auditor.audit.drawn_law.segments import SEGMENT_ROWS, fingerprints, repeats, segment_length
from auditor.audit.drawn_law.shared_coins import (
    BITS,
    PLACES,
    SUMS_BYTES,
    VECTORS,
    Scores,
    bits_of,
    by_place,
    other_rows_tests,
    shared_coins_tests,
)
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.numerics.blocks import block_head
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.replacement.law import UniformLaw, step
from auditor.types import Array

Counts = NDArray[np.signedinteger[Any]]

GROUPS, PAIR_GROUPS = 16, 64
"""Groups of values that three columns, and two, are counted by."""
RUNS = 8
"""Of rows, in which what is kept is counted: it may go with the place in the table."""
OUTCOMES = 4
"""Kept; changed to b's value; to c's; to another."""
MOST_ROWS = 2**20
"""Records that are counted, the first of every block."""
MOST_WAITING = 2**15
"""Counts that wait until they are tested together: a megabyte."""
MOST_SEGMENTED = 16
"""Copies whose coins are compared for segments that come again, evenly among all."""


class Drawn(NamedTuple):
    """How one copy is drawn by law: its number, what from (0 is the original), the chance to keep that, and two columns beside."""

    copy: int
    source: int
    retention: float
    beside: tuple[int, int]
    level: float


def chain(law: UniformLaw, copies: Sequence[int]) -> list[Drawn]:
    """Return how each of some copies, by number, is drawn given those before it; a column beside is the source where there is no other."""
    levels = {copy: law.levels[copy - 1] for copy in copies}
    order = sorted(copies, key=lambda copy: (-levels[copy], copy)) if law.multilevel else list(copies)
    found = []
    for place, copy in enumerate(order):
        before = order[max(0, place - 2) : place][::-1]
        source = before[0] if law.multilevel and before else 0
        others = [column for column in ([0, *before[1:]] if source else before) if column != source]
        beside = (*others, source, source)[:2]
        retention = step(levels[source], levels[copy]) if source else levels[copy]
        found.append(Drawn(copy, source, retention, (beside[0], beside[1]), levels[copy]))
    return found


@dataclass
class LawCounts:
    """Whole numbers that a pass counted; ``segments`` are fingerprints of segments of coins, by copy."""

    counts: dict[tuple[str, int], Counts] = field(default_factory=dict, repr=False)
    segments: dict[int, list[NDArray[np.uint64]]] = field(default_factory=dict, repr=False)

    def add(self, other: LawCounts) -> None:
        """Add what was counted in the records that follow."""
        for key, counts in other.counts.items():
            self.sum(*key, counts)
        for copy, prints in other.segments.items():
            self.segments.setdefault(copy, []).extend(prints)

    def plus(self, kind: str, copy: int, keys: NDArray[np.intp], size: int) -> None:
        """Count keys below a size."""
        self.sum(kind, copy, np.bincount(keys, minlength=size))

    def sum(self, kind: str, copy: int, counts: Counts) -> None:
        """Add counts to those of the same kind."""
        self.counts[kind, copy] = self.counts[kind, copy] + counts if (kind, copy) in self.counts else counts


@dataclass(frozen=True)
class LawJob:
    """Counts what ``law_tests`` needs.

    Attributes
    ----------
    size : int
        ``s``.
    drawn : tuple of Drawn
    rows : int
        Of the table.
    pi : ndarray of shape (s,), optional
        ``π``; None: uniform.
    shares : bool
        Whether rows that share coins are looked for: in one replicate, as the others are made alike and it takes a tenth of a small audit.
    """

    size: int
    drawn: tuple[Drawn, ...]
    rows: int
    pi: Array | None = field(default=None, repr=False)
    shares: bool = True

    @property
    def weight(self) -> int:
        """Bytes of the sums of coins."""
        return (SUMS_BYTES * min(len(self.drawn), VECTORS) + 4 * (BITS + 1)) * min(self.rows, PLACES) * self.shares

    @cached_property
    def _scores(self) -> list[Scores]:
        pi = np.full(self.size, 1.0 / self.size) if self.pi is None else self.pi
        return [Scores.of(each.retention, pi) for each in self.drawn]

    def take(self, block: CodeBlock, into: LawCounts) -> None:
        """Count one block."""
        head = block_head(self.rows, BLOCK_WIDTH, MOST_ROWS)
        held: dict[int, NDArray[np.intp]] = {0: block.x[:head].astype(np.intp)}
        few = block_head(self.rows, BLOCK_WIDTH, SEGMENT_ROWS)
        order = np.argsort(block.x[:few], kind="stable")
        for place, each in enumerate(self.drawn):
            for copy in (each.copy, each.source, *each.beside):
                if copy not in held:
                    held[copy] = block.copy(copy)[:head].astype(np.intp)
            self._count(each, held, _number(block, head), into)
            if self.shares:
                series = self._scores[place].series(held[each.source][:few], held[each.copy][:few], order)
                into.sum("coins", self.drawn[place % VECTORS].copy, by_place(series, _number(block, few), min(self.rows, PLACES)))
            held = {copy: column for copy, column in held.items() if copy in (0, each.copy, each.source, *each.beside)}
        if self.shares and self.drawn:
            into.sum("bits", 0, by_place(bits_of(held[0][:few]), _number(block, few), min(self.rows, PLACES)))
        self._segment(block, into)

    def _segment(self, block: CodeBlock, into: LawCounts) -> None:
        """Take fingerprints of the coins of one block."""
        head = block_head(self.rows, BLOCK_WIDTH, SEGMENT_ROWS)
        every = max(1, math.ceil(len(self.drawn) / MOST_SEGMENTED))
        for each in self.drawn[::every]:
            length = segment_length(each.level, self.size, min(self.rows, SEGMENT_ROWS), self.pi)
            coins = (block.copy(each.copy)[:head].astype(np.int64) - block.x[:head]) % self.size
            if length is not None and coins.size >= length:
                into.segments.setdefault(each.copy, []).append(fingerprints(coins.astype(np.uint64), length))

    def _count(self, each: Drawn, held: dict[int, NDArray[np.intp]], first: int, into: LawCounts) -> None:
        x, y, a, b, c = (held[copy] for copy in (0, each.copy, each.source, *each.beside))
        outcome = np.where(y == a, 0, np.where(y == b, 1, np.where(y == c, 2, 3)))
        pattern = (a == b) + 2 * (a == c) + 4 * (b == c)
        into.plus("pattern", each.copy, pattern * OUTCOMES + outcome, 8 * OUTCOMES)
        g, h = (min(self.size, most) for most in (GROUPS, PAIR_GROUPS))
        into.plus("three", each.copy, (_group(b, g) * g + _group(a, g)) * g + _group(y, g), g**3)
        into.plus("pair", each.copy, _group(a, h) * h + _group(y, h), h**2)
        if each.source:
            into.plus("own", each.copy, _group(x, h) * h + _group(y, h), h**2)
        run = np.minimum(np.arange(first, first + len(y)) * RUNS // min(self.rows, MOST_ROWS), RUNS - 1)
        into.plus("run", each.copy, 2 * run + (outcome == 0), 2 * RUNS)
        kept, even = y == x, len(y) - len(y) % 2
        into.plus("row", each.copy, kept[0:even:2] * 2 + kept[1:even:2].astype(np.intp), 4)
        if self.pi is not None:
            for name, column in zip("abc", (a, b, c), strict=True):
                into.plus(name, each.copy, pattern * self.size + column, 8 * self.size)
            into.plus("runs", each.copy, run * self.size + a, RUNS * self.size)
            into.plus("x", each.copy, kept[0:even:2] * self.size + x[1:even:2], 2 * self.size)

    def rarity(self, counted: LawCounts, column: str, copy: int, groups: int) -> Array:
        """Return one over the mean of ``π`` over a column's values in each of so many groups of records, shape (groups,); 1 of none."""
        if self.pi is None:
            return np.full(groups, float(self.size))
        of = counted.counts[column, copy].reshape(groups, self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(of.any(axis=1), of.sum(axis=1) / (of @ self.pi), 1.0))


def _number(block: CodeBlock, head: int | None) -> int:
    """Return how many records that are counted, the first so many of every block, come before a block's."""
    return block.first if head is None else block.index * head


def _group(values: NDArray[np.intp], groups: int) -> NDArray[np.intp]:
    """Return each value's group: itself where there are no more values than groups, which are else a power of 2."""
    return values & (groups - 1) if groups in (GROUPS, PAIR_GROUPS) else values


def law_tests(job: LawJob, counted: LawCounts) -> list[LawTest]:
    """Return one test a statistic over all copies; nothing where no copy is held."""
    if not job.drawn:
        return []
    whole, kept, replaced, rows, moves = _Tests(), _Tests(), _Tests(), _Tests(), list[float]()
    for each in job.drawn:
        patterns = counted.counts["pattern", each.copy].reshape(8, OUTCOMES)
        of = f"copy {each.source}'s values" if each.source else "the original's values"
        sizes = [job.rarity(counted, column, each.copy, 8) for column in "abc"]
        size = _together(patterns.sum(axis=1), sizes[0])
        whole.add(patterns[:, 0].sum(), patterns.sum(), _chance(each, size), f"the share that copy {each.copy} keeps of {of}")
        moves += _moves(each, size)
        _patterns(each, sizes, patterns, kept, replaced)
        parts = ("three", GROUPS, each.retention), ("pair", PAIR_GROUPS, each.retention), ("own", PAIR_GROUPS, each.level)
        for kind, most, chance in parts:
            if (kind, each.copy) in counted.counts:
                g = min(job.size, most)
                _cells(each.copy, job, counted.counts[kind, each.copy].reshape(-1, g, g), chance, kept, replaced)
        runs = counted.counts["run", each.copy].reshape(RUNS, 2)
        kept.add(runs[:, 1], runs.sum(axis=1), _chance(each, job.rarity(counted, "runs", each.copy, RUNS)),
                 f"the share that copy {each.copy} keeps of {of} in a run of rows")  # fmt: skip
        pairs = counted.counts["row", each.copy].reshape(2, 2)
        rows.add(pairs[:, 1], pairs.sum(axis=1), each.level + (1.0 - each.level) / job.rarity(counted, "x", each.copy, 2),
                 f"the share of values that copy {each.copy} keeps, given that of the row before,")  # fmt: skip
    n = min(job.rows, MOST_ROWS)
    telling = min(moves, default=1.0)
    retention = whole.as_one_test("retention", n)._replace(telling=telling, departure="a share kept of what is to be redrawn")
    split = [kept.as_one_test("values kept", n), replaced.as_one_test("replacements", n), rows.as_one_test("neighbouring rows", n)]
    vectors = {each.copy: counted.counts["coins", each.copy] for each in job.drawn[:VECTORS]} if job.shares else {}
    coins: list[LawTest] = []
    if vectors:
        looked = len(job.drawn), min(job.rows, SEGMENT_ROWS)
        coins = [*shared_coins_tests(vectors, *looked), *other_rows_tests(vectors, counted.counts["bits", 0], *looked)]
    return [retention, *split, *coins, *repeats(counted.segments, job.rows)]


def _chance(each: Drawn, size: Any) -> Any:
    """Return the chance ``k = p + (1 − p)/s`` that a copy has the value that it is drawn from; s is ``1/π`` where π is not uniform."""
    return each.retention + (1.0 - each.retention) / size


def _together(of: Counts, sizes: Array) -> float:
    """Return one over the mean of ``1/s`` over groups of so many records each."""
    first = float(sizes[0])
    if (sizes == first).all():
        return first
    mean = float(of @ (1.0 / sizes)) / int(of.sum())
    return 1.0 / mean if mean > 0 else math.inf


def _moves(each: Drawn, size: float) -> list[float]:
    """Return by how many deviations over √rows the share kept moves for each value to be redrawn that is kept instead, if it does.

    A share ε of these kept moves k by ``ε (1 − p)(1 − 1/s)``; its deviation is ``√(k(1 − k)/n)``. Split by values and by what the
    other copies show, no count has the rows to see a tenth; so all are counted together as well.
    """
    k, shift = _chance(each, size), (1.0 - each.retention) * (1.0 - 1.0 / size)
    return [shift / math.sqrt(k * (1.0 - k))] if 0.0 < k < 1.0 and shift > 0 else []


class _Tests:
    """The least likely of many binomial counts. They wait to be tested together, as a call costs what hundreds of counts do."""

    def __init__(self) -> None:
        self.tests, self.least = 0, (1.0, 0.0, 0.0, "no share")
        self._waiting: list[tuple[Counts, Counts, Array, str]] = []
        self._size = 0

    def add(self, met: Counts, of: Counts, chance: Any, where: str) -> None:
        """Test counts, each of so many with its chance, two-sided; the latter two of shapes that broadcast to that of the counts."""
        shape = np.shape(met)
        self._waiting.append((np.ravel(met), np.broadcast_to(of, shape).ravel(), np.broadcast_to(chance, shape).ravel(), where))
        self._size += math.prod(shape)
        if self._size > MOST_WAITING:
            self._test()

    def _test(self) -> None:
        met, of, chance = (np.concatenate([waiting[part] for waiting in self._waiting]) for part in range(3))
        some = np.flatnonzero(of > 0)
        if some.size:
            met, of, chance = met[some], of[some], np.clip(chance[some], 0.0, 1.0)
            chance = np.where(chance > 1.0 - 1e-13, 1.0, chance)  # a sum of shares
            more = met > of * chance  # that side's chance is the smaller one, or both are near a half
            p = np.minimum(1.0, 2.0 * _at_least(np.where(more, met, of - met), of, np.where(more, chance, 1.0 - chance)))
            place = int(p.argmin())
            self.tests += met.size
            if p[place] < self.least[0]:
                stops = np.cumsum([waiting[0].size for waiting in self._waiting])
                where = self._waiting[int(np.searchsorted(stops, some[place], side="right"))][3]
                self.least = (float(p[place]), float(met[place] / of[place]), float(chance[place]), where)
        self._waiting, self._size = [], 0

    def as_one_test(self, statistic: str, rows: int) -> LawTest:
        """Return all of them as one test."""
        if self._waiting:
            self._test()
        p, observed, expected, where = self.least
        return LawTest(statistic, min(1.0, self.tests * p), max(1, self.tests), rows, observed, expected, f"{where} is")


def _at_least(met: Counts, of: Counts, chance: Array) -> Array:
    return np.asarray(np.where(met > 0, scipy.special.betainc(np.maximum(met, 1), of - met + 1, chance), 1.0))


def _patterns(each: Drawn, sizes: Sequence[Array], counts: Counts, kept: _Tests, replaced: _Tests) -> None:
    """Test how often a value is kept, or becomes that of a column beside, by which of the columns agree.

    ``sizes`` are s, or one over the mean of π over the values of a, b and c in the records of each pattern, shape (8,).
    """
    of, other = counts.sum(axis=1), [(1.0 - each.retention) / size for size in sizes]
    source = f"copy {each.source}'s value" if each.source else "the original's value"
    kept.add(counts[:, 0], of, each.retention + other[0], f"the share of records in which copy {each.copy} keeps {source}")
    apart = np.arange(8)
    not_a = (apart & 1 == 0, (apart & 2 == 0) & (apart & 4 == 0))
    for place, possible in enumerate(not_a, start=1):
        where = f"the share of copy {each.copy} changed to another column's value"
        replaced.add(counts[:, place], of, np.where(possible, other[place], 0.0), where)


def _cells(copy: int, job: LawJob, table: Counts, retention: float, kept: _Tests, replaced: _Tests) -> None:
    """Test every cell of counts, shape (…, g, g): by a column beside, if there is one, what the copy is drawn from, and the copy."""
    g, of = table.shape[1], table.sum(axis=2)
    values = np.arange(job.size) % g
    share = np.bincount(values, minlength=g) / job.size if job.pi is None else np.asarray(np.bincount(values, job.pi, g))
    same = np.eye(g, dtype=bool)
    kept.add(table[:, same], of, retention + (1.0 - retention) * share, f"the share of one value that copy {copy} keeps")
    changed = np.broadcast_to((1.0 - retention) * share, (g, g))[~same]
    replaced.add(table[:, ~same], np.repeat(of, g - 1, axis=1).reshape(len(table), -1), changed,
                 f"the share of one value that copy {copy} changes to another one")  # fmt: skip

"""What pooling categorical copies buys, judged without trusting the scheme: from the originals of records that look alike to a coalition.

An attack that uses the stated law is blind to a leak of a scheme that draws otherwise. Every
coalition is tested in these ways, with the estimator of ``auditor.audit.pooling.matching_records``:

- all its copies by their pattern of agreement, which decides where nearly every record's pattern is
  shown by others;
- a coalition too wide for that, by every three of its copies with the best among them (beyond 33
  copies, by the best with each two of neighbouring levels), where each must show no gain; the whole
  may still refute;
- all its copies by the values they show, which sees leaks that treat values differently; where many
  records look like no other it can only refute.

Of a scheme whose replacements are not uniform the first two look at the best copy's value with the
pattern.

Not covered: in coalitions judged by threes, leaks that show in no three copies; and leaks that
treat values differently where records are too few.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from auditor.audit.counts.outcome_counts import (
    KEY_BYTES,
    MOST_CELLS,
    CodeBlock,
    batches,
    possible_cells,
)
from auditor.audit.pooling.matching_records import (
    MOST_LABELLED,
    MOST_NUMBERS,
    NOTHING,
    GainEstimate,
    PatternCounts,
    ValueCounts,
    blocks_of,
    from_patterns,
    patterns,
)
from auditor.numerics.blocks import JACKKNIFE_GROUPS
from auditor.numerics.passes import Job
from auditor.results.evidence import MatchingGain, Pooling
from auditor.types import Coalition

MOST_BLIND = 0.001
"""Share of records like no other above which a test can refute and not acquit: a tenth of the usual
margin."""
MOST_OTHERS = 32
"""Copies beside the best up to which every two of them are tested with it: 496 threes."""


def _cells_of_bits() -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return the five patterns of three copies as ``patterns`` numbers them, and which (pattern, block) six bits mean, shape (64, 20).

    Bits, from the lowest: ``[y_b = x], [y_i = x], [y_i = y_b], [y_j = x], [y_j = y_b], [y_i =
    y_j]``.
    """
    # Four values are enough for three copies and the truth to agree in every way there is, so this
    # lists all cases once and for all.
    triples = np.array(
        [(x, b, i, j) for x in range(4) for b in range(4) for i in range(4) for j in range(4)]
    ).T
    x, b, i, j = triples
    bits = np.stack([b == x, i == x, i == b, j == x, j == b, i == j])
    pattern, block = patterns(x, (b, i, j))
    kinds, place = np.unique(pattern, return_inverse=True)
    cell_of = np.zeros((2**6, kinds.size * 4), dtype=np.intp)
    cell_of[np.left_shift(1, np.arange(6)) @ bits, place * 4 + block] = 1
    return kinds, cell_of


KINDS, CELL_OF = _cells_of_bits()


@dataclass
class MatchingCounts:
    """What was counted of some coalitions: patterns and values by coalition, and bits by three copies and row group, shape (G, 64).

    ``labelled`` are patterns with the best copy's value.
    """

    patterns: dict[Coalition, PatternCounts] = field(repr=False)
    labelled: dict[Coalition, ValueCounts] = field(repr=False)
    values: dict[Coalition, ValueCounts] = field(repr=False)
    threes: dict[Coalition, NDArray[np.int64]] = field(repr=False)

    def add(self, other: MatchingCounts) -> None:
        """Add what was counted in the records that follow."""
        for order, seen in other.patterns.items():
            self.patterns[order].add(seen)
        for mine, theirs in ((self.labelled, other.labelled), (self.values, other.values)):
            for order, found in theirs.items():
                mine[order].add(found)
        for three, bits in other.threes.items():
            self.threes[three] = self.threes[three] + bits


@dataclass(frozen=True)
class MatchingJob(Job[MatchingCounts]):
    """Counts patterns and values of some coalitions, and threes of copies; the best copy comes first in each.

    Attributes
    ----------
    rows, size, groups : int
        ``n``, ``s`` and row groups for the jackknife, interleaved: tables often come sorted.
    """

    rows: int
    size: int
    groups: int
    patterns: tuple[Coalition, ...] = ()
    labelled: tuple[Coalition, ...] = ()
    values: tuple[Coalition, ...] = ()
    threes: tuple[Coalition, ...] = ()
    exact = True

    def weight(self, records: int) -> int:
        """Keys and counts of patterns and outcomes, and counts of bits."""
        keys = len(self.patterns) + len(self.labelled) + len(self.values)
        return KEY_BYTES * records * keys + 8 * 64 * self.groups * len(self.threes)

    def begin(self) -> MatchingCounts:
        """Return empty counts."""
        return MatchingCounts(
            {order: PatternCounts(len(order), self.groups) for order in self.patterns},
            {
                order: ValueCounts(self.rows, self.size, len(order), self.groups, labelled=True)
                for order in self.labelled
            },
            {
                order: ValueCounts(self.rows, self.size, len(order), self.groups)
                for order in self.values
            },
            {three: np.zeros((self.groups, 64), dtype=np.int64) for three in self.threes},
        )

    def take(self, block: CodeBlock, into: MatchingCounts) -> None:
        """Count one block."""
        x, groups = block.x, (block.first + np.arange(block.x.size)) % self.groups
        for counts in (into.patterns, into.labelled, into.values):
            for order, each in counts.items():
                each.take(x, [block.copy(number) for number in order], groups)
        bits = _Bits(block)
        for three, seen in into.threes.items():
            seen += np.bincount(
                (groups << 6) + bits.of(*three), minlength=64 * self.groups
            ).reshape(-1, 64)

    def end(self, into: MatchingCounts) -> None:
        """Let go of what has become too much."""
        counts: list[PatternCounts | ValueCounts] = [
            *into.patterns.values(),
            *into.labelled.values(),
            *into.values.values(),
        ]
        for each in counts:
            each.shorten()


@dataclass(frozen=True)
class MatchingGains:
    """What the counts of a pass come to, by coalition as they are; of patterns None where there were too many."""

    patterns: dict[Coalition, GainEstimate | None]
    labelled: dict[Coalition, GainEstimate]
    values: dict[Coalition, GainEstimate]
    threes: dict[Coalition, GainEstimate]


def gains_of(job: MatchingJob, found: MatchingCounts) -> MatchingGains:
    """Return the gain of every coalition that was counted."""
    return MatchingGains(
        {order: counts.gain(job.size) for order, counts in found.patterns.items()},
        {order: counts.gain() for order, counts in found.labelled.items()},
        {order: counts.gain() for order, counts in found.values.items()},
        {
            three: from_patterns(
                (counts @ CELL_OF).reshape(-1, len(KINDS), 4), blocks_of(KINDS, 3), job.size
            )
            for three, counts in found.threes.items()
        },
    )


class _Bits:
    """Comparisons of one block's copies, each made once for all threes with one best copy."""

    def __init__(self, block: CodeBlock) -> None:
        self._block, self._best, self._seen = block, 0, dict[int, NDArray[np.uint8]]()

    def of(self, best: int, i: int, j: int) -> NDArray[np.uint8]:
        """Return the six bits of ``CELL_OF`` for every record."""
        if best != self._best:
            self._best, self._seen = best, {}
        agree = (self._block.copy(i) == self._block.copy(j)).view(np.uint8)
        return np.asarray(self._two(best) | self._two(i) << 1 | self._two(j) << 3 | agree << 5)

    def _two(self, number: int) -> NDArray[np.uint8]:
        if number not in self._seen:
            y = self._block.copy(number)
            right = (y == self._block.x).view(np.uint8)
            best = self._best
            self._seen[number] = (
                right
                if number == best
                else right | (y == self._block.copy(best)).view(np.uint8) << 1
            )
        return self._seen[number]


class CoalitionMatching:
    """Tests the coalitions of one release; each three copies once, whatever number of coalitions hold them.

    Parameters
    ----------
    rows, size : int
        ``n`` and ``s``.
    levels : tuple of float
        Retention probabilities as stated.
    gains : callable
        Has a job done in one pass over the release, and returns ``gains_of`` it.
    alike : bool
        Whether the scheme treats all values alike, as it does where replacements are uniform.
    """

    def __init__(
        self,
        rows: int,
        size: int,
        levels: tuple[float, ...],
        gains: Callable[[MatchingJob], MatchingGains],
        alike: bool = True,
    ) -> None:
        self._rows, self._size, self._levels, self._gains, self._alike = (
            rows,
            size,
            levels,
            gains,
            alike,
        )
        self._count = min(JACKKNIFE_GROUPS, rows)

    def evidence(
        self, coalitions: Mapping[Coalition, bool | None], proved: bool = True
    ) -> dict[Coalition, Pooling]:
        """Return what pooling buys coalitions of two copies or more, each given with whether, by law, its best copy says all there is.

        None where no law is stated; ``proved`` is whether a law that is stated is the copies' own,
        as it is not of files.
        """
        if self._size < 2:
            none = {c: (MatchingGain("patterns", c, *NOTHING, guard=False),) for c in coalitions}
            return {
                c: Pooling(says, (), (), 1, matching=none[c], proved=proved)
                for c, says in coalitions.items()
            }
        orders = {
            c: tuple(sorted(c, key=lambda copy: (-self._levels[copy - 1], copy)))
            for c in coalitions
        }
        matching: dict[Coalition, list[MatchingGain]] = {c: [] for c in coalitions}
        self._narrow(orders, matching)
        wide = {
            c: threes_of(orders[c])
            for c, says in coalitions.items()
            if says is not False
            and not any(one.how == "patterns" and not one.guard for one in matching[c])
        }
        found = self._threes({three for threes in wide.values() for three in threes})
        for c, threes in wide.items():
            matching[c] += [
                MatchingGain("threes", three, *found[three], guard=False) for three in threes
            ]
        return {
            c: Pooling(
                says,
                (),
                (),
                1,
                matching=tuple(one for one in matching[c] if not np.isnan(one.gain)),
                proved=proved,
            )
            for c, says in coalitions.items()
        }

    def _narrow(
        self,
        orders: Mapping[Coalition, Coalition],
        matching: Mapping[Coalition, list[MatchingGain]],
    ) -> None:
        """Test coalitions of few copies, all of a coalition's copies together, in as many passes as the memory for counts needs."""
        narrow = {order: c for c, order in orders.items() if len(order) <= MOST_LABELLED}
        # A pattern of k copies together with the truth is a partition of k + 1 things: Bell's
        # number of them, whatever the domain.
        costs = [
            (
                ("patterns", order),
                min(self._rows, MOST_NUMBERS, self._count * partitions(len(order) + 1)),
            )
            if self._alike
            else (("labelled", order), self._cells(len(order)))
            for order in narrow
        ]
        costs += [(("values", order), self._cells(len(order))) for order in narrow]
        for batch in batches(costs):
            asked = {
                how: tuple(order for kind, order in batch if kind == how)
                for how in ("patterns", "labelled", "values")
            }
            found = self._gains(MatchingJob(self._rows, self._size, self._count, **asked))
            for how, gains in (
                ("patterns", found.patterns),
                ("patterns", found.labelled),
                ("values", found.values),
            ):
                for order, gain in gains.items():
                    if gain is not None:
                        matching[narrow[order]].append(_match(how, narrow[order], gain))

    def _threes(self, threes: Collection[Coalition]) -> dict[Coalition, GainEstimate]:
        """Test three copies by their pattern, from bits that each copy has once: ``[y = x]`` and ``[y = y_b]``."""
        found: dict[Coalition, GainEstimate] = {}
        if not self._alike:
            for batch in batches([(three, self._cells(3)) for three in sorted(threes)]):
                found |= self._gains(
                    MatchingJob(self._rows, self._size, self._count, labelled=tuple(batch))
                ).labelled
            return found
        for batch in batches([(three, 64 * self._count) for three in sorted(threes)]):
            found |= self._gains(
                MatchingJob(self._rows, self._size, self._count, threes=tuple(batch))
            ).threes
        return found

    def _cells(self, copies: int) -> int:
        """Return how many combinations there are to count at most, of so many copies' values."""
        return min(
            possible_cells(self._rows, self._size, copies) * self._count, self._rows, MOST_CELLS
        )


def _match(how: str, coalition: Coalition, found: GainEstimate) -> MatchingGain:
    # a pair or three copies: nothing smaller to be judged by instead
    narrow = how == "patterns" and len(coalition) <= 3
    return MatchingGain(how, coalition, *found, guard=not narrow and not found.blind <= MOST_BLIND)


def threes_of(order: Sequence[int]) -> list[Coalition]:
    """Return the threes that a wide coalition is judged by, the best copy first in each."""
    best, others = order[0], order[1:]
    two = combinations(others, 2) if len(others) <= MOST_OTHERS else pairwise(others)
    return [(best, *pair) for pair in two]


def partitions(things: int) -> int:
    """Return in how many ways so many things can be sorted into heaps (Bell's number).

    Examples
    --------
    >>> [partitions(k) for k in range(1, 6)]
    [1, 2, 5, 15, 52]
    """
    row = [1]
    for _ in range(things - 1):
        row = list(accumulate([row[-1], *row]))
    return row[-1]

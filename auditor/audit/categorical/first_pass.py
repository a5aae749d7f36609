"""The first pass over a release: what is counted of each copy, of copies and their neighbours, and of rows that adversaries were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.given import KnownPairs
from auditor.audit.counts.code_blocks import CodeBlock
from auditor.audit.counts.outcome_counts import Counts
from auditor.audit.numeric.gather import Draw
from auditor.numerics.passes import Job
from auditor.schemes.replacement.draws import Between
from auditor.types import Codes


@dataclass
class Counted:
    """What was counted.

    Attributes
    ----------
    pairs : dict of int to Counts
        By copy, records of each original and released value, as ``x·s + y``.
    between : ndarray of shape (d, 2)
        Of every copy between two others, records where these agree, and those of them where it
        agrees too.
    history : ndarray
        Records by the elements of their history.
    samples : dict of str to ndarray of shape (k, s)
        By state of knowledge, how often each value occurs in each copy among the rows that it
        estimates from.
    known : dict of str to lists of ndarrays
        By state of knowledge, originals of the rows it is given in clear, and those rows of each
        copy, block by block.
    transitions : dict of (int, int) to Counts
        By a copy's source, which is another copy, and the copy: as ``pairs``.
    rows : list of lists of ndarrays
        Records that are scored: originals and copies, run by run.
    seconds : float
        What the requests took.
    """

    pairs: dict[int, Counts] = field(default_factory=dict, repr=False)
    between: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    history: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    samples: dict[str, NDArray[np.int64]] = field(default_factory=dict, repr=False)
    known: dict[str, list[tuple[Codes, list[Codes]]]] = field(default_factory=dict, repr=False)
    transitions: dict[tuple[int, int], Counts] = field(default_factory=dict, repr=False)
    rows: list[list[Codes]] = field(default_factory=list, repr=False)
    seconds: float = 0.0

    def add(self, other: Counted) -> None:
        """Add what was counted in the records that follow."""
        for number, counts in other.pairs.items():
            self.pairs.setdefault(number, Counts()).add(counts)
        self.between = self.between + other.between
        self.history = plus(self.history, other.history)
        for key, sample in other.samples.items():
            self.samples[key] = self.samples[key] + sample if key in self.samples else sample
        for key, rows in other.known.items():
            self.known.setdefault(key, []).extend(rows)
        for place, counts in other.transitions.items():
            self.transitions.setdefault(place, Counts()).add(counts)
        self.rows += other.rows
        self.seconds += other.seconds

    def dense(self, source: int, copy: int, size: int) -> NDArray[np.int64]:
        """Return records by value of a source (0 is the original) and of a copy, shape (s, s)."""
        counts = self.transitions[source, copy] if source else self.pairs[copy]
        return counts.dense(size * size).reshape(size, size)

    def pairs_of(self, key: str) -> KnownPairs:
        """Return the rows that a state of knowledge is given in clear."""
        originals, copies = zip(*self.known[key], strict=True)
        return KnownPairs(
            np.concatenate(originals),
            tuple(np.concatenate(parts) for parts in zip(*copies, strict=True)),
        )


def plus(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add counts of which the shorter ones have no more."""
    total = np.zeros(max(one.size, other.size), dtype=np.int64)
    total[: one.size] += one
    total[: other.size] += other
    return total


@dataclass(frozen=True)
class CountJob(Job[Counted]):
    """Counts pairs of values and keeps first records, in one pass.

    Attributes
    ----------
    size : int
        ``s``.
    singles : tuple of int
        Copies that some coalition holds.
    between : sequence of Between
    draws : mapping
        The rows that each state of knowledge chooses.
    history : bool
        Whether histories are measured.
    sources : sequence of (int, int)
        Copies that have another copy as their source: the source, and the copy.
    scored : tuple of int
        Copies that are scored.
    scored_rows : sequence of (int, int)
        Runs of records that are scored: start and stop.
    """

    size: int
    singles: tuple[int, ...]
    between: Sequence[Between]
    draws: Mapping[str, Draw] = field(repr=False)
    history: bool
    sources: Sequence[tuple[int, int]] = ()
    scored: tuple[int, ...] = ()
    scored_rows: Sequence[tuple[int, int]] = ()
    exact = drawn = True

    def begin(self) -> Counted:
        """Return an empty count."""
        return Counted(between=np.zeros((len(self.between), 2), dtype=np.int64))

    def take(self, block: CodeBlock, into: Counted) -> None:
        """Count one block."""
        x, made = block.x, block.made
        assert made is not None
        into.seconds += block.seconds
        for number in self.singles:
            into.pairs.setdefault(number, Counts()).take(
                x.astype(np.int64) * self.size + block.copy(number)
            )
        for place, three in enumerate(self.between):
            left = x if three.left == 0 else block.copy(three.left)
            agree = left == block.copy(three.right)
            into.between[place] += [
                int(agree.sum()),
                int((block.copy(three.copy) == left)[agree].sum()),
            ]
        for source, copy in self.sources:
            keys = block.copy(source).astype(np.int64) * self.size + block.copy(copy)
            into.transitions.setdefault((source, copy), Counts()).take(keys)
        for start, stop in self.scored_rows if self.scored else ():
            rows = slice(max(0, start - block.first), max(0, stop - block.first))
            if rows.start < min(rows.stop, x.size):
                columns = [x, *(block.copy(number) for number in self.scored)]
                into.rows.append([column[rows].copy() for column in columns])
        if self.history:
            into.history = plus(into.history, np.bincount(made.history_sizes()))
        for key, draw in self.draws.items():
            self._choose(key, draw, block, into)

    def _choose(self, key: str, draw: Draw, block: CodeBlock, into: Counted) -> None:
        rows, _ = draw.within(block.first, block.first + block.x.size)
        copies = [block.copy(number)[rows] for number in self.singles]
        if draw.clear:
            into.known.setdefault(key, []).append((block.x[rows], copies))
            return
        # of none, if no coalition holds any
        counts = np.array([np.bincount(copy, minlength=self.size) for copy in copies])
        into.samples[key] = into.samples[key] + counts if key in into.samples else counts

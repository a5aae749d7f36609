"""The moment pass over one release, stripe by stripe: moments of all rows, and of the rows that adversaries were given.

The sums of a stripe do not depend on which process takes them or what else it does, and those of all stripes are added up in order:
floating-point sums depend on their order, and results must not depend on the number of workers. A table need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from auditor.adversary.given import Records
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords
from auditor.numerics.blocks import moment_groups, stripes
from auditor.numerics.moments import Moments, Stack, centred
from auditor.numerics.random_streams import stream
from auditor.types import Array, Block, Indices

FOLDS = 10
"""Parts that chosen rows are dealt into, so that an attack can be fitted again to other rows like them (``redraws``)."""

MOST_SHUFFLED = 2**24
"""Rows up to which a choice is the head of a shuffle of all of them, which holds eight bytes a row: 128 megabytes."""
DRAWN_AT_ONCE = 2**12
"""Row numbers drawn at a time of a longer table."""


def chosen_rows(knowledge: Knowledge, rows: int, seed: int, replicate: int) -> Indices | None:
    """Return the rows an adversary estimates from or was given, in the order they were drawn; None when it gets none."""
    if isinstance(knowledge, Estimated):
        return _drawn(stream(seed, "estimated", replicate), rows, knowledge.rows)
    if isinstance(knowledge, KnownRecords):
        return _drawn(stream(seed, knowledge.name, replicate), rows, knowledge.count)
    return None


def _drawn(rng: np.random.Generator, rows: int, count: int) -> Indices:
    """Return rows drawn without replacement: the head of a shuffle, or, of more rows than are well shuffled, draws without repeats.

    Either way a smaller choice is the start of a larger one.
    """
    if rows <= MOST_SHUFFLED or count > rows // 2:
        return rng.permutation(rows)[:count]
    drawn = np.empty(0, dtype=np.intp)
    while drawn.size < count:
        drawn = np.concatenate([drawn, rng.integers(0, rows, DRAWN_AT_ONCE)])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]  # first occurrences, in the order they were drawn
    return drawn[:count]


@dataclass(frozen=True)
class Draw:
    """Rows that were chosen.

    Attributes
    ----------
    rows, fold : ndarrays of shape (r,)
        Row numbers, ascending, and the part each is dealt into: by the order of the draw, so that every part is a random sample.
    clear : bool
        Whether the rows are given in clear, and so taken out of what is measured.
    """

    rows: Indices = field(repr=False)
    fold: Indices = field(repr=False)
    clear: bool

    @classmethod
    def of(cls, drawn: Indices, clear: bool) -> Draw:
        """Deal drawn rows into parts."""
        order = np.argsort(drawn)
        return cls(drawn[order], (np.arange(len(drawn)) % min(FOLDS, len(drawn)))[order], clear)

    def within(self, first: int, stop: int) -> tuple[Indices, Indices]:
        """Return the chosen rows from ``first`` to ``stop`` (exclusive), numbered from ``first``, and their parts."""
        low, high = np.searchsorted(self.rows, (first, stop))
        return self.rows[low:high] - first, self.fold[low:high]

    def falls_within(self, first: int, stop: int) -> bool:
        """Whether any row from ``first`` to ``stop`` (exclusive) was chosen."""
        low, high = np.searchsorted(self.rows, (first, stop))
        return bool(low < high)


def key_of(knowledge: Knowledge) -> str:
    """Return what names a choice of rows: two states of knowledge may share one."""
    return f"{knowledge.name} {knowledge.rows}" if isinstance(knowledge, Estimated) else knowledge.label


def draws_of(knowledge: Iterable[Knowledge], rows: int, seed: int, replicate: int) -> dict[str, Draw]:
    """Return the rows that each state of knowledge chooses, by ``key_of``; nothing for one that chooses none."""
    found: dict[str, Draw] = {}
    for state in knowledge:
        drawn = None if key_of(state) in found else chosen_rows(state, rows, seed, replicate)
        if drawn is not None:
            found[key_of(state)] = Draw.of(drawn, isinstance(state, KnownRecords))
    return found


@dataclass
class Chosen:
    """What is gathered of chosen rows.

    Attributes
    ----------
    parts : dict of int to Moments
        Moments of ``[X, Y_1 … Y_M]`` over each part.
    by_group : dict of int to Moments
        The same by group of rows, of rows in clear.
    originals, copies : lists
        Rows in clear themselves, block by block.
    """

    parts: dict[int, Moments] = field(default_factory=dict)
    by_group: dict[int, Moments] = field(default_factory=dict)
    originals: list[Array] = field(default_factory=list, repr=False)
    copies: list[list[Array]] = field(default_factory=list, repr=False)

    def add(self, other: Chosen) -> None:
        """Add what was gathered of the rows that follow."""
        for part, moments in other.parts.items():
            plus(self.parts, part, moments)
        for group, moments in other.by_group.items():
            plus(self.by_group, group, moments)
        self.originals += other.originals
        self.copies += other.copies

    @property
    def folds(self) -> list[Moments]:
        """Moments over each part, in order."""
        return [self.parts[part] for part in sorted(self.parts)]

    @property
    def records(self) -> Records:
        """The rows in clear."""
        return Records(np.concatenate(self.originals), tuple(np.concatenate(parts) for parts in zip(*self.copies, strict=True)))


def plus(sums: dict[int, Moments], key: int, part: Moments) -> None:
    """Add a part to the sum of those before it."""
    sums[key] = Moments.merge([sums[key], part]) if key in sums else part


@dataclass
class Stripe:
    """What is gathered of one stripe, or of several in order.

    Attributes
    ----------
    groups : dict of int to Moments
        Of ``[X, Y_1 … Y_M]``, by group (``auditor.numerics.blocks.moment_groups``).
    chosen : dict of str to Chosen
        By ``key_of`` a state of knowledge.
    finite : bool
        Whether copies of other columns, which are in no moments, hold finite numbers only.
    seconds : float
        What the copies took to make.
    """

    groups: dict[int, Moments] = field(default_factory=dict)
    chosen: dict[str, Chosen] = field(default_factory=dict)
    finite: bool = True
    seconds: float = 0.0

    def add(self, other: Stripe) -> None:
        """Add the stripe that follows."""
        for number, moments in other.groups.items():
            plus(self.groups, number, moments)
        for key, chosen in other.chosen.items():
            self.chosen.setdefault(key, Chosen()).add(chosen)
        self.finite = self.finite and other.finite
        self.seconds += other.seconds


class Gatherer:
    """Takes every moment that any attack will need of one release.

    Parameters
    ----------
    rows, width : int
        Of the table.
    centre : ndarray of shape (N,)
        The table's mean.
    draws : mapping
        The rows each state of knowledge chooses.
    joint : bool
        Whether copies have the table's columns; without that there are no moments.
    undo : callable, optional
        Turns the rows of all copies back to what they were before a matrix was applied (``auditor.audit.numeric.transformed_copies``):
        moments are of those.
    deviation : ndarray of shape (N,), optional
        The table's standard deviations (``auditor.numerics.moments.Stack``).
    sums : bool
        Whether moments of all rows are taken; those of chosen rows are the same to the last bit without.
    """

    def __init__(
        self, rows: int, width: int, centre: Array, draws: Mapping[str, Draw], joint: bool = True,
        undo: Callable[[Sequence[Array]], Sequence[Array]] | None = None, deviation: Array | None = None, sums: bool = True,
    ) -> None:  # fmt: skip
        self._sums = sums
        self._width, self._centre, self._draws, self._joint, self._deviation = width, centre, draws, joint, deviation
        self._groups = moment_groups(rows, width)
        self._undo = undo
        self._stack: Stack | None = None

    def stripes(self, blocks: Iterable[Block]) -> Iterator[Stripe]:
        """Yield what is gathered of each stripe of some blocks, which come in order and whole stripes at a time."""
        where = self._stripe_of
        for _, inside in groupby(blocks, key=lambda block: where[block[0]]):
            found = Stripe()
            for index, x, copies in inside:
                self.take(found, index, x, copies)
            yield found

    @property
    def _stripe_of(self) -> dict[int, int]:
        rows = self._groups[-1][-1][2]
        return {block: number for number, cut in enumerate(stripes(rows, self._width)) for block in range(*cut)}

    def take(self, into: Stripe, index: int, x: Array, copies: Sequence[Array]) -> None:
        """Add one block's rows to the stripe's sums.

        A block is cut into pieces that stay in the cache while they are laid side by side and multiplied; chosen rows are taken from a
        piece while it lies there.
        """
        parts = self._parts(copies)
        into.finite = into.finite and (self._joint or all(bool(np.isfinite(copy).all()) for copy in copies))
        if self._stack is None:
            self._stack = Stack(self._centre, len(parts) + 1, self._deviation)
        first = self._groups[index][0][1]
        for number, start, stop in self._groups[index]:
            for a, b in self._stack.pieces(start, stop):
                here = slice(a - first, b - first)
                if self._sums:
                    self._stack.add([x[here], *(part[here] for part in parts)])
                elif any(draw.falls_within(a, b) for draw in self._draws.values()):
                    self._stack.lay([x[here], *(part[here] for part in parts)])
                for key, draw in self._draws.items():
                    chosen = into.chosen.setdefault(key, Chosen())
                    self._choose(chosen, draw, a, x[here], [copy[here] for copy in copies], self._stack.rows, number)
            if self._sums:
                plus(into.groups, number, self._stack.moments())

    def _parts(self, copies: Sequence[Array]) -> Sequence[Array]:
        """Return what moments are taken of."""
        if not self._joint:
            return []
        return copies if self._undo is None else self._undo(copies)

    def chosen_alone(self, blocks: Iterable[Block]) -> Stripe:
        """Return what is gathered of the chosen rows, and nothing of the others."""
        found = Stripe()
        for index, x, copies in blocks if self._draws else ():
            parts = [x, *self._parts(copies)]

            def stacked(rows: Indices, parts: list[Array] = parts) -> Array:
                return centred([part[rows] for part in parts], self._centre)

            number, first, _ = self._groups[index][0]
            for key, draw in self._draws.items():
                self._choose(found.chosen.setdefault(key, Chosen()), draw, first, x, copies, stacked, number)
        return found

    def _choose(
        self, into: Chosen, draw: Draw, first: int, x: Array, copies: Sequence[Array], stacked: Callable[[Indices], Array], number: int
    ) -> None:
        """Take what was chosen among some rows of one group: the first one's number, their arrays, and what stacks some of them."""
        inside, fold = draw.within(first, first + len(x))
        for part in np.unique(fold).tolist():
            plus(into.parts, part, Moments.of(stacked(inside[fold == part])))
        if draw.clear and inside.size:
            into.originals.append(x[inside])
            into.copies.append([copy[inside] for copy in copies])
            plus(into.by_group, number, Moments.of(stacked(inside)))

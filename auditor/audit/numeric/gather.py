"""The rows that adversaries are given of a release, and what is gathered of these and of all rows: moments, stripe by stripe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from auditor.adversary.given import Records
from auditor.adversary.knowledge import Estimated, Knowledge, KnownRecords
from auditor.audit.numeric.limits import FOLDS
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.types import Array, Indices

MOST_SHUFFLED = 2**24
"""Rows up to which a choice is the head of a shuffle of all of them, which holds eight bytes a row:
128 megabytes."""
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
        # first occurrences, in the order they were drawn
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:count]


@dataclass(frozen=True)
class Draw:
    """Rows that were chosen.

    Attributes
    ----------
    rows, fold : ndarrays of shape (r,)
        Row numbers, ascending, and the part each is dealt into: by the order of the draw, so that
        every part is a random sample.
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
    return (
        f"{Estimated.name} {knowledge.rows}"
        if isinstance(knowledge, Estimated)
        else knowledge.label
    )


def draws_of(
    knowledge: Iterable[Knowledge], rows: int, seed: int, replicate: int
) -> dict[str, Draw]:
    """Return the rows that each state of knowledge chooses, by ``key_of``; nothing for one that chooses none."""
    choosing = [state for state in knowledge if isinstance(state, (Estimated, KnownRecords))]
    return {key_of(state): _draw_of(state, rows, seed, replicate) for state in choosing}


@lru_cache(maxsize=4)
def _draw_of(state: Estimated | KnownRecords, rows: int, seed: int, replicate: int) -> Draw:
    """Kept, as every release of a table asks for the same few: a shuffle of all rows takes long."""
    drawn = chosen_rows(state, rows, seed, replicate)
    assert drawn is not None
    return Draw.of(drawn, isinstance(state, KnownRecords))


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
        return Records(
            np.concatenate(self.originals),
            tuple(np.concatenate(parts) for parts in zip(*self.copies, strict=True)),
        )


def plus(sums: dict[int, Moments], key: int, part: Moments) -> None:
    """Add a part, which is nobody else's, to the sum of those before it, in place."""
    if key in sums:
        before = sums[key]
        part = Moments(
            before.count + part.count,
            np.add(before.total, part.total, out=before.total),
            np.add(before.products, part.products, out=before.products),
        )
    sums[key] = part


@dataclass
class Stripe:
    """What is gathered of one stripe, or of several in order.

    Attributes
    ----------
    groups : dict of int to Moments
        Of ``[X, Y_1 … Y_M]``, by group (``auditor.numerics.blocks.moment_groups``); of all rows, as
        group 0, where none are kept apart.
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

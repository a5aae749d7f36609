"""Moments of all rows and of known rows, gathered in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.view import Records
from auditor.audit.numeric.known_rows import Draw
from auditor.audit.numeric.limits import KEPT_APART
from auditor.numerics.blocks import Job, moment_groups, walk
from auditor.numerics.moments import Moments, Stack
from auditor.types import Array, Block

Undo = Callable[[Sequence[Array]], Sequence[Array]]
"""Inverts the matrices that copies were multiplied by."""


@dataclass(frozen=True)
class NumberBlock:
    """One block of records of numbers, with its copies."""

    index: int
    x: Array
    copies: Sequence[Array]
    parts: Sequence[Array]
    """Copies in the coordinates of the moments; none if they have other columns."""
    seconds: float = 0.0
    """Time to make the copies."""

    @classmethod
    def of(
        cls, block: Block, joint: bool, undo: Undo | None = None, seconds: float = 0.0
    ) -> NumberBlock:
        """Return a block; ``joint`` is whether copies have the table's columns."""
        parts = [] if not joint else block[2] if undo is None else undo(block[2])
        return cls(*block, parts, seconds)


@dataclass(repr=False)
class Chosen:
    """Sums over chosen rows.

    Attributes
    ----------
    parts : dict of int to Moments
        Moments of ``[X, Y_1 … Y_M]`` over each fold.
    by_group : dict of int to Moments
        The same over known rows, by group of rows.
    originals, copies : lists
        Known rows themselves, block by block.
    """

    parts: dict[int, Moments] = field(default_factory=dict)
    by_group: dict[int, Moments] = field(default_factory=dict)
    originals: list[Array] = field(default_factory=list)
    copies: list[list[Array]] = field(default_factory=list)

    def add(self, other: Chosen) -> None:
        """Add the sums over later rows."""
        for mine, theirs in ((self.parts, other.parts), (self.by_group, other.by_group)):
            for key, moments in theirs.items():
                plus(mine, key, moments)
        self.originals += other.originals
        self.copies += other.copies

    @property
    def folds(self) -> list[Moments]:
        """Moments over each fold, in order."""
        return [self.parts[part] for part in sorted(self.parts)]

    @property
    def records(self) -> Records:
        """The known rows."""
        copies = tuple(np.concatenate(parts) for parts in zip(*self.copies, strict=True))
        return Records(np.concatenate(self.originals), copies)


def plus(sums: dict[int, Moments], key: int, part: Moments) -> None:
    """Add moments to a sum in place; the part must not be used elsewhere."""
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
    """Sums over one stripe, or over several in order.

    Attributes
    ----------
    groups : dict of int to Moments
        Of ``[X, Y_1 … Y_M]``, by group (``auditor.numerics.blocks.moment_groups``); of all rows as
        group 0 unless kept apart.
    chosen : dict of str to Chosen
        By ``key_of`` a state of knowledge.
    finite : bool
        Whether copies of other columns, which have no moments, are finite.
    seconds : float
        Time to make the copies.
    """

    groups: dict[int, Moments] = field(default_factory=dict)
    chosen: dict[str, Chosen] = field(default_factory=dict)
    finite: bool = True
    seconds: float = 0.0

    def add(self, other: Stripe) -> None:
        """Add the next stripe."""
        for number, moments in other.groups.items():
            plus(self.groups, number, moments)
        for key, chosen in other.chosen.items():
            self.chosen.setdefault(key, Chosen()).add(chosen)
        self.finite = self.finite and other.finite
        self.seconds += other.seconds


@dataclass(frozen=True, eq=False, repr=False)
class MomentJob(Job[Stripe]):
    """All moments that any attack on one release needs.

    Attributes
    ----------
    rows, width, copies : int
        ``n``, ``N`` and ``M``.
    centre : ndarray of shape (N,)
        The table's mean.
    draws : mapping
        The rows that each state of knowledge chooses.
    apart : bool
        Whether moments of row groups are needed (``ReleasedCopies.apart``). Otherwise they are kept
        for narrow copies only.
    """

    rows: int
    width: int
    copies: int
    centre: Array
    draws: Mapping[str, Draw]
    apart: bool = True

    def begin(self) -> Stripe:
        """Return an empty result."""
        return Stripe()

    def take(self, block: NumberBlock, into: Stripe) -> None:
        """Add one block's rows, in pieces that fit the cache."""
        index, x, copies, parts = block.index, block.x, block.copies, block.parts
        into.finite = into.finite and (bool(parts) or all(map(_finite, copies)))
        into.seconds += block.seconds
        stack, first = Stack(self.centre, len(parts) + 1), self._groups[index][0][1]
        keep = self.apart or (self.copies + 1) * self.width <= KEPT_APART
        for number, cuts in groupby(self._groups[index], key=itemgetter(0)):
            group = number if keep else 0
            for a, b in (piece for _, start, stop in cuts for piece in stack.pieces(start, stop)):
                here = slice(a - first, b - first)
                stack.add([x[here], *(part[here] for part in parts)])
                for key, draw in self.draws.items():
                    inside, fold = draw.within(a, b)
                    chosen = into.chosen.setdefault(key, Chosen())
                    for part in np.unique(fold).tolist():
                        plus(chosen.parts, part, Moments.of(stack.rows(inside[fold == part])))
                    if draw.clear and inside.size:
                        chosen.originals.append(x[here][inside])
                        chosen.copies.append([copy[here][inside] for copy in copies])
                        plus(chosen.by_group, group, Moments.of(stack.rows(inside)))
            plus(into.groups, group, stack.moments())

    @cached_property
    def _groups(self) -> list[list[tuple[int, int, int]]]:
        return moment_groups(self.rows, self.width, (self.copies + 1) * self.width)

    def stripes(self, blocks: Iterable[NumberBlock]) -> Iterator[Stripe]:
        """Yield the sums of each stripe, from all blocks in order."""
        source = iter(blocks)
        yield from walk(self, lambda *_: next(source), self.rows, self.width)
        next(source, None)  # the end, at which the release keeps its copies


def _finite(copy: NDArray[Any]) -> bool:
    return all(bool(np.isfinite(copy[field]).all()) for field in copy.dtype.names or (...,))

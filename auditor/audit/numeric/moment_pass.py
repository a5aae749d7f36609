"""Moments of all rows, and of the rows that adversaries know, gathered in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.gather import Chosen, Draw, Stripe, plus
from auditor.audit.numeric.limits import KEPT_APART
from auditor.numerics.blocks import moment_groups
from auditor.numerics.moments import Moments, Stack, centred
from auditor.numerics.passes import Job, walk
from auditor.types import Array, Block, Indices

Undo = Callable[[Sequence[Array]], Sequence[Array]]
"""Turns the rows of all copies back to what they were before a matrix was applied."""


@dataclass(frozen=True)
class NumberBlock:
    """One block of records of numbers: its number, original rows, and all copies' rows."""

    index: int
    x: Array
    copies: Sequence[Array]
    parts: Sequence[Array]
    """What moments are of beside the originals: the copies, before a matrix was applied to them;
    none where they have other columns."""
    seconds: float = 0.0
    """What the copies took to make."""

    @classmethod
    def of(
        cls, block: Block, joint: bool, undo: Undo | None = None, seconds: float = 0.0
    ) -> NumberBlock:
        """Return a block; ``joint`` is whether copies have the table's columns."""
        return cls(
            *block, [] if not joint else block[2] if undo is None else undo(block[2]), seconds
        )


@dataclass(frozen=True, eq=False)
class MomentJob(Job[Stripe]):
    """Takes every moment that any attack will need of one release.

    Attributes
    ----------
    rows, width : int
        Of the table.
    copies : int
        ``M``.
    centre : ndarray of shape (N,)
        The table's mean.
    draws : mapping
        The rows each state of knowledge chooses.
    apart : bool
        Whether anybody needs the products of row groups apart (``ReleasedCopies.apart``): of wide
        copies they are not kept otherwise.
    """

    rows: int
    width: int
    copies: int
    centre: Array = field(repr=False)
    draws: Mapping[str, Draw] = field(repr=False)
    apart: bool = True

    def begin(self) -> Stripe:
        """Return nothing gathered."""
        return Stripe()

    def take(self, block: NumberBlock, into: Stripe) -> None:
        """Add one block's rows to the stripe's sums.

        A block is cut into pieces that stay in the cache while they are laid side by side and
        multiplied; chosen rows are taken from a piece while it lies there.
        """
        index, x, copies, parts = block.index, block.x, block.copies, block.parts
        into.finite = into.finite and (bool(parts) or all(_finite(copy) for copy in copies))
        into.seconds += block.seconds
        stack, first = Stack(self.centre, len(parts) + 1), self._groups[index][0][1]
        for number, cuts in groupby(self._groups[index], key=itemgetter(0)):
            kept = number if self._keeps_groups else 0
            for a, b in (piece for _, start, stop in cuts for piece in stack.pieces(start, stop)):
                here = slice(a - first, b - first)
                stack.add([x[here], *(part[here] for part in parts)])
                for key, draw in self.draws.items():
                    chosen = into.chosen.setdefault(key, Chosen())
                    _choose(
                        chosen, draw, a, x[here], [copy[here] for copy in copies], stack.rows, kept
                    )
            plus(into.groups, kept, stack.moments())

    @property
    def _keeps_groups(self) -> bool:
        return self.apart or (self.copies + 1) * self.width <= KEPT_APART

    @cached_property
    def _groups(self) -> list[list[tuple[int, int, int]]]:
        return moment_groups(self.rows, self.width, (self.copies + 1) * self.width)

    def stripes(self, blocks: Iterable[NumberBlock]) -> Iterator[Stripe]:
        """Yield what is gathered of each stripe of all blocks, which come in order."""
        source = iter(blocks)
        yield from walk(self, lambda *_: next(source), self.rows, self.width)
        next(source, None)  # its end: what drew the blocks may keep them then

    def chosen_alone(self, blocks: Iterable[NumberBlock]) -> Stripe:
        """Return what is gathered of the chosen rows, and nothing of the others."""
        found = Stripe()
        for block in blocks if self.draws else ():

            def stacked(rows: Indices, tables: Sequence[Array] = (block.x, *block.parts)) -> Array:
                return centred([table[rows] for table in tables], self.centre)

            number, first, _ = self._groups[block.index][0]
            for key, draw in self.draws.items():
                _choose(
                    found.chosen.setdefault(key, Chosen()),
                    draw,
                    first,
                    block.x,
                    block.copies,
                    stacked,
                    number,
                )
        return found


def _finite(copy: NDArray[Any]) -> bool:
    """Whether every number is finite, in rows of numbers as in records with fields."""
    return all(bool(np.isfinite(copy[field]).all()) for field in copy.dtype.names or (...,))


def _choose(
    into: Chosen,
    draw: Draw,
    first: int,
    x: Array,
    copies: Sequence[Array],
    stacked: Callable[[Indices], Array],
    number: int,
) -> None:
    """Take what was chosen among some rows of one group: the first one's number, their arrays, and what stacks some of them."""
    inside, fold = draw.within(first, first + len(x))
    for part in np.unique(fold).tolist():
        plus(into.parts, part, Moments.of(stacked(inside[fold == part])))
    if draw.clear and inside.size:
        into.originals.append(x[inside])
        into.copies.append([copy[inside] for copy in copies])
        plus(into.by_group, number, Moments.of(stacked(inside)))

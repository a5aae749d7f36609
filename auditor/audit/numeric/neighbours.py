"""Blocks with neighbouring rows, for attacks that use them.

An estimate depends on no row further away than the attack asks for, so the division of a table into
blocks does not change it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from auditor.adversary.attack import Inferred, Reconstruction, Regions
from auditor.errors import PluginError
from auditor.types import Array, Block


class Around(NamedTuple):
    """A block, and its original and copies with more rows on either side.

    The block's own rows start at row ``before``, which is row ``first`` of all.
    """

    block: Block
    x: Array
    copies: list[Array]
    before: int
    first: int


def with_neighbours(blocks: Iterable[Block], many: int) -> Iterator[Around]:
    """Yield every block with up to ``many`` rows on either side.

    Blocks come in order of rows, and the next may overwrite their arrays; kept rows are copied.
    """
    done = 0
    if not many:
        for block in blocks:
            yield Around(block, block[1], block[2], 0, done)
            done += len(block[1])
        return
    waiting: deque[Block] = deque()
    past: list[Array] = []

    def first() -> Around:
        nonlocal past, done
        block = waiting[0]
        tables = [[x, *copies] for _, x, copies in waiting]
        past = past or [table[:0] for table in tables[0]]
        here = [np.concatenate(parts) for parts in zip(past, *tables, strict=True)]
        before = len(past[0])
        stop = before + len(block[1])
        past = [table[max(0, stop - many) : stop] for table in here]
        waiting.popleft()
        x, *copies = (table[: stop + many] for table in here)
        done += len(block[1])
        return Around(block, x, copies, before, done - len(block[1]))

    for index, x, copies in blocks:
        waiting.append((index, x.copy(), [copy.copy() for copy in copies]))
        while sum(len(later[1]) for later in islice(waiting, 1, None)) >= many:
            yield first()
    while waiting:
        yield first()


def most_neighbours(fitted: Iterable[Reconstruction]) -> int:
    """Return the largest number of neighbours that some fitted attacks ask for.

    Raises
    ------
    PluginError
        One is no number of rows.
    """
    asked = [each.neighbours for each in fitted]
    if not all(isinstance(many, int) and many >= 0 for many in asked):
        raise PluginError("an attack's `neighbours` must be a whole number of rows, 0 or more")
    return max(asked, default=0)


def shown(
    fitted: Reconstruction, tables: Sequence[Array], before: int, rows: int, first: int
) -> tuple[Reconstruction, list[Array]]:
    """Return an attack on a block's own rows, and tables with the necessary neighbours.

    Parameters
    ----------
    tables : ndarrays of shape (before + rows + after, N)
        Copies, or the original.
    before, rows : int
        First of the block's own rows, and their number.
    first : int
        Its place among all rows.
    """
    start = max(0, before - fitted.neighbours)
    mine = [table[start : before + rows + fitted.neighbours] for table in tables]
    own = slice(before - start, before - start + rows)
    placed = fitted.at(first - before + start)
    return (_Inner(placed, own) if fitted.neighbours else placed), mine


def with_known(fitted: Reconstruction, copies: Sequence[Array], x: Array) -> list[Array]:
    """Return the copies for an attack, then the original columns that it knows, if any."""
    return list(copies) if fitted.in_clear is None else [*copies, x[:, fitted.in_clear]]


def rows_of(fitted: Reconstruction, blocks: Iterable[Block]) -> Array:
    """Return the estimates of all rows, shape (n, N)."""
    found = []
    for (_, x, _), wide, copies, before, first in with_neighbours(
        blocks, most_neighbours([fitted])
    ):
        inner, mine = shown(fitted, with_known(fitted, copies, wide), before, len(x), first)
        found.append(inner.rows(mine))
    return np.concatenate(found)


class _Inner(Reconstruction):
    def __init__(self, fitted: Reconstruction, own: slice) -> None:
        self._fitted, self._own = fitted, own

    def _cut(self, found: Any) -> Any:
        if isinstance(found, tuple):
            return tuple(each[self._own] for each in found)
        return None if found is None else found[self._own]

    def rows(self, copies: Sequence[Array]) -> Array:
        return self._fitted.rows(copies)[self._own]

    def intervals(self, copies: Sequence[Array], confidence: float) -> Any:
        return self._cut(self._fitted.intervals(copies, confidence))

    def guesses(self, copies: Sequence[Array]) -> Iterator[Array] | None:
        found = self._fitted.guesses(copies)
        return None if found is None else map(self._cut, found)

    def chances(self, copies: Sequence[Array], tolerance: float) -> Any:
        return self._cut(self._fitted.chances(copies, tolerance))

    def candidates(self, copies: Sequence[Array]) -> Any:
        return self._cut(self._fitted.candidates(copies))

    def regions(self, copies: Sequence[Array]) -> Regions | None:
        found = self._fitted.regions(copies)
        if found is None:
            return None
        return Regions(found.directions, *self._cut((found.low, found.high, found.claims)))

    def inferred(self, copies: Sequence[Array]) -> Inferred | None:
        return self._fitted.inferred([copy[self._own] for copy in copies])

    def expected(self, x: Array) -> Any:
        return self._cut(self._fitted.expected(x))

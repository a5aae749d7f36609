"""Blocks with the rows before and after them, for attacks that look at a record's neighbours (``Reconstruction.neighbours``).

An estimate depends on no row further away than it asks for, so that whoever cuts a table into
blocks does not change it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from auditor.adversary.attack import Inferred, Reconstruction, Regions
from auditor.errors import PluginError
from auditor.types import Array, Block


class Around(NamedTuple):
    """One block, and original and copies with more rows on either side: ``before`` of them stand before the block's own."""

    block: Block
    x: Array
    copies: list[Array]
    before: int


def with_neighbours(blocks: Iterable[Block], many: int) -> Iterator[Around]:
    """Yield every block with up to ``many`` rows on either side; fewer where the table begins and ends.

    Blocks come in order of rows, and the next may overwrite one's arrays: they are copied where any
    are kept.
    """
    if not many:
        yield from (Around(block, block[1], block[2], 0) for block in blocks)
        return
    waiting: deque[Block] = deque()
    past: list[Array] = []

    def first() -> Around:
        nonlocal past
        block = waiting[0]
        tables = [[x, *copies] for _, x, copies in waiting]
        past = past or [table[:0] for table in tables[0]]
        here = [np.concatenate(parts) for parts in zip(past, *tables, strict=True)]
        before = len(past[0])
        stop = before + len(block[1])
        past = [table[max(0, stop - many) : stop] for table in here]
        waiting.popleft()
        x, *copies = (table[: stop + many] for table in here)
        return Around(block, x, copies, before)

    for index, x, copies in blocks:
        waiting.append((index, x.copy(), [copy.copy() for copy in copies]))
        while sum(len(later[1]) for later in islice(waiting, 1, None)) >= many:
            yield first()
    while waiting:
        yield first()


def most_neighbours(fitted: Iterable[Reconstruction]) -> int:
    """Return how many neighbours on either side any of some fitted attacks asks for.

    Raises
    ------
    PluginError
        One is no number of rows; nobody's word is taken.
    """
    asked = [each.neighbours for each in fitted]
    if not all(isinstance(many, int) and many >= 0 for many in asked):
        raise PluginError("an attack's `neighbours` must be a whole number of rows, 0 or more")
    return max(asked, default=0)


def shown(
    fitted: Reconstruction, tables: Sequence[Array], before: int, rows: int
) -> tuple[Reconstruction, list[Array]]:
    """Return what is asked about a block's own rows, and tables with the neighbours that it answers from.

    Parameters
    ----------
    fitted : Reconstruction
    tables : ndarrays of shape (before + rows + after, N)
        Copies, or the original.
    before, rows : int
        Where the block's own rows begin, and how many they are.
    """
    start = max(0, before - fitted.neighbours)
    mine = [table[start : before + rows + fitted.neighbours] for table in tables]
    return (
        _Inner(fitted, slice(before - start, before - start + rows))
        if fitted.neighbours
        else fitted
    ), mine


def with_known(fitted: Reconstruction, copies: Sequence[Array], x: Array) -> list[Array]:
    """Return the copies that an attack is shown, and after them the original's columns that it knows, if it goes by any."""
    return list(copies) if fitted.in_clear is None else [*copies, x[:, fitted.in_clear]]


def rows_of(fitted: Reconstruction, blocks: Iterable[Block]) -> Array:
    """Return the estimates of all rows, shape (n, N)."""
    found = []
    for (_, x, _), wide, copies, before in with_neighbours(blocks, most_neighbours([fitted])):
        inner, mine = shown(fitted, with_known(fitted, copies, wide), before, len(x))
        found.append(inner.rows(mine))
    return np.concatenate(found)


class _Inner(Reconstruction):
    """A fitted attack that is shown more rows than it is asked about."""

    def __init__(self, fitted: Reconstruction, own: slice) -> None:
        self._fitted, self._own = fitted, own

    def rows(self, copies: Sequence[Array]) -> Array:
        return self._fitted.rows(copies)[self._own]

    def intervals(self, copies: Sequence[Array], confidence: float) -> tuple[Array, Array] | None:
        found = self._fitted.intervals(copies, confidence)
        return None if found is None else (found[0][self._own], found[1][self._own])

    def guesses(self, copies: Sequence[Array]) -> Iterator[Array] | None:
        found = self._fitted.guesses(copies)
        return None if found is None else (guess[self._own] for guess in found)

    def chances(self, copies: Sequence[Array], tolerance: float) -> Array | None:
        found = self._fitted.chances(copies, tolerance)
        return None if found is None else found[self._own]

    def candidates(self, copies: Sequence[Array]) -> Array | None:
        found = self._fitted.candidates(copies)
        return None if found is None else found[self._own]

    def regions(self, copies: Sequence[Array]) -> Regions | None:
        found, own = self._fitted.regions(copies), self._own
        return (
            None
            if found is None
            else Regions(found.directions, found.low[own], found.high[own], found.claims[own])
        )

    def inferred(self, copies: Sequence[Array]) -> Inferred | None:
        return self._fitted.inferred([copy[self._own] for copy in copies])

    def expected(self, x: Array) -> Array | None:
        found = self._fitted.expected(x)
        return None if found is None else found[self._own]

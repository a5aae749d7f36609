"""One release while it is audited: where its copies come from, drawn block by block as often as they are asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from auditor.audit.base.uses import make_scheme
from auditor.audit.numeric.limits import HEADS_BYTES, KEEP_BYTES
from auditor.audit.numeric.moment_pass import NumberBlock
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.numerics.autoregression import Autoregression
from auditor.numerics.blocks import block_rows, row_blocks
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.schemes.base.serial import whitened
from auditor.schemes.base.transform import Transformed
from auditor.schemes.draw import released_grid
from auditor.types import Array


def _heads_of(table: Table, rows: int) -> Iterator[Array]:
    """Yield the first records of every block; of a file only those are read that were not met before."""
    met = _met_heads(table.fingerprint()) if table.streamed else {}
    for a, b in row_blocks(table.rows, table.width):
        if len(met.get(a, ())) < min(rows, b - a):
            x = table.read(a, min(a + rows, b))
            _note_head(table, a, x)
            yield x
        else:
            yield met[a][:rows]


def _note_head(table: Table, start: int, x: Array) -> None:
    """Keep the first records of a block of a file: a file is decoded from the start, so that heads alone cost as much as all records."""
    if table.streamed:
        blocks = math.ceil(table.rows / block_rows(table.width))
        _met_heads(table.fingerprint())[start] = x[
            : HEADS_BYTES // (8 * max(1, table.width) * blocks)
        ].copy()


@lru_cache(maxsize=1)
def _met_heads(fingerprint: str) -> dict[int, Array]:
    """Return the heads of one table's blocks that were met in this process, by the number of their first record."""
    return {}


@dataclass
class Release:
    """One release while it is audited: where its copies come from, and what is known of them."""

    table: Table
    moments: TableMoments
    scheme: Scheme
    use: SchemeUse
    levels: tuple[float, ...]
    key: Key
    seconds: float = 0.0
    _kept: list[Array] | None = field(default=None, repr=False)
    _heads: tuple[int, list[tuple[int, Array, list[Array]]]] | None = field(
        default=None, repr=False
    )

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return self.scheme.count(self.levels)

    def blocks(self) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield (block number, original rows, copies' rows); the arrays are overwritten by the next block."""
        if self._kept is None:
            yield from self._drawn()
            return
        for index, (a, b) in enumerate(self._bounds):
            yield index, self.table.read(a, b), [copy[a:b] for copy in self._kept]

    def block(self, index: int, drawn: bool = False) -> NumberBlock:
        """Return one block, its copies drawn anew; the next block overwrites them."""
        a, b = self._bounds[index]
        x = self.table.read(a, b)
        _note_head(self.table, a, x)
        copies = [copy[: b - a] for copy in self._memory]
        seconds = self._drawing.block(index, x, copies)
        joint = self.scheme.output_width(self.table.width) == self.table.width
        return NumberBlock.of((index, x, copies), joint, self.undo, seconds)

    @cached_property
    def _memory(self) -> list[Array]:
        rows = self._bounds[0][1]
        return [self.scheme.blank(rows, self.table.width) for _ in range(self.copies)]

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        return row_blocks(self.table.rows, self.table.width)

    @cached_property
    def _drawing(self) -> Drawing:
        return self.drawing()

    @property
    def as_released(self) -> Release:
        """The release as recipients get it."""
        return self

    @property
    def kept(self) -> bool:
        """Whether the copies are in memory."""
        return self._kept is not None

    def heads(self, rows: int) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield the same for the first records of every block; drawn anew, once for as many as were asked for, rather than kept of all."""
        if self._heads is None or self._heads[0] < rows:
            kept = list(self._drawn_heads(rows))
            self._heads = (
                (rows, kept)
                if sum(copy.nbytes for _, _, copies in kept for copy in copies) <= KEEP_BYTES // 4
                else None
            )
        else:
            kept = self._heads[1]
        for index, x, copies in kept:
            yield index, x[:rows], [copy[:rows] for copy in copies]

    def _drawn_heads(self, rows: int) -> Iterator[tuple[int, Array, list[Array]]]:
        drawing = self.drawing()
        originals = (
            _heads_of(self.table, rows)
            if drawing.in_order
            else (self.table.read(a, b) for a, b in self._bounds)
        )
        for index, x in enumerate(originals):
            copies = [self.scheme.blank(len(x), self.table.width) for _ in range(self.copies)]
            drawing.block(index, x, copies)
            yield index, x[:rows], [copy[:rows] for copy in copies]

    def whole_copies(self) -> list[Array]:
        """Return the copies as recipients get them, arrays of shape (n, columns), for what cannot be done block by block."""
        parts = [[copy.copy() for copy in copies] for _, _, copies in self.columns()]
        return [np.concatenate(copy) for copy in zip(*parts, strict=True)]

    def columns(self) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield the blocks, their copies' rows as recipients get them."""
        for index, x, copies in self.blocks():
            yield index, x, [self.scheme.to_columns(copy, self.table.attributes) for copy in copies]

    def _drawn(self) -> Iterator[tuple[int, Array, list[Array]]]:
        n, N = self.table.rows, self.table.width
        keep = (
            not self.table.streamed
            and n * self.scheme.blank(1, N).nbytes * self.copies <= KEEP_BYTES
        )
        memory = [
            self.scheme.blank(n if keep else self._bounds[0][1], N) for _ in range(self.copies)
        ]
        drawing = self.drawing()
        self.seconds = 0.0
        for index, (a, b) in enumerate(self._bounds):
            x = self.table.read(a, b)
            out = [copy[a:b] if keep else copy[: b - a] for copy in memory]
            self.seconds += drawing.block(index, x, out)
            yield index, x, out
        if keep:
            self._kept = memory

    @cached_property
    def transformed(self) -> Transformed | None:
        """What was done to the copies, if they are the original plus noise but for a matrix."""
        return self.scheme.transformed(self.levels, self.moments.scale, self.key)

    @property
    def undo(self) -> Callable[[Sequence[Array]], list[Array]] | None:
        """What turns rows of all copies back, if they were transformed."""
        return None if self.transformed is None else self.transformed.undo

    def drawing(self) -> Drawing:
        """Return what draws this release's copies, those that are out already first."""
        early = self._already_out()
        scale = self.moments.scale
        samplers = [(0, self.scheme.sampler(self.levels[:early], scale, self.key))] if early else []
        return Drawing(
            [*samplers, (early, self.scheme.sampler(self.levels, scale, self.key, early))]
        )

    def _already_out(self) -> int:
        share = self.use.already_out
        return min(
            self.copies - 1,
            int(share) if isinstance(share, int) else math.floor(share * self.copies),
        )


@dataclass
class WhiteRelease(Release):
    """A release whose noise follows on from record to record, with its innovations in its place: noise drawn afresh for every record.

    What is tested on it holds of the release, as each can be had of the other; and tests may
    suppose rows to be independent.
    """

    serial: Autoregression = field(kw_only=True)
    original: Release = field(kw_only=True, repr=False)

    @classmethod
    def of(cls, release: Release, serial: Autoregression) -> WhiteRelease:
        """Return a release's innovations."""
        same = (
            release.table,
            release.moments,
            release.scheme,
            release.use,
            release.levels,
            release.key,
        )
        return cls(*same, serial=serial, original=release)

    @property
    def as_released(self) -> Release:
        """The release itself."""
        return self.original

    @property
    def kept(self) -> bool:
        """Whether the release's copies are in memory."""
        return self.original.kept

    def blocks(self) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield the blocks of the release, made white one by one."""
        return (
            (index, x, whitened(self.serial, x, copies))
            for index, x, copies in self.original.blocks()
        )

    def heads(self, rows: int) -> Iterator[tuple[int, Array, list[Array]]]:
        """Yield the same for the first records of every block."""
        return (
            (index, x, whitened(self.serial, x, copies))
            for index, x, copies in self.original.heads(rows)
        )


class Drawing:
    """Draws the copies of one release, block by block, as one request or two."""

    def __init__(self, requests: Sequence[tuple[int, Sampler]]) -> None:
        self._requests = requests
        self.in_order = all(getattr(sampler, "in_order", False) for _, sampler in requests)

    def block(self, index: int, x: Array, out: Sequence[Array]) -> float:
        """Write the copies of one block of rows; return the seconds that the last request took."""
        for existing, sampler in self._requests:
            start = time.thread_time()
            sampler.block(index, x, out, existing)
            elapsed = time.thread_time() - start
        return elapsed


def open_release(
    scenario: Scenario,
    table: Table,
    moments: TableMoments,
    use: SchemeUse,
    levels: tuple[float, ...],
    replicate: int,
) -> Release:
    """Return the release of one scheme, its copies not drawn yet."""
    scheme = make_scheme(use, scenario.base, table)
    seed = noise_seed(scenario.data.source, scenario.seed, table.fingerprint())
    grid = released_grid(scheme, table, levels, scale=moments.scale) if use.public_grid else ()
    return Release(table, moments, scheme, use, levels, Key(seed, use.id, replicate, grid=grid))

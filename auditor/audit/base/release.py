"""One numeric release under audit, drawn block by block."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from auditor.audit.base.request import ReleaseRequest, already_out, make_scheme
from auditor.audit.numeric import error_tally
from auditor.audit.numeric.moment_pass import NumberBlock
from auditor.base import PluginError
from auditor.base.types import Array, Arrays, Block
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.numerics.blocks import row_blocks
from auditor.numerics.linear_algebra import Autoregression
from auditor.process.containment import known
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.additive import whitened
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw, Transformed
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.schemes.draw import released_grid


@dataclass(repr=False)
class Release:
    """One release under audit, and the facts of its scheme.

    Attributes
    ----------
    serial : Autoregression or None
        Of noise whose innovations are in its place, for tests. Each determines the other, so tests
        of the innovations hold for the release.
    """

    table: Table
    moments: TableMoments
    scheme: Scheme
    use: SchemeUse
    levels: tuple[float, ...]
    key: Key
    seconds: float = 0.0
    serial: Autoregression | None = None
    _kept: list[Array] | None = None

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return self.scheme.count(self.levels)

    @cached_property
    def law(self) -> NoiseLaw | None:
        """The law of the noise in the copies, checked.

        Raises
        ------
        PluginError
            The scheme stated an impossible law.
        """
        law = self.scheme.law(self.levels, self.moments.scale)
        if law is None:
            return None
        M, N = self.copies, self.table.width
        if isinstance(law, KroneckerNoise):
            parts = [(law.level_covariance, M), (law.shape, N)]
        elif isinstance(law, DenseNoise):
            parts = [(law.covariance, M * N)]
        else:
            name = known(type(law)).__name__
            raise PluginError(f"the scheme stated a {name} for the law of its noise")
        for part, size in parts:
            if np.shape(part) != (size, size) or not np.isfinite(part).all():
                raise PluginError(
                    f"the scheme stated no finite law for {M} copies of {N} attributes"
                )
        return law

    @cached_property
    def _bounds(self) -> list[tuple[int, int]]:
        return row_blocks(self.table.rows, self.table.width)

    def blocks(self) -> Iterator[Block]:
        """Yield (block number, original rows, copies' rows), overwritten next."""
        return self._whitened(self._blocks())

    def _whitened(self, blocks: Iterator[Block]) -> Iterator[Block]:
        if self.serial is None:
            return blocks
        serial = self.serial
        return ((index, x, whitened(serial, x, copies)) for index, x, copies in blocks)

    def _blocks(self) -> Iterator[Block]:
        if self._kept is not None:
            for index, (a, b) in enumerate(self._bounds):
                yield index, self.table.read(a, b), [copy[a:b] for copy in self._kept]
            return
        n, N = self.table.rows, self.table.width
        size = n * self.scheme.blank(1, N).nbytes * self.copies
        keep = not self.table.streamed and size <= error_tally.KEEP_BYTES
        memory = self._memory(n if keep else self._bounds[0][1])
        drawing, self.seconds = self.drawing(), 0.0
        for index, (a, b) in enumerate(self._bounds):
            x = self.table.read(a, b)
            out = [copy[a:b] if keep else copy[: b - a] for copy in memory]
            self.seconds += drawing.block(index, x, out)
            yield index, x, out
        if keep:
            self._kept = memory

    def block(self, index: int, drawn: bool = False) -> NumberBlock:
        """One block with new draws of its copies, which the next overwrites."""
        a, b = self._bounds[index]
        x, copies = self.table.read(a, b), [copy[: b - a] for copy in self._block_memory]
        seconds = self._drawing.block(index, x, copies)
        return NumberBlock.of((index, x, copies), self.joint, self.undo, seconds)

    @property
    def joint(self) -> bool:
        """Whether copies have the table's columns."""
        return self.scheme.output_width(self.table.width) == self.table.width

    def _memory(self, rows: int) -> list[Array]:
        return [self.scheme.blank(rows, self.table.width) for _ in range(self.copies)]

    @cached_property
    def _block_memory(self) -> list[Array]:
        return self._memory(self._bounds[0][1])

    @cached_property
    def _drawing(self) -> Drawing:
        return self.drawing()

    @property
    def kept(self) -> bool:
        """Whether the copies are in memory."""
        return self._kept is not None

    def heads(self, rows: int) -> Iterator[Block]:
        """Yield the first records of every block."""
        return self._whitened(self._heads(rows))

    def _heads(self, rows: int) -> Iterator[Block]:
        drawing = self.drawing()
        for index, (a, b) in enumerate(self._bounds):
            x = self.table.read(a, min(a + rows, b) if drawing.in_order else b)
            copies = self._memory(len(x))
            drawing.block(index, x, copies)
            yield index, x[:rows], [copy[:rows] for copy in copies]

    def whole_copies(self) -> list[Array]:
        """Released copies, arrays of shape (n, columns)."""
        parts = [[copy.copy() for copy in copies] for _, _, copies in self.columns()]
        return [np.concatenate(copy) for copy in zip(*parts, strict=True)]

    def columns(self) -> Iterator[Block]:
        """Yield the blocks with released columns."""
        for index, x, copies in self.blocks():
            yield index, x, [self.scheme.to_columns(copy, self.table.attributes) for copy in copies]

    @cached_property
    def transformed(self) -> Transformed | None:
        """Matrices that copies with additive noise were multiplied by, if any."""
        return self.scheme.transformed(self.levels, self.moments.scale, self.key)

    @property
    def undo(self) -> Callable[[Arrays], list[Array]] | None:
        """Function that inverts the matrices, if any, on rows of all copies."""
        return None if self.transformed is None else self.transformed.undo

    def drawing(self) -> Drawing:
        """Generator of this release's copies, with earlier copies first."""
        early, scale = already_out(self.use, self.copies), self.moments.scale
        samplers = [(0, self.scheme.sampler(self.levels[:early], scale, self.key))] if early else []
        samplers.append((early, self.scheme.sampler(self.levels, scale, self.key, early)))
        return Drawing(samplers)


class Drawing(NamedTuple):
    """Generator of one release's copies, by block."""

    requests: Sequence[tuple[int, Sampler]]

    @property
    def in_order(self) -> bool:
        """Whether the first rows of a block can be drawn alone."""
        return all(getattr(sampler, "in_order", False) for _, sampler in self.requests)

    def block(self, index: int, x: Array, out: Arrays) -> float:
        """Write one block's copies; return the last request's seconds."""
        for existing, sampler in self.requests:
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
    """Release of one scheme; no copy is drawn."""
    scheme = make_scheme(use, scenario.base, table)
    seed = noise_seed(scenario.data.source, scenario.seed, table.fingerprint())
    grid = released_grid(scheme, table, levels, scale=moments.scale) if use.public_grid else ()
    return Release(table, moments, scheme, use, levels, Key(seed, use.id, replicate, grid=grid))


def release_of(request: ReleaseRequest) -> Release:
    """Requested release; no copy is drawn."""
    here, table, moments, use = request.scenario, request.table, request.moments, request.use
    return open_release(here, table, moments, use, request.levels, request.replicate)

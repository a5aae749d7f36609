"""One release under audit, drawn block by block, and its passes."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from auditor import registry
from auditor.audit.numeric import error_tally
from auditor.audit.numeric.moment_pass import NumberBlock
from auditor.base import PluginError
from auditor.base.types import Array, Arrays, Block, Coalition
from auditor.data.source import noise_seed
from auditor.data.table import Table
from auditor.numerics.blocks import Job, P, added_up, readable, row_blocks, walk
from auditor.numerics.linear_algebra import Autoregression
from auditor.process.containment import known
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, NoiseLaw, Transformed
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.schemes.corner_wave import whitened
from auditor.schemes.draw import released_grid

Share = Callable[[Job[Any]], Any]
"""Carries a job out in steps, perhaps in other processes."""


class Drawn(ABC):
    """A release that is drawn block by block.

    Attributes
    ----------
    width : int
        Values in a row, by which rows are divided into blocks.
    share : callable or None
        Used for tables that stay in their files.
    """

    table: Table
    width: int
    share: Share | None = None

    @abstractmethod
    def block(self, index: int, drawn: bool = False) -> Any:
        """One block with its copies; if ``drawn``, with their generators."""

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """First and last row (exclusive) of every block."""
        return row_blocks(self.table.rows, self.width)

    def fits(self, size: int) -> bool:
        """Whether copies of so many bytes stay in memory."""
        return not self.table.streamed and size <= error_tally.KEEP_BYTES

    def go_through(self, job: Job[P]) -> P:
        """Result of a job for the whole table."""
        if self.share is not None:
            found: P = self.share(job)
            return found
        return added_up(job, walk(job, self.block, self.table.rows, self.width))


@dataclass(repr=False)
class Release(Drawn):
    """One release of numbers, and the facts of its scheme.

    Attributes
    ----------
    use : SchemeUse, or None
        None for copies that were drawn elsewhere (``hold``).
    numbers : tuple of int
        Numbers of the copies; all by default.
    serial : Autoregression or None
        Of noise whose innovations are in its place, for tests. Each determines the other, so tests
        of the innovations hold for the release.
    """

    table: Table
    moments: TableMoments
    scheme: Scheme
    use: Any
    levels: tuple[float, ...]
    key: Key
    numbers: Coalition = ()
    serial: Autoregression | None = None
    share: Share | None = None
    _kept: dict[int, list[Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.numbers = self.numbers or tuple(range(1, self.scheme.count(self.levels) + 1))
        self.width = self.table.width

    @property
    def copies(self) -> int:
        """Number of copies ``M``."""
        return len(self.numbers)

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
        M, N = self.copies, self.width
        if isinstance(law, KroneckerNoise):
            law = law if self.serial is None else replace(law, serial=None)
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

    def hold(self, copies: Arrays) -> None:
        """Keep copies that were drawn elsewhere, shapes (n, …)."""
        for index, (a, b) in enumerate(self.bounds):
            self._kept[index] = readable([copy[a:b] for copy in copies])

    @property
    def kept(self) -> bool:
        """Whether all copies are in memory."""
        return len(self._kept) == len(self.bounds)

    def blocks(self, head: int | None = None) -> Iterator[Block]:
        """Yield (block number, original rows, copies' rows).

        ``head`` is the number of first records of each block; by default all.
        """
        for index in range(len(self.bounds)):
            x, copies, _ = self._made(index, head)
            yield index, x, copies

    def block(self, index: int, drawn: bool = False) -> NumberBlock:
        x, copies, seconds = self._made(index)
        return NumberBlock(index, x, copies, self.undone(copies) if self.joint else [], seconds)

    def _made(self, index: int, head: int | None = None) -> tuple[Array, list[Array], float]:
        (a, b), out, seconds = self.bounds[index], self._kept.get(index), 0.0
        if head is not None and (out is not None or self.in_order):
            b = min(a + head, b)
        x = self.table.read(a, b)
        if out is None:
            out = [self.scheme.blank(b - a, self.width) for _ in range(self.copies)]
            for existing, sampler in self._requests:
                start = time.thread_time()
                sampler.block(index, x, out, existing)
                seconds = time.thread_time() - start  # of the last request
            if self._keeps and head is None:
                self._kept[index] = out
        x, copies = x[:head], [copy[:head] for copy in out]
        if self.serial is not None:
            copies = whitened(self.serial, x, copies)
        return x, copies, seconds

    @cached_property
    def _keeps(self) -> bool:
        return self.fits(self.table.rows * self.scheme.blank(1, self.width).nbytes * self.copies)

    @property
    def joint(self) -> bool:
        """Whether copies have the table's columns."""
        return self.scheme.output_width(self.width) == self.width

    def whole_copies(self) -> list[Array]:
        """Released copies, arrays of shape (n, columns)."""
        parts = (copies for _, _, copies in self.columns())
        return [np.concatenate(copy) for copy in zip(*parts, strict=True)]

    def columns(self) -> Iterator[Block]:
        """Yield the blocks with released columns."""
        for index, x, copies in self.blocks():
            yield index, x, [self.scheme.to_columns(copy, self.table.attributes) for copy in copies]

    @cached_property
    def transformed(self) -> Transformed | None:
        """Matrices that copies with additive noise were multiplied by, if known."""
        facts = self.levels, self.moments.scale, self.key
        return self.use and self.scheme.transformed(*facts)

    def undone(self, copies: Arrays) -> Arrays:
        """Rows of all copies in the coordinates of the moments."""
        return copies if self.transformed is None else self.transformed.undo(copies)

    @cached_property
    def _requests(self) -> list[tuple[int, Sampler]]:
        """Samplers of the copies, earlier copies first, with the number of existing copies."""
        early, facts = already_out(self.use, self.copies), (self.moments.scale, self.key)
        samplers = [(0, self.scheme.sampler(self.levels[:early], *facts))] if early else []
        return [*samplers, (early, self.scheme.sampler(self.levels, *facts, early))]

    @property
    def in_order(self) -> bool:
        """Whether the first rows of a block can be drawn alone."""
        return all(getattr(sampler, "in_order", False) for _, sampler in self._requests)


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


def held_release(
    table: Table,
    moments: TableMoments,
    scheme: Scheme,
    levels: tuple[float, ...],
    numbers: Coalition,
    copies: Arrays,
    law: NoiseLaw | None,
) -> Release:
    """Release of copies that were drawn elsewhere, with their law."""
    found = Release(table, moments, scheme, None, levels, Key(0, scheme.name), numbers)
    found.law = law
    found.hold(copies)
    return found


def make_scheme(use: SchemeUse, base: Path | None, table: Table | None = None) -> Scheme:
    """Scheme plugin of one use, with its folder, and the table if it needs it."""
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    scheme.base = base
    if scheme.needs_table:
        scheme.table = table
    return scheme


def already_out(use: SchemeUse, copies: int) -> int:
    """Number of copies that were released before; at least one is new."""
    share = use.already_out
    return min(copies - 1, int(share if isinstance(share, int) else share * copies))

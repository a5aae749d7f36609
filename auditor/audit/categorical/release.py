"""One uniform release in the making: its law, the coalitions that look at it, and its copies, drawn block by block as a pass goes by."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from itertools import chain
from typing import Any

import numpy as np

from auditor.adversary.coalitions import expand_all
from auditor.audit.base.records import CellContext
from auditor.audit.base.request import Share
from auditor.audit.base.uses import make_scheme
from auditor.audit.counts.code_blocks import CodeBlock
from auditor.data.columns.categorical_table import BLOCK_WIDTH, CategoricalTable
from auditor.data.table import Table
from auditor.errors import PluginError
from auditor.numerics.blocks import moment_groups, row_blocks
from auditor.numerics.passes import Job, P, added_up, walk
from auditor.numerics.read_only import readable
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies, UniformScheme, fork
from auditor.schemes.replacement.estimated_law import EstimatedLaw
from auditor.schemes.replacement.law import UniformLaw
from auditor.types import Codes

KEEP_BYTES = 2**29
"""Copies of a table in memory up to this size stay there for the next pass; others are drawn again,
block by block."""

MOST_GOES = 5
LONG_ENOUGH = 0.2
"""Seconds that one go must take for the clock's grain and interruptions not to matter."""


@dataclass
class UniformRelease:
    """One uniform scheme's release of one table.

    Attributes
    ----------
    law : UniformLaw
        As the scheme states it; of copies from files an ``EstimatedLaw`` where nobody does.
    coalitions, needed : list of tuple of int
        Those asked for; and with them every member alone, by size.
    share : callable or None
        Has a job done for all stripes by others, and yields its parts in order; None: all is done
        here.
    table : Table, optional
        That of the data, for a scheme that needs it: copies from files.
    """

    scenario: Scenario
    data: CategoricalTable
    use: SchemeUse
    context: CellContext
    key: Key
    share: Share | None = field(default=None, repr=False)
    table: Table | None = field(default=None, repr=False)
    _kept: dict[int, dict[int, Codes]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        scheme = make_scheme(self.use, self.scenario.base, self.table)
        if not isinstance(scheme, UniformScheme):
            raise PluginError(
                "the scheme names the categorical engine and states no law of categories"
            )
        self.scheme, M = scheme.over(self.data), self.context.copies
        self.law = self.scheme.channel(self.context.levels, self.data.size)
        if not isinstance(self.law, UniformLaw) or (len(self.law.levels), self.law.size) != (
            M,
            self.data.size,
        ):
            raise PluginError(
                f"the scheme stated no law of {M} copies over {self.data.size} values"
            )
        self.coalitions = expand_all(self.scenario.coalitions, M, self.scenario.seed)
        members = {copy for coalition in self.coalitions for copy in coalition}
        self.needed = sorted(
            {(copy,) for copy in members} | set(self.coalitions), key=lambda c: (len(c), c)
        )
        share = self.use.already_out
        self._early = min(M - 1, int(share) if isinstance(share, int) else math.floor(share * M))
        self._bounds = row_blocks(self.data.rows, BLOCK_WIDTH)
        self.groups = moment_groups(self.data.rows, BLOCK_WIDTH)
        room = self.data.rows * len(self.singles) * self.data.code_type.itemsize
        self._keep = not self.data.streamed and room <= KEEP_BYTES

    @property
    def estimated(self) -> bool:
        """Whether nobody states the law, so that it is estimated from the copies."""
        return isinstance(self.law, EstimatedLaw)

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]

    def go_through(self, job: Job[P]) -> P:
        """Return what a job finds in the whole table, stripes added up in order."""
        here = chain.from_iterable(walk(job, self.block, self.data.rows, BLOCK_WIDTH))
        found: Iterator[P] = here if self.share is None else self.share(job)
        return added_up(job, found)

    def block(self, index: int, drawn: bool = False) -> CodeBlock:
        """Return one block with its copies; ``drawn`` is whether what makes them is wanted too."""
        a, b = self._bounds[index]
        (x,) = readable([self.data.read(a, b)])  # a scheme is shown the table's own codes
        if index in self._kept and not drawn:
            return CodeBlock(index, a, x, self._kept[index].__getitem__)
        made, seconds = self._request(
            x, index, drawn and self.scenario.measure("seconds") is not None
        )
        held: dict[int, Codes] = {}

        def copy(number: int) -> Codes:
            if number not in held:
                held[number] = checked_codes(made.copy(number), x.size, self.data.size)
            return held[number]

        if self._keep:
            for number in self.singles:
                copy(number)
            self._kept[index] = held
        return CodeBlock(index, a, x, copy, made, seconds)

    def _request(self, x: Codes, index: int, timed: bool) -> tuple[Copies, float]:
        """Ask for every copy of a block in order, those that were out already first; time the rest."""
        levels, early = self.law.levels, self._early
        copies = self.scheme.copies(x, self.data.size, changed(self.key, block=index))
        for level in levels[:early]:
            copies.skip(level)
        seconds = 0.0
        if timed and early:
            copies.warm(levels[early:])  # set-up belongs to the first request, not to one more
            seconds = min(_goes(copies, levels[early:]))
        start = time.thread_time()
        for level in levels[early:]:
            copies.ask(level) if timed and not early else copies.skip(level)
        return copies, seconds or time.thread_time() - start


def checked_codes(codes: Any, rows: int, size: int) -> Codes:
    """Return a copy's values after a check: nobody's word is taken.

    Raises
    ------
    PluginError
        They are no codes of the domain, or not one for each record.
    """
    found = np.asarray(codes)
    if found.dtype.kind not in "iu" or found.shape != (rows,):
        raise PluginError("the scheme drew no column of codes, one for each record")
    if rows and not (0 <= found.min() and found.max() < size):
        raise PluginError(f"the scheme drew codes outside the domain of {size} values")
    return found


def _goes(copies: Copies, levels: Sequence[float]) -> Iterator[float]:
    """Yield the seconds that requests take, again and again; none is kept, as each go is on a twin of what is out.

    The shortest counts, as whatever else the machine does can only add to it.
    """
    for _ in range(MOST_GOES):
        twin = fork(copies)
        start = time.thread_time()
        for level in levels:
            twin.ask(level)
        yield (seconds := time.thread_time() - start)
        if seconds >= LONG_ENOUGH:
            return

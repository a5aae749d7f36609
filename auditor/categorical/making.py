"""One uniform release in the making: its law, the coalitions that look at it, and its copies as they are asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from auditor.audit import make_scheme
from auditor.blocks import JACKKNIFE_GROUPS
from auditor.categorical.draws import Codes
from auditor.categorical.scheme import Copies, UniformScheme, fork
from auditor.data.categorical import CategoricalTable
from auditor.records import CellContext
from auditor.scenario.coalitions import expand_all
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scheme import Key

Array = NDArray[np.float64]

KEEP_BYTES = 2**29

MOST_GOES = 5
LONG_ENOUGH = 0.2
"""Seconds that one go must take for the clock's grain and interruptions not to matter."""


@dataclass
class UniformRelease:
    """One uniform scheme's release of one table.

    Attributes
    ----------
    law : UniformLaw
        As the scheme states it.
    coalitions, needed : list of tuple of int
        Those asked for; and with them every member alone, by size.
    groups : ndarray of shape (n,)
        Row groups for the jackknife.
    seconds : float
        Time of the requests; of those after what was out already the shortest of up to five goes, as whatever else the machine does
        can only add to it.
    """

    scenario: Scenario
    data: CategoricalTable
    use: SchemeUse
    context: CellContext
    key: Key
    seconds: float = 0.0
    _held: dict[int, Codes] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        scheme = make_scheme(self.use, self.scenario.base)
        assert isinstance(scheme, UniformScheme)
        self.scheme = scheme
        levels, n = self.context.levels, self.data.rows
        self.law = scheme.channel(levels, self.data.size)
        self.coalitions = expand_all(self.scenario.coalitions, len(levels), self.scenario.seed)
        members = {copy for coalition in self.coalitions for copy in coalition}
        self.needed = sorted({(copy,) for copy in members} | set(self.coalitions), key=lambda c: (len(c), c))
        self.copies = self._request(scheme, levels)
        self.groups = np.arange(n) * min(JACKKNIFE_GROUPS, n) // n

    def _request(self, scheme: UniformScheme, levels: tuple[float, ...]) -> Copies:
        """Ask for every copy in order, those that were out already first; time the rest."""
        copies = scheme.copies(self.data.codes, self.data.size, self.key)
        share = self.use.already_out
        early = min(len(levels) - 1, int(share) if isinstance(share, int) else math.floor(share * len(levels)))
        for level in levels[:early]:
            copies.skip(level)
        timed = self.scenario.measure("seconds") is not None
        if timed and early:
            copies.warm(levels[early:])  # set-up belongs to the first request, not to one more
            self.seconds = min(_goes(copies, levels[early:]))
        start = time.thread_time()
        for level in levels[early:]:
            copies.ask(level) if timed and not early else copies.skip(level)
        self.seconds = self.seconds or time.thread_time() - start
        return copies

    def copy(self, number: int) -> Codes:
        """Return a copy, shape (n,), kept while there is room."""
        if number in self._held:
            return self._held[number]
        values = self.copies.copy(number)
        if (len(self._held) + 1) * values.nbytes <= KEEP_BYTES:
            self._held[number] = values
        return values

    @property
    def singles(self) -> list[int]:
        """Copies that some coalition holds."""
        return [coalition[0] for coalition in self.needed if len(coalition) == 1]


def _goes(copies: Copies, levels: Sequence[float]) -> Iterator[float]:
    """Yield the seconds that requests take, again and again; none is kept, as each go is on a twin of what is out."""
    for _ in range(MOST_GOES):
        twin = fork(copies)
        start = time.thread_time()
        for level in levels:
            twin.ask(level)
        yield (seconds := time.thread_time() - start)
        if seconds >= LONG_ENOUGH:
            return

"""Replacement process: copies as look-ups in one random event stream.

At time ``t = −ln p`` replacements arrive at rate 1 per tuple, and each draws uniformly from the
domain, or from another distribution ``π``. The value released at ``p`` is the last one before
``−ln p``, or the original if none. So ``P(no event in (t_l, t)) = p/p_l`` and copies are the Markov
chain of xiao2009, Lemma 1, for levels in any order.

Events of all tuples are in one array sorted by time, in segments of equal length with a snapshot of
all values at each segment's start. A release copies the snapshot before its time and replays the
rest, at a cost independent of the number of copies. By superposition the events of b tuples are one
Poisson stream of rate b with tuples drawn uniformly, so its times need no sorting.

Levels below ``exp(−HORIZON)`` store nothing. Their values are found *backwards* from their time
through regenerated segments until every tuple has an event, on average ``ln b`` units of time. So
space is bounded for any level. At p = 0 the copy is an independent draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import stream
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import Copies
from auditor.schemes.replacement.draws import code_type, replacements
from auditor.types import Array, Codes

SEGMENTS = 32
"""Number of snapshots. Twice as many would halve the replay and add 32 bytes per tuple."""
HORIZON = 7.0
"""Largest stored time: retention 0.0009; xiao2009 calls 0.001 the lowest useful level."""
STEP = HORIZON / SEGMENTS


class Segment(NamedTuple):
    """Events of one interval of time, in order: times, tuples, new values."""

    times: NDArray[np.float64]
    tuples: NDArray[np.unsignedinteger]
    values: Codes


class ProcessCopies(Copies):
    """The replacement process of one block of tuples: a copy is a look-up.

    A copy is a function of the key, the block and the level.
    """

    def __init__(self, original: Codes, size: int, key: Key, pi: Array | None = None) -> None:
        super().__init__(original, size, key, pi)
        self._snapshots = [self.original]
        self._segments: list[Segment] = []

    def warm(self, levels: Sequence[float]) -> None:
        self.release(min(levels))

    def copy(self, number: int) -> Codes:
        return self.release(self.levels[number - 1])

    def release(self, level: float) -> Codes:
        """Return the copy at a retention probability in [0, 1], shape (b,).

        Any order, any number of times.
        """
        if level >= 1:
            return self.original.copy()
        if level <= 0:
            rng = stream(self.key.seed, *self._name, "never")
            return replacements(rng, self.original.size, self.size, self.pi)
        time = -math.log(level)
        return self._backward(time) if time > HORIZON else self._forward(time)

    @property
    def _name(self) -> tuple[object, ...]:
        return self.key.scheme, self.key.replicate, self.key.block

    def _forward(self, time: float) -> Codes:
        place = min(int(time / STEP), SEGMENTS - 1)
        while len(self._segments) <= place:
            self._grow()
        segment, values = self._segments[place], self._snapshots[place].copy()
        stop = int(np.searchsorted(segment.times, time))
        # numpy assigns in order, so a tuple's last event wins
        values[segment.tuples[:stop]] = segment.values[:stop]
        return values

    def _grow(self) -> None:
        segment = self._segment(len(self._segments))
        values = self._snapshots[-1].copy()
        values[segment.tuples] = segment.values
        self._segments.append(segment)
        self._snapshots.append(values)

    def _backward(self, time: float) -> Codes:
        values = self._forward(HORIZON)
        pending = np.ones(values.size, dtype=bool)
        for place in range(int(time / STEP), SEGMENTS - 1, -1):
            segment = self._segment(place)
            stop = int(np.searchsorted(segment.times, time))
            new = np.flatnonzero(pending[segment.tuples[:stop]])
            values[segment.tuples[new]] = segment.values[new]
            pending[segment.tuples[new]] = False
            if not pending.any():
                break
        return values

    def _segment(self, place: int) -> Segment:
        """Draw the events of time ``[place, place + 1)·STEP``.

        A function of seed, name and place alone.
        """
        rng, n = stream(self.key.seed, *self._name, "segment", place), self.original.size
        count = int(rng.poisson(n * STEP))
        # Order statistics of uniforms are partial sums of exponentials over the total.
        sums = np.cumsum(rng.standard_exponential(count + 1))
        times = (place + sums[:count] / sums[count]) * STEP
        tuples = rng.integers(0, n, count, dtype=code_type(n))
        return Segment(times, tuples, replacements(rng, count, self.size, self.pi))

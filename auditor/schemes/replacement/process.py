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
space is bounded for any level. At p
= 0 the copy is an independent draw.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.numerics.random_streams import Seed, stream
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


class ReplacementProcess:
    """The replacement process of one block of tuples.

    Parameters
    ----------
    original : ndarray of shape (b,)
        Values as codes.
    size : int
        ``s``.
    seed : int or ReleaseKey
        Of the release.
    name : tuple
        Name of the stream: scheme, replicate, block. Equal seed and name give equal copies.
    pi : ndarray of shape (s,), optional
        ``π``, uniform by default.
    """

    def __init__(
        self,
        original: Codes,
        size: int,
        seed: Seed,
        name: tuple[object, ...],
        pi: Array | None = None,
    ) -> None:
        self._size, self._pi = size, pi
        self._seed = seed
        self._name = name
        self._tuples = original.size
        self._snapshots = [np.ascontiguousarray(original, dtype=code_type(size))]
        self._segments: list[Segment] = []

    @property
    def bytes(self) -> int:
        """Memory held for events and snapshots."""
        events = sum(part.nbytes for segment in self._segments for part in segment)
        return events + sum(snapshot.nbytes for snapshot in self._snapshots)

    def release(self, level: float) -> Codes:
        """Return the copy at a retention probability in [0, 1], shape (b,).

        Any order, any number of times.
        """
        if level >= 1:
            return self._snapshots[0].copy()
        if level <= 0:
            rng = stream(self._seed, *self._name, "never")
            return replacements(rng, self._tuples, self._size, self._pi)
        time = -math.log(level)
        return self._backward(time) if time > HORIZON else self._forward(time)

    def history_sizes(self, levels: Sequence[float]) -> NDArray[np.uint16]:
        """Return 1 plus each tuple's value changes between levels, shape (b,).

        Levels must fall.
        """
        values, sizes = self.release(levels[0]), np.ones(self._tuples, dtype=np.uint16)
        for high, low in pairwise(levels):
            if low <= 0.0 or -math.log(low) > HORIZON:
                after = self.release(low)
                sizes += values != after
                values = after
                continue
            # Only events between two levels are read: neighbouring levels have few.
            tuples, new = self._events(-math.log(min(high, 1.0)), -math.log(min(low, 1.0)))
            before = values[tuples]
            values[tuples] = new
            sizes[tuples[values[tuples] != before]] += 1  # once per tuple, for any number of events
        return sizes

    def _events(self, start: float, stop: float) -> tuple[NDArray[np.unsignedinteger[Any]], Codes]:
        first, last = self._place(start), self._place(stop)
        found = []
        for place, segment in enumerate(self._segments[first : last + 1], start=first):
            a = int(np.searchsorted(segment.times, start)) if place == first else 0
            b = int(np.searchsorted(segment.times, stop)) if place == last else segment.times.size
            found.append((segment.tuples[a:b], segment.values[a:b]))
        tuples, values = zip(*found, strict=True)
        return np.concatenate(tuples), np.concatenate(values)

    def _place(self, time: float) -> int:
        """Return the segment that contains a time, and draw all segments up to it."""
        place = min(int(time / STEP), SEGMENTS - 1)
        while len(self._segments) <= place:
            self._grow()
        return place

    def _forward(self, time: float) -> Codes:
        place = self._place(time)
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
        if len(self._segments) < SEGMENTS:
            self._snapshots.append(values)

    def _backward(self, time: float) -> Codes:
        values = self._forward(HORIZON)
        pending = np.ones(self._tuples, dtype=bool)
        first = max(int(time / STEP), SEGMENTS)
        for place in range(first, SEGMENTS - 1, -1):
            segment = self._segment(place)
            stop = (
                int(np.searchsorted(segment.times, time)) if place == first else segment.times.size
            )
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
        rng = stream(self._seed, *self._name, "segment", place)
        count = int(rng.poisson(self._tuples * STEP))
        # Order statistics of uniforms are partial sums of exponentials over the total.
        sums = np.cumsum(rng.standard_exponential(count + 1))
        times = (place + sums[:count] / sums[count]) * STEP
        tuples = rng.integers(0, self._tuples, count, dtype=code_type(self._tuples))
        return Segment(times, tuples, replacements(rng, count, self._size, self._pi))

"""Every outcome of a release with its exact chance."""

import itertools
import math

import numpy as np

from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import HORIZON, SEGMENTS, STEP, Draws, ProcessCopies, Segment


class EveryOutcome(Draws):
    """Draws with given outcomes; ``weight`` is their probability so far."""

    def __init__(self, outcomes, size, weight, pi=None):
        # 0 heads, 1 tails, 2 + y keeps and draws y
        self._outcomes, self._size, self.weight = outcomes, size, weight
        self._share = np.full(size, 1 / size) if pi is None else pi

    def pick(self, left, right, equal, differ):
        same = np.ones(left.size, bool) if right is None else left == right
        u, v = (
            np.where(same, a[left] if np.ndim(a) else a, b)
            for a, b in zip(equal, differ, strict=True)
        )
        heads, tails = self._outcomes == 0, self._outcomes == 1
        chance = np.where(
            heads,
            u,
            np.where(tails, v, (1 - u - v) * self._share[np.maximum(self._outcomes - 2, 0)]),
        )
        self._coin = np.where(heads, u / 2, np.where(tails, u + v / 2, (u + v + 1) / 2))
        possible = chance > 1e-15
        self.weight[:] *= np.where(possible, chance, 0.0)
        # an outcome without chance must still use a valid branch
        self._coin = np.where(possible, self._coin, 0.0)
        bar = u + v if right is not None else np.full(left.size, equal.left)
        self._fresh = np.maximum(self._outcomes - 2, 0)[self._coin >= bar].astype(left.dtype)
        return super().pick(left, right, equal, differ)

    def uniforms(self, n):
        return self._coin

    def values(self, n):
        assert n == self._fresh.size
        return self._fresh


def tuples(size, copies, choices):
    grid = np.array(list(itertools.product(range(size), *[range(choices)] * copies)))
    return grid[:, 0].astype(np.uint8), grid[:, 1:].T


def joint(size, original, copies, weight):
    """Return the joint law of original (uniform prior) and copies."""
    law = np.zeros((size,) * (len(copies) + 1))
    np.add.at(law, (original, *copies), weight / size)
    return law


def enumerate_requests(make, levels, size, pi=None):
    original, outcomes = tuples(size, len(levels), 2 + size)
    weight = np.ones(original.size)
    algorithm = make(original, size, Key(0, "u"), pi)
    copies = []
    for k, level in enumerate(levels):
        copies.append(
            np.array(algorithm.release(level, EveryOutcome(outcomes[k], size, weight, pi)))
        )
        if level in levels[:k]:
            weight *= outcomes[k] == 0  # no draw: one outcome is enough
    return joint(size, original, copies, weight), copies, algorithm, original, weight


class EveryEvent(ProcessCopies):
    """A replacement process with given events (time, value) of tuple k."""

    def __init__(self, original, size, events):
        super().__init__(original, size, Key(0, "u"))
        self.events = events

    def _segment(self, place):
        inside = [
            (t, who, what) for t, who, what in self.events if place * STEP <= t < (place + 1) * STEP
        ]
        times = [np.full(who.size, t) for t, who, _ in inside]
        empty = np.empty(0, np.intp)
        return Segment(np.concatenate([np.empty(0), *times]), np.concatenate([empty, *(w for _, w, _ in inside)]),
                       np.concatenate([empty.astype(np.uint8), *(v for *_, v in inside)]).astype(np.uint8))  # fmt: skip


def enumerate_process(levels, size, pi=None):
    """Return the exact joint law of look-ups in the given order."""
    times = sorted(-math.log(level) for level in levels)
    assert times[-1] < HORIZON + SEGMENTS
    original, outcomes = tuples(size, len(levels), 1 + size)
    weight, events, before = np.ones(original.size), [], 0.0
    for time, outcome in zip(times, outcomes, strict=True):
        none = math.exp(-(time - before))
        share = np.full(size, 1 / size) if pi is None else pi
        weight *= np.where(outcome == 0, none, (1 - none) * share[np.maximum(outcome - 1, 0)])
        who = np.flatnonzero(outcome)
        # an earlier event of the same stretch is overruled by the last one
        first, last = before + (time - before) * 0.25, before + (time - before) * 0.75
        events += [
            (first, who, np.zeros(who.size, np.uint8)),
            (last, who, (outcome[who] - 1).astype(np.uint8)),
        ]
        before = time
    process = EveryEvent(original, size, events)
    return joint(size, original, [process.release(level) for level in levels], weight)

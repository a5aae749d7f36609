"""The law of `multi-pert` from the two neighbours of a new copy."""

from bisect import bisect_left

from auditor.schemes.replacement.base import Copies, Draws, coins, stream_of


class Bridge(Copies):
    def __init__(self, original, size, key, pi=None):
        super().__init__(original, size, key, pi)
        self.released = {}

    def skip(self, level):
        super().skip(level)
        self.release(level, Draws(stream_of(self.key, len(self.levels)), self.size, self.pi))

    def copy(self, number):
        return self.released[self.levels[number - 1]]

    def release(self, level, draws):
        if level not in self.released:
            out = sorted(self.released)
            place = bisect_left(out, level)
            high, low = out[place] if place < len(out) else 1.0, out[place - 1] if place else None
            coin = coins(high, level, low, self.size, self.pi)
            left = self.released.get(high, self.original) if place < len(out) else self.original
            self.released[level] = draws.pick(left, self.released.get(low), *coin)
        return self.released[level]

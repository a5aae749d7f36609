"""Schemes that claim the multilevel law and draw by another."""

import numpy as np

from auditor.schemes.replacement.base import Copies, UniformScheme, stream_of

LEVELS = (0.5, 0.25, 0.125)
"""Each copy keeps half of the one before."""


class _OwnCopies(Copies):
    """All copies drawn at once at ``LEVELS``; later ones by the true law."""

    def __init__(self, original, size, key, draw):
        super().__init__(original, size, key)
        self._kept = draw(self.original, size, stream_of(key, 0))

    def skip(self, level, key=None):
        super().skip(level, key)
        if len(self.levels) > len(self._kept):
            rng, before = stream_of(key or self.key, len(self.levels)), self._kept[-1]
            keep = rng.random(before.size) < level / self.levels[-2]
            self._kept.append(
                np.where(keep, before, rng.integers(0, self.size, before.size)).astype(before.dtype)
            )

    def copy(self, number):
        return self._kept[number - 1]


def threes_only(x, size, rng, leak=0.5):
    """Three copies; any two with X follow the law exactly, all three do not.

    Copy 1 keeps X where the coin H says, copy 2 keeps copy 1 (A), copy 3 keeps copy 2 (C). The law
    has C independent of H; here it is so where A holds, and where it does not ``P(C | H) = 1/2 ±
    leak``. Who sees all three sees A fail and C, and so learns of H. Without copy 1, A cannot be
    told from a coincidence that does not depend on H; without copy 2 or 3, C cannot be told."""
    n = x.size
    H, A = rng.random((2, n)) < 0.5
    C = rng.random(n) < np.where(A, 0.5, np.where(H, 0.5 + leak, 0.5 - leak))
    fresh = rng.integers(0, size, (3, n))
    y_1 = np.where(H, x, fresh[0])
    y_2 = np.where(A, y_1, fresh[1])
    return [y.astype(x.dtype) for y in (y_1, y_2, np.where(C, y_2, fresh[2]))]


def shares(x, size, rng):
    """Three copies; the third's replacement is ``X + Y_2`` modulo s."""
    n = x.size
    H, A, C = rng.random((3, n)) < 0.5
    fresh = rng.integers(0, size, (2, n))
    y_1 = np.where(H, x, fresh[0])
    y_2 = np.where(A, y_1, fresh[1])
    # where copy 2 was drawn afresh its sum with X is as good as a fresh draw to anybody without it
    secret = np.where(A, rng.integers(0, size, n), (x.astype(np.intp) + y_2) % size)
    return [y.astype(x.dtype) for y in (y_1, y_2, np.where(C, y_2, secret))]


def scheme(name_, draw):
    """Return a scheme class that claims the multilevel law, drawn by ``draw``."""

    class Lying(UniformScheme):
        """Broken on purpose: claims the multilevel law."""

        name = name_
        multilevel = True

        def copies(self, original, size, key):
            return _OwnCopies(original, size, key, draw)

    return Lying

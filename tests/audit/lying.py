"""Schemes that claim the multilevel law but draw by another law."""

import numpy as np

from auditor.schemes.replacement.base import Copies, UniformScheme, stream_of

LEVELS = (0.5, 0.25, 0.125)
"""Each copy keeps half of the one before."""


class _OwnCopies(Copies):
    """All copies drawn jointly at ``LEVELS``; later copies by the true law."""

    def __init__(self, original, size, key, draw):
        super().__init__(original, size, key)
        self._kept = draw(self.original, size, stream_of(key, 0))

    def skip(self, level):
        super().skip(level)
        if len(self.levels) > len(self._kept):
            rng, before = stream_of(self.key, len(self.levels)), self._kept[-1]
            keep = rng.random(before.size) < level / self.levels[-2]
            self._kept.append(
                np.where(keep, before, rng.integers(0, self.size, before.size)).astype(before.dtype)
            )

    def copy(self, number):
        return self._kept[number - 1]


def threes_only(x, size, rng, leak=0.5):
    """Three copies; any two with X follow the law exactly, all three do not.

    By coin H copy 1 keeps X, by A copy 2 keeps copy 1, by C copy 3 keeps copy 2. By the law C is
    independent of H. Here ``P(C | H) = 1/2 ± leak`` if A fails. All three copies show A and C, and
    so disclose H. Any two copies do not."""
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
    # where copy 2 is a fresh draw, its sum with X is uniform given X
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

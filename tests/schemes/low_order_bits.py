"""Originals that the last digits of a copy rule out.

A copy is ``y = released(x, g) = x + σ·g`` in floating point, with g a double. A candidate ``x'`` is
impossible if no g near ``(y − x')/σ`` gives y exactly. All doubles g are allowed; a known sampler
rules out more candidates."""

import numpy as np

ULPS = 64
"""Neighbouring doubles tried on either side. Products with σ skip some doubles and hit others
twice, and sums lose bits: 64 are plenty."""


def possible(y, candidate, sigma, released):
    """Whether some double g explains each copy of a candidate, shape (n,)."""
    near = (y - candidate) / sigma
    found = released(candidate, near) == y
    for away in (np.inf, -np.inf):
        g = near
        for _ in range(ULPS):
            g = np.nextafter(g, away)
            found |= released(candidate, g) == y
    return found


def determined(y, candidates, sigma, released):
    """Only possible candidate of each record, or NaN, shape (n,)."""
    left = np.array([possible(y, candidate, sigma, released) for candidate in candidates])
    only = np.asarray(candidates)[left.argmax(axis=0)]
    return np.where(left.sum(axis=0) == 1, only, np.nan)

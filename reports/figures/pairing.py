"""Collusion gain over paired replicates, with a delta-method error bar."""

from __future__ import annotations

import math

from .figures import Figure, student

PAIRS = 5
"""Fewest replicates for a paired error bar."""

Replicates = dict[tuple[int, ...], dict[int, float]]
"""Normalized errors by coalition and replicate."""


def paired_gain(pooled: Figure, single: Figure, errors: Replicates) -> Figure | None:
    """Return ``1 − mean D(coalition) / mean D(best member)`` over pairs.

    The mean of the replicates' ratios is unstable, because single denominators can be near 0. Both
    errors c, s of a pair share their noise, so with ratio r the standard error is ``√(Σ (c − r·s)²
    / (R(R − 1))) / mean s``. The result is None below ``PAIRS`` replicates.
    """
    c, s = errors[pooled.coalition], errors[single.coalition]
    shared = [replicate for replicate in c if replicate in s]
    R = len(shared)
    below = math.fsum(s[replicate] for replicate in shared) / max(1, R)
    if R < PAIRS or below <= 0:
        return None
    ratio = math.fsum(c[replicate] for replicate in shared) / R / below
    squares = math.fsum((c[replicate] - ratio * s[replicate]) ** 2 for replicate in shared)
    half = student(R - 1) * math.sqrt(squares / (R * (R - 1))) / below
    theory = (
        1 - pooled.theory / single.theory if pooled.theory is not None and single.theory else None
    )
    gain = 1 - ratio
    return pooled._replace(
        value=gain,
        low=gain - half,
        high=gain + half,
        theory=theory,
        error_bar="replicates",
        replicates=R,
    )

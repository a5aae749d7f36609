"""The collusion gain over several replicates: a ratio of mean errors, with the error bar of paired draws."""

from __future__ import annotations

import math

from .figures import Figure, student

PAIRS = 5
"""From so many replicates on their pairs say how sure a gain is."""

Replicates = dict[tuple[int, ...], dict[int, float]]
"""Normalized errors by coalition and replicate."""


def paired_gain(pooled: Figure, single: Figure, errors: Replicates) -> Figure | None:
    """Return ``1 − mean D(coalition) / mean D(best member)`` over the replicates that have both; None when there are too few.

    The mean of the replicates' own ratios is no estimate of it: its denominator may come close to 0, and with few records does. The
    standard error is the delta method's, ``√(Σ (c − r·s)² / (R(R − 1))) / mean s``: both errors of a pair share their noise.
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
    theory = 1 - pooled.theory / single.theory if pooled.theory is not None and single.theory else None
    gain = 1 - ratio
    return pooled._replace(value=gain, low=gain - half, high=gain + half, theory=theory, error_bar="replicates", replicates=R)

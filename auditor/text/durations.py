"""Durations in words."""

from __future__ import annotations


def duration(seconds: float) -> str:
    """Format an approximate duration.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.2, 41.7, 100.0, 4000.0, 20_000.0)]
    ['1 s', '42 s', '2 minutes', '67 minutes', '5.6 hours']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"

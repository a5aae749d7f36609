"""Durations in words."""

from __future__ import annotations

import re

UNITS = {"": 1, "s": 1, "min": 60, "h": 3600}


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


def seconds(text: str) -> float | None:
    """Return the seconds of a duration as ``30s``, ``5min`` or ``1h``; None for other texts.

    Examples
    --------
    >>> [seconds(text) for text in ("30s", "1.5 min", "2h", "soon")]
    [30.0, 90.0, 7200.0, None]
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(|s|min|h)\s*", text)
    return None if found is None else float(found[1]) * UNITS[found[2]]

"""What levels must be: each scheme says which numbers it can use, and a message names the first that is none of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from auditor.errors import AuditorError


def check_each(levels: Sequence[float], fits: Callable[[float], bool], what: str) -> None:
    """Refuse a level that is not what it must be.

    Raises
    ------
    AuditorError
        Naming the level.
    """
    for number, level in enumerate(levels, start=1):
        if not fits(level):
            raise AuditorError(f"level {number} must be {what}; got {level!r}")


def check_sizes(levels: Sequence[float], what: str, least: int = 2) -> None:
    """Refuse a level that is no whole number of at least ``least``, saying which, and what it is."""
    wanted = f"{what}, an integer of at least {least}"
    check_each(levels, lambda level: np.isfinite(level) and level >= least and float(level).is_integer(), wanted)


def check_shares(levels: Sequence[float], what: str, zero: bool = False, one: bool = False) -> None:
    """Refuse a level that is no share between 0 and 1, of which ``zero`` and ``one`` are allowed if they are said to be; likewise."""
    between = f"{'at least' if zero else 'above'} 0 and {'at most' if one else 'below'} 1"
    check_each(levels, lambda level: 0 < level < 1 or (zero and level == 0) or (one and level == 1), f"{what}, {between}")

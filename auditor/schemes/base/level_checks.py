"""Checks of levels; a message names the first level that is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from auditor.errors import AuditorError


def check_each(levels: Sequence[float], fits: Callable[[float], bool], what: str) -> None:
    """Refuse a level outside the scheme's range.

    Raises
    ------
    AuditorError
        Naming the level.
    """
    for number, level in enumerate(levels, start=1):
        if not fits(level):
            raise AuditorError(f"level {number} must be {what}; got {level!r}")


def check_sizes(levels: Sequence[float], what: str, least: int = 2) -> None:
    """Refuse a level that is not a whole number of at least ``least``."""
    wanted = f"{what}, an integer of at least {least}"
    check_each(
        levels,
        lambda level: np.isfinite(level) and level >= least and float(level).is_integer(),
        wanted,
    )


def check_shares(levels: Sequence[float], what: str, zero: bool = False, one: bool = False) -> None:
    """Refuse a level outside (0, 1); ``zero`` and ``one`` include the ends."""
    between = f"{'at least' if zero else 'above'} 0 and {'at most' if one else 'below'} 1"
    check_each(
        levels,
        lambda level: 0 < level < 1 or (zero and level == 0) or (one and level == 1),
        f"{what}, {between}",
    )

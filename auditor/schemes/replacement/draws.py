"""The coins of the replacement draws, apart from what is done with them: so that tests can enumerate every outcome.

Equations 3 and 4 of xiao2009. With ``p_l ≥ p ≥ p_r`` the levels of the new copy's neighbours and ``y_l, y_r`` their values,

    ``u = p/p_l``  and  ``v = (1 − p/p_l)·(1 − (1 − p_r/p) / ((s − 1)·p_r/p_l + 1))``       where ``y_l = y_r``,
    ``u = (p − p_r)/(p_l − p_r)``  and  ``v = p_r·(p_l − p) / (p·(p_l − p_r))``              where they differ;

the new value is ``y_l`` with chance u, ``y_r`` with chance v, else uniform over the domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import code_type
from auditor.numerics.random_streams import Rng
from auditor.schemes.replacement.law import step
from auditor.types import Codes

__all__ = ["Codes", "Coin", "Draws", "code_type", "coins"]


class Coin(NamedTuple):
    """Chances of keeping the left value and the right one; the rest is for a fresh draw."""

    left: float
    right: float


def coins(high: float, level: float, low: float | None, size: int) -> tuple[Coin, Coin]:
    """Return the coins for ``y_l = y_r`` and for ``y_l ≠ y_r`` (xiao2009, eqs. 3 and 4).

    Parameters
    ----------
    high, level, low : float
        ``p_l > p > p_r``; without a right neighbour ``low`` is None and both coins are ``(p/p_l, 0)``.
    size : int
        ``s``.

    Examples
    --------
    >>> equal, _ = coins(1.0, 0.8, 0.4, 10)
    >>> round(equal.left, 4), round(equal.right, 4)
    (0.8, 0.1783)
    """
    if low is None:
        alone = Coin(step(high, level), 0.0)
        return alone, alone
    u = level / high
    equal = Coin(u, (1 - u) * (1 - (1 - low / level) / ((size - 1) * low / high + 1)))
    differ = Coin((level - low) / (high - low), low * (high - level) / (level * (high - low)))
    return equal, differ


class Draws:
    """Random outcomes of the coins and of the fresh draws, for n tuples at once."""

    def __init__(self, rng: Rng, size: int) -> None:
        self._rng = rng
        self._size = size

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """Return n numbers uniform on [0, 1)."""
        return np.asarray(self._rng.random(n))

    def values(self, n: int) -> Codes:
        """Return n values uniform over the domain."""
        kind = code_type(self._size)
        return np.asarray(self._rng.integers(0, self._size, n, dtype=kind))

    def pick(self, left: Codes, right: Codes | None, equal: Coin, differ: Coin) -> Codes:
        """Return new values: ``left`` where the coin heads, ``right`` where it tails, fresh where it stands."""
        n = left.size
        coin = self.uniforms(n)
        out = np.array(left, copy=True)
        if right is None:
            stands = np.flatnonzero(coin >= equal.left)
        else:
            same = left == right
            tails = coin >= np.where(same, equal.left, differ.left)
            np.copyto(out, right, where=tails)
            stands = np.flatnonzero(coin >= np.where(same, equal.left + equal.right, differ.left + differ.right))
        out[stands] = self.values(stands.size)
        return out

"""Random choices of replacement draws, separate for enumeration by tests.

Equations 3 and 4 of xiao2009. With ``p_l ≥ p ≥ p_r`` the levels of the new copy's neighbours and
``y_l, y_r`` their values,

    ``u = p/p_l``  and  ``v = (1 − p/p_l)·(1 − (1 − p_r/p) / ((s − 1)·p_r/p_l + 1))``       where
    ``y_l = y_r``, ``u = (p − p_r)/(p_l − p_r)``  and  ``v = p_r·(p_l − p) / (p·(p_l − p_r))``
    where they differ;

the new value is ``y_l`` with probability u, ``y_r`` with probability v, else a replacement: uniform
over the domain, or drawn from any π. By Bayes' rule on the chain, with ``ρ_1 = p/p_l``,
``ρ_0 = p_r/p`` and ``ρ_2 = ρ_1 ρ_0 = p_r/p_l``,

    ``P(y | y_l, y_r) = T(ρ_1)[y_l, y]·T(ρ_0)[y, y_r] / T(ρ_2)[y_l, y_r]``

of which the part with ``π_y`` is ``(1 − ρ_1)(1 − ρ_0)·π_y·π_{y_r} / T(ρ_2)[y_l, y_r]``. Where the
neighbours differ ``π_{y_r}`` cancels, and u and v above hold for any π. Where both are c, the value
is kept with probability ``u + v``, and

    ``v = (1 − ρ_1)·(1 − (1 − ρ_0)·π_c / (ρ_2 + (1 − ρ_2)·π_c))``

which is the paper's with ``1/π_c`` for s. Without a right neighbour ``ρ_0 = 0``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import code_type
from auditor.numerics.random_streams import Rng
from auditor.schemes.replacement.law import step
from auditor.types import Array, Codes

__all__ = [
    "Coin",
    "Draws",
    "code_type",
    "coins",
    "kept_or_replaced",
    "replacements",
    "sent_through",
]


class Coin(NamedTuple):
    """Probabilities of the left and the right value; else a fresh draw."""

    left: float
    right: float | Array
    """One number, or one per value that the neighbours share, shape (s,)."""


def coins(
    high: float, level: float, low: float | None, size: int, pi: Array | None = None
) -> tuple[Coin, Coin]:
    """Return the coins for ``y_l = y_r`` and for ``y_l ≠ y_r``.

    Source: xiao2009, eqs. 3 and 4.

    Parameters
    ----------
    high, level, low : float
        ``p_l > p > p_r``; without a right neighbour ``low`` is None and both coins are ``(p/p_l,
        0)``.
    size : int
        ``s``.
    pi : ndarray of shape (s,), optional
        ``π``, uniform by default.

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
    if pi is None:
        equal = Coin(u, (1 - u) * (1 - (1 - low / level) / ((size - 1) * low / high + 1)))
    else:
        # a value never drawn was kept all along: v is 1 − u
        given, some = low / high + (1 - low / high) * pi, pi > 0
        equal = Coin(
            u,
            (1 - u)
            * (1 - (1 - low / level) * np.divide(pi, given, out=np.zeros_like(pi), where=some)),
        )
    differ = Coin((level - low) / (high - low), low * (high - level) / (level * (high - low)))
    return equal, differ


def replacements(
    rng: Rng, n: int, size: int, pi: Array | None = None, kind: np.dtype[Any] | None = None
) -> Codes:
    """Return n values drawn uniformly from a domain, or from π, shape (n,).

    From π by inversion at multiples of 2⁻⁵³. Probabilities are exact to 1.1e-16, and a value of
    probability 0 is never drawn.
    """
    kind = code_type(size) if kind is None else kind
    if pi is None:
        return rng.integers(0, size, n, dtype=kind)
    return inverse(rng.random(n), pi).astype(kind)


def inverse(u: Array, pi: Array) -> NDArray[np.intp]:
    """Return the π quantiles of [0, 1) numbers, shape (n,)."""
    sums = np.cumsum(pi)
    return np.searchsorted(sums / sums[-1], u, side="right")


SHORT_OF_1 = 1.0 - 2.0**-50
"""Largest number, so that rounding never reaches the end of the domain."""


def kept_or_replaced(
    values: Codes, level: float, u: Array, size: int, pi: Array | None = None
) -> Codes:
    """Return values kept where ``u < p``, else replaced by use of u, (n,).

    Given ``u ≥ p``, ``(u − p)/(1 − p)`` is uniform; probabilities are exact to 2⁻⁵⁰.

    Parameters
    ----------
    values : ndarray of shape (n,)
    level : float
        ``p``.
    u : ndarray of shape (n,)
        Uniform on [0, 1).
    size, pi
        The domain and ``π``.

    Examples
    --------
    >>> kept_or_replaced(np.full(4, 3), 0.5, np.array([0.49, 0.5, 0.74, 0.99]), 4).tolist()
    [3, 0, 1, 3]
    """
    if level >= 1.0:
        return values.copy()
    again = np.maximum(u - level, 0.0) * (SHORT_OF_1 / (1.0 - level))
    fresh = again * size if pi is None else inverse(again, pi)
    return np.where(u < level, values, fresh.astype(values.dtype))


class Draws:
    """Random coins and fresh draws for n tuples at once.

    ``pi`` as in ``replacements``.
    """

    def __init__(self, rng: Rng, size: int, pi: Array | None = None) -> None:
        self._rng = rng
        self._size = size
        self._pi = pi

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """Return n numbers uniform on [0, 1)."""
        return self._rng.random(n)

    def values(self, n: int) -> Codes:
        """Return n replacements."""
        return replacements(self._rng, n, self._size, self._pi)

    def pick(self, left: Codes, right: Codes | None, equal: Coin, differ: Coin) -> Codes:
        """Return ``left``, ``right`` or a fresh value per tuple, by the coins."""
        n = left.size
        coin = self.uniforms(n)
        out = np.array(left, copy=True)
        if right is None:
            stands = np.flatnonzero(coin >= equal.left)
        else:
            same, kept = left == right, np.asarray(equal.left + equal.right)
            tails = coin >= np.where(same, equal.left, differ.left)
            np.copyto(out, right, where=tails)
            stands = np.flatnonzero(
                coin
                >= np.where(same, kept[left] if kept.ndim else kept, differ.left + differ.right)
            )
        out[stands] = self.values(stands.size)
        return out


def sent_through(x: Codes, T: Array, rng: Rng) -> Codes:
    """Return categories drawn by their rows of a matrix, shape (n,).

    By inversion, with one number per record.
    """
    u, y = rng.random(x.size), np.empty_like(x)
    for value, chances in enumerate(T):
        rows = np.flatnonzero(x == value)
        if rows.size:
            y[rows] = np.minimum(
                np.searchsorted(np.cumsum(chances), u[rows], side="right"),
                np.flatnonzero(chances)[-1],
            )
    return y

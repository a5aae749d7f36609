"""Random choices of replacement draws, separate from the samplers.

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

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Codes
from auditor.data.columns.categorical_table import code_type
from auditor.numerics.random_streams import Rng
from auditor.results.evidence import Drawn
from auditor.schemes.replacement.law import UniformLaw, step

__all__ = ["Coin", "Draws", "code_type", "coins", "replacements", "sent_through"]


class Coin(NamedTuple):
    """Probabilities of the left and the right value; else a fresh draw."""

    left: float
    right: float | Array
    """One number, or one per value that the neighbours share, shape (s,)."""


def coins(
    high: float, level: float, low: float | None, size: int, pi: Array | None = None
) -> tuple[Coin, Coin]:
    """Return the coins for ``y_l = y_r`` and for ``y_l ≠ y_r``.

    Source: xiao2009, eqs. 3 and 4. Levels ``high > level > low``; without a right neighbour ``low``
    is None and both coins are ``(p/p_l, 0)``.

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


MOST_COPIES = 50


class Between(NamedTuple):
    """A copy and its neighbours by level among earlier copies.

    ``left`` is 0 if the neighbour is the original.
    """

    copy: int
    left: int
    right: int


def between(levels: Sequence[float]) -> list[Between]:
    """Return every copy with a more perturbed copy before it.

    Without a less perturbed copy X is the left neighbour.
    """
    found = []
    for number, level in enumerate(levels[:MOST_COPIES], start=1):
        before = sorted((other, k) for k, other in enumerate(levels[: number - 1], start=1))
        place = bisect_left(before, (level, 0))
        if place and not any(other == level for other, _ in before):
            found.append(
                Between(
                    number, before[place][1] if place < len(before) else 0, before[place - 1][1]
                )
            )
    return found


def drawn_between(
    law: UniformLaw, prior: Array, copies: Sequence[Between], counts: NDArray[Any]
) -> list[Drawn]:
    """Return each copy's coin with its observed frequencies.

    ``counts``, shape (d, 2), are the records where the neighbours agree and where all three do. If
    π is not uniform, the stated coin is a mean over a table with shares ``prior``: neighbours agree
    on c with probability ``(p_l q_c + (1 − p_l)π_c)·T(p_r/p_l)[c, c]``.
    """
    found, levels = [], law.levels
    for three, (agreeing, same) in zip(copies, counts.tolist(), strict=True):
        high = 1.0 if three.left == 0 else levels[three.left - 1]
        level, low = levels[three.copy - 1], levels[three.right - 1]
        equal, _ = coins(high, level, low, law.size, law.pi)
        fresh = 1.0 - equal.left - equal.right
        if law.pi is None:
            tails, kept = equal.right, equal.left + equal.right + fresh / law.size
        else:
            rho = step(high, low)
            agree = (high * prior + (1.0 - high) * law.pi) * (rho + (1.0 - rho) * law.pi)
            tails, kept = (
                float(agree @ part / agree.sum())
                for part in (equal.right, 1.0 - fresh * (1.0 - law.pi))
            )
        found.append(
            Drawn(three.copy, step(high, level), float(tails), float(kept), agreeing, same)
        )
    return found

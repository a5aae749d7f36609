"""Whether a row's coins are its own: one that takes another's is told by who knows that one's value; one set by another's value tells it.

| symbol | meaning | shape |
| --- | --- | --- |
| ``e`` | whether the value that a copy is drawn from is kept, or, if not, whether an odd code replaces it: less its chance, over σ | (n,) |
| | the latter also with the other sign where a is odd: whether the code changes by an odd number | |
| ``σ²`` | ``(1 − 2κ) / (2 ln((1 − κ)/κ))`` of chance κ: ``E exp(λe) ≤ exp(λ²/2)`` for every λ (kearns1998) | |
| ``S``, ``N`` | sums and numbers of scores by place: rows, in some order, go round ``PLACES`` places, one further each time | (L,) |
| ``R`` | ``Σ_o S_o S_(o+h)`` at every lag h, and ``Σ_o S_o S_(h−o)``: coins that come again backwards | (L,) |
| ``G`` | sums by place of one bit of the original values' codes, less its mean | (L,) |

By law rows are independent and each place's sum is sub-Gaussian, of variance N_o at most. R is linear in each of them, so its moment
generating function is no larger than of normal ones (replace one after the other), and ``P(|R| > √(2Vt) + 2mt) ≤ 2 exp(−t)`` with
``V = Σ_o N_o N_(o+h)`` and m the largest N (hsu2012; a lag backwards has every product twice). So p-values hold at any number of rows, for
any table and any retention. ``Σ_o S_o G_(o+h)`` is sub-Gaussian itself, of variance ``Σ_o N_o G²_(o+h)``, as originals are given. That each
round starts one place further takes what comes again after ``PLACES`` rows, or in the next block, to lag 1. Rows in their own order show
neighbours and periods; in that of their values, records that are alike. *Not found*: rows that share coins by no rule of places, as by a
secret order; a share of them below some ``7/√L``, and records that are not looked at, as far
as ``SEGMENT_ROWS`` leave some.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.results.evidence import LawTest
from auditor.types import Array

PLACES = 2**13
BITS = 4
"""Of original values' codes, the lowest; values beyond are told apart by their number modulo 16."""
VECTORS = 8
"""Sums are kept of copies apart; of more copies some have theirs together."""
UNIT = 2.0**11
"""Scores, below 8, are counted in so many parts: whole numbers, whose sums are exact in any order, and below 2³¹ of 10,000 copies."""
SERIES = (
    "the values kept", "the replacements", "the changes",
    "the values kept of records with one value", "the replacements of records with one value",
)  # fmt: skip
ROWS, CHANGED, NUMBERS = 5, (6, 7), (0, 1, 1, 0, 2)
"""Where, after the sums of ``SERIES``, the number of rows stands, and those of values changed in either order; and which each has."""
OWN = 3
"""Of them, in the rows' own order."""
DEPARTURE = "a correlation of scores of coins"
"""Of coins themselves it is larger, where most values are kept: their scores spread less."""
SUMS_BYTES = 4 * 8
"""Of one copy's sums at one place."""


def standard_scores(chance: Array) -> NDArray[np.int32]:
    """Return ``e`` of what does not happen and of what does, in units, by its chance, shape (…, 2); 0 where either is certain.

    Examples
    --------
    >>> (standard_scores(np.array([0.5, 1.0])) / UNIT).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    some = (chance > 0.0) & (chance < 1.0 - 1e-13)  # a sum of shares
    k = np.where(some & (np.abs(chance - 0.5) > 1e-6), chance, 0.25)
    variance = np.where(np.abs(chance - 0.5) > 1e-6, (1.0 - 2.0 * k) / (2.0 * np.log((1.0 - k) / k)), 0.25)  # 1/4 in the limit
    scores = np.where(some, np.stack([-chance, 1.0 - chance]) / np.sqrt(variance), 0.0)
    return np.rint(np.moveaxis(scores, 0, -1) * UNIT).astype(np.int32)


class Scores(NamedTuple):
    """Scores of one copy by the value it is drawn from, whether it keeps that, and whether it shows an odd code; shape (4 s,) each."""

    kept: NDArray[np.int32]
    replaced: NDArray[np.int32]

    @classmethod
    def of(cls, retention: float, pi: Array) -> Scores:
        """Return those of a retention and of π, shape (s,). Of two values what replaces one is certain: the other score is signed by it."""
        s, odd = len(pi), np.arange(len(pi)) % 2
        kept = np.repeat(standard_scores(retention + (1.0 - retention) * pi), 2).reshape(s, 2, 2)
        if s == 2:
            return cls(kept.ravel(), np.where(odd[:, None, None], -kept, kept).ravel())
        chance = np.divide(pi @ odd - pi * odd, 1.0 - pi, out=np.zeros(s), where=pi < 1.0)
        replaced = np.stack([standard_scores(np.clip(chance, 0.0, 1.0)), np.zeros((s, 2), np.int32)], axis=1)
        return cls(kept.ravel(), replaced.ravel())

    def series(self, a: NDArray[np.intp], y: NDArray[np.intp], order: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return scores, and numbers, of rows that show y and are drawn from a, shape (8, b)."""
        keys = 4 * a + 2 * (y == a) + (y & 1)
        found = np.ones((8, len(a)), dtype=np.int32)
        found[0], found[1] = self.kept[keys], self.replaced[keys]
        found[2] = found[1] * (1 - 2 * (a & 1))  # whether the value changes by an odd number, where there are evenly many
        found[3], found[4] = found[0][order], found[1][order]
        found[CHANGED[0]], found[CHANGED[1]] = found[1] != 0, found[4] != 0
        return found


def by_place(series: NDArray[np.int32], first: int, length: int) -> NDArray[np.int32]:
    """Return sums by place, shape (k, L), of rows of which the first one has that number among all.

    Examples
    --------
    >>> by_place(np.array([[1, 2, 3, 4, 5]]), 0, 3).tolist()
    [[1, 6, 8]]
    """
    sums, row = np.zeros((len(series), length), dtype=np.int32), 0
    while row < series.shape[1]:
        turn, place = divmod(first + row, length)
        start = (place + turn) % length
        count = length - max(place, start)  # to where a turn ends, or the last place is
        part = series[:, row : row + count]
        sums[:, start : start + part.shape[1]] += part
        row += count
    return sums


def bits_of(values: NDArray[np.intp]) -> NDArray[np.int32]:
    """Return the lowest bits of rows' codes, and a one for each row, shape (BITS + 1, b).

    Examples
    --------
    >>> bits_of(np.array([0, 1, 6])).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]]
    """
    found = np.ones((BITS + 1, len(values)), dtype=np.int32)
    found[:BITS] = values >> np.arange(BITS)[:, None] & 1
    return found


def exponents(R: Array | float, V: Array | float, most: float) -> Array:
    """Return t, ``√(2Vt) + 2mt = |R|``: the chance of so large a sum of products is at most ``2 exp(−t)``; 0 of none.

    Examples
    --------
    >>> exponents(np.array([6.0, 0.0]), np.array([8.0, 0.0]), 1.0).tolist()
    [1.0, 0.0]
    """
    root = (np.sqrt(2.0 * V + 8.0 * most * np.abs(R)) - np.sqrt(2.0 * V)) / (4.0 * most)
    return np.asarray(np.square(root))


def shared_coins_tests(vectors: Mapping[int, NDArray[np.signedinteger[Any]]], copies: int, rows: int) -> list[LawTest]:
    """Return the test of all lags, forwards and backwards, of each copy and of all together; nothing of fewer than three places.

    Parameters
    ----------
    vectors : mapping
        What ``by_place`` returned of ``Scores.series``, added up by copy, shape (8, L); of more copies than ``VECTORS`` of several.
    copies, rows : int
        Copies, and rows that were counted.
    """
    length = next(iter(vectors.values())).shape[1]
    if length < 3:
        return []
    tests, worst = 0, (0.0, 0.0, "no correlation")
    for name, sums, alone in _looks(vectors, copies):
        # Given which values are changed, what replaces them is independent in one copy; in several that hang together not by uneven π.
        numbers = [ROWS, *CHANGED] if alone else [ROWS] * 3
        S, N, most = sums[:ROWS] / UNIT, sums[numbers].astype(np.float64), float(sums[ROWS].max())
        for way, every_R, every_V, twice in zip(("further on", "off, backwards"), lagged(S), lagged(N), (False, True), strict=True):
            tests += every_R.size
            for series, R in enumerate(every_R):
                V = every_V[NUMBERS[series]].clip(1e-9)
                lag = int((R * R / V).argmax())  # or nearly: any other lag has a p-value that is no smaller than its own
                t = float(exponents(max(abs(R[lag]) - 2.0 * most * twice, 0.0), (1 + twice) * V[lag], most))
                if t > worst[0]:
                    what = f"the correlation of {SERIES[series]} of {name} with those of rows {lag + (not twice)} {way},"
                    worst = (t, float(R[lag] / V[lag]), what)
    t_most, observed, where = worst
    p = min(1.0, 2.0 * tests * math.exp(-t_most))
    return [LawTest("shared coins", p, tests, rows, observed, 0.0, f"{where} is", math.sqrt(length / rows), DEPARTURE)]


def other_rows_tests(
    vectors: Mapping[int, NDArray[np.signedinteger[Any]]], bits: NDArray[np.signedinteger[Any]], copies: int, rows: int
) -> list[LawTest]:
    """Return the test that coins and replacements go with no other row's original value, at any lag; nothing of fewer than three places.

    Parameters
    ----------
    vectors, copies, rows
        As for ``shared_coins_tests``.
    bits : ndarray of shape (BITS + 1, L)
        What ``by_place`` returned of ``bits_of`` the originals, added up.
    """
    length, (*ones, of) = bits.shape[1], bits.astype(np.float64)
    if length < 3:
        return []
    G = np.array(ones) - np.sum(ones, axis=1, keepdims=True) / of.sum() * of
    tests, worst = 0, (0.0, 0.0, "no correlation")
    for name, sums, alone in _looks(vectors, copies):
        S, N = sums[:OWN] / UNIT, sums[[ROWS, *CHANGED[:1] * 2] if alone else [ROWS] * OWN].astype(np.float64)
        R, V = beside(S, G), beside(N, G**2).clip(1e-9)
        tests += R.size
        series, bit, lag = place = tuple(int(k) for k in np.unravel_index(int((R**2 / V).argmax()), R.shape))
        t = float(R[place] ** 2 / (2.0 * V[place]))
        if t > worst[0]:
            away = f"{lag} further on" if lag <= length // 2 else f"{length - lag} before"
            what = f"the correlation of {SERIES[series]} of {name} with bit {bit + 1} of the original's values of rows {away},"
            worst = (t, float(R[place] / math.sqrt(N[series].sum() * np.square(G[bit]).sum())), what)
    t_most, observed, where = worst
    p = min(1.0, 2.0 * tests * math.exp(-t_most))
    return [LawTest("values of other rows", p, tests, rows, observed, 0.0, f"{where} is", math.sqrt(length / rows), DEPARTURE)]


def _looks(vectors: Mapping[int, NDArray[np.signedinteger[Any]]], copies: int) -> list[tuple[str, NDArray[np.signedinteger[Any]], bool]]:
    """Return the sums that are looked at, with what to call them, and whether they are of one copy: each, and all together."""
    apart = copies <= VECTORS
    looks = [(f"copy {copy}" if apart else "some copies", sums, apart) for copy, sums in vectors.items()]
    return looks + ([("all copies together", np.sum(list(vectors.values()), axis=0, dtype=np.int64), False)] if copies > 1 else [])


def lagged(S: Array) -> tuple[Array, Array]:
    """Return ``R`` of series of shape (k, L) at lags from 1 to below L/2, and backwards at all L.

    Examples
    --------
    >>> [R.round(9).tolist() for R in lagged(np.array([[1.0, 2.0, 0.0, 0.0, 3.0]]))]
    [[[5.0, 6.0]], [[13.0, 4.0, 4.0, 9.0, 6.0]]]
    """
    F, L = np.fft.rfft(S), S.shape[1]
    return np.fft.irfft(F * F.conj(), L)[:, 1 : (L + 1) // 2], np.fft.irfft(F * F, L)


def beside(S: Array, G: Array) -> Array:
    """Return ``Σ_o S_o G_(o+h)`` of series of shapes (k, L) and (m, L) at all lags h, shape (k, m, L).

    Examples
    --------
    >>> beside(np.array([[1.0, 2.0, 0.0]]), np.array([[0.0, 1.0, 5.0]])).round(9).tolist()
    [[[2.0, 11.0, 5.0]]]
    """
    return np.asarray(np.fft.irfft(np.fft.rfft(S).conj()[:, None] * np.fft.rfft(G), S.shape[1]))

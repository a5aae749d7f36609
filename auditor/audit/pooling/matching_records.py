r"""What a coalition knows beyond its best copy, from records that look alike to it: unbiased for any law, and without estimating one.

A perfect attack's mean posterior probability of the truth is ``E‖f_o‖²``, where ``f_o`` is the
distribution of the originals among records that show outcome o: the chance that two such records
are alike in truth too. With ``f_b`` that of records alike in the best copy,

    ``E‖f_o‖² − E‖f_b‖² = E‖f_o − f_b‖²``        (f_b is the mean of f_o over the outcomes that show
    b)

so the collusion gain of the best attack of any kind is that distance over ``1 − E‖f_b‖²``, and
counts of pairs estimate it without bias:

    ``G_o = (M/N)² ( Σ c(c − 1)/(n(n − 1)) − 2 Σ c(C − c)/(nM) + Σ (C − c)(C − c − 1)/(M(M − 1)) )``

| symbol | meaning |
| --- | --- |
| ``c, n`` | records of outcome o by original value, and all |
| ``C, N`` | records that show the same best copy; ``M = N − n`` of them show another outcome |
| blind | share of records whose outcome no other record shows, plus 3/n for outcomes that none of n records showed (their share is |
| | below 3/n with 95 % confidence): nothing is known of these, and each might be rebuilt exactly |

Outcomes are told apart in two ways. *By values*, an outcome is what the copies show: any leak
shows, but there are many outcomes. *By patterns*, it is which of the copies agree with which: few
outcomes, exact for schemes that treat all values alike (xiao2009, eq. 1). The gain is then that of
an adversary with a uniform prior (``_pattern_gain`` has the formula, where one pattern is many
outcomes). Leaks that depend on which value it is show by values only. Where replacements are not
uniform, common values agree by chance more often than rare ones, and a pattern alone tells which
value it is: an outcome is then the pattern *and* the best copy's value (``labelled``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.counts.outcome_counts import Counts, Keys, Packing, chosen, halvings_for
from auditor.numerics.statistics import jackknife_error
from auditor.types import Array, Codes

MOST_NUMBERS = 2**22
"""Counts times row groups up to which every group is left out in turn; beyond, outcomes are many enough to be the sample. More patterns
than that are not looked at."""
UNSEEN = 3.0
"""``−ln 0.05``: what happens in a share of 3/n of the cases stays out of n records one time in
twenty."""
MOST_LABELLED = 12
"""Copies whose pattern of agreement is worked out whole: their number of comparisons grows with the
square."""


class GainEstimate(NamedTuple):
    """Estimated gain, its standard error and degrees of freedom, and the share of records nothing is known of."""

    gain: float
    std_error: float
    degrees: float
    blind: float


NOTHING = GainEstimate(0.0, 0.0, math.inf, 0.0)


# -- by patterns
# -----------------------------------------------------------------------------------------------------------


class PatternCounts:
    """Records by row group, pattern of agreement and first copy that shows the truth; given up where there are too many of them.

    Parameters
    ----------
    copies : int
        ``k``, from 2 to 12.
    groups : int
        Row groups for the jackknife.
    """

    def __init__(self, copies: int, groups: int) -> None:
        self._k, self._groups = copies, groups
        self._counts: Counts | None = Counts()

    def take(self, x: Codes, copies: Sequence[Codes], groups: NDArray[np.intp]) -> None:
        """Count records: originals, copies with the best first, and row groups, each of shape (b,)."""
        if self._counts is not None:
            pattern, block = patterns(x, copies)
            self._counts.take((pattern * (self._k + 1) + block) * self._groups + groups)

    def add(self, other: PatternCounts) -> None:
        """Add what others counted."""
        if self._counts is None or other._counts is None:
            self._counts = None
        else:
            self._counts.add(other._counts)
            self.shorten()

    def shorten(self) -> None:
        """Give up where there are too many patterns: they only get more."""
        if (
            self._counts is not None
            and self._kinds().size * self._groups * (self._k + 1) > MOST_NUMBERS
        ):
            self._counts = None

    def _kinds(self) -> NDArray[np.int64]:
        assert self._counts is not None
        return np.unique(self._counts.all()[0] // (self._groups * (self._k + 1)))

    def gain(self, size: int) -> GainEstimate | None:
        """Return the gain of the copies over the first of them; None where there were too many patterns."""
        self.shorten()
        if self._counts is None:
            return None
        (keys, counts), kinds = self._counts.all(), self._kinds()
        rest, group = np.divmod(keys, self._groups)
        pattern, block = np.divmod(rest, self._k + 1)
        table = np.zeros((self._groups, kinds.size, self._k + 1), dtype=np.int64)
        table[group, np.searchsorted(kinds, pattern), block] = counts
        return from_patterns(table, blocks_of(kinds, self._k), size)


def patterns(x: Codes, copies: Sequence[Codes]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return a number for each record's pattern, and the first copy that shows the truth (k if none does), each of shape (n,).

    A pattern names for each copy the first one that agrees with it, in mixed radix: copy j has ``j
    + 1`` choices. The loops run downward so that what is written last, the lowest number, is the
    first copy that agrees.
    """
    code, block = np.zeros(x.size, dtype=np.int64), np.full(x.size, len(copies), dtype=np.intp)
    for j in range(len(copies) - 1, -1, -1):
        first = np.full(x.size, j, dtype=np.int64)
        for i in range(j - 1, -1, -1):
            first[copies[i] == copies[j]] = i
        code = code * (j + 1) + first
        block[copies[j] == x] = j
    return code, block


def blocks_of(kinds: NDArray[np.int64], k: int) -> NDArray[np.intp]:
    """Return how many different values each pattern of k copies shows, shape (P,)."""
    found, rest = np.zeros(kinds.size, dtype=np.intp), kinds.copy()
    for j in range(k):
        found += rest % (j + 1) == j
        rest //= j + 1
    return found


def from_patterns(counts: NDArray[np.integer], blocks: NDArray[np.intp], size: int) -> GainEstimate:
    """Return the gain from counts by row group, pattern and block of the truth, shape (G, P, k + 1); block 0 is the best copy's."""
    whole = counts.sum(axis=0)
    if size < 2:
        return NOTHING
    blind = _blind(whole.sum(axis=1))
    gain = float(_pattern_gain(whole[None].astype(np.float64), blocks, size)[0])
    left_out = _pattern_gain((whole - counts).astype(np.float64), blocks, size)
    return GainEstimate(
        gain,
        float(jackknife_error(left_out)) if len(counts) > 1 else math.nan,
        max(1, len(counts) - 1),
        blind,
    )


def _pattern_gain(counts: Array, blocks: NDArray[np.intp], size: int) -> Array:
    """``G_o`` averaged over records, over ``1 − E‖f_b‖²``; the values of one block have equal chances, by symmetry.

    ``f_b`` is also a mean over other outcomes of the same pattern. Hence two parts: by how much the
    pattern itself says more than its best copy (``here − by_best``), and by how much it differs
    from other patterns (``apart``).
    """
    right, n_o = counts[..., 0], counts.sum(axis=-1)
    n, m = n_o.sum(axis=-1, keepdims=True), right.sum(axis=-1, keepdims=True)
    others, none = counts[..., 1:-1], counts[..., -1]
    M, h = n - n_o, m - right
    with np.errstate(divide="ignore", invalid="ignore"):
        here = (
            _pairs(right)
            + _pairs(others).sum(axis=-1)
            + _pairs(none) / np.maximum(size - blocks, 1)
        ) / _pairs(n_o)
        p, q = right / n_o, h / M
        across = p * q + (1 - p) * (1 - q) / (size - 1)
        by_best, there, whole = (
            _matching_in_best(right, n_o, size),
            _matching_in_best(h, M, size),
            _matching_in_best(m, n, size),
        )
        apart = np.where(M >= 2, (M / n) ** 2 * (by_best - 2 * across + there), 0.0)
        alone = 1 - whole[..., 0]
    met = n_o >= 2
    total = np.where(met, n_o * (here - by_best + apart), 0.0).sum(axis=-1)
    return _share(total, np.where(met, n_o, 0.0).sum(axis=-1), alone)


def _blind(outcomes: NDArray[np.integer]) -> float:
    """Share of records that nothing is known of, from how many records show each outcome; see the module's table."""
    return min(1.0, float((np.count_nonzero(outcomes == 1) + UNSEEN) / outcomes.sum()))


def _matching_in_best(right: Array, n: Array, size: int) -> Array:
    """Chance that two of n records have one original, after renaming values so that their best copies agree; ``right`` show it there."""
    return np.asarray((_pairs(right) + _pairs(n - right) / (size - 1)) / _pairs(n))


def _pairs(count: Array) -> Array:
    return np.asarray(count * (count - 1.0))


def _share(total: Array, met: Array, alone: Array) -> Array:
    """Gain as a share of the best copy's error; where it has none, nothing is left to gain."""
    scale = met * np.where(alone > 0, alone, 0.0)
    return np.asarray(np.divide(total, scale, out=np.zeros_like(total), where=scale > 0))


# -- by values
# --------------------------------------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """Which outcome and which pair (best copy's value, original) each cell belongs to, and the best copy's value of each of these."""

    outcome: NDArray[np.intp]
    pair: NDArray[np.intp]
    best_of_outcome: NDArray[np.intp]
    best_of_pair: NDArray[np.intp]


class _Whole(NamedTuple):
    """Counts of all records, where outcomes are a sample: by the best copy's value, by pair, and squares of the latter by that value."""

    best: Array
    pair: Array
    squares: Array


class ValueCounts:
    """Records by outcome and original value; by row group as well as long as these are few.

    Parameters
    ----------
    rows : int
        Of the table: of a long one with many outcomes a sample of these is counted.
    size : int
        ``s``.
    copies : int
        ``k``, at least 2.
    groups : int
        Row groups for the jackknife.
    labelled : bool
        Whether outcomes are the best copy's value and the pattern of agreement, in place of all
        copies' values.
    """

    def __init__(
        self, rows: int, size: int, copies: int, groups: int, labelled: bool = False
    ) -> None:
        self._size, self._groups, self._labelled = size, groups, labelled
        shown = [size, math.factorial(copies)] if labelled else [size] * copies
        self._outcome, self._packing = Packing(shown), Packing([*shown, size, groups])
        self._counts, self._pairs = Counts(self._packing.dtype), Counts()
        self._halvings = halvings_for(rows, size, copies)
        self._grouped = not self._halvings and groups > 1

    def take(self, x: Codes, copies: Sequence[Codes], groups: NDArray[np.intp]) -> None:
        """Count records: originals, copies with the best first, and row groups, each of shape (b,)."""
        if self._halvings:
            self._pairs.take(copies[0].astype(np.int64) * self._size + x)
        shown: list[NDArray[np.integer[Any]]] = (
            [copies[0], patterns(x, copies)[0]] if self._labelled else list(copies)
        )
        if self._halvings:
            some = chosen(self._outcome.pack(shown), self._halvings)
            x, shown, groups = x[some], [column[some] for column in shown], groups[some]
        self._counts.take(
            self._packing.pack([*shown, x, groups if self._grouped else np.zeros_like(groups)])
        )

    def add(self, other: ValueCounts) -> None:
        """Add what others counted."""
        self._pairs.add(other._pairs)
        if self._grouped and not other._grouped:
            self._give_up_groups()
        self._counts.add(other._counts)
        if not self._grouped and other._grouped:
            self._give_up_groups()
        self.shorten()

    def shorten(self) -> None:
        """Give up row groups where there are too many cells: they only get more."""
        if self._grouped and self._cells()[0].size * self._groups > MOST_NUMBERS:
            self._give_up_groups()

    def _give_up_groups(self) -> None:
        self._grouped = False
        self._counts.map(self._packing.first)

    def _cells(self) -> tuple[Keys, NDArray[np.intp]]:
        """Return the different cells, and which one each count is of."""
        found: tuple[Keys, NDArray[np.intp]] = np.unique(
            self._packing.first(self._counts.all()[0]), return_inverse=True
        )
        return found

    def gain(self) -> GainEstimate:
        """Return the gain of the copies over the first of them."""
        self.shorten()
        (keys, counts), (cells, cell) = self._counts.all(), self._cells()
        *shown, x, _ = self._packing.unpack(cells)
        place, totals = self._places(shown, x)
        c = _sums(cell, counts.astype(np.float64), cells.size)
        blind = _blind(_sums(place.outcome, c, place.best_of_outcome.size).astype(np.int64))
        gain, each, n_o = _value_gain(c, place, self._size, totals)
        if self._grouped:
            table = np.zeros((self._groups, cells.size))
            table[self._packing.unpack(keys)[-1], cell] = counts
            left_out = np.array([_value_gain(c - part, place, self._size)[0] for part in table])
            return GainEstimate(gain, float(jackknife_error(left_out)), self._groups - 1, blind)
        # Outcomes are many and independent: a weighted mean's error, with Kish's effective sample
        # size for the degrees of freedom.
        n = n_o.sum()
        error = float(np.sqrt((n_o**2) @ (each - gain) ** 2) / n) if n > 0 else math.nan
        return GainEstimate(
            gain, error, max(1.0, float(n**2 / (n_o @ n_o)) - 1.0) if n > 0 else 1.0, blind
        )

    def _places(
        self, shown: Sequence[NDArray[np.int64]], x: NDArray[np.int64]
    ) -> tuple[_Cells, _Whole | None]:
        _, first, outcome = np.unique(
            self._outcome.pack(shown), return_index=True, return_inverse=True
        )
        pairs, pair = np.unique(shown[0] * self._size + x, return_inverse=True)
        place = _Cells(
            outcome, pair, shown[0][first].astype(np.intp), (pairs // self._size).astype(np.intp)
        )
        if not self._halvings:
            return place, None
        keys, counts = self._pairs.all()
        best, C = (keys // self._size).astype(np.intp), counts.astype(np.float64)
        whole = _Whole(
            _sums(best, C, self._size),
            C[np.searchsorted(keys, pairs)],
            _sums(best, C * C, self._size),
        )
        return place, whole


def _value_gain(
    c: Array, cells: _Cells, size: int, whole: _Whole | None = None
) -> tuple[float, Array, Array]:
    """Return the gain, each outcome's ``G_o`` as a share of the best copy's error, and its records (0 where not met twice)."""
    outcomes = cells.best_of_outcome.size
    n = _sums(cells.outcome, c, outcomes)
    if whole is None:
        N, C = _sums(cells.best_of_outcome, n, size), _sums(cells.pair, c, cells.best_of_pair.size)
        squares = _sums(cells.best_of_pair, C * C, size)
    else:
        N, C, squares = whole
    own = _sums(cells.outcome, c * c, outcomes)
    cross = _sums(cells.outcome, c * C[cells.pair], outcomes)
    N_o, M = N[cells.best_of_outcome], N[cells.best_of_outcome] - n
    with np.errstate(divide="ignore", invalid="ignore"):
        # Σ (C − c)(C − c − 1) = ΣC² − 2 ΣcC + Σc² − M
        there = (squares[cells.best_of_outcome] - 2 * cross + own - M) / _pairs(M)
        G = (M / N_o) ** 2 * ((own - n) / _pairs(n) - 2 * (cross - own) / (n * M) + there)
        alike = np.where(N >= 2, (squares - N) / _pairs(N), 1.0)
    met = np.where(n >= 2, n, 0.0)
    G = np.where((n >= 2) & (M >= 2), G, 0.0)
    total, alone = float(met @ G), 1.0 - float(N @ alike) / float(N.sum())
    scale = float(met.sum()) * alone
    return (total / scale, G / alone, met) if scale > 0 else (0.0, np.zeros_like(G), met)


def _sums(places: NDArray[np.intp], weights: Array, size: int) -> Array:
    return np.asarray(np.bincount(places, weights, size), dtype=np.float64)

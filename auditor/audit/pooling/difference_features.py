"""What boosted trees are shown of the differences of copies: the differences, and functions of them that foretell what is left in training.

A tree cuts one column at a time and sees a sign, a size or a few dozen bands of it at once. It does not see that an odd third decimal means
a positive noise, nor a product of four signs. For such codes there are transforms that try all members of a family in one go:

| family | tried by |
| --- | --- |
| a column's bins, of any order: differences, sizes, lengths, products of two, decimals, the rows before and after | means by bin, χ² |
| ``exp(i f d)``, any frequency f: bands of one column, fine ones and decimals too | fast Fourier transform of sums on a grid |
| ``exp(i (f d_1 + g d_2))``: bands of sums and differences of two columns, or of their ranks | the same in two dimensions |
| products of signs, and of «large or small», of any number of columns | fast Walsh–Hadamard transform of sums by pattern |

What foretells the target in the training rows by more than chance would, over all members tried, becomes a column for the trees, and they
are judged on other rows. Of independent noise hardly anything is chosen. Every column is a function of differences alone, but for
decimals of copies too fine for the noise to leave anything of the record's in them: of lawful copies none of them says anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.pooling.noise_dependence import SAME
from auditor.numerics.sorted_edges import edges_below
from auditor.process.deferred import scipy
from auditor.types import Array

MOST_PAIRED, MOST_BITS, MOST_CHOSEN = 8, 16, 12
"""Columns that are looked at two by two; signs and sizes multiplied; columns chosen."""
BINS, GRID, PLANE, RANKS = 64, 2**16, 128, 4096
"""Bins of a column; points of the grids on one and two columns; ranks told apart."""
DECIMALS = 10
"""Powers of ten, from the first below a quarter of the noise's deviation (or of a difference's), at which decimals are looked at."""
TIED = 0.001
"""Share of a column's values that equal another, above which it is halved by rank: of continuous noise next to none do."""
SURE = 5.0
"""Of a family of m members with exponential scores, the largest exceeds ``ln m`` by this much once in 150 times."""
BY_BINS = 6.0
"""Standard deviations above its mean at which a χ² by bins counts as more than chance: of 64 bins once in 10⁶ times."""


class Found(NamedTuple):
    """A column that foretells something: by how much more than chance, and its values in all rows, shape (n,)."""

    score: float
    column: Array


def in_own_deviations(values: Array) -> Array:
    """Return columns with mean 0 and variance 1; those that are constant, but for rounding, are 0."""
    std = values.std(axis=0)
    varies = std > 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(np.where(varies, values - values.mean(axis=0), 0.0) / np.where(varies, std, 1.0))


def _varying(values: Array) -> Array:
    """Return the same without columns that are constant."""
    scaled = in_own_deviations(values)
    return scaled[:, scaled.any(axis=0)]


def _apart(copy: Array, later: Array) -> Array:
    """Return a difference of two copies, 0 where they are one copy and its rounding: the last bits of a sum tell what was added up."""
    return np.where(later.std(axis=0) * SAME < (later - copy).std(axis=0), later - copy, 0.0)


def _first_decimal(deviations: Array) -> Array:
    """Return by attribute the first power of ten below a quarter of the least noise, shape (N,): such decimals show no record."""
    least = np.where(deviations > 0, deviations, np.inf).min(axis=0)
    return np.where(np.isfinite(least), 10.0 ** np.floor(np.log10(np.where(np.isfinite(least), least, 1.0) / 4.0)), 1.0)


def _decimals(values: Array, unit: Array) -> NDArray[np.float16]:
    """Return what is left of values after whole units, in steps of 1/1024; 0 in columns too large for a double to hold that.

    Half precision holds such steps exactly, and these are most of all columns that are kept.

    What division rounds grows with the value, so a value on a grid coarser than the unit would show its size there, and with it the best
    copy's. Moved up by more than what is rounded, equal remainders fall in one step.
    """
    parts = values / unit
    rounded = 4.0 * np.finfo(np.float64).eps * np.abs(parts).max(axis=0)
    parts += rounded
    parts -= np.floor(parts)  # exact, as the remainder of a division by 1 is, in a fifth of its time
    return (np.where(rounded < 1.0 / 4096.0, np.floor(parts * 1024.0), 0.0) / 1024.0).astype(np.float16)


def whitened(values: Array) -> Array:
    """Return columns without correlation, each the nearest to its own; directions of no variance are left out."""
    roots, Q = np.linalg.eigh(np.atleast_2d(np.cov(values.T)))
    inverse = np.divide(1.0, np.sqrt(np.clip(roots, 0.0, None)), out=np.zeros_like(roots), where=roots > 1e-9 * roots.max(initial=0.0))
    return np.asarray(values @ (Q * inverse) @ Q.T)


class Differences:
    """The differences of some copies in some rows, and what may be read from them.

    Parameters
    ----------
    copies : sequence of ndarrays of shape (n, N)
        The best one first, then by level.
    noise : ndarray of shape (N,)
        Standard deviations of the best one's noise.
    undo : sequence of ndarrays of shape (N, N)
        What makes independent normals of each step by the law, exactly: digits that a generator wrote there are lost where the rows
        tell a covariance to 1 %.
    """

    def __init__(self, copies: Sequence[Array], noise: Array, undo: Sequence[Array] = ()) -> None:
        steps = [_apart(copy, later) for copy, later in pairwise(copies)]
        self.steps = _varying(np.hstack(steps))
        """Of each copy from the one before, in units of their deviations, shape (n, s)."""
        own = np.hstack([whitened(step) for step in steps]) if noise.size > 1 else np.empty((len(steps[0]), 0))
        far = [_apart(copies[0], copy) for copy in copies[2:]]
        drawn = np.hstack([step @ U.T for step, U in zip(steps, undo, strict=False)]) if undo else np.empty((len(own), 0))
        self._series = np.hstack([self.steps, _varying(np.hstack([own, *far, drawn]))])
        later = [*copies[1:], steps[0], *far]
        unit = np.tile(_first_decimal(np.vstack([noise, *(step.std(axis=0) for step in steps)])), len(later))
        shown = np.hstack(later)
        decimals = chain(
            (_decimals(shown, unit * 10.0**-k) for k in range(DECIMALS)),
            (_decimals(drawn, np.full(drawn.shape[1], 10.0**-k)) for k in range(1, DECIMALS)),
        )
        parts = chain((self._series, np.abs(self._series)), self._together(noise.size), decimals)
        self._columns = [column for part in parts for column in np.ascontiguousarray(part.T)]
        self._bins = [_bins(column.astype(np.float64, copy=False)) for column in self._columns]
        few = self.steps[:, : MOST_BITS // 2]
        self._halves = np.hstack([_halved(few, 0.0), _halved(np.abs(few), 0.6745)])
        few = self.steps[:, :MOST_PAIRED]
        ranks = (_ranks(few) * RANKS // len(few) + 0.5) / RANKS
        self._planes = ranks, np.clip((few + 5.0) / 10.0, 0.0, 1.0 - 1.0 / RANKS)

    def _together(self, width: int) -> Iterator[Array]:
        """Yield lengths of steps over all attributes, products of two, and the rows before and after."""
        if not self.steps.size:
            return
        squares = self.steps**2
        yield np.stack([squares[:, a : a + width].sum(axis=1) for a in range(0, squares.shape[1], width)], axis=1)
        yield squares.sum(axis=1, keepdims=True)
        few = self.steps[:, :MOST_PAIRED]
        first, second = np.triu_indices(few.shape[1], 1)
        yield few[:, first] * few[:, second]
        yield np.roll(self.steps, 1, axis=0)
        yield np.roll(self.steps, -1, axis=0)

    def telling(self, left: Array, known: Array, rows: NDArray[np.bool_]) -> Array:
        """Return columns that foretell something in the training rows, at most 12, the surest first, shape (n, c).

        Parameters
        ----------
        left : ndarray of shape (n, N)
            What the best copy alone leaves unknown.
        known : ndarray of shape (n, N)
            The best copy, in units of its deviation: what the others say may depend on it.
        rows : ndarray of shape (n,)
            Which rows are for training; of others nothing is used.
        """
        targets = _varying(np.hstack([left[rows], left[rows] * known[rows]])).T
        if not targets.size:
            return np.empty((len(left), 0))
        found = [*self._by_bins(targets, rows), *self._waves(targets, rows), *self._signs(targets, known, rows)]
        for plane in self._planes:
            found += _plane_waves(plane, targets, rows)
        found.sort(key=lambda one: -one.score)
        return np.stack([one.column for one in found[:MOST_CHOSEN]], axis=1) if found else np.empty((len(left), 0))

    def _by_bins(self, targets: Array, rows: NDArray[np.bool_]) -> Iterator[Found]:
        for column, bins in zip(self._columns, self._bins, strict=True):
            here = bins[rows].astype(np.intp)
            score = max(_spread(np.stack([np.bincount(here, t, BINS) for t in targets]), np.bincount(here, minlength=BINS)))
            if score > BY_BINS:
                yield Found(score, column.astype(np.float64, copy=False))

    def _waves(self, targets: Array, rows: NDArray[np.bool_]) -> Iterator[Found]:
        for d in self._series.T:
            low, high = d.min(), d.max()
            place = ((d[rows] - low) * ((GRID - 1) / (high - low))).astype(np.intp)
            power = _power(scipy.fft.rfft(_summed(place, targets, GRID)), rows)
            for t, f in enumerate(power.argmax(axis=1).tolist()):
                if (score := power[t, f] - np.log(GRID / 2)) > SURE:
                    yield Found(score, (d * (f / (high - low))) % 1.0)

    def _signs(self, targets: Array, known: Array, rows: NDArray[np.bool_]) -> Iterator[Found]:
        own = known[:, : MOST_BITS - min(self.steps.shape[1], MOST_BITS // 2)]
        bits = np.hstack([own > 0, self._halves])[:, :MOST_BITS]
        weights = 1 << np.arange(bits.shape[1])
        pattern = bits @ weights
        sums = np.stack([np.bincount(pattern[rows], t, 2 * weights[-1]) for t in targets]).astype(np.float64)
        power = _walsh(sums) ** 2 / (2.0 * rows.sum())
        power[:, : 1 << own.shape[1]] = 0.0  # products of the best copy's signs alone say nothing of differences
        for t, product in enumerate(power.argmax(axis=1).tolist()):
            if (score := power[t, product] - bits.shape[1] * np.log(2.0)) > SURE:
                yield Found(score, (bits & ((product & weights) > 0)).sum(axis=1) % 2.0)


def _ranks(values: Array) -> NDArray[np.intp]:
    """Return each column's ranks from 0; equal values are in an order that has nothing to do with that of the rows.

    Ties in the rows' order would show trees a row's place, and with it what its neighbours are like.
    """
    shuffled = np.random.default_rng(0).permutation(len(values))
    ranks = np.empty(values.shape, dtype=np.intp)
    ranks[shuffled] = values[shuffled].argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return ranks


def _halved(values: Array, middle: float) -> NDArray[np.bool_]:
    """Return which values are above the middle; of a column with many equal ones the upper half, whichever of the equal are in it.

    A bit that is mostly 0, as where two copies mostly share their noise, would leave a product with the best copy's signs nearly what
    these signs are alone: it would foretell what the best copy foretells, and not what differences do.
    """
    tied = (np.diff(np.sort(values, axis=0), axis=0) == 0).mean(axis=0) > TIED
    halves = values > middle
    halves[:, tied] = 2 * _ranks(values[:, tied]) >= len(values)
    return np.asarray(halves)


def _bins(column: Array) -> NDArray[np.uint8]:
    """Return how many of the edges between bins of about equal counts each value reaches."""
    some = np.sort(column[:: max(1, len(column) // RANKS)])  # edges need not be exact quantiles
    edges = some[len(some) * np.arange(1, BINS) // BINS]
    return edges_below(edges, column, side="right").astype(np.uint8)


def _spread(sums: Array, counts: NDArray[np.intp]) -> Iterator[float]:
    """Yield by how many standard deviations χ² of the means by bin exceeds its mean, in fine bins and in coarse ones."""
    for together in (1, 8):
        n = counts.reshape(-1, together).sum(axis=1)
        squares = (sums.reshape(len(sums), -1, together).sum(axis=2) ** 2 / np.maximum(n, 1)).sum(axis=1)
        degrees = max(1, int((n > 0).sum()) - 1)
        yield float((squares.max() - degrees) / np.sqrt(2.0 * degrees))


def _summed(place: NDArray[np.intp], targets: Array, places: int) -> NDArray[np.float32]:
    """Return each target's sums at places, shape (T, places), in single precision: transforms of these take half the time."""
    return np.array([np.bincount(place, t, places) for t in targets], dtype=np.float32)


def _power(waves: NDArray[np.complex64], rows: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the periodogram of targets of variance 1, exponential with mean 1 where nothing is foretold; that of frequency 0 is 0."""
    power = np.abs(waves) ** 2 / rows.sum()
    power.reshape(len(power), -1)[:, 0] = 0.0
    return np.asarray(power)


def _plane_waves(plane: Array, targets: Array, rows: NDArray[np.bool_]) -> Iterator[Found]:
    place, most = (plane * PLANE).astype(np.intp), PLANE // 4
    frequencies = np.fft.fftfreq(PLANE, 1.0 / PLANE)
    for a, b in zip(*np.triu_indices(plane.shape[1], 1), strict=True):
        here = place[rows, a] * PLANE + place[rows, b]
        power = _power(scipy.fft.rfft2(_summed(here, targets, PLANE * PLANE).reshape(-1, PLANE, PLANE)), rows)[:, :, :most].copy()
        power[:, np.abs(frequencies) > most] = 0.0
        for t, best in enumerate(power.reshape(len(power), -1).argmax(axis=1).tolist()):
            f, g = divmod(best, most)
            if (score := power[t, f, g] - np.log(2.0 * most * most)) > SURE:
                yield Found(score, (plane[:, a] * frequencies[f] + plane[:, b] * g) % 1.0)


def _walsh(sums: Array) -> Array:
    """Return the Walsh–Hadamard transform of each row: its sums with every product of signs."""
    half = 1
    while half < sums.shape[1]:
        pairs = sums.reshape(len(sums), -1, 2, half)
        sums = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(len(sums), -1)
        half *= 2
    return sums

"""Low digits of copies and of their differences: of honest noise they are uniform, and say nothing of anything else.

A generator that writes one copy's noise, or the record, into the digits of another copy keeps every covariance and every histogram.

| symbol | meaning |
| --- | --- |
| ``e_j`` | copy j's innovation ``Z_j − E[Z_j | copies of less noise]``, whitened: independent N(0, I) by a Gaussian law |
| ``c`` | a column that whoever holds the copies has: ``Y_j``, a difference from copies of less noise, or that whitened by the law |
| ``s`` | deviation of the part of c that ``e_j`` alone moves |
| ``f`` | a frequency: ``f c mod 1`` are the digits of c after those worth ``1/f``; ``f s ≥ 1``, and 1/f is 8 grains of c or more |
| ``w`` | ``exp(2πi k v)``, k = 1, 2, less its mean; v is ``Φ(e_i)`` of a copy of less noise, or a record's rank; or a sum of such w |
| ``t`` | ``|Σ w exp(2πi f c)|² / Σ |w|²`` over rows |

Given everything but ``e_j``, ``f c mod 1`` is uniform but for ``exp(−2π² f² s²) ≤ 3e-9``. Of a uniform phase θ and any complex λ,
``E exp(Re λ e^{iθ}) = I_0(|λ|) ≤ exp(|λ|²/4)``; integrated over λ from a normal distribution, ``E exp(b t) ≤ 1/(1 − b)`` for b < 1, and so
``P(t ≥ a) ≤ a e^{1−a}``, at any number of rows.

Frequencies are those of decimals, of c in the data's units and in the law's; of differences all up to some thousands to a unit of s, by a
Fourier transform with k = 1. *Not checked*: finer digits in another base, rows beyond those looked at, and noise that is not Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.drawn_law.chosen_rows import Rows
from auditor.numerics.statistics import ranks, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw, undo_root
from auditor.types import Array, Indices

ROWS, GRID, DECADES = 2**14, 2**17, 9
"""Rows looked at; points of the grid for the Fourier transform; powers of ten, from the first below a deviation."""
MOST_COLUMNS, MOST_WEIGHTS, MOST_SWEPT = 32, 12, 32
"""Columns c, evenly among all, sums of functions w for each, and Fourier transforms: some fifty milliseconds together."""
SUMMED = 2**10
"""Rows whose waves are summed in one product: what it reads stays in a processor's cache."""
SPLIT = 2**9
"""Rows that a wave is laid in for its transform: ``a`` of ``_transformed``."""
NEW = 1e-6
"""Share of a copy's noise variance from which on what others do not foretell is an innovation, and no rounding."""
MOST_COORDINATES = 64
"""Copies times attributes looked at, if there are more than two copies."""
FEWEST_SWEPT = 1000
"""Rows from which on the Fourier transform is worth its time: of fewer, correlations below 0.2 could hide in it."""
PAIRED = 3
"""Attributes of which sums and differences of two are columns too; of more there are too many."""


class Innovation(NamedTuple):
    """What is new in the copy at place j: ``B z`` is its noise less its regression on copies of less noise, with covariance ``C``.

    Attributes
    ----------
    place : int
    before : tuple of int
        Places of copies of less noise.
    B : ndarray of shape (N, M·N)
    C : ndarray of shape (N, N)
    whiten : ndarray of shape (N, N)
        Inverse of the root by which schemes draw from C.
    """

    place: int
    before: tuple[int, ...]
    B: Array
    C: Array
    whiten: Array


class Column(NamedTuple):
    """A column ``c/s``: weights, shape (M·N,), what it is, its copy's place, ``f s`` of decimals, the largest seen, whether to sweep."""

    weights: Array
    name: str
    place: int
    decimals: Array
    finest: float
    swept: bool


class Weight(NamedTuple):
    """``w`` over its length, shape (n,), its ``k``, and what it tells of."""

    values: NDArray[np.complex64]
    k: int
    name: str


class Largest(NamedTuple):
    """The largest ``t`` of so many tests: at which frequency ``f s``, of which column, its values, and which w or their sum."""

    t: float
    tests: int
    frequency: float
    column: Column
    values: Array
    weights: Sequence[Weight]

    def plainest(self) -> tuple[float, str]:
        """Return the largest correlation with one w of the sum, and what that tells of."""
        wave = np.exp(2j * np.pi * self.frequency * self.values)
        found = [(float(max(abs(w.values @ wave), abs(w.values @ wave.conj()))), w.name) for w in self.weights]
        length, name = max(found)
        return length / math.sqrt(len(wave)), name


def low_digits_test(law: NoiseLaw, rows: Rows, chosen: Sequence[int]) -> LawTest | None:
    """Return the test that digits of copies and of their differences go with no other noise and no record; None where none are seen.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise in the copies chosen.
    rows : Rows
    chosen : sequence of int
        Numbers of the copies, M of them.
    """
    if law.distribution != "gaussian":
        return None
    every, N = math.ceil(len(rows.x) / ROWS), rows.x.shape[1]
    places = _evenly(range(law.copies), max(2, MOST_COORDINATES // N))
    law, chosen = law.of([place + 1 for place in places]), [chosen[place] for place in places]
    noise = rows.noise.transpose(1, 2, 0)[places, :, ::every].transpose(2, 0, 1)
    rows = Rows(rows.x[::every], noise, rows.grain[places])
    new = innovations(law.covariance, N)
    every_column = [column for one in new for column in _columns(one, rows.grain, chosen)]
    columns = _evenly(every_column, MOST_COLUMNS)
    swept = _evenly([column for column in every_column if column.swept], MOST_SWEPT if len(rows.x) >= FEWEST_SWEPT else 0)
    weights = _weights(new, rows, chosen)
    found = [*_at_decimals(columns, _values(columns, rows), weights), *_swept(swept, _values(swept, rows), weights)]
    tests = sum(one.tests for one in found)
    if not tests:
        return None
    largest = max(found, key=lambda one: one.t)
    correlation, weight = largest.plainest()
    where = f"a correlation of digits of {largest.column.name} ({largest.frequency:.4g} units to a deviation) with {weight} is"
    p = min(1.0, tests * wave_tail(largest.t))
    return LawTest("low digits", p, tests, len(rows.x), correlation, 0.0, where, math.sqrt(2.0))


def innovations(K: Array, N: int) -> list[Innovation]:
    """Return the innovations of copies with noise covariance K, shape (M·N, M·N), least noise first; copies without are left out."""
    own = np.diag(K).reshape(-1, N)
    usual = np.sqrt(np.where(own > 0, own, 1.0)).ravel()
    found: list[Innovation] = []
    for place in np.argsort(own.sum(axis=1), kind="stable").tolist():
        before = tuple(one.place for one in found)
        here, there = (_coordinates(places, N) for places in ((place,), before))
        R = K / np.outer(usual, usual)  # regressed in units of each coordinate: a salary's noise must not drown a share's
        B = np.zeros((N, len(K)))
        B[:, here] = np.eye(N)
        if before:
            slope = R[np.ix_(here, there)] @ np.linalg.pinv(R[np.ix_(there, there)], rcond=1e-10, hermitian=True)
            B[:, there] = -slope * usual[here][:, None] / usual[there]
        C = B @ K @ B.T
        if (np.diag(C) > NEW * own[place]).any():
            found.append(Innovation(place, before, B, C, undo_root(C)))
    return found


def _coordinates(places: Sequence[int], N: int) -> Indices:
    return (np.asarray(places, dtype=np.intp)[:, None] * N + np.arange(N)).ravel()


def _columns(new: Innovation, grains: Array, chosen: Sequence[int]) -> Iterator[Column]:
    """Yield what is read from one copy and those of less noise."""
    M, N = grains.shape
    unit, W, differs = np.eye(N), new.whiten, bool(new.before)
    pairs = np.array([unit[a] + sign * unit[b] for a, b in combinations(range(N if N <= PAIRED else 0), 2) for sign in (1, -1)])
    pairs = pairs.reshape(-1, N)
    copy = f"copy {chosen[new.place]}"
    what = f"what {copy} adds to those of less noise" if differs else copy
    maps = [(what, unit, new.B, differs), (what, W, new.B, differs and N > 1), (what, pairs, new.B, False), (what, pairs @ W, new.B, False)]
    if differs:
        itself, first = np.zeros((2, N, M * N))
        itself[:, _coordinates([new.place], N)] = unit
        first[:, _coordinates([new.before[0]], N)] = unit
        maps += [(copy, unit, itself, False), (f"{copy} less copy {chosen[new.before[0]]}", unit, itself - first, False)]
    for name, T, V, swept in maps:
        s = np.sqrt(np.clip(np.einsum("an,nm,am->a", T, new.C, T), 0.0, None))
        A = T @ V
        grain = np.abs(A) @ grains.ravel()
        for a in np.flatnonzero(s > 8.0 * grain).tolist():
            decimals = s[a] * 10.0 ** (math.ceil(-math.log10(s[a])) + np.arange(DECADES))
            finest = s[a] / (8.0 * grain[a]) if grain[a] > 0 else math.inf
            yield Column(A[a] / s[a], name, new.place, decimals[decimals <= finest], finest, swept)


def _values(columns: Sequence[Column], rows: Rows) -> Array:
    """Return the values of columns, shape (C, n)."""
    M, N = rows.grain.shape
    A = np.array([column.weights for column in columns]).reshape(len(columns), M * N)
    values: Array = A @ _laid_out(rows.noise) + A.reshape(-1, M, N).sum(axis=1) @ rows.x.T
    return values


def _laid_out(noise: Array) -> Array:
    """Return noise by copy and attribute, shape (M·N, n), as it lies in memory: laid out by rows all of it would be copied."""
    n, M, N = noise.shape
    return noise.transpose(1, 2, 0).reshape(M * N, n)


def _weights(new: Sequence[Innovation], rows: Rows, chosen: Sequence[int]) -> dict[int, list[Weight]]:
    """Return, by a copy's place, the functions w of the record and of the innovations in copies of less noise."""
    before, told = _of(["the record"], np.array([ranks(column) for column in rows.x.T]))[0], new[:-1]  # nothing follows the last
    found = {one.place: before for one in new[:1]}
    if told:
        e = np.concatenate([one.whiten @ one.B for one in told]) @ _laid_out(rows.noise)
        noise = _of([f"the noise new in copy {chosen[one.place]}" for one in told], scipy.special.ndtr(e))
        for one, more in zip(new[1:], noise, strict=True):
            before = before + more
            found[one.place] = before
    return found


def _of(names: Sequence[str], v: Array) -> list[list[Weight]]:
    """Return the functions w of as many things as there are names, each of which has its share of the rows of v, shape (k, n)."""
    values = np.empty((2, *v.shape), dtype=np.complex64)
    varies = np.empty((2, len(v)), dtype=bool)
    for row, (once, twice) in enumerate(values.swapaxes(0, 1)):  # one by one, as one stays in a processor's cache
        angle = (2.0 * np.pi * v[row]).astype(np.float32)
        np.cos(angle, out=once.real)
        np.sin(angle, out=once.imag)
        np.multiply(once, once, out=twice)
        for k, w in enumerate((once, twice)):
            w -= w.mean()
            length = np.linalg.norm(w)
            varies[k, row] = length > 1e-6 * math.sqrt(w.size)
            w /= length if varies[k, row] else 1.0
    places = np.arange(len(v)).reshape(len(names), -1)
    return [[Weight(values[k, row], 1 + k, name) for k in range(2) for row in own.tolist() if varies[k, row]]
            for name, own in zip(names, places, strict=True)]  # fmt: skip


def _evenly(some: Sequence[Any], most: int) -> list[Any]:
    """Return at most so many of them, evenly among all."""
    return [some[place] for place in sorted({round(p) for p in np.linspace(0, len(some) - 1, min(len(some), most)).tolist()})]


def _sums(told: Sequence[Weight], most: int) -> list[tuple[NDArray[np.complex64], list[Weight]]]:
    """Return at most so many functions w of one k, each the sum of those beside it.

    A sum of functions w is such a function as well: rather than leave some out, several share a test where there are too many, and what one
    of K has to do with digits shows from a correlation √K times as large.
    """
    found = []
    for first, *others in (told[part::most] for part in range(min(most, len(told)))):
        w = first.values.copy()
        for weight in others:
            w += weight.values
        w /= math.sqrt(np.vdot(w, w).real)
        found.append((w, [first, *others]))
    return found


def _at_decimals(columns: Sequence[Column], values: Array, weights: Mapping[int, Sequence[Weight]]) -> Iterator[Largest]:
    n = values.shape[1]
    turns, waves = np.empty((DECADES, n)), np.empty((2 * DECADES, n), dtype=np.float32)  # made once: to touch memory afresh takes time
    for copy, of_copy in groupby(zip(columns, values, strict=True), key=lambda one: one[0].place):
        told = [each for k in (1, 2) for each in _sums([weight for weight in weights[copy] if weight.k == k], MOST_WEIGHTS // 2)]
        if not told:
            continue
        W = np.stack([w for w, _ in told], axis=1)
        parts = W.view(np.float32)  # real and imaginary parts in turn: a product of real matrices is half of one with complex ones
        for column, c in of_copy:
            d = column.decimals.size
            if not d:
                continue
            turn, wave = turns[:d], waves[: 2 * d]
            angle = wave[d:]
            np.multiply(column.decimals[:, None], c, out=turn)
            turn -= np.floor(turn)
            np.multiply(turn, 2.0 * np.pi, out=angle, casting="same_kind")
            np.cos(angle, out=wave[:d])
            np.sin(angle, out=angle)
            sums = sum(wave[:, a : a + SUMMED] @ parts[a : a + SUMMED] for a in range(0, n, SUMMED))
            up, down = np.split(np.asarray(sums).view(W.dtype), 2)  # digits that rise with v, and that fall
            t = np.maximum(np.abs(up + 1j * down), np.abs(up - 1j * down)) ** 2
            place, which = np.unravel_index(int(t.argmax()), t.shape)
            yield Largest(float(t.max()), 2 * t.size, float(column.decimals[place]), column, c, told[int(which)][1])


def _swept(columns: Sequence[Column], values: Array, weights: Mapping[int, Sequence[Weight]]) -> Iterator[Largest]:
    wave, lengths, turns = np.empty(GRID, dtype=np.complex64), np.empty(GRID, dtype=np.float32), _turns()
    for column, c in zip(columns, values, strict=True):
        told, span = [weight for weight in weights[column.place] if weight.k == 1], np.ptp(c)
        first, last = math.ceil(span), int(min(GRID // 2 - 1, column.finest * span))  # a wave of f s has f s · span cycles
        if not told or first > last or span == 0:
            continue
        place = _laid((c - c.min()) * ((GRID - 1) / span))
        for w, some in _sums(told, max(1, MOST_SWEPT // len(columns))):
            wave.fill(0.0)
            np.add.at(wave, place, w)
            own = np.abs(_transformed(wave, turns), out=lengths)
            up, down = own[first : last + 1], own[GRID - last : GRID - first + 1]
            rising, falling = int(up.argmax()), int(down.argmax())
            largest, cycles = max((float(up[rising]), first + rising), (float(down[falling]), last - falling))
            yield Largest(largest**2, 2 * up.size, cycles / span, column, c, some)


def _laid(place: Array) -> Indices:
    """Return where the values at places ``p + a q`` of a wave are laid for its transform: in row p, column q."""
    q, p = np.divmod(place.astype(np.intp), SPLIT)
    return p * (GRID // SPLIT) + q


def _transformed(wave: NDArray[np.complex64], turns: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Return the Fourier transform of a wave laid in rows (``_laid``), which is used up.

    It is made in two steps (Cooley and Tukey 1965): with ``n = p + a q``, ``k = b r + s`` and ``e(x) = exp(−2πi x)``,
    ``Σ_n w_n e(n k / ab) = Σ_p e(p r / a) e(p s / ab) Σ_q w_n e(q s / b)``. Such short transforms stay in a processor's nearest memory:
    all of them take less time than the long one, and less still where other programs use the caches that processors share.
    """
    inner = scipy.fft.fft(wave.reshape(SPLIT, -1), axis=1, overwrite_x=True)
    inner *= turns
    return np.asarray(scipy.fft.fft(inner, axis=0, overwrite_x=True)).ravel()


def _turns() -> NDArray[np.complex64]:
    """Return ``e(p s / ab)``, shape (a, b); made anew each time, as one that stayed would hold all memory that was freed before it."""
    angle = (-2.0 * np.pi / GRID * np.outer(np.arange(SPLIT), np.arange(GRID // SPLIT))).astype(np.float32)
    turns = np.empty(angle.shape, dtype=np.complex64)
    np.cos(angle, out=turns.real)
    np.sin(angle, out=turns.imag)
    return turns

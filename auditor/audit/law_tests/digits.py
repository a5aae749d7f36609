"""Tests of digits: low digits are uniform, last digits show no original.

A generator may write another copy's noise, or the record, into low digits, and no covariance
changes.

For a value c whose own noise has deviation s, and a frequency ``f ≥ 1.5/s``, the phase ``2π f c``
is uniform but for ``e^(−44)``, given the originals and the other copies' scores. So for weights b
that are functions of these, ``t = |Σ b exp(2πi f c)|² / Σ |b|²`` has ``P(t ≥ a) ≤ a e^(1−a)``
(``auditor.numerics.statistics.wave_tail``). Weights are sums of ``exp(±2πi κ v)``, κ = 1 and 2, of
ranks v of the originals and of scores v of other copies. Frequencies are powers of ten, and, for
whitened noise, all up to some 8,000 per deviation.

*Last digits of copies from files.* Noise from a generator of doubles reaches a released value from few originals only.

| symbol | meaning |
| --- | --- |
| ``r`` | likelihood ratio of a released value, given the original: generator over rounded smooth law |
| ``s`` | ``STRAY``, the share of values that need not come from the generator |
| ``E`` | ``Π (s + (1 − s) r)`` over records, for one column and one generator |

Under a rounded smooth law ``E r = 1`` given the original. So the mean of ``E`` is at most 1, and
``P(E ≥ 1/a) ≤ a`` (Markov). *Not checked*: values with fewer digits than doubles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.law_tests.battery import Finding, Scores, log_p
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.audit.law_tests.scores import whitening
from auditor.numerics.last_digits import STRAY, generators, grid_of_digits, ratio, written_shorter
from auditor.numerics.statistics import column_ranks, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LAST_DIGITS, LawTest
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

MOST_ROWS, DECADES, SLOWEST, GRID = 2**13, 9, 1.5, 2**17
MOST_VALUES, MOST_SWEPT, MOST_PAIRED, GROUPS = 18, 6, 12, 4
"""Values that are tested, whitened columns that are tested at all frequencies, columns up to which
sums are tested, and groups of weights, which are added up."""
SWEPT_ROWS = 2**13
"""Rows times groups of weights for a test of all frequencies: long tables need fewer groups."""


class Value(NamedTuple):
    """Values with digits to test, and the range of frequencies."""

    copy: int
    name: str
    values: Array
    slowest: float
    finest: float
    whitened: bool = False


def digits_test(
    law: NoiseLaw, rows: Rows, scores: Scores, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Test whether low digits depend on originals or on other copies."""
    n, N = min(len(rows.x), MOST_ROWS), rows.grain.shape[1]
    if law.distribution != "gaussian" or n < 3:
        return None
    ranks = column_ranks(rows.x[:n])
    copy_of = np.concatenate([np.full(N, -1), scores.groups])
    phases = waves(np.hstack([ranks, scores.values[:n]]))
    phases -= phases.mean(axis=0)
    varied = np.flatnonzero(np.abs(phases).max(axis=0) > 1e-3)
    phases, copy_of = phases[:, varied], copy_of[varied]

    @cache
    def sums(copy: int, groups: int) -> NDArray[np.complex64]:
        """Return sums of the phases of originals and other copies, then of their squares."""
        others = np.flatnonzero(copy_of != copy)
        member = np.zeros((len(copy_of), min(groups, len(others))), dtype=np.complex64)
        member[others, np.arange(len(others)) % max(1, member.shape[1])] = 1.0
        return np.hstack([phases @ member, (phases * phases) @ member])

    values = list(_values(law, rows, n, names, chosen))
    swept, found, tests = 0, list[Finding](), 0
    for value in values[:: math.ceil(len(values) / MOST_VALUES) or 1]:
        weights = sums(value.copy, GROUPS)
        if not weights.shape[1]:
            continue
        decades = 10.0 ** (math.ceil(math.log10(value.slowest)) + np.arange(DECADES))
        decades = decades[decades <= value.finest]
        wave = waves(decades[:, None] * value.values)
        both = np.maximum(np.abs(wave @ weights), np.abs(wave.conj() @ weights))
        t = np.square(both) / np.square(np.abs(weights)).sum(axis=0)
        tried = [(t.max(axis=1, initial=0.0), decades, 2 * t.size)]
        if value.whitened and swept < MOST_SWEPT and np.ptp(value.values) > 0:
            swept += 1
            groups = min(GROUPS, max(1, SWEPT_ROWS // (n + 1)))
            tried += [
                _at_all_frequencies(value, weight)
                for weight in np.hsplit(sums(value.copy, groups), 2)[0].T
            ]
        for t, frequencies, count in tried:
            tests += count
            if t.size:
                place = int(t.argmax())
                found.append(
                    Finding(
                        float(log_p(wave_tail(float(t[place])))),
                        math.sqrt(float(t[place]) / n),
                        0.0,
                        f"digits of {value.name} after parts of 1/{frequencies[place]:.5g} are "
                        "correlated with originals or other copies: r =",
                    )
                )
    return max(found).as_test("low digits", tests, n) if found else None


def waves(turns: Array) -> NDArray[np.complex64]:
    """Return ``exp(2πi · turns)``."""
    angle = (2.0 * np.pi * (turns - np.floor(turns))).astype(np.float32)
    return np.cos(angle) + np.complex64(1j) * np.sin(angle)


def _at_all_frequencies(value: Value, weight: Array) -> tuple[Array, Array, int]:
    """Return ``t`` at each frequency of a grid, the frequencies, and the number of comparisons."""
    c = value.values
    step = float(np.ptp(c)) / (GRID - 1)
    place = np.rint((c - c.min()) / step).astype(np.intp)
    wave = np.bincount(place, weight.real, GRID) + 1j * np.bincount(place, weight.imag, GRID)
    F = scipy.fft.fft(wave.astype(np.complex64))
    power = F.real**2 + F.imag**2
    first = math.ceil(value.slowest * step * GRID)
    last = int(min(value.finest * step * GRID, GRID // 2 - 1))
    t = np.maximum(power[first : last + 1], power[GRID - first : GRID - last - 1 : -1])
    t /= float(np.square(np.abs(weight)).sum())
    return t, np.arange(first, last + 1) / (step * GRID), 2 * t.size


def _values(
    law: NoiseLaw, rows: Rows, n: int, names: Sequence[str], chosen: Sequence[int]
) -> Iterator[Value]:
    M, N = rows.grain.shape
    white, z = whitening(law.covariance, N, rows.grain.ravel()), rows.noise[:n].reshape(n, M * N)
    known, e = np.abs(white.W) @ rows.grain.ravel(), z @ white.W.T
    fine = np.flatnonzero(known < 2.0**-6).tolist()
    for k in fine:
        name = f"noise of copy {chosen[white.copy[k]]} in deviations"
        finest = 0.125 / max(known[k], 1e-300)
        yield Value(int(white.copy[k]), name, e[:, k], SLOWEST, finest, True)
    for k, other in combinations(fine, 2) if len(fine) <= MOST_PAIRED else ():
        if white.copy[k] == white.copy[other]:
            name = f"a sum of noise of copy {chosen[white.copy[k]]}"
            finest = 0.125 / max(known[k] + known[other], 1e-300)
            for sign in (1.0, -1.0):
                values = e[:, k] + sign * e[:, other]
                yield Value(int(white.copy[k]), name, values, SLOWEST, finest)
    for copy, a in np.argwhere(white.deviation > 64.0 * rows.grain).tolist():
        values = rows.x[:n, a] + rows.noise[:n, copy, a]
        slowest = SLOWEST / float(white.deviation[copy, a])
        finest = 0.125 / max(float(rows.grain[copy, a]), 1e-300)
        yield Value(copy, f"{names[a]!r} in copy {chosen[copy]}", values, slowest, finest)


GENERATED_ROWS, MOST_COLUMNS = 2**12, 32
"""Rows and columns looked at, evenly among all: a tenth of a second."""


class _Found(NamedTuple):
    """``ln E`` of one generator, and its column."""

    log_e: float
    where: str


def last_digits_test(
    law: NoiseLaw, x: Array, y: Array, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Return the test that released doubles do not show originals by their rounding.

    None if no column has last digits.

    Parameters
    ----------
    law : NoiseLaw
        Of the noise in the copies chosen.
    x, y : ndarrays of shapes (n, N) and (n, M, N)
        Originals and released values.
    chosen : sequence of int
        Numbers of the copies.
    """
    if isinstance(law, KroneckerNoise) and law.units is not None:
        return None
    std = law.deviations
    places = [(int(i), int(j)) for i, j in zip(*np.nonzero(std), strict=True)]
    every = slice(None, None, math.ceil(len(x) / GENERATED_ROWS))
    found = [
        _Found(log_e, f"{names[j]!r} in copy {chosen[i]}")
        for i, j in places[:: math.ceil(len(places) / MOST_COLUMNS) or 1]
        for log_e in _evidence(law.distribution, float(std[i, j]), x[every, j], y[every, i, j])
    ]
    if not found:
        return None
    largest, rows = max(found), len(x[every])
    p = min(1.0, len(found) * math.exp(-max(largest.log_e, 0.0)))
    told = f"given the original, the factor by which last digits of {largest.where} are likelier than of rounded noise, a record, is"
    return LawTest(
        LAST_DIGITS, p, len(found), rows, math.exp(largest.log_e / rows), 1.0, told, math.inf
    )


def _evidence(distribution: str, std: float, x: Array, y: Array) -> Iterator[float]:
    """Yield ``ln E`` of every generator of the law; nothing without last digits.

    Repeated values are left out: they are bounds or blanks, whose digits are not noise.
    """
    values, place, times = np.unique(y, return_inverse=True, return_counts=True)
    x, y = x[times[place] == 1], y[times[place] == 1]
    if len(y) and not written_shorter(values):
        grid = grid_of_digits(values)
        for generator in generators(distribution, std):
            yield float(np.log(STRAY + (1.0 - STRAY) * ratio(y, x, generator, grid)).sum())

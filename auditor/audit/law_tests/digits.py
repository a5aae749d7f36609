"""Tests of digits: low digits are uniform, last digits show no original.

Low digits may hold another copy's noise or the record, unseen by covariances.

For a value c whose own noise has deviation s, and a frequency ``f ≥ 1.5/s``, the phase ``2π f c``
is uniform but for ``e^(−44)``, given the originals and the other copies' scores. So for weights b
that are functions of these, ``t = |Σ b exp(2πi f c)|² / Σ |b|²`` has ``P(t ≥ a) ≤ a e^(1−a)``
(``auditor.numerics.statistics.wave_tail``). Weights are sums of ``exp(±2πi κ v)``, κ = 1 and 2, of
ranks v of the originals and of scores v of other copies. Frequencies are powers of ten. Whitened
noise is tested at all frequencies up to some 8,000 per deviation, with the weights' real parts.

*Last digits of copies from files.* Noise from a generator of doubles reaches a released value from
few originals only.

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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.law_tests.battery import Finding, Scores, log_p
from auditor.audit.law_tests.scores import Value
from auditor.base.types import Array
from auditor.numerics.last_digits import STRAY, generators, grid_of_digits, ratio, written_shorter
from auditor.numerics.statistics import column_ranks, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LAST_DIGITS, LawTest
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw

MOST_ROWS, DECADES, GRID = 2**13, 9, 2**17
MOST_VALUES, MOST_SWEPT, GROUPS = 12, 4, 4
"""Values that are tested, whitened columns that are tested at all frequencies, and groups of
weights, which are added up."""
SWEPT_VALUES = 2**13
"""Rows times groups of weights for a test of all frequencies: long tables need fewer groups."""


def digits_test(scores: Scores, x: Array, values: Sequence[Value]) -> LawTest | None:
    """Test whether low digits depend on originals or on other copies.

    Parameters
    ----------
    scores : Scores
    x : ndarray of shape (n, N)
        Originals.
    values : sequence of Value
    """
    n = min(len(x), MOST_ROWS)
    ranks = column_ranks(x[:n])
    ranks = ranks[:, np.ptp(ranks, axis=0) > 0]
    group = np.concatenate([np.full(ranks.shape[1], -1), scores.groups])
    u = np.hstack([ranks, scores.values[:n]])
    waves = [_waves(k * u) for k in (1, 2)]
    whitened = sum(value.whitened for value in values)
    swept = range(0, whitened, math.ceil(whitened / MOST_SWEPT) or 1)
    found, tests = list[Finding](), 0
    for place in {*swept, *range(0, len(values), math.ceil(len(values) / MOST_VALUES) or 1)}:
        value = values[place]
        others, c = group != value.group, value.values[:n]
        weights = _added_up([wave[:, others] for wave in waves], GROUPS)
        power = np.square(np.abs(weights)).sum(axis=0)
        if not power.all():  # no other column
            continue
        decades = 10.0 ** (math.ceil(math.log10(value.slowest)) + np.arange(DECADES))
        decades = decades[decades <= value.finest]
        turns = decades[:, None] * c
        angle = (2.0 * np.pi * (turns - np.floor(turns))).astype(np.float32)  # % is 60 times slower
        real, imaginary = np.cos(angle) @ weights, 1j * (np.sin(angle) @ weights)
        t = np.square(np.maximum(np.abs(real + imaginary), np.abs(real - imaginary))) / power
        tried = [(t.max(axis=1, initial=0.0), decades, 2 * t.size)]
        if place in swept and np.ptp(c) > 0:
            few = _added_up([waves[0][:, others]], min(GROUPS, max(1, SWEPT_VALUES // n)))
            for b in (few.real + few.imag).T:
                t, frequencies = _at_all_frequencies(value, c, b)
                tried.append((t, frequencies, len(t)))
        for t, frequencies, count in tried:
            tests += count
            if t.size:
                k = int(t.argmax())
                where = (
                    f"digits of {value.name} after parts of 1/{frequencies[k]:.5g} are correlated "
                    "with originals or other copies: r ="
                )
                r = math.sqrt(float(t[k]) / n)
                found.append(Finding(float(log_p(wave_tail(float(t[k])))), r, 0.0, where))
    return max(found).as_test("low digits", tests, n) if found else None


def _waves(u: Array) -> NDArray[np.complex64]:
    wave = np.exp(2j * np.pi * u).astype(np.complex64)
    return wave - wave.mean(axis=0)


def _added_up(waves: Sequence[NDArray[np.complex64]], most: int) -> NDArray[np.complex64]:
    groups = min(most, max(1, waves[0].shape[1]))
    sums = [wave[:, k::groups].sum(axis=1) for wave in waves for k in range(groups)]
    return np.stack(sums, axis=1)


def _at_all_frequencies(value: Value, c: Array, b: NDArray[np.float32]) -> tuple[Array, Array]:
    """``t`` at each frequency of a grid, and the frequencies."""
    step = float(np.ptp(c)) / (GRID - 1)
    place = ((c - c.min()) / step + 0.5).astype(np.intp)
    F = np.abs(scipy.fft.rfft(np.bincount(place, b, GRID).astype(np.float32)))
    first = math.ceil(value.slowest * step * GRID)
    last = int(min(value.finest * step * GRID, GRID // 2 - 1))
    t = np.square(F[first : last + 1]) / np.square(b).sum()
    return t, np.arange(first, last + 1) / (step * GRID)


GENERATED_ROWS, MOST_COLUMNS = 2**12, 32
"""Rows and columns looked at, evenly among all: a tenth of a second."""


class _Found(NamedTuple):
    """``ln E`` of one generator, and its column."""

    log_e: float
    where: str


def last_digits_test(
    law: NoiseLaw, x: Array, y: Array, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Test that released doubles do not show originals by their rounding.

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

    Without repeated values: these are bounds or blanks.
    """
    values, place, times = np.unique(y, return_inverse=True, return_counts=True)
    x, y = x[times[place] == 1], y[times[place] == 1]
    if len(y) and not written_shorter(values):
        grid = grid_of_digits(values)
        for generator in generators(distribution, std):
            yield float(np.log(STRAY + (1.0 - STRAY) * ratio(y, x, generator, grid)).sum())

"""Low digits of Gaussian noise, and of copies: uniform given everything else, unless a generator writes something into them.

For a value c whose own noise has deviation s, and a frequency ``f ≥ 1.5/s``, the phase ``2π f c`` is uniform but for ``e^(−44)``, given the
originals and the other copies' scores. So for weights b that are functions of these, ``t = |Σ b exp(2πi f c)|² / Σ |b|²`` has
``P(t ≥ a) ≤ a e^(1−a)`` (``auditor.numerics.statistics.wave_tail``). Weights are ``exp(±2πi κ v)``, κ = 1 and 2, of ranks v of the
originals and of scores v of other copies. Frequencies are powers of ten, and, for whitened noise, all up to some 8,000 per deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from auditor.audit.law_tests.battery import NO_SIZE, Largest, Scores
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.audit.law_tests.scores import whitening
from auditor.numerics.statistics import column_ranks, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array

MOST_ROWS, DECADES, SLOWEST, GRID = 2**13, 9, 1.5, 2**17
MOST_SWEPT = 24
"""Fourier transforms over all frequencies, of 2 milliseconds each: columns times groups of weights, which are added up."""


def digits_test(law: NoiseLaw, rows: Rows, scores: Scores, names: Sequence[str], chosen: Sequence[int]) -> LawTest | None:
    """Test whether low digits of Gaussian noise, or of copies, go with the originals or with other copies' noise."""
    n, (M, N) = min(len(rows.x), MOST_ROWS), rows.grain.shape
    if law.distribution != "gaussian" or n < 3:
        return None
    v, others = np.hstack([column_ranks(rows.x[:n]), scores.values[:n]]), np.concatenate([np.full(N, -1), scores.groups])
    phases = np.exp(2j * np.pi * v).astype(np.complex64)
    phases -= phases.mean(axis=0)
    worst, tests = Largest(1.0, 0.0, 0.0, ""), 0
    for copy, name, c, slowest, finest, swept in _values(law, rows, n, names, chosen):
        b = phases[:, (others != copy) & (np.abs(phases).max(axis=0) > 1e-3)]
        frequency = 10.0 ** (math.ceil(math.log10(slowest)) + np.arange(DECADES))
        frequency = frequency[frequency <= finest]
        found = []
        if b.shape[1] and frequency.size:
            turns = np.exp(2j * np.pi * ((frequency[:, None] * c) % 1.0)).astype(np.complex64)
            both = np.hstack([b, b**2])
            t = np.abs(turns @ np.hstack([both, both.conj()])) ** 2 / np.tile((np.abs(both) ** 2).sum(axis=0), 2)
            found.append((t.max(axis=1), frequency, t.size))
        if b.shape[1] and swept and np.ptp(c) > 0:
            step, groups = np.ptp(c) / (GRID - 1), min(b.shape[1], max(1, MOST_SWEPT // swept))
            cycles, place = np.abs(scipy.fft.fftfreq(GRID, step)), np.rint((c - c.min()) / step).astype(np.intp)
            kept = (cycles >= slowest) & (cycles <= min(finest, 0.5 / step))
            for whole in (b[:, part::groups].sum(axis=1) for part in range(groups)):
                wave = np.bincount(place, whole.real, GRID) + 1j * np.bincount(place, whole.imag, GRID)
                t = np.abs(scipy.fft.fft(wave.astype(np.complex64))) ** 2 / (np.abs(whole) ** 2).sum()
                found.append((t[kept], cycles[kept], int(kept.sum())))
        for t, at, count in found:
            tests += count
            place = int(t.argmax()) if t.size else 0
            if t.size and wave_tail(float(t[place])) < worst.p:
                where = f"digits of {name} after parts of 1/{at[place]:.5g} are correlated with originals or other copies: r ="
                worst = Largest(wave_tail(float(t[place])), math.sqrt(float(t[place]) / n), 0.0, where)
    return worst.as_test("low digits", tests, n, NO_SIZE) if tests else None


def _values(law: NoiseLaw, rows: Rows, n: int, names: Sequence[str], chosen: Sequence[int]) -> Iterator[tuple[int, str, Array, float, float, int]]:
    """Yield a copy's place, a name, values, the slowest and the finest frequency, and how many columns are tried at all between, or 0."""
    M, N = rows.grain.shape
    white, z = whitening(law.covariance, N), rows.noise[:n].reshape(n, M * N)
    known = np.abs(white.W) @ rows.grain.ravel()
    e, fine = z @ white.W.T, known < 2.0**-6
    swept = np.flatnonzero(fine)[:: max(1, math.ceil(fine.sum() / MOST_SWEPT))].tolist()
    for k in np.flatnonzero(fine).tolist():
        yield int(white.copy[k]), f"noise of copy {chosen[white.copy[k]]} in deviations", e[:, k], SLOWEST, 0.125 / known[k], len(swept) * (k in swept)
    for k, other in combinations(np.flatnonzero(fine).tolist(), 2):
        if white.copy[k] == white.copy[other] and N <= 3:
            for sign in (1.0, -1.0):
                both = e[:, k] + sign * e[:, other]
                yield int(white.copy[k]), f"a sum of noise of copy {chosen[white.copy[k]]}", both, SLOWEST, 0.125 / (known[k] + known[other]), 0
    for copy, a in np.argwhere(white.deviation > 64.0 * rows.grain).tolist():
        slowest = SLOWEST / float(white.deviation[copy, a])
        yield copy, f"{names[a]!r} in copy {chosen[copy]}", rows.x[:n, a] + rows.noise[:n, copy, a], slowest, 0.125 / float(rows.grain[copy, a]), 0

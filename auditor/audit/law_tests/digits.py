"""Low digits of Gaussian noise and of copies are uniform.

A generator may write another copy's noise, or the record, into low digits, and no covariance
changes.

For a value c whose own noise has deviation s, and a frequency ``f ≥ 1.5/s``, the phase ``2π f c``
is uniform but for ``e^(−44)``, given the originals and the other copies' scores. So for weights b
that are functions of these, ``t = |Σ b exp(2πi f c)|² / Σ |b|²`` has ``P(t ≥ a) ≤ a e^(1−a)``
(``auditor.numerics.statistics.wave_tail``). Weights are ``exp(±2πi κ v)``, κ = 1 and 2, of ranks v
of the originals and of scores v of other copies. Frequencies are powers of ten, and, for whitened
noise, all up to some 8,000 per deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.law_tests.battery import NO_SIZE, Largest, Scores
from auditor.audit.law_tests.chosen_rows import Rows
from auditor.audit.law_tests.scores import whitening
from auditor.numerics.statistics import column_ranks, wave_tail
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.schemes.base.noise_law import NoiseLaw
from auditor.types import Array

MOST_ROWS, DECADES, SLOWEST, GRID = 2**13, 9, 1.5, 2**17
MOST_VALUES, MOST_GROUPS, MOST_PAIRED = 48, 4, 12
"""Values that are tested, evenly spread; groups of weights, which are added up; and columns up to
which sums are tested."""
MOST_SWEPT, TRANSFORMS, TIMES_ROWS = 24, 24, 2**16
"""Whitened columns and Fourier transforms over all frequencies, of 2 milliseconds each; and rows
times transforms."""


def digits_test(
    law: NoiseLaw, rows: Rows, scores: Scores, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Test whether low digits depend on originals or on other copies."""
    n, N = min(len(rows.x), MOST_ROWS), rows.grain.shape[1]
    if law.distribution != "gaussian" or n < 3:
        return None
    v, others = (
        np.hstack([column_ranks(rows.x[:n]), scores.values[:n]]),
        np.concatenate([np.full(N, -1), scores.groups]),
    )
    phases = np.exp(2j * np.pi * v).astype(np.complex64)
    phases -= phases.mean(axis=0)
    worst, tests = Largest(1.0, 0.0, 0.0, ""), 0
    values = list(_values(law, rows, n, names, chosen))
    whitened = [k for k, value in enumerate(values) if value.whitened]
    swept = set(whitened[:: max(1, math.ceil(len(whitened) / MOST_SWEPT))])
    groups = max(1, min(TRANSFORMS, TIMES_ROWS // n) // max(1, len(swept)))
    weights = {
        copy: _weights(phases[:, (others != copy) & (np.abs(phases).max(axis=0) > 1e-3)], groups)
        for copy in range(len(rows.grain))
    }
    for k in sorted(
        swept | set(range(0, len(values), max(1, math.ceil(len(values) / MOST_VALUES))))
    ):
        copy, name, c, slowest, finest, _ = values[k]
        of_copy = weights[copy]
        if of_copy is None:
            continue
        both, squares, wholes = of_copy
        frequency = 10.0 ** (math.ceil(math.log10(slowest)) + np.arange(DECADES))
        frequency = frequency[frequency <= finest]
        angle = (2.0 * np.pi * ((frequency[:, None] * c) % 1.0)).astype(np.float32)
        up, down = (
            (np.cos(angle) @ both).view(np.complex64),
            1j * (np.sin(angle) @ both).view(np.complex64),
        )
        t = np.maximum(np.abs(up + down), np.abs(up - down)) ** 2 / squares
        found = [(t.max(axis=1, initial=0.0), frequency, 2 * t.size)]
        if k in swept and np.ptp(c) > 0:
            step = float(np.ptp(c)) / (GRID - 1)
            place = np.rint((c - c.min()) / step).astype(np.intp)
            first, last = (
                math.ceil(slowest * step * GRID),
                int(min(finest * step * GRID, GRID // 2 - 1)),
            )
            for whole in wholes:
                wave = np.bincount(place, whole.real, GRID) + 1j * np.bincount(
                    place, whole.imag, GRID
                )
                F = np.abs(scipy.fft.fft(wave.astype(np.complex64)))
                t = np.maximum(
                    F[first : last + 1], F[GRID - first : GRID - last - 1 : -1]
                ) ** 2 / float((np.abs(whole) ** 2).sum())
                found.append((t, np.arange(first, last + 1) / (step * GRID), 2 * t.size))
        for t, at, count in found:
            tests += count
            place = int(t.argmax()) if t.size else 0
            if t.size and wave_tail(float(t[place])) < worst.p:
                where = f"digits of {name} after parts of 1/{at[place]:.5g} are correlated with originals or other copies: r ="
                worst = Largest(
                    wave_tail(float(t[place])), math.sqrt(float(t[place]) / n), 0.0, where
                )
    return worst.as_test("low digits", tests, n, NO_SIZE) if tests else None


def _weights(
    b: NDArray[np.complex64], groups: int
) -> tuple[NDArray[np.float32], Array, NDArray[np.complex64]] | None:
    """Return summed weights, their squared lengths, and sums to sweep."""
    if not b.shape[1]:
        return None
    both = np.hstack([_grouped(b, MOST_GROUPS), _grouped(b**2, MOST_GROUPS)])
    return both.view(np.float32), np.square(np.abs(both)).sum(axis=0), _grouped(b, groups).T


def _grouped(b: NDArray[np.complex64], most: int) -> NDArray[np.complex64]:
    """Return sums of at most so many groups of weights."""
    return np.stack([b[:, part::most].sum(axis=1) for part in range(min(most, b.shape[1]))], axis=1)


class Value(NamedTuple):
    """Values with digits to test, and the range of frequencies."""

    copy: int
    name: str
    values: Array
    slowest: float
    finest: float
    whitened: bool = False


def _values(
    law: NoiseLaw, rows: Rows, n: int, names: Sequence[str], chosen: Sequence[int]
) -> Iterator[Value]:
    """Yield whitened noise, sums and differences of it, and the copies."""
    M, N = rows.grain.shape
    white, z = whitening(law.covariance, N, rows.grain.ravel()), rows.noise[:n].reshape(n, M * N)
    known, e = np.abs(white.W) @ rows.grain.ravel(), z @ white.W.T
    fine = np.flatnonzero(known < 2.0**-6).tolist()
    for k in fine:
        copy = int(white.copy[k])
        yield Value(
            copy,
            f"noise of copy {chosen[copy]} in deviations",
            e[:, k],
            SLOWEST,
            0.125 / max(known[k], 1e-300),
            True,
        )
    for k, other in combinations(fine, 2):
        if white.copy[k] == white.copy[other] and len(fine) <= MOST_PAIRED:
            copy, finest = int(white.copy[k]), 0.125 / max(known[k] + known[other], 1e-300)
            for sign in (1.0, -1.0):
                yield Value(
                    copy,
                    f"a sum of noise of copy {chosen[copy]}",
                    e[:, k] + sign * e[:, other],
                    SLOWEST,
                    finest,
                )
    for copy, a in np.argwhere(white.deviation > 64.0 * rows.grain).tolist():
        slowest, finest = (
            SLOWEST / float(white.deviation[copy, a]),
            0.125 / max(float(rows.grain[copy, a]), 1e-300),
        )
        yield Value(
            copy,
            f"{names[a]!r} in copy {chosen[copy]}",
            rows.x[:n, a] + rows.noise[:n, copy, a],
            slowest,
            finest,
        )

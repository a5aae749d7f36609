"""Last digits of copies from files: whether they show the original.

Noise from a generator of doubles reaches a released value from few originals only.

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

from auditor.numerics.last_digits import STRAY, generators, grid_of_digits, ratio, written_shorter
from auditor.results.evidence import LAST_DIGITS, LawTest
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw
from auditor.types import Array

MOST_ROWS, MOST_COLUMNS = 2**12, 32
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
    names : sequence of str
    chosen : sequence of int
        Numbers of the copies.
    """
    if isinstance(law, KroneckerNoise) and law.units is not None:
        return None
    std = law.deviations
    places = [(int(i), int(j)) for i, j in zip(*np.nonzero(std), strict=True)]
    every = slice(None, None, math.ceil(len(x) / MOST_ROWS))
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

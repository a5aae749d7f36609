"""Last digits of copies from files: noise that a generator of doubles made can have led to them from few originals, and so tells of them.

| symbol | meaning |
| --- | --- |
| ``r`` | how much likelier a released value is, given the original, by a generator than by a smooth law that is rounded (``ratio``) |
| ``s`` | ``STRAY``, the share of values that a generator is not asked to explain |
| ``E`` | ``Π (s + (1 − s) r)`` over records, of one attribute of one copy and one generator |

Under a smooth law, rounded, ``E r = 1`` given the original, whatever it is; so ``E`` is 1 on
average at most, and ``P(E ≥ 1/a) ≤ a`` (Markov). The originals need be no multiples of anything:
whoever knows a few values that a record may have is told which it has. *Not checked*: values
written with fewer digits than doubles, whose last ones are gone.
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
    """``ln E`` of one generator, and of which column."""

    log_e: float
    where: str


def last_digits_test(
    law: NoiseLaw, x: Array, y: Array, names: Sequence[str], chosen: Sequence[int]
) -> LawTest | None:
    """Return the test that released doubles do not tell of originals by how they were rounded; None where no digits are left to.

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
    std = np.sqrt(np.clip(np.diag(law.covariance), 0.0, None)).reshape(len(chosen), -1)
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
    """Yield ``ln E`` of every generator that noise of this law may come from; none of values whose last digits are gone.

    A value that comes again is no double of honest noise: it was cut off at a bound, or is blank,
    and its digits are those of the bound.
    """
    values, place, times = np.unique(y, return_inverse=True, return_counts=True)
    x, y = x[times[place] == 1], y[times[place] == 1]
    if len(y) and not written_shorter(values):
        grid = grid_of_digits(values)
        for generator in generators(distribution, std):
            yield float(np.log(STRAY + (1.0 - STRAY) * ratio(y, x, generator, grid)).sum())

"""Cells of other rows that show a record, in copies of categories.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x``, ``y`` | values of the records and of one copy, in the table's order | (n,) |
| ``A_k`` | agreements k rows on, ``Σ_t [x_t = y_(t+k)]``, or k from the end, ``Σ_t [x_t = y_(-t-k)]`` | (n,) |
| ``μ``, ``v`` | mean and variance of ``A_k`` for random pairing, with a_v records and b_v cells of value v | |
| | ``μ = Σ a_v·b_v / n``, ``v = (Σ a_v(n − a_v)b_v(n − b_v) + (Σ a_v·b_v)² − Σ (a_v·b_v)²) / (n²(n − 1))`` | |
| ``C_k`` | ``Σ_v Σ_t e_tv e_(t+k)v``, ``e_tv = [y_t = v] − T[x_t, v]``, T the copy's shares given the original | scalar |

Fourier transforms of each value's indicator count all distances at once. The cells are features of
``fitted-to-originals``. *Not found*: moved rows with recoded values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.insider.features.moved_rows import LOOKED_AT, WINDOW, parts, places
from auditor.numerics.statistics import BY_CHANCE, beyond_chance, standard_ranks
from auditor.types import Indices

Integers = NDArray[np.integer[Any]]

FEWEST_TOLD = 0.01
"""Least share of records that another row shows, beyond chance."""
BEYOND = 1.2
"""Least ratio of agreements with predicted cells to agreements of successive records."""
MOST_COUNTED = 64
"""Values whose agreements are counted, the commonest."""


def elsewhere(x: Integers, y: Integers, size: int) -> list[Integers]:
    """Return cells that show records elsewhere, shape (n,) each: shifted, reversed, in blocks.

    Examples
    --------
    >>> x = np.random.default_rng(0).integers(0, 4, 400)
    >>> [bool((cells == x).all()) for cells in elsewhere(x, np.roll(x, 3), 4)], elsewhere(x, x, 4)
    ([True], [])
    """
    n = len(x)
    a, b = (np.bincount(codes, minlength=size).astype(np.float64) for codes in (x, y))
    commonest = np.argsort(-a * b, kind="stable")[:MOST_COUNTED]
    a, b = a[commonest], b[commonest]
    mean = float(a @ b) / n
    variance = ((a * (n - a)) @ (b * (n - b)) + (a @ b) ** 2 - ((a * b) ** 2).sum()) / (
        n * n * max(1, n - 1)
    )
    least = mean + max(FEWEST_TOLD * n, beyond_chance(n) * np.sqrt(variance))
    agree = np.zeros((2, n))
    for value in commonest if mean > 0 else ():
        of_x, of_y = np.fft.rfft(x == value), np.fft.rfft(y == value)
        # the conjugate's rows stand from the end
        agree += [np.fft.irfft(spectrum * of_x.conj(), n) for spectrum in (of_y, of_y.conj())]
    agree[0, 0] = 0.0  # a record's own row
    found = [
        (step, int(counts.argmax()))
        for step, counts in zip((1, -1), agree, strict=True)
        if counts.max() > least
    ]
    cells = [y[step * (np.arange(n) + k) % n] for step, k in found]
    return [
        *cells,
        *sharing(x, y, size, commonest),
        *by_blocks(x, y, commonest, max([least, *((one == x).sum() for one in cells)])),
    ]


def sharing(x: Integers, y: Integers, size: int, values: Indices) -> list[Integers]:
    """Return cells of rows that share their noise with a record, shape (n,).

    ``Var C_k ≤ Σ_t Σ_uv cov(e_tu, e_tv)²``, by Cauchy, with
    ``Σ_uv cov² = Σ_v T² − 2T³ + (Σ_v T²)²``. Rare values have Poisson tails,
    so the bound is like Bernstein's.
    """
    n = len(x)
    T = (
        np.bincount(x.astype(np.intp) * size + y, minlength=size**2).reshape(size, size)
        / np.bincount(x, minlength=size).clip(1)[:, None]
    )
    squares, t = np.square(T).sum(axis=1), math.log(n / BY_CHANCE)
    variance = float((squares - 2.0 * (T**3).sum(axis=1) + squares**2)[x].sum())
    power = np.zeros(n // 2 + 1)
    for value in values:
        power += np.abs(np.fft.rfft((y == value) - T[x, value])) ** 2
    C = np.fft.irfft(power, n)[1 : (n + 1) // 2]
    if not C.size or C.max() <= max(FEWEST_TOLD * n, math.sqrt(2.0 * variance * t) + 2.0 * t):
        return []
    k = 1 + int(C.argmax())
    before, after = np.roll(y, k), np.roll(y, -k)
    return [np.where(before == y, before, after)]


def by_blocks(x: Integers, y: Integers, values: Indices, least: float) -> list[Integers]:
    """Return cells at places that near records predict, shape (n,), if more than ``least`` agree.

    In a series, more must agree than successive records do.
    """
    n = len(x)
    if n < 2 * WINDOW:
        return []
    looks = [(x[some], y[some]) for some in parts(n, LOOKED_AT)] if n > LOOKED_AT else []
    if looks and not any(
        by_blocks(*look, values, least * len(look[0]) / n + 2.0 * math.sqrt(len(look[0])))
        for look in looks
    ):
        return []
    cells = y[
        places(*(standard_ranks((codes[:, None] == values).astype(np.float64)) for codes in (x, y)))
    ]
    return [cells] if (cells == x).sum() > max(least, BEYOND * (x[1:] == x[:-1]).sum()) else []

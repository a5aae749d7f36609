"""Possible originals of a released double, given its noise generator.

| symbol | meaning |
| --- | --- |
| ``y`` | a released double, ``fl(x + z)`` |
| ``x`` | a candidate original |
| ``z(k)`` | the generator's k-th number |
| ``δ`` | distance of neighbouring ``z(k)`` there |
| ``u`` | distance of doubles at y, or the copy's coarser grid |

Each k is drawn with probability ``f(z)·δ``, f the noise density, so that ``P(y | x) = f(y −
x)·δ·#{k: fl(x + z(k)) = y}``. A rounded smooth law has ``f(y − x)·u``. The ratio is the evidence: 0
rules x out.

| generator | ``z(k)`` | origin |
| --- | --- | --- |
| ``sum`` | any double | any noise: ``x + z`` rounded to fewer bits, or to none |
| ``product`` | ``fl(σ·g)``, any double g | ``normal`` of numpy: 256 grids of 2⁵² numbers |
| ``laplace`` | ``±b·log(v)``, v of 52 bits | ``laplace`` of numpy, by inversion of 53-bit uniforms |
| ``uniform`` | ``−a + 2a·k·2⁻⁵³`` | ``uniform`` of numpy, and most others |

Reference: mironov2012 (Laplace); jin2022 (normal). *Not checked*: that the owner's logarithm equals
this machine's; else some 0.3 % of originals are ruled out (``STRAY``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from auditor.base.types import Array

Kind = Literal["sum", "product", "laplace", "uniform"]
MANY = 4.0
"""Generator numbers per double from which every original is possible.
"""
BESIDE = np.arange(-5.0, 6.0)
"""Numbers tried around the nearest."""
STRAY = 2.0**-8
"""Share of values that no generator explains."""
LAST_DIGITS = np.arange(-2, 3)
"""Last digits by which a stated scale may differ."""


class Generator(NamedTuple):
    """Generator of the noise of one attribute in one copy.

    Attributes
    ----------
    kind : 'sum', 'product', 'laplace' or 'uniform'
    scale
        1, σ, b or a.
    """

    kind: Kind
    scale: float = 1.0


def generators(distribution: str, std: float) -> list[Generator]:
    """Possible generators of noise of one law and deviation."""
    kind: Kind = distribution if distribution in ("laplace", "uniform") else "product"  # type: ignore[assignment]
    scale = std * {"laplace": np.sqrt(0.5), "uniform": np.sqrt(3.0)}.get(distribution, 1.0)
    scales = (scale + LAST_DIGITS * np.spacing(scale)).tolist()
    return [
        Generator("sum"),
        *(Generator("product", std) for _ in [0] if kind != "product"),
        *(Generator(kind, each) for each in scales),
    ]


def grid_of_digits(y: Array) -> float:
    """Largest power of two that divides all values; 0 if all are 0.

    Examples
    --------
    >>> grid_of_digits(np.array([1.5, -8.25, 0.0]))
    0.25
    """
    mantissa, exponent = np.frexp(y[y != 0])
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return (
        float(np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min(initial=np.inf))
        if whole.size
        else 0.0
    )


def written_shorter(y: Array) -> bool:
    """Whether all values are single precision or have two digits fewer."""
    places = int(np.floor(-np.log10(64.0 * np.spacing(np.abs(y).max(initial=0.0) or 1.0))))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.round(y, places) == y).all() or (y.astype(np.float32) == y).all())


def ratio(y: Array, x: Array, generator: Generator, grid: float = 0.0) -> Array:
    """``δ·#{k: fl(x + z(k)) = y} / u``, in the shape of y and x.

    1 where y is 0 (a cut-off). ``grid``: known divisor of the copy, or 0.
    """
    with np.errstate(all="ignore"):
        doubles = np.spacing(np.abs(y))
        expected = doubles / spacing(y - x, generator)
        found, few = np.ones(y.shape), (expected <= MANY) & (y != 0)
        if few.any():
            found[few] = _count(y[few], x[few], generator) / expected[few]
    return np.where(y == 0, 1.0, found * (doubles / np.maximum(doubles, grid)))


def spacing(z: Array, generator: Generator) -> Array:
    """``δ``, the mean distance of neighbouring ``z(k)`` at z."""
    kind, s = generator
    if kind == "laplace":
        return s * 2.0**-52 * np.exp(np.abs(z) / s)
    return (
        np.full(z.shape, s * 2.0**-52)
        if kind == "uniform"
        else np.asarray(s * np.spacing(np.abs(z / s)))
    )


def _count(y: Array, x: Array, generator: Generator) -> Array:
    (kind, s), z = generator, y - x
    if kind in ("laplace", "uniform"):
        # the probability below z, from the nearer end
        near = 0.5 * np.exp(-np.abs(z) / s) if kind == "laplace" else (z + s) / (2.0 * s)
        k = (
            np.rint(near * 2.0**53)
            if kind == "uniform"
            else np.where(z < 0, np.rint(near * 2.0**53), 2.0**53 - np.rint(near * 2.0**53))
        )
        made = [
            (numpy_laplace if kind == "laplace" else numpy_uniform)((k + step) * 2.0**-53, s)
            for step in BESIDE
        ]
    else:
        g = z / s
        made = [s * (g + step * np.spacing(np.abs(g))) for step in BESIDE]
    return np.sum([x + each == y for each in made], axis=0, dtype=np.float64)


def numpy_laplace(U: Array, b: float) -> Array:
    """Numpy's ``Generator.laplace`` of uniform numbers; NaN at 0."""
    upper = U >= 0.5
    size = b * np.log(np.where(upper, 2.0 - U - U, U + U))
    return np.where((U > 0) & (U < 1), np.where(upper, -size, size), np.nan)


def numpy_uniform(U: Array, a: float) -> Array:
    """Numpy's ``Generator.uniform(-a, a)`` of uniform numbers."""
    return np.where((U >= 0) & (U < 1), 2.0 * a * U - a, np.nan)


def likeliest(
    y: Array, x: Array, weights: Array, tried: Sequence[Generator], grid: float
) -> Generator | None:
    """Likeliest generator; None if a rounded smooth law fits too.

    Parameters
    ----------
    y : (b,)
    x : (C,)
        Candidates.
    weights : (b, C)
        Probabilities without last digits; rows sum to 1, or 0.
    """
    if written_shorter(y):
        return None
    held = weights > 1e-9
    row, column = np.nonzero(held)
    # the best of so many gains more than this in one copy of 150
    best, gain = None, np.log(len(tried)) + 5.0
    for generator in tried:
        parts = weights[row, column] * (
            STRAY + (1.0 - STRAY) * ratio(y[row], x[column], generator, grid)
        )
        total = np.bincount(row, parts, len(y))
        found = float(np.log(total[total > 0]).sum())
        if found > gain:
            best, gain = generator, found
    return best

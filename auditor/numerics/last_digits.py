"""Which originals a released double can come from: the numbers that a generator of noise makes are sparser than the doubles between them.

| symbol | meaning |
| --- | --- |
| ``y`` | a released double, ``fl(x + z)`` |
| ``x`` | a candidate for its original |
| ``z(k)`` | the generator's k-th number: the doubles about ``z(k) = y − x`` are all tried |
| ``δ`` | distance of neighbouring ``z(k)`` there |
| ``u`` | distance of neighbouring doubles at y, or the grid that all values of the copy lie on, if that is coarser |

Each k is drawn with probability ``f(z)·δ``, f the density of the noise, so that ``P(y | x) = f(y −
x)·δ·#{k: fl(x + z(k)) = y}``. A smooth law rounded to doubles has ``f(y − x)·u``. The ratio of the
two is what the last digits say: 0 rules x out.

| generator | ``z(k)`` | whose |
| --- | --- | --- |
| ``sum`` | any double | whatever made the noise: ``x + z`` is rounded to fewer bits than z has, or to none |
| ``product`` | ``fl(σ·g)``, any double g | ``normal`` of numpy: 256 grids of 2⁵² numbers, of which nearly every double g is one |
| ``laplace`` | ``±b·log(v)``, v of 52 bits | ``laplace`` of numpy, by the inverse of the distribution function of 53-bit uniforms |
| ``uniform`` | ``−a + 2a·k·2⁻⁵³`` | ``uniform`` of numpy, and most others |

Reference: mironov2012 (Laplace by inverse distribution function); jin2022 (normal). *Not checked*:
that the owner's logarithm is this machine's; where they differ by a last digit, in some 0.3 % of
values, the true original is ruled out (``STRAY``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from auditor.types import Array

Kind = Literal["sum", "product", "laplace", "uniform"]
MANY = 4.0
"""With so many numbers of the generator to a double every original can be meant, and their count
says little."""
BESIDE = np.arange(-5.0, 6.0)
"""Numbers tried about the nearest: half of ``MANY`` to either side, and what rounding, twice, may
have moved it by."""
STRAY = 2.0**-8
"""Share of values that a generator is taken not to explain, whatever it is."""
LAST_DIGITS = np.arange(-2, 3)
"""Last digits by which a scale as stated may differ from that which noise was multiplied by: it is
a root of a product."""


class Generator(NamedTuple):
    """Where the noise of one copy's attribute came from.

    Attributes
    ----------
    kind : 'sum', 'product', 'laplace' or 'uniform'
    scale : float
        1, σ, b or a.
    """

    kind: Kind
    scale: float = 1.0


def generators(distribution: str, std: float) -> list[Generator]:
    """Return those that noise of this law and standard deviation may come from."""
    kind: Kind = distribution if distribution in ("laplace", "uniform") else "product"  # type: ignore[assignment]
    scale = std * {"laplace": np.sqrt(0.5), "uniform": np.sqrt(3.0)}.get(distribution, 1.0)
    scales = (scale + LAST_DIGITS * np.spacing(scale)).tolist()
    return [
        Generator("sum"),
        *(Generator("product", std) for _ in [0] if kind != "product"),
        *(Generator(kind, each) for each in scales),
    ]


def grid_of_digits(y: Array) -> float:
    """Return the largest power of two that all values are whole multiples of; 0 where all are 0.

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
    """Whether all values have fewer digits than doubles: decimals, at least two short of what a double holds, or single precision."""
    places = int(np.floor(-np.log10(64.0 * np.spacing(np.abs(y).max(initial=0.0) or 1.0))))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool((np.round(y, places) == y).all() or (y.astype(np.float32) == y).all())


def ratio(y: Array, x: Array, generator: Generator, grid: float = 0.0) -> Array:
    """Return ``δ·#{k: fl(x + z(k)) = y} / u``, of the shape of y and x; 1 at 0, which is where values are cut off and not where they fall.

    Parameters
    ----------
    y, x : ndarrays of one shape
        Released values, and an original thought of for each.
    generator : Generator
    grid : float
        What all values of the copy are multiples of, as far as known.
    """
    with np.errstate(all="ignore"):
        doubles = np.spacing(np.abs(y))
        expected = doubles / spacing(y - x, generator)
        found, few = np.ones(y.shape), (expected <= MANY) & (y != 0)
        if few.any():
            found[few] = _count(y[few], x[few], generator) / expected[few]
    return np.where(y == 0, 1.0, found * (doubles / np.maximum(doubles, grid)))


def spacing(z: Array, generator: Generator) -> Array:
    """Return ``δ``, how far apart neighbouring ``z(k)`` are at z on average, of its shape."""
    kind, s = generator
    if kind == "laplace":
        return s * 2.0**-52 * np.exp(np.abs(z) / s)  # dz/dk of ±b log(k·2⁻⁵²)
    return (
        np.full(z.shape, s * 2.0**-52)
        if kind == "uniform"
        else np.asarray(s * np.spacing(np.abs(z / s)))
    )


def _count(y: Array, x: Array, generator: Generator) -> Array:
    """Return ``#{k: fl(x + z(k)) = y}``, shape (p,)."""
    (kind, s), z = generator, y - x
    if kind in ("laplace", "uniform"):
        # The probability below z, from the nearer end, where numpy's own uniforms are as precise as
        # this.
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
    return np.asarray(np.sum([x + each == y for each in made], axis=0, dtype=np.float64))


def numpy_laplace(U: Array, b: float) -> Array:
    """Return what numpy's ``Generator.laplace`` makes of a uniform number, to the last digit; NaN at 0, of which it makes nothing."""
    upper = U >= 0.5
    size = b * np.log(np.where(upper, 2.0 - U - U, U + U))
    return np.where((U > 0) & (U < 1), np.where(upper, -size, size), np.nan)


def numpy_uniform(U: Array, a: float) -> Array:
    """Return what numpy's ``Generator.uniform(-a, a)`` makes of a uniform number; NaN outside 0 to 1."""
    return np.where((U >= 0) & (U < 1), 2.0 * a * U - a, np.nan)


def likeliest(
    y: Array, x: Array, weights: Array, tried: Sequence[Generator], grid: float
) -> Generator | None:
    """Return the generator under which released values are likeliest; None where a smooth law, rounded, explains them as well.

    Of values that were written with fewer digits than doubles have the last ones are gone.

    Parameters
    ----------
    y : ndarray of shape (b,)
    x : ndarray of shape (C,)
        Candidates.
    weights : ndarray of shape (b, C)
        Their probabilities but for the last digits; rows sum to 1, or to 0 where the law explains
        none.
    tried : sequence of Generator
    grid : float
    """
    if written_shorter(y):
        return None
    held = weights > 1e-9
    row, column = np.nonzero(held)
    # of chance alone the best of so many gains more than this in one copy of 150
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

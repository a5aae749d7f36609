"""Standard normals from 64-bit words, by the ziggurat.

Exact, in a third of the time of the inverse distribution function.

| symbol | meaning | source |
| --- | --- | --- |
| ``f(x)`` | ``e^{−x²/2}`` | marsaglia2000 |
| ``x_k`` | edges, falling: ``x_1 = r``, ``x_256 = 0``; layer k lies between the heights ``f(x_k)`` and ``f(x_{k+1})``, out to ``x_k`` | |
| ``v`` | area of every layer; the lowest, 0, holds the tail beyond r, and ``x_0 = v/f(r)`` | |

A point uniform in a random layer is uniform under f. Closer than ``x_{k+1}`` it is below f at any
height, in 99 of 100 cases; only for others height and f are computed. Layer and place use separate
bits, as required (Doornik 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.types import Array

Words = NDArray[np.uint64]

LAYERS = 256
R = 3.6541528853610088
"""``r`` for 256 layers of equal area up to ``f(0) = 1``."""


def _edges() -> Array:
    """Return ``x_0 … x_256``: ``f(x_{k+1}) = f(x_k) + v/x_k``."""
    v = R * math.exp(-0.5 * R * R) + math.sqrt(math.pi / 2.0) * math.erfc(R / math.sqrt(2.0))
    x = [v * math.exp(0.5 * R * R), R]
    while len(x) < LAYERS:
        x.append(math.sqrt(-2.0 * math.log(math.exp(-0.5 * x[-1] ** 2) + v / x[-1])))
    return np.array([*x, 0.0])


X = _edges()
NEXT, STEP = X[1:], X[:-1] * 2.0**-53
HEIGHT = np.exp(-0.5 * X * X)


def fill_normal(words: Words, out: Array, uniform: Callable[[int], Array]) -> None:
    """Write a draw from N(0, 1) for each word to ``out``, shape (n,).

    Parameters
    ----------
    words : ndarray of uint64, shape (n,)
        Overwritten.
    uniform : callable
        Returns n numbers uniform on [0, 1), multiples of 2⁻⁵³; needed for one draw in sixty.
    """
    place = words.view(np.int64)
    layer = place & LAYERS - 1
    place >>= 10
    np.add(place, 0.5, out=out)  # never 0, and symmetric
    out *= STEP[layer]
    outside = np.flatnonzero(np.abs(out) >= NEXT[layer])
    out[outside] = _settled(out[outside], layer[outside], uniform)


def _settled(x: Array, layer: NDArray[np.int64], uniform: Callable[[int], Array]) -> Array:
    """Return points of a layer outside the next edge, redrawn if above f.

    Redrawn by ``Φ⁻¹`` with their sign: from all of N(0, 1), or beyond r in layer 0: ``−Φ⁻¹(p)``, p
    uniform below ½ or ``Φ(−r)``.
    """
    height = HEIGHT[layer] + uniform(x.size) * (HEIGHT[layer + 1] - HEIGHT[layer])
    p = (uniform(x.size) + 2.0**-54) * np.where(layer == 0, scipy.special.ndtr(-R), 0.5)
    return np.where(
        (layer > 0) & (height < np.exp(-0.5 * x * x)), x, np.copysign(scipy.special.ndtri(p), x)
    )

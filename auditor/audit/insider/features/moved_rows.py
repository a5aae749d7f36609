"""Feature family for moved rows: cells of the row where a record went.

A record is at a common distance, forwards or from the end (``distances``), or as far from a near
record's place as other records k rows apart (``rule``).
"""

import math
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, REACH, Columns, Feature, Known, Shown, rule
from auditor.base import scipy
from auditor.base.types import Array, Indices
from auditor.numerics.statistics import BY_CHANCE, quantile, standard_ranks
from auditor.registry import register

NEAR = 33
"""Rows by which one of some distances is chosen."""
MOST_DISTANCES = 8
"""Five rows with one noise value have four distances either way."""


@register
class MovedRows(Feature):
    """Cells at common distances, and where a record's neighbours say that it went."""

    name, learns = "moved-rows", True

    def columns(self, shown: Shown, known: Known) -> Columns:
        n = len(shown.flat)
        there = np.isfinite(known.left)
        x = np.zeros((n, 1))
        x[there] = standard_ranks(known.x[there][:, [known.attribute]])
        cells, numbers = shown.flat.shape[1], range(shown.numbers.shape[1])
        for c in [*numbers[: min(cells, MOST_PAIRED)], *numbers[cells : cells + MOST_PAIRED]]:
            y = shown.number_ranks[:, [c]]
            if places := [step * (np.arange(n) + k) % n for step, k in distances(x, y)]:
                alike = [(x * y[each])[:, 0] for each in places]
                agree = np.abs(scipy.ndimage.uniform_filter1d(alike, NEAR, axis=1))
                place = np.take_along_axis(np.array(places), agree.argmax(axis=0)[None], axis=0)[0]
                yield f"cell {c} where near rows went", partial(at_place, c, place)
        width = shown.cells.shape[2]
        for copy, q in known.moved:
            place = followed(q)
            for c in range(copy * width, copy * width + min(width, MOST_PAIRED)):
                yield f"cell {c} where the record went", partial(at_place, c, place)


def followed(q: Array) -> Indices:
    """Each record's place by the commonest rule, from the nearest known place."""
    (_, k, d), n = rule(q), len(q)
    place, t = np.arange(n, dtype=np.float64), np.arange(n)
    for m in sorted(range(-REACH, REACH + 1), key=abs, reverse=True):
        near = np.where((0 <= t + m * k) & (t + m * k < n), q[(t + m * k) % n] - m * d, np.nan)
        there = (0 <= near) & (near < n)
        place[there] = near[there]
    return place.astype(np.intp)


def distances(x: Array, y: Array) -> list[tuple[int, int]]:
    """Distances at which rows of y follow rows of x beyond chance.

    Parameters
    ----------
    x, y : ndarray of shape (n, q)
        Centred columns.

    Returns
    -------
    list of (s, k)
        With the largest ``S = |Σ_t x_t · y_(s (t + k))|``, rows counted modulo n, s = 1 or −1, above
        the lower of Bernstein's bound, with the mean square v over all distances, and ``√v (z + κ z³/24)``
        (Cornish and Fisher), with a normal quantile z and a bound κ of S's excess kurtosis.
    """
    n = len(x)
    F, G = np.fft.rfft(x, axis=0).conj(), np.fft.rfft(y, axis=0)
    S = np.abs([np.fft.irfft((F * part).sum(axis=1), n) for part in (G, G.conj())])
    S[0, 0] = 0.0
    sizes, v = [np.linalg.norm(part, axis=1) for part in (x, y)], float(np.square(S).mean()) or 1.0
    looks, z = math.log(2 * n / BY_CHANCE), quantile(1.0 - BY_CHANCE / (4 * n))
    bernstein = math.sqrt(2.0 * v * looks) + sizes[0].max() * sizes[1].max() * looks / 1.5
    kappa = n * (sizes[0] ** 4).mean() / v * (sizes[1] ** 4).mean() / v
    least = min(bernstein, math.sqrt(v) * (z + kappa * z**3 / 24.0))
    turned, k = np.unravel_index(np.argsort(-S, axis=None)[:MOST_DISTANCES], S.shape)
    beyond = S[turned, k] > least
    return list(zip((1 - 2 * turned[beyond]).tolist(), k[beyond].tolist(), strict=True))


def at_place(c: int, place: Indices, shown: Shown) -> Array:
    """Cell or shown number of the rows at some places."""
    return shown.numbers[place, c]

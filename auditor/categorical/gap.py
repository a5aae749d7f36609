"""How far apart a coalition's belief and its best copy's are: the squared L2 gap of xiao2009 (eq. 15), measured without a law and computed.

For an outcome o of all copies with n_o records, of which ``c(x)`` have the value x, and best-copy posterior ``f`` there,

    ``G_o = Σ_x c(c − 1) / (n_o (n_o − 1)) − 2 Σ_x (c/n_o) f(x) + Σ_x f(x)²``

has mean ``‖f_o − f‖²`` whatever the copies' law, where ``f_o`` is the coalition's true posterior: without the correction ``c(c − 1)``
the scatter of few records would pass for a gap (the paper drew 10^10 records instead). It is averaged over records whose outcome was
met at least twice. Exactly, it is the distance of the computed posteriors: averaged over the same records, and the largest of any
outcome there can be, which is what the paper plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.categorical.attack import Inference
from auditor.categorical.draws import Codes
from auditor.categorical.law import UniformLaw

Array = NDArray[np.float64]


AT_ONCE = 4096
MOST_OUTCOMES = 2**18
"""Outcomes up to which the largest gap is sought among all that can be; beyond, among those met."""


class Gap(NamedTuple):
    """Mean squared gap over records, its standard error over outcomes, what the attack's own posteriors say it is, and their largest gap.

    The first three are None where no outcome was met twice; the largest is a distance, not squared (xiao2009, eq. 15).
    """

    measured: float | None
    std_error: float | None
    computed: float | None
    largest: float


def belief_gap(x: Codes, copies: Sequence[Codes], law: UniformLaw, together: Inference, alone: Inference) -> Gap:
    """Return the gap.

    Parameters
    ----------
    x : ndarray of shape (n,)
    copies : k ndarrays of shape (n,)
    law : UniformLaw
        As it is stated of these copies.
    together, alone : Inference
        Bayes' rule with all copies, and with the best one.
    """
    s, best = together.prior.size, law.best - 1
    first, outcome, counts = _outcomes(copies, s)
    f = np.zeros((s, s))
    possible = np.arange(s) if law.levels[best] < 1 else np.unique(copies[best])  # a value nobody has is never shown at retention 1
    f[possible] = alone.checked([possible.astype(copies[best].dtype)])
    met = counts >= 2
    distances = _distances(together, [copy[first] for copy in copies], f, best)
    largest = float(np.sqrt(distances.max()))
    every = _every_outcome(law, copies[0].dtype)
    if every is not None:
        largest = max(largest, float(np.sqrt(_distances(together, every, f, best).max())))
    if not met.any():
        return Gap(None, None, None, largest)
    shown = copies[best][first]
    cell, agree = np.unique(outcome.astype(np.int64) * s + x, return_counts=True)
    pairs = np.bincount(cell // s, agree * (agree - 1.0), counts.size)
    cross = np.bincount(cell // s, agree * f[shown[cell // s], cell % s], counts.size)
    n = counts[met].astype(np.float64)
    G = pairs[met] / (n * (n - 1)) - 2 * cross[met] / n + (f**2).sum(axis=1)[shown[met]]
    mean = float(n @ G / n.sum())
    error = float(np.sqrt((n**2) @ (G - mean) ** 2) / n.sum())
    return Gap(mean, error, float(n @ distances[met]) / float(n.sum()), largest)


def _outcomes(copies: Sequence[Codes], s: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return of the different outcomes the first record, each record's outcome, and how many records met it."""
    place = np.zeros(copies[0].size, dtype=np.int64)
    for copy in copies:  # numbered anew after each copy, so that no product overflows
        place = np.unique(place * s + copy, return_inverse=True)[1]
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    return first, place, counts


def _every_outcome(law: UniformLaw, kind: np.dtype[Any]) -> list[Codes] | None:
    """Return every outcome there can be; None where they are too many, or where some combinations of values are impossible."""
    k, s = len(law.levels), law.size
    tied = max(law.levels) >= 1 or (law.multilevel and len(set(law.levels)) < k)
    if s**k > MOST_OUTCOMES or tied:
        return None
    return [np.asarray(part, dtype=kind) for part in np.unravel_index(np.arange(s**k), (s,) * k)]


def _distances(together: Inference, copies: Sequence[Codes], f: Array, best: int) -> Array:
    """Return the squared distance of the two posteriors for each outcome, shape (u,)."""
    found = np.empty(copies[0].size)
    for a in range(0, found.size, AT_ONCE):
        part = [copy[a : a + AT_ONCE] for copy in copies]
        found[a : a + AT_ONCE] = ((together.checked(part) - f[part[best]]) ** 2).sum(axis=1)
    return found

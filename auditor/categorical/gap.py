"""How far apart a coalition's belief and its best copy's are: the squared L2 gap of xiao2009 (eq. 15), measured without a law and computed.

For an outcome o of all copies with n_o records, of which ``c(x)`` have the value x, and best-copy posterior ``f`` there,

    ``G_o = Σ_x c(c − 1) / (n_o (n_o − 1)) − 2 Σ_x (c/n_o) f(x) + Σ_x f(x)²``

has mean ``‖f_o − f‖²`` whatever the copies' law, where ``f_o`` is the coalition's true posterior: without the correction ``c(c − 1)``
the scatter of few records would pass for a gap (the paper drew 10^10 records instead). It is averaged over records whose outcome was
met at least twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.categorical.attack import Inference
from auditor.categorical.draws import Codes

Array = NDArray[np.float64]


class Gap(NamedTuple):
    """Mean squared gap over records, its standard error over outcomes, and what the attack's own posteriors say it is."""

    measured: float
    std_error: float
    computed: float


def belief_gap(x: Codes, copies: Sequence[Codes], best: int, together: Inference, alone: Inference) -> Gap | None:
    """Return the gap, or None when no outcome was met twice.

    Parameters
    ----------
    x : ndarray of shape (n,)
    copies : k ndarrays of shape (n,)
    best : int
        Place of the best copy among them.
    together, alone : Inference
        Bayes' rule with all copies, and with the best one.
    """
    s = together.prior.size
    first, outcome, counts = _outcomes(copies, s)
    f = alone.checked([np.arange(s, dtype=copies[best].dtype)])
    shown = copies[best][first]
    cell, agree = np.unique(outcome.astype(np.int64) * s + x, return_counts=True)
    pairs = np.bincount(cell // s, agree * (agree - 1.0), counts.size)
    cross = np.bincount(cell // s, agree * f[shown[cell // s], cell % s], counts.size)
    met = counts >= 2
    if not met.any():
        return None
    n = counts[met].astype(np.float64)
    G = pairs[met] / (n * (n - 1)) - 2 * cross[met] / n + (f**2).sum(axis=1)[shown[met]]
    mean = float(n @ G / n.sum())
    error = float(np.sqrt((n**2) @ (G - mean) ** 2) / n.sum())
    return Gap(mean, error, _computed(together, copies, f, best, first[met], n))


def _outcomes(copies: Sequence[Codes], s: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return of the different outcomes the first record, each record's outcome, and how many records met it."""
    place = np.zeros(copies[0].size, dtype=np.int64)
    for copy in copies:  # numbered anew after each copy, so that no product overflows
        place = np.unique(place * s + copy, return_inverse=True)[1]
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    return first, place, counts


def _computed(together: Inference, copies: Sequence[Codes], f: Array, best: int, rows: NDArray[np.intp], n: Array) -> float:
    total = 0.0
    for a in range(0, rows.size, 4096):
        part = [copy[rows[a : a + 4096]] for copy in copies]
        distance = ((together.checked(part) - f[part[best]]) ** 2).sum(axis=1)
        total += float(n[a : a + 4096] @ distance)
    return total / float(n.sum())

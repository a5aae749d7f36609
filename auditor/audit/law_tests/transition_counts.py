"""Test how often each value of a copy's source becomes each value of the copy.

Given the source's values each count is a sum of independent indicators. A sum of indicators with
different chances is tested as a binomial of their mean chance, whose tails are longer
(hoeffding1956): the tests raise no more false alarms than their level, at any number of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.types import Array

GROUPS = 64
"""Values of a larger domain are counted by their number modulo this."""
ROUNDING = 1e-13
"""A chance this close to 1 is a rounded 1."""


class Counted(NamedTuple):
    """Transitions from one column to a copy, and their chances.

    Attributes
    ----------
    name : str
        Of the transition, for messages: "copy 2 given copy 1".
    counts : ndarray of shape (s, s)
        Records by source value (row) and value of the copy (column).
    chances : ndarray of shape (s, s)
        ``T``.
    """

    name: str
    counts: NDArray[np.integer[Any]]
    chances: Array


def transition_tests(counted: Iterable[Counted], rows: int) -> list[LawTest]:
    """Return the test of values kept in all, and the test of every pair of values.

    Parameters
    ----------
    counted : iterable of Counted
    rows : int
        Records counted.

    Notes
    -----
    If a share ε of the values to be replaced is kept, the share kept rises from its mean k by
    ``ε (1 − k)``. That is ``ε √((1 − k)/k) √n`` standard deviations.
    """
    kept, cells, telling = Least("retention"), Least("transitions"), 1.0
    for name, counts, chances in counted:
        expected = counts.sum(axis=1, keepdims=True) * chances
        n, k = float(counts.sum()), float(np.trace(expected)) / max(1.0, float(counts.sum()))
        kept.add(
            np.trace(counts)[None],
            np.array([n]),
            np.array([k]),
            f"the share of values kept in {name} is",
        )
        if 0.0 < k < 1.0 - ROUNDING:
            telling = min(telling, math.sqrt((1.0 - k) / k))
        met, mean = grouped(counts), grouped(expected)
        of = met.sum(axis=1, keepdims=True)
        share = np.divide(mean, of, out=np.zeros_like(mean), where=of > 0)
        cells.add(
            met,
            np.broadcast_to(of, met.shape),
            share,
            f"the share of one value that becomes another one in {name} is",
        )
    redrawn = "a share kept of what is to be redrawn"
    return [kept.test(rows)._replace(telling=telling, departure=redrawn), cells.test(rows)]


def grouped(counts: NDArray[Any]) -> NDArray[Any]:
    """Return counts of shape (s, s) by code modulo ``GROUPS``, shape (g, g)."""
    s = len(counts)
    if s <= GROUPS:
        return counts
    turns = math.ceil(s / GROUPS)
    full = np.zeros((turns * GROUPS,) * 2, dtype=counts.dtype)
    full[:s, :s] = counts
    return np.asarray(full.reshape(turns, GROUPS, turns, GROUPS).sum(axis=(0, 2)))


class Least:
    """The least likely of many binomial counts, two-sided (Bonferroni)."""

    def __init__(self, statistic: str) -> None:
        self._statistic, self._tests = statistic, 0
        self._least = (1.0, 0.0, 0.0, "no share")

    def add(self, met: NDArray[Any], of: NDArray[Any], chance: Array, where: str) -> None:
        """Test counts that have one shape; those of no records are left out."""
        some = of > 0
        met, of, chance = met[some], of[some], np.clip(chance[some], 0.0, 1.0)
        if not met.size:
            return
        chance = np.where(chance > 1.0 - ROUNDING, 1.0, chance)
        # Chernoff: a tail is at most exp(−n KL). The exact tail is taken of the count where that is
        # least.
        expected = of * chance
        far = scipy.special.rel_entr(met, expected) + scipy.special.rel_entr(
            of - met, of - expected
        )
        k = int(np.argmax(far))
        p = min(1.0, 2.0 * _tail(int(met[k]), int(of[k]), float(chance[k])))
        self._tests += met.size
        if p < self._least[0]:
            self._least = (p, float(met[k] / of[k]), float(chance[k]), where)

    def test(self, rows: int) -> LawTest:
        """Return all counts as one test."""
        p, observed, expected, where = self._least
        tests = max(1, self._tests)
        return LawTest(self._statistic, min(1.0, tests * p), tests, rows, observed, expected, where)


def _tail(met: int, of: int, chance: float) -> float:
    """Return the chance of a count at least as far on the same side of its mean."""
    if met <= of * chance:
        met, chance = of - met, 1.0 - chance
    return float(scipy.special.betainc(met, of - met + 1, chance)) if met > 0 else 1.0

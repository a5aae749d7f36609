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

from auditor.audit.law_tests.battery import NOTHING, Finding, log_p
from auditor.process.deferred import scipy
from auditor.results.evidence import LawTest
from auditor.types import Array

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
    kept, cells, telling, kept_tests, cell_tests = [NOTHING], [NOTHING], 1.0, 0, 0
    for name, counts, chances in counted:
        of = counts.sum(axis=1)
        n = float(of.sum())
        if not n:
            continue
        k = float(of @ np.diag(chances)) / n
        share = f"the share of values kept in {name} is"
        kept.append(
            least_likely(np.trace(counts)[None, None], np.array([n]), np.full((1, 1), k), share)
        )
        if 0.0 < k < 1.0 - ROUNDING:
            telling = min(telling, math.sqrt((1.0 - k) / k))
        met = of > 0
        share = f"the share of one value that becomes another one in {name} is"
        cells.append(least_likely(counts[met], of[met], chances[met], share))
        kept_tests, cell_tests = kept_tests + 1, cell_tests + int(met.sum()) * len(of)
    retention = max(kept).as_test("retention", kept_tests, rows, telling)
    return [
        retention._replace(departure="a share kept of what is to be redrawn"),
        max(cells).as_test("transitions", cell_tests, rows, 1.0),
    ]


def least_likely(met: NDArray[Any], of: NDArray[Any], chance: Array, where: str) -> Finding:
    """Return the least likely of some binomial counts, two-sided.

    Parameters
    ----------
    met, chance : ndarray of shape (k, s)
    of : ndarray of shape (k,)
    where : str
    """
    chance = np.where(chance > 1.0 - ROUNDING, 1.0, np.clip(chance, 0.0, 1.0))
    of = np.broadcast_to(of[:, None], met.shape)
    # Chernoff: a tail is at most exp(−n KL). The exact tail is taken of the count where that is
    # least.
    entropy, mean = scipy.special.rel_entr, of * chance
    place = np.unravel_index(
        (entropy(met, mean) + entropy(of - met, of - mean)).argmax(), met.shape
    )
    count, n, p = int(met[place]), int(of[place]), float(chance[place])
    above, q = (count, p) if count > n * p else (n - count, 1.0 - p)
    tail = float(scipy.special.betainc(above, n - above + 1, q)) if above > 0 else 1.0
    return Finding(float(log_p(min(1.0, 2.0 * tail))), count / n, p, where)

"""Conditional law of one categorical copy given another and the original.

Equality among x, y_i and y_j has five patterns. Each occurs r times as often as for copies that are
independent given x:

    ``r_k = (records that show pattern k + 1) / (records expected to by T_j + 1)``
    ``P(y_j | x, y_i) = T_j[x, y_j] · r_k(x, y_i, y_j) / Z[x, y_i]``, Z such that chances sum to 1

For independent copies every ``r`` is 1. For copies that treat all values equally, like a multilevel
release's, this is the exact law. Five numbers can be estimated from few records in any domain. With
enough records per cell (s³ cells) a table of counts is estimated, with ``w`` records by that law:
``(n_xij + w·P(y_j | x, y_i)) / (n_xi + w)``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array, Codes

ALL, ONLY_I, ONLY_J, TOGETHER, NONE = range(5)
"""Patterns: all three agree; ``y_i`` alone shows x; ``y_j`` alone does; the copies agree on another
value; no two agree.
"""

BY_LAW = 20.0
"""Prior weight ``w`` in records of the simpler law, against overfitting of few records."""


class PairLaw(NamedTuple):
    """The law of copy j given the original and copy i.

    Attributes
    ----------
    strength : float
        Gain in log-likelihood over independence, on the records used for estimation.
    T : ndarray of shape (s, s)
        ``T_j``.
    ratios : ndarray of shape (5,)
        ``r``.
    total : ndarray of shape (s, s)
        ``Z``, by x and y_i.
    table : ndarray of shape (s, s, s) or None
        By x, y_i and y_j.
    """

    strength: float
    T: Array
    ratios: Array
    total: Array
    table: Array | None = None

    def chances(self, y_i: Codes, y_j: Codes) -> Array:
        """Return ``P(y_j | x, y_i)`` of records for every x, shape (b, s)."""
        if self.table is not None:
            return np.asarray(self.table[:, y_i, y_j].T)
        r, rows, same = self.ratios, np.arange(y_i.size), y_i == y_j
        found = self.T.T[y_j] * np.where(same, r[TOGETHER], r[NONE])[:, None]
        found[rows, y_j] = self.T[y_j, y_j] * r[ONLY_J]
        found[rows, y_i] = self.T[y_i, y_j] * np.where(same, r[ALL], r[ONLY_I])
        return np.asarray(found / self.total.T[y_i])


def estimated_pair(x: Codes, y_i: Codes, y_j: Codes, T_j: Array, table: bool) -> PairLaw:
    """Return the law of copy j given the original and copy i.

    From codes of shape (n,); ``table`` requests an estimate of every cell.
    """
    met = np.bincount(_pattern(x, y_i, y_j), minlength=5)
    by_law = _expected(x, y_i, T_j)
    ratios = (met + 1.0) / (by_law + 1.0)
    some = met > 0
    strength = float(met[some] @ np.log(met[some] / np.maximum(by_law[some], 1e-9)))
    law = PairLaw(strength, T_j, ratios, _total(T_j, ratios))
    return law._replace(table=_table(x, y_i, y_j, law)) if table else law


def _pattern(x: Codes, y_i: Codes, y_j: Codes) -> NDArray[np.intp]:
    off = np.where(y_j == x, ONLY_J, np.where(y_i == y_j, TOGETHER, NONE))
    return np.asarray(np.where(y_i == x, np.where(y_j == x, ALL, ONLY_I), off), dtype=np.intp)


def _expected(x: Codes, y_i: Codes, T_j: Array) -> Array:
    keeps, follows, shown = T_j[x, x], T_j[x, y_i], y_i == x
    rest = np.clip(1.0 - keeps - np.where(shown, 0.0, follows), 0.0, None)
    sums = [keeps[shown], rest[shown], keeps[~shown], follows[~shown], rest[~shown]]
    return np.array([float(part.sum()) for part in sums])


def _total(T_j: Array, r: Array) -> Array:
    keeps = np.diag(T_j)[:, None]
    Z = keeps * r[ONLY_J] + T_j * r[TOGETHER] + np.clip(1.0 - keeps - T_j, 0.0, None) * r[NONE]
    np.fill_diagonal(Z, keeps[:, 0] * r[ALL] + (1.0 - keeps[:, 0]) * r[ONLY_I])
    return np.asarray(Z)


def _table(x: Codes, y_i: Codes, y_j: Codes, law: PairLaw) -> Array:
    s = len(law.T)
    keys = (x.astype(np.intp) * s + y_i) * s + y_j
    counts = np.bincount(keys, minlength=s**3).reshape(s, s, s)
    grid = np.indices((s, s)).reshape(2, -1)
    by_law = law.chances(*grid).T.reshape(s, s, s)
    return np.asarray((counts + BY_LAW * by_law) / (counts.sum(axis=2, keepdims=True) + BY_LAW))

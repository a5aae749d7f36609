"""What pooling categorical copies buys, judged without trusting the scheme: a channel learnt from the originals themselves.

An attack that believes the stated law is blind to a scheme that draws otherwise. The auditor has the originals: for the best copy b of a
coalition and each other copy j it learns, on one half of the row groups, how likely each pattern of agreement between the two is
under a candidate value, and uses that on the other half, both ways round. For schemes that treat all values alike (every one here) this is
the whole law of the pair; its reconstruction error against that of copy b alone, learnt likewise, is the gain.

| symbol | meaning |
| --- | --- |
| pattern | of (candidate z, y_b, y_j): all equal; only b right; only j right; b = j ≠ z; all different |
| ``L`` | learnt chance of one such outcome given z: share of the pattern over the number of outcomes in it |
| ``P(x)`` | ``π(x)L(x) / Σ_z π(z)L(z)``: a sum of three terms, since all values but y_b and y_j look alike |

Not covered: leaks that need three copies at once and show in no pair, and channels that treat values differently.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from auditor.categorical.draws import Codes
from auditor.expectation import Pooling
from auditor.scenario.coalitions import Coalition
from auditor.statistics import jackknife_error

Array = NDArray[np.float64]

PATTERNS = 5


class PairGains:
    """Learns and judges pairs of copies; each pair once, whatever number of coalitions it is in."""

    def __init__(self, x: Codes, prior: Array, groups: NDArray[np.intp], copy: Callable[[int], Codes], levels: tuple[float, ...]) -> None:
        self._x, self._prior, self._groups, self._copy, self._levels = x, prior, groups, copy, levels
        self._size = prior.size
        self._count = int(groups.max()) + 1
        self._errors: dict[tuple[int, int], Array] = {}

    def evidence(self, coalition: Coalition, sufficient: bool) -> Pooling:
        """Return what pooling buys one coalition: the largest gain of its best copy with another one."""
        best = max(coalition, key=lambda copy: (self._levels[copy - 1], -copy))
        found = [self._gain(best, other) for other in coalition if other != best]
        gain, error = max(found, key=lambda pair: pair[0] - 2.0 * pair[1]) if found else (np.nan, np.nan)
        return Pooling(sufficient, (gain,), (error,), max(1, self._count - 1))

    def _gain(self, best: int, other: int) -> tuple[float, float]:
        pair, alone = self._error(best, other), self._error(best, best)
        total = alone.sum()
        if total <= 0:
            return 0.0, 0.0
        left_pair, left_alone = pair.sum() - pair, total - alone
        gains = 1.0 - np.divide(left_pair, left_alone, out=np.ones_like(left_pair), where=left_alone > 0)
        return float(1.0 - pair.sum() / total), float(jackknife_error(gains))

    def _error(self, b: int, j: int) -> Array:
        """Return the reconstruction error summed over each row group, cross-fitted, shape (G,)."""
        if (b, j) not in self._errors:
            self._errors[(b, j)] = self._cross_fit(self._copy(b), self._copy(j))
        return self._errors[(b, j)]

    def _cross_fit(self, y_b: Codes, y_j: Codes) -> Array:
        pattern = patterns(self._x, y_b, y_j)
        half = self._groups % 2
        counts = np.bincount(half * PATTERNS + pattern, minlength=2 * PATTERNS).reshape(2, PATTERNS)
        error = np.empty(self._x.size)
        for train in (0, 1):
            test = half != train
            L = likelihoods(counts[train], self._size)
            error[test] = 1.0 - truth_posterior(self._x[test], y_b[test], y_j[test], pattern[test], L, self._prior)
        return np.asarray(np.bincount(self._groups, error, self._count), dtype=np.float64)


def patterns(x: Codes, y_b: Codes, y_j: Codes) -> NDArray[np.intp]:
    """Return the pattern of agreement of each record: 0 all equal, 1 only b right, 2 only j right, 3 b = j ≠ x, 4 all different."""
    right_b, right_j = x == y_b, x == y_j
    return np.where(right_b, np.where(right_j, 0, 1), np.where(right_j, 2, np.where(y_b == y_j, 3, 4))).astype(np.intp)


def likelihoods(counts: NDArray[np.intp], size: int) -> Array:
    """Return the learnt chance of one outcome of each pattern given the value, shape (5,)."""
    outcomes = np.array([1, size - 1, size - 1, size - 1, max(1, (size - 1) * (size - 2))], dtype=np.float64)
    return np.asarray((counts + 0.5) / (counts.sum() + 0.5 * PATTERNS) / np.maximum(outcomes, 1.0))


def truth_posterior(x: Codes, y_b: Codes, y_j: Codes, pattern: NDArray[np.intp], L: Array, prior: Array) -> Array:
    """Return the posterior of the truth of each record, shape (n,)."""
    agree, q_b, q_j = y_b == y_j, prior[y_b], prior[y_j]
    # Σ_z π(z) L(z): where the two agree z is that value or another; else it is b's, j's or neither's
    evidence = np.where(agree, q_b * L[0] + (1.0 - q_b) * L[3], q_b * L[1] + q_j * L[2] + (1.0 - q_b - q_j) * L[4])
    return np.asarray(prior[x] * L[pattern] / evidence)

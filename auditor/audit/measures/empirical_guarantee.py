"""Audited lower bounds on what added noise guarantees: copies drawn of two records, told apart by the best test there is for the law.

| symbol | meaning | shape |
| --- | --- | --- |
| ``x, x + Δ`` | the two records within the stated bounds that the law tells apart best | (N,) |
| ``a`` | weights of the coalition's combination of least noise | (k,) |
| ``T`` | ``Σ_i a_i (y_i − x)ᵀ K_0⁻¹ Δ``, the log-likelihood ratio of Gaussian noise but for factors | scalar |
| ``L, U`` | Clopper–Pearson bounds of the test's power under x + Δ and of its false alarms under x | scalars |

Of Gaussian and Skellam noise the test is ``T > ΔᵀK_0⁻¹Δ/2``, and ``Φ⁻¹(L) − Φ⁻¹(U)`` is no more
than μ; of one value it is the best one there is, of Skellam noise too. Of Laplace and geometric
noise it is «every value of every copy that counts lies at or beyond x + Δ», which is ``e^ε`` times
as likely under x + Δ as under x, and of uniform noise «some value of some copy lies where noise
cannot bring x»: of both ``ln(L/U)`` is no more than ε. Tests are chosen before anything is drawn;
the confidence is shared among the coalitions.

Reference: clopper1934. Fails to come near where the event is too rare for the trials: μ above 8, ε
above ``ln trials`` (that of uniform noise is infinite), or many values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.release import Release
from auditor.audit.measures.empirical_epsilon import lower_bound, upper_bound
from auditor.numerics.combination import best_unbiased_combination
from auditor.process.deferred import scipy
from auditor.schemes.base.guarantees import Guarantees
from auditor.schemes.base.noise_law import KroneckerNoise, undo_root
from auditor.types import Array, Coalition

CHUNK_ROWS = 2**14
"""Trials drawn at once; part of what names the random streams, so that it changes no figure only as
long as it stays."""
ON_LATTICE = 0.25
"""Of a unit: how far a value of whole units may be off by rounding and still count as at the other
record."""
REACH = np.sqrt(3.0) * (1.0 + 1e-9)
"""Deviations up to which uniform noise lies, and what rounding may add."""


@dataclass(frozen=True)
class Found:
    """What an audit found of one coalition: which metric, and a lower bound on it, at least 0."""

    metric: str
    value: float


def audited(
    release: Release,
    stated: Guarantees,
    coalitions: Sequence[Coalition],
    trials: int,
    confidence: float,
) -> list[Found]:
    """Return a lower bound for every coalition, all of which hold together with the stated confidence.

    Parameters
    ----------
    release : Release
        Its scheme draws the copies; the table is not looked at.
    stated : Guarantees
    coalitions : sequence of tuple of int
    trials : int
        For each of the two records.
    confidence : float
        In (0, 1).

    Returns
    -------
    list of Found
        Empty where no test is known: for noise of no one shape or that follows on from record to
        record, and an attribute without any.
    """
    law = stated.law
    if (
        not isinstance(law, KroneckerNoise)
        or law.serial is not None
        or not coalitions
        or (np.linalg.eigvalsh(law.shape) <= 0.0).any()
    ):
        return []
    test: Test
    if law.distribution in ("gaussian", "skellam"):
        corner = stated.length([1]).corner if law.distribution == "gaussian" else stated.changes
        test = ShiftTest(law, corner, coalitions)
    elif law.distribution == "uniform":
        test = OutsideTest(law, stated.length([1]).corner, coalitions)
    else:
        test = BeyondTest(stated, coalitions)
    power, alarms = (
        sum((test.hits(copies) for copies in drawn), test.none)
        for drawn in _pair(release, test.change, trials)
    )
    alpha = (1.0 - confidence) / (2 * len(coalitions))
    values = test.bound(lower_bound(power, trials, alpha), upper_bound(alarms, trials, alpha))
    return [Found(test.metric, max(0.0, float(value))) for value in values]


def _pair(release: Release, change: Array, trials: int) -> Iterator[Iterator[Array]]:
    """Yield the copies of the changed record and those of the other, in chunks: what copies add to the other record, (b, M, N)."""
    low, high = np.array([release.table.bounds[name] for name in release.table.attributes]).T
    start = np.where(change > 0, low, high)
    for which, record in (("changed", start + change), ("unchanged", start)):
        yield _drawn(release, which, record, start, trials)


def _drawn(
    release: Release, which: str, record: Array, start: Array, trials: int
) -> Iterator[Array]:
    key = replace(release.key, scheme=f"{release.key.scheme} trials of the {which} record")
    # of the first of several batches
    sampler = release.scheme.sampler(release.levels, release.moments.scale, key)
    for index, first in enumerate(range(0, trials, CHUNK_ROWS)):
        rows = min(CHUNK_ROWS, trials - first)
        copies = [np.empty((rows, record.size)) for _ in release.levels]
        sampler.block(index, np.tile(record, (rows, 1)), copies)
        yield np.stack(copies, axis=1) - start


class ShiftTest:
    """Gaussian, Skellam: whether the best combination of the copies lies nearer to the changed record, in the noise's own metric."""

    metric = "empirical_gaussian_dp"

    def __init__(self, law: KroneckerNoise, change: Array, coalitions: Sequence[Coalition]) -> None:
        self.change = change
        self._direction = np.linalg.solve(law.shape, change)
        self._weights = np.zeros((law.copies, len(coalitions)))
        for place, coalition in enumerate(coalitions):
            index = np.asarray(coalition, dtype=np.intp) - 1
            self._weights[index, place] = best_unbiased_combination(
                law.level_covariance[np.ix_(index, index)]
            )[0]
        self.none = np.zeros(len(coalitions), dtype=np.intp)

    def hits(self, copies: Array) -> NDArray[np.intp]:
        """Return how many trials each coalition takes for the changed record, shape (C,)."""
        found = (copies @ self._direction) @ self._weights > 0.5 * (self.change @ self._direction)
        return np.asarray(np.count_nonzero(found, axis=0))

    def bound(self, power: Array, alarms: Array) -> Array:
        """Return ``Φ⁻¹(L) − Φ⁻¹(U)``: of ``N(0, 1)`` and ``N(μ, 1)`` no test has more."""
        return np.asarray(scipy.special.ndtri(power) - scipy.special.ndtri(alarms))


class RatioTest:
    """An event that is at most ``e^ε`` times as likely under the changed record as under the other."""

    metric = "empirical_epsilon"

    def __init__(self, change: Array, copies: int, counted: Sequence[Coalition]) -> None:
        self.change = change
        self.counted = np.zeros((copies, len(counted)))
        for place, held in enumerate(counted):
            self.counted[np.asarray(held, dtype=np.intp) - 1, place] = 1.0
        self.none = np.zeros(len(counted), dtype=np.intp)

    def bound(self, power: Array, alarms: Array) -> Array:
        """Return ``ln(L/U)``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(power) - np.log(alarms))


class BeyondTest(RatioTest):
    """Laplace and geometric noise: whether every value of every copy that counts lies at or beyond the changed record."""

    def __init__(self, stated: Guarantees, coalitions: Sequence[Coalition]) -> None:
        law = stated.law
        assert isinstance(law, KroneckerNoise)
        levels, unit = (
            np.diag(law.level_covariance),
            np.zeros(law.width) if law.units is None else law.units,
        )
        best = [(min(held, key=lambda copy: float(levels[copy - 1])),) for held in coalitions]
        super().__init__(stated.changes, law.copies, best if law.one_process else coalitions)
        self._beyond = self.change - ON_LATTICE * unit

    def hits(self, copies: Array) -> NDArray[np.intp]:
        """Return how many trials each coalition takes for the changed record, shape (C,)."""
        found = (copies < self._beyond).any(axis=2).astype(np.float64) @ self.counted == 0.0
        return np.asarray(np.count_nonzero(found, axis=0))


class OutsideTest(RatioTest):
    """Uniform noise: whether some value of some copy, brought back to independent numbers, lies beyond where these end."""

    def __init__(self, law: KroneckerNoise, change: Array, coalitions: Sequence[Coalition]) -> None:
        super().__init__(change, law.copies, coalitions)
        self._undo = undo_root(law.shape).T
        self._reach = REACH * np.sqrt(np.diag(law.level_covariance))[:, None]

    def hits(self, copies: Array) -> NDArray[np.intp]:
        """Return how many trials each coalition takes for the changed record, shape (C,)."""
        found = (np.abs(copies @ self._undo) > self._reach).any(axis=2).astype(
            np.float64
        ) @ self.counted > 0.0
        return np.asarray(np.count_nonzero(found, axis=0))


Test = ShiftTest | BeyondTest | OutsideTest

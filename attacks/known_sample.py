"""Known sample against a rotation: match the copy's principal axes to those of a sample from the same population.

A rotation turns principal axes with the records; which way each axis points is found by turning the sample until it looks like the copy.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| ``S`` | the sample, as rows | (s, N) | liu2008, section 4.2 |
| ``V_X, V_Y`` | eigenvectors of the sample's and of the copy's covariance, by falling eigenvalue | (N, N) | Corollary 12.4 |
| ``D`` | signs | (N,) | |
| ``M̂`` | ``V_Y D V_Xᵀ`` | (N, N) | Corollary 12.4 |
| ``x̂`` | ``M̂ᵀ y`` | (N,) | Protocol 4, step 3 |
| ``E(D)`` | ``2 E‖V_Y D V_Xᵀ s − y‖ − E‖s − s'‖ − E‖y − y'‖`` | scalar | szekely2004 |

Protocol 4 prints ``V_X D V_Xᵀ S`` in step 2; it must be ``V_Y D V_Xᵀ S``. The statistic is compared, not its p-value, and on data that
are *not* centred: the mean says which way an axis points just as skewness does. Only its first term depends on D.

The paper tries all 2^N signs and calls the technique infeasible in high dimensions. Here each axis first takes the sign that its own
projections favour, by N one-dimensional energy statistics on thousands of rows: in many dimensions E is too noisy to be asked about an
axis that has answered. Of the axes that favour neither sign all combinations are tried up to ``exhaustive`` of them; beyond, they are
flipped one at a time while E falls: at most N evaluations a sweep, a few sweeps.

A turn that is a little off moves records by that much of their distance from what they are rotated about. So they are rotated about the
means of sample and copy, which are known to belong together, once those are farther off than they are ill known:
``x̂ = s̄ + M̂ᵀ (y − ȳ)`` where ``s̄ᵀ Q s̄`` is above ``tr K (1/s + 1/m)``, Q the axes' mean squared turn.

What is left is known to first order once every axis has answered for itself and turns little (``_axis_error``): the turn between
the sample's axes and the copy's, and the copy's noise. Else, or where noisy copies are rotated onto each other first, no theory is given.

Wins with distinct eigenvalues and data that are skewed or off the origin. Fails on data symmetric about 0 along an axis: no statistic can
tell its signs; and where eigenvalues nearly coincide, as axes are then arbitrary within their plane. Copies with noise are rotated onto
each other and averaged first (the survey has one copy and no noise).

Not for a random projection, whose matrix turns no axis of the data into one of the copy: averaged over the matrix the copy's covariance is
``σ² tr K · I`` (liu2008, end of section 4.2). Six skewed attributes whose deviations grow by a fifth each: where 1.7 % of a rotated table's
variance stays unknown, of a projected one more than by guessing the mean (1.3, ten matrices). But given one matrix it is ``M K Mᵀ``, which
keeps the widest axis of very uneven data: at growth by a half 0.5, from 0.1 to 1.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from auditor.plugin import (
    Array,
    Cost,
    KnownSample,
    NotApplicable,
    PluginParameters,
    Reconstruction,
    RowAttack,
    UnpairedRecords,
    View,
    register,
    stream,
)

from ._aligned import Alignment, align
from ._axis_error import turning
from ._energy import SignSearch, univariate_energy

MOST_SWEEPS = 20

DECIDED = 5.0
"""An axis whose two signs' statistics differ by so many times what chance makes of equal distributions is decided by itself."""

SMALL_TURN = 0.006
"""Mean squared turn of an axis up to which first-order theory is given. On exponential attributes the error is some 5 % above it there, and
some 40 % at three times as much (500 splits of one table)."""

AXIS_ROWS = 20_000
"""Rows that an axis is looked at by itself in; sorting so many costs milliseconds."""


@register
class KnownSampleAttack(RowAttack):
    """Matches the principal axes of a rotated copy to those of a sample, and their signs by an energy statistic."""

    name = "known-sample"
    attack_kind = "with a sample"
    reference = "liu2006; liu2008, section 4.2, Protocol 4"
    families = frozenset({"rotation", "rotation-noise"})
    knowledge = (KnownSample.name,)
    assumes = "The adversary has other draws from the same population; records are independent draws; the map is orthogonal."
    wins = "Wins on skewed or off-centre data with distinct eigenvalues; on data symmetric about 0 the signs are coin tosses."
    cost = Cost(1.2e-3, 6e-7)

    class Parameters(PluginParameters):
        """How signs are searched for."""

        exhaustive: Annotated[int, Field(ge=0, le=16)] = Field(8, description="axes left open up to which every combination is tried")
        rows: Annotated[int, Field(ge=10, le=5000)] = Field(1000, description="rows of sample and copy that the statistic compares")

    def fit(self, view: View, blocks: Iterable[list[Array]]) -> Reconstruction:
        """Return the rotation estimated for one coalition."""
        S = view.need(UnpairedRecords).original
        if len(S) < 2:
            raise NotApplicable("needs a sample of at least two records")
        alignment = align(view, blocks)
        mean, covariance, some, count = _describe(alignment, blocks, AXIS_ROWS, stream(view.seed, self.name))
        moved = bool(view.scheme.get("translation", False))
        start, to = (S.mean(axis=0), mean) if moved else (np.zeros(view.width), np.zeros(view.width))
        V_X, V_Y = axes(np.cov(S, rowvar=False, ddof=1)), axes(covariance)
        signs = choose_signs((S[:AXIS_ROWS] - start) @ V_X, (some - to) @ V_Y, self.parameters.exhaustive, self.parameters.rows)
        V_Y = V_Y * signs.values
        variances = np.einsum("ij,ik,kj->j", V_Y, covariance, V_Y)
        z = (some - mean) @ V_Y
        quiet = not min(view.levels, default=0.0)
        # Without noise the copy's rows are the population's, and mostly more than the sample's.
        Q = turning(z if quiet else (S - S.mean(axis=0)) @ V_X, variances, len(S)) + turning(z, variances, count)
        known = not signs.open.size and np.diag(Q).max() < SMALL_TURN and np.count_nonzero(alignment.weights) == 1
        apart = float(np.trace(covariance)) * (1 / len(S) + 1 / count)
        middle = (S.mean(axis=0) - start) @ V_X
        centred = moved or float(middle @ Q @ middle) > apart
        if centred:
            start, to = S.mean(axis=0), mean
        left = LeftOver(V_X, Q, start, _noise_left(view, covariance) + centred * apart)
        return TurnedBack(alignment, V_Y @ V_X.T, start, to, left if known else None)


def _noise_left(view: View, covariance: Array) -> float:
    """Return ``E‖R‖²`` of the least noisy copy, whose covariance has the trace ``(1 + σ²) tr K_X``."""
    level = min(view.levels, default=0.0)
    return float(np.trace(covariance)) * level / (1.0 + level)


@dataclass(frozen=True, eq=False)
class LeftOver:
    """What theory expects the attack to leave.

    Attributes
    ----------
    axes : ndarray of shape (N, N)
        ``V_X``.
    turn : ndarray of shape (N, N)
        ``Q``.
    start : ndarray of shape (N,)
        What records are rotated about.
    apart : float
        Squared error that is the same for every record.
    """

    axes: Array = field(repr=False)
    turn: Array = field(repr=False)
    start: Array = field(repr=False)
    apart: float

    def of(self, x: Array) -> Array:
        """Return the expected squared error of each record, shape (b,)."""
        z = (x - self.start) @ self.axes
        return np.asarray(np.einsum("bi,ij,bj->b", z, self.turn, z, optimize=True) + self.apart)


class TurnedBack(Reconstruction):
    """``M̂ᵀ (y − to) + start``."""

    def __init__(self, alignment: Alignment, M: Array, start: Array, to: Array, left: LeftOver | None) -> None:
        self._alignment, self.matrix, self._start, self._to, self._left = alignment, M, start, to, left

    def rows(self, copies: Sequence[Array]) -> Array:
        """Return the pooled copy rotated back."""
        return np.asarray(self._start + (self._alignment.pooled(copies) - self._to) @ self.matrix)

    def expected(self, x: Array) -> Array | None:
        """Return the errors to first order, if signs and axes are settled."""
        return None if self._left is None else self._left.of(x)


def _describe(alignment: Alignment, blocks: Iterable[list[Array]], rows: int, rng: np.random.Generator) -> tuple[Array, Array, Array, int]:
    """Return mean and covariance of the pooled copy, a random choice of its rows, and how many it has."""
    kept, keys, count = [], [], 0
    total: Array | None = None
    products: Array = np.zeros(())
    shift: Array = np.zeros(())
    for copies in blocks:
        y = alignment.pooled(copies)
        if not len(y):
            continue
        if total is None:
            shift, total, products = y.mean(axis=0), np.zeros(y.shape[1]), np.zeros((y.shape[1],) * 2)
        v = y - shift
        total, products, count = total + v.sum(axis=0), products + v.T @ v, count + len(y)
        key = rng.random(len(y))
        least = np.argsort(key)[:rows]
        kept.append(y[least])
        keys.append(key[least])
    if total is None:
        raise NotApplicable("has no released row to look at")
    mean = total / count
    some = np.concatenate(kept)[np.argsort(np.concatenate(keys))[:rows]]
    return shift + mean, products / count - np.outer(mean, mean), some, count


def axes(covariance: Array) -> Array:
    """Return orthonormal eigenvectors as columns, largest eigenvalue first, shape (N, N)."""
    return np.linalg.eigh(np.atleast_2d(covariance))[1][:, ::-1]


class Signs(NamedTuple):
    """Signs of axes, shape (N,), and which axes did not decide their own, shape (any,)."""

    values: Array
    open: NDArray[np.intp]


def choose_signs(a: Array, b: Array, exhaustive: int, rows: int) -> Signs:
    """Return the signs D that bring ``a·D`` nearest to ``b`` by the energy statistic.

    Parameters
    ----------
    a : ndarray of shape (s, N)
        The sample along its own axes, not centred.
    b : ndarray of shape (m, N)
        The copy along its own.
    exhaustive : int
        Try all combinations of up to so many axes that do not decide their own sign; beyond, flip single ones while the statistic falls.
    rows : int
        Of either, for the statistic over all axes; a single axis uses all there are.

    Notes
    -----
    Axes are brought to the sample's standard deviation 1: else the widest would drown what the others say.
    """
    N, scale = a.shape[1], a.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    a, b = a / scale, b / scale
    favour = np.array([univariate_energy(-a[:, j], b[:, j]) - univariate_energy(a[:, j], b[:, j]) for j in range(N)])
    # Of two samples of one distribution the statistic is (1/s + 1/m) E|p − p'| on average; E|p − p'| is near 1 at standard deviation 1.
    open_ = np.flatnonzero(np.abs(favour) < DECIDED * (1.0 / len(a) + 1.0 / len(b)))
    search = SignSearch(a[:rows], b[:rows], np.where(favour >= 0, 1.0, -1.0))
    if open_.size <= exhaustive:
        return Signs(search.best_of_all(open_), open_)
    for _ in range(MOST_SWEEPS):
        if not search.sweep(open_):
            break
    return Signs(search.signs, open_)

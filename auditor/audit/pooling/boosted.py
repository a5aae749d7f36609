"""What boosted trees gain by pooling: whether what other copies add foretells what the best one leaves unknown, in rows not learnt from.

Second moments cannot see that a difference of copies, uncorrelated with the noise and the data, gives them away by its bands, its decimals
or its signs. The auditor has ``X``, so a learner can be taught on one half of the rows, and judged on the other, both ways round.

| symbol | meaning | shape |
| --- | --- | --- |
| ``b`` | the coalition's copy with least noise | |
| ``r`` | ``Z_b`` less its regression on ``Y_b``: what the best linear guess from the best copy leaves, and so does ``X`` | (n, N) |
| ``f`` | trees that foretell r from ``Y_b`` | |
| ``g`` | trees that foretell ``r − f`` from ``Y_b``, differences ``D`` of copies and what ``difference_features`` reads from these | |
| ``g'`` | the same learner, shown *another record's* ``D`` with the record's own ``Y_b`` | |
| ``e, e'`` | ``(r − f − g)²`` and ``(r − f − g')²`` in rows not learnt from | (n, N) |
| gain | ``Σ (e' − e) / Σ e'`` by attribute, its standard error that of a mean over rows | (N,) |

Of lawful copies D is independent of ``(X, Y_b)``, so that g and g' see data of one law: their errors are exchangeable and the expected gain
is 0, for any table. (Against trees that see ``Y_b`` alone the gain would be less than 0 by what it costs to learn from columns that say
nothing, and that cost would hide small leaks.) *Not checked*: rows beyond those looked at, and codes that the learner does not break: a
cipher's output is such a code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from auditor.audit.numeric.limits import FEWEST_TREE_ROWS, TREE_FITS, TREE_ROWS, TREE_TARGETS, trees_shown
from auditor.audit.pooling.difference_features import Differences, in_own_deviations
from auditor.audit.pooling.noise_dependence import noise_levels
from auditor.numerics.boosted_trees import Task, foretold
from auditor.results.evidence import BoostedGain
from auditor.schemes.base.noise_law import NoiseLaw, not_known_to_gain, undo_root
from auditor.types import Array, Coalition

MOST_VALUES = 2**23
"""Values of copies that rows are taken for; of hundreds of copies they are fewer."""
KNOWN = 1e-9
"""What the best copy leaves unknown of an attribute, in deviations of the noise or the data: as little is rounding."""
PARTS = slice(1), slice(1, None)
"""What may be done apart: the widest coalition, and the others, which have no more rows together than that one."""
RUN = 64
"""Neighbouring rows that fall in one half, so that records which are alike are not in both."""


def boosted_gains(
    coalitions: Sequence[Coalition], x: Array, copies: Sequence[Array], law: NoiseLaw | None, part: slice = slice(None)
) -> dict[Coalition, BoostedGain]:  # fmt: skip
    """Return what trees gain in every coalition of two copies or more of which no law says that pooling gains.

    Of coalitions with one best copy only those are looked at that no other contains: what a part gives away the whole does too, and
    ``BoostedGain.copies`` says which was looked at. Coalitions for which there are too few rows, or too many others or attributes, are left
    out.

    Parameters
    ----------
    coalitions : sequence of tuple of int
    x, copies : ndarray of shape (n, N), sequence of M such arrays
        Rows of the table in runs of neighbours, and of every copy.
    law : NoiseLaw or None
        Says which copy of a coalition has least noise; without it, the rows do.
    part : slice
        Of those that are looked at, the widest first (``PARTS``): gains of others, and of what they hold, are left out.
    """
    whole = np.isfinite(x).all(axis=1) & np.all([np.isfinite(copy).all(axis=1) for copy in copies], axis=0)
    x, copies = x[whole], [copy[whole] for copy in copies]
    wide = not_known_to_gain(coalitions, law)
    if len(x) < FEWEST_TREE_ROWS or not wide:
        return {}
    levels = _measured(x, copies) if law is None else noise_levels(law)
    ordered = {one: sorted(one, key=lambda copy: (levels[copy - 1], copy)) for one in wide}
    within = {one: _widest(one, ordered) for one in wide}
    fitted = sorted(set(within.values()), key=lambda one: (-len(one), one))[: min(TREE_FITS, TREE_TARGETS // x.shape[1])]
    few = TREE_ROWS // max(1, len(fitted) - 1)
    gains = {one: _gain(ordered[one], x, copies, law, few if place else TREE_ROWS) for place, one in list(enumerate(fitted))[part]}
    return {one: gains[within[one]] for one in wide if within[one] in gains}


def _measured(x: Array, copies: Sequence[Array]) -> Array:
    """Return how noisy each copy is in these rows, attributes in units of their variance, shape (M,)."""
    own = np.where(x.var(axis=0) > 0, x.var(axis=0), 1.0)
    return np.array([((copy - x).var(axis=0) / own).sum() for copy in copies])


def _widest(coalition: Coalition, ordered: Mapping[Coalition, list[int]]) -> Coalition:
    """Return the widest of the coalitions that hold this one and have its best copy."""
    holding = [one for one in ordered if ordered[one][0] == ordered[coalition][0] and set(coalition) <= set(one)]
    return max(holding, key=lambda one: (len(one), one))


def _gain(members: Sequence[int], x: Array, copies: Sequence[Array], law: NoiseLaw | None, rows: int) -> BoostedGain:
    """Return the gain of some copies, the best one first, over that one."""
    shown, rows = trees_shown(rows, x.shape[1], len(members))
    members = [members[place] for place in np.linspace(0, len(members) - 1, shown).astype(np.intp)]  # of a wide coalition evenly spread
    chosen = _runs(len(x), rows)
    undo = [_undo(x, law, before, copy) for before, copy in pairwise(members)]
    gain, error = cross_fitted(x[chosen], [copies[copy - 1][chosen] for copy in members], undo)
    return BoostedGain(members[0], tuple(sorted(members)), tuple(gain.tolist()), tuple(error.tolist()), len(chosen))


def _undo(x: Array, law: NoiseLaw | None, before: int, copy: int) -> Array:
    """Return the inverse of the root that the difference of two copies is drawn with by law; without one, as if it had the data's shape."""
    if law is None:
        K = np.atleast_2d(np.cov(x.T, bias=True))
    else:
        N, of_two = law.width, law.of([before, copy]).covariance
        K = of_two[:N, :N] - of_two[:N, N:] - of_two[N:, :N] + of_two[N:, N:]
    return undo_root(K)


def _runs(length: int, wanted: int) -> NDArray[np.intp]:
    """Return places of at most so many rows, in runs of neighbours spread evenly over all."""
    blocks = np.arange(length).reshape(1, -1) if length <= wanted else np.arange(length - length % RUN).reshape(-1, RUN)
    return blocks[np.linspace(0, len(blocks) - 1, max(1, min(len(blocks), wanted // RUN))).astype(np.intp)].ravel()


def cross_fitted(x: Array, copies: Sequence[Array], undo: Sequence[Array] = ()) -> tuple[Array, Array]:
    """Return gains by attribute and their standard errors, shapes (N,); 0 where the best copy leaves nothing unknown.

    Parameters
    ----------
    x : ndarray of shape (n, N)
    copies : sequence of ndarrays of shape (n, N)
        The best one first, then by level.
    undo : sequence of ndarrays of shape (N, N)
        As of ``Differences``.
    """
    Z, Y = copies[0] - x, in_own_deviations(copies[0])
    design = np.column_stack([np.ones(len(Y)), Y])
    left = Z - design @ np.linalg.lstsq(design, Z, rcond=None)[0]
    unknown = left.std(axis=0) > KNOWN * np.maximum(Z.std(axis=0), x.std(axis=0))
    differences = Differences(copies, Z.std(axis=0), undo)
    if not unknown.any() or not differences.steps.shape[1]:
        return np.zeros(x.shape[1]), np.zeros(x.shape[1])
    pooled, others = _squared_errors(np.where(unknown, in_own_deviations(left), 0.0), Y, differences)
    alone = others.mean(axis=0)
    saved, whole = alone - pooled, np.where(unknown, alone.mean(axis=0), 1.0)
    variance = saved.var(axis=0, ddof=1) / len(x) / whole**2 + _luck(others / whole)
    return saved.mean(axis=0) / whole, np.where(unknown, np.sqrt(variance), 0.0)


def _squared_errors(r: Array, Y: Array, differences: Differences) -> tuple[Array, Array]:
    """Return ``e`` and two ``e'``, each row's by trees taught on the other half of the rows, shapes (n, N) and (2, n, N)."""
    half, D, least = _halves(len(r)), differences.steps, max(20, len(r) // 100)
    errors = np.empty((3, *r.shape))
    anothers = [np.column_stack([Y, np.roll(D, shift * len(D) // 3, axis=0)]) for shift in (1, 2)]
    halves = (half, ~half)
    for taught, f in zip(halves, foretold([Task(Y, r, taught) for taught in halves], least), strict=True):
        left = r - f
        own = np.column_stack([Y, D, differences.telling(left, Y, taught)])
        for error, g in zip(errors, foretold([Task(shown, left, taught) for shown in (own, *anothers)], least), strict=True):
            error[~taught] = (left - g)[~taught] ** 2
    return errors[0], errors[1:]


def _halves(rows: int) -> NDArray[np.bool_]:
    """Return which rows are in the first half: every other run."""
    return np.asarray(np.arange(rows) // RUN % 2 == 0)


def _luck(others: Array) -> float:
    """Return the variance of a gain that comes from what learners happened to learn, the same for all rows that they are judged on.

    Two learners that were shown different records' differences are judged on either half: with v the variance of one's mean error there,
    their means differ with variance 2v, and a gain, of one learner over the mean of two, has ``(1 + ½) v / 2`` over both halves. It holds
    some of the spread between rows as well, which is counted beside it: a bar that is rather too wide.
    """
    half = _halves(others.shape[1])
    apart = np.stack([(others[0] - others[1])[rows].mean(axis=0) for rows in (half, ~half)])
    return float(0.375 * (apart**2)[:, apart.any(axis=0)].mean()) if apart.any() else 0.0

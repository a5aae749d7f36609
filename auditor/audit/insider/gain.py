"""Gain of pooling: whether other copies or noise add information.

Rows are dealt into parts, in runs of ``RUN`` neighbours. A learner is fitted to the originals in
the first part and judged on the second, then fitted to both and judged on the third. Two halves
that judge each other would have nearly equal sums.

Where a law is proved, two parts of ``QUICK_ROWS`` rows are judged first. If scores deviate from the
law, or a gain shows, three parts of ``PROVED_ROWS`` rows decide.

| symbol | meaning | shape |
| --- | --- | --- |
| ``b`` | the coalition's copy with the least noise | |
| ``r`` | ``x − f``, f predicted from ``Y_b`` and its means over near rows, by least squares and trees | (n,) |
| ``g`` | the learner's prediction of r from all copies | (n,) |
| ``g'`` | g with differences from ``Y_b`` of *other records*, mean of ``SHIFTS`` | (n,) |
| ``ρ`` | ``Σ r (g − g') / √(Σ r² Σ (g − g')²)`` over judged rows | scalar |
| gain | ``ρ²`` if ρ > 0: share of ``Σ r²`` that the best multiple of ``g − g'`` removes | scalar |

If the differences are independent of ``(X, Y_b)``, as for lawful multilevel copies, each ``r (g −
g')`` has mean 0 for any learner and table. The standard error of ρ is ``√Σ r² (g − g')²`` over the
denominator of ρ, of rows or of runs, whichever is larger. ρ is tested by Student's t with ``(Σ w²)²
/ Σ w⁴ − 1`` degrees of freedom for ``w = r (g − g')``.

*Not checked*: rows not judged; codes that no feature family breaks, like a cipher's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from auditor.audit.insider.feature import Shown
from auditor.audit.insider.learner import WEAK, dealt, few_of, fit, grower, least_squares
from auditor.audit.law_tests.scores import runs
from auditor.audit.numeric.error_tally import (
    FEWEST_TREE_ROWS,
    TREE_FITS,
    TREE_ROWS,
    TREE_TARGETS,
    trees_shown,
)
from auditor.audit.numeric.linear_errors import by_size
from auditor.base import scipy
from auditor.base.types import Array, Coalition, Indices
from auditor.numerics.blocks import Moments
from auditor.numerics.linear_algebra import (
    in_own_units,
    of_differences,
    pseudo_inverse,
    ranked_regression,
)
from auditor.numerics.random_streams import stream
from auditor.results.records import InsiderGain, NoiseGain
from auditor.schemes.base.noise_law import KroneckerNoise, NoiseLaw, not_known_to_gain, undo_root

MOST_VALUES = 2**23
"""Most values of copies in the rows."""
KNOWN = 1e-9
"""Share of the noise's or the data's deviation below which the best copy's residual is rounding."""
RUN, RUNS = 64, 32
"""Neighbouring rows that are taken together, as in a series; fewest runs of a table."""
FEWEST_DEGREES = 3.0
"""Fewest degrees of freedom of ρ: one row makes up the sum."""
PROVED_FITS, PROVED_ROWS, QUICK_ROWS = 1, 10_000, 4_000
"""Coalitions measured if a law decides, the widest; most rows; and most rows of a first look."""
UNCLEAR = 0.05
"""Largest p-value of scores or of a first look that calls for a second."""
NEAR = 5, 33
"""Neighbouring rows of the best copy that are averaged, for series."""
SHIFTS = 3
"""Other records whose differences a record is shown with."""


def insider_gains(
    coalitions: Sequence[Coalition],
    x: Array,
    copies: Sequence[Array],
    law: NoiseLaw | None,
    proved: float | None = None,
) -> dict[Coalition, InsiderGain]:
    """Learner's gain in coalitions of two copies or more.

    Only the widest coalition of each best copy is measured. Coalitions that gain by law, or with
    too few rows, are left out.

    Parameters
    ----------
    x, copies : ndarray of shape (n, N), sequence of M arrays of this shape
        Rows in runs of neighbours.
    law : NoiseLaw or None
        Determines the copy with least noise, or else the rows do.
    proved : float, optional
        Least p-value of the scores, if the law decides.
    """
    whole = np.isfinite(x).all(axis=1) & np.all(
        [np.isfinite(copy).all(axis=1) for copy in copies], axis=0
    )
    x, copies = x[whole], [copy[whole] for copy in copies]
    wide = not_known_to_gain(coalitions, law)
    if len(x) < FEWEST_TREE_ROWS or not wide:
        return {}
    levels = measured_levels(x, copies) if law is None else (law.deviations**2).sum(axis=1)
    ordered = {one: sorted(one, key=lambda copy: (levels[copy - 1], copy)) for one in wide}
    fits, many = (TREE_FITS, TREE_ROWS) if proved is None else (PROVED_FITS, PROVED_ROWS)
    within, fitted = widest(ordered, min(fits, TREE_TARGETS // x.shape[1]))
    few, gains = TREE_ROWS // max(1, len(fitted) - 1), dict[Coalition, InsiderGain]()
    quick = len(x) > QUICK_ROWS and (proved or 0.0) >= UNCLEAR
    for place, one in enumerate(fitted):
        gain = partial(_gain, ordered[one], x, copies, law)
        gains[one] = gain(QUICK_ROWS, 2) if quick else gain(few if place else many)
        if quick and gains[one].p_value(0.0) < UNCLEAR:
            gains[one] = gain(many)
    return {one: gains[of] for one, of in within.items()}


def measured_levels(x: Array, copies: Sequence[Array]) -> Array:
    """Each copy's noise in units of variance, shape (M,)."""
    own = np.where(x.var(axis=0) > 0, x.var(axis=0), 1.0)
    return np.array([((copy - x).var(axis=0) / own).sum() for copy in copies])


def widest(
    ordered: Mapping[Coalition, Sequence[int]], most: int
) -> tuple[dict[Coalition, Coalition], list[Coalition]]:
    """Each coalition's widest one with its best copy, of the ``most`` widest; and these."""
    found = {}
    for one, copies in ordered.items():
        holding = [
            wide for wide in ordered if ordered[wide][0] == copies[0] and set(one) <= set(wide)
        ]
        found[one] = max(holding, key=lambda wide: (len(wide), wide))
    chosen = sorted(set(found.values()), key=lambda one: (-len(one), one))[:most]
    return {one: wide for one, wide in found.items() if wide in chosen}, chosen


def _gain(
    members: Sequence[int],
    x: Array,
    copies: Sequence[Array],
    law: NoiseLaw | None,
    rows: int,
    parts: int = 3,
) -> InsiderGain:
    shown, rows = trees_shown(rows, x.shape[1], len(members))
    members = [members[place] for place in np.linspace(0, len(members) - 1, shown).astype(np.intp)]
    chosen = runs(len(x), rows)
    found = correlations(
        x[chosen], [copies[copy - 1][chosen] for copy in members], unmixing(x, law, members), parts
    )
    r, error, degrees = (tuple(part.tolist()) for part in found)
    return InsiderGain(members[0], tuple(sorted(members)), r, error, degrees, len(chosen))


def unmixing(x: Array, law: NoiseLaw | None, members: Sequence[int]) -> Array:
    """Inverse root of the covariance of copies' differences."""
    if law is None:
        return undo_root(np.atleast_2d(np.cov(x.T, bias=True)))
    (before, copy), N = next(pairwise(members)), law.width
    of_two = law.of([before, copy]).covariance
    return undo_root(of_two[:N, :N] - of_two[:N, N:] - of_two[N:, :N] + of_two[N:, N:])


def correlations(
    x: Array, copies: Sequence[Array], unmix: Array | None = None, parts: int = 3
) -> tuple[Array, Array, Array]:
    """``ρ`` by attribute, its standard errors and degrees of freedom, shapes (N,).

    0 if the best copy leaves nothing unknown.

    Parameters
    ----------
    x : ndarray of shape (n, N)
    copies : sequence of ndarrays of shape (n, N)
        The best one first, then by level.
    unmix : ndarray of shape (N, N), optional
        As of ``Shown``.
    parts : int
        Of the rows.
    """
    n, N = x.shape
    best, found = copies[0], np.zeros((3, N))
    found[2] = np.inf
    others = [
        _with_another(best, copies, shift * n // (SHIFTS + 1)) for shift in range(1, SHIFTS + 1)
    ]
    whole, *replaced = [Shown(np.stack(each, axis=1), unmix) for each in (copies, *others)]
    if not whole.differences.any():
        return found[0], found[1], found[2]
    run = min(RUN, max(1, n // RUNS))
    # In a series the row before and its noise would betray this row.
    dealt_rows = dealt(np.arange(n) // run, stream(0, "insider gain"), parts)
    folds = [np.sort(np.concatenate(dealt_rows[:k])) for k in range(1, parts)]
    near = [scipy.ndimage.uniform_filter1d(best, width, axis=0, mode="nearest") for width in NEAR]
    alone = np.hstack([best, *near])
    first = np.array(
        [np.column_stack([_by_best(alone, x[:, j], taught) for j in range(N)]) for taught in folds]
    )
    for j, models in enumerate(fit(whole, x, folds, WEAK, "gain", first, run)):
        r, apart = np.zeros(n), np.zeros(n)
        for model, f, tested in zip(models, first, dealt_rows[1:], strict=True):
            r[tested] = (x[:, j] - f[:, j])[tested]
            g, *again = (model.predict(each, tested)[tested] for each in (whole, *replaced))
            apart[tested] = g - np.mean(again, axis=0)
        if (
            r.std()
            > KNOWN * max((best - x)[:, j].std(), x[:, j].std(), 1e-3 * np.abs(x[:, j]).max())
            and apart.any()
        ):
            found[:, j] = judged(r * apart, np.sqrt((r**2).sum() * (apart**2).sum()), run)
    return found[0], found[1], found[2]


def judged(w: Array, scale: float, run: int = 1) -> tuple[float, float, float]:
    """``ρ = Σ w / scale``, its standard error and degrees of freedom.

    The larger error over rows or over runs of neighbours.
    """
    if not scale > 0 or not w.any():
        return 0.0, 0.0, np.inf
    squares = max(
        (w**2, np.add.reduceat(w, np.arange(0, len(w), run)) ** 2), key=lambda part: part.sum()
    )
    degrees = max(FEWEST_DEGREES, float(squares.sum() ** 2 / (squares**2).sum()) - 1.0)
    return float(w.sum() / scale), float(np.sqrt(squares.sum()) / scale), degrees


def _with_another(best: Array, copies: Sequence[Array], shift: int) -> list[Array]:
    return [best, *(best + np.roll(copy - best, shift, axis=0) for copy in copies[1:])]


def _by_best(best: Array, x: Array, taught: Indices) -> Array:
    first, few = least_squares(best, x, taught), few_of(taught)
    return first + grower(WEAK, len(few)).fit(best[few], (x - first)[few]).predict(best)


# -- Share of its best copy's noise that a coalition removes, as drawn -----------------------------


ROUNDING = 1e-12
"""Share of a copy's variance below which a difference is rounding."""
RESOLVED = 1e-11
"""Least share of its copies' variance that a combination's moments resolve."""


def noise_gains(
    coalitions: Sequence[Coalition], total: Moments, law: KroneckerNoise
) -> dict[Coalition, NoiseGain]:
    """Share for each coalition of two copies or more.

    Parameters
    ----------
    total : Moments
        Of ``[X, Y_1 … Y_M]`` over all rows.
    law : KroneckerNoise
        As stated; for the shape and the best copy.
    """
    M, N = law.copies, law.width
    P = total.products.reshape(M + 1, N, M + 1, N)
    S = P[1:, :, 1:] - P[:1, :, 1:] - P[1:, :, :1] + P[:1, :, :1]
    rank = int(np.linalg.matrix_rank(in_own_units(law.shape)[0], hermitian=True))
    if rank == 0:
        return {}
    Sigma = np.einsum("injm,nm->ij", S, pseudo_inverse(law.shape)) / (total.count * rank)
    levels, observations = np.diag(law.level_covariance), total.count * rank
    gains = {}
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 1]):
        shares, regressors = _noise_shares(Sigma, levels, np.array(run) - 1)
        for c, share, p in zip(run, shares.tolist(), regressors.tolist(), strict=True):
            gains[c] = NoiseGain(share, p, observations)
    return gains


def _noise_shares(Sigma: Array, levels: Array, index: Indices) -> tuple[Array, Indices]:
    b = np.take_along_axis(index, levels[index].argmin(axis=1, keepdims=True), axis=1)
    best, D = Sigma[b, b], of_differences(Sigma, index, np.broadcast_to(b, index.shape))
    # No regressors: copies that differ from the best by rounding only.
    own = np.diag(Sigma)[index]
    differs = (np.einsum("bkk->bk", D) > ROUNDING * own) & (best > 0.0)
    cross = np.where(differs, Sigma[b, index] - best, 0.0)
    both = differs[:, :, None] & differs[:, None, :]
    W, count = ranked_regression(cross[:, None, :], np.where(both, D, 0.0))
    explained, best = np.einsum("bk,bk->b", W[:, 0], cross), best[:, 0]
    share = np.divide(explained, best, out=np.zeros_like(explained), where=best > 0.0)
    return np.clip(share, 0.0, 1.0), count


def unresolved(coalitions: Sequence[Coalition], total: Moments, N: int) -> set[Coalition]:
    """Coalitions with a combination of copies that second moments do not resolve.

    With ``Y_1 = X + Z_1``, ``Y_2 = Y_1 + Z_2`` and ``Y_3 = X + (1+g) Z_1 + ½ Z_2`` the combination
    ``Y_3 − ½ Y_1 − ½ Y_2 = g Z_1`` reveals the record, with ``g²`` of their variance. Attributes
    are examined one by one.

    Parameters
    ----------
    total : Moments
        Of ``[X, Y_1 … Y_M]``.
    """
    K, lost = total.covariance()[N:, N:], set[Coalition]()
    own = np.where(np.diag(K) > 0, np.diag(K), 1.0)
    R = K / np.sqrt(np.outer(own, own))
    near = (1.0 - R) < RESOLVED
    for _, run in by_size([coalition for coalition in coalitions if len(coalition) > 2]):
        index, least = np.array(run) - 1, np.ones(len(run))
        for attribute in range(N):
            each, alike = R[attribute::N, attribute::N], near[attribute::N, attribute::N]
            C = each[index[:, :, None], index[:, None, :]]
            # the first of nearly equal copies
            again = np.tril(alike[index[:, :, None], index[:, None, :]], -1).any(axis=2)
            C = np.where(again[:, :, None] | again[:, None, :], np.eye(C.shape[1]), C)
            least = np.minimum(least, np.linalg.eigvalsh(C)[:, 0])
        lost.update(c for c, share in zip(run, least.tolist(), strict=True) if share < RESOLVED)
    return lost

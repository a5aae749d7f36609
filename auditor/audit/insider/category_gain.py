"""Gain of pooling categorical copies, by a learner in held-out rows.

| symbol | meaning | shape |
| --- | --- | --- |
| ``b`` | the coalition's copy with the highest retention | |
| ``e`` | indicators of the original's value | (n, s) |
| ``g`` | predicted chances of values, from all of the coalition's copies | (n, s) |
| ``r, g'`` | ``e`` and ``g``, less their means over the records with one value in copy b | (n, s) |
| ``ρ`` | ``Σ r·g' / √(Σ |r|² Σ |g'|²)`` over held-out rows | scalar |
| gain | ``ρ²`` if ρ > 0: share of the best copy's error that the best multiple of ``g'`` removes | scalar |

If the other copies are independent of the original given copy b, as of lawful multilevel copies,
``Σ r·g'`` has mean 0 for any learner and table. Predictors are boosted trees on the pattern of
agreement for each candidate value, and a frequency table of the copies' values. Candidates are the
copies' values, and their sums and differences modulo s.

*Not checked*: rows not judged; copies beyond the first ``MOST_SHOWN`` by retention.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from auditor.audit.insider.features.other_rows import PERIODS
from auditor.audit.insider.gain import judged, widest
from auditor.audit.insider.learner import HELPS, WEAK, binned, dealt, edges_of, grower
from auditor.audit.numeric.error_tally import FEWEST_TREE_ROWS, TREE_FITS
from auditor.base import scipy
from auditor.base.types import Array, Coalition, Codes, Indices
from auditor.numerics.random_streams import stream
from auditor.results.records import InsiderGain

MOST_SHOWN, MOST_PAIRED, MOST_COMBINED = 16, 6, 3
"""Most copies that are shown, that are compared two by two, and that are added up."""
FEWEST_ALIKE = 8
"""Fewest records with equal values for a frequency table, on average."""


def category_gains(
    coalitions: Sequence[Coalition],
    retentions: Sequence[float],
    size: int,
    rows: Callable[[Sequence[int]], tuple[Codes, Mapping[int, Codes]]],
) -> dict[Coalition, InsiderGain]:
    """Learner's gain in coalitions of two copies or more.

    Parameters
    ----------
    retentions : sequence of float
        Of every copy.
    size : int
        ``s``.
    rows : callable
        Originals and copies, by number, of the rows to look at.

    Returns
    -------
    dict
        For the widest coalition of each best copy; empty for too few rows.
    """
    ordered = {
        one: sorted(one, key=lambda copy: (-retentions[copy - 1], copy))[:MOST_SHOWN]
        for one in coalitions
    }
    if not ordered or size < 2:
        return {}
    within, fitted = widest(ordered, TREE_FITS)
    x, copies = rows(sorted({copy for one in fitted for copy in ordered[one]}))
    if len(x) < FEWEST_TREE_ROWS:
        return {}
    gains = {}
    for one in fitted:
        found = correlations(x, [copies[copy] for copy in ordered[one]], size)
        gains[one] = InsiderGain(ordered[one][0], one, *found, len(x))
    return {one: gains[of] for one, of in within.items()}


def correlations(
    x: Codes, copies: Sequence[Codes], size: int
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """``ρ`` of trees and frequency table, standard errors, degrees of freedom.

    Parameters
    ----------
    x : ndarray of shape (n,)
    copies : sequence of ndarrays of shape (n,)
        The best one first.
    """
    X, Y = x.astype(np.intp), [copy.astype(np.intp) for copy in copies]
    # Two halves that judge each other have nearly equal sums.
    taught, tested = dealt(np.arange(len(x)), stream(0, "insider halves", "category gain"))
    best, found = Y[0][tested], list[tuple[float, float, float]]()
    r = within_strata(indicators(X[tested], size), best, size)
    for predict in (by_agreement, by_values):
        g = within_strata(predict(X, Y, size, taught, tested), best, size)
        scale = float(np.sqrt(r.power(2).sum() * g.power(2).sum()))
        found.append(judged(np.asarray(r.multiply(g).sum(axis=1)).ravel(), scale))
    rho, error, degrees = zip(*found, strict=True)
    return rho, error, degrees


def indicators(values: Indices, size: int, weights: Array | None = None) -> Any:
    """Sparse matrix, (n, s), with 1 or a weight at each row's value."""
    n = len(values)
    ones = np.ones(n) if weights is None else weights
    return scipy.sparse.csr_array((ones, (np.arange(n), values)), shape=(n, size))


def within_strata(M: Any, stratum: Indices, size: int) -> Any:
    """Rows of a sparse matrix less the mean of their stratum."""
    counts = np.bincount(stratum, minlength=size)
    member = indicators(stratum, size, 1.0 / counts[stratum].astype(np.float64))
    return M - (member.T @ M).tocsr()[stratum]


def by_agreement(
    x: Indices,
    copies: Sequence[Indices],
    size: int,
    taught: Indices,
    tested: Indices,
    beside: Sequence[Array | Indices] = (),
) -> Any:
    """Chances of candidates, by boosted trees on agreement of copies.

    Trees also see those remainders of the row number and bins of columns ``beside`` that help a
    candidate.
    """
    few, paired = copies[:MOST_COMBINED], copies[:MOST_PAIRED]
    candidates = [*paired]
    for a, b in combinations(few, 2):
        candidates += [(a + b) % size, (a - b) % size, (b - a) % size]
    shown = [a == b for a, b in combinations(paired, 2)]
    shown += [copies[0] == later for later in copies[MOST_PAIRED:]]
    features = np.column_stack([*shown, *copies]).astype(np.float64)
    gates = [np.arange(len(x)) % k for k in range(2, PERIODS)]
    gates += [binned(v, edges_of(v)) for v in beside]
    total: Any = indicators(copies[0][tested], size, np.zeros(len(tested)))
    for place, values in enumerate(candidates):
        earlier = np.array(candidates[:place], dtype=np.intp).reshape(place, len(x))
        new = (values != earlier).all(axis=0)
        right, here = (values == x).astype(np.float64), taught[new[taught]]
        if len(here):
            helpful = [bins for bins in gates if differs(bins, here, right)]
            seen = np.column_stack([features, *helpful])
            trees = grower(WEAK, len(here)).fit(seen[here], right[here])
            chance = np.where(new[tested], trees.predict(seen[tested]), 0.0)
            total = total + indicators(values[tested], size, chance)
    return total


def differs(bins: Indices, here: Indices, y: Array) -> bool:
    """Whether the means of y in some rows differ between bins beyond chance (χ²)."""
    left, n = y[here] - y[here].mean(), np.bincount(bins[here])
    d = len(n) - 1
    squares = np.bincount(bins[here], left) ** 2 / np.maximum(n, 1)
    return bool(squares.sum() > (d + HELPS * np.sqrt(2.0 * d)) * left.var() > 0.0)


def by_values(
    x: Indices, copies: Sequence[Indices], size: int, taught: Indices, tested: Indices
) -> Any:
    """Shares of originals in training rows with equal first copies."""
    shown = 2
    while shown < len(copies) and FEWEST_ALIKE * size ** (shown + 1) <= len(taught):
        shown += 1
    _, outcome = np.unique(np.column_stack(copies[:shown]), axis=0, return_inverse=True)
    outcome = outcome.ravel()
    counts = np.bincount(outcome[taught], minlength=outcome.max() + 1).astype(np.float64)
    member = indicators(outcome[taught], len(counts), (1.0 / (1.0 + counts))[outcome[taught]])
    return (member.T @ indicators(x[taught], size)).tocsr()[outcome[tested]]

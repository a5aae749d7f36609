"""The best linear attack on every cell of copies from files.

Missing records, cells and columns of one copy are predicted from the other copies.

| symbol | meaning | shape |
| --- | --- | --- |
| pattern | which of a coalition's ``kN`` cells a record has; p of them | |
| ``T`` | m training records: all of the pattern or, if too few, all with the pattern's cells | |
| ``Y_T, X_T`` | cells and originals of T, less their means; ``Y_T = U S Vᵀ`` | (m, p), (m, N) |
| ``h_t`` | leverage ``1/m + |u_t|²`` of a record | scalar |
| ``e_t`` | ``(x_t − U Uᵀ X_T) / √(1 − h_t)``; its mean square is the best map's for any p and m | (N,) |

The map is fitted to the originals and needs no law. As m grows it tends to the best linear map
``K_X Hᵀ (H K_X Hᵀ + K_Z)⁺`` of li2012 (6), without missing rows. Records with rare patterns share
one regression on cells, filled by means, and indicators of missing cells. Ten or more records
without any cell are estimated by their mean.

Source of ``e_t``: Horn, Horn and Duncan (1975), JASA 70. Assumed, *not checked*: records of one
pattern have equally distributed noise.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from auditor.audit.base.request import CellContext, Cells, error_records, with_singles
from auditor.audit.numeric.error_bars import Errors, from_groups
from auditor.base.types import Array, Arrays, Coalition, Coalitions
from auditor.data.alignment import MOST_CELLS
from auditor.numerics.blocks import JACKKNIFE_GROUPS
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.results.records import Measurement

NAME, KNOWLEDGE = "every-cell", "perfect"
"""Attack and knowledge in records."""
OWN_RECORDS = 10
"""Fewest records for each coefficient of a pattern's own map."""
RUN = 16
"""Neighbouring records in one part of a jackknife group."""
MOST_PATTERNS = 200
"""Most patterns with their own maps, the commonest first. Each needs a decomposition."""


def every_cell_records(
    context: CellContext, names: tuple[str, ...], X: Array, copies: Arrays, asked: Coalitions
) -> list[Measurement]:
    """Errors of every copy alone, and of all; none for too many cells.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    copies : sequence of M ndarrays of shape (n, N) or wider
        Cells by record, NaN where they are missing.
    """
    singles = [one for one in asked if len(one) == 1]
    if X.shape[1] * len(copies) > MOST_CELLS:
        return []
    variances = X.var(axis=0)
    here = context.under(NAME, KNOWLEDGE).of_columns(names, variances)
    alone = [squared_errors(X, copy) for copy in copies]
    records: list[Measurement] = []
    if singles:
        found = by_group(singles, [alone[copy - 1] for (copy,) in singles], variances)
        records += error_records(Cells.all(here, singles), found)
    if len(copies) > 1 and (everybody := context.everybody) in asked:
        best, pooled = best_alone(copies, alone), squared_errors(X, np.hstack(copies))
        # twice the best copy of each record, and all copies: the gain of pooling
        found = by_group([(1,), (2,), (1, 2)], [best, best, pooled], variances)
        records += error_records(Cells(here, [(), (), everybody], [2]), found)
    return records


def by_group(coalitions: Coalitions, errors: Arrays, variances: Array) -> Errors:
    """Errors with a jackknife's bars, of squared errors by record.

    Groups are runs of neighbours from all over the file, so differences between its parts do not
    widen the bars.
    """
    n, G = len(errors[0]), min(JACKKNIFE_GROUPS, len(errors[0]))
    which = np.arange(n) // min(RUN, max(1, n // (4 * G))) % G
    groups = [np.flatnonzero(which == group) for group in range(G)]
    sums = np.array([[each[rows].sum(axis=0) for each in errors] for rows in groups])
    return from_groups(coalitions, sums, [len(rows) for rows in groups], variances)


def best_alone(copies: Arrays, alone: Arrays) -> Array:
    """Squared errors of each pattern's best copy, shape (n, N)."""
    which = np.unique(np.isfinite(np.hstack(copies)), axis=0, return_inverse=True)[1].ravel()
    errors, counts = np.array(alone), np.bincount(which)
    # copy, attribute, pattern
    sums = np.array([[np.bincount(which, column) for column in one.T] for one in errors])
    least = (sums / counts).argmin(axis=0)[:, which].T
    return np.take_along_axis(errors, least[None], axis=0)[0]


def squared_errors(X: Array, Y: Array) -> Array:
    """``e_t²``, (n, N), of originals X and cells (n, p), NaN if missing."""
    there = np.isfinite(Y)
    patterns, which, counts = np.unique(there, axis=0, return_inverse=True, return_counts=True)
    errors, rest = unbiased_errors(X, Y[:, :0]), there.any(axis=1)
    for number in np.argsort(-counts, kind="stable")[:MOST_PATTERNS]:
        cells, own = patterns[number], which.ravel() == number
        alike = own if own.sum() >= OWN_RECORDS * (cells.sum() + 1) else there[:, cells].all(axis=1)
        if alike.sum() >= cells.sum() + FEWEST_RECORDS:
            errors[own] = unbiased_errors(X[alike], Y[np.ix_(alike, cells)])[own[alike]]
            rest &= ~own
    if rest.sum() >= 2 * Y.shape[1] + FEWEST_RECORDS:
        filled = np.where(there, Y - np.nanmean(np.where(there.any(axis=0), Y, 0.0), axis=0), 0.0)[
            rest
        ]
        errors[rest] = unbiased_errors(X[rest], np.hstack([filled, there[rest]]))
    return errors**2


def unbiased_errors(X: Array, Y: Array) -> Array:
    """``e_t``, (m, N), of the regression of X on Y, (m, p), and a constant.

    m is at least 2. If no other record determines a record's direction, ``e_t`` is its distance
    from the mean, with ``h_t = 1/m``.
    """
    centred, off = X - X.mean(axis=0), Y - Y.mean(axis=0)
    scale, size = (np.abs(each).max(axis=0, initial=0.0) for each in (off, Y))
    varies = scale > 1e-12 * size
    U, s, _ = np.linalg.svd(off[:, varies] / scale[varies], full_matrices=False)
    U = U[:, s > len(X) * np.finfo(float).eps * s.max(initial=0.0)]
    # 1 − h_t without any cell, for a direction of one record alone
    alone = 1.0 - 1.0 / len(X)
    rest = alone - np.einsum("tr,tr->t", U, U)
    told = rest > 1e-9
    left = centred - np.where(told[:, None], U @ (U.T @ centred), 0.0)
    return left / np.sqrt(np.where(told, rest, alone))[:, None]


# -- Result of one insider attack on one coalition -------------------------------------------------


class Finding(NamedTuple):
    """Squared errors of an insider's attack, with its cause in words.

    Attributes
    ----------
    coalition : tuple of int
        Copy numbers, from 1.
    squares : ndarray of shape (m, N)
        By judged record and attribute, in squared data units.
    cause : str
        One clause without any value of the table; empty if a regression does as well.
    """

    coalition: Coalition
    squares: Array
    cause: str


NoiseAttack = Callable[[Array, Arrays, Coalitions], list[Finding]]
"""From originals and copies, shape (n, N), and coalitions."""
MOST_COLUMNS = 64
"""Columns of all copies together, up to which noise is looked at: time grows with their square."""


def finding_records(
    context: CellContext,
    name: str,
    attack: NoiseAttack,
    X: Array,
    copies: Arrays,
    asked: Coalitions,
) -> list[Measurement]:
    """Records of single copies and of all, if an insider's attack succeeds.

    The cause in words is the ``reason`` of the records.
    """
    coalitions = with_singles([context.everybody])
    wanted = [place for place, one in enumerate(coalitions) if one in asked]
    few = wanted and X.shape[1] * len(copies) <= MOST_COLUMNS
    findings = attack(X, copies, coalitions) if few else []
    if not findings:
        return []
    errors = by_group(coalitions, [found.squares for found in findings], context.variances)
    causes = {found.coalition: found.cause or None for found in findings}
    records = error_records(Cells(context.under(name, KNOWLEDGE), coalitions, wanted), errors)
    return [record._replace(reason=causes[record.coalition]) for record in records]


def line_squares(X: Array, copies: Arrays) -> Array:
    """Squared errors of the regression of X on all cells, shape (n, N)."""
    return unbiased_errors(X, np.hstack(copies)) ** 2


def copies_in_words(coalition: Sequence[int]) -> str:
    """Few copy numbers in words.

    >>> copies_in_words([2]), copies_in_words([1, 2, 3, 4, 5])
    ('copy 2', 'copies 1, 2, 3, 4, …')
    """
    numbers = ", ".join(map(str, coalition[:4])) + (", …" if len(coalition) > 4 else "")
    return f"cop{'y' if len(coalition) == 1 else 'ies'} {numbers}"

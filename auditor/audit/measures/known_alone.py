"""Error that known attributes leave in the others, without any copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from auditor.adversary.knowledge import Knowledge
from auditor.audit.base.records import ALL, CellContext
from auditor.base.types import Array, Indices
from auditor.numerics.linear_algebra import regression
from auditor.results.records import Measurement

METRIC = "error_without_copies"


def errors_alone(K_X: Array, known: Sequence[int]) -> Array:
    """Return ``diag(K_X − K_XK K_KK⁺ K_KX)``, shape (N,): errors of the best linear guess.

    Parameters
    ----------
    K_X : ndarray of shape (N, N)
        The data's covariance; it may be singular.
    known : sequence of int
        Places of the known attributes, whose own errors are 0.

    Examples
    --------
    >>> errors_alone(np.array([[1.0, 0.6], [0.6, 1.0]]), [0])
    array([0.  , 0.64])
    """
    places = np.asarray(known, dtype=np.intp)
    told = regression(K_X[:, places], K_X[np.ix_(places, places)]) @ K_X[places]
    errors = np.clip(np.diag(K_X - told), 0.0, None)
    errors[places] = 0.0
    return np.asarray(errors)


def errors_in_leaves(X: Array, leaf: Indices, known: Sequence[int]) -> Array:
    """Return errors of regressions in each leaf of a published tree, shape (N,); 0 in small leaves.

    Parameters
    ----------
    X : ndarray of shape (n, N)
    leaf : ndarray of shape (n,)
        Each record's, by its known attributes.
    """
    errors = np.zeros(X.shape[1])
    for number in np.unique(leaf):
        rows = X[leaf == number]
        spare = len(rows) - len(known) - 1  # degrees of freedom that the regression leaves
        if spare > 0:
            errors += errors_alone(np.cov(rows.T, ddof=0), known) * len(rows) / spare * len(rows)
    return errors / len(X)


def number_records(
    context: CellContext, knowledge: Knowledge, errors: Array
) -> Iterator[Measurement]:
    """Yield the share of variance that known attributes leave unknown, by attribute and in all.

    ``errors`` of shape (N,) are squared ones, of each attribute.
    """
    given = np.isin(context.attributes, knowledge.in_clear)
    parts = [(name, [place]) for place, name in enumerate(context.attributes) if not given[place]]
    for name, places in [*parts, (ALL, np.flatnonzero(~given).tolist())]:
        variance = float(context.variances[places].sum())
        if variance > 0:
            share = float(errors[places].sum()) / variance
            yield context.record(METRIC, context.everybody, share, attribute=name)

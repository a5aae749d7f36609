"""Geometry of the records that a copy preserves, on a sample of rows.

| metric | meaning | best |
| --- | --- | --- |
| ``geometry_distances`` | coefficient of variation of ``‖y_i − y_j‖ / ‖x_i − x_j‖`` over pairs | 0 |
| ``geometry_neighbours`` | share of records with an equal nearest neighbour | 1 |
| ``geometry_clusters`` | adjusted Rand index of 4-means on the copy and on the original | 1 |

All are independent of a copy's unit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np

from auditor.audit.base.records import CellContext
from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.results.records import Measurement
from auditor.types import Array, Block, Flags

MOST_ROWS = 600
CLUSTERS = 4


def geometry_records(
    context: CellContext, blocks: Callable[[], Iterable[Block]], seed: int
) -> list[Measurement]:
    """Return the figures of every copy, from at most ``MOST_ROWS`` random rows."""
    rng, found = stream(seed, "geometry"), []
    for _, x, copies in blocks():
        key = rng.random(len(x))
        least = np.argsort(key)[:MOST_ROWS]
        found.append([key[least], x[least], *(copy[least] for copy in copies)])
    key, x, *copies = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(key)[:MOST_ROWS]
    return [
        context.record(metric, (number,), value)
        for number, y in enumerate(copies, start=1)
        for metric, value in kept(x[order], y[order]).items()
    ]


def kept(x: Array, y: Array) -> dict[str, float]:
    """Return each metric for records ``x``, shape (m, N), and their copy ``y``, shape (m, any).

    Examples
    --------
    >>> x = np.arange(12.0).reshape(6, 2) ** 2
    >>> {name: round(value, 6) for name, value in kept(x, -x).items()}
    {'geometry_distances': 0.0, 'geometry_neighbours': 1.0, 'geometry_clusters': 1.0}
    """
    from sklearn.cluster import KMeans  # a second to import
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score

    before, after = scipy.spatial.distance.pdist(x), scipy.spatial.distance.pdist(y)
    apart = before > 0
    ratio = after[apart] / before[apart]
    spread = float(ratio.std() / ratio.mean()) if ratio.size and ratio.mean() > 0 else 0.0
    clusters = min(CLUSTERS, len(np.unique(x, axis=0)))
    with warnings.catch_warnings():
        # a copy may have fewer distinct rows than the original
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = [KMeans(clusters, n_init=10, random_state=0).fit_predict(rows) for rows in (x, y)]
    return {
        "geometry_distances": spread,
        "geometry_neighbours": float(np.mean(nearest(before, after))),
        "geometry_clusters": float(adjusted_rand_score(*labels)),
    }


def nearest(before: Array, after: Array) -> Flags:
    """Return whether each record's nearest neighbour by ``after`` is nearest by ``before``."""
    D, E = scipy.spatial.distance.squareform(before), scipy.spatial.distance.squareform(after)
    np.fill_diagonal(D, np.inf)
    np.fill_diagonal(E, np.inf)
    chosen = np.take_along_axis(D, E.argmin(axis=1)[:, None], axis=1)[:, 0]
    return chosen <= D.min(axis=1) * (1.0 + 1e-9)

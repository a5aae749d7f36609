"""What a copy keeps of the records' geometry: distances, neighbours and clusters, on a sample of them.

| metric | meaning | best |
| --- | --- | --- |
| ``geometry_distances`` | spread of ``‖y_i − y_j‖ / ‖x_i − x_j‖`` over pairs: its standard deviation over its mean | 0 |
| ``geometry_neighbours`` | share of the records whose nearest neighbour is the same record | 1 |
| ``geometry_clusters`` | adjusted Rand index of 4-means on the copy and on the original | 1 |

Each is free of a copy's unit. For rows with positions, as copies of numeric tables are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from auditor.audit.base.records import CellContext
from auditor.numerics.random_streams import stream
from auditor.process.deferred import scipy
from auditor.results.records import Measurement
from auditor.types import Array

MOST_ROWS = 600
CLUSTERS = 4


def geometry_records(
    context: CellContext, blocks: Callable[[], Iterable[tuple[int, Array, list[Array]]]], seed: int
) -> list[Measurement]:
    """Return what every copy keeps."""
    x, copies = _sample(blocks, seed)
    every = ((number, kept(x, y).items()) for number, y in enumerate(copies, start=1))
    return [
        context.record(metric, (number,), value)
        for number, figures in every
        for metric, value in figures
    ]


def _sample(
    blocks: Callable[[], Iterable[tuple[int, Array, list[Array]]]], seed: int
) -> tuple[Array, list[Array]]:
    """Return at most ``MOST_ROWS`` rows, chosen by a random key for each row."""
    rng = stream(seed, "geometry")
    keys, xs, ys = [], [], []
    for _, x, copies in blocks():
        key = rng.random(len(x))
        least = np.argsort(key)[:MOST_ROWS]
        keys.append(key[least])
        xs.append(x[least])
        ys.append([copy[least] for copy in copies])
    order = np.argsort(np.concatenate(keys))[:MOST_ROWS]
    return np.concatenate(xs)[order], [
        np.concatenate(parts)[order] for parts in zip(*ys, strict=True)
    ]


def kept(x: Array, y: Array) -> dict[str, float]:
    """Return each metric for records ``x``, shape (m, N), and their copy ``y``, shape (m, any).

    Examples
    --------
    >>> x = np.arange(12.0).reshape(6, 2) ** 2
    >>> {name: round(value, 6) for name, value in kept(x, -x).items()}
    {'geometry_distances': 0.0, 'geometry_neighbours': 1.0, 'geometry_clusters': 1.0}
    """
    from sklearn.cluster import KMeans  # here, since importing it takes a second
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import adjusted_rand_score

    before, after = scipy.spatial.distance.pdist(x), scipy.spatial.distance.pdist(y)
    apart = before > 0
    ratio = after[apart] / before[apart]
    spread = float(ratio.std() / ratio.mean()) if ratio.size and ratio.mean() > 0 else 0.0
    clusters = min(CLUSTERS, len(np.unique(x, axis=0)))

    with warnings.catch_warnings():
        # A copy may have fewer distinct rows than the original; that is what the index is there to
        # tell.
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = [KMeans(clusters, n_init=10, random_state=0).fit_predict(rows) for rows in (x, y)]
    return {
        "geometry_distances": spread,
        "geometry_neighbours": float(np.mean(nearest(before, after))),
        "geometry_clusters": float(adjusted_rand_score(*labels)),
    }


def nearest(before: Array, after: Array) -> NDArray[np.bool_]:
    """Return whether each record's nearest neighbour by ``after`` is as near as any by ``before``; ties count as kept."""
    D, E = scipy.spatial.distance.squareform(before), scipy.spatial.distance.squareform(after)
    np.fill_diagonal(D, np.inf)
    np.fill_diagonal(E, np.inf)
    chosen = np.take_along_axis(D, E.argmin(axis=1)[:, None], axis=1)[:, 0]
    return np.asarray(chosen <= D.min(axis=1) * (1.0 + 1e-9))

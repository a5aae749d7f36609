"""How many of some sorted edges are below each of many values, without a search.

A binary search guesses half of its branches wrong, for every value. In a grid so fine that no cell holds two different edges, a cell says
how many edges are below it, and only its own one is left to compare with.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from auditor.types import Array

CELLS = 2**13


def edges_below(edges: Array, values: Array, side: Literal["left", "right"] = "left") -> NDArray[np.intp]:
    """Return what ``np.searchsorted`` does, several times as fast for many values and few edges.

    >>> edges_below(np.array([1.0, 2.0, 2.0]), np.array([0.0, 1.0, 2.0, 3.0])).tolist()
    [0, 0, 1, 3]
    """
    width = edges[-1] - edges[0] if edges.size else 0.0
    if not 0.0 < width < np.inf:
        return np.searchsorted(edges, values, side=side)
    # each operation keeps the order of what it is given, rounded as it may be: a lower cell holds lower values
    cells, place = (np.clip((some - edges[0]) / width * CELLS, 0.0, CELLS).astype(np.intp) for some in (edges, values))
    if ((cells[1:] == cells[:-1]) & (edges[1:] > edges[:-1])).any():
        return np.searchsorted(edges, values, side=side)
    within, own = np.bincount(cells, minlength=CELLS + 1), np.zeros(CELLS + 1)
    own[cells] = edges
    reached = values > own[place] if side == "left" else values >= own[place]
    return np.asarray((np.cumsum(within) - within)[place] + reached * within[place])

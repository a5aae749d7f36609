"""Promises of equivalence classes: k, ℓ of three kinds, α, h, e and t.

| symbol | meaning | source |
| --- | --- | --- |
| ``E`` | equivalence class: records equal in all quasi-identifiers | samarati2001 |
| ``P_E(v), P(v)`` | share of sensitive value v in a class, in the table | |
| ``k`` | size of the smallest class | samarati2001 |
| distinct ``ℓ`` | fewest distinct sensitive values in a class | machanavajjhala2007 |
| entropy ``ℓ`` | ``min_E exp(−Σ_v P_E(v) ln P_E(v))`` | machanavajjhala2007 |
| ``r_1 ≥ r_2 ≥ …`` | how many records of a class have its commonest sensitive value, its next, … | |
| recursive ``(c, ℓ)`` | ``r_1 < c (r_ℓ + r_{ℓ+1} + …)`` in every class | machanavajjhala2007 |
| ``α`` | ``max_E max_v P_E(v)`` | wong2006 |
| ``h`` | ``max_E max_{v confidential} P_E(v)``: largest certainty about a confidential value | wang2007 |
| ``e`` | least range of the sensitive values in a class; (k, e) also requires k distinct values | zhang2007 |
| ``t`` | largest earth mover's distance between a class's and the table's sensitive values | li2007 |

Earth mover's distance: for unordered values ``½ Σ |P_E − P|`` (all distances 1). For numbers,
ranked 1 … m, neighbours are 1/(m−1) apart: ``Σ_i |Σ_{j≤i} (P_E − P)(j)| / (m−1)``. With a
hierarchy, the distance is the height of the lowest common ancestor over the tree's.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from auditor.types import Array, Indices

Ground = Literal["equal", "ordered"] | Mapping[Hashable, Sequence[Hashable]]
"""Distance between sensitive values: equal, by rank, or by each value's ancestors from parent to
root (equal numbers).
"""


def counted(classes: Indices, codes: Indices, shape: tuple[int, int]) -> Array:
    """Return the number of records per class and value, shape (classes, V)."""
    counts = np.zeros(shape)
    np.add.at(counts, (classes, codes), 1.0)
    return counts


def entropies(P: Array) -> Array:
    """Return ``−Σ P ln P`` of each row, shape (rows,)."""
    return np.asarray(-(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1))


def rarer_over_commonest(counts: Array, ell: int) -> Array:
    """Return ``(r_ℓ + r_{ℓ+1} + …)/r_1`` of each class, shape (classes,).

    From counts of shape (classes, V). Recursive (c, ℓ) holds for every c above its inverse; for
    none where it is 0.

    Examples
    --------
    >>> rarer_over_commonest(np.array([[2, 4, 1, 1], [0, 3, 0, 0]]), 2)
    array([1., 0.])
    """
    r = -np.sort(-counts, axis=1)
    return np.asarray(r[:, ell - 1 :].sum(axis=1) / r[:, 0])


def spans(counts: Array, values: Array) -> Array:
    """Return the range of each class's sensitive values, shape (classes,).

    ``values`` is ascending, of shape (V,).
    """
    held = counts > 0
    return np.asarray(values[::-1][held[:, ::-1].argmax(axis=1)] - values[held.argmax(axis=1)])


def earth_mover(P_E: Array, P: Array, values: Sequence[Hashable], distance: Ground) -> Array:
    """Return each class's distance from the table, shape (classes,).

    ``values`` are sorted, in the order of ``P``'s columns.
    """
    gap = P_E - P
    if distance == "equal":
        return np.asarray(0.5 * np.abs(gap).sum(axis=1))
    if distance == "ordered":
        steps = max(1, len(values) - 1)
        return np.asarray(np.abs(np.cumsum(gap, axis=1)).sum(axis=1) / steps)
    return _hierarchical(gap, values, distance)


def _hierarchical(
    gap: Array, values: Sequence[Hashable], ancestors: Mapping[Hashable, Sequence[Hashable]]
) -> Array:
    """Return the earth mover's distance under a hierarchy (li2007).

    ``Σ over inner nodes (height/H)·min(surplus, deficit among children)``.
    """
    total = np.zeros(len(gap))
    for weight, under, children in _floors(tuple((value, *ancestors[value]) for value in values)):
        extra = gap @ under
        total += weight * np.minimum(
            np.clip(extra, 0, None) @ children, np.clip(-extra, 0, None) @ children
        ).sum(axis=1)
    return total


@lru_cache(maxsize=16)
def _floors(chains: tuple[tuple[Hashable, ...], ...]) -> list[tuple[float, Array, Array]]:
    """Return ``height/H``, values' nodes and nodes' parents, per height.

    Cached: a partition evaluates tens of thousands of classes under one hierarchy.
    """
    found, H = [], len(chains[0]) - 1
    for height in range(1, H + 1):
        below = [*dict.fromkeys(chain[height - 1 :] for chain in chains)]
        parents = [*dict.fromkeys(node[1:] for node in below)]
        under = np.array(
            [[float(chain[height - 1 :] == node) for node in below] for chain in chains]
        )
        children = np.array([[float(node[1:] == parent) for parent in parents] for node in below])
        found.append((height / H, under, children))
    return found

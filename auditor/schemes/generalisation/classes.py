"""What equivalence classes promise, by definition: k, distinct and entropy ℓ, α and t; ``promises`` finds them for copies.

| symbol | meaning | source |
| --- | --- | --- |
| ``E`` | equivalence class: records alike in all quasi-identifiers | samarati2001 |
| ``P_E(v), P(v)`` | share of sensitive value v in a class, in the table | |
| ``k`` | size of the smallest class | samarati2001 |
| distinct ``ℓ`` | fewest distinct sensitive values in a class | machanavajjhala2007 |
| entropy ``ℓ`` | ``min_E exp(−Σ_v P_E(v) ln P_E(v))`` | machanavajjhala2007 |
| ``α`` | ``max_E max_v P_E(v)`` | wong2006 |
| ``t`` | largest earth mover's distance between a class's and the table's sensitive values | li2007 |

Earth mover's distance: for unordered values all are 1 apart, ``½ Σ |P_E − P|``; for numbers, ranked 1 … m, neighbours are 1/(m−1) apart,
``Σ_i |Σ_{j≤i} (P_E − P)(j)| / (m−1)``; with a hierarchy, values are apart by the height of their lowest common ancestor over the tree's.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal

import numpy as np

from auditor.types import Array, Indices

Ground = Literal["equal", "ordered"] | Mapping[Hashable, Sequence[Hashable]]
"""How far sensitive values are apart: all alike, by rank, or by each value's ancestors from parent to root, all as many."""


def counted(classes: Indices, codes: Indices, shape: tuple[int, int]) -> Array:
    """Return how many records of each class have each value, shape (classes, V), from records' classes and values by number."""
    counts = np.zeros(shape)
    np.add.at(counts, (classes, codes), 1.0)
    return counts


def entropies(P: Array) -> Array:
    """Return ``−Σ P ln P`` of each row, shape (rows,)."""
    return np.asarray(-(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1))


def earth_mover(P_E: Array, P: Array, values: Sequence[Hashable], distance: Ground) -> Array:
    """Return each class's distance from the table, shape (classes,); ``values`` sorted, as ``P``'s columns are."""
    gap = P_E - P
    if distance == "equal":
        return np.asarray(0.5 * np.abs(gap).sum(axis=1))
    if distance == "ordered":
        steps = max(1, len(values) - 1)
        return np.asarray(np.abs(np.cumsum(gap, axis=1)).sum(axis=1) / steps)
    return _hierarchical(gap, values, distance)


def _hierarchical(gap: Array, values: Sequence[Hashable], ancestors: Mapping[Hashable, Sequence[Hashable]]) -> Array:
    """Return ``Σ over inner nodes (height/H)·min(surplus, deficit among children)`` (li2007, section 4.2)."""
    chains = [(value, *ancestors[value]) for value in values]
    H = len(chains[0]) - 1
    total = np.zeros(len(gap))
    for height in range(1, H + 1):
        parents = sorted({chain[height:] for chain in chains}, key=repr)
        for parent in parents:
            below = sorted({chain[height - 1 :] for chain in chains if chain[height:] == parent}, key=repr)
            extra = np.stack([gap[:, [k for k, c in enumerate(chains) if c[height - 1 :] == child]].sum(axis=1) for child in below])
            surplus, deficit = np.clip(extra, 0, None).sum(axis=0), np.clip(-extra, 0, None).sum(axis=0)
            total += height / H * np.minimum(surplus, deficit)
    return total

"""What a table's equivalence classes promise: k, distinct and entropy ℓ, α and t, each by its definition.

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
import pandas as pd

from auditor.types import Array, Indices

Ground = Literal["equal", "ordered"] | Mapping[Hashable, Sequence[Hashable]]
"""How far sensitive values are apart: all alike, by rank, or by each value's ancestors from parent to root, all as many."""


def equivalence_classes(frame: pd.DataFrame, quasi: Sequence[str]) -> Indices:
    """Return the number of each record's class, shape (n,), by first appearance."""
    if not quasi:
        return np.zeros(len(frame), dtype=np.intp)
    return np.asarray(frame.groupby(list(quasi), sort=False, dropna=False, observed=True).ngroup(), dtype=np.intp)


def shares(classes: Indices, sensitive: pd.Series) -> tuple[Array, Array, list[Hashable]]:
    """Return ``P_E(v)``, shape (classes, V), ``P(v)``, shape (V,), and the values, sorted."""
    codes, values = pd.factorize(sensitive, sort=True)
    counts = counted(classes, codes, (int(classes.max()) + 1, len(values)))
    return counts / counts.sum(axis=1, keepdims=True), counts.sum(axis=0) / len(sensitive), list(values)


def counted(classes: Indices, codes: Indices, shape: tuple[int, int]) -> Array:
    """Return how many records of each class have each value, shape (classes, V), from records' classes and values by number."""
    counts = np.zeros(shape)
    np.add.at(counts, (classes, codes), 1.0)
    return counts


def k_anonymity(frame: pd.DataFrame, quasi: Sequence[str]) -> int:
    """Return k.

    Examples
    --------
    >>> k_anonymity(pd.DataFrame({"zip": ["47*", "47*", "90*", "90*", "90*"]}), ["zip"])
    2
    """
    return int(np.bincount(equivalence_classes(frame, quasi)).min())


def distinct_diversity(frame: pd.DataFrame, quasi: Sequence[str], sensitive: str) -> int:
    """Return distinct ℓ."""
    P_E, _, _ = shares(equivalence_classes(frame, quasi), frame[sensitive])
    return int((P_E > 0).sum(axis=1).min())


def entropy_diversity(frame: pd.DataFrame, quasi: Sequence[str], sensitive: str) -> float:
    """Return entropy ℓ: a real number, at most distinct ℓ."""
    P_E, _, _ = shares(equivalence_classes(frame, quasi), frame[sensitive])
    return float(np.exp(entropies(P_E).min()))


def entropies(P: Array) -> Array:
    """Return ``−Σ P ln P`` of each row, shape (rows,)."""
    return np.asarray(-(P * np.log(np.where(P > 0, P, 1.0))).sum(axis=1))


def largest_share(frame: pd.DataFrame, quasi: Sequence[str], sensitive: str) -> float:
    """Return α."""
    P_E, _, _ = shares(equivalence_classes(frame, quasi), frame[sensitive])
    return float(P_E.max())


def t_closeness(frame: pd.DataFrame, quasi: Sequence[str], sensitive: str, distance: Ground) -> float:
    """Return t.

    Parameters
    ----------
    distance : Ground
        Between sensitive values.
    """
    P_E, P, values = shares(equivalence_classes(frame, quasi), frame[sensitive])
    return float(earth_mover(P_E, P, values, distance).max())


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

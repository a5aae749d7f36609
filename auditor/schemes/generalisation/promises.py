"""What k-anonymous copies keep of their promises, alone and pooled: k, ℓ, α and t of the classes that a coalition sees.

| metric | meaning |
| --- | --- |
| ``anonymity_k`` | records in the smallest class |
| ``anonymity_distinct`` | fewest distinct sensitive values in a class |
| ``anonymity_entropy`` | least entropy ℓ of a class |
| ``anonymity_alpha`` | largest share of one sensitive value in a class |
| ``anonymity_t`` | largest earth mover's distance of a class from the table |

The definitions are those of ``auditor.schemes.generalisation.classes``. Records that every copy held suppresses are in no class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from auditor.schemes.generalisation.classes import Ground, earth_mover, entropies
from auditor.schemes.generalisation.copies import Layout
from auditor.types import Array, Block, Coalition


def promises(signature: Array, sensitive: Array, whole: Array, ground: Ground) -> dict[str, float]:
    """Return every metric.

    Parameters
    ----------
    look : ndarray of shape (m, any)
        Of the records released, by ``Layout.signatures``; m ≥ 1.
    sensitive : ndarray of shape (m,)
        Their sensitive values, all of them among ``whole``'s.
    whole : ndarray of shape (n,)
        The original's sensitive values: what classes are compared with.
    ground : Ground
        How far sensitive values, as places among the original's distinct ones, are apart.

    Examples
    --------
    >>> promises(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([1.0, 2, 3, 3]), np.array([1.0, 2, 3, 3]), "equal")["anonymity_k"]
    2.0
    """
    values, places = np.unique(whole, return_inverse=True)
    P = np.bincount(places.ravel()) / len(whole)
    classes = np.unique(signature, axis=0, return_inverse=True)[1].ravel()
    counts = np.zeros((int(classes.max()) + 1, len(values)))
    np.add.at(counts, (classes, np.searchsorted(values, sensitive)), 1.0)
    sizes = counts.sum(axis=1)
    P_E = counts / sizes[:, None]
    return {
        "anonymity_k": float(sizes.min()),
        "anonymity_distinct": float((counts > 0).sum(axis=1).min()),
        "anonymity_entropy": float(np.exp(entropies(P_E).min())),
        "anonymity_alpha": float(P_E.max()),
        "anonymity_t": float(earth_mover(P_E, P, range(len(values)), ground).max()),
    }


def by_coalition(
    blocks: Iterable[Block], coalitions: Sequence[Coalition], layout: Layout, ground: Ground
) -> dict[Coalition, dict[str, float]]:
    """Return every metric of every coalition; none of a coalition to which nothing is released."""
    seen: list[list[tuple[Array, Array, NDArray[np.bool_]]]] = [[] for _ in coalitions]
    whole = []
    for _, x, copies in blocks:
        whole.append(x[:, layout.target].copy())
        for found, coalition in zip(seen, coalitions, strict=True):
            held = [copies[copy - 1] for copy in coalition]
            found.append((layout.signatures(held), *layout.released(held)))
    kept = {}
    for coalition, parts in zip(coalitions, seen, strict=True):
        signature, value, there = (np.concatenate(each) for each in zip(*parts, strict=True))
        if there.any():
            kept[coalition] = promises(signature[there], value[there], np.concatenate(whole), ground)
    return kept

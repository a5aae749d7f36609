"""Measured promises of k-anonymous copies, alone and pooled.

| metric | meaning |
| --- | --- |
| ``anonymity_k`` | records in the smallest class |
| ``anonymity_distinct`` | fewest distinct sensitive values in a class |
| ``anonymity_entropy`` | least entropy ℓ of a class |
| ``anonymity_alpha`` | largest share of one sensitive value in a class |
| ``anonymity_recursive(ℓ)`` | least ``(r_ℓ + r_{ℓ+1} + …)/r_1`` of a class, for ℓ = 2 and 3: recursive (c, ℓ) for c above its inverse |
| ``anonymity_confidence`` | largest share of a confidential value in a class; only if the scheme names confidential values |
| ``anonymity_range`` | least range of the sensitive values in a class, over the table's; not for values with a hierarchy |
| ``anonymity_t`` | largest earth mover's distance of a class from the table |
| ``anonymity_size`` | mean size of a record's class (discernibility, over n): a loss of utility |

Definitions: ``auditor.schemes.generalisation.classes``. With fewer quasi-identifiers an adversary
faces several classes and their mean confidence, which ``anonymity_confidence`` also bounds. Records
that every copy held suppresses are in no class.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.schemes.generalisation.classes import (
    Ground,
    counted,
    earth_mover,
    entropies,
    rarer_over_commonest,
    spans,
)
from auditor.schemes.generalisation.copies import classes, released
from auditor.types import Array, Block, Coalition, Indices


def promises(
    members: Indices,
    sensitive: Array,
    whole: Array,
    ground: Ground,
    confidential: Sequence[float] = (),
) -> dict[str, float]:
    """Return every metric.

    Parameters
    ----------
    members : ndarray of shape (m, k)
        The class, in every copy held, of each record released; m ≥ 1.
    sensitive : ndarray of shape (m,)
        Their sensitive values, all of them among ``whole``'s.
    whole : ndarray of shape (n,)
        The original's sensitive values, the reference distribution.
    ground : Ground
        Distance between sensitive values, as places among the original's distinct ones.
    confidential : sequence of float
        Confidential sensitive values; they need not occur.

    Examples
    --------
    >>> promises(np.array([[0], [0], [1], [1]]), np.array([1.0, 2, 3, 3]), np.array([1.0, 2, 3, 3]), "equal")["anonymity_k"]
    2.0
    """
    values, places = np.unique(whole, return_inverse=True)
    P = np.bincount(places.ravel()) / len(whole)
    found, number = np.unique(members, axis=0, return_inverse=True)
    counts = counted(number.ravel(), np.searchsorted(values, sensitive), (len(found), len(values)))
    sizes = counts.sum(axis=1)
    P_E = counts / sizes[:, None]
    kept = {
        "anonymity_k": float(sizes.min()),
        "anonymity_distinct": float((counts > 0).sum(axis=1).min()),
        "anonymity_entropy": float(np.exp(entropies(P_E).min())),
        "anonymity_alpha": float(P_E.max()),
        "anonymity_t": float(earth_mover(P_E, P, range(len(values)), ground).max()),
        "anonymity_size": float(sizes @ sizes / sizes.sum()),
        "anonymity_recursive(2)": float(rarer_over_commonest(counts, 2).min()),
        "anonymity_recursive(3)": float(rarer_over_commonest(counts, 3).min()),
    }
    if confidential:
        kept["anonymity_confidence"] = float(P_E[:, np.isin(values, confidential)].max(initial=0.0))
    if ground == "ordered":
        kept["anonymity_range"] = float(spans(counts, values).min() / (np.ptp(values) or 1.0))
    return kept


def by_coalition(
    blocks: Iterable[Block],
    coalitions: Sequence[Coalition],
    sensitive: int,
    ground: Ground,
    confidential: Sequence[float] = (),
) -> dict[Coalition, dict[str, float]]:
    """Return every metric of every coalition that has released records.

    ``sensitive`` is the place of the sensitive attribute; see ``promises``.
    """
    seen: list[list[tuple[NDArray[Any], ...]]] = [[] for _ in coalitions]
    whole = []
    for _, x, copies in blocks:
        whole.append(x[:, sensitive].copy())
        for found, coalition in zip(seen, coalitions, strict=True):
            held = [copies[copy - 1] for copy in coalition]
            found.append((classes(held), *released(held, sensitive)))
    kept = {}
    for coalition, parts in zip(coalitions, seen, strict=True):
        members, value, there = (np.concatenate(each) for each in zip(*parts, strict=True))
        if there.any():
            kept[coalition] = promises(
                members[there], value[there], np.concatenate(whole), ground, confidential
            )
    return kept

"""Equivalence classes of copies, and partitions into classes.

| symbol | meaning | source |
| --- | --- | --- |
| ``E`` | equivalence class: records equal in all quasi-identifiers | samarati2001 |
| ``P_E(v), P(v)`` | share of sensitive value v in a class, in the table | |
| ``k`` | size of the smallest class | samarati2001 |
| distinct ``ℓ`` | fewest distinct sensitive values in a class | machanavajjhala2007 |
| entropy ``ℓ`` | ``min_E exp(−Σ_v P_E(v) ln P_E(v))`` | machanavajjhala2007 |
| ``r_1 ≥ r_2 ≥ …`` | counts of a class's sensitive values | |
| recursive ``(c, ℓ)`` | ``r_1 < c (r_ℓ + r_{ℓ+1} + …)`` in every class | machanavajjhala2007 |
| ``α`` | ``max_E max_v P_E(v)`` | wong2006 |
| ``h`` | ``max_E max_{v confidential} P_E(v)`` | wang2007 |
| ``e`` | least range of the sensitive values in a class; (k, e) also has k distinct values | zhang2007 |
| ``t`` | largest earth mover's distance between a class's and the table's sensitive values | li2007 |

Earth mover's distance: for unordered values ``½ Σ |P_E − P|``. For numbers, ranked 1 … m, ``Σ_i
|Σ_{j≤i} (P_E − P)(j)| / (m−1)``. With a hierarchy, relative heights of the lowest common ancestor.

A copy is a structured array: ``class`` (−1: suppressed), and ranges ``low`` to ``high``, shapes
(N,). A suppressed record has the whole domain as quasi-identifiers, and means elsewhere.
``anonymity_size``: mean size of a record's class.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import (
    Array,
    Block,
    ClassRecords,
    Coalition,
    Coalitions,
    Flags,
    Indices,
    Pair,
)
from auditor.numerics.statistics import rows_by_value


def blank(rows: int, width: int) -> ClassRecords:
    """Memory for a copy."""
    return np.empty(
        rows,
        dtype=[("class", np.intp), ("low", np.float64, (width,)), ("high", np.float64, (width,))],
    )


def compose(
    values: Array, quasi: Sequence[int], numbers: Indices, low: Array, high: Array
) -> ClassRecords:
    """Copy from released values, (n, N), classes, and ranges, (n, q)."""
    copy = blank(*values.shape)
    copy["class"], copy["low"], copy["high"] = numbers, values, values
    copy["low"][:, quasi], copy["high"][:, quasi] = low, high
    return copy


def to_columns(copy: ClassRecords, quasi: Sequence[int]) -> Array:
    """Lower bounds, upper bounds, other attributes, suppression flag."""
    low, high = copy["low"], copy["high"]
    return np.hstack(
        [low[:, quasi], high[:, quasi], np.delete(low, quasi, axis=1), copy["class"][:, None] < 0]
    )


def from_columns(columns: Array, quasi: Sequence[int]) -> ClassRecords:
    """Invert ``to_columns``."""
    q = len(quasi)
    low, high, others, suppressed = np.split(columns, [q, 2 * q, -1], axis=1)
    values = np.zeros((len(columns), q + others.shape[1]))
    values[:, np.delete(np.arange(values.shape[1]), quasi)] = others
    found = np.unique(columns[:, : 2 * q], axis=0, return_inverse=True)[1].ravel()
    return compose(values, quasi, np.where(suppressed[:, 0] > 0, -1, found), low, high)


def classes(copies: Sequence[ClassRecords]) -> Indices:
    """Each record's class in every copy held, shape (b, k)."""
    return np.stack([copy["class"] for copy in copies], axis=1)


def released(copies: Sequence[ClassRecords], attribute: int) -> tuple[Array, Flags]:
    """Attribute's values, (b,), and records that a copy releases."""
    shown = classes(copies) >= 0
    values = np.stack([copy["low"][:, attribute] for copy in copies], axis=1)
    return values[np.arange(len(shown)), shown.argmax(axis=1)], np.asarray(shown.any(axis=1))


def ranges(copies: Sequence[ClassRecords]) -> Pair:
    """Each attribute's range over the copies that have the record."""
    shown = classes(copies) >= 0
    shown[:, 0] |= ~shown.any(axis=1)
    seen = shown.T[:, :, None]
    low, high = (np.stack([copy[end] for copy in copies]) for end in ("low", "high"))
    return np.where(seen, low, -np.inf).max(axis=0), np.where(seen, high, np.inf).min(axis=0)


def tells(one: ClassRecords, other: ClassRecords) -> bool:
    """Whether a copy is sufficient for another, by nested classes and ranges."""
    mine, theirs = one["class"], other["class"]
    of_class = np.empty(mine.max(initial=0) + 2, dtype=int)
    of_class[mine] = theirs
    shown = theirs >= 0
    return bool(
        (of_class[mine] == theirs).all()
        and (mine >= 0)[shown].all()
        and (other["low"] <= one["low"])[shown].all()
        and (one["high"] <= other["high"])[shown].all()
    )


def sufficient(blocks: Iterable[Block], coalitions: Coalitions) -> dict[Coalition, bool]:
    """Whether one copy of each coalition is sufficient for the others."""
    parts = [[copy.copy() for copy in copies] for _, _, copies in blocks]
    whole = [np.concatenate(copy) for copy in zip(*parts, strict=True)]
    held = sorted({copy for coalition in coalitions for copy in coalition})
    nested = {(i, j) for i in held for j in held if i != j and tells(whole[i - 1], whole[j - 1])}
    return {c: any(all(i == j or (i, j) in nested for j in c) for i in c) for c in coalitions}


Ground = Literal["equal", "ordered"] | Mapping[Hashable, Sequence[Hashable]]
"""Distance between sensitive values: equal, by rank, or by ancestors up to the root.
"""


def counted(classes: Indices, codes: Indices, shape: tuple[int, int]) -> Array:
    """Number of records per class and value, shape (classes, V)."""
    counts = np.zeros(shape)
    np.add.at(counts, (classes, codes), 1.0)
    return counts


def rarer_over_commonest(counts: Array, ell: int) -> Array:
    """``(r_ℓ + r_{ℓ+1} + …)/r_1`` of each class, shape (classes,).

    Counts (classes, V). Recursive (c, ℓ) holds for c above the inverse.

    Examples
    --------
    >>> rarer_over_commonest(np.array([[2, 4, 1, 1], [0, 3, 0, 0]]), 2)
    array([1., 0.])
    """
    r = -np.sort(-counts, axis=1)
    return r[:, ell - 1 :].sum(axis=1) / r[:, 0]


LEAST, MOST = ("distinct", "entropy", "range"), ("alpha", "t", "confidence")
"""Figures of a class that rules bound from below, and from above."""


def class_figures(
    counts: Array, P: Array, values: Array, ground: Ground, confidential: Indices
) -> dict[str, Array]:
    """Figures of each class, shapes (classes,).

    Parameters
    ----------
    counts : (classes, V)
        Records by sensitive value.
    P, values : (V,)
        Shares of the table's sensitive values, and these, ascending.
    confidential
        Places of the confidential values.
    """
    sizes, held = counts.sum(axis=1), counts > 0
    P_E = counts / sizes[:, None]
    span = values[::-1][held[:, ::-1].argmax(axis=1)] - values[held.argmax(axis=1)]
    return {
        "k": sizes,
        "distinct": held.sum(axis=1),
        "entropy": np.exp(-(P_E * np.log(np.where(held, P_E, 1.0))).sum(axis=1)),
        "alpha": P_E.max(axis=1),
        "t": earth_mover(P_E, P, range(P.size), ground),
        "confidence": P_E[:, confidential].max(axis=1, initial=0.0),
        "range": span / (np.ptp(values) or 1.0),
    }


def earth_mover(P_E: Array, P: Array, values: Sequence[Hashable], distance: Ground) -> Array:
    """Each class's distance from the table, (classes,); values sorted."""
    gap = P_E - P
    if distance == "equal":
        return 0.5 * np.abs(gap).sum(axis=1)
    if distance == "ordered":
        return np.abs(np.cumsum(gap, axis=1)).sum(axis=1) / max(1, len(values) - 1)
    # inner nodes: height/H times the lesser of surplus and deficit among children (li2007)
    total = np.zeros(len(gap))
    for weight, under, children in _floors(tuple((value, *distance[value]) for value in values)):
        extra = gap @ under
        total += weight * np.minimum(
            np.clip(extra, 0, None) @ children, np.clip(-extra, 0, None) @ children
        ).sum(axis=1)
    return total


@lru_cache(maxsize=16)
def _floors(chains: tuple[tuple[Hashable, ...], ...]) -> list[tuple[float, Array, Array]]:
    """``height/H``, values' nodes and nodes' parents, per height; cached."""
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


def promises(
    members: Indices,
    sensitive: Array,
    whole: Array,
    ground: Ground,
    confidential: Sequence[float] = (),
) -> dict[str, float]:
    """Every metric.

    Parameters
    ----------
    members : (m, k)
        Classes of released records in every copy held; m ≥ 1.
    sensitive, whole : (m,) and (n,)
        Sensitive values, theirs and the original's.

    Examples
    --------
    >>> promises(np.array([[0], [0], [1], [1]]), np.array([1.0, 2, 3, 3]), np.array([1.0, 2, 3, 3]), "equal")["anonymity_k"]
    2.0
    """
    values, places = np.unique(whole, return_inverse=True)
    P = np.bincount(places.ravel()) / len(whole)
    found, number = np.unique(members, axis=0, return_inverse=True)
    counts = counted(number.ravel(), np.searchsorted(values, sensitive), (len(found), len(values)))
    places = np.flatnonzero(np.isin(values, confidential))
    figures = class_figures(counts, P, values, ground, places)
    sizes = figures["k"]
    kept = {
        f"anonymity_{name}": float(each.max() if name in MOST else each.min())
        for name, each in figures.items()
        if (confidential or name != "confidence") and (ground == "ordered" or name != "range")
    }
    return kept | {
        "anonymity_size": float(sizes @ sizes / sizes.sum()),
        "anonymity_recursive(2)": float(rarer_over_commonest(counts, 2).min()),
        "anonymity_recursive(3)": float(rarer_over_commonest(counts, 3).min()),
    }


def by_coalition(
    blocks: Iterable[Block],
    coalitions: Coalitions,
    sensitive: int,
    ground: Ground,
    confidential: Sequence[float] = (),
) -> dict[Coalition, dict[str, float]]:
    """Every metric of every coalition that has released records."""
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


# -- k-anonymous partitions: Mondrian's median cuts or full-domain recoding ------------------------


Rung = float | Array
"""A bin width (0: unchanged; infinity: the domain), or ascending first places of a hierarchy's
nodes.
"""


class Rules(NamedTuple):
    """Conditions on every class.

    Attributes
    ----------
    values
        Sensitive values, ascending.
    least, most
        Bounds of ``class_figures``, by name.
    recursive : (float, int)
        c and ℓ.
    confidential
        Places among the values.
    ground
        By rank, or by ancestors in a hierarchy.
    """

    k: int
    values: Array
    least: Mapping[str, float] = MappingProxyType({})
    most: Mapping[str, float] = MappingProxyType({})
    recursive: tuple[float, int] = (np.inf, 1)
    confidential: Indices = np.empty(0, dtype=int)
    ground: Ground = "ordered"

    def hold(self, codes: Indices, P: Array) -> bool:
        """Whether a class of sensitive ``codes`` satisfies the rules."""
        if codes.size < self.k:
            return False
        counts = np.bincount(codes, minlength=P.size)[None].astype(float)
        kept = class_figures(counts, P, self.values, self.ground, self.confidential)
        c, ell = self.recursive
        return bool(
            all(kept[name][0] >= least - 1e-12 for name, least in self.least.items())
            and all(kept[name][0] <= most + 1e-12 for name, most in self.most.items())
            and c * rarer_over_commonest(counts, ell)[0] > 1.0 + 1e-12
        )


class Partition(NamedTuple):
    """Class of each record, −1 if suppressed, and ranges, shapes (n, q)."""

    numbers: Indices
    low: Array
    high: Array


def mondrian(Q: Array, codes: Indices, rules: Rules, coarser: Partition | None = None) -> Partition:
    """Strict Mondrian partition.

    Parameters
    ----------
    Q : (n, q)
    codes : (n,)
        Places of sensitive values.
    rules
        The table must satisfy the rules, *not checked*.
    coarser
        Classes to cut, which satisfy the rules (*not checked*).
    """
    P = np.bincount(codes) / len(codes)
    parts = [np.arange(len(Q))] if coarser is None else rows_by_value(coarser.numbers)
    return _divided(
        Q, Q, np.ones(len(Q), dtype=int), rules.k, lambda rows: rules.hold(codes[rows], P), parts
    )


def merged(finer: Partition, k: int, coarser: Partition | None) -> Partition:
    """Partition that merges classes of a finer one by Mondrian's cuts.

    Unions keep the promises other than k (docs/method.md).

    Parameters
    ----------
    finer
        No class overlaps, no record is suppressed.
    coarser
        Unions of ``finer``'s classes, *not checked*.
    """
    _, first, member, sizes = np.unique(
        finer.numbers, return_index=True, return_inverse=True, return_counts=True
    )
    parts = [np.arange(len(sizes))]
    if coarser is not None:
        parts = rows_by_value(coarser.numbers[first])
    ranges = finer.low[first], finer.high[first]
    made = _divided(*ranges, sizes, k, lambda classes: sizes[classes].sum() >= k, parts)
    at = member.ravel()
    return Partition(made.numbers[at], made.low[at], made.high[at])


def _divided(
    low: Array,
    high: Array,
    sizes: Indices,
    k: int,
    allowed: Callable[[Indices], bool],
    parts: Sequence[Indices],
) -> Partition:
    """Partition after all cuts.

    Members have ranges, (m, q), and ``sizes``, (m,).
    """
    domain = np.ptp(np.vstack([low, high]), axis=0)
    domain = np.where(domain > 0, domain, 1.0)
    made = Partition(np.empty(len(low), dtype=int), np.empty_like(low), np.empty_like(high))
    waiting, number = list(parts), 0
    while waiting:
        part = waiting.pop()
        cuts = _cuts(part, low[part], high[part], sizes[part], domain)
        for halves in cuts if sizes[part].sum() >= 2 * k else ():
            if allowed(halves[0]) and allowed(halves[1]):
                waiting.extend(halves)
                break
        else:
            made.numbers[part], number = number, number + 1
            made.low[part], made.high[part] = low[part].min(axis=0), high[part].max(axis=0)
    return made


def _cuts(
    part: Indices, low: Array, high: Array, sizes: Indices, domain: Array
) -> Iterator[tuple[Indices, Indices]]:
    span = (high.max(axis=0) - low.min(axis=0)) / domain
    for column in np.argsort(-span, kind="stable"):
        below = _at_median(low[:, column], high[:, column], sizes)
        if below is not None:
            yield part[below], part[~below]


def _at_median(low: Array, high: Array, sizes: Indices) -> Flags | None:
    """Ranges below the median cut, or the last possible one.

    None if all cross.

    Examples
    --------
    >>> _at_median(np.array([1.0, 2, 2, 5]), np.array([3.0, 2, 4, 6]), np.array([1, 1, 1, 1]))
    array([ True,  True,  True, False])
    """
    order = np.argsort(low, kind="stable")
    reach = np.maximum.accumulate(high[order])
    (cuts,) = np.nonzero(reach[:-1] < low[order][1:])
    if not cuts.size:
        return None
    below = np.cumsum(sizes[order])[cuts]
    return low <= reach[cuts[min(np.searchsorted(below, sizes.sum() / 2), cuts.size - 1)]]


def full_domain(
    Q: Array, codes: Indices, rules: Rules, rungs: Sequence[Sequence[Rung]], most_suppressed: float
) -> Partition | None:
    """Lowest partition of the lattice that satisfies the rules.

    Parameters
    ----------
    rungs : sequence of q sequences of Rung
        From fine to coarse.
    most_suppressed
        Largest share of records.
    """
    P, start = np.bincount(codes) / len(codes), Q.min(axis=0)
    for heights in sorted(
        itertools.product(*(range(len(steps)) for steps in rungs)), key=lambda h: (sum(h), h)
    ):
        low, high = _binned(Q, start, [steps[h] for steps, h in zip(rungs, heights, strict=True)])
        numbers = np.unique(low, axis=0, return_inverse=True)[1].ravel()
        bad = np.concatenate(
            [
                np.empty(0, dtype=int),
                *(rows for rows in rows_by_value(numbers) if not rules.hold(codes[rows], P)),
            ]
        )
        if bad.size <= most_suppressed * len(Q):
            numbers[bad], low[bad], high[bad] = -1, start, Q.max(axis=0)
            return Partition(numbers, low, high)
    return None


def _binned(Q: Array, start: Array, rungs: Sequence[Rung]) -> Pair:
    low, high = Q.copy(), Q.copy()
    for x, first, a, b, width in zip(Q.T, start, low.T, high.T, rungs, strict=True):
        if isinstance(width, np.ndarray):
            node = np.searchsorted(width, x, side="right") - 1
            a[:], b[:] = width[node], np.append(width[1:] - 1.0, np.inf)[node]
            np.minimum(b, x.max(), out=b)
        elif np.isinf(width):
            a[:], b[:] = first, x.max()
        elif width > 0:
            a[:] = first + np.floor((x - first) / width) * width
            b[:] = a + width
    return low, high

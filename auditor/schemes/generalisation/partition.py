"""k-anonymous partitions: Mondrian's median cuts or full-domain recoding.

| symbol | meaning | source |
| --- | --- | --- |
| cut | split at the median of the relatively widest quasi-identifier | lefevre2006 |
| rules | size ≥ k of every part, and ℓ, α, h, e, t if requested | |
| rung | coarseness: bins of one width, or a hierarchy's nodes of one height; last, the domain | samarati2001 |
| lattice | combinations of rungs by total height; the lowest that satisfies the rules, suppression allowed | samarati2001 |

Categories are places among a hierarchy's leaves. Mondrian's intervals need not be nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.types import Array, Indices
from auditor.schemes.generalisation.classes import (
    Ground,
    earth_mover,
    entropies,
    rarer_over_commonest,
    spans,
)

Rung = float | Array
"""A bin width (0: unchanged; infinity: the domain), or ascending first places of a hierarchy's
nodes.
"""


@dataclass(frozen=True)
class Rules:
    """Conditions on every class.

    Attributes
    ----------
    distinct
        Fewest distinct sensitive values.
    entropy
        Least entropy ℓ.
    alpha
        Largest share of one sensitive value.
    t
        Largest earth mover's distance.
    recursive : (float, int)
        c and ℓ; ``ℓ = 1`` or infinite c: no rule.
    confidence
        Largest share of one confidential value.
    confidential
        Places among the table's.
    spread
        Least range of the sensitive values.
    values
        Sensitive values, ascending, for ``spread``.
    ground
        By rank, or by ancestors in a hierarchy.
    """

    k: int
    distinct: int = 1
    entropy: float = 1.0
    alpha: float = 1.0
    t: float = 1.0
    recursive: tuple[float, int] = (np.inf, 1)
    confidence: float = 1.0
    confidential: tuple[int, ...] = ()
    spread: float = 0.0
    values: tuple[float, ...] = field(default=(), repr=False)
    ground: Ground = field(default="ordered", repr=False)

    def hold(self, codes: Indices, P: Array) -> bool:
        """Whether a class of sensitive ``codes`` satisfies the rules."""
        if codes.size < self.k:
            return False
        counts = np.bincount(codes, minlength=P.size)[None].astype(np.float64)
        P_E, (c, ell) = counts / codes.size, self.recursive
        return bool(
            (P_E > 0).sum() >= self.distinct
            and np.exp(entropies(P_E)[0]) >= self.entropy - 1e-12
            and P_E.max() <= self.alpha + 1e-12
            and earth_mover(P_E, P, range(P.size), self.ground)[0] <= self.t + 1e-12
            and (np.isinf(c) or c * rarer_over_commonest(counts, ell)[0] > 1.0 + 1e-12)
            and P_E[0, list(self.confidential)].max(initial=0.0) <= self.confidence + 1e-12
            and (
                self.spread == 0.0
                or spans(counts, np.asarray(self.values))[0]
                >= self.spread * np.ptp(self.values) * (1.0 - 1e-12)
            )
        )


class Partition(NamedTuple):
    """Class of each record, −1 if suppressed, and ranges, shapes (n, q)."""

    numbers: Indices
    low: Array
    high: Array

    @property
    def classes(self) -> list[Indices]:
        """The rows of each class, if no record is suppressed."""
        return _members(self.numbers)


def mondrian(
    Q: Array, codes: Indices, rules: Rules, within: Sequence[Indices] | None = None
) -> list[Indices]:
    """Rows of each class of a strict Mondrian partition.

    Parameters
    ----------
    Q : (n, q)
    codes : (n,)
        Places of sensitive values.
    rules
        The table must satisfy them, *not checked*.
    within : sequence of ndarrays
        Classes to cut, which satisfy the rules (*not checked*).
    """
    P = np.bincount(codes) / len(codes)
    parts = [np.arange(len(Q))] if within is None else within
    return _divided(
        Q,
        Q,
        np.ones(len(Q), dtype=np.intp),
        rules.k,
        lambda rows: rules.hold(codes[rows], P),
        parts,
    )


def merged(finer: Partition, k: int, coarser: Partition | None = None) -> Partition:
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
    low, high = finer.low[first], finer.high[first]
    parts = (
        [np.arange(len(sizes))]
        if coarser is None
        else _members(np.unique(coarser.numbers[first], return_inverse=True)[1].ravel())
    )
    made = bounds(
        low, high, _divided(low, high, sizes, k, lambda classes: sizes[classes].sum() >= k, parts)
    )
    member = member.ravel()
    return Partition(made.numbers[member], made.low[member], made.high[member])


def _divided(
    low: Array,
    high: Array,
    sizes: Indices,
    k: int,
    allowed: Callable[[Indices], bool],
    parts: Sequence[Indices],
) -> list[Indices]:
    """Parts after all cuts.

    Members have ranges, (m, q), and ``sizes``, (m,).
    """
    domain = np.ptp(np.vstack([low, high]), axis=0)
    domain = np.where(domain > 0, domain, 1.0)
    done: list[Indices] = []
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        halves = None
        if sizes[part].sum() >= 2 * k:
            halves = next(
                (
                    h
                    for h in _cuts(part, low[part], high[part], sizes[part], domain)
                    if allowed(h[0]) and allowed(h[1])
                ),
                None,
            )
        if halves is None:
            done.append(part)
        else:
            waiting.extend(halves)
    return done


def _cuts(
    part: Indices, low: Array, high: Array, sizes: Indices, domain: Array
) -> Iterator[tuple[Indices, Indices]]:
    span = (high.max(axis=0) - low.min(axis=0)) / domain
    for column in np.argsort(-span, kind="stable"):
        below = _at_median(low[:, column], high[:, column], sizes)
        if below is not None:
            yield part[below], part[~below]


def _at_median(low: Array, high: Array, sizes: Indices) -> NDArray[np.bool_] | None:
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
    place = min(np.searchsorted(below, sizes.sum() / 2), cuts.size - 1)
    return low <= reach[cuts[place]]


def bounds(low: Array, high: Array, classes: Sequence[Indices]) -> Partition:
    """Classes as a partition, from members' ranges, shapes (m, q)."""
    numbers = np.empty(len(low), dtype=np.intp)
    lowest = np.empty_like(low)
    highest = np.empty_like(high)
    for number, members in enumerate(classes):
        numbers[members], lowest[members], highest[members] = (
            number,
            low[members].min(axis=0),
            high[members].max(axis=0),
        )
    return Partition(numbers, lowest, highest)


def _members(numbers: Indices) -> list[Indices]:
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])


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
                np.empty(0, dtype=np.intp),
                *(rows for rows in _members(numbers) if not rules.hold(codes[rows], P)),
            ]
        )
        if bad.size <= most_suppressed * len(Q):
            numbers[bad], low[bad], high[bad] = -1, start, Q.max(axis=0)
            return Partition(numbers, low, high)
    return None


def _binned(Q: Array, start: Array, rungs: Sequence[Rung]) -> tuple[Array, Array]:
    low, high = Q.copy(), Q.copy()
    for j, width in enumerate(rungs):
        if isinstance(width, np.ndarray):
            node = np.searchsorted(width, Q[:, j], side="right") - 1
            low[:, j], high[:, j] = width[node], np.append(width[1:], np.inf)[node] - 1.0
            high[:, j] = np.minimum(high[:, j], Q[:, j].max())
        elif np.isinf(width):
            low[:, j], high[:, j] = start[j], Q[:, j].max()
        elif width > 0:
            low[:, j] = start[j] + np.floor((Q[:, j] - start[j]) / width) * width
            high[:, j] = low[:, j] + width
    return low, high

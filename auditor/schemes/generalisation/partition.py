"""Making a table k-anonymous: Mondrian's median cuts, or one generalisation of every quasi-identifier with a few records suppressed.

| symbol | meaning | source |
| --- | --- | --- |
| cut | a part split at the median of the quasi-identifier with the widest range, in shares of its domain | lefevre2006 |
| rules | what every part must satisfy, or the cut is not made: size ≥ k, and ℓ, α, t if asked for | |
| rung | how coarse a quasi-identifier is made: bins of one width, or its hierarchy's nodes of one height; last, the domain | samarati2001 |
| lattice | all combinations of rungs, by total height; the lowest that satisfies the rules, suppression allowed | samarati2001 |

Numbers only. Categories are places among the leaves of their hierarchy (``auditor.data.columns.hierarchy``), so that what belongs
together lies
together: every node is an interval of places. Mondrian's intervals need not be nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from auditor.schemes.generalisation.classes import Ground, earth_mover, entropies
from auditor.types import Array, Indices

Rung = float | Array
"""A bin width (0: as it is; infinity: the whole domain), or the rising first places of a hierarchy's nodes."""


@dataclass(frozen=True)
class Rules:
    """What every class must satisfy.

    Attributes
    ----------
    k : int
    distinct : int
        Fewest distinct sensitive values.
    entropy : float
        Least entropy ℓ.
    alpha : float
        Largest share of one sensitive value.
    t : float
        Largest earth mover's distance from the table.
    ground : Ground
        How far sensitive values are apart: by rank, or for each place the ancestors in a hierarchy.
    """

    k: int
    distinct: int = 1
    entropy: float = 1.0
    alpha: float = 1.0
    t: float = 1.0
    ground: Ground = field(default="ordered", repr=False)

    def hold(self, codes: Indices, P: Array) -> bool:
        """Whether a class with these sensitive values, as places among the table's, satisfies them; ``P`` is the table's shares."""
        if codes.size < self.k:
            return False
        P_E = np.bincount(codes, minlength=P.size)[None] / codes.size
        return bool(
            (P_E > 0).sum() >= self.distinct
            and np.exp(entropies(P_E)[0]) >= self.entropy - 1e-12
            and P_E.max() <= self.alpha + 1e-12
            and earth_mover(P_E, P, range(P.size), self.ground)[0] <= self.t + 1e-12
        )


def mondrian(Q: Array, codes: Indices, rules: Rules) -> list[Indices]:
    """Return the rows of each class of a strict Mondrian partition.

    Parameters
    ----------
    Q : ndarray of shape (n, q)
        Quasi-identifiers.
    codes : ndarray of shape (n,)
        Sensitive values as places among the distinct ones.
    rules : Rules
        The whole table must satisfy them, *not checked*.
    """
    P = np.bincount(codes) / len(codes)
    domain = np.where(np.ptp(Q, axis=0) > 0, np.ptp(Q, axis=0), 1.0)
    done: list[Indices] = []
    waiting = [np.arange(len(Q))]
    while waiting:
        rows = waiting.pop()
        halves = _cut(Q, codes, rows, domain, rules, P)
        if halves is None:
            done.append(rows)
        else:
            waiting.extend(halves)
    return done


def _cut(Q: Array, codes: Indices, rows: Indices, domain: Array, rules: Rules, P: Array) -> tuple[Indices, Indices] | None:
    """Return both halves of the first cut that the rules allow, widest quasi-identifier first."""
    if rows.size < 2 * rules.k:
        return None
    span = np.ptp(Q[rows], axis=0) / domain
    for column in np.argsort(-span, kind="stable"):
        if span[column] == 0:
            return None
        values = Q[rows, column]
        median = np.median(values)
        low = values <= median if (values > median).any() else values < median
        if low.any() and not low.all() and rules.hold(codes[rows[low]], P) and rules.hold(codes[rows[~low]], P):
            return rows[low], rows[~low]
    return None


def bounds(Q: Array, classes: Sequence[Indices]) -> tuple[Indices, Array, Array]:
    """Return the number of each record's class, shape (n,), and the least and largest value in it, shapes (n, q)."""
    numbers, low, high = np.empty(len(Q), dtype=np.intp), np.empty_like(Q), np.empty_like(Q)
    for number, rows in enumerate(classes):
        numbers[rows], low[rows], high[rows] = number, Q[rows].min(axis=0), Q[rows].max(axis=0)
    return numbers, low, high


def full_domain(
    Q: Array, codes: Indices, rules: Rules, rungs: Sequence[Sequence[Rung]], most_suppressed: float
) -> tuple[Indices, Array, Array] | None:
    """Return the number of each record's class, −1 if suppressed, and its bounds, shapes (n, q); None when no rung satisfies the rules.

    Parameters
    ----------
    rungs : sequence of q sequences of Rung
        Of each quasi-identifier, from fine to coarse: bin widths in its unit, or the borders of its hierarchy's nodes.
    most_suppressed : float
        Share of the records that may be suppressed.
    """
    P, start = np.bincount(codes) / len(codes), Q.min(axis=0)
    for heights in sorted(itertools.product(*(range(len(steps)) for steps in rungs)), key=lambda h: (sum(h), h)):
        low, high = _binned(Q, start, [steps[h] for steps, h in zip(rungs, heights, strict=True)])
        numbers = np.unique(low, axis=0, return_inverse=True)[1].ravel()
        parts = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
        bad = np.concatenate([np.empty(0, dtype=np.intp), *(rows for rows in parts if not rules.hold(codes[rows], P))])
        if bad.size <= most_suppressed * len(Q):
            numbers[bad], low[bad], high[bad] = -1, start, Q.max(axis=0)
            return numbers, low, high
    return None


def _binned(Q: Array, start: Array, rungs: Sequence[Rung]) -> tuple[Array, Array]:
    """Return the bin, or the node, of every value."""
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

"""Scores of categorical copies: uniform and independent if the copies follow the stated law.

| symbol | meaning | shape |
| --- | --- | --- |
| ``a`` | source of copy y: the copy perturbed next less, or the original | (n,) |
| ``T`` | ``p·I + F``: chance of y (column) given a (row) | (s, s) |
| ``o`` | code that values are counted from, modulo s: a, or 0 | (n,) |
| ``U`` | ``Σ_(o ≤ z < y) T[a, z] + V·T[a, y]`` with V uniform | (n,) |

``U`` is the randomised distribution function of y given a (brockwell2007). Counted from a, small
scores are values kept, and a score shows how far a value is moved. Counted from 0, a score shows
the value itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from auditor.numerics.random_streams import Rng
from auditor.schemes.replacement.law import UniformLaw, step
from auditor.types import Array, Codes

EDGE = 1e-12
"""Scores stay this far from 0 and 1, whose normal quantiles are infinite."""


class Transition(NamedTuple):
    """The law of one copy given its source.

    Attributes
    ----------
    copy, source : int
        Numbers among the law's copies, from 1; source 0 is the original.
    kept : float
        ``p``, the chance to keep the source's value.
    fresh : ndarray of shape (1, s) or (s, s)
        ``F``, the chances of replacements; one row where all sources have the same.
    """

    copy: int
    source: int
    kept: float
    fresh: Array

    @property
    def matrix(self) -> Array:
        """``T``, shape (s, s)."""
        return self.kept * np.eye(self.fresh.shape[1]) + self.fresh

    def chance(self, a: Codes, y: Codes) -> Array:
        """Return ``T[a, y]``, shape (n,)."""
        return np.asarray(self.kept * (y == a) + self.fresh[self._row(a), y])

    def below(self, a: Codes, y: Codes) -> Array:
        """Return ``Σ_(z < y) T[a, z]``, shape (n,)."""
        sums = np.cumsum(self.fresh, axis=1) - self.fresh
        return np.asarray(self.kept * (y > a) + sums[self._row(a), y])

    def _row(self, a: Codes) -> Codes | int:
        return a if len(self.fresh) > 1 else 0


def transitions(law: UniformLaw) -> list[Transition]:
    """Return the law of each copy given its source, in an order in which sources come first."""
    pi = np.full(law.size, 1.0 / law.size) if law.pi is None else law.pi
    found, source, high = list[Transition](), 0, 1.0
    for copy in (place + 1 for place in law.descending):
        if not law.by_retention:
            found.append(Transition(copy, 0, 0.0, law.transition_matrix(None, copy)))
            continue
        level = law.levels[copy - 1]
        kept = step(high, level)
        found.append(Transition(copy, source, kept, (1.0 - kept) * pi[None, :]))
        if law.multilevel:
            source, high = copy, level
    return found


def replacement_scores(
    steps: Sequence[Transition], columns: Sequence[Codes], rng: Rng, from_source: bool = True
) -> Array:
    """Return the scores of copies, shape (n, number of steps).

    Parameters
    ----------
    steps : sequence of Transition
    columns : sequence of ndarrays of shape (n,)
        The original and copies 1, 2, …; that all are codes of the domain is *not checked*.
    rng : Rng
        Draws V.
    from_source : bool
        Whether values are counted from the source's value, or from 0.
    """
    scores = []
    for each in steps:
        a, y = columns[each.source], columns[each.copy]
        o = a if from_source else np.zeros_like(a)
        ahead = each.below(a, y) - each.below(a, o) + (y < o)
        scores.append(ahead + rng.random(len(y)) * each.chance(a, y))
    return np.asarray(np.clip(np.stack(scores, axis=1), EDGE, 1.0 - EDGE))

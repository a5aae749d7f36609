"""Test whether categorical copies follow the stated law.

| symbol | meaning | shape |
| --- | --- | --- |
| ``a`` | source of copy y: the copy perturbed next less, or the original | (n,) |
| ``T`` | ``p·I + F``: chance of y (column) given a (row) | (s, s) |
| ``o`` | code that values are counted from, modulo s: a, or 0 | (n,) |
| ``U`` | ``Σ_(o ≤ z < y) T[a, z] + V·T[a, y]`` with V uniform | (n,) |

``U`` is the randomised distribution function of y given a (brockwell2007). Two more tests count
replacements of each value by each other. Given the source, a count is a sum of independent
indicators; the binomial of their mean chance has longer tails (hoeffding1956).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audit.law_tests.battery import (
    NOTHING,
    Finding,
    Scores,
    as_test,
    battery,
    log_p,
    spread,
)
from auditor.base import scipy
from auditor.base.types import Array, Codes, Integers
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.numerics.blocks import block_rows
from auditor.numerics.random_streams import Rng
from auditor.results.records import LawTest
from auditor.schemes.replacement.law import UniformLaw, fresh_chances, step

SCORED_ROWS, VALUE_ROWS = 2**15, 2**14
"""Records whose coins, and whose values, are scored: as long as counting all transitions takes."""
SCORED_VALUES = 2**19
"""Records times copies that are scored."""
FEWEST_COPIES, MOST_COPIES = 16, 64
"""Bounds of how many copies are scored, evenly among all. A chain without some copies is a
chain."""
FEWEST_EXPECTED = 5.0
"""A pair of values that fewer records are expected to show counts only if some do."""
EDGE = 1e-12
"""Scores stay this far from 0 and 1, whose normal quantiles are infinite."""
ROUNDING = 1e-13
"""A chance this close to 1 is a rounded 1."""


class Transition(NamedTuple):
    """The law of one copy given its source.

    Attributes
    ----------
    copy, source : int
        Numbers among the law's copies, from 1; source 0 is the original.
    kept : float
        ``p``, the chance to keep a value.
    fresh : ndarray of shape (1, s) or (s, s)
        ``F``, chances of replacements; one row if equal for all sources.
    """

    copy: int
    source: int
    kept: float
    fresh: Array

    @property
    def matrix(self) -> Array:
        """``T``, shape (s, s)."""
        return self.kept * np.eye(self.fresh.shape[1]) + self.fresh

    def chance(self, a: Integers, y: Integers) -> Array:
        """``T[a, y]``, shape (n,)."""
        return self.kept * (y == a) + self.fresh[self.row(a), y]

    def below(self, a: Integers, y: Integers) -> Array:
        """``Σ_(z < y) T[a, z]``, shape (n,)."""
        sums = np.cumsum(self.fresh, axis=1) - self.fresh
        return self.kept * (y > a) + sums[self.row(a), y]

    def row(self, a: Integers) -> Integers | int:
        """Row of ``fresh`` for a source value."""
        return a if len(self.fresh) > 1 else 0

    def compared(self, counts: Any, least: float) -> Any:
        """Counts (`pairs_of`), with zeros where at least so many records are expected.

        No matrix is needed for so few pairs.
        """
        of = counts.sum(axis=1)
        if len(self.fresh) > 1:
            a, y = np.nonzero(of[:, None] * self.matrix >= least)
        else:
            fresh, every = self.fresh[0], np.arange(of.size)
            order, enough = np.argsort(-fresh), least / np.maximum(of, 1e-300)
            many = np.searchsorted(-fresh[order], -enough, side="right")
            a = np.repeat(every, many)
            y = order[np.arange(a.size) - np.repeat(np.cumsum(many) - many, many)]
            same = every[of * self.chance(every, every) >= least]
            a, y = np.append(a[a != y], same), np.append(y[a != y], same)
        met = counts.tocoo()
        places = np.append(met.row, a), np.append(met.col, y)
        records = np.append(met.data, np.zeros(a.size, dtype=np.int64))
        return scipy.sparse.csr_array((records, places), counts.shape).tocoo()


def pairs_of(a: Integers, y: Integers, size: int) -> Any:
    """Records by value of a source (row) and of a copy, sparse, shape (s, s)."""
    return scipy.sparse.csr_array((np.ones(a.size, dtype=np.int64), (a, y)), (size, size))


def transitions(law: UniformLaw) -> list[Transition]:
    """Law of each copy given its source, sources first."""
    found, source, high = list[Transition](), 0, 1.0
    for copy in (place + 1 for place in law.descending):
        found.append(of_original(law, copy, source, high))
        if law.multilevel:
            source, high = copy, law.levels[copy - 1]
    return found


def of_original(law: UniformLaw, copy: int, source: int = 0, high: float = 1.0) -> Transition:
    """Law of one copy given the original, or a source of retention ``high``."""
    if not law.by_retention:
        return Transition(copy, 0, 0.0, law.transition_matrix(None, copy))
    kept = step(high, law.levels[copy - 1])
    fresh = np.broadcast_to(fresh_chances(kept, law.size, law.pi), (1, law.size))
    return Transition(copy, source, kept, fresh)


def sources(law: UniformLaw, copies: Sequence[int]) -> list[tuple[int, int]]:
    """Each copy with another copy as its source, and that source."""
    steps = transitions(law)
    return [(copies[each.source - 1], copies[each.copy - 1]) for each in steps if each.source]


# -- scores


def scored_copies(singles: Sequence[int], rows: int) -> list[int]:
    """Numbers of the scored copies: more of a short table."""
    most = min(MOST_COPIES, max(FEWEST_COPIES, SCORED_VALUES // rows))
    return [singles[place] for place in spread(len(singles), most)]


def scored_rows(copies: int, rows: int) -> list[tuple[int, int]]:
    """First and last scored runs of a long table, and a second block's first."""
    most = min(SCORED_ROWS, SCORED_VALUES // max(1, copies))
    if rows <= most:
        return [(0, rows)]
    run, second = most // 3, block_rows(BLOCK_WIDTH)
    starts = (0, second if second + 2 * run <= rows else run, rows - run)
    return [(start, start + run) for start in starts]


def replacement_scores(
    steps: Sequence[Transition], columns: Sequence[Codes], rng: Rng, from_source: bool = True
) -> Array:
    """Scores of copies, shape (n, number of steps).

    Parameters
    ----------
    columns : sequence of ndarrays of shape (n,)
        The original and copies 1, 2, …; that all are codes of the domain is *not checked*.
    rng : Rng
        Draws V.
    from_source : bool
        Whether values are counted from the source's, or from 0.
    """
    scores = []
    for each in steps:
        a, y = columns[each.source], columns[each.copy]
        o = a if from_source else np.zeros_like(a)
        ahead = each.below(a, y) - each.below(a, o) + (y < o)
        scores.append(ahead + rng.random(len(y)) * each.chance(a, y))
    return np.clip(np.stack(scores, axis=1), EDGE, 1.0 - EDGE)


def score_tests(
    law: UniformLaw,
    columns: Sequence[Codes],
    copies: Sequence[int],
    originals: Mapping[str, Integers],
    rng: Rng,
) -> list[LawTest]:
    """Tests of scores counted from the source, and from code 0.

    Parameters
    ----------
    law : UniformLaw
        Of the scored copies.
    columns : sequence of ndarrays of shape (n,)
        The original, and those copies.
    copies : sequence of int
        Their numbers in the release.
    originals : mapping
        The original's attributes, by name.
    rng : Rng
        Randomises scores within the chance of one value.
    """
    steps = [each for each in transitions(law) if each.kept < 1.0]  # counts test equal copies
    if not steps or law.size == 1:
        return []
    tests, data = list[LawTest](), np.column_stack(list(originals.values())).astype(float)
    for what, from_source, rows in (("coin", True, SCORED_ROWS), ("value", False, VALUE_ROWS)):
        names = [f"the {what} of copy {copies[each.copy - 1]}" for each in steps]
        values = replacement_scores(steps, [column[:rows] for column in columns], rng, from_source)
        scores = Scores(values, names, np.ones(len(steps)), np.arange(len(steps)))
        for test in battery(scores, data[:rows], list(originals)):
            tests.append(test._replace(statistic=f"{test.statistic} of {what}s"))
    return tests


# -- counts


def count_tests(
    law: UniformLaw, copies: Sequence[int], pairs: Callable[[int, int], Any], rows: int
) -> list[LawTest]:
    """Tests of values kept in all, and of every pair of values.

    Of copies given the original, and given the copy perturbed next less.

    Parameters
    ----------
    law : UniformLaw
        Of all copies that some coalition holds.
    copies : sequence of int
        Their numbers in the release.
    pairs : callable
        Counts (`pairs_of`) of a source (0: the original) and a copy.
    rows : int
        Records counted.

    Notes
    -----
    If a share ε of the values to be replaced is kept, the share kept rises from its mean k by ``ε
    (1 − k)``. That is ``ε √((1 − k)/k) √n`` standard deviations.
    """
    steps, every = transitions(law), np.arange(law.size)

    def tests(kind: str, compared: Sequence[Transition]) -> list[LawTest]:
        kept, cells, telling = [NOTHING], [NOTHING], 1.0
        for each in compared:
            copy, source = copies[each.copy - 1], each.source and copies[each.source - 1]
            name = f"copy {copy} given {f'copy {source}' if source else 'the original'}"
            counted = pairs(source, copy)
            of = counted.sum(axis=1).astype(float)
            if not of.any():
                continue
            n, k = float(of.sum()), float(of @ each.chance(every, every)) / float(of.sum())
            same = counted.diagonal().sum(keepdims=True)
            where = f"the share of values kept in {name} is"
            kept.append(least_likely(same, np.array([n]), np.array([k]), where))
            if 0.0 < k < 1.0 - ROUNDING:
                telling = min(telling, math.sqrt((1.0 - k) / k))
            where = f"the share of one value that becomes another one in {name} is"
            found = each.compared(counted, FEWEST_EXPECTED)
            a, y = found.coords
            least = least_likely(found.data, of[a], each.chance(a, y), where)
            cells.append(least._replace(tests=int((of > 0).sum()) * law.size))
        if not compared:
            return []
        retention = as_test(f"retention{kind}", kept, rows, telling)
        return [
            retention._replace(departure="a share kept of what is to be redrawn"),
            as_test(f"transitions{kind}", cells, rows, 1.0),
        ]

    return [
        *tests("", [of_original(law, each.copy) for each in steps]),
        *tests(" between copies", [each for each in steps if each.source]),
    ]


def least_likely(met: NDArray[Any], of: NDArray[Any], chance: Array, where: str) -> Finding:
    """Least likely of some binomial counts, two-sided; all shapes are (m,)."""
    chance = np.where(chance > 1.0 - ROUNDING, 1.0, np.clip(chance, 0.0, 1.0))
    # Chernoff: a tail is at most exp(−n KL). The exact tail is taken of the count where that is
    # least.
    entropy, mean = scipy.special.rel_entr, of * chance
    far = entropy(met, mean) + entropy(of - met, of - mean)
    place = int(far.argmax())
    count, n, p = int(met[place]), int(of[place]), float(chance[place])
    above, q = (count, p) if count > n * p else (n - count, 1.0 - p)
    tail = float(scipy.special.betainc(above, n - above + 1, q)) if above > 0 else 1.0
    return Finding(float(log_p(min(1.0, 2.0 * tail))), count / n, p, where)

"""Test whether categorical copies follow the stated law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audit.law_tests.battery import Scores, battery
from auditor.audit.law_tests.replacement import replacement_scores, transitions
from auditor.audit.law_tests.transition_counts import Counted, transition_tests
from auditor.data.columns.categorical_table import BLOCK_WIDTH
from auditor.numerics.blocks import block_rows
from auditor.numerics.random_streams import Rng
from auditor.results.evidence import LawTest
from auditor.schemes.replacement.law import UniformLaw
from auditor.types import Codes

Integers = NDArray[np.integer[Any]]

SCORED_ROWS, VALUE_ROWS = 2**15, 2**14
"""Records whose coins, and whose values, are scored: as long as counting all transitions takes."""
SCORED_VALUES = 2**19
"""Records times copies that are scored."""
FEWEST_COPIES, MOST_COPIES = 16, 64
"""Bounds of how many copies are scored, evenly among all. A chain without some copies is a
chain."""
SCORE_BYTES = 300
"""Memory of the battery for one record of one column (measured: 160 to 270)."""


def scored_copies(singles: Sequence[int], rows: int) -> list[int]:
    """Return the numbers of the copies that are scored: more of a short table."""
    most = min(MOST_COPIES, max(FEWEST_COPIES, SCORED_VALUES // rows))
    places = np.linspace(0, max(0, len(singles) - 1), min(len(singles), most))
    return [singles[int(place)] for place in np.rint(places)]


def scored_rows(copies: int, rows: int) -> list[tuple[int, int]]:
    """Return runs of records that are scored, start and stop: of a long table its first and its last, and a second block's first.

    A second block shows a generator that restarts with every block. The last records show draws
    that come again in reverse order.
    """
    most = min(SCORED_ROWS, SCORED_VALUES // max(1, copies))
    if rows <= most:
        return [(0, rows)]
    run, second = most // 3, block_rows(BLOCK_WIDTH)
    starts = (0, second if second + 2 * run <= rows else run, rows - run)
    return [(start, start + run) for start in starts]


def score_tests(
    law: UniformLaw,
    columns: Sequence[Codes],
    copies: Sequence[int],
    originals: Mapping[str, Integers],
    rng: Rng,
) -> list[LawTest]:
    """Return the battery's tests of scores counted from the source, and from code 0.

    Parameters
    ----------
    law : UniformLaw
        Of the copies that are scored.
    columns : sequence of ndarrays of shape (n,)
        The original, and those copies.
    copies : sequence of int
        Their numbers in the release, for messages.
    originals : mapping
        The original's attributes, by name.
    rng : Rng
        Randomises scores within the chance of one value.
    """
    steps = [each for each in transitions(law) if each.kept < 1.0]  # counts test equal copies
    if not steps or law.size == 1:
        return []
    tests, data = list[LawTest](), np.column_stack(list(originals.values())).astype(np.float64)
    for what, from_source, rows in (("coin", True, SCORED_ROWS), ("value", False, VALUE_ROWS)):
        names = [f"the {what} of copy {copies[each.copy - 1]}" for each in steps]
        values = replacement_scores(steps, [column[:rows] for column in columns], rng, from_source)
        scores = Scores(values, names, np.ones(len(steps)), np.arange(len(steps)))
        for test in battery(scores, data[:rows], list(originals)):
            tests.append(test._replace(statistic=f"{test.statistic} of {what}s"))
    return tests


def count_tests(
    law: UniformLaw, copies: Sequence[int], dense: Callable[[int, int], Integers], rows: int
) -> list[LawTest]:
    """Return the tests of how often values become which ones, given the source and the original.

    Parameters
    ----------
    law : UniformLaw
        Of all copies that some coalition holds.
    copies : sequence of int
        Their numbers in the release.
    dense : callable
        Records by value of a source (row; copy 0 is the original) and of a copy, shape (s, s).
    rows : int
        Records counted.
    """
    return transition_tests(_counted(law, copies, dense), rows)


def _counted(
    law: UniformLaw, copies: Sequence[int], dense: Callable[[int, int], Integers]
) -> Iterator[Counted]:
    for each in transitions(law):
        copy = copies[each.copy - 1]
        if each.source:
            source = copies[each.source - 1]
            yield Counted(f"copy {copy} given copy {source}", dense(source, copy), each.matrix)
        chances = law.transition_matrix(None, each.copy)
        yield Counted(f"copy {copy} given the original", dense(0, copy), chances)


def sources(law: UniformLaw, copies: Sequence[int]) -> list[tuple[int, int]]:
    """Return each copy that has another copy as its source, with that one before it."""
    steps = transitions(law)
    return [(copies[each.source - 1], copies[each.copy - 1]) for each in steps if each.source]

"""What the audit of one release takes in time, added up before it is run: drawing, passes over the rows, attacks, learners.

Every kind of work has a constant, measured once on one core of some 2.5 GHz; an attack states its
own (``Attack.cost``). The sum is meant to tell seconds from minutes: for shipped scenarios it is
within a factor of 3.5 of what was measured (evidence/times.md), on a core without AVX-512, which
takes about twice as long as one with it. *Not counted*: what a plugin of another's takes beyond the
cost that it states, and waiting for disks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from auditor import registry
from auditor.adversary.attack import Attack, LinearAttack
from auditor.adversary.coalitions import expand_all
from auditor.adversary.knowledge import Knowledge, Perfect
from auditor.audit.numeric.limits import (
    FEWEST_TREE_ROWS,
    MOST_TAUGHT,
    REDRAWS,
    TREE_FITS,
    TREE_ROWS,
    TREE_TARGETS,
    trees_shown,
)
from auditor.data.table import Table
from auditor.numerics.blocks import BLOCK_VALUES
from auditor.process.containment import contained
from auditor.results.evidence import ROW_REDRAWS
from auditor.results.records import FEWEST_REPLICATES
from auditor.scenario.model import PluginUse, Scenario, SchemeUse
from auditor.scenario.read_plugins import applies
from auditor.schemes.base.scheme import Scheme

Try = tuple[Attack, Knowledge, int]
"""An attack with a state of knowledge that it can use, and how many coalitions are looked at for
it."""

RELEASE = 4e-3
"""Of a release: its law, its tests, its evidence."""
COPY = 2.5e-3
"""Of a copy of categories that somebody holds: its tests against the law and against those of its
neighbours, however few the records."""
NORMAL = 1.2e-8
"""To draw and add one normal variate (NUMBERS: 7.5 ns to draw, 1.1 to 1.2 times that in all)."""
READ, PRODUCT = 9e-8, 1e-10
"""To make or read a value of the table and test what was drawn for it; and to add one product to
the second moments (2e-11 if many)."""
ATTEMPT, ERRORS, COALITION, SOLVE = 1e-3, 2e-4, 5e-5, 1.5e-9
"""A linear attack on a release, and its errors in each attribute; each of its coalitions, in each draw; and each entry of its matrix that
is solved for."""
WEIGHT, REDRAWN = 5e-8, 1.5e-7
"""A coalition's weight on one attribute of one of all copies, in each draw; and to draw one product of the second moments again (measured
from 2 attributes of 100 to 1,000 copies to 500 of 3: all within a factor of 2)."""
FITTED_ROWS, APPLIED = 20_000, 1e-7
"""Rows that attacks learn from at most, about; and what a value takes that is estimated and not
learnt from."""
GUESS, GUESSED = 3e-5, 5e-9
"""To draw one of an attack's guesses (its parameter ``guesses``) and count its hits, and for each
value that is guessed."""
TREE, TREE_VALUE = 0.1, 4e-7
"""Boosted trees for one attribute of a coalition, twice over, and each value of a column that they
are shown."""
CODE, RECORD, CHANCE = 6.5e-8, 9e-8, 1e-9
"""To make a code of a copy of categories; and for one record of one coalition, to count it, and one
value's chance in its posterior."""
HISTORY = 6e-10
"""To look a record's value up in one more copy, for the size of its history."""
FITTED_CELL = 1.3e-7
"""To fit a value of the original to one of the cells that a coalition holds of its record, where
nobody states a law."""
SEEDS = 3.5
"""To draw the first values of all guessable seeds, where copies come from files."""
GEOMETRY = 0.04
"""Distances and clusters of one copy."""
FOLD, FOLD_ROW = 1e-3, 3e-6
"""A model of the ``utility`` section on one fold of a copy, and each record of it."""

RECORD_BYTES, MEMBER_BYTES = 1500, 56
"""A row of results, from the maps that its figures come from to the page, and a copy that a coalition names with its level (measured at
65,535 coalitions: 1,310 a row, of which a worker holds 200; of 100,000 rows 1,450)."""
LOADED = 200 * 2**20
"""Resident memory of a process with the engine and some of the libraries that an audit imports
(measured: 154 to 180 after a small one)."""
KEY_TEXTS = 4
"""Times that the keys of all records are in memory while they are read and compared (measured: 3.5
of 300,000 keys of 95 characters)."""
MARGIN = 1.6
"""Of counted memory: what is not counted is learners, libraries that few audits import, and arrays
that come and go within a step."""


class Workload(NamedTuple):
    """What one release takes in one replicate.

    Attributes
    ----------
    width : int
        Columns that are perturbed.
    values : int
        Values to draw.
    seconds, once : float
        On one core, in every replicate, and besides in the first.
    memory : int
        Bytes at the peak of one process, interpreter and libraries included, but for the rows of
        results.
    results : int
        Bytes of these at the peak, of one replicate, where they are written: in the main process,
        which with one worker is the same.
    """

    width: int
    values: int
    seconds: float
    memory: int
    once: float = 0.0
    results: int = 0


def numeric_seconds(
    here: Scenario, use: SchemeUse, tried: Iterable[Try], rows: int, width: int, copies: int
) -> tuple[float, float]:
    """Return seconds for a release of numbers, in every replicate, and besides in the first, which alone is shown to learners.

    ``tried`` is what ``tries`` yields, which whoever asks needs as well.
    """
    scheme = _scheme(use)
    levels = () if use.levels is None else use.levels.resolve(here.seed)
    drawn = NORMAL * rows * width * copies + (
        scheme.making_seconds(levels, rows, width) if scheme is not None and levels else 0.0
    )
    passes = (
        drawn + READ * rows * width * (copies + 1) + PRODUCT * rows * (width * (copies + 1)) ** 2
    )
    draws = (
        1
        if here.replicates >= FEWEST_REPLICATES or rows * width > BLOCK_VALUES
        else 1 + ROW_REDRAWS
    )
    seconds, distribution = RELEASE + passes, None if scheme is None else scheme.distribution
    if (
        scheme is not None
        and scheme.makes_copies
        and not (scheme.adds_noise or scheme.has_matrices)
    ):
        # other releases, which linear attacks share: no law tells how their errors spread
        seconds += (draws - 1) * passes
    for attack, knowledge, coalitions in tried:
        if isinstance(attack, LinearAttack):
            again = (
                0
                if isinstance(knowledge, Perfect)
                or not attack.knowledge
                or here.replicates >= FEWEST_REPLICATES
                else REDRAWS
            )
            each = COALITION + SOLVE * width**3 + WEIGHT * copies * width**2
            seconds += (
                ATTEMPT
                + ERRORS * width
                + each * coalitions * (1 + again)
                + REDRAWN * (width * (copies + 1)) ** 2 * again
            )
        else:
            seconds += draws * (coalitions * fit_seconds(attack, rows, width, distribution) + drawn)
    if distribution is None and any(isinstance(knowledge, Perfect) for knowledge in here.knowledge):
        held = width * copies * (2 if copies > 1 else 1)  # by every copy alone, and by all together
        seconds += FITTED_CELL * min(rows, MOST_TAUGHT) * width * held
    seconds += GEOMETRY * copies * (here.measure("geometry") is not None)
    if here.utility is not None:
        seconds += copies * len(here.utility.models) * here.utility.folds * (FOLD + FOLD_ROW * rows)
    from_files = scheme is not None and not scheme.makes_copies
    return seconds, tree_seconds(here, rows, width, copies) + SEEDS * from_files


def _scheme(use: SchemeUse) -> Scheme | None:
    """Return a scheme; None where it cannot be made."""
    with contained():
        scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
        return scheme
    return None


def fit_seconds(attack: Attack, rows: int, width: int, distribution: str | None = None) -> float:
    """Return what an attack takes that is fitted to one coalition's copies under such noise, and run over all rows."""
    cost = attack.cost_under(distribution)
    learnt, guesses = min(rows, FITTED_ROWS), getattr(attack.parameters, "guesses", 0)
    guessed = guesses * (GUESS + GUESSED * rows * width)
    return guessed + width * (cost.fit + cost.row * learnt + APPLIED * (rows - learnt))


def tree_seconds(here: Scenario, rows: int, width: int, copies: int) -> float:
    """Return seconds of the insider learner, where an expectation asks about pooling."""
    fits, shown, taken = tree_fits(here, rows, width, copies)
    return fits * TREE * width + min(fits, 2) * TREE_VALUE * taken * width * (width * shown + 12)


def tree_fits(here: Scenario, rows: int, width: int, copies: int) -> tuple[int, int, int]:
    """Return how many coalitions the insider learner is fitted to, how many copies of the widest it is shown, and rows."""
    asked = any(judged.expectation.needs_pooling for judged in here.judged)
    fits = (
        min(copies - 1, TREE_FITS, TREE_TARGETS // max(1, width))
        if asked and rows >= FEWEST_TREE_ROWS
        else 0
    )
    return fits, *trees_shown(min(rows, TREE_ROWS), max(1, width), copies)


def categorical_seconds(
    here: Scenario, use: SchemeUse, tried: Iterable[Try], rows: int, size: int, copies: int
) -> float:
    """Return seconds for a release of so many records of categories, which have so many values, in every replicate.

    A copy that nobody holds is not made, unless each is drawn from its neighbours.
    """
    draws = 1 if here.replicates >= FEWEST_REPLICATES else 1 + ROW_REDRAWS
    held = {
        copy for coalition in expand_all(here.coalitions, copies, here.seed) for copy in coalition
    }
    made = (
        len(held) if getattr(use.parameters, "implementation", "process") == "process" else copies
    )
    seconds = (
        RELEASE
        + COPY * len(held)
        + CODE * rows * (made + 1)
        + HISTORY * rows * copies * (here.measure("history-size") is not None)
    )
    for attack, _, coalitions in tried:
        each = (
            draws * fit_seconds(attack, rows, 1)
            if attack.serial
            else rows * (RECORD + CHANCE * size)
        )
        seconds += ATTEMPT + coalitions * each
    return seconds


def process_bytes(table: Table) -> int:
    """Return the bytes of a process that has read a table, before it draws: libraries, and the text of record keys with its copies."""
    return LOADED + KEY_TEXTS * sum(
        map(sys.getsizeof, () if table.keys is None else table.keys.cells)
    )


def results_bytes(here: Scenario, tried: Iterable[Try], copies: int, each: int) -> int:
    """Return the bytes that rows of results of one replicate come to, so many for each cell, in the process that writes them."""
    cells = sum(coalitions for *_, coalitions in tried)
    named = sum(map(len, expand_all(here.coalitions, copies, here.seed)))
    return RECORD_BYTES * cells * each + MEMBER_BYTES * named


def tries(here: Scenario, use: SchemeUse, copies: int) -> Iterator[Try]:
    """Yield every attack with the states of knowledge that it can use against a scheme, and how many coalitions are looked at for it."""
    family = registry.get("scheme", use.name).family
    asked = expand_all(here.coalitions, copies, here.seed)
    for one in here.attacks:
        attack = _made(one)
        tried = [coalition for coalition in asked if one.tries(coalition, copies)]
        needed = len({(copy,) for coalition in tried for copy in coalition} | set(tried))
        for knowledge in here.knowledge if attack is not None else ():
            if attack is not None and applies(attack, family, knowledge):
                yield attack, knowledge, needed


def _made(use: PluginUse) -> Attack | None:
    with contained():
        attack: Attack = registry.get("attack", use.name)(use.parameters).form()
        return attack
    return None

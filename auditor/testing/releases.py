"""Releases for attack checks: numbers, categories and corner cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack, RowAttack
from auditor.adversary.handed_back import checked
from auditor.adversary.knowable import check_knowledge
from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    KnownSample,
    Perfect,
    PublishedModel,
    PublishedRules,
    UniformPrior,
    UnmatchedRecords,
)
from auditor.audit.numeric.neighbours import shown, with_known
from auditor.data.microdata_categories import as_categories, like
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.runs.estimate import Held, estimate_categories, rebuilt
from auditor.runs.perturb import started_codes
from auditor.schemes.base.scheme import Key, Scheme, table_moments
from auditor.schemes.draw import drawn_blocks
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.contract import SEED, digest
from auditor.testing.tables import answers, as_numbers, levels_of, people
from auditor.types import Array, Coalition, Microdata

ROWS = 200
OWN = 0.05
"""Strongly correlated attributes, as filtering attacks need."""
EVERYBODY: Coalition = (1, 2, 3)


class WroteError(Exception):
    """An attack wrote to the moments of its view."""


def states(rows: int) -> list[Knowledge]:
    """Return every state of knowledge that this number of records allows."""
    half = rows // 2
    known: list[Knowledge] = [
        Estimated(max(2, rows - rows // 4)),
        KnownRecords(half),
        UnmatchedRecords(half),
        KnownSample(half),
    ]
    modelled = PublishedModel(max(2, rows - rows // 4), target="b", on=("a",), known=True)
    trees = [
        PublishedModel(modelled.rows, target="b", on=("a",), known=known, depth=1)
        for known in (False, True)
    ]
    always = [
        Perfect(),
        UniformPrior(),
        KnownAttributes(("a",)),
        KnownAttributes(("a", "b")),
        modelled,
        *trees,
    ]
    return [*always, *(known if half else known[:1])]


@dataclass(frozen=True)
class Case(ABC):
    """One release by one scheme, with its possible adversaries."""

    scheme: Scheme
    what: str

    @abstractmethod
    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Return the attack's checked estimate, as in an audit."""

    @abstractmethod
    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> tuple[Array, Array] | None:
        """Return estimates of some records, from one pass and record by record.

        The result is None for an attack that is not fitted to rows.
        """

    @abstractmethod
    def shown(self) -> Iterator[Array]:
        """Yield every array that an attack could write to."""

    @abstractmethod
    def states(self) -> list[Knowledge]:
        """Return possible states of knowledge."""

    def refuse(self, attack: Attack) -> None:
        """Raise the attack's objections to scheme or table."""
        attack.check_scheme(self.scheme.public)


@dataclass(frozen=True)
class Numbers(Case):
    """Copies of a table of numbers."""

    table: Table = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)

    def held(self, coalition: Coalition) -> Held:
        """Return a coalition's copies and their law."""
        levels, moments = levels_of(self.scheme), table_moments(self.table)
        law = self.scheme.law(levels, moments)
        return Held(
            scheme=self.scheme,
            table=self.table,
            moments=moments,
            copies=coalition,
            levels=tuple(levels[copy - 1] for copy in coalition),
            arrays=[self.copies[copy - 1] for copy in coalition],
            law=None if law is None else law.of(coalition),
        )

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Return estimates of all records, shape (n, N)."""
        held = self.held(coalition)
        before = digest((held.moments.mean, held.moments.covariance))
        values = rebuilt(attack, held, knowledge, SEED)[0]
        if digest((held.moments.mean, held.moments.covariance)) != before:
            raise WroteError
        return checked(values, (self.table.rows, self.table.width))

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> tuple[Array, Array] | None:
        """Fit once, and return estimates from blocks and single rows."""
        if not isinstance(attack, RowAttack):
            return None
        held = self.held(EVERYBODY)
        values, _, fitted, _ = rebuilt(attack, held, knowledge, SEED)
        if fitted is None:
            return None
        few = range(min(8, self.table.rows))
        arrays = with_known(fitted, held.arrays, self.table.values)
        alone = [shown(fitted, arrays, row, 1) for row in few]
        return values[: len(few)], np.concatenate([inner.rows(mine) for inner, mine in alone])

    def shown(self) -> Iterator[Array]:
        """Yield the table and its copies."""
        yield self.table.values
        yield from self.copies

    def states(self) -> list[Knowledge]:
        """Return the states of knowledge that the table allows."""
        return [state for state in states(self.table.rows) if _can_give(state, self.table)]

    def refuse(self, attack: Attack) -> None:
        """Raise the attack's objections to scheme or table."""
        super().refuse(attack)
        attack.check_table(self.table)


def _can_give(knowledge: Knowledge, table: Table) -> bool:
    try:
        check_knowledge(knowledge, table)
    except AuditorError:
        return False
    return True


@dataclass(frozen=True)
class Categories(Case):
    """Copies of one column of categories."""

    original: Any = field(repr=False)
    copies: tuple[Microdata, ...] = field(repr=False)

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Return the posterior, shape (n, s)."""
        assert isinstance(self.scheme, UniformScheme)
        held = [self.copies[copy - 1] for copy in coalition]
        levels = [levels_of(self.scheme)[copy - 1] for copy in coalition]
        found = estimate_categories(
            attack, self.scheme, self.original, held, levels, coalition, knowledge, SEED
        )
        return found.posterior

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> None:
        """Return None, because posteriors are per outcome, not per record."""

    def shown(self) -> Iterator[Array]:
        """Yield the codes."""
        for column in (self.original, *self.copies):
            yield column.cat.codes.to_numpy()

    def states(self) -> list[Knowledge]:
        """Return the states of knowledge on categories."""
        most = len(self.original)
        possible = [state for state in states(most) if not isinstance(state, KnownAttributes)]
        margins = PublishedRules(((str(self.original.name),),))
        return [
            margins,
            *(
                state
                for state in possible
                if not isinstance(state, Estimated) or state.rows <= most
            ),
        ]


def cases(scheme: Scheme) -> Iterator[Case]:
    """Yield a scheme's release, then the corner cases that it accepts."""
    if isinstance(scheme, UniformScheme):
        for what, column in (
            ("a column of categories", answers(ROWS)),
            ("a column that holds one value", answers(ROWS, 1)),
            ("one record", answers(1)),
        ):
            yield _categories(scheme, what, column)
        return
    X = people(ROWS, OWN)
    constant = X.copy()
    constant[:, -1] = 3.0
    corners = (
        ("one attribute", X[:, :1]),
        ("a constant column", constant),
        ("two records", X[:2]),
        ("one record", X[:1]),
    )
    for what, values in (("three attributes", X), *corners):
        try:
            yield _numbers(scheme, what, values)
        except AuditorError:
            if values is X:
                raise


def _numbers(scheme: Scheme, what: str, values: Array) -> Numbers:
    table, levels = as_numbers(values), levels_of(scheme)
    copies = tuple(scheme.blank(table.rows, table.width) for _ in levels)
    for _ in drawn_blocks(scheme, table, levels, Key(SEED, scheme.name), copies):
        pass
    return Numbers(scheme, what, table, copies)


def _categories(scheme: UniformScheme, what: str, column: Any) -> Categories:
    key, table, levels = Key(SEED, scheme.name), as_categories(column), levels_of(scheme)
    made = started_codes(scheme, table, levels, key)
    copies = tuple(like(column, table, made.ask(level, key)) for level in levels)
    return Categories(scheme, what, column, copies)

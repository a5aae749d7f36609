"""Test tables, schemes and releases for plugins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack, RowAttack, checked
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
from auditor.adversary.published import check_knowledge
from auditor.audit.numeric.estimate import Held, rebuilt
from auditor.audit.numeric.reconstruct import shown, with_known
from auditor.base import AuditorError, pd
from auditor.base.types import Array, Coalition, Microdata
from auditor.data.microdata import as_categories, categories_like
from auditor.data.table import Table
from auditor.registry import get, names
from auditor.runs.estimate_categories import estimate_categories
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, table_moments
from auditor.schemes.draw import drawn_blocks
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.contract import SEED

NAMES = ("a", "b", "c")
TABLE_SEED = 20_120_629
"""Not the schemes' seed, whose noise could equal the table."""


def people(rows: int, own: float) -> Array:
    """Correlated attributes, (rows, 3), mean 100, std about 10.

    ``own``: relative size of independent parts.
    """
    rng = np.random.default_rng(TABLE_SEED)
    return 100.0 + 10.0 * (rng.standard_normal((rows, 1)) + own * rng.standard_normal((rows, 3)))


def as_numbers(values: Array) -> Table:
    """Audit's table, with one record or constants allowed."""
    values = np.ascontiguousarray(values)
    values.flags.writeable = False
    return Table(NAMES[: values.shape[1]], values)


def answers(rows: int, values: int = 3) -> Any:
    """A column of categories with unequal frequencies."""
    chosen = np.random.default_rng(TABLE_SEED).choice(3, rows, p=[0.5, 0.3, 0.2]) % values
    return pd.Series([f"v{place}" for place in chosen], name="a").astype(
        pd.CategoricalDtype(["v0", "v1", "v2"])
    )


def schemes_of(families: Sequence[str]) -> list[Scheme]:
    """One scheme per family that makes copies.

    Built-in schemes that state their noise first.
    """
    found: dict[str, type[Scheme]] = {}
    known: list[type[Scheme]] = [get("scheme", name) for name in names("scheme")]
    # a third-party scheme may break its law
    for cls in sorted(
        known, key=lambda cls: (not cls.__module__.startswith("auditor."), not cls.adds_noise)
    ):
        if cls.makes_copies and cls.family in families:
            found.setdefault(cls.family, cls)
    return [
        cls(cls.Parameters.model_validate(dict(trial)))
        for cls in found.values()
        for trial in (cls.trial, *cls.other_trials)
    ]


def levels_of(scheme: Scheme) -> tuple[float, ...]:
    """Scheme's default levels, or three trial levels."""
    return scheme.default_levels() or scheme.trial_levels


ROWS = 200
OWN = 0.05
"""Strong correlation, for filtering attacks."""
EVERYBODY: Coalition = (1, 2, 3)


def states(rows: int) -> list[Knowledge]:
    """Every state of knowledge that this number of records allows."""
    half, most = rows // 2, max(2, rows - rows // 4)
    model = partial(PublishedModel, rows=most, target="b", predictors=["a"])
    always: list[Knowledge] = [
        Perfect(),
        UniformPrior(),
        KnownAttributes(attributes=["a"]),
        KnownAttributes(attributes=["a", "b"]),
        model(known=True),
        model(depth=1),
        model(known=True, depth=1),
        Estimated(rows=most),
    ]
    counted = (KnownRecords, UnmatchedRecords, KnownSample) if half else ()
    return [*always, *(cls(count=half) for cls in counted)]


@dataclass(frozen=True)
class Case(ABC):
    """One release with its possible adversaries."""

    scheme: Scheme
    what: str

    @abstractmethod
    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Attack's checked estimate, as in an audit."""

    @abstractmethod
    def shown(self) -> Iterator[Array]:
        """Yield every array that an attack could write to."""

    @abstractmethod
    def states(self) -> list[Knowledge]:
        """Possible states of knowledge."""

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> tuple[Array, Array] | None:
        """Estimates of some records, from one pass and record by record, or None."""
        return None

    def refuse(self, attack: Attack) -> None:
        """Raise the attack's objections to scheme or table."""
        attack.check_scheme(self.scheme.public)


@dataclass(frozen=True)
class Numbers(Case):
    """Copies of a table of numbers."""

    table: Table = field(repr=False)
    moments: TableMoments = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)

    def held(self, coalition: Coalition) -> Held:
        """Coalition's copies and their law."""
        levels = levels_of(self.scheme)
        law = self.scheme.law(levels, self.moments)
        return Held(
            scheme=self.scheme,
            table=self.table,
            moments=self.moments,
            copies=coalition,
            levels=tuple(levels[copy - 1] for copy in coalition),
            arrays=[self.copies[copy - 1] for copy in coalition],
            law=None if law is None else law.of(coalition),
        )

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Estimates of all records, shape (n, N)."""
        values = rebuilt(attack, self.held(coalition), knowledge, SEED)[0]
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
        alone = [shown(fitted, arrays, row, 1, row) for row in few]
        return values[: len(few)], np.concatenate([inner.rows(mine) for inner, mine in alone])

    def shown(self) -> Iterator[Array]:
        """Yield table, moments and copies."""
        yield from (self.table.values, self.moments.mean, self.moments.covariance, *self.copies)

    def states(self) -> list[Knowledge]:
        """States of knowledge that the table allows."""
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
        """Posterior, shape (n, s)."""
        assert isinstance(self.scheme, UniformScheme)
        held = [self.copies[copy - 1] for copy in coalition]
        levels = [levels_of(self.scheme)[copy - 1] for copy in coalition]
        found = estimate_categories(
            attack, self.scheme, self.original, held, levels, coalition, knowledge, SEED
        )
        return found.posterior

    def shown(self) -> Iterator[Array]:
        """Yield the codes."""
        for column in (self.original, *self.copies):
            yield column.cat.codes.to_numpy()

    def states(self) -> list[Knowledge]:
        """States of knowledge on categories."""
        rows = len(self.original)
        return [
            PublishedRules(margins=[[str(self.original.name)]]),
            *(
                state
                for state in states(rows)
                if not isinstance(state, KnownAttributes)
                and not (isinstance(state, Estimated) and state.rows > rows)
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
    return Numbers(scheme, what, table, table_moments(table), copies)


def _categories(scheme: UniformScheme, what: str, column: Any) -> Categories:
    key, table, levels = Key(SEED, scheme.name), as_categories(column), levels_of(scheme)
    made = scheme.over(table).blocked(table.codes, table.size, key)
    copies = tuple(categories_like(column, table, made.ask(level, key)) for level in levels)
    return Categories(scheme, what, column, copies)

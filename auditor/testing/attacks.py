"""Contract of attacks: deterministic, read-only, with clear refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack, RowAttack, checked
from auditor.adversary.knowledge import (
    KINDS,
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
from auditor.audit.numeric import reconstruct, release
from auditor.base import AuditorError, NotApplicable, PluginError, pd
from auditor.base.types import Array, Coalition, Names, Options, Pair, frozen
from auditor.data.table import Table
from auditor.process.environment import one_thread
from auditor.runs.estimate import Release, estimate_categories
from auditor.runs.estimate_numbers import rebuilt
from auditor.runs.perturb import as_categories, categories_like
from auditor.schemes.base.scheme import Key, Scheme, TableMoments, table_moments
from auditor.schemes.draw import drawn_blocks, drawn_codes
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.contract import READS_ONLY, SEED, Contract, digest, get, names

LONGEST_KIND = 30
"""Longest kind of attack in characters, for tables."""
EVERYBODY: Coalition = (1, 2, 3)
COALITIONS: tuple[Coalition, ...] = ((1,), (3,), (1, 2), (2, 3), EVERYBODY)


def check_attack(cls: type[Attack], parameters: Options | None = None) -> None:
    """Check that an attack keeps its contract.

    On copies by one scheme of each family, with all knowledge, for coalitions of one to three
    copies; also on one attribute, one and two records, and a constant column.

    Parameters
    ----------
    cls
        The attack's class, registered or not.
    parameters
        In scenario spelling; default ``cls.trial``.

    Raises
    ------
    ContractError
        With the name of the check: one of ``check_plugin``, or ``says when it wins``, ``says of
        which kind it is``, ``refuses unusable knowledge``, ``answers or refuses`` (any exception
        except ``NotApplicable``), ``finite and of the right shape``, ``leaves what it is shown as
        it is``, ``deterministic``, ``record by record``, ``answers somewhere``.

    Notes
    -----
    Not checked: the accuracy of estimates.
    """
    _AttackContract(cls, parameters).check()


class _AttackContract(Contract):
    tried = ""

    def where(self) -> str:
        return self.tried

    def check(self) -> None:
        self.check_description()
        cls, kind = self.cls, self.cls.attack_kind
        self.require(
            "says when it wins",
            len(cls.assumes) > 10 and len(cls.wins) > 10 and cls.families,
            "`assumes`, `wins` and `families` to say what it needs, when it wins, on what",
            "one empty",
        )
        self.require(
            "says of which kind it is",
            isinstance(kind, str)
            and kind.strip()
            and len(kind) <= LONGEST_KIND
            and kind.isprintable(),
            f"`attack_kind` to be a few words of at most {LONGEST_KIND} characters",
            repr(kind),
        )
        with self.no_other_error("can be made"):
            families = sorted(self._form().families)
        schemes = schemes_of(families)
        registered = f"a scheme of the families {families} to be registered"
        self.require("answers somewhere", schemes, registered, "none")
        with one_thread(), self.no_other_error("answers or refuses"):
            self._check_refusals()
            answered = [
                self._check_state(case, knowledge)
                for scheme in schemes
                for case in cases(scheme)
                for knowledge in case.states()
            ]
        self.tried = ""
        estimate = "an estimate for some state of knowledge"
        self.require("answers somewhere", any(answered), estimate, "that it refused them all")

    def _form(self) -> Attack:
        attack: Attack = self.make().form()
        return attack

    def _check_refusals(self) -> None:
        attack, check = self._form(), "refuses unusable knowledge"
        for knowledge in states(ROWS) if attack.knowledge else ():
            reason = "usable"
            if knowledge.name not in attack.knowledge:
                try:
                    attack.check(min(attack.families), knowledge)
                    reason = ""
                except NotApplicable as refusal:
                    reason = str(refusal)
            self.require(
                check,
                reason,
                f"NotApplicable, with a reason, for {knowledge.label} knowledge",
                "none",
            )
        unknown = sorted(set(attack.knowledge) - KINDS.keys())
        self.require(check, not unknown, f"names of {sorted(KINDS)} in `knowledge`", unknown)

    def _check_state(self, case: Case, knowledge: Knowledge) -> bool:
        first = self._form()
        found = [self._answer(case, first, knowledge, coalition) for coalition in COALITIONS]
        if all(answer is None for answer in found):
            return False
        last, again = found[-1], self._answer(case, self._form(), knowledge, COALITIONS[-1])
        same = last is again is None or np.array_equal(last, again)  # type: ignore[arg-type]
        both_same = "the same answer from a new object and from one that was used before"
        self.require("deterministic", same, both_same, "another")
        try:
            both = case.one_by_one(self._form(), knowledge)
        except NotApplicable:
            both = None
        same = both is None or (
            both[0].shape == both[1].shape and np.allclose(*both, rtol=1e-6, atol=1e-6)
        )
        either = "the same estimates of records given together and one by one"
        self.require("record by record", same, either)
        return True

    def _answer(
        self, case: Case, attack: Attack, knowledge: Knowledge, coalition: Coalition
    ) -> Array | None:
        before, check = digest(case.shown()), "answers or refuses"
        self.tried = f", on {case.what} by {case.scheme.name}, with {knowledge.label} knowledge and copies {list(coalition)}"
        refused: tuple[type[AuditorError], ...] = (AuditorError,)
        values = None
        with self.no_other_error(check):
            try:
                attack.check_scheme(case.scheme.public)
                case.refuse(attack, knowledge)
                refused = (NotApplicable,)
                attack.check(case.scheme.family, knowledge)
                values = case.estimate(attack, knowledge, coalition)
            except refused as refusal:
                self.require(check, str(refusal), "a reason in NotApplicable", "none")
                return None
            except PluginError as error:
                finite = "finite estimates of the right shape"
                self.require("finite and of the right shape", False, finite, f"that {error}")
        same = digest(case.shown()) == before
        self.require(READS_ONLY, same, "table, moments and copies as they were")
        return values


# -- test tables, schemes and releases -------------------------------------------------------------

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


def schemes_of(families: Names) -> list[Scheme]:
    """One scheme per family that draws copies.

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


@frozen
class Numbers:
    """Copies of a table of numbers, and their possible adversaries."""

    scheme: Scheme
    what: str
    table: Table = field(repr=False)
    moments: TableMoments = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)

    def held(self, coalition: Coalition) -> release.Release:
        """Coalition's copies and their law."""
        levels = levels_of(self.scheme)
        law = self.scheme.law(levels, self.moments)
        return release.held_release(
            self.table,
            self.moments,
            self.scheme,
            tuple(levels[copy - 1] for copy in coalition),
            coalition,
            [self.copies[copy - 1] for copy in coalition],
            None if law is None else law.of(coalition),
        )

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Estimates of all records, shape (n, N)."""
        values = rebuilt(attack, self.held(coalition), knowledge, SEED)[0]
        return checked(values, (self.table.rows, self.table.width))

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> Pair | None:
        """Fit once, and return estimates from blocks and single rows."""
        if not isinstance(attack, RowAttack):
            return None
        values, _, fitted, _ = rebuilt(attack, self.held(EVERYBODY), knowledge, SEED)
        if fitted is None:
            return None
        few = range(min(8, self.table.rows))
        arrays = reconstruct.with_known(fitted, self.copies, self.table.values)
        alone = [reconstruct.shown(fitted, arrays, row, 1, row) for row in few]
        return values[: len(few)], np.concatenate([inner.rows(mine) for inner, mine in alone])

    def shown(self) -> Iterator[Array]:
        """Yield table, moments and copies."""
        yield from (self.table.values, self.moments.mean, self.moments.covariance, *self.copies)

    def states(self) -> list[Knowledge]:
        """States of knowledge."""
        return states(self.table.rows)

    def refuse(self, attack: Attack, knowledge: Knowledge) -> None:
        """Raise if the table lacks a column, or if the attack objects to it."""
        check_knowledge(knowledge, self.table)
        attack.check_table(self.table)


@frozen
class Categories:
    """Copies of one column of categories, and their possible adversaries."""

    scheme: UniformScheme
    what: str
    release: Any = field(repr=False)

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Posterior, shape (n, s)."""
        found = estimate_categories(attack, self.release, None, coalition, knowledge, SEED)
        return found.posterior

    def shown(self) -> Iterator[Array]:
        """Yield the codes."""
        for column in (self.release.original, *self.release.copies):
            yield column.cat.codes.to_numpy()

    def states(self) -> list[Knowledge]:
        """States of knowledge on categories."""
        rows = len(self.release.original)
        return [
            PublishedRules(margins=[["a"]]),
            *(
                state
                for state in states(rows)
                if not isinstance(state, KnownAttributes)
                and not (isinstance(state, Estimated) and state.rows > rows)
            ),
        ]

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> None:
        """No estimates, as records are guessed by outcome."""

    def refuse(self, attack: Attack, knowledge: Knowledge) -> None:
        """Accept every attack."""


Case = Numbers | Categories


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
    ((_, made),) = drawn_codes(scheme, table, levels, key)
    copies = tuple(categories_like(column, table, codes) for codes in made)
    return Categories(scheme, what, Release(column, copies, levels, scheme))

"""The contract of attacks: the same view gives the same answer, nothing shown is written to, refusals are ``NotApplicable``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from auditor.adversary.attack import Attack, RowAttack
from auditor.adversary.handed_back import checked
from auditor.adversary.knowledge import (
    KINDS,
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    KnownSample,
    Perfect,
    UniformPrior,
    UnmatchedRecords,
)
from auditor.audit.numeric.views import check_knowledge
from auditor.data.microdata_categories import as_categories
from auditor.data.table import Table
from auditor.errors import AuditorError, NotApplicable, PluginError
from auditor.runs import perturb_categories
from auditor.runs.estimate import Held, rebuilt
from auditor.schemes.base.scheme import Key, Scheme, table_moments
from auditor.schemes.draw import drawn_blocks
from auditor.schemes.replacement.base import UniformScheme
from auditor.testing.contract import SEED, ContractError, check_plugin, digest, made, require
from auditor.testing.tables import answers, as_numbers, levels_of, people, schemes_of
from auditor.types import Array, Coalition, Microdata

ROWS = 200
EVERYBODY: Coalition = (1, 2, 3)
COALITIONS: tuple[Coalition, ...] = ((1,), (3,), (1, 2), (2, 3), EVERYBODY)
OWN = 0.05
"""Attributes that nearly say the same, as attacks by filtering want them."""


def check_attack(cls: type[Attack], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that an attack keeps its contract.

    It is fitted to copies by one scheme of each of its families, with every state of knowledge, for coalitions of one, two and three
    copies; and to tables of one attribute, of one and of two records, and with a constant column.

    Parameters
    ----------
    cls : type
        The attack's class, registered or not.
    parameters : mapping, optional
        As a scenario spells them; ``cls.trial`` when left out.

    Raises
    ------
    ContractError
        Naming the check. Beside those of ``check_plugin``: ``says when it wins``, ``refuses unusable knowledge``, ``answers or refuses``
        (whatever it raises but ``NotApplicable``), ``finite and of the right shape``, ``leaves what it is shown as it is``,
        ``deterministic``, ``record by record``, ``answers somewhere``.

    Notes
    -----
    How good its estimates are is not checked: that is what its own tests are for.
    """
    check_plugin(cls, parameters)
    require(cls, "says when it wins", len(cls.assumes) > 10 and len(cls.wins) > 10 and cls.families,
            "expected `assumes`, `wins` and `families` to say what it needs, when it wins and on what, found one of them empty")  # fmt: skip
    schemes = schemes_of(sorted(made(cls, parameters).form().families))
    require(cls, "answers somewhere", schemes, f"expected a registered scheme of the families {sorted(cls.families)}, found none")
    _unusable_refused(cls, parameters)
    trials = [Trial(cls, parameters, case) for scheme in schemes for case in cases(scheme)]
    with threadpool_limits(limits=1):
        found = [trial.run() for trial in trials]
    require(cls, "answers somewhere", any(found), "expected an estimate for some state of knowledge, found that it refused them all")


def states(rows: int) -> list[Knowledge]:
    """Return every state of knowledge that so many records can give."""
    half = rows // 2
    known: list[Knowledge] = [Estimated(max(2, rows - rows // 4)), KnownRecords(half), UnmatchedRecords(half), KnownSample(half)]
    return [Perfect(), UniformPrior(), KnownAttributes(("a",)), KnownAttributes(("a", "b")), *(known if half else known[:1])]


def _unusable_refused(cls: type[Attack], parameters: Mapping[str, Any] | None) -> None:
    attack: Attack = made(cls, parameters).form()
    for knowledge in states(ROWS) if attack.knowledge else ():
        if knowledge.name in attack.knowledge:
            continue
        try:
            attack.check(min(attack.families), knowledge)
        except NotApplicable as refusal:
            if str(refusal):
                continue
        raise ContractError(cls, "refuses unusable knowledge",
                            f"expected NotApplicable, with a reason, for {knowledge.label} knowledge, found none")  # fmt: skip
    unknown = set(attack.knowledge) - KINDS.keys()
    require(cls, "refuses unusable knowledge", not unknown, f"expected names among {sorted(KINDS)} in `knowledge`, found {sorted(unknown)}")


# -- what it is shown --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case(ABC):
    """One release by one scheme, and who may attack it: everything but the attack."""

    scheme: Scheme
    what: str

    @abstractmethod
    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Return what the attack answers, checked by the harness as in an audit."""

    @abstractmethod
    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> tuple[Array, Array] | None:
        """Return estimates of some records, from one pass and record by record; None for an attack that is never fitted to rows."""

    @abstractmethod
    def shown(self) -> Iterator[Array]:
        """Yield every array that an attack could write to."""

    @abstractmethod
    def states(self) -> list[Knowledge]:
        """Return what its adversaries may know."""

    def refuse(self, attack: Attack, knowledge: Knowledge) -> None:
        """Raise whatever the attack has against it before it runs."""
        attack.check(self.scheme.family, knowledge)
        attack.check_scheme(self.scheme.public)


@dataclass(frozen=True)
class Numbers(Case):
    """Copies of a table of numbers."""

    table: Table = field(repr=False)
    copies: tuple[Array, ...] = field(repr=False)

    def held(self, coalition: Coalition) -> Held:
        """Return what some of its recipients hold together."""
        levels, moments = levels_of(self.scheme), table_moments(self.table)
        law = self.scheme.law(levels, moments)
        return Held(self.scheme, self.table, moments, coalition, tuple(levels[copy - 1] for copy in coalition),
                    [self.copies[copy - 1] for copy in coalition], None if law is None else law.of(coalition))  # fmt: skip

    def estimate(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array:
        """Return estimates of all records, shape (n, N)."""
        held = self.held(coalition)
        before = digest((held.moments.mean, held.moments.covariance))
        values = rebuilt(attack, held, knowledge, SEED)[0]
        if digest((held.moments.mean, held.moments.covariance)) != before:
            raise WroteError
        return checked(values, (self.table.rows, self.table.width))

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> tuple[Array, Array] | None:
        """Fit it once, and compare."""
        if not isinstance(attack, RowAttack):
            return None
        held = self.held(EVERYBODY)
        values, _, fitted, _ = rebuilt(attack, held, knowledge, SEED)
        if fitted is None:
            return None
        few = range(min(8, self.table.rows))
        return values[: len(few)], np.concatenate([fitted.rows([copy[row : row + 1] for copy in held.arrays]) for row in few])

    def shown(self) -> Iterator[Array]:
        """Yield the table and its copies."""
        yield self.table.values
        yield from self.copies

    def states(self) -> list[Knowledge]:
        """Return what the table can give."""
        return [state for state in states(self.table.rows) if _can_give(state, self.table)]

    def refuse(self, attack: Attack, knowledge: Knowledge) -> None:
        """Ask about the table, too."""
        super().refuse(attack, knowledge)
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
        found = perturb_categories.estimate(
            attack, self.scheme, self.original, self.copies, levels_of(self.scheme), coalition, knowledge, SEED
        )
        return found.posterior

    def one_by_one(self, attack: Attack, knowledge: Knowledge) -> None:
        """Return None: a posterior is of an outcome, and no record is looked at."""

    def shown(self) -> Iterator[Array]:
        """Yield the codes."""
        for column in (self.original, *self.copies):
            yield column.cat.codes.to_numpy()

    def states(self) -> list[Knowledge]:
        """Return what can be known of categories."""
        most = len(self.original)
        return [state for state in states(most) if not isinstance(state, (KnownAttributes, Estimated)) or getattr(state, "rows", most + 1) <= most]


def cases(scheme: Scheme) -> Iterator[Case]:
    """Yield a release by a scheme, and after it the corners that the scheme does not refuse."""
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
    corners = (("one attribute", X[:, :1]), ("a constant column", constant), ("two records", X[:2]), ("one record", X[:1]))
    for what, values in (("three attributes", X), *corners):
        try:
            yield _numbers(scheme, what, values)
        except AuditorError:
            if values is X:
                raise


def _numbers(scheme: Scheme, what: str, values: Array) -> Numbers:
    table, levels = as_numbers(values), levels_of(scheme)
    copies = tuple(np.empty((table.rows, scheme.output_width(table.width))) for _ in levels)
    for _ in drawn_blocks(scheme, table, levels, Key(SEED, scheme.name), copies):
        pass
    return Numbers(scheme, what, table, copies)


def _categories(scheme: UniformScheme, what: str, column: Any) -> Categories:
    key = Key(SEED, scheme.name)
    copies = perturb_categories.start(scheme, as_categories(column), key).extend(column, levels_of(scheme), key)
    return Categories(scheme, what, column, tuple(copies))


# -- what it does ------------------------------------------------------------------------------------------------------


class WroteError(Exception):
    """An attack wrote to moments that it was shown."""


@dataclass(frozen=True)
class Trial:
    """One attack on one release."""

    cls: type[Attack]
    parameters: Mapping[str, Any] | None
    case: Case

    def run(self) -> bool:
        """Try every state of knowledge on every coalition; return whether any was answered."""
        return any([self._knowing(knowledge) for knowledge in self.case.states()])

    def _knowing(self, knowledge: Knowledge) -> bool:
        first, answered = self._made(), False
        for coalition in COALITIONS:
            found = self._answer(first, knowledge, coalition)
            answered |= found is not None
        if answered:
            last = self._answer(self._made(), knowledge, COALITIONS[-1])
            same = (found is None) == (last is None) and (found is None or last is None or np.array_equal(found, last))
            self._require("deterministic", same, knowledge, COALITIONS[-1],
                          "expected the same answer from a new object and from one that was used before, found another")  # fmt: skip
            self._row_by_row(knowledge)
        return answered

    def _made(self) -> Attack:
        attack: Attack = made(self.cls, self.parameters).form()
        return attack

    def _answer(self, attack: Attack, knowledge: Knowledge, coalition: Sequence[int]) -> Array | None:
        """Return what the attack answers, or None where it refuses."""
        before, told = digest(self.case.shown()), (knowledge, tuple(coalition))
        try:
            self.case.refuse(attack, knowledge)
        except AuditorError as refusal:
            self._require("answers or refuses", str(refusal), *told, "expected a reason in NotApplicable, found none")
            return None
        try:
            values = self.case.estimate(attack, knowledge, tuple(coalition))
        except NotApplicable as refusal:
            self._require("answers or refuses", str(refusal), *told, "expected a reason in NotApplicable, found none")
            return None
        except PluginError as error:
            self._fail("finite and of the right shape", *told, f"expected finite estimates of the right shape, found that {error}", error)
        except WroteError as error:
            self._fail("leaves what it is shown as it is", *told, "expected moments as they were, found others", error)
        except Exception as error:
            if "read-only" in str(error):
                self._fail("leaves what it is shown as it is", *told, f"expected that it only reads, found {error}", error)
            self._fail("answers or refuses", *told, f"expected an answer or NotApplicable, found {type(error).__name__}: {error}", error)
        self._require("leaves what it is shown as it is", digest(self.case.shown()) == before, *told,
                      "expected table and copies as they were, found others")  # fmt: skip
        return values

    def _row_by_row(self, knowledge: Knowledge) -> None:
        """Whoever cuts the rows into blocks must not change the estimates."""
        try:
            both = self.case.one_by_one(self._made(), knowledge)
        except NotApplicable:
            return
        if both is not None:
            same = both[0].shape == both[1].shape and np.allclose(both[0], both[1], rtol=1e-6, atol=1e-6)
            self._require("record by record", same, knowledge, EVERYBODY,
                          "expected the same estimates of eight records whether they are given together or one by one, found others")  # fmt: skip

    def _require(self, check: str, holds: object, knowledge: Knowledge, coalition: Coalition, said: str) -> None:
        if not holds:
            self._fail(check, knowledge, coalition, said)

    def _fail(self, check: str, knowledge: Knowledge, coalition: Coalition, said: str, cause: BaseException | None = None) -> None:
        where = f"on {self.case.what} by {self.case.scheme.name}, with {knowledge.label} knowledge and copies {list(coalition)}"
        raise ContractError(self.cls, check, f"{said}, {where}") from cause

"""Contract of attacks: deterministic, read-only, with clear refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.adversary.attack import Attack
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.errors import AuditorError, NotApplicable, PluginError
from auditor.process.environment import one_thread
from auditor.testing.contract import (
    READS_ONLY,
    ContractError,
    check_plugin,
    digest,
    made,
    nothing_else_raised,
    require,
    wrote,
)
from auditor.testing.releases import EVERYBODY, ROWS, Case, WroteError, cases, states
from auditor.testing.tables import schemes_of
from auditor.types import Array, Coalition

LONGEST_KIND = 30
"""Longest kind of attack in characters, for tables."""
COALITIONS: tuple[Coalition, ...] = ((1,), (3,), (1, 2), (2, 3), EVERYBODY)


def check_attack(cls: type[Attack], parameters: Mapping[str, Any] | None = None) -> None:
    """Check that an attack keeps its contract.

    The attack runs on copies by one scheme of each of its families, with every state of knowledge,
    for coalitions of one, two and three copies. It also runs on tables of one attribute, of one and
    two records, and with a constant column.

    Parameters
    ----------
    cls : type
        The attack's class, registered or not.
    parameters : mapping, optional
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
    check_plugin(cls, parameters)
    require(
        cls,
        "says when it wins",
        len(cls.assumes) > 10 and len(cls.wins) > 10 and cls.families,
        "expected `assumes`, `wins` and `families` to say what it needs, when it wins, on what; found one empty",
    )
    kind: object = cls.attack_kind
    require(
        cls,
        "says of which kind it is",
        isinstance(kind, str) and kind.strip() and len(kind) <= LONGEST_KIND and kind.isprintable(),
        f"expected `attack_kind` to be a few words of at most {LONGEST_KIND} characters, found {kind!r}",
    )
    with nothing_else_raised(cls, "can be made"):
        made(cls, parameters).form()
    schemes = schemes_of(sorted(made(cls, parameters).form().families))
    require(
        cls,
        "answers somewhere",
        schemes,
        f"expected a scheme of the families {sorted(cls.families)} to be registered, found none",
    )
    trials = [Trial(cls, parameters, case) for scheme in schemes for case in cases(scheme)]
    with one_thread(), nothing_else_raised(cls, "answers or refuses"):
        _unusable_refused(cls, parameters)
        found = [trial.run() for trial in trials]
    require(
        cls,
        "answers somewhere",
        any(found),
        "expected an estimate for some state of knowledge, found that it refused them all",
    )


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
        raise ContractError(
            cls,
            "refuses unusable knowledge",
            f"expected NotApplicable, with a reason, for {knowledge.label} knowledge, found none",
        )
    unknown = set(attack.knowledge) - KINDS.keys()
    require(
        cls,
        "refuses unusable knowledge",
        not unknown,
        f"expected names of {sorted(KINDS)} in `knowledge`, found {sorted(unknown)}",
    )


@dataclass(frozen=True)
class Trial:
    """One attack on one release."""

    cls: type[Attack]
    parameters: Mapping[str, Any] | None
    case: Case

    def run(self) -> bool:
        """Run all knowledge and coalitions; return whether any was answered."""
        return any([self._knowing(knowledge) for knowledge in self.case.states()])

    def _knowing(self, knowledge: Knowledge) -> bool:
        first, answered = self._made(), False
        for coalition in COALITIONS:
            found = self._answer(first, knowledge, coalition)
            answered |= found is not None
        if answered:
            last = self._answer(self._made(), knowledge, COALITIONS[-1])
            same = (found is None) == (last is None) and (
                found is None or last is None or np.array_equal(found, last)
            )
            self._require(
                "deterministic",
                same,
                knowledge,
                COALITIONS[-1],
                "expected the same answer from a new object and from one that was used before, found another",
            )
            self._row_by_row(knowledge)
        return answered

    def _made(self) -> Attack:
        attack: Attack = made(self.cls, self.parameters).form()
        return attack

    def _answer(self, attack: Attack, knowledge: Knowledge, coalition: Coalition) -> Array | None:
        before, tried = digest(self.case.shown()), (knowledge, coalition)
        try:
            self.case.refuse(attack)
        except AuditorError as refusal:
            self._require(
                "answers or refuses",
                str(refusal),
                *tried,
                "expected a reason in NotApplicable, found none",
            )
            return None
        try:
            attack.check(self.case.scheme.family, knowledge)
            values = self.case.estimate(attack, knowledge, coalition)
        except NotApplicable as refusal:
            self._require(
                "answers or refuses",
                str(refusal),
                *tried,
                "expected a reason in NotApplicable, found none",
            )
            return None
        except PluginError as error:
            self._fail(
                "finite and of the right shape",
                *tried,
                f"expected finite estimates of the right shape, found that {error}",
                error,
            )
        except WroteError as error:
            self._fail(READS_ONLY, *tried, "expected moments as they were, found others", error)
        except (Exception, SystemExit) as error:
            if wrote(error):
                self._fail(READS_ONLY, *tried, f"expected that it only reads, found {error}", error)
            self._fail(
                "answers or refuses",
                *tried,
                f"expected an answer or NotApplicable, found {type(error).__name__}: {error}",
                error,
            )
        self._require(
            READS_ONLY,
            digest(self.case.shown()) == before,
            *tried,
            "expected table and copies as they were, found others",
        )
        return values

    def _row_by_row(self, knowledge: Knowledge) -> None:
        """Check that estimates do not depend on the division into blocks."""
        try:
            both = self.case.one_by_one(self._made(), knowledge)
        except NotApplicable:
            return
        if both is not None:
            same = both[0].shape == both[1].shape and np.allclose(
                both[0], both[1], rtol=1e-6, atol=1e-6
            )
            self._require(
                "record by record",
                same,
                knowledge,
                EVERYBODY,
                "expected the same estimates of records given together and one by one, found others",
            )

    def _require(
        self, check: str, holds: object, knowledge: Knowledge, coalition: Coalition, said: str
    ) -> None:
        if not holds:
            self._fail(check, knowledge, coalition, said)

    def _fail(
        self,
        check: str,
        knowledge: Knowledge,
        coalition: Coalition,
        said: str,
        cause: BaseException | None = None,
    ) -> None:
        where = f"on {self.case.what} by {self.case.scheme.name}, with {knowledge.label} knowledge and copies {list(coalition)}"
        raise ContractError(self.cls, check, f"{said}, {where}") from cause

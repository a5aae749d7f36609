"""Contract of attacks: deterministic, read-only, with clear refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from auditor.adversary.attack import Attack
from auditor.adversary.knowledge import KINDS, Knowledge
from auditor.base import AuditorError, NotApplicable, PluginError
from auditor.base.types import Array, Coalition
from auditor.process.environment import one_thread
from auditor.testing.contract import READS_ONLY, Contract, ContractError, digest
from auditor.testing.releases import EVERYBODY, ROWS, Case, cases, schemes_of, states

LONGEST_KIND = 30
"""Longest kind of attack in characters, for tables."""
COALITIONS: tuple[Coalition, ...] = ((1,), (3,), (1, 2), (2, 3), EVERYBODY)


def check_attack(cls: type[Attack], parameters: Mapping[str, Any] | None = None) -> None:
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
        if not (last is again is None or np.array_equal(last, again)):  # type: ignore[arg-type]
            expected = "expected the same answer from a new object and from one that was used before, found another"
            self._fail("deterministic", expected, case, knowledge, COALITIONS[-1])
        try:
            both = case.one_by_one(self._form(), knowledge)
        except NotApplicable:
            both = None
        if both is not None and not (
            both[0].shape == both[1].shape and np.allclose(*both, rtol=1e-6, atol=1e-6)
        ):
            expected = (
                "expected the same estimates of records given together and one by one, found others"
            )
            self._fail("record by record", expected, case, knowledge, EVERYBODY)
        return True

    def _answer(
        self, case: Case, attack: Attack, knowledge: Knowledge, coalition: Coalition
    ) -> Array | None:
        before, tried = digest(case.shown()), (case, knowledge, coalition)
        refused: tuple[type[AuditorError], ...] = (AuditorError,)
        try:
            case.refuse(attack)
            refused = (NotApplicable,)
            attack.check(case.scheme.family, knowledge)
            values = case.estimate(attack, knowledge, coalition)
        except refused as refusal:
            if not str(refusal):
                reason = "expected a reason in NotApplicable, found none"
                self._fail("answers or refuses", reason, *tried)
            return None
        except PluginError as error:
            expected = f"expected finite estimates of the right shape, found that {error}"
            self._fail("finite and of the right shape", expected, *tried)
        except (Exception, SystemExit) as error:
            wrote = isinstance(error, ValueError) and "read-only" in str(error)
            expected = f"expected an answer or NotApplicable, found {type(error).__name__}: {error}"
            self._fail(READS_ONLY if wrote else "answers or refuses", expected, *tried)
        if digest(case.shown()) != before:
            self._fail(
                READS_ONLY, "expected table, moments and copies as they were, found others", *tried
            )
        return values

    def _fail(
        self, check: str, said: str, case: Case, knowledge: Knowledge, coalition: Coalition
    ) -> NoReturn:
        where = f"on {case.what} by {case.scheme.name}, with {knowledge.label} knowledge and copies {list(coalition)}"
        raise ContractError(self.cls, check, f"{said}, {where}")

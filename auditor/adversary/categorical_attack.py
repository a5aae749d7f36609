"""What an attack on categorical copies is: an adversary's view in, posteriors out. The engine measures; the attack infers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.adversary.attack import Attack
from auditor.adversary.given import NOTHING, Given, Informed
from auditor.adversary.handed_back import check_real
from auditor.adversary.knowledge import Knowledge
from auditor.data.table import Table
from auditor.errors import AuditorError, PluginError
from auditor.schemes.replacement.law import UniformLaw
from auditor.types import Array, Codes

ROUNDING = 1e-9


@dataclass(frozen=True)
class CategoricalView(Informed):
    """Everything an adversary has besides the rows of its copies. Never the original.

    Attributes
    ----------
    copies : tuple of int
        The coalition, by copy number, ascending.
    law : UniformLaw
        The law of its copies, in that order.
    knowledge : Knowledge
    labels : tuple
        The domain: one value, or one tuple of values, for each code.
    given : Given
        What its knowledge gives: a prior, counts of a sample, or records; see ``need`` and ``auditor.adversary.given``.
    """

    copies: tuple[int, ...]
    law: UniformLaw
    knowledge: Knowledge
    labels: tuple[Any, ...] = field(repr=False)
    given: Given = NOTHING

    @property
    def size(self) -> int:
        """``s``."""
        return self.law.size

    def coalition(self, copies: Sequence[int]) -> CategoricalView:
        """Return the view of a smaller coalition; copy numbers must be among this view's."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(self, copies=tuple(copies), law=self.law.of(places), given=self.given.of(places, 1))


def probabilities(found: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return what a plugin says are probabilities after a check: nobody's word is taken.

    Raises
    ------
    PluginError
        No array of real numbers, the wrong shape, not finite, below 0, or rows that do not sum to 1.
    """
    check_real(found)
    P = np.asarray(found, dtype=np.float64)
    if P.shape != shape:
        raise PluginError(f"{what} must have shape {shape}; got {P.shape}")
    if P.size and not (float(P.min()) >= -ROUNDING and (np.abs(P.sum(axis=-1) - 1.0) <= ROUNDING).all()):
        raise PluginError(f"{what} must be finite, not below 0, and sum to 1 in every record")
    return P


class Inference:
    """An attack fitted to one coalition.

    Attributes
    ----------
    prior : ndarray of shape (s,)
        What the adversary believes before it sees a record's copies.
    fixed : bool
        Whether prior and channel depend on no noise drawn: only then are there closed forms.
    serial : bool
        Whether a record's posterior depends on its neighbours. ``posterior`` is then given all records of a block, in the table's order
        (blocks are cut by the table's length alone), where else it is given each outcome once; and it must not be ``fixed``.
    """

    prior: Array
    fixed: bool = True
    serial: bool = False

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Return ``P(x | y_1 … y_k)``, shape (b, s), for b records of the coalition's copies, each of shape (b,)."""
        raise NotImplementedError

    def checked(self, copies: Sequence[Codes]) -> Array:
        """Return the posterior after a check: nobody's word is taken.

        Raises
        ------
        PluginError
            No array of real numbers, the wrong shape, not finite, below 0, or rows that do not sum to 1.
        """
        return probabilities(self.posterior(copies), (copies[0].size, self.prior.size), "a posterior")


class CategoricalAttack(Attack):
    """An attack whose outcome is a posterior over the values of each record."""

    families: ClassVar[frozenset[str]] = frozenset({"uniform"})

    @abstractmethod
    def infer(self, view: CategoricalView) -> Inference:
        """Return the attack fitted to one coalition.

        Raises
        ------
        NotApplicable
            The view lacks what the attack needs; the message is the reason.
        """

    def predicates(self, labels: Sequence[Any]) -> Mapping[str, NDArray[np.bool_]]:
        """Return statements ``Q(X)`` to be measured besides single values, as masks of shape (s,) by name; ``labels`` are the domain."""
        return {}

    def check_table(self, table: Table) -> None:
        """Refuse statements about values that are not in the table's domain."""
        data = table.categorical
        if data is None:
            return
        try:
            self.predicates(data.labels)
        except AuditorError as error:
            if len(data.names) == 1:
                raise
            raise AuditorError(f"{error}: a value there is a list of one of each of {', '.join(data.names)}, in this order") from None


def _text(value: Any) -> Any:
    """A value as YAML may spell it: of several attributes a list, of numbers whatever type they have here."""
    return tuple(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def mask(labels: Sequence[Any], wanted: Sequence[Any], name: str) -> NDArray[np.bool_]:
    """Return which values of a domain a statement names; of several attributes each is a list of one value for each.

    Raises
    ------
    AuditorError
        A value is not in the domain.
    """
    places = {_text(label): k for k, label in enumerate(labels)}
    chosen = np.zeros(len(labels), dtype=bool)
    for number, value in enumerate(wanted, 1):
        place = places.get(_text(value))
        if place is None:
            raise AuditorError(f"predicate {name!r}: value {number} of {len(wanted)} is not in the domain")
        chosen[place] = True
    return chosen

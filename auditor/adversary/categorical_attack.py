"""Categorical attack interface: posteriors from an adversary's view."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, repr=False)
class CategoricalView(Informed):
    """An adversary's law, knowledge and domain; never the original.

    Attributes
    ----------
    copies : tuple of int
        The coalition's copy numbers, ascending.
    law : UniformLaw
        The law of its copies, in that order.
    knowledge : Knowledge
    labels : tuple
        The domain: one value, or a tuple of values, per code.
    given : Given
        Data from its knowledge; see ``need`` and ``auditor.adversary.given``.
    """

    copies: tuple[int, ...]
    law: UniformLaw
    knowledge: Knowledge
    labels: tuple[Any, ...]
    given: Given = NOTHING

    @property
    def size(self) -> int:
        """``s``."""
        return self.law.size

    def coalition(self, copies: Sequence[int]) -> CategoricalView:
        """Return the view of a smaller coalition of this view's copies."""
        places = [self.copies.index(copy) + 1 for copy in copies]
        return replace(
            self, copies=tuple(copies), law=self.law.of(places), given=self.given.of(places, 1)
        )


def probabilities(found: Any, shape: tuple[int, ...], what: str) -> Array:
    """Return a plugin's probabilities after a check.

    Raises
    ------
    PluginError
        Not real, wrong shape, not finite, negative, or rows that do not sum to 1.
    """
    check_real(found)
    P = np.asarray(found, dtype=np.float64)
    if P.shape != shape:
        raise PluginError(f"{what} must have shape {shape}; got {P.shape}")
    if P.size and not (
        float(P.min()) >= -ROUNDING and (np.abs(P.sum(axis=-1) - 1.0) <= ROUNDING).all()
    ):
        raise PluginError(f"{what} must be finite, not below 0, and sum to 1 in every record")
    return P


class Inference:
    """A categorical attack fitted to one coalition.

    Attributes
    ----------
    prior : ndarray of shape (s,)
        The adversary's prior.
    fixed : bool
        Whether prior and channel are independent of the drawn noise; only then are there closed
        forms.
    serial : bool
        Whether a record's posterior depends on its neighbours. ``posterior`` then gets all records
        of a block in order, else each distinct outcome once. Blocks depend on the table's length
        alone. Must not be ``fixed``.
    """

    prior: Array
    fixed: bool = True
    serial: bool = False

    def posterior(self, copies: Sequence[Codes]) -> Array:
        """Return ``P(x | y_1 … y_k)``, shape (b, s), for copies of shape (b,)."""
        raise NotImplementedError

    def for_redraws(self) -> Inference:
        """Return the attack for redraws of the release, which may share the start of a fit."""
        return self

    def checked(self, copies: Sequence[Codes]) -> Array:
        """Return the posterior after a check.

        Raises
        ------
        PluginError
            Not real, wrong shape, not finite, negative, or rows that do not sum to 1.
        """
        return probabilities(
            self.posterior(copies), (copies[0].size, self.prior.size), "a posterior"
        )


class CategoricalAttack(Attack):
    """An attack that infers a posterior of each record's value."""

    families: ClassVar[frozenset[str]] = frozenset({"uniform"})

    @abstractmethod
    def infer(self, view: CategoricalView) -> Inference:
        """Return the attack fitted to one coalition.

        Raises
        ------
        NotApplicable
            The view lacks necessary data; the message is the reason.
        """

    def predicates(self, labels: Sequence[Any]) -> Mapping[str, NDArray[np.bool_]]:
        """Return predicates ``Q(X)`` to measure, as masks of shape (s,) by name."""
        return {}

    def check_table(self, table: Table) -> None:
        """Refuse predicates on values outside the table's domain."""
        data = table.categorical
        if data is None:
            return
        try:
            self.predicates(data.labels)
        except AuditorError as error:
            if len(data.names) == 1:
                raise
            raise AuditorError(
                f"{error}: a value there is a list of one of each of {', '.join(data.names)}, in this order"
            ) from None


def _text(value: Any) -> Any:
    """Normalise a value as YAML may spell it: a list, or text of a number."""
    return tuple(str(part) for part in value) if isinstance(value, (list, tuple)) else str(value)


def mask(labels: Sequence[Any], wanted: Sequence[Any], name: str) -> NDArray[np.bool_]:
    """Return the domain values that a predicate names.

    For several attributes a value is a list with one entry each.

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
            raise AuditorError(
                f"predicate {name!r}: value {number} of {len(wanted)} is not in the domain"
            )
        chosen[place] = True
    return chosen

r"""Retention-replacement: every value kept with probability p, else replaced by one drawn from its domain.

| symbol | meaning | source |
| --- | --- | --- |
| ``p`` | retention probability, a copy's level: more = *less* noisy | xiao2009, section 1 |
| ``s`` | size of the domain | |
| ``π`` | chances of the values that replace others, (s,): ``1/s`` each, unless ``replacement`` says otherwise | agrawal2005 |
| ``P(y\|x)`` | ``p·[x = y] + (1 − p)·π_y`` | xiao2009, eq. 1 |

``uniform`` draws anew for every copy, even at a level asked for before: broken on purpose as a multilevel scheme, since a value that two
copies agree on is unlikely to be random in both (xiao2009, section 1.1). ``uniform-multilevel`` is one replacement process per tuple,
seen at time ``−ln p``: replacements arrive at rate 1 and each draws from the domain, so that everything perturbed further is a noisier
view of the least perturbed copy held, and the posterior given any coalition is the posterior given that copy (Theorem 1 there). Nothing in
that hangs on replacements being uniform (the remark that ends section 5.2).

``replacement: prior`` draws them from the data's own shares, so that a copy's shares are the original's at any level; but who knows how
copies were made is told these shares, and a rare value that a copy shows was more likely kept: ``ε = ln(1 + p/((1 − p)·min π))``, which
is least where π is uniform. Of a value that π never draws it is infinite.

Reference: xiao2009, sections 5 and 6; agrawal2005 for replacements that are not uniform. Fails, like every perturbation of single
tuples, where tuples are correlated and the adversary knows how.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator

from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError, AuditorWarning
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import (
    BridgedCopies,
    Copies,
    FreshCopies,
    MultiPertCopies,
    ProcessCopies,
    SingleBridged,
    SingleFresh,
    UniformScheme,
    categories_of,
)
from auditor.schemes.replacement.distribution import Replacement, checked, distribution, never_drawn
from auditor.types import Array, Codes

MAKERS: dict[str, type[Copies]] = {"process": ProcessCopies, "bridge": BridgedCopies, "multi-pert": MultiPertCopies}


class RetentionReplacement(UniformScheme):
    """Base of the two schemes: replacements are drawn from a distribution that may be the table's own."""

    class Parameters(PluginParameters):
        """What values that are not kept are replaced by."""

        replacement: Replacement = Field(
            "uniform",
            description="what a value that is not kept is drawn from. uniform: all categories alike; prior: each column's own shares, "
            "which whoever knows how copies were made is told; a list: chances of one column's categories in order; {column: [...]}: of "
            "several",
        )

        @field_validator("replacement")
        @classmethod
        def _distribution(cls, stated: Replacement) -> Replacement:
            return checked(stated)

    _pi: Array | None = None
    _maker: type[Copies] | None = None
    _of_one: ClassVar[type[Copies]] = SingleFresh

    @property
    def _stated(self) -> Replacement:
        """What the parameters say, of a subclass whose own have nothing of it too."""
        return getattr(self.parameters, "replacement", "uniform")

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse replacements that are not those of the table's categories; warn of values that are never drawn."""
        super().check_table(table, asked)
        if note := never_drawn(self.over(categories_of(table))._pi):
            warnings.warn(AuditorWarning(f"{self.name}: {note}"), stacklevel=2)

    def over(self, table: CategoricalTable) -> Self:
        """Return the scheme with ``π`` over a table's domain; one that has it, as of a first batch of records, keeps it for later ones."""
        if self._pi is not None:
            return self
        made = copy(self)
        made._pi = distribution(self._stated, table)
        return made

    def started(self, levels: Sequence[float]) -> Self:
        """Return what draws a single copy by one number a tuple, where others draw two, or three for each event of the process."""
        made = copy(self)
        if len(levels) == 1 and getattr(self.parameters, "implementation", "process") == "process":
            made._maker = self._of_one
        return made

    def replaced_by(self, size: int) -> Array | None:
        """Return ``π``, shape (s,); None where it is uniform.

        Raises
        ------
        AuditorError
            It depends on the table's categories, and none or other ones were shown (``over``).
        """
        if self._stated != "uniform" and (self._pi is None or self._pi.size != size):
            raise AuditorError("`replacement` is of a table's categories: ask `scheme.over(table)` for copies and law")
        return self._pi


@register
class Uniform(RetentionReplacement):
    """Categories kept with probability p or redrawn from their domain, anew in every copy. Broken under collusion."""

    name = "uniform"
    held_against = True
    multilevel = False
    claims = "Nothing under collusion: the reconstruction probability rises with every copy pooled (xiao2009, Fig. 7)."
    reference = "xiao2009, eq. 1"
    assumes = "Recipients never pool their copies, and tuples are independent."

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes fresh copies."""
        return (self._maker or FreshCopies)(original, size, key, self.replaced_by(size))


@register
class UniformMultilevel(RetentionReplacement):
    """Categories replaced by one process seen at several levels: no coalition learns more than from its best copy."""

    name = "uniform-multilevel"
    held_against = True
    multilevel = True
    _of_one = SingleBridged
    claims = "No collusion gain: the posterior given a coalition is that given its least perturbed copy (xiao2009, Theorem 1)."
    reference = "xiao2009, Theorem 1"
    assumes = "Tuples are independent; holds for every prior and every attack."

    class Parameters(RetentionReplacement.Parameters):
        """What replaces values, and which of three implementations draws; all three draw from the same law."""

        implementation: Literal["process", "bridge", "multi-pert"] = Field(
            "process",
            description="process: a look-up in a stream of replacements; bridge: from the two neighbouring copies; "
            "multi-pert: the paper's Figure 3 on compressed histories",
        )

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes copies, by the chosen implementation."""
        return (self._maker or MAKERS[self.parameters.implementation])(original, size, key, self.replaced_by(size))

r"""Retention-replacement: values kept with probability p, else redrawn.

| symbol | meaning | source |
| --- | --- | --- |
| ``p`` | retention probability, a copy's level: more = *less* noisy | xiao2009, section 1 |
| ``s`` | size of the domain | |
| ``π`` | distribution of replacements, (s,): ``1/s`` each, unless ``replacement`` is stated | agrawal2005 |
| ``P(y\|x)`` | ``p·[x = y] + (1 − p)·π_y`` | xiao2009, eq. 1 |

``uniform`` draws independently for every copy, even at a repeated level. Broken by design as a
multilevel scheme: a value that two copies share is probably the original (xiao2009, section 1.1).
``uniform-multilevel`` is one replacement process per tuple, seen at time ``−ln p``: replacements
arrive at rate 1 and each draws from the domain. So every other copy is a noisier view of the least
perturbed copy held, and the posterior given any coalition is the posterior given that copy (Theorem
1). This holds for any π (the remark that ends section 5.2).

``replacement: prior`` draws from the data's own shares, so a copy's expected shares are the
original's. But these shares are then public, and a rare value in a copy was probably kept:
``ε = ln(1 + p/((1 − p)·min π))``, least for uniform π, and infinite if some π is 0.

Reference: xiao2009, sections 5 and 6; agrawal2005 for non-uniform replacements. Fails, like every
perturbation of single tuples, if tuples are dependent and the adversary knows the dependence.
"""

from __future__ import annotations

import warnings
from copy import copy
from typing import Literal, Self

from pydantic import Field, field_validator

from auditor.base.errors import AuditorError, AuditorWarning
from auditor.base.types import Array, Codes
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import (
    Copies,
    FreshCopies,
    ProcessCopies,
    Replacement,
    UniformScheme,
    categories_of,
    checked,
    distribution,
    never_drawn,
)
from auditor.schemes.replacement.multi_pert import MultiPertCopies


class RetentionReplacement(UniformScheme):
    """Base of both schemes; replacements may follow the table's shares."""

    class Parameters(PluginParameters):
        """Distribution of the replacements."""

        replacement: Replacement = Field(
            "uniform",
            description="distribution of replacements. uniform: equal chances; prior: each column's own shares, which then become "
            "public; a list: chances of one column's categories in order; {column: [...]}: of several columns",
        )

        @field_validator("replacement")
        @classmethod
        def _distribution(cls, stated: Replacement) -> Replacement:
            return checked(stated)

    _pi: Array | None = None

    @property
    def _stated(self) -> Replacement:
        return getattr(self.parameters, "replacement", "uniform")

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse replacements that do not fit the table's categories.

        Warn of values that are never drawn.
        """
        super().check_table(table, asked)
        if note := never_drawn(self.over(categories_of(table))._pi):
            warnings.warn(AuditorWarning(f"{self.name}: {note}"), stacklevel=2)

    def over(self, table: CategoricalTable) -> Self:
        """Return the scheme with ``π`` over a table's domain.

        A ``π`` from a first batch is kept.
        """
        if self._pi is not None:
            return self
        made = copy(self)
        made._pi = distribution(self._stated, table)
        return made

    def replaced_by(self, size: int) -> Array | None:
        """Return ``π``, shape (s,); None if uniform.

        Raises
        ------
        AuditorError
            It depends on the table's categories, which are missing or different (``over``).
        """
        if self._stated != "uniform" and (self._pi is None or self._pi.size != size):
            raise AuditorError(
                "`replacement` is of a table's categories: ask `scheme.over(table)` for copies and law"
            )
        return self._pi


@register
class Uniform(RetentionReplacement):
    """Categories kept with probability p or redrawn. Broken under collusion.

    Independent in every copy.
    """

    name = "uniform"
    held_against = True
    multilevel = False
    claims = "Nothing under collusion: the reconstruction probability rises with every copy pooled (xiao2009, Fig. 7)."
    reference = "xiao2009, eq. 1"
    assumes = "Recipients never pool their copies, and tuples are independent."

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        return FreshCopies(original, size, key, self.replaced_by(size))


@register
class UniformMultilevel(RetentionReplacement):
    """Multilevel replacement of categories: the best copy is sufficient.

    One replacement process observed at several levels.
    """

    name = "uniform-multilevel"
    held_against = True
    multilevel = True
    claims = "No collusion gain: the posterior given a coalition is that given its least perturbed copy (xiao2009, Theorem 1)."
    reference = "xiao2009, Theorem 1"
    assumes = "Tuples are independent; holds for every prior and every attack."

    class Parameters(RetentionReplacement.Parameters):
        """Replacement distribution and implementation; both have one law."""

        implementation: Literal["process", "multi-pert"] = Field(
            "process",
            description="process: a look-up in a stream of replacements; multi-pert: the paper's Figure 3 on compressed histories",
        )

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        maker = ProcessCopies if self.parameters.implementation == "process" else MultiPertCopies
        return maker(original, size, key, self.replaced_by(size))

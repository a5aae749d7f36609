"""k-anonymity: quasi-identifiers coarsened until classes have k records.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | k of a copy | scalar | samarati2001 |
| copy | the class of each record, and the range of each of its attributes (``auditor.schemes.generalisation.classes``) | (n,) records | |
| file | lower and upper bound of each quasi-identifier, the other attributes, a flag for suppression | 2q + (N − q) + 1 columns | |

``method: mondrian`` cuts the table at medians while the rules allow. ``full-domain`` gives every
quasi-identifier bins of one width: the lowest rungs that satisfy the rules after suppression of a
share of the records. A column with a hierarchy (``data: hierarchies:``) is generalised node by
node. Its bounds are the first and last leaf of a node. t-closeness of a sensitive column with a
hierarchy uses it.

Sensitive attributes are released unperturbed: k-anonymity hides identity, not content. Fails if a
class's sensitive values are equal (homogeneity), skewed (skewness) or close in meaning
(similarity); options ℓ, α, h, e and t address this. A quasi-identifier missing from the list is an
attack route. Several copies do not compose: classes of different copies intersect in fewer than k
records. ``measures: [anonymity]`` reports the remaining promises.

``k-anonymity-multilevel`` nests the classes. With ``P_f, P_c`` the earlier copies of the next
smaller and the next larger k, every class of ``P_k`` is a union of classes of ``P_f`` and lies
within one of ``P_c``. Without ``P_f`` the classes of ``P_c`` are cut as Mondrian cuts the whole
table (lefevre2006); otherwise the cuts separate whole classes of ``P_f``. Two records share a class
in all copies held exactly if they share one in the finest, and every union of classes keeps k, ℓ, α
and t. So a coalition sees its finest copy's classes and ranges only (docs/method.md, «Several
levels of k»). In ascending order of k, all copies are functions of the first. In descending order
coarse copies lose less utility. Classes released before a finer copy may disclose that Mondrian
cuts were refused; no attack here uses that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.registry import register
from auditor.schemes.generalisation.anonymous_scheme import AnonymousScheme
from auditor.schemes.generalisation.partition import (
    Partition,
    Rung,
    bounds,
    full_domain,
    merged,
    mondrian,
)


@register
class KAnonymity(AnonymousScheme):
    """Quasi-identifiers generalised to classes of k records (level = k).

    Sensitive values stay unperturbed, without any promise by k alone.
    """

    name = "k-anonymity"
    claims = (
        "At least k records share the quasi-identifiers of each record in one copy; nothing else."
    )
    reference = "samarati2001; liu2008, section 5"
    assumes = "The quasi-identifiers are all that an adversary can know of a record, and recipients never pool their copies."

    class Parameters(AnonymousScheme.Parameters):
        """Quasi-identifiers, sensitive attribute, class rules and method."""

        method: Literal["mondrian", "full-domain"] = Field(
            "mondrian", description="median cuts, or one bin width per attribute"
        )
        rungs: dict[str, list[float]] | None = Field(
            None,
            description="full-domain: bin widths, rising, of each quasi-identifier without a hierarchy; the whole domain comes last",
        )
        suppress: Annotated[float, Field(ge=0, lt=1)] = Field(
            0.05, description="full-domain: share of the records that may be suppressed"
        )

        @model_validator(mode="after")
        def _consistent(self) -> Any:
            if self.rungs is not None and (
                self.method != "full-domain" or not set(self.rungs) <= set(self.quasi)
            ):
                raise ValueError(
                    "has rungs for something other than the quasi-identifiers of method full-domain"
                )
            if self.rungs and any(width < 0 for widths in self.rungs.values() for width in widths):
                raise ValueError("has a bin width below 0 among its rungs")
            return self

    def _check(self, table: Table) -> None:
        super()._check(table)
        given = self.parameters
        both = [name for name in given.rungs or {} if name in table.hierarchies]
        if both:
            raise AuditorError(f"{both[0]!r} has rungs and a hierarchy, where one must do")
        neither = [
            name
            for name in given.quasi
            if name not in table.hierarchies and name not in (given.rungs or {})
        ]
        if given.method == "full-domain" and neither:
            raise AuditorError(
                f"method full-domain needs rungs for {neither[0]!r}, or a hierarchy of it under data.hierarchies"
            )

    def partitions(self, levels: Sequence[float], existing: int, table: Table) -> list[Partition]:
        """Return each copy's classes, independently of the other copies."""
        return [self._partition(k, table) for k in levels[existing:]]

    def _partition(self, k: float, table: Table) -> Partition:
        Q, codes, rules = self.rules(k, table)
        if self.parameters.method == "mondrian":
            return bounds(Q, Q, mondrian(Q, codes, rules))
        rungs = [self._rungs(name, table) for name in self.parameters.quasi]
        found = full_domain(Q, codes, rules, rungs, self.parameters.suppress)
        assert found is not None, "the whole domain satisfies the rules"
        return found

    def _rungs(self, name: str, table: Table) -> list[Rung]:
        hierarchy = table.hierarchies.get(name)
        if hierarchy is None:
            return [*sorted({0.0, *self.parameters.rungs[name]}), np.inf]
        return [0.0, *(hierarchy.borders(height) for height in range(1, hierarchy.height)), np.inf]


@register
class KAnonymityMultilevel(AnonymousScheme):
    """Nested classes of k records: no coalition gains over its finest copy.

    Each coarser copy merges classes of a finer one (level = k).
    """

    name = "k-anonymity-multilevel"
    nested = True
    claims = "Any copies held show the classes of the finest among them, which keep its k, ℓ, α and t; nothing else."
    reference = "lefevre2006; xiao2009, Table 1"
    assumes = "The quasi-identifiers are all that an adversary can know of a record."

    def partitions(self, levels: Sequence[float], existing: int, table: Table) -> list[Partition]:
        """Return all copies' classes, each from its earlier neighbours."""
        made: list[Partition] = []
        for k in levels:
            Q, codes, rules = self.rules(k, table)
            finer, coarser = (
                None if place is None else made[place]
                for place in neighbours(k, levels[: len(made)])
            )
            if finer is not None:
                made.append(merged(finer, rules.k, coarser))
            # the finest so far: Mondrian cuts of the table, or of each class of the finest copy
            # before it
            else:
                made.append(
                    bounds(
                        Q,
                        Q,
                        mondrian(Q, codes, rules, None if coarser is None else coarser.classes),
                    )
                )
        return made


def neighbours(k: float, levels: Sequence[float]) -> tuple[int | None, int | None]:
    """Return the places of the next finer and the next coarser level.

    An existing level is both.

    Examples
    --------
    >>> neighbours(10, [30, 3, 5]), neighbours(10, [30]), neighbours(5, [30, 5])
    ((2, 0), (None, 0), (1, 1))
    """
    finer = [place for place, level in enumerate(levels) if level <= k]
    coarser = [place for place, level in enumerate(levels) if level >= k]
    return max(finer, key=levels.__getitem__, default=None), min(
        coarser, key=levels.__getitem__, default=None
    )

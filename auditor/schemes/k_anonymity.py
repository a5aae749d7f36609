"""k-anonymity: quasi-identifiers coarsened until classes have k records.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | k of a copy | scalar | samarati2001 |
| copy | the class of each record, and the range of each of its attributes (``auditor.schemes.generalisation.copies``) | (n,) records | |
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
records, unless one partition refines the other (``k-anonymity-multilevel``).
``measures: [anonymity]`` reports the remaining promises.
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
from auditor.schemes.generalisation.partition import Partition, Rung, bounds, full_domain, mondrian


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

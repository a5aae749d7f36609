"""k-anonymity: quasi-identifiers coarsened until classes have k records.

| symbol | meaning | source |
| --- | --- | --- |
| level | k of a copy | samarati2001 |
| copy | class of each record, and ranges of its attributes (``auditor.schemes.generalisation.classes``) | |
| file | lower and upper bound of each quasi-identifier, the other attributes, a flag for suppression | |

``method: mondrian`` cuts at medians while the rules allow. ``full-domain`` uses the lowest rungs
that satisfy the rules after suppression. Hierarchies (``data: hierarchies:``) are generalised by
node. Fails if a class's sensitive values, which are unperturbed, are equal, skewed or close in
meaning (ℓ, α, h, e and t), and if copies are pooled.

``k-anonymity-multilevel`` nests the classes (lefevre2006): a coalition sees its finest copy's only
(docs/method.md, «Several levels of k»). Classes released before a finer copy may disclose refused
cuts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, NonNegativeFloat, model_validator

from auditor.base import AuditorError, did_you_mean
from auditor.base.types import (
    Array,
    Block,
    ClassRecords,
    Coalition,
    Coalitions,
    Indices,
    Levels,
    Names,
    Plain,
)
from auditor.data.table import DataUse, Table
from auditor.numerics.blocks import row_blocks
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key, LevelRange, Scheme, TableMoments
from auditor.schemes.generalisation.classes import (
    LEAST,
    MOST,
    Ground,
    Partition,
    Rules,
    Rung,
    blank,
    by_coalition,
    compose,
    from_columns,
    full_domain,
    merged,
    mondrian,
    sufficient,
    to_columns,
)


class AnonymousScheme(Scheme):
    """Copies with one range per class in each quasi-identifier."""

    family = "k-anonymity"
    needs_table = True
    nested: ClassVar[bool] = False
    """Whether it claims that one copy of every coalition is sufficient."""
    trial = MappingProxyType({"quasi": ["a", "b"], "sensitive": "c"})
    level_range = LevelRange("k, an integer of at least 1", low=1, whole=True)
    trial_levels = (3.0, 5.0, 4.0)

    class Parameters(PluginParameters):
        """Quasi-identifiers, sensitive attribute, and class rules besides k."""

        quasi: list[str] = Field(min_length=1)
        """attributes that identify when taken together"""
        sensitive: str
        """the attribute to protect; released as it is"""
        distinct: int = Field(1, ge=1)
        """fewest distinct sensitive values in a class (distinct ℓ)"""
        entropy: float = Field(1.0, ge=1)
        """least entropy ℓ of a class"""
        alpha: float = Field(1.0, gt=0, le=1)
        """largest share of one sensitive value in a class"""
        t: float = Field(1.0, ge=0, le=1)
        """largest earth mover's distance of a class from the table"""
        recursive: list[float] | None = Field(None, min_length=2, max_length=2)
        """[c, ℓ]: a class's commonest value has fewer records than c times the ℓ-th and all rarer ones"""
        confidential: list[float | str] = Field([])
        """sensitive values that nobody may infer"""
        confidence: float = Field(1.0, gt=0, le=1)
        """largest share of one confidential value in a class"""
        range: float = Field(0.0, ge=0, le=1)
        """least range of a class's sensitive values, over the table's: e of (k, e), whose k is `distinct`"""

        @model_validator(mode="after")
        def _consistent_names(self) -> Any:
            if len(set(self.quasi)) != len(self.quasi) or self.sensitive in self.quasi:
                raise ValueError(
                    "must list each quasi-identifier once, and not the sensitive attribute among them"
                )
            if self.recursive is not None and not (
                self.recursive[0] > 0 and self.recursive[1] >= 1 and self.recursive[1].is_integer()
            ):
                raise ValueError(
                    "must have as recursive [c, ℓ] a number above 0 and a whole number of at least 1"
                )
            if self.confidence < 1.0 and not self.confidential:
                raise ValueError(
                    "bounds the confidence in no value: list the sensitive values that nobody may infer under `confidential`"
                )
            return self

    @property
    def public(self) -> Plain:
        return super().public | {
            "hierarchies": {} if self.table is None else dict(self.table.hierarchies)
        }

    @abstractmethod
    def partitions(self, levels: Levels, existing: int, table: Table) -> list[Partition]:
        """Classes of copies ``existing + 1 … M``; ``levels`` of all M.

        Or of all M, if new copies derive from earlier ones. ``AuditorError`` if no generalisation
        satisfies the rules.
        """

    def check_table(self, table: Table, asked: DataUse) -> None:
        self._check(table)

    def _check(self, table: Table) -> None:
        for name in (*self.parameters.quasi, self.parameters.sensitive):
            if name not in table.attributes:
                raise AuditorError(
                    f"there is no attribute {name!r}{did_you_mean(name, table.attributes)}"
                )
        self._confidential(table)
        if self.parameters.range > 0 and self.parameters.sensitive in table.hierarchies:
            raise AuditorError(
                f"range: {self.parameters.sensitive!r} has a hierarchy, and its values no range; use `distinct` or `t`"
            )

    def check_levels(self, levels: Levels) -> None:
        super().check_levels(levels)
        if self.table is not None:
            self._check(self.table)
            for k in levels:
                self.rules(k, self.table)

    def output_width(self, width: int) -> int:
        return width + len(self.parameters.quasi) + 1

    blank = staticmethod(blank)
    sufficient = staticmethod(sufficient)

    def to_columns(self, copy: ClassRecords, attributes: Names) -> Array:
        return to_columns(copy, self._quasi(attributes))

    def from_columns(self, columns: Array, attributes: Names) -> ClassRecords:
        return from_columns(columns, self._quasi(attributes))

    def sampler(
        self, levels: Levels, table: TableMoments, key: Key, existing: int = 0
    ) -> AnonymousSampler:
        whole = self.table
        self._check(whole)
        made = [
            self._copy(partition, whole) for partition in self.partitions(levels, existing, whole)
        ]
        bounds = row_blocks(whole.rows, whole.width)
        return AnonymousSampler(
            made, len(levels) - len(made), bounds, self._quasi(whole.attributes)
        )

    def _copy(self, partition: Partition, table: Table) -> ClassRecords:
        X, numbers = table.values, partition.numbers
        return compose(
            np.where(numbers[:, None] < 0, X.mean(axis=0), X),
            self._quasi(table.attributes),
            *partition,
        )

    def promises(
        self, blocks: Iterable[Block], coalitions: Coalitions
    ) -> dict[Coalition, dict[str, float]]:
        table = self.table
        sensitive = table.attributes.index(self.parameters.sensitive)
        ground = self._ground(np.unique(table.values[:, sensitive]), table)
        return by_coalition(blocks, coalitions, sensitive, ground, self._confidential(table))

    def rules(self, k: float, table: Table) -> tuple[Array, Indices, Rules]:
        """Quasi-identifiers (n, q), sensitive codes (n,) and class rules.

        ``AuditorError`` if the whole table as one class violates the rules.
        """
        given = self.parameters
        values, codes = np.unique(
            table.values[:, table.attributes.index(given.sensitive)], return_inverse=True
        )
        codes, (c, ell) = codes.ravel(), given.recursive or (np.inf, 1)
        rules = Rules(
            int(k),
            values,
            {name: getattr(given, name) for name in LEAST},
            {name: getattr(given, name) for name in MOST},
            (c, int(ell)),
            np.flatnonzero(np.isin(values, self._confidential(table))),
            self._ground(values, table),
        )
        if not rules.hold(codes, np.bincount(codes) / len(codes)):
            raise AuditorError(
                f"{self.name}: the whole table as one class does not satisfy the rules with k = {int(k)}"
            )
        return table.values[:, self._quasi(table.attributes)], codes, rules

    def _quasi(self, attributes: Names) -> list[int]:
        return [attributes.index(name) for name in self.parameters.quasi]

    def _confidential(self, table: Table) -> list[float]:
        name, wanted = self.parameters.sensitive, self.parameters.confidential
        if name in table.hierarchies:
            leaves = table.hierarchies[name].leaves
            for value in wanted:
                if value not in leaves:
                    known = did_you_mean(str(value), map(str, leaves))
                    raise AuditorError(
                        f"confidential: the hierarchy of {name!r} has no value {value!r}{known}"
                    )
            return [float(leaves.index(value)) for value in wanted]
        for value in wanted:
            if isinstance(value, str):
                raise AuditorError(f"confidential: {name!r} holds numbers; got {value!r}")
        return [float(value) for value in wanted]

    def _ground(self, values: Array, table: Table) -> Ground:
        hierarchy = table.hierarchies.get(self.parameters.sensitive)
        return (
            "ordered"
            if hierarchy is None
            else {place: hierarchy.ancestors[int(value)] for place, value in enumerate(values)}
        )


class AnonymousSampler(NamedTuple):
    """Returns rows of copies in memory; ``before`` copies precede them."""

    copies: Sequence[ClassRecords]
    before: int
    bounds: Sequence[tuple[int, int]]
    quasi: Sequence[int]

    def block(self, index: int, x: Array, out: Sequence[ClassRecords], existing: int = 0) -> None:
        a, b = self.bounds[index]
        for number, copy in enumerate(self.copies, start=self.before):
            if number >= existing:
                out[number][...] = copy[a:b]
                continue
            released = out[number]
            if released.dtype.names is not None:
                released = to_columns(released, self.quasi)
            if not np.array_equal(released, to_columns(copy[a:b], self.quasi)):
                raise AuditorError(
                    f"copy {number + 1}, which is out, is not what this table gives by these parameters, so that new "
                    "copies could cut its classes"
                )


@register
class KAnonymity(AnonymousScheme):
    """Quasi-identifiers generalised to classes of k records (level = k)."""

    name = "k-anonymity"
    claims = (
        "At least k records share the quasi-identifiers of each record in one copy; nothing else."
    )
    reference = "samarati2001; liu2008, section 5"
    assumes = "The quasi-identifiers are all that an adversary can know of a record, and recipients never pool their copies."

    class Parameters(AnonymousScheme.Parameters):
        """Quasi-identifiers, sensitive attribute, class rules and method."""

        method: Literal["mondrian", "full-domain"] = "mondrian"
        """median cuts, or one bin width per attribute"""
        rungs: dict[str, list[NonNegativeFloat]] | None = None
        """full-domain: bin widths, rising, of each quasi-identifier without a hierarchy; the whole domain comes last"""
        suppress: float = Field(0.05, ge=0, lt=1)
        """full-domain: share of the records that may be suppressed"""

        @model_validator(mode="after")
        def _consistent(self) -> Any:
            if self.rungs is not None and (
                self.method != "full-domain" or not set(self.rungs) <= set(self.quasi)
            ):
                raise ValueError(
                    "has rungs for something other than the quasi-identifiers of method full-domain"
                )
            return self

    def _check(self, table: Table) -> None:
        super()._check(table)
        given, rungs = self.parameters, self.parameters.rungs or {}
        for name in given.quasi if given.method == "full-domain" else ():
            if (name in rungs) == (name in table.hierarchies):
                raise AuditorError(
                    f"method full-domain needs either rungs for {name!r}, or a hierarchy of it under data.hierarchies"
                )

    def partitions(self, levels: Levels, existing: int, table: Table) -> list[Partition]:
        return [self._partition(k, table) for k in levels[existing:]]

    def _partition(self, k: float, table: Table) -> Partition:
        Q, codes, rules = self.rules(k, table)
        if self.parameters.method == "mondrian":
            return mondrian(Q, codes, rules)
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
    """Nested classes of k records: no coalition gains over its finest copy."""

    name = "k-anonymity-multilevel"
    nested = True
    claims = "Any copies held show the classes of the finest among them, which keep its k, ℓ, α and t; nothing else."
    reference = "lefevre2006; xiao2009, Table 1"
    assumes = "The quasi-identifiers are all that an adversary can know of a record."

    def partitions(self, levels: Levels, existing: int, table: Table) -> list[Partition]:
        made: list[Partition] = []
        for k in levels:
            Q, codes, rules = self.rules(k, table)
            finer, coarser = (
                None if place is None else made[place]
                for place in neighbours(k, levels[: len(made)])
            )
            made.append(
                mondrian(Q, codes, rules, coarser)
                if finer is None
                else merged(finer, rules.k, coarser)
            )
        return made


def neighbours(k: float, levels: Levels) -> tuple[int | None, int | None]:
    """Places of the next finer and coarser level.

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

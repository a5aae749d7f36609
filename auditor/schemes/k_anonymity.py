"""k-anonymity: quasi-identifiers made coarse until every record has k − 1 doubles; sensitive attributes released as they are.

| symbol | meaning | shape | source |
| --- | --- | --- | --- |
| level | k of a copy | scalar | samarati2001 |
| copy | the class of each record, and the range of each of its attributes (``auditor.schemes.generalisation.copies``) | (n,) records | |
| file | lower and upper bound of each quasi-identifier, the other attributes, a flag for suppression | 2q + (N − q) + 1 columns | |

``method: mondrian`` cuts the table at medians while the rules allow; ``full-domain`` gives every quasi-identifier bins of one width, by the
lowest rungs that satisfy the rules once a share of the records is suppressed (a suppressed record keeps no value at all). A column with a
hierarchy under ``data: hierarchies:``, text or numbers, is generalised node by node: its rungs are the hierarchy's heights, its bounds the
first and last place of a node among the leaves; and t-closeness of a sensitive column that has one goes by it.

Broken on purpose where it promises nothing: k-anonymity hides who a record is, and not what it says. Fails when a class's sensitive values
are all alike (homogeneity), or lopsided (skewness), or close in meaning (similarity): hence ℓ, α and t, which are options here. A quasi-
identifier left off the list is a way in. Several copies do not compose: a record's class in one meets its class in another in fewer than
k records, unless one partition refines the other, as Mondrian's with k alone mostly do; ``measures: [anonymity]`` tells what is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from auditor.data.request import DataUse
from auditor.data.table import Table
from auditor.errors import AuditorError, did_you_mean
from auditor.numerics.blocks import row_blocks
from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.schemes.generalisation.classes import Ground
from auditor.schemes.generalisation.copies import blank, compose, from_columns, to_columns
from auditor.schemes.generalisation.partition import Rules, Rung, bounds, full_domain, mondrian
from auditor.schemes.generalisation.promises import by_coalition
from auditor.types import Array, Block, ClassRecords, Coalition


@register
class KAnonymity(Scheme):
    """Quasi-identifiers generalised until every record has k − 1 doubles (level = k); no promise about what the records say."""

    name = "k-anonymity"
    family = "k-anonymity"
    needs_table = True
    claims = "Nobody is singled out among fewer than k by the quasi-identifiers of one copy; nothing else."
    reference = "samarati2001"
    assumes = "The quasi-identifiers are all that an adversary can know of a record, and recipients never pool their copies."
    trial = MappingProxyType({"quasi": ["a", "b"], "sensitive": "c"})
    trial_levels = (3.0, 5.0, 4.0)

    class Parameters(PluginParameters):
        """What identifies, what is sensitive, and which rules classes must satisfy."""

        quasi: list[str] = Field(min_length=1, description="attributes that identify when taken together")
        sensitive: str = Field(description="the attribute to protect; released as it is")
        method: Literal["mondrian", "full-domain"] = Field("mondrian", description="median cuts, or one bin width per attribute")
        rungs: dict[str, list[float]] | None = Field(
            None, description="full-domain: bin widths, rising, of each quasi-identifier without a hierarchy; the whole domain comes last"
        )
        suppress: Annotated[float, Field(ge=0, lt=1)] = Field(0.05, description="full-domain: share of the records that may be suppressed")
        distinct: Annotated[int, Field(ge=1)] = Field(1, description="fewest distinct sensitive values in a class (distinct ℓ)")
        entropy: Annotated[float, Field(ge=1)] = Field(1.0, description="least entropy ℓ of a class")
        alpha: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="largest share of one sensitive value in a class")
        t: Annotated[float, Field(ge=0, le=1)] = Field(1.0, description="largest earth mover's distance of a class from the table")

        @model_validator(mode="after")
        def _consistent(self) -> Any:
            if len(set(self.quasi)) != len(self.quasi) or self.sensitive in self.quasi:
                raise ValueError("must list each quasi-identifier once, and not the sensitive attribute among them")
            if self.rungs is not None and (self.method != "full-domain" or not set(self.rungs) <= set(self.quasi)):
                raise ValueError("has rungs for something other than the quasi-identifiers of method full-domain")
            if self.rungs and any(width < 0 for widths in self.rungs.values() for width in widths):
                raise ValueError("has a bin width below 0 among its rungs")
            return self

    @property
    def public(self) -> dict[str, Any]:
        """The parameters, and what the data's owner declared of the columns."""
        return super().public | {"hierarchies": {} if self.table is None else dict(self.table.hierarchies)}

    def check_table(self, table: Table, asked: DataUse) -> None:
        """Refuse a table without an attribute that is named, or a full domain of which it is not said how to make it coarse."""
        self._check(table)

    def _check(self, table: Table) -> None:
        given = self.parameters
        for name in (*given.quasi, given.sensitive):
            if name not in table.attributes:
                raise AuditorError(f"there is no attribute {name!r}{did_you_mean(name, table.attributes)}")
        both = [name for name in given.rungs or {} if name in table.hierarchies]
        if both:
            raise AuditorError(f"{both[0]!r} has rungs and a hierarchy, where one must do")
        neither = [name for name in given.quasi if name not in table.hierarchies and name not in (given.rungs or {})]
        if given.method == "full-domain" and neither:
            raise AuditorError(f"method full-domain needs rungs for {neither[0]!r}, or a hierarchy of it under data.hierarchies")

    def check_levels(self, levels: Sequence[float]) -> None:
        """Refuse a level that is no k."""
        for number, k in enumerate(levels, start=1):
            if not (np.isfinite(k) and k >= 1 and float(k).is_integer()):
                raise AuditorError(f"level {number} must be k, an integer of at least 1; got {k!r}")

    def output_width(self, width: int) -> int:
        """Return two bounds a quasi-identifier, one column for each other attribute, and one for suppression."""
        return width + len(self.parameters.quasi) + 1

    def blank(self, rows: int, width: int) -> ClassRecords:
        """Return memory for records of classes."""
        return blank(rows, width)

    def to_columns(self, copy: ClassRecords, attributes: Sequence[str]) -> Array:
        """Return bounds, other attributes and a flag for suppression."""
        return to_columns(copy, self._quasi(attributes))

    def from_columns(self, columns: Array, attributes: Sequence[str]) -> ClassRecords:
        """Return records whose classes are read off their bounds."""
        return from_columns(columns, self._quasi(attributes))

    def law(self, levels: Sequence[float], table: TableMoments) -> None:
        """Return None: nothing is drawn."""

    def sampler(self, levels: Sequence[float], table: TableMoments, key: Key, existing: int = 0) -> AnonymousSampler:
        """Return what hands out the copies; there is nothing random about them."""
        if self.table is None:
            raise AuditorError("k-anonymity needs the table as a whole")
        return AnonymousSampler([self.copy(int(k), self.table) for k in levels[existing:]], self.table.rows, self.table.width)

    def copy(self, k: int, table: Table) -> ClassRecords:
        """Return the copy with that k, n records.

        Raises
        ------
        AuditorError
            An attribute does not exist, or no generalisation satisfies the rules.
        """
        given = self.parameters
        self._check(table)
        X, quasi = table.values, self._quasi(table.attributes)
        values, codes = np.unique(X[:, table.attributes.index(given.sensitive)], return_inverse=True)
        Q, codes = X[:, quasi], codes.ravel()
        rules = Rules(k, given.distinct, given.entropy, given.alpha, given.t, self._ground(values, table))
        if not rules.hold(codes, np.bincount(codes) / len(codes)):
            raise AuditorError(f"k-anonymity: the whole table as one class does not satisfy the rules with k = {k}")
        if given.method == "mondrian":
            numbers, low, high = bounds(Q, mondrian(Q, codes, rules))
        else:
            found = full_domain(Q, codes, rules, [self._rungs(name, table) for name in given.quasi], given.suppress)
            assert found is not None, "the whole domain satisfies the rules"
            numbers, low, high = found
        return compose(np.where(numbers[:, None] < 0, X.mean(axis=0), X), quasi, numbers, low, high)

    def promises(self, blocks: Iterable[Block], coalitions: Sequence[Coalition]) -> dict[Coalition, dict[str, float]]:
        """Return what the copies keep of k, ℓ, α and t, for each coalition that holds some of them."""
        assert self.table is not None
        sensitive = self.table.attributes.index(self.parameters.sensitive)
        return by_coalition(blocks, coalitions, sensitive, self._ground(np.unique(self.table.values[:, sensitive]), self.table))

    def _quasi(self, attributes: Sequence[str]) -> list[int]:
        return [attributes.index(name) for name in self.parameters.quasi]

    def _rungs(self, name: str, table: Table) -> list[Rung]:
        hierarchy = table.hierarchies.get(name)
        if hierarchy is None:
            return [*sorted({0.0, *self.parameters.rungs[name]}), np.inf]
        return [0.0, *(hierarchy.borders(height) for height in range(1, hierarchy.height)), np.inf]

    def _ground(self, values: Array, table: Table) -> Ground:
        """Return how far the sensitive values found are apart: by their hierarchy, or else by rank."""
        hierarchy = table.hierarchies.get(self.parameters.sensitive)
        return "ordered" if hierarchy is None else {place: hierarchy.ancestors[int(value)] for place, value in enumerate(values)}


class AnonymousSampler:
    """Hands out the rows of copies that are in memory."""

    def __init__(self, copies: Sequence[ClassRecords], rows: int, width: int) -> None:
        self._copies = copies
        self._bounds = row_blocks(rows, width)

    def block(self, index: int, x: Array, out: Sequence[ClassRecords], existing: int = 0) -> None:
        """Write the copies of one block of rows; see ``Sampler``."""
        a, b = self._bounds[index]
        for number, copy in enumerate(self._copies, start=existing):
            out[number][...] = copy[a:b]

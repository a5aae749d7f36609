"""Categorical microdata: domains, their product, bins and hierarchies.

A hierarchy's leaves are the column's values; the table holds places among them. A node is a group
of neighbouring leaves. Heights run from 0 (leaf) to H (root), equal in all branches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise, product as cartesian
from math import prod
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from auditor.base import DataError, counted, pd, quoted
from auditor.base.types import Array, Codes, Indices, Integers, Names, Plain, frozen, unprinted
from auditor.data.columns.checks import Series, kind_of
from auditor.numerics.blocks import row_blocks
from auditor.registry.parameters import (
    FieldError,
    Form,
    Path,
    Whole,
    format_path,
    kind_of as kind_of_value,
)

MOST_VALUES = 10_000
"""Most values in a domain: a posterior has one number per value."""
BLOCK_WIDTH = 4
"""Records come in blocks of 65,536: record numbers fit in two bytes, and values in the cache."""


@unprinted
class Attribute:
    """One attribute's domain.

    Attributes
    ----------
    labels
        Values in order, or bins as text.
    scores : ndarray of shape (s,) or None
        Each value, or the middle of its bin.
    edges : ndarray of shape (s + 1,) or None
        Borders of bins.
    """

    name: str
    labels: tuple[Any, ...]
    scores: Array | None = None
    edges: Array | None = None

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.labels)


@unprinted
class CategoricalTable:
    """``n`` records with one value each of the attributes' product domain.

    ``content`` has codes from 0 to s − 1, shape (n,), or ``FileCodes``. The last attribute's value
    changes fastest.
    """

    attributes: tuple[Attribute, ...]
    content: Any

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return self.content.shape[0]

    @property
    def streamed(self) -> bool:
        """Whether the records stay in their file."""
        return not isinstance(self.content, np.ndarray)

    @property
    def codes(self) -> Codes:
        """All records, shape (n,); reads a large file into memory each time."""
        return self.content[:]

    @property
    def code_type(self) -> np.dtype[np.unsignedinteger]:
        """Smallest unsigned type for every code."""
        return code_type(self.size)

    def read(self, start: int, stop: int) -> Codes:
        """Records ``start:stop``, (stop − start,), read-only."""
        return self.content[start:stop]

    @property
    def size(self) -> int:
        """``s``, the product domain's size."""
        return domain_size(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """Attribute names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def scores(self) -> Array | None:
        """Each value's number, (s,), if one ordered attribute varies, else None."""
        scores = self.attributes[0].scores if len(self.attributes) == 1 else None
        return (
            scores
            if scores is not None and np.ptp(scores[np.flatnonzero(self.prior)]) > 0
            else None
        )

    @cached_property
    def labels(self) -> tuple[Any, ...]:
        """Each code's value, or tuple of values."""
        if len(self.attributes) == 1:
            return self.attributes[0].labels
        return tuple(cartesian(*(attribute.labels for attribute in self.attributes)))

    @property
    def prior(self) -> Array:
        """Share of records with each value, shape (s,)."""
        return self._scan[0] / self.rows

    def labelled(self, codes: Codes) -> Iterator[tuple[tuple[Any, ...], Integers]]:
        """Labels and codes of each attribute, from product codes."""
        labels = (attribute.labels for attribute in self.attributes)
        return zip(labels, split(self, codes), strict=True)

    def fingerprint(self) -> str:
        """SHA-256 over domains and codes."""
        return self._scan[1]

    @cached_property
    def _scan(self) -> tuple[Indices, str]:
        counts = np.zeros(self.size, dtype=int)
        digest = hashlib.sha256(
            repr([(attribute.name, attribute.labels) for attribute in self.attributes]).encode()
        )
        for start, stop in row_blocks(self.rows, BLOCK_WIDTH):
            codes = np.ascontiguousarray(self.read(start, stop))
            counts += np.bincount(codes, minlength=self.size)
            digest.update(codes.data)
        return counts, digest.hexdigest()


def code_type(size: int) -> np.dtype[np.unsignedinteger]:
    """Smallest unsigned type for values 0 to ``size − 1``."""
    return np.min_scalar_type(max(0, size - 1))


def product(attributes: Sequence[Attribute], columns: Sequence[Integers]) -> CategoricalTable:
    """Table of several attributes over their product domain.

    Raises
    ------
    DataError
        The domain is too large.
    """
    check_size(attributes)
    codes = joined(attributes, columns)
    codes.setflags(write=False)
    return CategoricalTable(tuple(attributes), codes)


def domain_size(attributes: Sequence[Attribute]) -> int:
    """Number of values in a product domain."""
    return prod(attribute.size for attribute in attributes)


def check_size(attributes: Sequence[Attribute]) -> None:
    """Raise `DataError` if a product domain is too large."""
    size = domain_size(attributes)
    if size > MOST_VALUES:
        raise DataError(
            f"the domain would have {size:,} values; at most {MOST_VALUES:,}: use fewer attributes or wider bins"
        )


def joined(attributes: Sequence[Attribute], columns: Sequence[Integers]) -> Codes:
    """Product codes from each attribute's codes, (n,)."""
    shape = tuple(attribute.size for attribute in attributes)
    codes = columns[0] if len(shape) == 1 else np.ravel_multi_index(tuple(columns), shape)
    return codes.astype(code_type(prod(shape)), copy=False)


def split(table: CategoricalTable, codes: Codes) -> list[Integers]:
    """Each attribute's codes from product codes."""
    if len(table.attributes) == 1:
        return [codes]
    return list(np.unravel_index(codes, tuple(attribute.size for attribute in table.attributes)))


def domain_of(name: str, labels: Sequence[Any]) -> Attribute:
    """Attribute with these values, scored if all are numbers."""
    scores = None
    with suppress(TypeError, ValueError):
        if not any(isinstance(label, str | bool) for label in labels):
            scores = np.array([float(label) for label in labels])
    return Attribute(name, tuple(labels), scores)


def codes_in(labels: Sequence[Any], column: Series) -> Indices:
    """Each record's place among labels, shape (n,); −1 if absent."""
    found, different = pd.factorize(column)
    values = pd.Index(different.astype(object))
    places = pd.Index(labels, tupleize_cols=False).get_indexer(values)
    if (places < 0).any():  # the label may be spelt otherwise
        keys = pd.Index([unspelt(label) for label in labels], dtype=object)
        if keys.is_unique:
            others = keys.get_indexer(pd.Index([unspelt(value) for value in values], dtype=object))
            places = np.where(places < 0, others, places)
    return np.append(places, -1)[found]


def unspelt(label: Any) -> str:
    """Label without its spelling: ``01`` is 1, ``TRUE`` is True."""
    text = str(label).strip()
    try:
        return repr(float(text))
    except ValueError:
        return text.lower() if text.lower() in ("true", "false") else text


def coded_in(labels: Sequence[Any], name: str, column: Series, outside: str, *path: str) -> Array:
    """Each record's place among labels, shape (n,); NaN if missing.

    Raises
    ------
    DataError
        Some values are ``outside``.
    """
    codes, missing = codes_in(labels, column), column.isna().to_numpy()
    unknown = int(((codes < 0) & ~missing).sum())
    if unknown:
        raise DataError(f"column {quoted(name)} has {counted(unknown, 'record')} {outside}", path)
    return np.where(missing, np.nan, codes)


def coded_columns(
    columns: Iterable[tuple[Any, Series]], domains: Mapping[str, Sequence[Any] | None]
) -> CategoricalTable:
    """Table of columns without missing values.

    A domain is declared, else the column's categories, else its observed values in order.

    Raises
    ------
    DataError
        A value is missing or not in the declared domain.
    """
    attributes, codes = list[Attribute](), list[Integers]()
    for name, column in columns:
        if column.isna().any():
            raise DataError(f"column {quoted(name)} has missing values")
        domain = domains.get(str(name))
        if domain is None and isinstance(column.dtype, pd.CategoricalDtype):
            domain = list(column.cat.categories)
        elif domain is None:
            domain = list(pd.factorize(column, sort=True)[1])
        attributes.append(domain_of(str(name), domain))
        codes.append(coded_in(domain, name, column, "outside the declared domain").astype(int))
    return product(attributes, codes)


def bins_between(name: str, edges: Array) -> Attribute:
    """Bins between edges, shape (s + 1,).

    Raises
    ------
    DataError
        Edges do not increase.
    """
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise DataError(
            f"column {quoted(name)} cannot be cut into bins: it has too few different values"
        )
    return Attribute(
        name, tuple(f"bin {k}" for k in range(1, edges.size)), (edges[:-1] + edges[1:]) / 2, edges
    )


def bin_codes(values: Array, edges: Array) -> Indices:
    """Bin of every value, shape (n,)."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)


Bins = Annotated[Whole, Field(ge=1, le=MOST_VALUES)]


class Bin(Form):
    """Borders of one column's bins: one of three rules."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
    equal_width: Bins | None = None
    """number of bins of one width"""
    quantile: Bins | None = None
    """number of bins of as many records each"""
    edges: list[float] | None = Field(None, min_length=2)
    """borders, rising"""

    @model_validator(mode="after")
    def _one_rule(self) -> Bin:
        if len(self.model_dump(exclude_none=True)) != 1:
            raise ValueError("must give one of equal-width, quantile and edges")
        if self.edges and not (np.diff(self.edges) > 0).all():
            raise FieldError("must be rising", "edges")
        return self


@frozen
class Categories:
    """Selection and conversion of categorical columns.

    Attributes
    ----------
    domains
        Column → declared domain, or None for the observed one.
    beside
        Columns of ``domains`` excluded from the numeric table, even if numeric.
    """

    bins: Mapping[str, Bin] = field(default_factory=dict)
    domains: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def with_defaults(self, domains: Mapping[str, Sequence[Any]], columns: Names) -> Categories:
        """These rules, or a source's domains if the scenario has none."""
        if self.bins or self.domains:
            return replace(
                self,
                domains={name: given or domains.get(name) for name, given in self.domains.items()},
            )
        return Categories({}, {name: domain for name, domain in domains.items() if name in columns})

    def beside_columns(
        self, columns: Names | None, dates: Iterable[str]
    ) -> tuple[list[str] | None, Categories]:
        """Columns to read and rules, with unlisted categories and dates added."""
        if columns is None:
            return None, self
        more = [name for name in (*dates, *self.domains) if name not in columns]
        return [*columns, *more], replace(self, beside=frozenset(self.domains) - set(columns))

    @property
    def columns(self) -> list[str]:
        """Categorical columns, binned ones first."""
        return [*self.bins, *self.domains]


def _different(values: list[Any]) -> list[Any]:
    if len(set(map(repr, values))) != len(values):
        raise FieldError("must be different values")
    return values


Domain = Annotated[list[Any], Field(min_length=1), AfterValidator(_different)]
"""Declared values of a column."""


Leaf = str | int | float
Node = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Hierarchy:
    """Values of one column in the order of their hierarchy.

    ``nodes`` has each leaf's H − 1 names, from the highest node below the root to its parent.
    """

    leaves: tuple[Leaf, ...]
    nodes: tuple[Node, ...]

    @property
    def height(self) -> int:
        """``H``, the root's height."""
        return len(self.nodes[0]) + 1

    def groups(self, height: int) -> Indices:
        """Each leaf's node at a height from 0 to H, shape (L,), ascending from 0.

        Examples
        --------
        >>> Hierarchy(("flu", "cough", "ulcer"), (("lungs",), ("lungs",), ("stomach",))).groups(1)
        array([0, 0, 1])
        """
        if height == 0:
            return np.arange(len(self.leaves))
        keys = [chain[: self.height - height] for chain in self.nodes]
        return np.cumsum([0, *(int(a != b) for a, b in pairwise(keys))])

    def borders(self, height: int) -> Array:
        """First place of each node at a height, ascending."""
        return np.flatnonzero(np.diff(self.groups(height), prepend=-1)).astype(float)

    @cached_property
    def ancestors(self) -> dict[int, Node]:
        """Each place's ancestors' names from parent to root, as `earth_mover` wants."""
        # A name may occur in two branches.
        ways = [
            [" > ".join(chain[:depth]) for depth in range(len(chain), -1, -1)]
            for chain in self.nodes
        ]
        return {place: tuple(way) for place, way in enumerate(ways)}

    def code(self, name: str, column: Series) -> Array:
        """Each record's place among the leaves, shape (n,); NaN if missing.

        Raises
        ------
        DataError
            A value is no leaf.
        """
        if kind_of(column) == "numbers" and any(isinstance(leaf, str) for leaf in self.leaves):
            raise DataError(
                f"column {quoted(name)} holds numbers, and its hierarchy lists text",
                ("hierarchies", name),
            )
        return coded_in(
            self.leaves,
            name,
            column,
            "whose value its hierarchy does not list",
            "hierarchies",
            name,
        )


def coded(frame: pd.DataFrame, hierarchies: dict[str, Hierarchy], missing: str) -> pd.DataFrame:
    """Frame with hierarchical columns as places among leaves.

    Raises
    ------
    DataError
        A column is unknown, or has an undeclared or missing value.
    """
    changed = {}
    for name, hierarchy in hierarchies.items():
        if name not in frame:
            raise DataError(
                f"there is no column {quoted(name)} to have a hierarchy", ("hierarchies", name)
            )
        codes = hierarchy.code(name, frame[name])
        if missing == "mean" and np.isnan(codes).any():
            raise DataError(
                f"column {quoted(name)} has missing categories; set `missing: drop` to leave those records out",
                ("hierarchies", name),
            )
        changed[name] = codes
    return frame.assign(**changed)


def hierarchy_of(declared: Any, column: str = "") -> Hierarchy:
    """Hierarchy of nested mappings that end in lists of values.

    Raises
    ------
    FieldError
        A part is of another type, or values are repeated, mixed or unequally deep.
    """
    nodes: dict[Leaf, Node] = {}
    places: dict[Leaf, Path] = {}

    def walk(at: Path, part: Any, above: Node) -> None:
        if isinstance(part, dict) and part:
            for name, below in part.items():
                walk((*at, name), below, (*above, str(name)))
            return
        if not above or not isinstance(part, list) or not part:
            raise FieldError(
                f"must map a common property of values to a list of them, or to a mapping; got {kind_of_value(part)}",
                *at,
            )
        for place, leaf in enumerate(part):
            if isinstance(leaf, bool) or not isinstance(leaf, str | int | float):
                raise FieldError(f"must be text or a number; got {kind_of_value(leaf)}", *at, place)
            if leaf in nodes:
                first = format_path(("data", "hierarchies", *places[leaf]))
                raise FieldError(
                    f"repeats a value of this hierarchy, first given at {first}", *at, place
                )
            nodes[leaf], places[leaf] = above, (*at, place)

    walk((column,), declared, ())
    depths = {len(above) for above in nodes.values()}
    if len(depths) > 1:
        raise FieldError(
            f"must be as deep in every branch; some values are under {min(depths)} nodes and some under "
            f"{max(depths)}",
            column,
        )
    if len(nodes) < 2:
        raise FieldError("must list at least two values", column)
    if len({isinstance(leaf, str) for leaf in nodes}) > 1:
        raise FieldError("must list numbers or text, and not both", column)
    return Hierarchy(tuple(nodes), tuple(nodes.values()))


def check_hierarchies(hierarchies: Plain) -> Plain:
    """Hierarchies by column, checked by ``hierarchy_of``."""
    for name, declared in hierarchies.items():
        hierarchy_of(declared, name)
    return hierarchies

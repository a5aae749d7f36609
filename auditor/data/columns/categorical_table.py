"""Categorical microdata: attributes with a domain each, several of them as one product domain, and numeric columns in bins."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product as cartesian
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from auditor.errors import DataError
from auditor.numerics.blocks import row_blocks
from auditor.process.deferred import pd
from auditor.text.column_names import counted, quoted
from auditor.types import Array, Codes

MOST_VALUES = 10_000
"""Values in a domain: a posterior has one number for each of them."""
BLOCK_WIDTH = 4
"""Records come in blocks of 65,536: a record's number there fits in two bytes, and a block's values in the cache."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """One attribute's domain.

    Attributes
    ----------
    name : str
    labels : tuple
        Its values, in order; for a binned column the bins as text.
    scores : ndarray of shape (s,) or None
        A number for each value: the value itself, or the middle of its bin; None when there is none.
    edges : ndarray of shape (s + 1,) or None
        Of a binned column, between its bins.
    """

    name: str
    labels: tuple[Any, ...] = field(repr=False)
    scores: Array | None = field(repr=False, default=None)
    edges: Array | None = field(repr=False, default=None)

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.labels)


class CodeRows(Protocol):
    """Records as codes that are read where they are, block by block."""

    @property
    def rows(self) -> int:
        """Number of records ``n``."""

    def read(self, start: int, stop: int) -> Codes:
        """Return records ``start`` to ``stop`` (exclusive)."""


@dataclass(frozen=True, eq=False)
class CategoricalTable:
    """``n`` records with one value each, from the product of the attributes' domains.

    Attributes
    ----------
    attributes : tuple of Attribute
    content : ndarray of shape (n,), or CodeRows
        Numbers from 0 to s − 1; of several attributes the last one's value changes fastest. Of a large file not the numbers but where
        they are.
    """

    attributes: tuple[Attribute, ...]
    content: Codes | CodeRows = field(repr=False)

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return self.content.size if isinstance(self.content, np.ndarray) else self.content.rows

    @property
    def streamed(self) -> bool:
        """Whether the records stay in their file."""
        return not isinstance(self.content, np.ndarray)

    @property
    def codes(self) -> Codes:
        """All records, shape (n,): for what cannot be done block by block. Of a large file they are read into memory, every time."""
        return self.read(0, self.rows)

    @property
    def code_type(self) -> np.dtype[np.unsignedinteger]:
        """The smallest unsigned type that holds every code."""
        return code_type(self.size)

    def read(self, start: int, stop: int) -> Codes:
        """Return records ``start`` to ``stop`` (exclusive), shape (stop − start,); do not write to it."""
        return self.content[start:stop] if isinstance(self.content, np.ndarray) else self.content.read(start, stop)

    @property
    def size(self) -> int:
        """``s``, the number of values in the product domain."""
        return int(np.prod([attribute.size for attribute in self.attributes], dtype=np.int64))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def scores(self) -> Array | None:
        """A number for each value, shape (s,), of a table of one ordered attribute that varies; else None."""
        scores = self.attributes[0].scores if len(self.attributes) == 1 else None
        return scores if scores is not None and np.ptp(scores[np.flatnonzero(self.prior)]) > 0 else None

    @property
    def labels(self) -> tuple[Any, ...]:
        """The product domain: a value for each code, or a tuple of values where there are several attributes."""
        if len(self.attributes) == 1:
            return self.attributes[0].labels
        return tuple(cartesian(*(attribute.labels for attribute in self.attributes)))

    @property
    def prior(self) -> Array:
        """Share of the records that have each value, shape (s,)."""
        return self._scan[0] / self.rows

    def fingerprint(self) -> str:
        """Return a SHA-256 over domains and codes."""
        return self._scan[1]

    @cached_property
    def _scan(self) -> tuple[NDArray[np.intp], str]:
        """Records of each value, and the fingerprint: what one pass over the records tells."""
        counts = np.zeros(self.size, dtype=np.intp)
        digest = hashlib.sha256(repr([(attribute.name, attribute.labels) for attribute in self.attributes]).encode())
        for start, stop in row_blocks(self.rows, BLOCK_WIDTH):
            codes = np.ascontiguousarray(self.read(start, stop))
            counts += np.bincount(codes, minlength=self.size)
            digest.update(codes.data)
        return counts, digest.hexdigest()


def code_type(size: int) -> np.dtype[np.unsignedinteger]:
    """Return the smallest unsigned type that holds values 0 to ``size − 1``."""
    return np.min_scalar_type(max(0, size - 1))


def product(attributes: Sequence[Attribute], columns: Sequence[NDArray[np.integer[Any]]]) -> CategoricalTable:
    """Return the table of several attributes as one product domain.

    Raises
    ------
    DataError
        There would be too many values.
    """
    check_size(attributes)
    codes = joined(attributes, columns)
    codes.setflags(write=False)
    return CategoricalTable(tuple(attributes), codes)


def check_size(attributes: Sequence[Attribute]) -> None:
    """Raise `DataError` when a product domain would have too many values."""
    size = math.prod(attribute.size for attribute in attributes)
    if size > MOST_VALUES:
        raise DataError(f"the domain would have {size:,} values; at most {MOST_VALUES:,}: use fewer attributes or wider bins")


def joined(attributes: Sequence[Attribute], columns: Sequence[NDArray[np.integer[Any]]]) -> Codes:
    """Return the codes of the product domain from each attribute's own, shape (n,)."""
    shape = tuple(attribute.size for attribute in attributes)
    codes = columns[0] if len(shape) == 1 else np.ravel_multi_index(tuple(columns), shape)
    return np.asarray(codes.astype(code_type(math.prod(shape)), copy=False))


def split(table: CategoricalTable, codes: Codes) -> list[NDArray[np.integer[Any]]]:
    """Return each attribute's own codes of values of the product domain."""
    if len(table.attributes) == 1:
        return [codes]
    return [np.asarray(part) for part in np.unravel_index(codes, tuple(attribute.size for attribute in table.attributes))]


def of_column(column: pd.Series[Any], name: str, domain: Sequence[Any] | None = None) -> tuple[Attribute, NDArray[np.integer[Any]]]:
    """Return a column's domain and codes.

    Parameters
    ----------
    column : Series
        Without missing values.
    name : str
    domain : sequence, optional
        The declared domain; else the column's own categories, else its observed values in order.

    Raises
    ------
    DataError
        A value is missing or not in the declared domain; the message holds neither.
    """
    codes: NDArray[np.integer[Any]]
    if domain is None and isinstance(column.dtype, pd.CategoricalDtype):
        domain, codes = list(column.cat.categories), column.cat.codes.to_numpy()
    elif domain is None:
        codes, values = _observed(column)
        domain = list(values)
    else:
        codes = pd.Index(domain).get_indexer(pd.Index(column.astype(object)))
    if (codes < 0).any():
        missing = bool(column.isna().any())
        what = "has missing values" if missing else f"has {counted(int((codes < 0).sum()), 'record')} outside the declared domain"
        raise DataError(f"column {quoted(name)} {what}")
    return Attribute(name, tuple(domain), _scores(domain)), codes


def _observed(column: pd.Series[Any]) -> tuple[NDArray[np.integer[Any]], pd.Index[Any]]:
    """Return codes of a column's observed values, −1 where one is missing, and the values in order."""
    values = column.to_numpy()
    low, high = (int(values.min()), int(values.max())) if values.dtype.kind in "iu" and values.size else (0, MOST_VALUES)
    if high - low >= MOST_VALUES or high >= 2**63:
        return pd.factorize(column, sort=True)
    # Whole numbers near one another are counted and looked up: a hash table takes ten times as long.
    there = np.zeros(high - low + 1, dtype=bool)
    for start, stop in row_blocks(values.size, BLOCK_WIDTH):
        if not there.all():
            there[values[start:stop].astype(np.intp) - low] = True
    codes = (np.cumsum(there) - 1).astype(code_type(there.size))
    return looked_up(codes, values, low), pd.Index((np.flatnonzero(there) + low).astype(values.dtype))


FEW_VALUES = 8
"""Values up to which records of each are counted by themselves: a histogram waits for the last record of the same value."""


def value_counts(codes: NDArray[np.integer[Any]], size: int) -> NDArray[np.intp]:
    """Return how many records have each code below ``size``, shape (s,), counted block by block for the same reason as ``looked_up``."""
    if size <= FEW_VALUES:
        return np.array([np.count_nonzero(codes == code) for code in range(size)])
    counts = np.zeros(size, dtype=np.intp)
    for start, stop in row_blocks(codes.size, BLOCK_WIDTH):
        counts += np.bincount(codes[start:stop], minlength=size)
    return counts


def looked_up(table: NDArray[Any], places: NDArray[np.integer[Any]], first: int = 0) -> NDArray[Any]:
    """Return ``table[places − first]``, shape (n,), block by block: what is in between would take eight bytes a record of new memory."""
    out = np.empty(places.shape, dtype=table.dtype)
    for start, stop in row_blocks(places.size, BLOCK_WIDTH):
        np.take(table, places[start:stop].astype(np.intp) - first, out=out[start:stop], mode="clip")  # "raise" would buffer what it writes
    return out


def _scores(domain: Sequence[Any]) -> Array | None:
    try:
        numbers = np.array([float(value) for value in domain if not isinstance(value, (str, bool))])
    except (TypeError, ValueError):
        return None
    return numbers if numbers.size == len(domain) else None


def binned(values: Array, name: str, rule: Mapping[str, Any]) -> tuple[Attribute, NDArray[np.intp]]:
    """Return a numeric column in bins.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite.
    name : str
    rule : mapping
        ``{"equal-width": count}``, ``{"quantile": count}`` or ``{"edges": [e_0, …, e_s]}``; a value below the first edge or above the
        last belongs to the first or last bin.

    Raises
    ------
    DataError
        Bins cannot be made: too few different values for so many quantiles.

    Examples
    --------
    >>> attribute, codes = binned(np.array([0.0, 1.0, 2.0, 3.0]), "x", {"equal-width": 2})
    >>> codes.tolist(), attribute.scores.tolist()
    ([0, 0, 1, 1], [0.75, 2.25])
    """
    kind, argument = next(iter(rule.items()))
    if kind == "quantile":
        edges = np.unique(np.quantile(values, np.linspace(0, 1, argument + 1)))
    else:
        edges = edges_of(rule, float(values.min()), float(values.max()))
    return bins_between(name, edges), bin_codes(values, edges)


def edges_of(rule: Mapping[str, Any], low: float, high: float) -> Array:
    """Return the edges that a rule states, or makes from the least and the largest value; not those of quantiles."""
    kind, argument = next(iter(rule.items()))
    return np.asarray(argument, dtype=np.float64) if kind == "edges" else np.linspace(low, high, argument + 1)


def bins_between(name: str, edges: Array) -> Attribute:
    """Return the bins between edges, shape (s + 1,).

    Raises
    ------
    DataError
        They do not rise.
    """
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise DataError(f"column {quoted(name)} cannot be cut into bins: it has too few different values")
    return Attribute(name, tuple(f"bin {k}" for k in range(1, edges.size)), (edges[:-1] + edges[1:]) / 2, edges)


def bin_codes(values: Array, edges: Array) -> NDArray[np.intp]:
    """Return the bin of every value, shape (n,)."""
    return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)

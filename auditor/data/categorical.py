"""Categorical microdata: attributes with a domain each, several of them as one product domain, and numeric columns in bins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product as cartesian
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.data.naming import counted, quoted
from auditor.errors import DataError

Array = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger]

MOST_VALUES = 10_000
"""Values in a domain: a posterior has one number for each of them."""


@dataclass(frozen=True)
class Attribute:
    """One attribute's domain.

    Attributes
    ----------
    name : str
    labels : tuple
        Its values, in order; for a binned column the bins as text.
    scores : ndarray of shape (s,) or None
        A number for each value: the value itself, or the middle of its bin; None when there is none.
    """

    name: str
    labels: tuple[Any, ...] = field(repr=False)
    scores: Array | None = field(repr=False, default=None)

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.labels)


@dataclass(frozen=True)
class CategoricalTable:
    """``n`` records with one value each, from the product of the attributes' domains.

    Attributes
    ----------
    attributes : tuple of Attribute
    codes : ndarray of shape (n,)
        Numbers from 0 to s − 1; of several attributes the last one's value changes fastest.
    """

    attributes: tuple[Attribute, ...]
    codes: Codes = field(repr=False)

    @property
    def rows(self) -> int:
        """Number of records ``n``."""
        return int(self.codes.size)

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

    @cached_property
    def prior(self) -> Array:
        """Share of the records that have each value, shape (s,)."""
        return np.bincount(self.codes, minlength=self.size) / self.rows

    def fingerprint(self) -> str:
        """Return a SHA-256 over domains and codes."""
        digest = hashlib.sha256(repr([(attribute.name, attribute.labels) for attribute in self.attributes]).encode())
        digest.update(np.ascontiguousarray(self.codes).data)
        return digest.hexdigest()


def product(attributes: Sequence[Attribute], columns: Sequence[NDArray[np.integer[Any]]]) -> CategoricalTable:
    """Return the table of several attributes as one product domain.

    Raises
    ------
    DataError
        There would be too many values.
    """
    shape = tuple(attribute.size for attribute in attributes)
    size = int(np.prod(shape, dtype=np.float64))
    if size > MOST_VALUES:
        raise DataError(f"the domain would have {size:,} values; at most {MOST_VALUES:,}: use fewer attributes or wider bins")
    codes = np.ravel_multi_index(tuple(columns), shape).astype(np.min_scalar_type(max(0, size - 1)))
    codes.setflags(write=False)
    return CategoricalTable(tuple(attributes), codes)


def split(table: CategoricalTable, codes: Codes) -> list[NDArray[np.intp]]:
    """Return each attribute's own codes of values of the product domain."""
    return [np.asarray(part) for part in np.unravel_index(codes, tuple(attribute.size for attribute in table.attributes))]


def of_column(column: pd.Series[Any], name: str, domain: Sequence[Any] | None = None) -> tuple[Attribute, NDArray[np.intp]]:
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
    if domain is None and isinstance(column.dtype, pd.CategoricalDtype):
        domain = list(column.cat.categories)
    if domain is None:
        codes, values = pd.factorize(column, sort=True)
        domain = list(values)
    else:
        codes = pd.Index(domain).get_indexer(pd.Index(column.astype(object)))
    if (codes < 0).any():
        missing = bool(column.isna().any())
        what = "has missing values" if missing else f"has {counted(int((codes < 0).sum()), 'record')} outside the declared domain"
        raise DataError(f"column {quoted(name)} {what}")
    return Attribute(name, tuple(domain), _scores(domain)), np.asarray(codes, dtype=np.intp)


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
    if kind == "edges":
        edges = np.asarray(argument, dtype=np.float64)
    elif kind == "equal-width":
        edges = np.linspace(values.min(), values.max(), argument + 1)
    else:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, argument + 1)))
    if edges.size < 2 or not (np.diff(edges) > 0).all():
        raise DataError(f"column {quoted(name)} cannot be cut into bins: it has too few different values")
    codes = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    labels = tuple(f"bin {k}" for k in range(1, edges.size))
    return Attribute(name, labels, (edges[:-1] + edges[1:]) / 2), codes

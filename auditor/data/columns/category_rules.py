"""From what a scenario says of categories (``bin``, ``categorical``) to the categorical table beside the numeric one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import MOST_VALUES, Attribute, CategoricalTable, binned, of_column, product
from auditor.data.columns.checks import check_plain, kind_of
from auditor.errors import DataError
from auditor.parameters import is_number, is_whole
from auditor.process.deferred import pd
from auditor.text.column_names import listed, nearest

RULES = ("equal-width", "quantile", "edges")


@dataclass(frozen=True)
class Categories:
    """Which columns are categories, and how.

    Attributes
    ----------
    bins : dict
        Column → ``{"equal-width": count}``, ``{"quantile": count}`` or ``{"edges": […]}``.
    domains : dict
        Column → declared domain, or None for the observed one.
    beside : frozenset of str
        Those of ``domains`` that are no part of the numeric table, even if they are numbers.
    """

    bins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def with_defaults(self, domains: Mapping[str, Sequence[Any]], columns: Sequence[str]) -> Categories:
        """Return them with a source's own domains where the scenario says nothing of categories at all."""
        if self.bins or self.domains:
            return replace(self, domains={name: given or domains.get(name) for name, given in self.domains.items()})
        return Categories({}, {name: domain for name, domain in domains.items() if name in columns})

    def beside_columns(self, columns: Sequence[str] | None, dates: Iterable[str]) -> tuple[list[str] | None, Categories]:
        """Return the columns to read where some are asked for, and the categories, which need not be asked for twice; nor do dates."""
        if columns is None:
            return None, self
        more = [name for name in (*dates, *self.domains) if name not in columns]
        return [*columns, *more], replace(self, beside=frozenset(self.domains) - set(columns))

    @property
    def columns(self) -> list[str]:
        """Columns that are categories, binned ones first."""
        return [*self.bins, *self.domains]

    def complete(self, frame: pd.DataFrame, missing: str) -> pd.DataFrame:
        """Return the frame without records that lack a category, or all of it if none does.

        Raises
        ------
        DataError
            A column is not there, or categories are missing and may not be dropped: a mean cannot stand for them.
        """
        self.check_known(list(map(str, frame)))
        for name in self.columns:
            check_plain(name, frame[name])
        if missing == "drop" and self.columns:
            return frame[frame.notna().all(axis=1)].reset_index(drop=True)
        self.check_complete([name for name in self.domains if frame[name].isna().any()])
        return frame

    def check_known(self, names: Sequence[str]) -> None:
        """Raise `DataError` when a column is not there."""
        unknown = [name for name in self.columns if name not in names]
        if unknown:
            raise DataError(f"there is no column {listed(unknown)} to take categories from{nearest(unknown[0], names)}")

    @staticmethod
    def check_complete(gaps: Sequence[str]) -> None:
        """Raise `DataError` when categories are missing, in columns of these names."""
        if gaps:
            raise DataError(f"column {listed(gaps)} has missing categories; set `missing: drop` to leave those records out")

    def usable(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame without columns that nobody asked for and that are no numbers, or all the same."""
        varied = [name for name in frame if kind_of(frame[name]) == "numbers" and frame[name].nunique() > 1]
        return frame[[name for name in frame if name in self.columns or name in varied]]

    def numeric(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that additive schemes can use: all but categories that are no numbers, or all the same."""
        out = [name for name in self.domains if name in self.beside or kind_of(frame[name]) != "numbers" or frame[name].nunique() < 2]
        return frame.drop(columns=out)

    def table(self, frame: pd.DataFrame, names: Sequence[str], values: NDArray[np.float64]) -> CategoricalTable | None:
        """Return the categorical table, or None when no column is one.

        Parameters
        ----------
        frame : DataFrame
            After ``complete``.
        names, values : sequence of str, ndarray of shape (n, N)
            The numeric columns, missing values filled in.
        """
        if not self.columns:
            return None
        parts: list[tuple[Attribute, NDArray[np.integer[Any]]]] = []
        for name, rule in self.bins.items():
            parts.append(binned(values[:, list(names).index(name)], name, rule))
        for name, domain in self.domains.items():
            parts.append(of_column(frame[name], name, domain))
        return product([attribute for attribute, _ in parts], [codes for _, codes in parts])


def parse_bins(value: Any) -> dict[str, dict[str, Any]]:
    """Read ``data.bin``.

    Raises
    ------
    ValueError
        Saying what was expected.
    """
    if not isinstance(value, dict):
        raise ValueError("must map columns to {equal-width: count}, {quantile: count} or {edges: […]}")
    return {str(name): _rule(name, rule) for name, rule in value.items()}


def _rule(name: str, rule: Any) -> dict[str, Any]:
    if not isinstance(rule, dict) or len(rule) != 1 or next(iter(rule)) not in RULES:
        raise ValueError(f"must give {name!r} one of {{equal-width: count}}, {{quantile: count}} or {{edges: […]}}")
    kind, argument = next(iter(rule.items()))
    if kind == "edges":
        numbers = isinstance(argument, list) and all(is_number(edge) for edge in argument)
        if not numbers or len(argument) < 2 or not (np.diff(argument) > 0).all():
            raise ValueError(f"needs at least two rising edges for {name!r}")
        return {kind: [float(edge) for edge in argument]}
    if not is_whole(argument, 1, MOST_VALUES):
        raise ValueError(f"needs a number of bins from 1 to {MOST_VALUES:,} for {name!r}")
    return {kind: argument}


def parse_domains(value: Any) -> dict[str, list[Any] | None]:
    """Read ``data.categorical``: a list of columns, or a mapping from column to its declared domain (or null).

    Raises
    ------
    ValueError
        Saying what was expected.
    """
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        value = dict.fromkeys(value)
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of columns, or map columns to their domains")
    for name, domain in value.items():
        if domain is not None and (not isinstance(domain, list) or not domain or len(set(map(repr, domain))) != len(domain)):
            raise ValueError(f"needs a list of different values for {name!r}")
    return value

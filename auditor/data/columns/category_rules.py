"""Rules for categories (``bin``, ``categorical``) and the resulting table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import (
    MOST_VALUES,
    Attribute,
    CategoricalTable,
    binned,
    of_column,
    product,
)
from auditor.data.columns.checks import check_plain, kind_of
from auditor.errors import DataError
from auditor.parameters import is_number, is_whole
from auditor.process.deferred import pd
from auditor.text.column_names import listed, nearest

RULES = ("equal-width", "quantile", "edges")


@dataclass(frozen=True)
class Categories:
    """Selection and conversion of categorical columns.

    Attributes
    ----------
    bins : dict
        Column → ``{"equal-width": count}``, ``{"quantile": count}`` or ``{"edges": […]}``.
    domains : dict
        Column → declared domain, or None for the observed one.
    beside : frozenset of str
        Columns of ``domains`` excluded from the numeric table, even if numeric.
    """

    bins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    domains: Mapping[str, Sequence[Any] | None] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()

    def with_defaults(
        self, domains: Mapping[str, Sequence[Any]], columns: Sequence[str]
    ) -> Categories:
        """Return the rules, or a source's domains if the scenario has no rules."""
        if self.bins or self.domains:
            return replace(
                self,
                domains={name: given or domains.get(name) for name, given in self.domains.items()},
            )
        return Categories({}, {name: domain for name, domain in domains.items() if name in columns})

    def beside_columns(
        self, columns: Sequence[str] | None, dates: Iterable[str]
    ) -> tuple[list[str] | None, Categories]:
        """Return the columns to read and the rules, with implied columns added.

        Categories and dates need not be listed among the columns.
        """
        if columns is None:
            return None, self
        more = [name for name in (*dates, *self.domains) if name not in columns]
        return [*columns, *more], replace(self, beside=frozenset(self.domains) - set(columns))

    @property
    def columns(self) -> list[str]:
        """Categorical columns, binned ones first."""
        return [*self.bins, *self.domains]

    def complete(self, frame: pd.DataFrame, missing: str) -> pd.DataFrame:
        """Return the frame without records that lack a category.

        Raises
        ------
        DataError
            A column does not exist, or categories are missing and may not be dropped (no mean can
            replace them).
        """
        self.check_known(list(map(str, frame)))
        for name in self.columns:
            check_plain(name, frame[name])
        if missing == "drop" and self.columns:
            return frame[frame.notna().all(axis=1)].reset_index(drop=True)
        self.check_complete([name for name in self.domains if frame[name].isna().any()])
        return frame

    def check_known(self, names: Sequence[str]) -> None:
        """Raise `DataError` if a column does not exist."""
        unknown = [name for name in self.columns if name not in names]
        if unknown:
            raise DataError(
                f"there is no column {listed(unknown)} to take categories from{nearest(unknown[0], names)}"
            )

    @staticmethod
    def check_complete(gaps: Sequence[str]) -> None:
        """Raise `DataError` if columns of these names lack categories."""
        if gaps:
            raise DataError(
                f"column {listed(gaps)} has missing categories; set `missing: drop` to leave those records out"
            )

    def usable(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the frame without unrequested non-numeric or constant columns."""
        varied = [
            name
            for name in frame
            if kind_of(frame[name]) == "numbers" and frame[name].nunique() > 1
        ]
        return frame[[name for name in frame if name in self.columns or name in varied]]

    def numeric(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns usable by additive schemes.

        Without categories that are non-numeric or constant.
        """
        out = [
            name
            for name in self.domains
            if name in self.beside or kind_of(frame[name]) != "numbers" or frame[name].nunique() < 2
        ]
        return frame.drop(columns=out)

    def table(
        self, frame: pd.DataFrame, names: Sequence[str], values: NDArray[np.float64]
    ) -> CategoricalTable | None:
        """Return the categorical table, or None without categorical columns.

        Parameters
        ----------
        frame : DataFrame
            After ``complete``.
        names, values : sequence of str, ndarray of shape (n, N)
            The numeric columns, missing values imputed.
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
        With the expected form.
    """
    if not isinstance(value, dict):
        raise ValueError(
            "must map columns to {equal-width: count}, {quantile: count} or {edges: […]}"
        )
    return {str(name): _rule(name, rule) for name, rule in value.items()}


def _rule(name: str, rule: Any) -> dict[str, Any]:
    if not isinstance(rule, dict) or len(rule) != 1 or next(iter(rule)) not in RULES:
        raise ValueError(
            f"must give {name!r} one of {{equal-width: count}}, {{quantile: count}} or {{edges: […]}}"
        )
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
    """Read ``data.categorical``: columns, or a mapping to declared domains.

    A null domain is the observed one.

    Raises
    ------
    ValueError
        With the expected form.
    """
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        value = dict.fromkeys(value)
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be a list of columns, or map columns to their domains")
    for name, domain in value.items():
        if domain is not None and (
            not isinstance(domain, list) or not domain or len(set(map(repr, domain))) != len(domain)
        ):
            raise ValueError(f"needs a list of different values for {name!r}")
    return value

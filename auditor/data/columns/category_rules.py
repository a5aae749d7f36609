"""Rules for categories (``bin``, ``categorical``) and the resulting table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import MOST_VALUES
from auditor.errors import DataError
from auditor.parameters import is_number, is_whole
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

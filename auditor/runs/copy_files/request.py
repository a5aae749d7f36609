"""Requests for copies: table, treatment of cells, and facts from earlier batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from auditor.base.errors import AuditorError
from auditor.base.text import quoted
from auditor.base.types import Array
from auditor.data.columns.categorical_table import CategoricalTable, of_column, product
from auditor.data.columns.checks import check_plain
from auditor.data.load import load_table
from auditor.data.raw_columns import Stored, raw_frames, stored_kinds
from auditor.data.request import DataUse, is_file
from auditor.data.table import Table
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pd
from auditor.schemes.base.scheme import Scheme, TableMoments

Precision = Literal["double", "single"]
Blank = Literal["refuse", "drop", "mean", "keep"]
Bounds = Mapping[str, tuple[str, str]]
Parts = Iterator[Sequence[pd.DataFrame]]
"""The next records of every copy."""


@dataclass(frozen=True)
class Treatment:
    """An owner's requests on blank cells, rounding and bounds.

    Attributes
    ----------
    missing : 'refuse', 'drop', 'mean' or 'keep'
        Blank cells are an error; their records are in no copy; the column's mean is perturbed in
        their place; or they are blank in every copy.
    bounds : mapping
        Column → lowest and highest written value, empty for none; column ``""`` means every column
        of numbers.
    forms : mapping
        Date columns → the format of their text, if not ISO 8601.
    steps : mapping, optional
        Steps that earlier copies were rounded to; by default the values' own.
    unit : str, optional
        Column of units. All records of one have the noise of its first record in columns that are
        constant within every unit.
    """

    missing: Blank = "refuse"
    rounded: bool = False
    bounds: Bounds = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)
    steps: Mapping[str, float] | None = None
    unit: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether copies are written as drawn."""
        return not (self.rounded or self.bounds or self.missing == "keep" or self.unit)

    def check(self, scheme: Scheme) -> None:
        """Refuse treatments that a scheme's copies do not allow."""
        categorical = scheme.engine == "categorical"
        if (self.rounded or self.bounds) and categorical:
            raise AuditorError(
                f"copies of {scheme.name} are of categories, which are neither rounded nor cut off at bounds"
            )
        if self.unit and not scheme.adds_noise:
            raise AuditorError(
                f"one noise per unit is for noise that is added; {scheme.name} adds none"
            )
        if not (self.is_plain or categorical or scheme.adds_noise):
            raise AuditorError(
                f"copies of {scheme.name} are not the table's columns plus noise: none is rounded, cut off or left blank"
            )


AS_DRAWN = Treatment()


@dataclass(frozen=True)
class Asked:
    """Table to perturb, form of the copies, and facts from earlier batches.

    ``earlier`` is their number of records. ``scale`` has the moments of the first batch, which scale
    the noise, ``domains`` the possible values of categories. ``past`` is as of ``Key``.
    """

    data: str
    columns: Sequence[str] | None
    rows: int | None
    levels: list[float]
    seed: int | None
    precision: Precision
    treatment: Treatment
    earlier: int = 0
    scale: TableMoments | None = None
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    past: tuple[Array, ...] = ()

    @property
    def rng(self) -> np.random.Generator:
        """Random generator of a synthetic source."""
        return stream(self.seed or 0, "data")

    def raw(self) -> Iterator[pd.DataFrame]:
        """Yield the columns as stored, with blanks."""
        return raw_frames(self.data, self.columns, self.rows, self.rng)

    def kinds(self, columns: Sequence[str]) -> dict[str, Stored]:
        """Return the kinds of columns.

        Raises
        ------
        AuditorError
            A column with a date format is missing.
        """
        for name in self.treatment.forms:
            if name not in columns:
                raise AuditorError(
                    f"dates: column {quoted(name)} is not perturbed; name it among the columns that are"
                )
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def table(self, **kinds: Any) -> Table:
        """Return the table to perturb, means in place of blanks that are kept."""
        missing = "mean" if self.treatment.missing == "keep" else self.treatment.missing
        use = DataUse(
            self.data, self.columns, self.rows, missing, unit=self.treatment.unit, **kinds
        )
        return load_table(use, self.rng, varied=self.scale is None)

    def numbers(self) -> tuple[dict[str, Stored], Table]:
        """Return the kinds of the named columns, and the table, dates as days."""
        kinds, forms = self.kinds(self.columns) if self.columns else {}, self.treatment.forms
        dated = [name for name, kind in kinds.items() if kind in ("date", "time")]
        return kinds, self.table(dates={name: forms.get(name) for name in dated})

    def categories(self, blanks: bool) -> CategoricalTable:
        """Return categories to perturb; ``blanks`` have each column's commonest value.

        Domains are from earlier records, else observed or declared by the source.

        Raises
        ------
        AuditorError
            The table has none, or a value outside its domain.
        """
        held = None
        if blanks:
            held = filled_categories(self.raw(), self.domains)
        elif self.columns is not None or not is_file(self.data):
            domains = {name: self.domains.get(name) for name in self.columns or ()}
            held = self.table(categorical=domains).categorical
        if held is None:
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such with --columns"
            )
        return held


def filled_categories(
    frames: Iterable[pd.DataFrame], domains: Mapping[str, Sequence[Any]]
) -> CategoricalTable:
    """Return categories in memory, each column's commonest value in place of blanks.

    Raises
    ------
    AuditorError
        A column has no values at all, or some outside its domain.
    """
    frame = pd.concat(list(frames), ignore_index=True)
    parts = []
    for name, column in frame.items():
        if not column.notna().any():
            raise AuditorError(f"column {quoted(name)} has no values at all")
        check_plain(str(name), column)
        filled = column.fillna(column.mode()[0])
        parts.append(of_column(filled, str(name), domains.get(str(name))))
    return product([attribute for attribute, _ in parts], [codes for _, codes in parts])

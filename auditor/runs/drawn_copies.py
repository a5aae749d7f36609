"""Copies drawn and finished block by block on their way into files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import AuditorError
from auditor.base.text import listed, quoted
from auditor.base.types import Array
from auditor.data.columns.categorical_table import CategoricalTable, Categories, split
from auditor.data.columns.dates import SINCE
from auditor.data.load import load_table
from auditor.data.raw_columns import Blanks, Stored, blank_cells, raw_frames, stored_kinds
from auditor.data.request import is_file
from auditor.data.table import Table
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pd
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints
from auditor.runs.finished_copies import (
    Treatment,
    constant_in_units,
    filled_categories,
    finished,
    finishes,
    notes_of,
    notes_of_blanks,
    post_processing,
    shared_in_units,
)
from auditor.runs.perturb import add_codes, checked_levels
from auditor.schemes.base.additive import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations, whole_columns
from auditor.schemes.replacement.base import UniformScheme, never_drawn

Precision = Literal["double", "single"]


@dataclass(frozen=True)
class Earlier:
    """Facts that a later batch has from the earlier ones.

    Attributes
    ----------
    records : int
        Number of earlier records.
    scale : TableMoments or None
        Moments of the first batch, which scale the noise.
    domains : mapping
        Column → possible values of a category.
    past : tuple of ndarrays
        As of ``Key``.
    """

    records: int = 0
    scale: TableMoments | None = None
    domains: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    past: tuple[Array, ...] = ()


ROUNDED = 2.0**-24
"""Half the distance between neighbouring 32-bit numbers, relative to their size."""
UNSEEN = 1e-3
"""Largest ratio of rounding to noise: squared, a millionth of any attack's error."""


@dataclass(frozen=True)
class Asked:
    """Table to perturb, and form of the copies."""

    data: str
    columns: Sequence[str] | None
    rows: int | None
    levels: list[float]
    seed: int | None
    precision: Precision
    treatment: Treatment
    earlier: Earlier = field(default_factory=Earlier)

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
        other = [name for name in self.treatment.forms if name not in columns]
        if other:
            raise AuditorError(
                f"dates: column {quoted(other[0])} is not perturbed; name it among the columns that are"
            )
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def blanks(self) -> Blanks:
        """Count blank cells, if they are allowed."""
        return Blanks(0, 0, {}) if self.treatment.missing == "refuse" else Blanks.of(self.raw())

    def table(self, categories: Categories | None = None, dates: Sequence[str] = ()) -> Table:
        """Return the table to perturb, means in place of blanks that are kept."""
        missing = self.treatment.missing
        return load_table(
            self.data,
            columns=self.columns,
            rows=self.rows,
            parameters={},
            rng=self.rng,
            base=None,
            categories=categories,
            missing="mean" if missing == "keep" else missing,
            dates={name: self.treatment.forms.get(name) for name in dates},
            varied=self.earlier.scale is None,
            unit=self.treatment.unit,
        )

    def numbers(self) -> tuple[dict[str, Stored], Table]:
        """Return the kinds of the named columns, and the table, dates as days."""
        kinds = self.kinds(self.columns) if self.columns else {}
        return kinds, self.table(
            dates=[name for name, kind in kinds.items() if kind in ("date", "time")]
        )

    def categories(self) -> CategoricalTable:
        """Return categories to perturb.

        Domains are from earlier records, else observed or declared by the source.
        """
        if self.columns is None and is_file(self.data):
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such with --columns"
            )
        if self.treatment.missing == "keep" and self.blanks().total > 0:
            return filled_categories(self.raw(), self.earlier.domains)
        domains = {name: self.earlier.domains.get(name) for name in self.columns or ()}
        held = self.table(Categories({}, domains)).categorical
        if held is None:
            raise AuditorError(
                "a uniform scheme perturbs categories: name the columns to take as such"
            )
        return held


class Drawn(NamedTuple):
    """Copies on their way into files.

    Attributes
    ----------
    parts : iterator
        The next records of every copy.
    stated : dict
        Entries of the manifest; never the key.
    notes : list of str
        Warnings for the owner.
    prints : ColumnPrints
        Fingerprints of the table, complete once all parts are drawn.
    """

    parts: Iterator[Sequence[pd.DataFrame]]
    stated: dict[str, Any]
    notes: list[str]
    prints: ColumnPrints


def drawn_copies(scheme: Scheme, asked: Asked) -> Drawn:
    """Draw and finish copies block by block, as ``auditor.perturb`` draws them."""
    blanks, treatment = asked.blanks(), asked.treatment
    levels = checked_levels(asked.levels, asked.seed, scheme)
    notes = list(notes_of_blanks(treatment.missing, *blanks))
    blank = None
    if treatment.missing == "keep" and blanks.total > 0:
        blank = blank_cells(asked.raw())
    if isinstance(scheme, UniformScheme):
        held = asked.categories()
        prints = ColumnPrints(held.names)
        parts = _category_frames(scheme, held, levels, asked, prints)
        notes += filter(None, [never_drawn(scheme.over(held).replaced_by(held.size))])
        stated = {
            "attributes": list(held.names),
            "rows": held.rows,
            "law": "replacement",
            "grid": None,
        }
        return Drawn(finished(parts, {}, blank), stated, notes, prints)
    kinds, table = asked.numbers()
    names, scale = list(table.attributes), asked.earlier.scale
    bits = DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS
    key = key_of(scheme, table, levels, asked.seed, bits, scale, asked.earlier.records)
    key = replace(key, past=asked.earlier.past)
    prints = ColumnPrints(names)
    parts = _number_frames(scheme, table, levels, key, scale, prints)
    if table.units is not None:
        shared = constant_in_units(table)
        parts = shared_in_units(parts, table.units, shared)
        unit = f"records of one {quoted(treatment.unit)} have one noise in {listed(shared) or 'no column'}"
        notes.append(f"{unit}; columns that vary within units have a noise for each record")
    if asked.precision == "single":
        parts = _in_single(parts, noise_deviations(scheme, table, levels, scale))
    grid = dict(zip(names, key.grid, strict=True)) if key.grid else None
    stated = {"attributes": names, "rows": table.rows, "law": scheme.distribution, "grid": grid}
    whole, days = whole_columns(scheme, table, scale), list(table.dates)
    if treatment.is_plain and whole is None:
        notes += [f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1]]
    else:
        kinds = kinds or asked.kinds(names)
        columns = finishes(table, kinds, asked.raw, treatment, whole)
        parts = finished(parts, columns, blank)
        if grid:
            stated["grid"] = {
                name: step
                for name, step in grid.items()
                if columns[name].is_bare
                or (whole is not None and not treatment.rounded and columns[name].is_open)
            }
        stated["post_processing"] = post_processing(
            columns if treatment.rounded else {}, treatment.bounds, treatment.unit
        )
        notes += notes_of(columns, treatment)
    if days and not treatment.rounded:
        stated[SINCE.replace(" ", "_")] = days
    return Drawn(parts, stated, notes, prints)


def _category_frames(
    scheme: UniformScheme,
    table: CategoricalTable,
    levels: tuple[float, ...],
    asked: Asked,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    domains = [pd.Index(attribute.labels, tupleize_cols=False) for attribute in table.attributes]
    for original, copies in drawn_codes(scheme, table, levels, asked.seed, asked.earlier.records):
        add_codes(prints, table, original)
        yield [
            pd.DataFrame(
                {
                    name: pd.Categorical.from_codes(codes, categories=domain)
                    for name, domain, codes in zip(
                        table.names, domains, split(table, copy), strict=True
                    )
                }
            )
            for copy in copies
        ]


def _number_frames(
    scheme: Scheme,
    table: Table,
    levels: tuple[float, ...],
    key: Key,
    scale: TableMoments | None,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    names = released_columns(scheme, table.attributes)
    blocks = drawn_blocks(scheme, table, levels, key, scale=scale, seen=prints.add_numbers)
    with one_thread():
        for _, _, copies in blocks:
            yield [
                pd.DataFrame(scheme.to_columns(copy, table.attributes), columns=names)
                for copy in copies
            ]


def released_columns(scheme: Scheme, attributes: Sequence[str]) -> list[str]:
    """Return the names of a copy's columns: the attributes, or ``y1, y2 …`` of other schemes."""
    columns = scheme.output_width(len(attributes))
    return (
        list(attributes) if columns == len(attributes) else [f"y{k}" for k in range(1, columns + 1)]
    )


def _in_single(
    parts: Iterator[Sequence[pd.DataFrame]], noise: NDArray[np.float64] | None
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield copies as 32-bit numbers.

    On a grid, 32 bits hold the multiples exactly. Elsewhere a rounded copy is a function of the
    copy. Rounding that swallows the noise, or equates copies, is refused.
    """
    for part in parts:
        for place, copy in enumerate(part):
            rounding = ROUNDED * copy.abs().max(axis=0).to_numpy()
            spread = copy.std(axis=0, ddof=0).to_numpy() if noise is None else noise[place]
            worst = int((rounding - UNSEEN * spread).argmax())
            if spread[worst] > 0 and rounding[worst] > UNSEEN * spread[worst]:
                raise AuditorError(
                    f"copy {place + 1}, column {copy.columns[worst]!r}: 32-bit numbers are off by up to "
                    f"{rounding[worst] / spread[worst]:.1g} of its {'deviation' if noise is None else 'noise'}, "
                    f"and {UNSEEN:g} is the most that changes no conclusion; write it in double precision"
                )
        yield [copy.astype(np.float32) for copy in part]

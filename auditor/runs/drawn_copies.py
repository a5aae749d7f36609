"""Copies of a table as they are drawn and finished, block by block, on their way into files; and what is stated of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import CategoricalTable, Categories, split
from auditor.data.columns.dates import SINCE
from auditor.data.load import load_table
from auditor.data.raw_columns import Blanks, Stored, blank_cells, raw_frames, stored_kinds
from auditor.data.request import is_file
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pd
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints
from auditor.runs.finished_copies import (
    Treatment,
    filled_categories,
    finished,
    finishes,
    notes_of,
    notes_of_blanks,
    post_processing,
)
from auditor.runs.perturb import checked_levels
from auditor.schemes.base.grid import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Key, Scheme, TableMoments
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations, whole_columns
from auditor.schemes.replacement.base import UniformScheme
from auditor.schemes.replacement.distribution import never_drawn
from auditor.text.column_names import listed, quoted
from auditor.types import Array

Precision = Literal["double", "single"]


@dataclass(frozen=True)
class Earlier:
    """What a later batch of records has from those before it.

    Attributes
    ----------
    records : int
        How many are out.
    scale : TableMoments or None
        Of the first batch, to which noise is scaled.
    domains : mapping
        Column → the values that a category can have.
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
"""Rounding beside the noise that changes no conclusion: squared, a millionth of what any attack
leaves unknown."""


@dataclass(frozen=True)
class Asked:
    """What is to be perturbed, and how it is to be written."""

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
        """The randomness of a synthetic source, from the start."""
        return stream(self.seed or 0, "data")

    def raw(self) -> Iterator[pd.DataFrame]:
        """Yield the columns as they are found, blanks and all."""
        return raw_frames(self.data, self.columns, self.rows, self.rng)

    def kinds(self, columns: Sequence[str]) -> dict[str, Stored]:
        """Return what kinds the columns are of.

        Raises
        ------
        AuditorError
            A column whose dates have a format is not among them.
        """
        other = [name for name in self.treatment.forms if name not in columns]
        if other:
            raise AuditorError(
                f"dates: column {quoted(other[0])} is not perturbed; name it among the columns that are"
            )
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def blanks(self) -> Blanks:
        """Count blank cells, where there may be any."""
        return Blanks(0, 0, {}) if self.treatment.missing == "refuse" else Blanks.of(self.raw())

    def table(self, categories: Categories | None = None, dates: Sequence[str] = ()) -> Table:
        """Return the table to perturb; blanks that stay blank have the column's mean meanwhile."""
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
        )

    def numbers(self) -> tuple[dict[str, Stored], Table]:
        """Return the kinds of the columns that are asked for by name, and the table of numbers, its dates as days."""
        kinds = self.kinds(self.columns) if self.columns else {}
        return kinds, self.table(
            dates=[name for name, kind in kinds.items() if kind in ("date", "time")]
        )

    def categories(self) -> CategoricalTable:
        """Return categories to perturb, with the domains that earlier records have, or else those observed or declared by the source."""
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


class Written(NamedTuple):
    """Copies on their way into files.

    Attributes
    ----------
    parts : iterator
        Copies block by block.
    stated : dict
        Entries of the manifest.
    notes : list of str
        Warnings for the owner.
    prints : ColumnPrints
        Fingerprints of the table, complete once all parts are drawn.
    """

    parts: Iterator[Sequence[pd.DataFrame]]
    stated: dict[str, Any]
    notes: list[str]
    prints: ColumnPrints


def _numbers(scheme: Scheme, asked: Asked) -> Written:
    """Return copies of numbers block by block, what a manifest states of them, and what an owner must know."""
    kinds, table = asked.numbers()
    days, blanks, scale = list(table.dates), asked.blanks(), asked.earlier.scale
    levels = checked_levels(asked.levels, asked.seed, scheme)
    bits = DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS
    key = replace(
        key_of(scheme, table, levels, asked.seed, bits, scale, asked.earlier.records),
        past=asked.earlier.past,
    )
    prints = ColumnPrints(table.attributes)
    parts = _frames(scheme, table, levels, key, scale, prints)
    if asked.precision == "single":
        parts = _in_single(parts, noise_deviations(scheme, table, levels, scale))
    stated = _stated(table.attributes, table.rows, scheme.distribution, key.grid)
    notes = list(notes_of_blanks(asked.treatment.missing, *blanks))
    whole = whole_columns(scheme, table, scale)
    if asked.treatment.is_plain and whole is None:
        notes += [f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1]]
        return Written(parts, stated | _in_days(days), notes, prints)
    how = finishes(table, kinds or asked.kinds(table.attributes), asked.raw, asked.treatment, whole)
    parts = finished(
        parts, how, blank_cells(asked.raw()) if asked.treatment.missing == "keep" else None
    )
    as_drawn = {
        name
        for name in how
        if how[name].is_bare
        or (whole is not None and not asked.treatment.rounded and how[name].is_open)
    }
    stated["grid"] = stated["grid"] and {
        name: grid for name, grid in stated["grid"].items() if name in as_drawn
    }
    stated["post_processing"] = post_processing(
        how if asked.treatment.rounded else {}, asked.treatment.bounds
    )
    return Written(
        parts,
        stated | _in_days([] if asked.treatment.rounded else days),
        [*notes, *notes_of(how, asked.treatment)],
        prints,
    )


def _in_days(columns: Sequence[str]) -> dict[str, Any]:
    """Return what a manifest says of dates that are written as numbers."""
    return {SINCE.replace(" ", "_"): list(columns)} if columns else {}


def _codes(scheme: UniformScheme, asked: Asked) -> Written:
    """Return copies of categories block by block, the same in either precision, and what a manifest states of them."""
    blanks = asked.blanks()
    keep = asked.treatment.missing == "keep" and blanks.total > 0
    held = asked.categories()
    prints = ColumnPrints(held.names)
    parts = _coded_frames(
        scheme,
        held,
        checked_levels(asked.levels, asked.seed, scheme),
        asked.seed,
        asked.earlier.records,
        prints,
    )
    if keep:
        parts = finished(parts, {}, blank_cells(asked.raw()))
    notes = [
        *notes_of_blanks(asked.treatment.missing, *blanks),
        *filter(None, [never_drawn(scheme.over(held).replaced_by(held.size))]),
    ]
    return Written(parts, _stated(held.names, held.rows, "replacement", ()), notes, prints)


def _stated(
    attributes: Sequence[str], rows: int, law: str | None, grid: Sequence[float]
) -> dict[str, Any]:
    """Return what a manifest states of the copies: how they were drawn, and what their numbers are multiples of; never from which key."""
    lattice = dict(zip(attributes, grid, strict=True)) if grid else None
    return {"attributes": list(attributes), "rows": rows, "law": law, "grid": lattice}


def _coded_frames(
    scheme: UniformScheme,
    table: CategoricalTable,
    levels: tuple[float, ...],
    seed: int | None,
    records_before: int,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield every copy of categories block by block: the same values as ``auditor.perturb`` makes in memory from the same seed."""
    for original, copies in drawn_codes(scheme, table, levels, seed, records_before):
        prints.add_labels(
            zip(
                (attribute.labels for attribute in table.attributes),
                split(table, original),
                strict=True,
            )
        )
        yield [
            pd.DataFrame(
                {
                    attribute.name: pd.Categorical.from_codes(
                        codes, categories=pd.Index(attribute.labels, tupleize_cols=False)
                    )
                    for attribute, codes in zip(table.attributes, split(table, copy), strict=True)
                }
            )
            for copy in copies
        ]


def _frames(
    scheme: Scheme,
    table: Table,
    levels: tuple[float, ...],
    key: Key,
    scale: TableMoments | None,
    prints: ColumnPrints,
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield every copy block by block: the same values as ``auditor.perturb`` makes in memory from the same seed."""
    with one_thread():
        for _, _, copies in drawn_blocks(
            scheme, table, levels, key, scale=scale, seen=prints.add_numbers
        ):
            names = released_columns(scheme, table.attributes)
            yield [
                pd.DataFrame(scheme.to_columns(copy, table.attributes), columns=names)
                for copy in copies
            ]


def released_columns(scheme: Scheme, attributes: Sequence[str]) -> list[str]:
    """Return the names of a copy's columns: the attributes, or ``y1, y2 …`` where a scheme releases others."""
    columns = scheme.output_width(len(attributes))
    return (
        list(attributes) if columns == len(attributes) else [f"y{k}" for k in range(1, columns + 1)]
    )


def _in_single(
    parts: Iterator[Sequence[pd.DataFrame]], noise: NDArray[np.float64] | None
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield copies as 32-bit numbers.

    Where there is a grid, 32 bits hold its multiples, and nothing is rounded here. Elsewhere a
    rounded copy tells nobody more than the copy, being a function of it. But noise that the
    rounding swallows is no noise any more, and copies that differ by less are one; so what rounds
    by too much is refused.
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


WRITTEN: dict[str, Callable[..., Written]] = {"numeric": _numbers, "categorical": _codes}
"""What makes the copies that are written, by the engine that a scheme names."""

"""Copies of a table as they are drawn and finished, block by block, on their way into files; and what is stated of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import CategoricalTable, split
from auditor.data.columns.category_rules import Categories
from auditor.data.columns.dates import SINCE
from auditor.data.load import is_file, load_table
from auditor.data.raw_columns import Blanks, Stored, blank_cells, raw_frames, stored_kinds
from auditor.data.table import Table
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.process.environment import one_thread
from auditor.runs.finished_copies import Treatment, filled_categories, finished, finishes, notes_of, notes_of_blanks, post_processing
from auditor.runs.perturb import checked_levels
from auditor.schemes.base.grid import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Key, Scheme
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations
from auditor.schemes.replacement.base import UniformScheme
from auditor.text.column_names import listed, quoted

Precision = Literal["double", "single"]

ROUNDED = 2.0**-24
"""Half the distance between neighbouring 32-bit numbers, relative to their size."""
UNSEEN = 1e-3
"""Rounding beside the noise that changes no conclusion: squared, a millionth of what any attack leaves unknown."""


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
            raise AuditorError(f"dates: column {quoted(other[0])} is not perturbed; name it among the columns that are")
        return stored_kinds(self.data, columns, self.raw(), self.treatment.forms)

    def blanks(self) -> Blanks:
        """Count blank cells, where there may be any."""
        return Blanks(0, 0, {}) if self.treatment.missing == "refuse" else Blanks.of(self.raw())

    def table(self, categories: Categories | None = None, dates: Sequence[str] = ()) -> Table:
        """Return the table to perturb; blanks that stay blank have the column's mean meanwhile."""
        missing = self.treatment.missing
        return load_table(
            self.data, columns=self.columns, rows=self.rows, parameters={}, rng=self.rng, base=None, categories=categories,
            missing="mean" if missing == "keep" else missing, dates={name: self.treatment.forms.get(name) for name in dates},
        )  # fmt: skip


Written = tuple[Iterator[Sequence[pd.DataFrame]], dict[str, Any], list[str]]


def _numbers(scheme: Scheme, asked: Asked) -> Written:
    """Return copies of numbers block by block, what a manifest states of them, and what an owner must know."""
    kinds = asked.kinds(asked.columns) if asked.columns else {}
    days = [name for name, kind in kinds.items() if kind in ("date", "time")]
    table, blanks = asked.table(dates=days), asked.blanks()
    levels = checked_levels(asked.levels, asked.seed, scheme)
    key = key_of(scheme, table, levels, asked.seed, DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS)
    parts = _frames(scheme, table, levels, key)
    if asked.precision == "single":
        parts = _in_single(parts, noise_deviations(scheme, table, levels))
    stated = _stated(table.attributes, table.rows, scheme.distribution, key.grid)
    notes = list(notes_of_blanks(asked.treatment.missing, *blanks))
    if asked.treatment.is_plain:
        return parts, stated | _in_days(days), [*notes, *(f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1])]
    how = finishes(table, kinds or asked.kinds(table.attributes), asked.raw, asked.treatment)
    parts = finished(parts, how, blank_cells(asked.raw()) if asked.treatment.missing == "keep" else None)
    stated["grid"] = stated["grid"] and {name: grid for name, grid in stated["grid"].items() if how[name].is_bare}
    stated["post_processing"] = post_processing(how, asked.treatment.bounds)
    return parts, stated | _in_days([] if asked.treatment.rounded else days), [*notes, *notes_of(how, asked.treatment)]


def _in_days(columns: Sequence[str]) -> dict[str, Any]:
    """Return what a manifest says of dates that are written as numbers."""
    return {SINCE.replace(" ", "_"): list(columns)} if columns else {}


def _codes(scheme: UniformScheme, asked: Asked) -> Written:
    """Return copies of categories block by block, the same in either precision, and what a manifest states of them."""
    blanks = asked.blanks()
    keep = asked.treatment.missing == "keep" and blanks.total > 0
    held = filled_categories(asked.raw()) if keep else _categories(asked)
    parts = _coded_frames(scheme, held, checked_levels(asked.levels, asked.seed, scheme), asked.seed)
    if keep:
        parts = finished(parts, {}, blank_cells(asked.raw()))
    return parts, _stated(held.names, held.rows, "replacement", ()), list(notes_of_blanks(asked.treatment.missing, *blanks))


def _stated(attributes: Sequence[str], rows: int, law: str | None, grid: Sequence[float]) -> dict[str, Any]:
    """Return what a manifest states of the copies: how they were drawn, and what their numbers are multiples of; never from which key."""
    lattice = dict(zip(attributes, grid, strict=True)) if grid else None
    return {"attributes": list(attributes), "rows": rows, "law": law, "grid": lattice}


def _categories(asked: Asked) -> CategoricalTable:
    """Return categories to perturb, with the domains observed or declared by the source."""
    if asked.columns is None and is_file(asked.data):
        raise AuditorError("a uniform scheme perturbs categories: name the columns to take as such with --columns")
    held = asked.table(Categories({}, dict.fromkeys(asked.columns or ()))).categorical
    if held is None:
        raise AuditorError("a uniform scheme perturbs categories: name the columns to take as such")
    return held


def _coded_frames(
    scheme: UniformScheme, table: CategoricalTable, levels: tuple[float, ...], seed: int | None
) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield every copy of categories block by block: the same values as ``auditor.perturb`` makes in memory from the same seed."""
    for copies in drawn_codes(scheme, table, levels, seed):
        yield [
            pd.DataFrame({
                attribute.name: pd.Categorical.from_codes(codes, categories=pd.Index(attribute.labels, tupleize_cols=False))
                for attribute, codes in zip(table.attributes, split(table, copy), strict=True)
            })
            for copy in copies
        ]  # fmt: skip


def _frames(scheme: Scheme, table: Table, levels: tuple[float, ...], key: Key) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield every copy block by block: the same values as ``auditor.perturb`` makes in memory from the same seed."""
    with one_thread():
        for _, _, copies in drawn_blocks(scheme, table, levels, key):
            columns = scheme.output_width(table.width)
            names = list(table.attributes) if columns == table.width else [f"y{k}" for k in range(1, columns + 1)]
            yield [pd.DataFrame(scheme.to_columns(copy, table.attributes), columns=names) for copy in copies]


def _in_single(parts: Iterator[Sequence[pd.DataFrame]], noise: NDArray[np.float64] | None) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield copies as 32-bit numbers.

    Where there is a grid, 32 bits hold its multiples, and nothing is rounded here. Elsewhere a rounded copy tells nobody more than the
    copy, being a function of it. But noise that the rounding swallows is no noise any more, and copies that differ by less are one; so what
    rounds by too much is refused.
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

"""Copies drawn and finished block by block on their way into files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from auditor.base import counted, listed, pd, quoted
from auditor.base.types import Plain
from auditor.data.columns.checks import SINCE
from auditor.data.raw_columns import Blanks, blank_cells
from auditor.process.environment import one_thread
from auditor.results.table_register import ColumnPrints
from auditor.runs.arguments import checked_levels
from auditor.runs.copy_files.request import (
    Asked,
    Blank,
    Finish,
    Parts,
    Treatment,
    finishes,
    in_single,
    shared_in_units,
)
from auditor.schemes.base.additive import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Scheme
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations, whole_columns
from auditor.schemes.replacement.base import UniformScheme, never_drawn


class Drawn(NamedTuple):
    """Copies on their way into files.

    ``stated`` goes into the manifest. ``prints`` are complete once all parts are drawn.
    """

    parts: Parts
    stated: Plain
    notes: list[str]
    prints: ColumnPrints


def drawn_copies(scheme: Scheme, asked: Asked) -> Drawn:
    """Draw and finish copies block by block."""
    missing = asked.treatment.missing
    blanks = Blanks(0, 0, {}) if missing == "refuse" else Blanks.of(asked.raw())
    levels = checked_levels(asked.levels, asked.seed, scheme)
    kept = missing == "keep" and blanks.total > 0
    if isinstance(scheme, UniformScheme):
        found = _drawn_categories(scheme, asked, levels, kept)
    else:
        found = _drawn_numbers(scheme, asked, levels)
    parts = _blanked(found.parts, asked) if kept else found.parts
    return found._replace(parts=parts, notes=[*_notes_of_blanks(missing, *blanks), *found.notes])


def _drawn_categories(
    scheme: UniformScheme, asked: Asked, levels: tuple[float, ...], blanks: bool
) -> Drawn:
    table = asked.categories(blanks)
    prints = ColumnPrints(table.names)
    domains = [pd.Index(attribute.labels, tupleize_cols=False) for attribute in table.attributes]

    def frame(copy: Any) -> pd.DataFrame:
        columns = zip(table.names, domains, table.labelled(copy), strict=True)
        return pd.DataFrame(
            {name: pd.Categorical.from_codes(codes, domain) for name, domain, (_, codes) in columns}
        )

    def parts() -> Parts:
        for original, copies in drawn_codes(scheme, table, levels, asked.seed, asked.earlier):
            prints.add_labels(table.labelled(original))
            yield list(map(frame, copies))

    note = never_drawn(scheme.over(table).replaced_by(table.size))
    stated = {"attributes": list(table.names), "rows": table.rows, "law": "replacement"}
    return Drawn(parts(), {**stated, "grid": None}, [note] if note else [], prints)


def _drawn_numbers(scheme: Scheme, asked: Asked, levels: tuple[float, ...]) -> Drawn:
    treatment, scale = asked.treatment, asked.scale
    kinds, table = asked.numbers()
    names, notes = list(table.attributes), list[str]()
    bits = DOUBLE_BITS if asked.precision == "double" else SINGLE_BITS
    key = key_of(scheme, table, levels, asked.seed, bits, scale, asked.earlier)
    key, prints = replace(key, past=asked.past), ColumnPrints(names)

    def drawn() -> Parts:
        columns = released_columns(scheme, names)
        blocks = drawn_blocks(scheme, table, levels, key, scale=scale, seen=prints.add_numbers)
        with one_thread():
            for _, _, copies in blocks:
                yield [
                    pd.DataFrame(scheme.to_columns(copy, names), columns=columns) for copy in copies
                ]

    parts = drawn()
    if table.units is not None:
        parts, shared = shared_in_units(parts, table)
        unit = f"records of one {quoted(treatment.unit)} have one noise in {listed(shared) or 'no column'}"
        notes.append(f"{unit}; columns that vary within units have a noise for each record")
    if asked.precision == "single":
        parts = in_single(parts, noise_deviations(scheme, table, levels, scale))
    grid = dict(zip(names, key.grid, strict=True)) if key.grid else None
    stated = {"attributes": names, "rows": table.rows, "law": scheme.distribution, "grid": grid}
    whole, days = whole_columns(scheme, table, scale), list(table.dates)
    if treatment.is_plain and whole is None:
        notes += [f"{listed(days)}: written as {SINCE}; rounded, as dates" for _ in days[:1]]
    else:
        columns = finishes(table, kinds or asked.kinds(names), treatment, whole)
        parts = (
            [
                pd.DataFrame({name: columns[str(name)].finished(copy[name]) for name in copy})
                for copy in copies
            ]
            for copies in parts
        )
        # a column that is cut off or rounded is no longer on the grid
        lattice = whole is not None and not treatment.rounded
        stated["grid"] = grid and {
            name: step
            for name, step in grid.items()
            if columns[name].is_open and (lattice or math.isnan(columns[name].step))
        }
        stated["post_processing"] = _post_processing(columns, treatment)
        notes += _notes_of(columns, treatment)
    if days and not treatment.rounded:
        stated[SINCE.replace(" ", "_")] = days
    return Drawn(parts, stated, notes, prints)


def released_columns(scheme: Scheme, attributes: Sequence[str]) -> list[str]:
    """Names of a copy's columns: the attributes, or ``y1, y2 …`` of other schemes."""
    width = scheme.output_width(len(attributes))
    return list(attributes) if width == len(attributes) else [f"y{k + 1}" for k in range(width)]


# -- finishing of columns --------------------------------------------------------------------------


def _blanked(parts: Parts, asked: Asked) -> Parts:
    blanks = blank_cells(asked.raw())
    for copies in parts:
        blank = blanks.take(len(copies[0])).astype(bool)
        yield [
            pd.DataFrame({name: copy[name].mask(blank[name].to_numpy()) for name in copy})
            for copy in copies
        ]


# -- words for the owner and the manifest ----------------------------------------------------------


def _post_processing(columns: Mapping[str, Finish], asked: Treatment) -> Plain:
    steps = {name: finish.step for name, finish in columns.items() if not math.isnan(finish.step)}
    said: Plain = {
        "round": steps if asked.rounded else None,
        "clip": {name or "*": list(pair) for name, pair in asked.bounds.items()},
        "unit": asked.unit,
    }
    return {name: value for name, value in said.items() if value}


def _notes_of(columns: Mapping[str, Finish], asked: Treatment) -> Iterator[str]:
    left = [name for name, finish in columns.items() if math.isnan(finish.step)]
    if asked.rounded and left:
        yield f"not rounded: {listed(left)}, as {'it has' if len(left) == 1 else 'they have'} no resolution"
    if asked.rounded or asked.bounds:
        yield "copies that are rounded or cut off are not those that Theorem 4 is exact for: audit the files (scheme: published)"


def _notes_of_blanks(
    missing: Blank, records: int, incomplete: int, cells: Mapping[str, int]
) -> Iterator[str]:
    total = sum(cells.values())
    if not total:
        return
    most = quoted(max(cells, key=lambda name: cells[name]))
    where = f"{counted(total, 'blank cell')} in {incomplete:,} of {counted(records, 'record')}, most in column {most}"
    yield {
        "drop": f"dropped: {where}; these records are in no copy",
        "mean": f"filled in: {where}; the column's mean was perturbed in their place. A value near it tells that "
        "the cell was blank: audit with `missing: mean` (blank_guessed). One record moves all filled cells",
        "keep": f"kept blank in every copy: {where}; every recipient sees which cells are blank, and of whom if records can be told",
    }[missing]

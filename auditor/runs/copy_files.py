"""Write perturbed copies as files: what is handed to recipients, and nothing that would let them undo it."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from auditor.data.columns.categorical_table import CategoricalTable, split
from auditor.data.columns.category_rules import Categories
from auditor.data.columns.dates import SINCE
from auditor.data.formats.readers import csv_frame, header
from auditor.data.formats.writers import TableFiles
from auditor.data.load import file_notes, is_file, load_table
from auditor.data.raw_columns import Blanks, blank_cells, raw_frames, stored_kinds
from auditor.data.table import Table
from auditor.data.unperturbed_columns import Kept, column_names
from auditor.errors import AuditorError, AuditorWarning
from auditor.numerics.random_streams import stream
from auditor.process.containment import plugin_errors
from auditor.process.environment import one_thread, version
from auditor.registry import get
from auditor.results.files import located, write_atomically
from auditor.runs.finished_copies import (
    AS_DRAWN,
    Treatment,
    filled_categories,
    finished,
    finishes,
    notes_of,
    notes_of_blanks,
    post_processing,
)  # fmt: skip
from auditor.runs.perturb import Release, checked_levels, make_plugin
from auditor.schemes.base.grid import DOUBLE_BITS, SINGLE_BITS
from auditor.schemes.base.scheme import Key, Scheme, by_engine
from auditor.schemes.draw import drawn_blocks, drawn_codes, key_of, noise_deviations
from auditor.schemes.replacement.base import UniformScheme
from auditor.text.column_names import listed

MANIFEST = "release.json"


Precision = Literal["double", "single"]

ROUNDED = 2.0**-24
"""Half the distance between neighbouring 32-bit numbers, relative to their size."""
UNSEEN = 1e-3
"""Rounding beside the noise that changes no conclusion: squared, a millionth of what any attack leaves unknown."""


def write_copies(
    data: str,
    scheme: str,
    levels: Sequence[float],
    seed: int | None,
    output: Path,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    form: str | None = None,
    precision: Precision = "double",
    keep: Sequence[str] | Literal["rest"] = (),
    treatment: Treatment = AS_DRAWN,
) -> list[Path]:
    """Perturb a table and write ``copy-1``, ``copy-2`` … and a manifest; return the paths written.

    Parameters
    ----------
    data : str
        A registered source, or a path to a file of data.
    scheme, levels, parameters
        As for ``auditor.perturb``.
    seed : int, optional
        For studies only, as for ``auditor.perturb``; left out, a secret key that is forgotten. The manifest holds neither.
    output : Path
        Folder, made if need be. Files appear under their names only when they are whole; copies can be read by their owner alone, the
        manifest, which may go to every recipient, by whoever the system's settings say.
    columns, rows
        Selection, as in a scenario's ``data``.
    form : 'csv' or 'parquet', optional
        Parquet for data in Parquet by default, csv (UTF-8, commas, decimal points) for all others.
    precision : 'double' or 'single'
        Numbers of 64 or 32 bits. Single takes half the room; categories are the same in both.
    keep : sequence of str or 'rest'
        Columns of the file that go into every copy **unchanged**; ``rest``: all but those perturbed. None by default: what is not named
        is not released.
    treatment : Treatment
        What is done about blank cells, and to copies once they are drawn.

    Warns
    -----
    AuditorWarning
        What was left out, filled in, kept blank, rounded or cut off.

    Raises
    ------
    AuditorError
        The data, the scheme or the levels cannot be used, the folder cannot be written, holds the data itself or copies that these would
        not replace, or single precision would round a copy by more than a thousandth of its noise (of its own deviation, where the scheme
        states no noise).

    Notes
    -----
    Numbers are read, perturbed and written block by block, so that neither table nor copies need fit into memory: a block of every copy
    does, two megabytes each. So are categories, 65,536 records at a time. The table of a scheme that must see all of it (k-anonymity) is
    held in memory.
    """
    kind = form or ("parquet" if _is_parquet(data) else "csv")
    paths = [output / f"copy-{k}.{kind}" for k in range(1, len(levels) + 1)]
    _check_room(data, output, paths)
    columns, wanted = _selection(data, columns, keep)
    asked = _Asked(data, columns, rows, list(levels), seed, precision, treatment)
    kept = Kept(data, wanted, blank_cells(asked.raw()) if treatment.missing == "drop" else None) if wanted else None
    with plugin_errors():
        chosen: Scheme = make_plugin("scheme", scheme, parameters or {})
        treatment.check(chosen)
        parts, stated, notes = by_engine(WRITTEN, chosen)(chosen, asked)
    parts = _drawn(parts)
    if kept is not None:
        parts = _beside(parts, kept, column_names(data), rows is None)
    first = next(parts)  # what cannot be drawn is refused before a folder is made
    try:
        output.mkdir(parents=True, exist_ok=True)
        with TableFiles(paths) as files:
            for part in chain([first], parts):
                for place, copy in enumerate(part):
                    files.append(place, copy)
        manifest = {
            "schema_version": 2,
            "auditor": version("auditor"),
            "scheme": chosen.name,
            "parameters": chosen.parameters.model_dump(mode="json", by_alias=True),
            "levels": list(levels),
            **stated,
            **({} if kept is None else {"kept": kept.columns}),
            "precision": precision,
            "missing": treatment.missing,
            "for_study_only": seed is not None,
            "copies": [path.name for path in paths],
        }
        write_atomically(output / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise AuditorError(f"{output}: cannot be written ({error.strerror})") from None
    for note in (*file_notes(data), *notes, *_left_out(data, stated["attributes"], wanted)):
        warnings.warn(AuditorWarning(note), stacklevel=2)
    return [*paths, output / MANIFEST]


@dataclass(frozen=True)
class _Asked:
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

    def blanks(self) -> Blanks:
        """Count blank cells, where there may be any."""
        return Blanks(0, 0, {}) if self.treatment.missing == "refuse" else Blanks.of(self.raw())

    def table(self, categories: Categories | None = None, dates: Sequence[str] = ()) -> Table:
        """Return the table to perturb; blanks that stay blank have the column's mean meanwhile."""
        missing = self.treatment.missing
        return load_table(
            self.data, columns=self.columns, rows=self.rows, parameters={}, rng=self.rng, base=None, categories=categories,
            missing="mean" if missing == "keep" else missing, dates=dict.fromkeys(dates),
        )  # fmt: skip


Written = tuple[Iterator[Sequence[pd.DataFrame]], dict[str, Any], list[str]]


def _numbers(scheme: Scheme, asked: _Asked) -> Written:
    """Return copies of numbers block by block, what a manifest states of them, and what an owner must know."""
    kinds = stored_kinds(asked.data, asked.columns, asked.raw()) if asked.columns else {}
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
    how = finishes(table, kinds or stored_kinds(asked.data, table.attributes, asked.raw()), asked.raw, asked.treatment)
    parts = finished(parts, how, blank_cells(asked.raw()) if asked.treatment.missing == "keep" else None)
    stated["grid"] = stated["grid"] and {name: grid for name, grid in stated["grid"].items() if how[name].is_bare}
    stated["post_processing"] = post_processing(how, asked.treatment.bounds)
    return parts, stated | _in_days([] if asked.treatment.rounded else days), [*notes, *notes_of(how, asked.treatment)]


def _in_days(columns: Sequence[str]) -> dict[str, Any]:
    """Return what a manifest says of dates that are written as numbers."""
    return {SINCE.replace(" ", "_"): list(columns)} if columns else {}


def _codes(scheme: UniformScheme, asked: _Asked) -> Written:
    """Return copies of categories block by block, the same in either precision, and what a manifest states of them."""
    blanks = asked.blanks()
    keep = asked.treatment.missing == "keep" and blanks.total > 0
    held = filled_categories(asked.raw()) if keep else _categories(asked)
    parts = _coded_frames(scheme, held, checked_levels(asked.levels, asked.seed, scheme), asked.seed)
    if keep:
        parts = finished(parts, {}, blank_cells(asked.raw()))
    return parts, _stated(held.names, held.rows, "replacement", ()), list(notes_of_blanks(asked.treatment.missing, *blanks))


def _left_out(data: str, perturbed: Sequence[str], kept: Sequence[str]) -> Iterator[str]:
    """Yield what columns of a file are in no copy."""
    left = [name for name in column_names(data) if name not in (*perturbed, *kept)] if is_file(data) else []
    if left:
        yield f"left out: {listed(left)}; only columns that are perturbed, or named to be kept, are in the copies"


WRITTEN: dict[str, Callable[..., Written]] = {"numeric": _numbers, "categorical": _codes}
"""What makes the copies that are written, by the engine that a scheme names."""
READ_AS: dict[str, Callable[[pd.DataFrame], Any]] = {"numeric": lambda X: np.float64, "categorical": lambda X: X.dtypes}
"""What types copies read from files have, likewise."""


def _stated(attributes: Sequence[str], rows: int, law: str | None, grid: Sequence[float]) -> dict[str, Any]:
    """Return what a manifest states of the copies: how they were drawn, and what their numbers are multiples of; never from which key."""
    lattice = dict(zip(attributes, grid, strict=True)) if grid else None
    return {"attributes": list(attributes), "rows": rows, "law": law, "grid": lattice}


def read_release(X: Any, folder: Path | str) -> Release:
    """Return the release in a folder that ``auditor perturb`` wrote, to be extended.

    Parameters
    ----------
    X : DataFrame
        The original, with its records in the order of the copies'.
    folder : Path or str

    Raises
    ------
    AuditorError
        The folder holds no whole release, or not one of this table.
    """
    try:
        manifest = json.loads((Path(folder) / MANIFEST).read_text(encoding="utf-8"))
        names, levels = manifest["attributes"], tuple(manifest["levels"])
        if manifest.get("post_processing") or manifest.get("missing") == "keep":
            why = "its copies are rounded, cut off or have blanks, and a new one hangs on its neighbours as they were drawn"
            raise AuditorError(f"{folder}: cannot be extended; {why}")
        scheme: Scheme = make_plugin("scheme", manifest["scheme"], manifest["parameters"])
        original = X[names]
        types = by_engine(READ_AS, scheme)(original)
        copies = [_columns(Path(folder) / name, names).astype(types) for name in manifest["copies"]]
    except (OSError, ValueError, LookupError, TypeError):
        raise AuditorError(f"{folder}: holds no whole release of these columns, with {MANIFEST} and every copy it names") from None
    if any(len(copy) != len(X) for copy in copies):
        raise AuditorError(f"{folder}: its copies have not as many records as the table")
    return Release(original, tuple(copy.set_index(X.index) for copy in copies), levels, scheme)


def _columns(path: Path, names: list[str]) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path, columns=names)
    return csv_frame(path.read_bytes(), path, header(path), names, None)[names]


def unperturbed(scheme: str, levels: Sequence[float]) -> list[int]:
    """Return the numbers of the copies, from 1, that a scheme leaves as the data are.

    Examples
    --------
    >>> unperturbed("corner-wave", [0.5, 0.0]), unperturbed("uniform", [0.0, 1.0]), unperturbed("rotation", [0.0])
    ([2], [2], [])
    """
    level = get("scheme", scheme).level_of_original
    return [number for number, each in enumerate(levels, start=1) if each == level]


def averages_out(scheme: str) -> bool:
    """Whether the copies of two runs of a scheme on one table say more together than apart, as those of noise and of replacements do.

    Examples
    --------
    >>> averages_out("corner-wave"), averages_out("k-anonymity")
    (True, False)
    """
    return get("scheme", scheme).level_of_original is not None


def _check_room(data: str, output: Path, paths: Sequence[Path]) -> None:
    """Refuse to write over the data, among its parts, or beside copies of another release, which would pass for one of this."""
    source = next((path.resolve() for path in located(data)), None) if is_file(data) else None
    if source is not None and source == output.resolve():
        raise AuditorError(f"{output}: is the folder of the data: copies would be taken for parts of it; choose another with --output")
    if source is not None and source in [path.resolve() for path in paths]:
        raise AuditorError(f"{source.name}: is the data itself, and a copy would be written over it; choose another folder with --output")
    found = {path.name for path in output.glob("copy-*") if re.fullmatch(r"copy-\d+\.(csv|parquet)", path.name)}
    left = found - {path.name for path in paths}
    if left:
        raise AuditorError(f"{output}: holds {min(left)} of another release; choose another folder with --output, or remove what is there")


def _selection(
    data: str, columns: Sequence[str] | None, keep: Sequence[str] | Literal["rest"]
) -> tuple[Sequence[str] | None, list[str]]:
    """Return the columns to perturb, and those to keep."""
    if not keep:
        return columns, []
    if keep == "rest" and columns is None:
        raise AuditorError("to keep the rest, name the columns to perturb with --columns")
    names = column_names(data)
    wanted = [name for name in names if name not in set(columns or ())] if keep == "rest" else list(dict.fromkeys(keep))
    both = [name for name in wanted if name in set(columns or ())]
    if both:
        raise AuditorError(f"column {both[0]!r} is to be perturbed and kept unchanged; one of the two")
    if not all(wanted):
        raise AuditorError("the rest has a column without a name; name the columns to keep")
    return [name for name in names if name not in set(wanted)] if columns is None else columns, wanted


def _drawn(parts: Iterator[Sequence[pd.DataFrame]]) -> Iterator[Sequence[pd.DataFrame]]:
    """Yield what a scheme draws; whatever it raises ends the command, and neither in status 0 nor in another folder."""
    while True:
        with plugin_errors():
            part = next(parts, None)
        if part is None:
            return
        yield part


def _beside(parts: Iterator[Sequence[Any]], kept: Kept, order: Sequence[str], whole: bool) -> Iterator[Sequence[Any]]:
    """Put the columns that are kept beside those perturbed, in the file's order; new columns come last."""
    for copies in parts:
        unchanged = kept.take(len(copies[0]))
        twice = set(kept.columns) & set(copies[0].columns)
        if twice:
            raise AuditorError(f"a copy has a column {min(twice)!r} of its own; keep the other under another name")
        names = [*kept.columns, *copies[0].columns]
        names.sort(key=lambda name: order.index(name) if name in order else len(order))
        yield [pd.concat([unchanged, copy.reset_index(drop=True)], axis=1)[names] for copy in copies]
    if whole:
        kept.finish()


def _is_parquet(data: str) -> bool:
    """Whether the data are in Parquet: a file, or a folder that holds any."""
    return data.lower().endswith(".parquet") or any(path.is_dir() and any(path.glob("*.parquet")) for path in located(data))


def _categories(asked: _Asked) -> CategoricalTable:
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

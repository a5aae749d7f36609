"""Load the table that a scenario's ``data:`` requests, and check it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.base.errors import DataError, PluginError
from auditor.base.text import counted, listed, nearest, quoted
from auditor.base.types import Array, Indices
from auditor.data import file_rows
from auditor.data.clean import Asked, Cleaned, cleaned, held
from auditor.data.columns import checks
from auditor.data.columns.categorical_table import Categories, Hierarchy, coded
from auditor.data.columns.checks import Frame, Missing, check_rows, with_value_for_blanks
from auditor.data.columns.dates import in_days
from auditor.data.columns.record_keys import in_order_of, record_keys
from auditor.data.columns.scan import Scale
from auditor.data.file_rows import FileRows, Numbers
from auditor.data.formats import file_kinds
from auditor.data.formats.parts import (
    Held,
    Piece,
    Records,
    as_spelt,
    blank_words,
    column_as_written,
    first_rows,
    header,
    notes_of,
    parsed_once,
    parts,
    pieces_of,
    size_of_values,
    whole_frame,
)
from auditor.data.request import is_file
from auditor.data.source import OPTIONS, Source, asked_source, select
from auditor.data.table import Table
from auditor.numerics.random_streams import stream
from auditor.process.deferred import pd
from auditor.registry.parameters import is_whole
from auditor.results.files import TableFile, located, reading_of, split_name


class _Drawn(NamedTuple):
    names: list[str]
    table: Frame
    source: Source
    every: list[str]
    begun: np.random.Generator

    @property
    def rows(self) -> int:
        return len(self.table[self.names[0]])

    @property
    def frame(self) -> pd.DataFrame:
        return pd.DataFrame({name: self.table[name] for name in self.names})

    def covariance(self, names: Sequence[str]) -> Array | None:
        found = self.source.population(deepcopy(self.begun))
        places = [self.every.index(name) for name in names]
        return None if found is None else np.asarray(found[np.ix_(places, places)])


def load_table(
    source: str,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    missing: Missing = "refuse",
    standardize: bool = False,
    parameters: Mapping[str, Any] | None = None,
    rng: np.random.Generator,
    base: Path | None = None,
    categories: Categories | None = None,
    hierarchies: Mapping[str, Hierarchy] = MappingProxyType({}),
    dates: Mapping[str, str | None] = MappingProxyType({}),
    varied: bool = True,
    order: str | None = None,
    key: str | None = None,
    unit: str | None = None,
    weight: str | None = None,
) -> Table:
    """Return the table that a scenario requests, fit to be audited.

    Parameters
    ----------
    source : str
        A registered source, or a path to a file or a folder of parts.
    columns : sequence of str, optional
        Attributes in this order, with those of ``dates`` and ``categories`` added; booleans become
        0 and 1. By default all except class labels; with ``categories``, only numbers that vary.
    rows : int, optional
        Number of first records, before records with gaps are dropped.
    missing : {'refuse', 'drop', 'mean', 'value'}
        ``value``: a blank is a value of its own, for schemes that make classes.
    standardize : bool
        Whether to scale each attribute to mean 0 and variance 1 (divisor n).
    hierarchies, dates : mapping
        Columns converted to places among leaves, and to days since 1970.
    varied : bool
        Whether every attribute must vary.
    order, key, unit, weight : str, optional
        Columns of order, identity, protected unit (a blank is its own unit) and weight; not audited.

    Returns
    -------
    Table
        Finite float64 values of shape (n, N), n ≥ 2; read-only. Above ``file_rows.HELD_BYTES``
        records stay in their file, unless they are reordered or converted.

    Raises
    ------
    DataError
        The table cannot be audited, or the request is invalid.
    PluginError
        There is no such source.

    Examples
    --------
    >>> table = load_table("iris", columns=["petal_length"], rows=50, rng=np.random.default_rng(0))
    >>> table.attributes, table.values.shape
    (('petal_length',), (50, 1))
    """
    _check_options(columns, rows, missing)
    asked = Asked(rows, missing, columns is not None)
    columns, chosen = (categories or Categories()).beside_columns(columns, dates)
    beside = {"order": order, "key": key, "unit": unit, "weight": weight}
    is_changed = bool(hierarchies or dates or any(beside.values()) or missing == "value")
    files: list[Piece] = []
    drawn, keys, units = None, None, None
    pieces: Sequence[Records]
    if is_file(source):
        names, files = _pieces(source, columns, rows, parameters, base, **beside)
        pieces = files
        if not is_changed and is_large(files, len(names)):
            pieces = parsed_once(files, names, rows)
        else:
            frame = whole_frame(files, names, rows)
            for name in {key, unit} - {None, order}:
                frame = frame.assign(**{str(name): column_as_written(files, str(name))[:rows]})
            pieces = [Held(frame, len(frame))]
    else:
        drawn = _drawn(source, columns, rows, parameters, rng, **beside)
        names, pieces = tuple(drawn.names), [Held(drawn.table, drawn.rows)]
        chosen = chosen.with_defaults(drawn.source.domains(), names)
    if is_changed:
        frame = drawn.frame if drawn else frame
        check_rows(len(frame), rows)
        frame = in_days(frame, dates)
        frame = frame if order is None else in_order_of(frame, order)
        keys = None if key is None else record_keys(key, frame[key])
        units = None if unit is None else _units(frame[unit])
        if weight is not None:
            _check_weights(weight, frame[weight])
        frame = frame.drop(columns={name for name in beside.values() if name is not None})
        if missing == "value":
            frame = with_value_for_blanks(frame)
        frame = coded(frame, dict(hierarchies), missing)
        names, pieces = tuple(map(str, frame)), [Held(frame, len(frame))]
    found = cleaned(pieces, names, asked, chosen)
    if (keys is not None or units is not None) and found.required:
        complete = checks.are_complete(frame, found.required)
        keys = None if keys is None else keys.some(complete)
        units = None if units is None else units[complete]
    table = Table(
        found.numeric,
        held(found.numbers) if found.numeric else np.empty((found.survey.kept, 0)),
        source,
        hierarchies=dict(hierarchies),
        dates=dict(dates),
        keys=keys,
        units=units,
        blanks=found.blanks,
        dropped=missing == "drop",
    )
    if drawn:
        made, is_in_units = drawn.source, not (hierarchies or dates or standardize)
        population = partial(drawn.covariance, found.numeric) if is_in_units else None
        table = replace(
            table, description=made.description, licence=made.licence, population=population
        )
    return _finished(table, found, [] if dates else files, standardize, varied)


def _finished(
    table: Table, found: Cleaned, files: Sequence[Piece], standardize: bool, varied: bool
) -> Table:
    checks.check_width(table.width)
    scan = table.scan
    table.check(varied)
    categorical = found.categories(table.records, scan)
    if categorical is not None and files:
        spelt = tuple(as_spelt(files, attribute) for attribute in categorical.attributes)
        categorical = replace(categorical, attributes=spelt)
    content = _scaled(table.records, Scale.of(scan)) if standardize else table.records
    return replace(
        table, content=content, categorical=categorical, scanned=scan, standardized=standardize
    )


def _scaled(content: Any, scale: Scale) -> Any:
    if isinstance(content, FileRows):
        assert isinstance(content.decode, Numbers)
        return replace(content, decode=replace(content.decode, scale=scale))
    content = content.copy()
    scale.apply(content)
    content.setflags(write=False)
    return content


def in_batches(table: Table, first: int | None) -> Table:
    """Return a table with a stated first batch, to which noise is scaled.

    Unchanged if it has one batch only.

    Raises
    ------
    DataError
        There are fewer records, or a column is constant in the first batch.
    """
    if first is None:
        return table
    if first > table.rows:
        raise DataError(
            f"the first batch cannot have {first:,} records: the table has {table.rows:,}",
            ("first-batch",),
        )
    found = table.head(first).scan
    still = found.low == found.high
    if still.any():
        column = quoted(table.attributes[int(still.argmax())])
        raise DataError(
            f"column {column} is constant in the first batch, to which noise is scaled",
            ("first-batch",),
        )
    return replace(table, first_batch=first)


def load_target(
    source: str,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    missing: Missing = "refuse",
    parameters: Mapping[str, Any] | None = None,
    rng: np.random.Generator,
    base: Path | None = None,
    order: str | None = None,
) -> NDArray[Any]:
    """Return one column, (n,), record by record as in ``load_table``.

    Numbers are float64, any other class is text. ``target`` may be a class label.

    Raises
    ------
    DataError
        There is no such column, or a class is missing.
    """
    state = rng.bit_generator.state

    def read(names: Sequence[str] | None) -> pd.DataFrame:
        rng.bit_generator.state = state  # a synthetic source must draw an equal table again
        if is_file(source):
            known, pieces = _pieces(source, names, rows, parameters, base, order=order)
            frame = whole_frame(pieces, known, rows)
        else:
            frame = _drawn(source, names, rows, parameters, rng, order=order).frame
        return frame if order is None else in_order_of(frame, order)

    label = read([target])[target]
    if missing == "drop":
        label = label[~read(columns).isna().any(axis=1).to_numpy()]
    if label.isna().any():
        raise DataError(
            f"column {quoted(target)} cannot be predicted: {counted(int(label.isna().sum()), 'record')} miss it"
        )
    if checks.kind_of(label) == "numbers":
        return label.to_numpy(dtype=np.float64)
    return label.astype(str).to_numpy(dtype=np.str_)


def read_columns(path: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a file, of any kind and unchanged.

    Raises
    ------
    DataError
        There is no such file, or it lacks a column.
    """
    names, pieces = _pieces(path, columns, None)
    return whole_frame(pieces, names, None)


def file_pieces(
    path: str, columns: Sequence[str] | None, rows: int | None
) -> tuple[tuple[str, ...], list[Piece]]:
    """Return the selected columns and pieces of a file's or folder's first ``rows``."""
    return _pieces(path, columns, rows)


def file_notes(source: str, base: Path | None = None) -> list[str]:
    """Return notes on how a file, or the first part with notes, is read."""
    found = files_of(source, base=base) if is_file(source) else []
    notes = list(next((notes for path in found if (notes := notes_of(path))), []))
    for name, words in blank_words([piece for path in found for piece in pieces_of(path)]).items():
        which = ", ".join(f"{word!r} ({number:,} times)" for word, number in sorted(words.items()))
        notes.append(
            f"{found[0].name}: column {quoted(name)}: {which} read as blank; "
            "to keep words as values state those that are none: `blank: []` under `data:`, or --blank ''"
        )
    return notes


def _units(cells: pd.Series[Any]) -> Indices:
    codes, labels = pd.factorize(cells.where(cells.notna() & (cells.astype(str) != "")))
    blank = codes < 0
    codes[blank] = len(labels) + np.arange(blank.sum())
    return np.asarray(codes, dtype=np.intp)


def _check_weights(name: str, cells: pd.Series[Any]) -> None:
    w = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        why = f"weights are numbers of at least 0, and record {bad[0] + 1} has none"
        raise DataError(f"column {quoted(name)}: {why} ({counted(len(bad), 'record')})")
    if not w.any():
        raise DataError(f"column {quoted(name)}: all weights are 0")


def is_large(pieces: Sequence[Piece], columns: int) -> bool:
    """Whether records stay in their file."""
    return size_of_values(pieces, columns) > file_rows.HELD_BYTES


def source_pieces(source: str) -> tuple[tuple[str, ...], int, list[Piece]]:
    """Return a file's columns, number of unnamed columns, and pieces.

    Raises
    ------
    DataError
        It cannot be read, or has no named column.
    """
    path = files_of(source)[0]
    known = header(path)
    named = [name for name in known if name]
    if not named:
        raise DataError(f"{path.name}: no column has a name")
    names, pieces = _pieces(source, named, None)
    return names, len(known) - len(named), pieces


def source_frame(
    name: str,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Return the records of a source with default parameters, from a fixed seed.

    Raises
    ------
    DataError, PluginError
        There is no such source, or it needs parameters.
    """
    return _drawn(name, columns, rows, {}, rng or stream(0, "data")).frame


def _check_options(columns: Sequence[str] | None, rows: int | None, missing: str) -> None:
    if columns is not None and (isinstance(columns, str) or not columns):
        raise DataError("columns must be a list of at least one column name")
    if columns is not None and not all(isinstance(name, str) for name in columns):
        raise DataError(
            "columns must be a list of names; put a name that looks like a number in quotation marks"
        )
    if rows is not None and not is_whole(rows, 2):
        raise DataError(f"rows must be an integer of at least 2; got {rows!r}")
    if missing not in get_args(Missing):
        raise DataError(
            f"missing must be one of {listed(get_args(Missing))}; got {quoted(missing)}"
        )


def _pieces(
    source: str,
    columns: Sequence[str] | None,
    rows: int | None,
    parameters: Mapping[str, Any] | None = None,
    base: Path | None = None,
    **beside: str | None,
) -> tuple[tuple[str, ...], list[Piece]]:
    paths = files_of(source, parameters, base)
    first = paths[0]
    names = select(header(first), columns, (), **beside)
    if "" in names:
        raise DataError(
            f"{first.name}: column {names.index('') + 1} has no name (is it the index of a data frame?); "
            "name those to audit with `columns:`"
        )
    checks.check_width(len(names))
    pieces: list[Piece] = []
    for path in paths:
        known = header(path, empty=len(paths) > 1)
        lacks = [name for name in names if name not in known]
        if lacks:
            raise DataError(f"{path.name}: lacks column {listed(lacks)}, which {first.name} has")
        pieces += pieces_of(path)
    return tuple(names), first_rows(pieces, rows)


def files_of(
    source: str, parameters: Mapping[str, Any] | None = None, base: Path | None = None
) -> list[Path]:
    """Return a file, or the parts in a folder.

    Raises
    ------
    DataError
        There is none, or ``parameters`` are given.
    """
    path = _find(source, base)
    for name in parameters or ():
        raise DataError(f"a file has no parameter {quoted(name)}{nearest(name, OPTIONS)}")
    if not path.is_dir():
        return [path]
    return [TableFile.of(part, reading_of(path)) for part in parts(path)]


def _find(source: str, base: Path | None) -> Path:
    there = located(source, base)
    folders = [path for path in there if path.is_dir()]
    if not split_name(source)[0].lower().endswith(file_kinds.SUFFIXES):
        if folders:
            return folders[0]
        raise DataError(
            f"source {quoted(source)} is neither a registered source nor {file_kinds.SAID}, nor a folder of parts"
        )
    if there:
        return there[0]
    where = "the scenario's folder or the current one" if base is not None else "the current folder"
    raise DataError(
        f"there is no file {quoted(source)}"
        + ("" if Path(source).is_absolute() else f" in {where}")
    )


def _drawn(
    name: str,
    columns: Sequence[str] | None,
    rows: int | None,
    parameters: Mapping[str, Any] | None,
    rng: np.random.Generator,
    **beside: str | None,
) -> _Drawn:
    with asked_source(name, parameters or {}, rows) as made:
        begun = deepcopy(rng)
        table: Frame
        if type(made).frame is Source.frame:  # without the import of pandas
            given = dict(made.numbers(rows, rng))
            table = {str(column): np.asarray(values) for column, values in given.items()}
            fits = len({values.shape for values in table.values()}) == 1 and all(
                values.ndim == 1 and values.dtype.kind in "iuf" for values in table.values()
            )
            expected = "`numbers` must return integers or floats by column, all of one length"
        else:
            table = made.frame(rows, rng)
            fits = (
                isinstance(table, pd.DataFrame)
                and table.columns.is_unique
                and len(table.columns) > 0
            )
            if fits:
                table = table.set_axis([str(column) for column in table], axis=1)
                table = table.reset_index(drop=True)
            expected = "`frame` must return a DataFrame with unique columns"
        if not fits:
            raise PluginError(f"source {name!r} broke its contract: {expected}")
        every = [str(column) for column in table]
        names = select(every, columns, made.labels, **beside)
        return _Drawn(names, {n: table[n][:rows] for n in names}, made, every, begun)

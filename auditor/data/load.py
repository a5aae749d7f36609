"""Load the table that a scenario's ``data:`` requests, and check it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.data.clean import (
    Asked,
    numbers_of_columns,
    numbers_of_frame,
    numbers_of_pieces,
    scanned_rows,
)
from auditor.data.columns import checks
from auditor.data.columns.categorical_table import CategoricalTable
from auditor.data.columns.category_rules import Categories
from auditor.data.columns.checks import Missing, check_rows
from auditor.data.columns.dates import in_days
from auditor.data.columns.hierarchy import Hierarchy, coded
from auditor.data.columns.record_keys import record_keys
from auditor.data.columns.row_order import in_order_of
from auditor.data.columns.scan import Scale
from auditor.data.formats import file_kinds
from auditor.data.formats import readers as reading
from auditor.data.formats.as_written import column_as_written
from auditor.data.formats.parts import Piece, first_rows, parts, pieces_of, whole_frame
from auditor.data.outlined import OPTIONS, asked_source, select
from auditor.data.request import is_file
from auditor.data.source import Source
from auditor.data.streamed.rows import FileRows
from auditor.data.table import Table
from auditor.errors import DataError, PluginError
from auditor.numerics.random_streams import stream
from auditor.parameters import is_whole
from auditor.process.deferred import pd
from auditor.results.files import located
from auditor.text.column_names import counted, listed, nearest, quoted

if TYPE_CHECKING:
    from auditor.data.streamed.codes import FileCodes


class _Raw(NamedTuple):
    frame: pd.DataFrame
    description: str = ""
    licence: str = ""
    domains: Mapping[str, Sequence[Any]] = MappingProxyType({})
    population: _Population | None = None


class _Population(NamedTuple):
    """Source of the population covariance, with its columns and random state."""

    source: Source
    columns: Sequence[str]
    rng: np.random.Generator

    def covariance(self, names: Sequence[str]) -> NDArray[np.float64] | None:
        """Return the covariance of some columns, not cached."""
        found = self.source.population(deepcopy(self.rng))
        places = [self.columns.index(name) for name in names]
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
) -> Table:
    """Return the table that a scenario requests, fit to be audited.

    Parameters
    ----------
    source : str
        The name of a registered source, or a path to a file of any kind in
        ``auditor.data.formats.file_kinds``, or to a folder of parts (``parts/``), relative to
        ``base`` or else to the current folder. In a CSV file of one column every line below the
        header is a record, and a blank line is a missing value; with several columns a blank line
        is no record.
    columns : sequence of str, optional
        Attributes in this order; Boolean columns become 0 and 1. Columns of ``dates`` and
        ``categories`` are added. A category that is not listed here is excluded from the numbers,
        even if numeric. By default every column except a source's class labels; all must then be
        numbers, unless ``categories`` names some: then non-numeric and constant columns are
        excluded.
    rows : int, optional
        Number of first records (of records to draw, for a synthetic source), before records with
        gaps are dropped.
    missing : {'refuse', 'drop', 'mean'}
        Treatment of missing values: raise, exclude the record, or impute the attribute's mean.
    standardize : bool
        Whether to scale each attribute to mean 0 and variance 1 (divisor n).
    parameters : mapping, optional
        The source's own parameters, by their names in YAML or in Python; a file has none.
    rng : Generator
        The randomness of synthetic sources.
    base : Path, optional
        The scenario's folder.
    categories : Categories, optional
        Columns used as categories, for uniform schemes; numeric ones stay in the numeric table too.
    hierarchies : mapping
        Columns of text or numbers, converted to places among the leaves of a declared hierarchy.
    dates : mapping
        Columns read as days since 1970, and the format of their text, or None for ISO 8601; the
        table is held in memory.
    varied : bool
        Whether every attribute must vary; a copy's need not.
    order : str, optional
        Public column that orders the records before the first ``rows`` are selected; not audited.
        The table is held in memory.
    key : str, optional
        A column that identifies records, by whole numbers or text; not audited. The table is held
        in memory.

    Returns
    -------
    Table
        Finite float64 values of shape (n, N), n ≥ 2, no attribute constant; read-only. Above
        ``streamed.HELD_BYTES`` values and categories stay in their file and are read block by
        block, unless there are hierarchies.

    Raises
    ------
    DataError
        The table cannot be audited, or the request is invalid. No message holds a value from the
        table.
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
    as_is = not hierarchies and not dates and order is key is None
    if is_file(source):
        names, pieces = _pieces(source, columns, rows, parameters or {}, base, order=order, key=key)
        if not chosen.columns and as_is:
            return _finished(_of_pieces(pieces, names, asked, source), standardize, varied=varied)
        # for start-up: only files with categories need it
        from auditor.data.streamed_table import categorize, held_if_small, is_large

        if as_is and is_large(pieces, len(names)):
            found = categorize(pieces, names, asked.booleans, asked, chosen)
            numbers = Table(found.numeric, found.content, source, dropped=missing == "drop")
            codes = found.codes
            return held_if_small(_finished(numbers, standardize, lambda: _stored(codes(numbers))))
        raw = _Raw(whole_frame(pieces, names, rows))
        if key not in (None, order):
            raw = raw._replace(
                frame=raw.frame.assign(**{key: column_as_written(pieces, key)[: len(raw.frame)]})
            )
    else:
        if as_is and not chosen.columns:
            drawn = _numbers_from_plugin(source, columns, parameters or {}, rng, asked)
            if drawn is not None:
                return _finished(
                    replace(drawn, population=None) if standardize else drawn, standardize
                )
        raw = _from_plugin(source, columns, rows, parameters or {}, rng, order=order, key=key)
    check_rows(len(raw.frame), rows)
    raw = raw._replace(frame=in_days(raw.frame, dates))
    if order is not None:
        raw = raw._replace(frame=in_order_of(raw.frame, order))
    keys = None if key is None else record_keys(key, raw.frame[key])
    raw = raw._replace(
        frame=raw.frame.drop(
            columns=[name for name in dict.fromkeys((order, key)) if name is not None]
        )
    )
    raw = raw._replace(frame=coded(raw.frame, dict(hierarchies), missing))
    if columns is None and chosen.columns:
        raw = raw._replace(frame=chosen.usable(raw.frame))
    chosen = chosen.with_defaults(raw.domains, list(raw.frame.columns))
    whole = chosen.complete(raw.frame, missing)
    frame = chosen.numeric(whole)
    names = tuple(frame.columns)
    values = numbers_of_frame(frame, asked)
    if keys is not None and missing == "drop":
        keys = keys.some(raw.frame.notna().all(axis=1).to_numpy())
    described = Table(
        names, values, source, raw.description, raw.licence, dropped=missing == "drop"
    )
    held = replace(described, hierarchies=dict(hierarchies), dates=dict(dates), keys=keys)
    # these change a column's unit
    if raw.population is not None and not (hierarchies or dates or standardize):
        held = replace(held, population=partial(raw.population.covariance, names))
    return _finished(held, standardize, lambda: chosen.table(whole, names, values))


def _of_pieces(pieces: Sequence[Piece], names: tuple[str, ...], asked: Asked, source: str) -> Table:
    looked = scanned_rows(pieces, names, asked)
    if looked is None:
        return Table(
            names, numbers_of_pieces(pieces, names, asked), source, dropped=asked.missing == "drop"
        )
    rows, found = looked
    return Table(names, rows, source, scanned=found)


def _stored(codes: FileCodes) -> CategoricalTable:
    return CategoricalTable(codes.attributes, codes)


def _finished(
    table: Table,
    standardize: bool,
    categorical: Callable[[], CategoricalTable | None] = lambda: None,
    varied: bool = True,
) -> Table:
    checks.check_names(table.attributes)
    checks.check_width(table.width)
    found = table.scan
    if varied:
        checks.check_varied(table.attributes, found.low, found.high, np.diag(found.covariance))
    else:  # a copy may be constant, but its variance must be computable
        checks.check_variance(table.attributes, np.diag(found.covariance))
    categories = categorical()
    content = table.records
    if standardize:
        scale = Scale.of(found)
        if isinstance(content, FileRows):
            content = content.with_scale(scale)
        else:
            content = content.copy()
            scale.apply(content)
    if not isinstance(content, FileRows):
        content.setflags(write=False)
    return replace(
        table, content=content, categorical=categories, scanned=found, standardized=standardize
    )


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
    """Return one column's values, record by record as in ``load_table``.

    A class of any kind, or numbers.

    Parameters
    ----------
    target : str
        Any column of the source, its class labels among them.
    columns, rows, missing, parameters, rng, base, order
        As the table was loaded with.

    Returns
    -------
    ndarray of shape (n,)
        Float64 for a column of numbers, text for any other.

    Raises
    ------
    DataError
        There is no such column, or a class is missing. No message holds a value.
    """
    find = _from_file if is_file(source) else None
    state = rng.bit_generator.state

    def read(names: Sequence[str] | None) -> pd.DataFrame:
        rng.bit_generator.state = state  # a synthetic source must draw an equal table again
        given = parameters or {}
        raw = (
            find(source, names, rows, given, base, order=order)
            if find
            else _from_plugin(source, names, rows, given, rng, order=order)
        )
        return raw.frame if order is None else in_order_of(raw.frame, order)

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
    return _from_file(path, columns, None, {}, None).frame


def file_pieces(
    path: str, columns: Sequence[str] | None, rows: int | None
) -> tuple[tuple[str, ...], list[Piece]]:
    """Return the selected columns and pieces of the first ``rows`` records.

    Of a file or a folder of parts.
    """
    return _pieces(path, columns, rows, {}, None)


def file_notes(source: str, base: Path | None = None) -> list[str]:
    """Return notes on how a file is read.

    Of a folder, the notes of the first part that has any.
    """
    found = _found(source, {}, base) if is_file(source) else []
    return next((notes for path in found if (notes := reading.notes_of(path))), [])


def source_pieces(source: str) -> tuple[tuple[str, ...], int, list[Piece]]:
    """Return a file's columns, number of unnamed columns, and pieces.

    A folder of parts is read like a file.

    Raises
    ------
    DataError
        It cannot be read, or has no named column.
    """
    path = _found(source, {}, None)[0]
    known = reading.header(path)
    named = [name for name in known if name]
    if not named:
        raise DataError(f"{path.name}: no column has a name")
    names, pieces = _pieces(source, named, None, {}, None)
    return names, len(known) - len(named), pieces


def source_frame(
    name: str,
    columns: Sequence[str] | None = None,
    rows: int | None = None,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Return the records of a source with default parameters.

    From a fixed seed by default.

    Raises
    ------
    DataError, PluginError
        There is no such source, or it needs parameters.
    """
    return _from_plugin(name, columns, rows, {}, rng or stream(0, "data")).frame


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


# -- files
# -------------------------------------------------------------------------------------------------------------


def _from_file(
    source: str,
    columns: Sequence[str] | None,
    rows: int | None,
    parameters: Mapping[str, Any],
    base: Path | None,
    **beside: str | None,
) -> _Raw:
    names, pieces = _pieces(source, columns, rows, parameters, base, **beside)
    return _Raw(whole_frame(pieces, names, rows))


def _pieces(
    source: str,
    columns: Sequence[str] | None,
    rows: int | None,
    parameters: Mapping[str, Any],
    base: Path | None,
    **beside: str | None,
) -> tuple[tuple[str, ...], list[Piece]]:
    paths = _found(source, parameters, base)
    names = _chosen_names(paths[0], columns, **beside)
    checks.check_width(len(names))
    pieces: list[Piece] = []
    for path in paths:
        known = reading.header(path, empty=len(paths) > 1)
        lacks = [name for name in names if name not in known]
        if lacks:
            raise DataError(f"{path.name}: lacks column {listed(lacks)}, which {paths[0].name} has")
        pieces += pieces_of(path)
    return tuple(names), first_rows(pieces, rows)


def _found(source: str, parameters: Mapping[str, Any], base: Path | None) -> list[Path]:
    path = _find(source, base)
    if parameters:
        name = next(iter(parameters))
        raise DataError(f"a file has no parameter {quoted(name)}{nearest(name, OPTIONS)}")
    return parts(path) if path.is_dir() else [path]


def _chosen_names(path: Path, columns: Sequence[str] | None, **beside: str | None) -> list[str]:
    known = reading.header(path)
    names = select(known, columns, (), **beside)
    if "" in names:
        where = f"{path.name}: column {names.index('') + 1}"
        raise DataError(
            f"{where} has no name (is it the index of a data frame?); name those to audit with `columns:`"
        )
    return names


def _find(source: str, base: Path | None) -> Path:
    there = located(source, base)
    folders = [path for path in there if path.is_dir()]
    if not source.lower().endswith(file_kinds.SUFFIXES):
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


# -- registered sources
# ------------------------------------------------------------------------------------------------


def _from_plugin(
    name: str,
    columns: Sequence[str] | None,
    rows: int | None,
    parameters: Mapping[str, Any],
    rng: np.random.Generator,
    **beside: str | None,
) -> _Raw:
    with asked_source(name, parameters, rows) as made:
        begun = deepcopy(rng)
        frame, domains = made.frame(rows, rng), made.domains()
        if (
            not isinstance(frame, pd.DataFrame)
            or not frame.columns.is_unique
            or len(frame.columns) == 0
        ):
            raise PluginError(
                f"source {name!r} broke its contract: `frame` must return a DataFrame with unique columns"
            )
        frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
        population = _Population(made, list(frame.columns), begun)
        frame = frame[select(list(frame.columns), columns, made.labels, **beside)].head(
            len(frame) if rows is None else rows
        )
        return _Raw(frame, made.description, made.licence, domains, population)


def _numbers_from_plugin(
    name: str,
    columns: Sequence[str] | None,
    parameters: Mapping[str, Any],
    rng: np.random.Generator,
    asked: Asked,
) -> Table | None:
    """Return the table of a numeric source without a frame, else None."""
    with asked_source(name, parameters, asked.rows) as made:
        if type(made).frame is not Source.frame or made.domains():
            return None
        begun = deepcopy(rng)
        given = made.numbers(asked.rows, rng)
        every = {str(column): column for column in given}
        names = tuple(select(list(every), columns, made.labels)) if every else ()
        # other columns may never be read
        found = {column: np.asarray(given[every[column]])[: asked.rows] for column in names}
        if len({values.shape for values in found.values()}) != 1 or any(
            v.ndim != 1 or v.dtype.kind not in "iuf" for v in found.values()
        ):
            raise PluginError(
                f"source {name!r} broke its contract: `numbers` must return integers or floats by column, all of one length"
            )
        covariance = partial(_Population(made, list(every), begun).covariance, names)
    check_rows(len(found[names[0]]), asked.rows)
    values = numbers_of_columns(found, asked)
    return Table(
        names,
        values,
        name,
        made.description,
        made.licence,
        dropped=asked.missing == "drop",
        population=covariance,
    )

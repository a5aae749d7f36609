"""Load and check the table that a scenario's ``data:`` requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.base import DataError, PluginError, counted, listed, nearest, pd, quoted
from auditor.base.types import Array, Generator, Indices, Names, Options, frozen
from auditor.data.clean import Read, cleaned
from auditor.data.columns import scan
from auditor.data.columns.categorical_table import Categories, coded, hierarchy_of
from auditor.data.columns.checks import (
    Frame,
    RecordKeys,
    Series,
    are_complete,
    calendar,
    check_rows,
    check_width,
    days_of,
    in_days,
    in_order_of,
    kind_of,
    plain_days,
    record_keys,
    with_value_for_blanks,
)
from auditor.data.columns.kinds import readings
from auditor.data.columns.scan import FileRows, Scale
from auditor.data.formats.file_kinds import SAID, SUFFIXES, is_parquet
from auditor.data.formats.parts import (
    Piece,
    as_spelt,
    blank_words,
    column_as_written,
    frames_of,
    header,
    joined_frames,
    notes_of,
    parts,
    pieces_of,
    size_of_values,
)
from auditor.data.source import OPTIONS, Source, asked_source, select
from auditor.data.table import NOT_AUDITED, DataUse, ShownColumn, Table, check_bounds, is_file
from auditor.numerics.blocks import seal
from auditor.numerics.random_streams import stream
from auditor.results.files import TableFile, located, reading_of, split_name


@frozen
class Raw:
    """Columns as stored, before blanks are treated.

    Attributes
    ----------
    names
        Selected columns.
    read
        Yields some columns, in order.
    pieces
        Of a file.
    source
        Registered source, with all columns and the randomness before the draw.
    """

    names: list[str]
    read: Read
    pieces: Sequence[Piece] = ()
    source: Source | None = None
    every: Names = ()
    begun: Generator | None = None

    @property
    def is_large(self) -> bool:
        """Whether records stay out of memory."""
        return size_of_values(self.pieces, len(self.names)) > scan.HELD_BYTES

    def whole(self) -> pd.DataFrame:
        """Selected columns, in memory."""
        return joined_frames(self.read(self.names))

    def covariance(self, names: Names) -> Array | None:
        """Population covariance of some columns, if stated."""
        assert self.source is not None
        assert self.begun is not None
        found = self.source.population(deepcopy(self.begun))
        places = [self.every.index(name) for name in names]
        return None if found is None else found[np.ix_(places, places)]


def load_table(
    use: DataUse, rng: Generator, base: Path | None = None, varied: bool = True
) -> Table:
    """Table that a scenario requests, fit to be audited.

    Parameters
    ----------
    use
        Booleans of named columns become 0 and 1. By default all columns except class labels; with
        categories, numbers that vary. With ``missing: value`` a blank is a value. A blank unit is
        separate.
    rng
        Randomness of synthetic sources.
    base
        The scenario's folder, else the current one.
    varied
        Whether every attribute must vary.

    Returns
    -------
    Table
        Finite float64 values of shape (n, N), n ≥ 2; read-only. Above ``scan.HELD_BYTES``
        records stay on disk, unless reordered or converted.

    Raises
    ------
    DataError
        The table cannot be audited, or the request is invalid.
    PluginError
        The source is unknown.

    Examples
    --------
    >>> table = load_table(DataUse.model_construct(source="iris", columns=["petal_length"], rows=50), np.random.default_rng(0))
    >>> table.attributes, table.values.shape
    (('petal_length',), (50, 1))
    """
    rows, missing, order, key, unit = use.rows, use.missing, use.order, use.key, use.unit
    columns, chosen = Categories(use.bin, use.categorical).beside_columns(use.columns, use.dates)
    beside = {of: getattr(use, of) for of in ("key", *NOT_AUDITED)}
    trees = {name: hierarchy_of(tree) for name, tree in use.hierarchies.items()}
    is_changed = bool(trees or use.dates or any(beside.values()) or missing == "value")
    rules = {"dates": [*use.dates], "categorical": [*use.categorical]}
    raw = raw_columns(use.source, columns, rows, use.parameters, base, rng, **rules, **beside)
    if raw.source is not None:
        chosen = chosen.with_defaults(raw.source.domains(), raw.names)
    names, read, is_large, keys, units = raw.names, raw.read, raw.is_large, None, None
    held, shown = list[Frame](), list[ShownColumn]()
    if is_changed:
        frame = raw.whole()
        check_rows(len(frame), rows)
        for name in {key, unit, *use.shown} - {None, order} if raw.pieces else ():
            frame[str(name)] = column_as_written(raw.pieces, str(name))[:rows]
        frame = in_days(frame, use.dates)
        frame = in_order_of(frame, order)
        keys = None if key is None else record_keys(key, frame[key])
        units = None if unit is None else _units(frame[unit])
        if use.weight is not None:
            _check_weights(use.weight, frame[use.weight])
        for name in use.shown:
            shown += _as_shown(name, frame[name])
        shown += [] if order is None else _calendar(order, frame[order])
        shown += [] if units is None else [ShownColumn(0, str(unit), units)]
        frame = frame.drop(columns={order, key, unit, use.weight, *use.shown} - {None})
        if missing == "value":
            frame = with_value_for_blanks(frame)
        frame = coded(frame, trees, missing)
        names, is_large, held = list(map(str, frame)), False, [frame]
    elif not is_large:
        held = list(raw.read(names))
    if not is_large:
        read = partial(_held, held)
    found = cleaned(read, names, chosen, rows, missing, use.columns is not None, is_large)
    if is_changed and found.required:
        complete = are_complete(frame, found.required)
        keys = None if keys is None else keys.some(complete)
        units = None if units is None else units[complete]
        shown = [each.at(complete) for each in shown]
    bare = Table(found.numeric, found.numbers)
    check_width(bare.width)
    bare.check(varied)
    scan, content = bare.scan, bare.content
    categorical = found.categories(scan)
    if categorical is not None and raw.pieces and not use.dates:
        spelt = tuple(as_spelt(raw.pieces, attribute) for attribute in categorical.attributes)
        categorical = replace(categorical, attributes=spelt)
    if use.standardize and isinstance(content, FileRows):
        content = replace(content, scale=Scale.of(scan))
    elif use.standardize:
        content = np.array(content)
        Scale.of(scan).apply(content)
        seal(content)
    is_in_units = raw.source is not None and not (trees or use.dates or use.standardize)
    table = Table(
        found.numeric,
        content,
        use.source,
        getattr(raw.source, "description", ""),
        getattr(raw.source, "licence", ""),
        categorical,
        scan,
        use.standardize,
        trees,
        dict(use.dates),
        keys,
        units,
        tuple(shown),
        found.blanks,
        dropped=missing == "drop",
        bounds=use.bounds,
        population=partial(raw.covariance, found.numeric) if is_in_units else None,
    )
    check_bounds(table, use.bounds)
    return _in_batches(table, use.first_batch)


def _held(frames: Sequence[Frame], names: Names) -> Iterator[Frame]:
    return ({name: frame[name] for name in names} for frame in frames)


def _in_batches(table: Table, first: int | None) -> Table:
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
    use: DataUse, target: str, rng: Generator, base: Path | None = None
) -> NDArray[Any]:
    """One column, (n,), with the records of ``load_table``.

    Numbers are float64, other classes text. ``target`` may be a class label.

    Raises
    ------
    DataError
        The column is unknown, or a class is missing.
    """
    state = rng.bit_generator.state
    columns, _ = Categories({}, use.categorical).beside_columns(use.columns, use.dates)

    def read(names: Names | None) -> pd.DataFrame:
        rng.bit_generator.state = state  # to draw an equal table again
        given = use.source, names, use.rows, use.parameters, base, rng
        return in_order_of(raw_columns(*given, order=use.order).whole(), use.order)

    label = read([target])[target]
    if use.missing == "drop":
        label = label[~read(columns).isna().any(axis=1).to_numpy()]
    if label.isna().any():
        raise DataError(
            f"column {quoted(target)} cannot be predicted: {counted(int(label.isna().sum()), 'record')} miss it"
        )
    if kind_of(label) == "numbers":
        return label.to_numpy(dtype=float)
    return label.astype(str).to_numpy(dtype=np.str_)


def read_columns(path: str, columns: Names) -> pd.DataFrame:
    """Unchanged columns of a file, of any kind.

    Raises
    ------
    DataError
        The file does not exist, or lacks a column.
    """
    return raw_columns(path, columns).whole()


def file_notes(source: str, base: Path | None = None) -> list[str]:
    """Notes on reading a file, or the first part with notes."""
    found = files_of(source, base=base) if is_file(source) else []
    notes = list(next((notes for path in found if (notes := notes_of(path))), []))
    for name, words in blank_words([piece for path in found for piece in pieces_of(path)]).items():
        which = ", ".join(f"{word!r} ({number:,} times)" for word, number in sorted(words.items()))
        notes.append(
            f"{found[0].name}: column {quoted(name)}: {which} read as blank; "
            "to keep words as values state those that are none: `blank: []` under `data:`, or --blank ''"
        )
    return notes


def _units(cells: Series) -> Indices:
    codes, labels = pd.factorize(cells.where(cells.notna() & (cells.astype(str) != "")))
    blank = codes < 0
    codes[blank] = len(labels) + np.arange(blank.sum())
    return codes


def _as_shown(name: str, cells: Series) -> Iterator[ShownColumn]:
    yield from (ShownColumn(0, name, values) for _, values in readings(cells))
    if kind_of(cells) != "numbers" and cells.notna().all():
        yield from _calendar(name, cells)


def _calendar(name: str, cells: Series) -> Iterator[ShownColumn]:
    if (days := plain_days(cells)) is not None:
        yield from (ShownColumn(0, f"{name}: {at}", codes) for at, codes in calendar(days).items())


def _check_weights(name: str, cells: Series) -> None:
    w = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise DataError(
            f"column {quoted(name)}: weights are numbers of at least 0, and record {bad[0] + 1} has none "
            f"({counted(len(bad), 'record')})"
        )
    if not w.any():
        raise DataError(f"column {quoted(name)}: all weights are 0")


def source_pieces(source: str) -> tuple[list[str], int, Sequence[Piece]]:
    """A file's columns, number of unnamed columns, and pieces.

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
    return named, len(known) - len(named), raw_columns(source, named).pieces


def raw_columns(
    source: str,
    columns: Names | None = None,
    rows: int | None = None,
    parameters: Options | None = None,
    base: Path | None = None,
    rng: Generator | None = None,
    **beside: str | Names | None,
) -> Raw:
    """Selected columns of a file, a folder of parts, or a registered source.

    Parameters
    ----------
    rows
        First records, or records to draw.
    rng
        Randomness of a source; by default of a fixed seed.
    **beside
        Further columns, by their use: ``order``, ``key`` …

    Raises
    ------
    DataError, PluginError
        The source or a column is unknown, or the request is invalid.
    """
    if not is_file(source):
        return _drawn(source, columns, rows, parameters or {}, rng or stream(0, "data"), beside)
    paths = files_of(source, parameters, base)
    first = paths[0]
    names = select(header(first), columns, (), **beside)
    if "" in names:
        raise DataError(
            f"{first.name}: column {names.index('') + 1} has no name (is it the index of a data frame?); "
            "name those to audit with `columns:`"
        )
    check_width(len(names))
    pieces: list[Piece] = []
    for path in paths:
        known = header(path, empty=len(paths) > 1)
        lacks = [name for name in names if name not in known]
        if lacks:
            raise DataError(f"{path.name}: lacks column {listed(lacks)}, which {first.name} has")
        pieces += pieces_of(path)
    return Raw(names, partial(frames_of, pieces, rows=rows), pieces)


def files_of(
    source: str, parameters: Options | None = None, base: Path | None = None
) -> list[Path]:
    """A file, or the parts in a folder.

    Raises
    ------
    DataError
        It does not exist, or ``parameters`` are given.
    """
    for name in parameters or ():
        raise DataError(f"a file has no parameter {quoted(name)}{nearest(name, OPTIONS)}")
    there = located(source, base)
    if split_name(source)[0].lower().endswith(SUFFIXES):
        if not there:
            where = " in the current folder"
            if base is not None:
                where = " in the scenario's folder or the current one"
            where *= not Path(source).is_absolute()
            raise DataError(f"there is no file {quoted(source)}{where}")
    elif not (there := [path for path in there if path.is_dir()]):
        if source.endswith(("/", "\\")):
            raise DataError(f"there is no folder {quoted(source)}")
        raise DataError(
            f"source {quoted(source)} is neither a registered source nor {SAID}, nor a folder of parts"
        )
    path = there[0]
    if not path.is_dir():
        return [path]
    return [TableFile.of(part, reading_of(path)) for part in parts(path)]


def _drawn(
    name: str,
    columns: Names | None,
    rows: int | None,
    parameters: Options,
    rng: Generator,
    beside: Mapping[str, str | Names | None],
) -> Raw:
    with asked_source(name, parameters, rows) as made:
        begun = deepcopy(rng)
        table: Frame
        if type(made).frame is Source.frame:
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
        frame = {name: table[name][:rows] for name in names}
        return Raw(names, partial(_held, [frame]), (), made, every, begun)


# -- blanks and stored kinds of raw columns --------------------------------------------------------

Stored = Literal["date", "time", "integer", "float", ""]
"""Kind stored in a file; "" in a text file."""


def stored_kinds(
    data: str, columns: Names, frames: Iterable[pd.DataFrame], forms: Mapping[str, str]
) -> dict[str, Stored]:
    """Each column's kind, by its first values in the frames.

    For Parquet by its schema, as integers with gaps become floats in frames. ``forms``: formats of
    dates in text, if not ISO 8601.
    """
    if is_file(data):
        pieces = raw_columns(data, columns).pieces
        first = pieces[0].path
        frames = pieces[0].frames(columns, as_written=True) if is_parquet(first) else frames
        typed = is_parquet(first) or first.suffix.lower() in (".feather", ".arrow")
    else:
        typed = False
    found: dict[str, Stored] = {}
    for frame in frames:
        for name in columns:
            if name not in found and frame[name].notna().any():
                found[name] = _kind(frame[name], typed, forms.get(name))
        if len(found) == len(columns):
            break
    return {name: found.get(name, "") for name in columns}


def _kind(column: Series, typed: bool, form: str | None) -> Stored:
    # pandas treats Arrow's dates as times
    cells = column.astype(object) if isinstance(column.dtype, pd.ArrowDtype) else column
    days = plain_days(cells) if form is None else days_of(cells, form)
    if days is not None:
        whole = bool((days.dropna() % 1 == 0).all())
        return (
            "date"
            if whole and pd.api.types.infer_dtype(cells, skipna=True) in ("date", "string")
            else "time"
        )
    if not typed:
        return ""
    return "integer" if pd.api.types.is_integer_dtype(column.dtype) else "float"


class InStep:
    """Consecutive frames, read some records at a time."""

    def __init__(self, frames: Iterator[pd.DataFrame], what: str) -> None:
        self._frames = frames
        self._what = what
        self._left = pd.DataFrame()

    def take(self, rows: int) -> pd.DataFrame:
        """Next ``rows`` records.

        Raises
        ------
        DataError
            There are fewer.
        """
        held = [self._left] if len(self._left) else []
        while sum(map(len, held)) < rows:
            frame = next(self._frames, None)
            if frame is None:
                raise DataError(
                    f"{self._what} have fewer records than those perturbed; rows must match one to one"
                )
            held.append(frame)
        whole = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
        self._left = whole.iloc[rows:].reset_index(drop=True)
        return whole.iloc[:rows].reset_index(drop=True)

    def finish(self) -> None:
        """Check that no record is left.

        Raises
        ------
        DataError
            One is left: the inputs were read differently.
        """
        if len(self._left) or any(len(frame) for frame in self._frames):
            raise DataError(
                f"{self._what} have more records than those perturbed; rows must match one to one"
            )


def blank_cells(frames: Iterable[pd.DataFrame]) -> InStep:
    """Indicators of blank cells, to be read record by record."""
    return InStep((frame.isna() for frame in frames), "the blanks")


def kept_columns(
    data: str, columns: Names, rows: int | None = None, blanks: InStep | None = None
) -> InStep:
    """Columns of a file or folder of parts, without the records of ``blanks``.

    Raises
    ------
    DataError
        ``data`` is no file, or lacks a column.
    """
    column_names(data)  # raises the error
    frames = frames_of(raw_columns(data, columns).pieces, columns, rows, as_written=True)
    if blanks is not None:
        whole = (frame[~blanks.take(len(frame)).any(axis=1)] for frame in frames)
        frames = (frame.reset_index(drop=True) for frame in whole)
    return InStep(frames, "the columns to keep")


def column_names(data: str) -> list[str]:
    """Columns of a file, in order.

    Raises
    ------
    DataError
        ``data`` is no file.
    """
    if not is_file(data) or not located(data):
        raise DataError(f"columns can be kept of a file; {quoted(data)} is none")
    return header(files_of(data)[0])


def file_keys(key: str, data: str) -> RecordKeys:
    """Keys of a file's records, as written."""
    cells = column_as_written(raw_columns(data, [key]).pieces, key)
    return record_keys(key, pd.Series(cells, dtype=object))

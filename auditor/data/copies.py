"""Read copies from files, matched to the original by row or by key.

Cells of a generalised copy denote sets of values:

| cell | set |
| --- | --- |
| ``[20, 30[``, ``[20; 30)``, ``20-30``, ``20..30`` | an interval |
| ``<30``, ``>=65``, ``65+`` | numbers to the largest or from the smallest end of other cells |
| ``816**`` | values of this length, stars for any character |
| ``{flu, hiv}`` | the values named |
| ``*`` | every value |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base import AuditorError, DataError, listed, nearest, pd, quoted, scipy
from auditor.base.types import Array, Codes, Flags, Indices, Names, unprinted
from auditor.data.clean import cleaned
from auditor.data.columns.categorical_table import (
    Attribute,
    CategoricalTable,
    Categories,
    bin_codes,
    coded_in,
    codes_in,
    domain_size,
    joined,
    product,
    split,
    unspelt,
)
from auditor.data.columns.checks import (
    RecordKeys,
    Series,
    are_complete,
    check_variance,
    column_floats,
    in_days,
    kind_of,
    record_keys,
)
from auditor.data.columns.kinds import readings, spelling
from auditor.data.describe import renamed_columns
from auditor.data.formats.file_kinds import SAID, SUFFIXES
from auditor.data.formats.parts import column_as_written, frames_of, header, pieces_of, whole_frame
from auditor.data.load import read_columns
from auditor.data.table import DataUse, ShownColumn, Table
from auditor.results.files import TableFile, located, name_of, reading_of, split_name

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"[\[\](]?\s*({_NUMBER})\s*(?:,|;|\.\.\.?|-|–|to)\s*({_NUMBER})\s*[\[\])]?")
_BELOW = re.compile(rf"(?:<=?|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(?:>=?|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
EVERY = "*"


def interval(cell: str) -> tuple[float, float] | None:
    """Ends of an interval; None for other text.

    Examples
    --------
    >>> [interval(cell) for cell in ("[20, 30[", "-5 - -1", "65+", "<30", "*", "7", "816**")]
    [(20.0, 30.0), (-5.0, -1.0), (65.0, inf), (-inf, 30.0), (-inf, inf), (7.0, 7.0), None]
    """
    text = cell.strip()
    if text == EVERY:
        return -np.inf, np.inf
    if found := re.fullmatch(_NUMBER, text):
        return float(text), float(text)
    if found := _RANGE.fullmatch(text):
        low, high = float(found[1]), float(found[2])
        return (low, high) if low <= high else None
    if found := _BELOW.fullmatch(text):
        return -np.inf, float(found[1])
    if found := _ABOVE.fullmatch(text):
        return float(found[1] or found[2]), np.inf
    return None


def middles(column: Series) -> Array | None:
    """Middle of every cell's interval, shape (n,), NaN for a blank.

    None if a cell is no interval, or none has a finite end.
    """
    codes, different = pd.factorize(column)
    found = [interval(str(cell)) for cell in different]
    ends = np.array([each for each in found if each is not None]).reshape(-1, 2)
    finite = ends[np.isfinite(ends)]
    if len(ends) < len(found) or not finite.size:
        return None
    return np.append(np.clip(ends, finite.min(), finite.max()).mean(axis=1), np.nan)[codes]


def stands_for_some(cell: Any, labels: Sequence[Any]) -> bool:
    """Whether a cell is a set with a label of the column.

    Examples
    --------
    >>> [stands_for_some(cell, [81667, "x"]) for cell in ("816**", "*", "817**", "{x, y}", "[80000, 90000[", "y")]
    [True, True, False, True, True, False]
    """
    text, known = str(cell).strip(), {unspelt(label) for label in labels}
    if text == EVERY:
        return True
    if text.startswith("{") and text.endswith("}"):
        return any(unspelt(part) in known for part in text[1:-1].split(","))
    if EVERY in text:
        mask = re.compile(re.escape(text).replace(re.escape(EVERY), "."))
        return any(mask.fullmatch(str(label)) for label in labels)
    ends = interval(text)
    numbers = pd.to_numeric(pd.Series(list(labels), dtype=object), errors="coerce")
    return ends is not None and bool(numbers.between(*ends).any())


def as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Frame with the middle of each interval in columns of intervals."""
    text = frame.select_dtypes(["object", "string"])
    found = {name: middles(column) for name, column in text.items()}
    return frame.assign(**{str(name): x for name, x in found.items() if x is not None})


JOIN_REMEDY = "join files with `key: COLUMN` where a column identifies the records"


@unprinted
class Copy:
    """A copy in the original's records and columns.

    Attributes
    ----------
    values : ndarray of shape (n, N)
        Numbers or codes; NaN in cells, records and columns that the copy lacks.
    held : ndarray of shape (n,)
        Whether the copy has the record.
    said : ndarray of shape (N,)
        Whether the copy has any cell of the column.
    others
        Columns that the original lacks.
    beyond
        Number of records that the original lacks.
    """

    name: str
    values: Array
    held: Flags
    said: Flags
    others: Names
    beyond: int
    rows: Indices
    """File row of each original record, shape (n,), −1 where the copy lacks it."""
    order: Array | None
    """Normal scores of the records' file positions, shape (n,), NaN for absent records; None in the
    original's order.
    """
    notes: Names
    """Columns that are read from columns of other names."""

    @property
    def cells(self) -> Array:
        """Values, and position in a file of another order; NaN where missing."""
        return self.values if self.order is None else np.column_stack([self.values, self.order])

    @property
    def suppressed(self) -> Flags:
        """Missing cells of present records and columns, shape (n, N)."""
        return np.isnan(self.values) & self.held[:, None] & self.said

    def full(self, columns: NDArray[Any] | slice) -> Flags:
        """Records complete in some columns, shape (n,)."""
        return np.asarray(~np.isnan(self.values[:, columns]).any(axis=1))


@contextmanager
def named_after(path: Path) -> Iterator[None]:
    """Prefix errors with the file's name."""
    try:
        yield
    except AuditorError as error:
        prefix = "" if str(error).startswith(path.name) else f"{path.name}: "
        raise AuditorError(f"{prefix}{error}") from None


def copy_file(name: str, base: Path | None, original: str) -> Path:
    """Path of a copy, relative to the scenario's folder, else the current one.

    Blanks are read as in ``original``.
    """
    for path in located(name, base):
        if path.is_file():
            blank = split_name(original)[1].blank
            return (
                path
                if blank is None
                else TableFile.of(path, replace(reading_of(path), blank=blank))
            )
    raise AuditorError(f"copies: no such file: {quoted(name)}")


def check_joined_by_row(asked: DataUse) -> None:
    """Refuse matching by row if data are reordered or incomplete."""
    if asked.order is not None:
        raise AuditorError(
            f"published copies are in the original's own order: sort all files alike, and leave `data.order` out, or {JOIN_REMEDY}"
        )
    if asked.missing == "drop" and asked.rows is not None:
        raise AuditorError(
            "with `rows` and `missing: drop` together nobody can tell which records the copies still match; "
            f"{JOIN_REMEDY}"
        )


def read_copy(
    path: Path,
    table: Table,
    key: str | None = None,
    exact: bool = False,
    why: str = "",
    categories: bool = False,
) -> Copy:
    """Copy from a file, matched in order or by the ``key`` column.

    ``exact`` refuses surplus rows. ``why`` explains another number of rows. ``categories`` reads
    the table's categories: the copy needs all their columns, with bins as numbers or names.

    Raises
    ------
    AuditorError
        The file is missing or has no column of the original. A cell is no number or outside the
        domain. Keys are invalid, or the number of rows differs.
    """
    data = table.categorical if categories else None
    names = table.attributes if data is None else data.names
    with named_after(path):
        if path.suffix.lower() not in SUFFIXES:
            raise DataError(f"a copy is {SAID}")
        known, notes = header(path), list[str]()
        frame = _columns(path, table, data, notes)
        values = np.full((len(frame), len(names)), np.nan)
        if data is None:
            had = [name for name in names if name in frame]
            found = cleaned(lambda _: [frame], had, Categories())
            values[:, [names.index(name) for name in had]] = found.numbers
            said = ~np.isnan(values).all(axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                variances = np.nanvar(values[:, said], axis=0)
            check_variance(list(compress(names, said)), variances)
            complete = np.isfinite(values).all(axis=1)
        else:
            for name in (a.name for a in data.attributes if "" in a.labels):  # `missing: value`
                frame[name] = frame[name].astype(object).fillna("")
            complete = are_complete(frame, names)
        keys = table.keys if key else None
        kept, places = _matched(path, complete, keys, table.rows, table.dropped, exact, why)
        for j, attribute in enumerate(() if data is None else data.attributes):
            values[kept, j] = _codes(frame[attribute.name].iloc[kept], attribute)
    joined, rows = np.full((table.rows, len(names)), np.nan), np.full(table.rows, -1)
    joined[places], rows[places] = values[kept], kept
    return Copy(
        path.name,
        joined,
        rows >= 0,
        np.isfinite(values).any(axis=0),
        tuple(name for name in known if name not in (*names, key, "")),
        len(frame) - len(kept) if key else 0,
        rows,
        _order(places, table.rows),
        tuple(notes),
    )


def codes_of(copy: Copy, data: CategoricalTable) -> Codes:
    """Codes of a copy of categories, shape (n,); 0 where missing."""
    full = copy.full(slice(None))[:, None]
    return joined(data.attributes, list(np.where(full, copy.values, 0.0).astype(int).T))


def _matched(
    path: Path,
    complete: Flags,
    keys: RecordKeys | None,
    rows: int,
    dropped: bool,
    exact: bool,
    why: str,
) -> tuple[Indices, Indices]:
    """File rows of original records, and their places there.

    Matched by key or in order; ``missing: drop`` also applies to the copy.
    """
    kept = np.arange(len(complete))
    if keys is None:
        kept = np.flatnonzero(complete) if dropped and len(kept) > rows else kept
        places = np.arange(len(kept))
        if len(kept) < rows or (exact and len(kept) > rows):
            raise AuditorError(
                f"{path.name}: has {len(kept):,} rows where the original has {rows:,}; rows must match one to "
                f"one{why}; or {JOIN_REMEDY}"
            )
    else:
        known = header(path)
        if keys.name not in known:
            raise DataError(
                f"there is no key column {quoted(keys.name)}{nearest(keys.name, filter(None, known))}"
            )
        cells = pd.Series(column_as_written(pieces_of(path), keys.name), dtype=object)
        places = record_keys(keys.name, cells).places_in(keys)
    there = (places >= 0) & (places < rows)
    return kept[there], places[there]


def _order(places: Indices, rows: int) -> Array | None:
    """Normal scores of file positions; None in the original's order."""
    if (np.diff(places) > 0).all():
        return None
    scores = np.full(rows, np.nan)
    scores[places] = scipy.special.ndtri((np.arange(len(places)) + 0.5) / len(places))
    return scores


def _columns(
    path: Path, table: Table, data: CategoricalTable | None, notes: list[str]
) -> pd.DataFrame:
    """Original columns of a copy, also under other names.

    Renamed numbers follow their best line, categories their commonest original.
    """
    known, pieces = header(path), pieces_of(path)
    names = table.attributes if data is None else data.names
    had, lacking = ([n for n in names if (n in known) == there] for there in (True, False))
    others = [name for name in known if name not in (*names, "")]
    frame = whole_frame(pieces, had) if had else pd.DataFrame()
    if data is None:
        frame = in_days(frame, {name: table.dates[name] for name in had if name in table.dates})
        frame = as_numbers(frame)
    if lacking and others:
        shown = whole_frame(pieces, others)
        shown = as_numbers(shown) if data is None else shown
        if data is None:
            X = pd.DataFrame(table.values, columns=list(names))
        else:
            each = zip(names, data.labelled(data.codes), strict=True)
            X = pd.DataFrame(
                {n: pd.Series(codes).map(dict(enumerate(labels))) for n, (labels, codes) in each}
            )
        for column, name in renamed_columns(X[lacking], shown).items():
            if data is not None:
                frame[column] = shown[name].map(pd.crosstab(shown[name], X[column]).idxmax(axis=1))
            elif kind_of(shown[name]) == "numbers":
                x = column_floats(shown[name])
                there = np.isfinite(x)
                frame[column] = np.polynomial.Polynomial.fit(x[there], X[column][there], 1)(x)
            if column in frame:
                notes.append(
                    f"{quoted(path.name)}: column {quoted(column)} is read from {quoted(name)}, which follows it"
                )
    still = [name for name in lacking if name not in frame]
    if data is not None and still:
        read_columns(name_of(path), still)  # raises the error
    if not len(frame.columns):
        raise DataError(
            f"has none of the original's columns, {listed(names)}; it has {listed(filter(None, known))}"
        )
    return frame


def with_sets(table: Table, paths: Sequence[Path]) -> Table:
    """Table whose domains also have copies' sets, like ``816**`` or ``[20, 30[``."""
    data = table.categorical
    if data is None or data.streamed:
        return table
    wider, known = [], [header(path) for path in paths]
    for attribute in data.attributes:
        labels = dict.fromkeys(attribute.labels)
        for path, names in zip(paths, known, strict=True):
            if attribute.edges is None and attribute.name in names:
                cells = read_columns(name_of(path), [attribute.name])[attribute.name].dropna()
                cells = cells[codes_in(attribute.labels, cells) < 0].drop_duplicates()
                labels |= {c: None for c in cells if stands_for_some(c, attribute.labels)}
        more = len(labels) > attribute.size
        wider.append(Attribute(attribute.name, tuple(labels)) if more else attribute)
    if domain_size(wider) == data.size:
        return table
    return replace(table, categorical=product(wider, split(data, data.codes)))


def _codes(column: Series, attribute: Attribute) -> Array:
    name, given = attribute.name, column.notna().to_numpy()
    if attribute.edges is not None and kind_of(column[given]) == "numbers":
        return np.where(given, bin_codes(column_floats(column), attribute.edges), np.nan)
    return coded_in(
        attribute.labels,
        name,
        column,
        f"outside the original's domain; declare every value that a copy may show, as `categorical: {{{name}: [...]}}`",
    )


MOST_COLUMNS = 40
"""Columns of one file that are used, the first ones."""


def shown_columns(
    files: Iterable[tuple[Path, Indices, Names]], audited: Names = ()
) -> list[ShownColumn]:
    """Columns of copies as numbers, codes and text; spelling of ``audited`` ones.

    Parameters
    ----------
    files : iterable of (path, rows, names)
        ``rows``: each original record's file row, shape (n,), −1 if absent. Of ``names`` the first
        ``MOST_COLUMNS`` are read.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    found: dict[str, ShownColumn] = {}
    for number, (path, rows, columns) in enumerate(files, start=1):
        names = [*columns[:MOST_COLUMNS]]
        written = [name for name in header(path) if name in audited][:MOST_COLUMNS]
        if not names + written:
            continue
        frames = frames_of(pieces_of(path), names + written, as_written=True)
        frame = pd.concat(list(frames), ignore_index=True)
        for name, column in frame.items():
            cells = column.reindex(rows).reset_index(drop=True)
            form = spelling(cells) if name in written else None
            forms = [] if form is None else [("spelling", form)]
            for kind, values in forms if name in written else readings(cells):
                same = found.get(f"{name} {kind}")
                if same is None or not np.array_equal(same.values, values):
                    key = f"{name} {kind}" if same is None else f"{name} {kind} {len(found)}"
                    found[key] = ShownColumn(number, name, values)
    return list(found.values())

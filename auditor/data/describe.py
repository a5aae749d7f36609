"""Description of a table or a sample: kinds of columns, dependence of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from auditor.base import pd, scipy
from auditor.base.types import Names, frozen
from auditor.data.columns.checks import (
    NESTED,
    Series,
    check_rows,
    column_floats,
    days_of,
    follows_the_one_before,
    in_order_of,
    kind_of,
)
from auditor.data.columns.kinds import FEWEST_EACH, MOST_NUMBERS, Column, column_of
from auditor.data.formats.parts import (
    Piece,
    coded_columns,
    column_as_written,
    size_of_values,
    whole_frame,
)
from auditor.data.load import raw_columns, source_pieces
from auditor.data.table import is_file

MOST_PIECES = 8
"""Parts of a large file that are sampled: first, last, and evenly between; a few megabytes each for
CSV.
"""
MOST_CELLS = 4_000_000
"""Cells sampled from a file with known record counts: some 200 MB."""
FEWEST_ROWS = 200
MOST_LEFT = 0.5
"""Largest share of variance within groups for records that share values."""
LEAST_FOLLOWED = 0.5
"""Least dependence on a column of the original for a column under another name."""
LEAST_CORRELATION = 0.1
"""Smallest relevant rank correlation of consecutive records; below, a copy's residual error changes
by under 1 %.
"""
FALSE_ALARM = 1e-4
"""Probability of reported dependence for unordered rows, over all columns."""


@frozen
class Description:
    """Description of a table, without its values.

    Attributes
    ----------
    columns
        In file order, without unnamed ones.
    rows, seen
        Number of records (estimated for a sample), and of records read.
    order
        Column that numbers records, if its order has more dependence than the file's.
    dependent
        Column → significant rank correlation of consecutive records, in that order.
    varied_by
        Fewest first records in which every usable column varies; infinite if more than the sample.
    grouped
        Column → columns that it mostly determines.
    """

    columns: tuple[Column, ...]
    unnamed: int
    rows: int
    seen: int
    order: str | None
    dependent: dict[str, float]
    varied_by: float
    grouped: dict[str, list[str]]

    @property
    def whole(self) -> bool:
        """Whether all records were read."""
        return self.seen == self.rows


def describe(source: str) -> Description:
    """Description of a source, as a scenario names it.

    Raises
    ------
    DataError
        It cannot be read, or has fewer than 2 records.
    PluginError
        The source is unknown.
    """
    unnamed = 0
    if is_file(source):
        names, unnamed, pieces = source_pieces(source)
        runs, rows = _sampled(pieces, names)
        coded = coded_columns(pieces[0])
    else:
        runs, coded = [raw_columns(source).whole()], frozenset()
        rows = len(runs[0])
    check_rows(sum(map(len, runs)), None)
    return replace(describe_frames(runs, rows, coded), unnamed=unnamed)


def categories_in_clear(source: str, found: Description, copies: Names) -> set[str]:
    """Categorical columns that some copy shows unchanged, row by row.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    original, shown = source_pieces(source)[2] if is_file(source) else [], set[str]()
    for copy in copies if original else ():
        names, _, pieces = source_pieces(copy)
        for column in found.columns:
            if column.kind == "category" and column.name in names:
                ours, theirs = (column_as_written(each, column.name) for each in (original, pieces))
                if ours == theirs:
                    shown.add(column.name)
    return shown


def other_name(cells: Series, frame: pd.DataFrame) -> str | None:
    """Column of a copy that follows an original's most closely, in any coding.

    None unless it halves wrong guesses of a category, or has rank correlation ½.

    Examples
    --------
    >>> copy = pd.DataFrame({"a": [7, 8, 9] * 10, "gender": [1, 2] * 15})
    >>> other_name(pd.Series(["m", "f"] * 15), copy), other_name(pd.Series([3.5, 2, 1] * 10), copy)
    ('gender', 'a')
    """
    found = {}
    for name, column in frame.items():
        if kind_of(cells) == kind_of(column) == "numbers" and cells.nunique() > MOST_NUMBERS:
            follows = abs(cells.rank().corr(column.rank()))
        elif column.nunique() * FEWEST_EACH <= len(column):
            counts = pd.crosstab(column, cells)
            usual = counts.sum(axis=0).max()
            follows = (counts.max(axis=1).sum() - usual) / max(1, counts.to_numpy().sum() - usual)
        else:
            continue
        if follows >= LEAST_FOLLOWED:
            found[str(name)] = follows
    return max(found, key=lambda name: found[name], default=None)


def renamed_columns(original: pd.DataFrame, shown: pd.DataFrame) -> dict[str, str]:
    """Original columns → their ``other_name`` in a copy."""
    if len(original) != len(shown):
        return {}
    found = {str(name): other_name(cells, shown) for name, cells in original.items()}
    return {name: other for name, other in found.items() if other}


def grouped_by(keys: pd.DataFrame, columns: pd.DataFrame) -> Iterator[tuple[str, str, float]]:
    """Yield columns, columns that they determine, and the share of variance left.

    At most `MOST_LEFT`, within groups of two or more with `FEWEST_ROWS` records in all.

    Examples
    --------
    >>> keys = pd.DataFrame({"household": np.arange(400) // 2})
    >>> list(grouped_by(keys, pd.DataFrame({"rent": np.arange(400) // 2 * 7 % 31})))
    [('household', 'rent', 0.0)]
    """
    for key, cells in keys.reset_index(drop=True).items():
        if kind_of(cells) == NESTED:
            continue
        codes, _ = pd.factorize(cells)
        several = (codes >= 0) & (np.bincount(codes + 1)[codes + 1] > 1)
        if several.sum() < FEWEST_ROWS:
            continue
        for name, column in columns.items():
            if name == key or kind_of(column) != "numbers":
                continue
            x, group = pd.Series(column_floats(column)[several]), codes[several]
            freedom = len(x) - len(np.unique(group))
            within = ((x - x.groupby(group).transform("mean")) ** 2).sum() / max(1, freedom)
            left = float(within / x.var()) if x.var() > 0 else 1.0
            if left <= MOST_LEFT:
                yield str(key), str(name), left


def renamed_in(source: str, found: Description, copies: Names) -> dict[str, str]:
    """Columns → their name in a copy, in any unit or coding.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    if not is_file(source):
        return {}
    ours, _, pieces = source_pieces(source)
    renamed: dict[str, str] = {}
    for copy in copies:
        names, _, parts = source_pieces(copy)
        lacking = [c.name for c in found.columns if c.used and c.name not in names]
        others = [name for name in names if name not in ours]
        if lacking and others:
            renamed |= renamed_columns(whole_frame(pieces, lacking), whole_frame(parts, others))
    return renamed


def describe_frames(
    runs: Sequence[pd.DataFrame], rows: int | None = None, coded: Collection[str] = ()
) -> Description:
    """Description of a table from runs of consecutive records.

    See ``column_of``.

    Examples
    --------
    >>> found = describe_frames([pd.DataFrame({"no": range(20), "height": [1.8, 1.7, 1.75, 1.6] * 5})])
    >>> [(column.name, column.kind) for column in found.columns], found.whole
    ([('no', 'identifier'), ('height', 'category')], True)
    """
    seen = sum(map(len, runs))
    rows = seen if rows is None else rows
    frame = runs[0] if len(runs) == 1 else pd.concat(runs, ignore_index=True)
    columns = tuple(column_of(str(name), frame[name], rows, str(name) in coded) for name in frame)
    dependent = _dependent(runs, columns)
    order = None
    if seen == rows:  # a sample lacks neighbours in another order
        for column in (
            column for column in columns if column.kind == "identifier" and not column.blank
        ):
            there = _dependent([in_order_of(frame, column.name)], columns)
            if sum(there.values()) > sum(dependent.values()) + LEAST_CORRELATION:
                order, dependent = column.name, there
    varied_by = max(
        (_varied_by(runs[0][column.name]) for column in columns if column.used), default=0.0
    )
    numbers = [column.name for column in columns if column.kind == "number"]
    grouped: dict[str, list[str]] = {}
    pairs = {(key, name) for key, name, _ in grouped_by(frame, frame[numbers])}
    for key, name in sorted(pairs):
        # of two that determine one another the finer one identifies
        if (name, key) not in pairs or frame[key].nunique() > frame[name].nunique():
            grouped.setdefault(key, []).append(name)
    return Description(columns, 0, rows, seen, order, dependent, varied_by, grouped)


def _sampled(pieces: Sequence[Piece], names: Names) -> tuple[list[pd.DataFrame], int]:
    places = np.unique(
        np.linspace(0, len(pieces) - 1, min(len(pieces), MOST_PIECES)).round().astype(int)
    )
    taken = [pieces[place] for place in places]
    if all(piece.rows >= 0 for piece in pieces):
        most = max(FEWEST_ROWS, MOST_CELLS // (len(names) * len(taken)))
        taken = [replace(piece, rows=min(piece.rows, most)) for piece in taken]
        return [whole_frame([piece], names) for piece in taken], sum(piece.rows for piece in pieces)
    runs = [whole_frame([piece], names) for piece in taken]
    share = size_of_values(taken, 1) / size_of_values(pieces, 1)
    return runs, round(sum(map(len, runs)) / share)


def _varied_by(cells: Series) -> float:
    there = cells.notna().to_numpy()
    if not there.any():
        return np.inf
    other = there & (cells != cells[there].iloc[0]).to_numpy(dtype=bool, na_value=False)
    return float(other.argmax()) + 1.0 if other.any() else np.inf


def _dependent(runs: Sequence[pd.DataFrame], columns: Sequence[Column]) -> dict[str, float]:
    """Columns with relevant and significant serial dependence.

    The rank correlation of n independent pairs is normal with variance 1/n.
    """
    numeric = [column for column in columns if column.used and column.numeric]
    found = {}
    for column in numeric:
        r, pairs = follows_the_one_before(
            [days_of(run[column.name], column.form).astype(float) for run in runs]
        )
        bound = -scipy.special.ndtri(FALSE_ALARM / (2 * len(numeric))) / sqrt(max(1, pairs))
        if abs(r) > max(bound, LEAST_CORRELATION):
            found[column.name] = r
    return found

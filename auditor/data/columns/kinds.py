"""Kind of a column by its values: the first rule that fits.

| kind | rule |
| --- | --- |
| unusable | no values, all equal, or more blanks than values |
| unusable | infinite numbers, numbers as text (also with marks or among text), or other objects |
| identifier | distinct numbers that increase evenly by row, or fill half of their range or more |
| identifier | distinct: whole numbers in a column named an id, dates in order of time, or text |
| date | typed dates, or text that one of `FORMATS` reads in every cell |
| category | booleans; numbers with at most 10 distinct values, text and codes with at most 50; on average 5 records each |
| unusable | other codes: whole numbers, some with a leading zero, or in a column named a postcode, a telephone or similar |
| number | other numbers, also distinct ones, such as salaries to the cent |
| free text | other text |
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from auditor.base import pd
from auditor.base.types import Array, Indices, frozen
from auditor.data.columns.checks import (
    FEWEST_STEPS,
    LARGEST_VARIANCE,
    LEAST_VARIANCE,
    NESTED,
    Series,
    column_floats,
    days_of,
    kind_of,
)
from auditor.data.columns.scan import Grid

FORMATS = (
    None,
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%b %d, %Y",
)
"""Date formats, None for ISO 8601; the owner must decide if two read a text differently."""
MOST_NUMBERS, MOST_WORDS = 10, 50
"""Most distinct values of a category of numbers, and of one of text."""
FEWEST_EACH = 5
"""Least mean number of records per value of a category."""
MOST_BLANK = 0.5
FEWEST_COUNTED = 20
"""Fewest numbers for a count in any order: a few distinct ages could fill half of their range."""
LEAST_HEAP = 0.05
"""Least share of the records at one value, and ten times its share under an even spread, for a
heap.
"""
MOST_EVEN = 0.9
"""Share of equal steps between records in a count: removed or sampled records leave gaps."""
_WORD = re.compile(r"(?:^|[^a-z])(?:id|uid|uuid|guid|ssn|pk)(?:$|[^a-z])", re.IGNORECASE)
_CAPITAL = re.compile(r"[a-z](?:ID|Id)(?:$|[^a-z])")
_CODE = re.compile(
    r"(?:^|[^a-z])(?:zip|zip_?code|post_?code|postal_?code|plz|phone|telephone|fax|fips)(?:$|[^a-z])",
    re.IGNORECASE,
)
"""Names of codes: noise on a postcode is useless, as neighbouring numbers need not be neighbouring
places.
"""

_AMOUNT = re.compile(
    r"[-+(]?\s*[$€£¥]?\s*[-+]?\d{1,3}(?:[.,'’\s]?\d{3})*(?:[.,]\d+)?\s*[%$€£¥]?\)?"
)
"""Text that reads as a number: such a column may be a salary, not an identifier."""

Kind = Literal["number", "date", "category", "identifier", "free text", "unusable"]
USED = ("number", "date", "category")
"""The kinds that are audited."""


@frozen
class Column:
    """Description of one column, without its values.

    Attributes
    ----------
    why
        Reason for the kind, to follow «it».
    blank
        Share of records without a value.
    values
        Number of distinct values.
    numeric
        Whether it can be audited as numbers: also dates, and categories of numbers.
    step
        Greatest common step (days for dates); NaN if none.
    heap
        Share of the most frequent value, if a heap, else 0.
    form
        Format of dates written as text; None for ISO 8601.
    """

    name: str
    kind: Kind
    why: str
    blank: float = 0.0
    values: int = 0
    numeric: bool = False
    step: float = float("nan")
    heap: float = 0.0
    form: str | None = None

    @property
    def used(self) -> bool:
        """Whether an audit can use it."""
        return self.kind in USED


def column_of(
    name: str, cells: Series, records: float | None = None, coded: bool = False
) -> Column:
    """Description of a column, from its values in file order.

    ``records``: of the whole table, by default the number of cells. ``coded``: numbers have leading
    zeros.

    Examples
    --------
    >>> column_of("salary", pd.Series([1200.5, 1800.25, 950.75, 2210.1])).kind, column_of("no", pd.Series([4, 5, 6, 7])).kind
    ('number', 'identifier')
    """
    there = cells.dropna()
    blank, kind = 1.0 - len(there) / max(1, len(cells)), kind_of(cells)
    values = 0 if kind == NESTED else int(there.nunique())
    column = Column(name, "unusable", "", blank, values)
    if there.empty:
        return replace(column, why="has no values")
    if blank > MOST_BLANK:
        return replace(column, why="has more blanks than values")
    if kind == NESTED:
        return replace(column, why="holds values of several kinds, or nested ones")
    if values == 1:
        return replace(column, why="is the same in every record")
    if kind in ("text", "categories"):
        return _text(column, there)
    if kind == "dates":
        return _date(column, there, None)
    if kind == "booleans":
        return replace(column, kind="category", why="holds booleans")
    if kind != "numbers":
        return replace(column, why=f"holds {kind}")
    column = _number(column, there, len(there) if records is None else records * (1.0 - blank))
    if column.kind == "number" and (coded or (column.step >= 1.0 and _CODE.search(name))):
        few: Kind = "category" if _is_few(values, MOST_WORDS, len(there)) else "unusable"
        return Column(
            name,
            few,
            "holds codes written in digits, to which no noise can be added",
            blank,
            values,
        )
    return column


def identifies(name: str, x: Array, records: float) -> bool:
    """Whether a column's first numbers (NaN if missing) identify records.

    Examples
    --------
    >>> identifies("no", np.arange(4.0, 9.0), 5), identifies("age", np.array([31.0, 44.0, 31.0, 58.0]), 4)
    (True, False)
    """
    there = x[np.isfinite(x)]
    return 0 < len(there) == len(np.unique(there)) and bool(_counts(name, there, records))


def _number(column: Column, there: Series, records: float) -> Column:
    x = column_floats(there)
    if not np.isfinite(x).all():
        return replace(column, why="has infinite values")
    if not _varies(x):
        return replace(
            column, why="varies by less, or by more, than double precision can compute with"
        )
    counts = _counts(column.name, x, records) if column.values == len(x) else ""
    if counts:
        return replace(column, kind="identifier", why=counts)
    column = replace(column, numeric=True, step=_step(x), heap=_heap(there, column.values))
    if _is_few(column.values, MOST_NUMBERS, len(x)):
        return replace(column, kind="category", why="holds numbers with few different values")
    return replace(column, kind="number", why="holds numbers")


def _step(x: Array) -> float:
    grid = Grid()
    grid.add(x)
    return grid.step


def _varies(x: Array) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        variance = float(np.var(x))
    return (
        LEAST_VARIANCE <= variance <= LARGEST_VARIANCE
        and variance** 0.5 >= FEWEST_STEPS * np.spacing(np.abs(x).max())
    )


def _counts(name: str, x: Array, records: float) -> str:
    gaps = np.diff(x)
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    if (
        len(x) > 3
        and usual != 0.0
        and np.mean(np.abs(gaps - usual) <= 1e-9 * abs(usual)) >= MOST_EVEN
    ):
        return "goes up or down evenly from record to record, and numbers them"
    # a count may start off its step, and be inexact as a double
    if len(x) >= FEWEST_COUNTED and np.ptp(x) / _step(x - x.min()) + 1 <= 2.0 * records:
        return "is different in every record and sequential, and numbers them"
    if (x == np.rint(x)).all() and (_WORD.search(name) or _CAPITAL.search(name)):
        return "is a whole number, different in every record, and is named as an identifier"
    return ""


def _heap(there: Series, values: int) -> float:
    share = float(there.value_counts(normalize=True).iloc[0])
    return share if values > MOST_NUMBERS and share >= max(LEAST_HEAP, 10.0 / values) else 0.0


def _is_few(values: int, most: int, cells: int) -> bool:
    return values <= most and values * FEWEST_EACH <= cells


def _text(column: Column, there: Series) -> Column:
    text = there.astype(object).astype(str)
    different = pd.Series(text.unique())
    numbers = bool(pd.to_numeric(different, errors="coerce").notna().all())
    formats = [] if numbers else _formats(different)
    if len(formats) == 1:
        return _date(column, there, formats[0])
    if formats:
        several = " or ".join(map(str, formats))
        return replace(column, why=f"holds dates that read as {several}, and nothing tells which")
    if _is_few(column.values, MOST_WORDS, len(there)):
        return replace(column, kind="category", why="holds text with few different values")
    if numbers:
        return replace(column, why="holds numbers written as text")
    amounts = text.str.fullmatch(_AMOUNT)
    if amounts.all():
        why = "holds numbers with marks that are not read, as of money or per cent: write them without"
        return replace(column, why=why)
    if amounts.mean() > MOST_BLANK:
        why = "holds numbers and some text: leave that blank if it stands for none"
        return replace(column, why=why)
    if column.values == len(there):
        return replace(column, kind="identifier", why="is text that is different in every record")
    return replace(column, kind="free text", why="is text with many different values")


def _formats(different: Series) -> list[str | None]:
    found: dict[str | None, Series] = {}
    for form in FORMATS:
        if days_of(different.head(10), form).notna().all():
            days = days_of(different, form)
            if days.notna().all() and not any(days.equals(other) for other in found.values()):
                found[form] = days
    return list(found)


def _date(column: Column, there: Series, form: str | None) -> Column:
    days = days_of(there, form).to_numpy(dtype=float)
    if np.isnan(days).any():
        return replace(column, why="holds dates beyond what can be counted in days")
    if not _varies(days):
        return replace(column, why="is the same day in every record")
    gaps = np.diff(days)
    if len(gaps) > 1 and ((gaps > 0).all() or (gaps < 0).all()):
        return replace(
            column,
            kind="identifier",
            why="holds dates that are different in every record and in order: it says which came after which",
        )
    heap = _heap(there, column.values)
    return replace(
        column, kind="date", why="holds dates", numeric=True, step=_step(days), heap=heap, form=form
    )


# -- Readings of a shown column as numbers, codes and text ------------------------------------------


FEWEST_NUMBERS, MOST_RUNS, MOST_PLACES = 12, 40, 24
"""Different values from which on a column is read as numbers, runs of digits, and characters of text
that are read."""
FEWEST_PER_CODE = 20
"""Records per code from which on the originals' mean of a code is a rule, and no record's value."""


def number_readings(cells: Series) -> list[Array]:
    """Each reading of a column as numbers, shapes (n,); NaN where none.

    Text has all digits, place by length and letters (codes of any base), each of several runs of
    digits (references), and days by each format that fits most cells.
    """
    text = cells.astype("string").str.strip().str.lower()
    # a double cannot hold nanoseconds since 1970
    numbers = _as_floats(text if kind_of(cells) == "dates" else cells)
    if np.isfinite(numbers).sum() == cells.notna().sum():
        return [numbers]
    places = text.str.rjust(int(text.str.len().max()), "0").rank(method="dense")
    runs = text.str.extractall(r"(\d+)")[0].unstack().reindex(cells.index)
    parts = [runs[k] for k in runs.columns[:MOST_RUNS]] if runs.shape[1] > 1 else []
    readings: list[Any] = [text.str.replace(r"\D", "", regex=True), places, *parts]
    some = text.dropna()[: 2 * FEWEST_NUMBERS]
    readings += [
        days_of(text, form) for form in FORMATS if days_of(some, form).count() > len(some) / 2
    ]
    return [_as_floats(one) for one in readings]


def _as_floats(cells: Series) -> Array:
    return pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float, na_value=np.nan)


def readings(cells: pd.Series[str]) -> list[tuple[str, NDArray[Any]]]:
    """Kinds and values of a shown column: numbers, codes without an order, and text."""
    if kind_of(cells) == "bytes":
        cells = cells.map(bytes.hex, na_action="ignore")
    given = cells.where(cells.notna() & (cells.astype(str).str.strip() != ""))
    codes, labels = pd.factorize(given.astype(str).where(given.notna()), sort=True)
    found: list[tuple[str, NDArray[Any]]] = []
    for k, numbers in enumerate(number_readings(given) if len(labels) >= FEWEST_NUMBERS else ()):
        there = np.isfinite(numbers)
        if 2 * there.sum() > given.notna().sum():
            found.append(
                (
                    f"number {k}",
                    np.where(there, numbers, np.quantile(numbers[there], 0.5, method="nearest")),
                )
            )
    if 1 < len(labels) + (codes < 0).any() and len(labels) < len(cells):
        found.append(("code", codes + 1))
    if FEWEST_NUMBERS <= len(labels) and not many_alike(codes):
        found.append(("text", as_text(given)))
        if (codes < 0).any():
            found.append(("blank", (codes < 0).astype(np.intp)))
    form = spelling(cells)
    return found if form is None else [*found, ("spelling", form)]


def spelling(cells: pd.Series[str]) -> Indices | None:
    """Codes of how numbers are written, if the numbers do not tell.

    Examples
    --------
    >>> spelling(pd.Series(["12.5", "3.0", "7.25"])), spelling(pd.Series(["12.5", "3.50", "07.0"]))
    (None, array([0, 1, 2]))
    """
    text = cells.astype("string").fillna("")
    numbers = pd.to_numeric(text, errors="coerce").astype(float)
    there = numbers.notna().to_numpy()
    shortest = numbers[there].map(repr)
    if 2 * there.sum() <= len(text) or any(
        (text[there] == one).all() for one in (shortest, shortest.str.removesuffix(".0"))
    ):
        return None
    form = text.str.replace(r"^-?(0*)\d*", r"\1", regex=True).str.replace(r"\d", "9", regex=True)
    codes = np.asarray(pd.factorize(form.astype(object))[0], dtype=np.intp)
    return codes if codes.any() else None


def many_alike(codes: NDArray[Any]) -> bool:
    """Whether codes have ``FEWEST_PER_CODE`` records on average."""
    return len(codes) >= FEWEST_PER_CODE * len(np.unique(codes))


def as_text(cells: Series) -> NDArray[np.str_]:
    """Cells as short lower-case text, shape (n,); blanks are empty."""
    text = cells.astype("string").fillna("").str.strip().str.lower()
    return text.to_numpy(dtype=f"U{MOST_PLACES}")


def characters(text: NDArray[np.str_]) -> Indices:
    """Codes of characters by place from either end, (n, places).

    Examples
    --------
    >>> characters(np.array(["ab", "b"])).tolist()
    [[0, 1, 1, 0], [1, 0, 0, 0]]
    """
    width = int(np.char.str_len(text).max(initial=1))
    ends = [np.char.ljust(text, width), np.char.rjust(text, width)]
    places = np.hstack(
        [each.astype(f"U{width}").view(np.uint32).reshape(-1, width) for each in ends]
    )
    return np.column_stack([np.unique(place, return_inverse=True)[1].ravel() for place in places.T])

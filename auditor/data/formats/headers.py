"""Whether a file's column names are names: a file without a header has its first record in their place, and nobody may print that.

A first record is known by its numbers and dates. One of nothing but words may be names; but a word that stands among
the cells below it, too, is no name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from auditor.errors import DataError
from auditor.text.column_names import counted

LOOKED_AT = 20_000
"""Cells that names are looked for in: a word that is a category comes back sooner."""

_NUMBER = re.compile(
    r"""[-+−(]?\s*[$€£¥₪]?\s*(?=[.,]?\d)           # a sign, a currency
        (\d[\d_'’\s]*|\d{1,3}([.,]\d{3})+|)         # digits, in groups maybe
        ([.,]\d*)?([eEdD][-+]?\d+)?                 # decimals, an exponent
        \s*[%$€£¥₪)]?(\.\d+)?                       # what pandas adds to the second of two: 5.1.1""",
    re.VERBOSE,
)
_SPECIAL = re.compile(r"[-+]?(nan|inf|infinity)(\.\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"""(\d{4}|\d{1,2})[-/.](\d{1,2}|[^\W\d_]{3,9})[-/.](\d{4}|\d{1,2})  # 2020-01-31, 31.1.2020, 31-Jan-20
        ([T ]\s*\d{1,2}:\d{2}\S*(\s*[AaPp][Mm])?)?(\.\d+)?       # a time of day after it
      | \d{1,2}:\d{2}(:\d{2}\S*)?""",
    re.VERBOSE,
)


def is_value(name: str) -> bool:
    """Tell whether a name is a number, a date or a time of day, or one of these as pandas writes it a second time.

    Examples
    --------
    >>> [is_value(name) for name in ("5.1", "5.1.1", "-1e3", "2020-01-31", "1.2.2020 10:30", "12 %", "nan", "1,5")]
    [True, True, True, True, True, True, True, True]
    >>> [is_value(name) for name in ("age", "x1", "2020_sales", "1st", "e5", "", "-")]
    [False, False, False, False, False, False, False]
    """
    text = name.strip()
    number = any(map(str.isdigit, text)) and _NUMBER.fullmatch(text)
    return bool(number or _SPECIAL.fullmatch(text) or _DATE.fullmatch(text))


def holds_records(name: str) -> bool:
    r"""Tell whether a name is what a quote that nobody closed made of the lines after it.

    Examples
    --------
    >>> [holds_records(name) for name in ("\nage,city\n31,Rome", "x\n1.5", "a\nb\nc\nd", "income\n(dollars)", "a, b")]
    [True, True, True, False, False]
    """
    lines = name.splitlines()
    return len(lines) > 1 and (len(lines) > 3 or any(sign in name for sign in ",;|\t") or any(map(is_value, lines)))


def check_names(file: str, names: Sequence[str]) -> None:
    """Refuse names that are values, or that repeat one another; columns are named by their places, as their names may be cells.

    Names that count, 0 … N − 1 or 1 … N, are those of an unnamed array, which have to be borne with; beside them columns without a name.

    Raises
    ------
    DataError
        What is wrong, where, and what to do.
    """
    if _count(names):
        return
    swallowed = [place for place, name in enumerate(names, 1) if holds_records(name)]
    if swallowed:
        raise DataError(f"{file}: {_columns(swallowed)} a name of several lines, as if records were in it; is a quote missing?")
    values = [place for place, name in enumerate(names, 1) if is_value(name)]
    if len(values) == len(names) and values:
        raise DataError(f"{file}: the first line holds numbers where the column names should be; add a header")
    if values:
        problem = f"{file}: {_columns(values)} a number or a date for a name; add a header if the file has none"
        raise DataError(f"{problem}, or give such columns names that begin with a letter")
    times = Counter(name for name in names if name)
    twice = [place for place, name in enumerate(names, 1) if times[name] > 1]
    if twice:
        raise DataError(f"{file}: {_columns(twice)} a name that another column has as well; give every column a name of its own")


def check_records(file: str, names: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Refuse a header that comes back among the records: it is a record itself, or stands in the middle of the file a second time.

    Parameters
    ----------
    file : str
    names : sequence of str
    records : iterable of sequences of str
        The first ones; no more than `LOOKED_AT` cells are looked at.

    Raises
    ------
    DataError
        Columns, by their places, have their names among their cells.
    """
    seen: set[int] = set()
    if _count(names):  # small whole numbers are among any cells
        return
    for record in islice(records, max(10, LOOKED_AT // max(1, len(names)))):
        seen |= {place for place, (name, cell) in enumerate(zip(names, record, strict=False), 1) if name.strip() and name == cell}
    if seen:
        problem = f"{file}: {_columns(sorted(seen))} a name that stands among the cells below it, too"
        raise DataError(f"{problem}; is the header missing, or written twice?")


def _count(names: Sequence[str]) -> bool:
    """Tell whether names count, 0 … N − 1 or 1 … N, but for those that are missing."""
    given = [name for name in names if name]
    return bool(given) and given in ([str(place + start) for place in range(len(given))] for start in (0, 1))


def _columns(places: Sequence[int]) -> str:
    """Return ``columns 1, 3 and 4 have``."""
    if len(places) > 8:
        return f"{counted(len(places), 'column')}, the first of them column {places[0]}, have"
    *most, last = map(str, places)
    return f"column {last} has" if not most else f"columns {', '.join(most)} and {last} have"

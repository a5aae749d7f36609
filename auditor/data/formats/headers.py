"""Test whether a file's column names are names or a record.

A file without a header has its first record in their place, which must not be printed. A record is
recognised by numbers and dates. Words may be names, unless they also occur among the cells below.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from auditor.errors import DataError
from auditor.text.column_names import counted

LOOKED_AT = 20_000
"""Number of cells searched for names; a category would repeat sooner."""

_NUMBER = re.compile(
    r"""[-+−(]?\s*[$€£¥₪]?\s*(?=[.,]?\d)           # a sign, a currency
        (\d[\d_'’\s]*|\d{1,3}([.,]\d{3})+|)         # digits, in groups maybe
        ([.,]\d*)?([eEdD][-+]?\d+)?                 # decimals, an exponent
        \s*[%$€£¥₪)]?(\.\d+)?                       # what pandas adds to the second of two: 5.1.1""",
    re.VERBOSE,
)
_YEAR = re.compile(r"(19|20)\d\d", re.ASCII)
_SPECIAL = re.compile(r"[-+]?(nan|inf|infinity)(\.\d+)?", re.IGNORECASE)
_DATE = re.compile(
    r"""(\d{4}|\d{1,2})[-/.](\d{1,2}|[^\W\d_]{3,9})[-/.](\d{4}|\d{1,2})  # 2020-01-31, 31.1.2020, 31-Jan-20
        ([T ]\s*\d{1,2}:\d{2}\S*(\s*[AaPp][Mm])?)?(\.\d+)?       # a time of day after it
      | \d{1,2}:\d{2}(:\d{2}\S*)?""",
    re.VERBOSE,
)


def is_value(name: str) -> bool:
    """Whether a name is a number, date or time, or pandas' repetition of one.

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
    r"""Whether a name contains records, after an unclosed quote.

    Examples
    --------
    >>> [holds_records(name) for name in ("\nage,city\n31,Rome", "x\n1.5", "a\nb\nc\nd", "income\n(dollars)", "a, b")]
    [True, True, True, False, False]
    """
    lines = name.splitlines()
    return len(lines) > 1 and (
        len(lines) > 3 or any(sign in name for sign in ",;|\t") or any(map(is_value, lines))
    )


def check_names(file: str, names: Sequence[str]) -> None:
    """Refuse names that are values or repeat.

    Messages number the columns, as names may be cells. Running names, 0 … N − 1 or 1 … N, of an
    unnamed array are accepted, also with unnamed columns, and years at equal distances.

    Raises
    ------
    DataError
        With fault, place and remedy.
    """
    if _count(names):
        return
    swallowed = [place for place, name in enumerate(names, 1) if holds_records(name)]
    if swallowed:
        raise DataError(
            f"{file}: {_columns(swallowed)} a name of several lines, as if records were in it; is a quote missing?"
        )
    years = [int(name) for name in names if _YEAR.fullmatch(name)]
    named_by_years = len(years) > 1 and len(set(np.diff(years))) == 1 and years[0] != years[1]
    values = [
        place
        for place, name in enumerate(names, 1)
        if is_value(name) and not (named_by_years and _YEAR.fullmatch(name))
    ]
    if len(values) == len(names) and values:
        raise DataError(
            f"{file}: the first line holds numbers where the column names should be; add a header"
        )
    if values:
        problem = f"{file}: {_columns(values)} a number or a date for a name; add a header if the file has none"
        raise DataError(f"{problem}, or give such columns names that begin with a letter")
    times = Counter(name for name in names if name)
    twice = [place for place, name in enumerate(names, 1) if times[name] > 1]
    if twice:
        raise DataError(
            f"{file}: {_columns(twice)} a name that another column has as well; give every column a name of its own"
        )


def check_records(file: str, names: Sequence[str], records: Iterable[Sequence[str]]) -> None:
    """Refuse a header that occurs among the records.

    It is a record itself, or a repeated header.

    Parameters
    ----------
    file : str
    names : sequence of str
    records : iterable of sequences of str
        The first ones; at most `LOOKED_AT` cells are read.

    Raises
    ------
    DataError
        Columns, by their places, have their names among their cells.
    """
    seen: set[int] = set()
    if _count(names):  # small whole numbers are among any cells
        return
    for record in islice(records, max(10, LOOKED_AT // max(1, len(names)))):
        seen |= {
            place
            for place, (name, cell) in enumerate(zip(names, record, strict=False), 1)
            if name.strip() and name == cell
        }
    if seen:
        problem = (
            f"{file}: {_columns(sorted(seen))} a name that stands among the cells below it, too"
        )
        raise DataError(f"{problem}; is the header missing, or written twice?")


def _count(names: Sequence[str]) -> bool:
    """Whether names run from 0 to N − 1 or 1 to N, except missing ones."""
    given = [name for name in names if name]
    return bool(given) and given in (
        [str(place + start) for place in range(len(given))] for start in (0, 1)
    )


def _columns(places: Sequence[int]) -> str:
    if len(places) > 8:
        return f"{counted(len(places), 'column')}, the first of them column {places[0]}, have"
    *most, last = map(str, places)
    return f"column {last} has" if not most else f"columns {', '.join(most)} and {last} have"

"""Decimal and thousands marks of a text file.

``1,234`` may be 1234 or 1.234, but ``1,234.5`` and ``12,5`` are unambiguous. Unambiguous numbers
among the first cells decide for the file; without any, ambiguous numbers are refused.

| evidence in the file's numbers | decimal mark | thousands mark |
| --- | --- | --- |
| decimal points | ``.`` | ``,`` |
| decimal commas | ``,`` | ``.`` |
| none, cells separated by semicolons | none: comma countries write either | none |
| none otherwise, or both | ``.`` | none |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import quoted

_DECIMALS = re.compile(r"[-+]?(?:\d+([.,])\d*|([.,])\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*((?!\1)[.,]\d*)?")
_UNTOLD = r"[-+]?(?:\d+|[1-9]\d{0,2}[.,]\d{3})"
NEITHER = "\x01"
"""A mark absent from all numbers, since pandas requires one."""


class Marks(NamedTuple):
    """Decimal and thousands mark; empty for none."""

    decimal: str = "."
    group: str = ""


def mark_of(cell: str) -> str:
    """Return the decimal mark in a cell; ``,?`` or ``.?`` if ambiguous.

    Empty if the cell shows none.

    Examples
    --------
    >>> [mark_of(cell) for cell in ("12,5", "0.25", "1,234.50", "1.234.567", "1,234", "1.234", "12", "1.2.2020", "a,b")]
    [',', '.', '.', ',', ',?', '.?', '', '', '']
    """
    grouped = _GROUPED.fullmatch(cell)
    if grouped:
        mark, decimals = grouped[1], grouped[2]
        if decimals or cell.count(mark) > 1:
            return decimals[0] if decimals else ",".replace(mark, ".") if mark == "," else ","
        return f"{mark}?"
    decimal = _DECIMALS.fullmatch(cell)
    return decimal[1] or decimal[2] if decimal else ""


def marks_of(file: str, records: Iterable[Sequence[str]], delimiter: str) -> Marks:
    """Return the number marks of a file from its first records.

    Raises
    ------
    DataError
        Decimal commas and points both occur, unless commas separate cells (then only quoted cells
        can have one).
    """
    found: dict[str, int] = {}
    for record in records:
        for place, cell in enumerate(record, start=1):
            if "," in cell or "." in cell:
                found.setdefault(mark_of(cell.strip()), place)
    if delimiter != ";" and ".?" in found:  # the usual decimal mark without semicolons
        found.setdefault(".", found[".?"])
    if {",", "."} <= found.keys():
        if delimiter == ",":
            return Marks()
        where = f"column {found[',']} has numbers with decimal commas, and column {found['.']} with decimal points"
        raise DataError(f"{file}: {where}; write all of them alike")
    if "." in found:
        return Marks(".", ",")
    if "," in found:
        return Marks(",", ".")
    return Marks("" if delimiter == ";" else ".", "")


def as_numbers(file: str, column: pd.Series[Any], marks: Marks) -> pd.Series[Any]:
    """Return a text column as numbers in the file's marks, if all cells fit.

    Raises
    ------
    DataError
        Every cell is a number, but an ambiguous one; the message holds none of the cells.
    """
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    first = str(next(iter(column.dropna()), 0))  # a quick test: text is mostly no number
    if pd.isna(pd.to_numeric(first, errors="coerce")) and not re.fullmatch(
        f"{_written(marks)}|{_UNTOLD}", first.strip()
    ):
        return column
    if marks.decimal == ".":  # for example numbers beyond 64 bits
        numbers = pd.to_numeric(column, errors="coerce")
        if bool((numbers.notna() | column.isna()).all()):
            return numbers
    there = column.dropna().astype(str).str.strip()
    if bool(there.str.fullmatch(_written(marks)).all()):
        plain = there.str.replace(marks.group, "", regex=False) if marks.group else there
        return pd.to_numeric(plain.str.replace(marks.decimal or NEITHER, ".", regex=False)).reindex(
            column.index
        )
    if not marks.group and bool(there.str.fullmatch(_UNTOLD).all()):
        raise DataError(
            f"{file}: column {quoted(column.name)} has a comma or a point before three digits, which may be decimals or thousands, and no "
            "other number of the file tells which; write these without a mark between thousands, or with decimals, as 1,000.00 or 1.000,00"
        )
    return column


def _written(marks: Marks) -> str:
    group, decimal = re.escape(marks.group), re.escape(marks.decimal)
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)" if group else r"\d+"
    number = rf"(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)" if decimal else whole
    return rf"[-+]?{number}(?:[eE][-+]?\d+)?"

"""Which columns of a described table an audit takes, and how blanks are treated, so that it runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from auditor.data.columns.kinds import FEWEST_EACH, Column
from auditor.data.describe import Description
from auditor.errors import DataError
from auditor.text.column_names import counted, quoted

MOST_COMBINATIONS = 1_000
"""Of categories, which are perturbed together: a posterior has a number for each."""
MOST_NUMBERS = 12
"""Columns of numbers and dates; the work grows with their square."""
MOST_DROPPED = 0.5
"""Share of the records that blanks may cost at most."""


@dataclass(frozen=True)
class Selection:
    """What of a table is audited, and why the rest is not.

    Attributes
    ----------
    numbers, dates, categories : tuples of Column
    left_out : tuple of (Column, str)
        With a reason, to be read after the column's name.
    missing : str
        As in a scenario's ``data``: ``refuse``, ``drop`` or ``mean``.
    """

    numbers: tuple[Column, ...]
    dates: tuple[Column, ...]
    categories: tuple[Column, ...]
    left_out: tuple[tuple[Column, str], ...]
    missing: str

    @property
    def used(self) -> tuple[Column, ...]:
        """All columns that are audited."""
        return (*self.numbers, *self.dates, *self.categories)


def select(found: Description) -> Selection:
    """Return what to audit: numbers and dates up to a dozen, and categories while records are enough to tell their combinations apart.

    Raises
    ------
    DataError
        There is nothing, and why.
    """
    used, missing = [column for column in found.columns if column.used], _missing(found)
    why = {column.name: column.why for column in found.columns if not column.used}
    categories, most = _together([column for column in used if column.kind == "category"], found.rows, missing == "mean")
    for column in used:
        if column.kind == "category" and column not in categories and not column.numeric:
            blank = column.blank and missing == "mean"
            why[column.name] = "is a category with blanks, for which no mean can stand" if blank else _TOO_MANY.format(most)
    numbers = [column for column in used if column not in categories and column.name not in why]
    why |= {column.name: _TOO_WIDE for column in numbers[MOST_NUMBERS:]}
    left_out = tuple((column, why[column.name]) for column in found.columns if column.name in why)
    if not (numbers or categories):
        reasons = "; ".join(f"{quoted(column.name)} {reason}" for column, reason in left_out[:3])
        more = f"; and {counted(len(left_out) - 3, 'column')} more" if len(left_out) > 3 else ""
        raise DataError(f"no column holds numbers, dates or categories that an audit could use: {reasons}{more}")
    dates = tuple(column for column in numbers[:MOST_NUMBERS] if column.kind == "date")
    return Selection(tuple(column for column in numbers[:MOST_NUMBERS] if column not in dates), dates, tuple(categories), left_out, missing)


_TOO_MANY = "is a category, and with it there would be more than {:,} combinations; audit it in a scenario of its own"
_TOO_WIDE = f"comes after the first {MOST_NUMBERS} columns of numbers; add it, as it may tell of these"


def _missing(found: Description) -> str:
    """Return what is done about blanks, of which those in one record are counted as if in several."""
    blank = sum(column.blank for column in found.columns if column.used)
    if found.whole and not blank:
        return "refuse"
    return "drop" if blank <= MOST_DROPPED else "mean"


def _together(categories: Sequence[Column], rows: int, without_blanks: bool) -> tuple[list[Column], int]:
    """Return the categories that are taken, in their order, and how many combinations they may have."""
    taken: list[Column] = []
    combinations, most = 1, min(MOST_COMBINATIONS, max(2, rows // FEWEST_EACH))
    for column in categories:
        if combinations * column.values <= most and not (column.blank and without_blanks):
            taken.append(column)
            combinations *= column.values
    return taken, most

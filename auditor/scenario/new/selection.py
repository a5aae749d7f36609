"""Selection of audited columns and treatment of blanks, for a quick audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from auditor.data.columns.kinds import FEWEST_EACH, Column
from auditor.data.describe import Description
from auditor.errors import DataError
from auditor.text.column_names import counted, quoted

NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
MOST_COMBINATIONS = 1_000
"""Largest number of category combinations; a posterior has one entry for each."""
MOST_NUMBERS = 12
"""Largest number of numeric and date columns; time grows with its square."""
MOST_DROPPED = 0.5
"""Largest share of records to drop for blanks."""


@dataclass(frozen=True)
class Selection:
    """Audited columns of a table, and reasons for exclusion.

    Attributes
    ----------
    numbers, dates, categories : tuples of Column
    left_out : tuple of (Column, str)
        The reason follows the column's name in a sentence.
    missing : str
        A scenario's ``missing``: ``refuse``, ``drop`` or ``mean``.
    """

    numbers: tuple[Column, ...]
    dates: tuple[Column, ...]
    categories: tuple[Column, ...]
    left_out: tuple[tuple[Column, str], ...]
    missing: str

    @property
    def used(self) -> tuple[Column, ...]:
        """All audited columns."""
        return (*self.numbers, *self.dates, *self.categories)


def select(found: Description, unused: Mapping[str, str] = NO_COLUMNS) -> Selection:
    """Return up to twelve numeric columns, and categories within limits.

    Combinations of categories are limited by the number of records. ``unused`` has reasons against
    columns, by name.

    Raises
    ------
    DataError
        No column can be audited; the message has the reasons.
    """
    missing = _missing(found)
    why = {column.name: column.why for column in found.columns if not column.used}
    why = {**unused, **why}
    used = [column for column in found.columns if column.name not in why]
    categories, most = _together(
        [column for column in used if column.kind == "category"], found.rows, missing == "mean"
    )
    for column in used:
        if column.kind == "category" and column not in categories and not column.numeric:
            blank = column.blank and missing == "mean"
            why[column.name] = (
                "is a category with blanks, for which no mean can stand"
                if blank
                else _TOO_MANY.format(most)
            )
    numbers = [column for column in used if column not in categories and column.name not in why]
    why |= {column.name: _TOO_WIDE for column in numbers[MOST_NUMBERS:]}
    left_out = tuple((column, why[column.name]) for column in found.columns if column.name in why)
    if not (numbers or categories):
        reasons = "; ".join(f"{quoted(column.name)} {reason}" for column, reason in left_out[:3])
        more = f"; and {counted(len(left_out) - 3, 'column')} more" if len(left_out) > 3 else ""
        raise DataError(
            f"no column holds numbers, dates or categories that an audit could use: {reasons}{more}"
        )
    dates = tuple(column for column in numbers[:MOST_NUMBERS] if column.kind == "date")
    return Selection(
        tuple(column for column in numbers[:MOST_NUMBERS] if column not in dates),
        dates,
        tuple(categories),
        left_out,
        missing,
    )


_TOO_MANY = "is a category, and with it there would be more than {:,} combinations; audit it in a scenario of its own"
_TOO_WIDE = (
    f"comes after the first {MOST_NUMBERS} columns of numbers; add it, as it may tell of these"
)


def _missing(found: Description) -> str:
    """Return the treatment of blanks; blanks count once per column."""
    blank = sum(column.blank for column in found.columns if column.used)
    if found.whole and not blank:
        return "refuse"
    return "drop" if blank <= MOST_DROPPED else "mean"


def _together(
    categories: Sequence[Column], rows: int, without_blanks: bool
) -> tuple[list[Column], int]:
    taken: list[Column] = []
    combinations, most = 1, min(MOST_COMBINATIONS, max(2, rows // FEWEST_EACH))
    for column in categories:
        if combinations * column.values <= most and not (column.blank and without_blanks):
            taken.append(column)
            combinations *= column.values
    return taken, most

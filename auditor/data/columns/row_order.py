"""Records in the order of a column that is no part of the audit: a day, a place, a running number."""

from __future__ import annotations

import pandas as pd

from auditor.errors import DataError
from auditor.text.column_names import counted, quoted


def in_order_of(frame: pd.DataFrame, order: str) -> pd.DataFrame:
    """Return the records in the order of one of their columns, numbered anew; those alike in it stay in the order they had.

    Numbers and dates are ordered as such, text by its characters: days written as 2026-11-22 are in order of time then.

    Raises
    ------
    DataError
        Values are missing, or are of kinds that have no order among each other. No message holds a value.
    """
    missing = int(frame[order].isna().sum())
    if missing:
        raise DataError(f"{counted(missing, 'record')} miss column {quoted(order)}, and have no place in the order", ("order",))
    try:
        return frame.sort_values(order, kind="stable", ignore_index=True)
    except TypeError:
        raise DataError(f"column {quoted(order)} holds values of several kinds, which have no order", ("order",)) from None

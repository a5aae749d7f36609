"""Order of records by a column outside the audit, and serial dependence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.errors import DataError
from auditor.process.deferred import pd
from auditor.text.column_names import counted, quoted


def in_order_of(frame: pd.DataFrame, order: str) -> pd.DataFrame:
    """Return the records sorted by one column, renumbered; stable.

    Numbers and dates are sorted as such, text by characters (so 2026-11-22 sorts by time).

    Raises
    ------
    DataError
        Values are missing, or of kinds without a common order. No message holds a value.
    """
    missing = int(frame[order].isna().sum())
    if missing:
        raise DataError(
            f"{counted(missing, 'record')} miss column {quoted(order)}, and have no place in the order",
            ("order",),
        )
    try:
        return frame.sort_values(order, kind="stable", ignore_index=True)
    except TypeError:
        raise DataError(
            f"column {quoted(order)} holds values of several kinds, which have no order", ("order",)
        ) from None


def follows_the_one_before(runs: Sequence[pd.Series[Any]]) -> tuple[float, int]:
    """Return the lag-1 rank correlation of a column, and its number of pairs.

    Ranks, since a few large values would dominate the correlation of values.

    Parameters
    ----------
    runs : sequence of Series
        Consecutive numbers, run by run; a pair is two present values within a run.

    Examples
    --------
    >>> follows_the_one_before([pd.Series([1.0, 2.0, 4.0, 3.0, 9.0, 11.0])])
    (0.7, 5)
    """
    ranks = pd.concat(runs, ignore_index=True).rank()
    # the last of one run and the first of the next are no neighbours
    ends = np.cumsum([len(run) for run in runs])[:-1] - 1
    now, after = ranks.to_numpy()[:-1], ranks.to_numpy()[1:]
    pairs = ~(np.isnan(now) | np.isnan(after))
    pairs[ends[ends >= 0]] = False
    now, after = now[pairs], after[pairs]
    if len(now) < 3 or np.ptp(now) == 0 or np.ptp(after) == 0:
        return 0.0, int(pairs.sum())
    return round(float(np.corrcoef(now, after)[0, 1]), 12), int(pairs.sum())

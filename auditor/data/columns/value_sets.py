"""Cells that denote sets of values: ranges, bounds, masks, suppression.

| cell | set |
| --- | --- |
| ``[20, 30[``, ``[20; 30)``, ``20-30``, ``20..30`` | the numbers between, an interval |
| ``<30``, ``>=65``, ``65+`` | numbers up to the largest, or down to the smallest, end of other cells |
| ``816**`` | values of this length with any characters in place of stars |
| ``{flu, hiv}`` | the values named |
| ``*`` | every value |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from auditor.data.columns.categorical_table import unspelt
from auditor.data.columns.checks import Series
from auditor.process.deferred import pd
from auditor.types import Array

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"[\[\](]?\s*({_NUMBER})\s*(?:,|;|\.\.\.?|-|–|to)\s*({_NUMBER})\s*[\[\])]?")
_BELOW = re.compile(rf"(?:<=?|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(?:>=?|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
EVERY = "*"


def interval(cell: str) -> tuple[float, float] | None:
    """Return the ends of an interval; None for another text.

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
    """Return the middle of every cell's interval, shape (n,), NaN for a blank.

    None if a cell is no interval, or no cell has a finite end.
    """
    codes, different = pd.factorize(column)
    found = [interval(str(cell)) for cell in different]
    ends = np.array([each for each in found if each is not None]).reshape(-1, 2)
    finite = ends[np.isfinite(ends)]
    if len(ends) < len(found) or not finite.size:
        return None
    means = np.clip(ends, finite.min(), finite.max()).mean(axis=1)
    return np.append(means, np.nan)[codes]


def stands_for_some(cell: Any, labels: Sequence[Any]) -> bool:
    """Whether a cell is a set that has some label of a column.

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
    """Return columns with the middle of each interval; other columns unchanged."""
    text = frame.select_dtypes(["object", "string"])
    found = {name: middles(column) for name, column in text.items()}
    return frame.assign(**{str(name): x for name, x in found.items() if x is not None})

"""Readings of a shown column as numbers, codes and text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.base import pd
from auditor.base.types import Array, Indices
from auditor.data.columns.checks import Series, days_of
from auditor.data.columns.kinds import FORMATS

FEWEST_NUMBERS, MOST_RUNS, MOST_PLACES = 12, 40, 24
"""Different values from which on a column is read as numbers, runs of digits, and characters of text
that are read."""
FEWEST_EACH = 20
"""Records per code from which on the originals' mean of a code is a rule, and no record's value."""


def number_readings(cells: Series) -> list[Array]:
    """Each reading of a column as numbers, shapes (n,); NaN where none.

    Text has all digits, place by length and letters (codes of any base), each of several runs of
    digits (references), and days by each format that fits most cells.
    """
    numbers = _as_floats(cells)
    if np.isfinite(numbers).sum() == cells.notna().sum():
        return [numbers]
    text = cells.astype("string").str.strip().str.lower()
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
    return found


def many_alike(codes: NDArray[Any]) -> bool:
    """Whether codes have ``FEWEST_EACH`` records on average."""
    return len(codes) >= FEWEST_EACH * len(np.unique(codes))


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

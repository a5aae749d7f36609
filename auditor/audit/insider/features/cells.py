"""Cells themselves, and the value that most copies agree on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import MOST_PAIRED, Column, Feature, Known, Shown
from auditor.audit.measures.released_as_is import most_shown
from auditor.registry import register
from auditor.types import Array


@register
class Cells(Feature):
    """Each cell, the value that most copies show, and the number of copies that show it."""

    name = "cells"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        for c in range(min(shown.flat.shape[1], 64)):
            yield f"cell {c}", partial(cell, c)
        for j in range(min(shown.cells.shape[2], MOST_PAIRED) if shown.cells.shape[1] > 1 else 0):
            yield f"value of attribute {j} that most copies show", partial(agreed, j)
            yield f"copies that agree on attribute {j}", partial(agreeing, j)
            yield f"value of attribute {j} where copies agree", partial(agreed_where_two_agree, j)


def cell(c: int, shown: Shown) -> Array:
    """Return one column of cells."""
    return shown.flat[:, c]


def agreed(j: int, shown: Shown) -> Array:
    """Return the value that most copies show."""
    return most_shown(shown.filled[:, :, j])[0]


def agreeing(j: int, shown: Shown) -> Array:
    """Return the number of copies that show this value."""
    return most_shown(shown.filled[:, :, j])[1].astype(np.float64)


def agreed_where_two_agree(j: int, shown: Shown) -> Array:
    """Return the agreed value less its mean; 0 where no two copies agree."""
    value, number = most_shown(shown.filled[:, :, j])
    return np.where(number > 1, value - value.mean(), 0.0)

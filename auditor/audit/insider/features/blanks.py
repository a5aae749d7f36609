"""Indicators of blanks and of fillings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from auditor.audit.insider.feature import Column, Feature, Known, Shown
from auditor.audit.measures.released_as_is import HEAPED
from auditor.registry import register
from auditor.types import Array, Indices


@register
class Blanks(Feature):
    """Whether a cell is blank or has a value so common that it is a filling or a bound, and the cell where it has not."""

    name = "blanks"

    def columns(self, shown: Shown, known: Known) -> Iterator[tuple[str, Column]]:
        """Yield the columns."""
        if np.isnan(shown.cells).any():
            yield "pattern of blanks", pattern
        for c in range(min(shown.flat.shape[1], 64)):
            if special(c, shown).any():
                yield f"cell {c} is a filling", partial(special, c)
                yield f"cell {c} where it is no filling", partial(elsewhere, c)


def pattern(shown: Shown) -> Indices:
    """Return which cells of a record are blank, as a number."""
    blank = np.isnan(shown.cells.reshape(len(shown.cells), -1))
    return np.unique(blank, axis=0, return_inverse=True)[1].ravel()


def special(c: int, shown: Shown) -> Indices:
    """Return which cells of a column are blank or one of at most two values that ``HEAPED`` of the records have."""
    y = shown.flat[:, c]
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    heaped = counts >= max(2.0, HEAPED * len(y))
    blank = np.isnan(shown.cells.reshape(len(y), -1)[:, c])
    return np.asarray(
        blank | (heaped[which.ravel()] if 1 <= heaped.sum() <= 2 else False), dtype=np.intp
    )


def elsewhere(c: int, shown: Shown) -> Array:
    """Return a cell less its mean, 0 where it is a filling."""
    y = shown.flat[:, c]
    return np.where(special(c, shown) > 0, 0.0, y - y.mean())

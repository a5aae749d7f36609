"""Linkage: match a target to its row by quasi-identifiers, as with a voter list; a row without doubles is found.

| symbol | meaning | source |
| --- | --- | --- |
| ``|E|`` | rows that share the target's generalised quasi-identifiers in every copy held | samarati2001 |
| ``linkage`` | ``mean 1/|E|``, the chance of naming the right row; 0 for a record of which none is released | |
| claim | the sensitive value of a row that is the only one of its class | |

What k-anonymity is made against: no copy gives a chance above 1/k. Wins on raw tables and on pooled copies whose classes cross; fails on
one k-anonymous copy, and tells nothing of what the records of a class have in common.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from attacks._anonymous import Classes, ClassReading, layout_of
from auditor.plugin import KnownAttributes, Reconstruction, RowAttack, View, register


@register
class Linkage(RowAttack):
    """Names a target's row by its quasi-identifiers; claims its sensitive value where there is one such row only."""

    name = "linkage"
    reference = "samarati2001"
    families = frozenset({"k-anonymity"})
    knowledge = (KnownAttributes.name,)
    assumes = "The adversary knows that its target is in the table, and all of its quasi-identifiers."
    wins = "Wins with k = 1 and on pooled copies whose classes cross; fails on one k-anonymous copy."

    def fit(self, view: View, blocks: Iterable[list[NDArray[np.float64]]]) -> Reconstruction:
        """Return the reading of the coalition's classes."""
        classes = Classes.of(layout_of(view), blocks)
        claims = np.where(classes.sizes == 1, classes.posterior.argmax(axis=1), -1)
        return ClassReading(classes, np.arange(len(classes.values)), claims)

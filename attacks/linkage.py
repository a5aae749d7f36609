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

import numpy as np

from auditor.plugin import Array, Indices, register

from ._anonymous import ClassAttack


@register
class Linkage(ClassAttack):
    """Names a target's row by its quasi-identifiers; claims its sensitive value where there is one such row only."""

    name = "linkage"
    attack_kind = "naming"
    reference = "samarati2001; liu2008, section 5"
    wins = "Wins with k = 1 and on pooled copies whose classes cross; fails on one k-anonymous copy."

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        """Return the value of the only row of a class."""
        return np.where(sizes == 1, P_E.argmax(axis=1), -1)

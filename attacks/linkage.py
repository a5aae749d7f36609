"""Linkage: match a target to its row by quasi-identifiers.

| symbol | meaning | source |
| --- | --- | --- |
| ``|E|`` | rows that share the target's generalised quasi-identifiers in every held copy | samarati2001 |
| ``linkage`` | ``mean 1/|E|``, the probability of naming the right row; 0 for a fully suppressed record | |
| claim | the sensitive value of the only row of a class | |

k-anonymity bounds the probability by 1/k for one copy.
"""

import numpy as np

from auditor.plugin import Array, Indices, register

from ._anonymous import ClassAttack


@register
class Linkage(ClassAttack):
    """Name a target's row by its quasi-identifiers."""

    name = "linkage"
    attack_kind = "naming"
    reference = "samarati2001; liu2008, section 5"
    wins = (
        "Wins with k = 1 and on pooled copies whose classes cross; fails on one k-anonymous copy."
    )

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        return np.where(sizes == 1, P_E.argmax(axis=1), -1)

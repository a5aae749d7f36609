"""Skewness: claim a sensitive value much commoner in a class than overall.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v), P(v)`` | share of value v in the class, and in the table | li2007 |
| claim | the value of largest growth, ``max P_E(v)/P(v)``, if it grew by ``factor`` and reached ``least`` | |

t-closeness bounds ``P_E(v) − P(v)``.
"""

import numpy as np
from pydantic import Field

from auditor.plugin import Array, Indices, PluginParameters, register

from ._anonymous import ClassAttack


@register
class Skewness(ClassAttack):
    """Claim a sensitive value far commoner in the class than in the table."""

    name = "skewness"
    attack_kind = "attribute disclosure"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on diverse classes unlike the table; fails on classes t-close to it."

    class Parameters(PluginParameters):
        """Thresholds of a claim."""

        factor: float = Field(2.0, gt=1)
        """growth of a value's share, class over table, that makes it suspect"""
        least: float = Field(0.5, gt=0, le=1)
        """share in the class that it must reach"""

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        growth = P_E / P
        suspect = (growth >= self.parameters.factor - 1e-12) & (
            P_E >= self.parameters.least - 1e-12
        )
        return np.where(suspect.any(axis=1), np.where(suspect, growth, 0.0).argmax(axis=1), -1)

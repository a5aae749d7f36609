"""Skewness: a class in which a rare sensitive value is common tells much of its records, however diverse it is.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v), P(v)`` | share of value v in the class, and in the table | li2007 |
| claim | the value whose share grew most, ``max P_E(v)/P(v)``, if it grew by ``factor`` and reached ``least`` | |

A class half positive for a disease that one in a hundred has is 2-diverse, and makes each of its records fifty times as suspect. Wins where
classes are unlike the table; fails under t-closeness with a small t, which bounds ``P_E(v) − P(v)``.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from auditor.plugin import Array, Indices, PluginParameters, register

from ._anonymous import ClassAttack


@register
class Skewness(ClassAttack):
    """Suspects records of a sensitive value that is far commoner in their class than in the table."""

    name = "skewness"
    attack_kind = "attribute disclosure"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on diverse classes unlike the table; fails on classes t-close to it."

    class Parameters(PluginParameters):
        """When a suspicion is a claim."""

        factor: Annotated[float, Field(gt=1)] = Field(2.0, description="growth of a value's share, class over table, that makes it suspect")
        least: Annotated[float, Field(gt=0, le=1)] = Field(0.5, description="share in the class that it must reach")

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        """Return the value whose share grew most, of classes that make it suspect."""
        growth = P_E / P
        suspect = (growth >= self.parameters.factor - 1e-12) & (P_E >= self.parameters.least - 1e-12)
        return np.where(suspect.any(axis=1), np.where(suspect, growth, 0.0).argmax(axis=1), -1)

"""Skewness: a class in which a rare sensitive value is common tells much of its records, however diverse it is.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v), P(v)`` | share of value v in the class, and in the table | li2007, section 3 |
| claim | the value whose share grew most, ``max P_E(v)/P(v)``, if it grew by ``factor`` and reached ``least`` | |

A class half positive for a disease that one in a hundred has is 2-diverse, and makes each of its records fifty times as suspect. Wins where
classes are unlike the table; fails under t-closeness with a small t, which bounds ``P_E(v) − P(v)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attacks._anonymous import Classes, ClassReading, layout_of
from auditor.plugin import KnownAttributes, PluginParameters, Reconstruction, RowAttack, View, register


@register
class Skewness(RowAttack):
    """Suspects records of a sensitive value that is far commoner in their class than in the table."""

    name = "skewness"
    reference = "li2007, section 3"
    families = frozenset({"k-anonymity"})
    knowledge = (KnownAttributes.name,)
    assumes = "The adversary knows that its target is in the table, and all of its quasi-identifiers."
    wins = "Wins on diverse classes unlike the table; fails on classes t-close to it."

    class Parameters(PluginParameters):
        """When a suspicion is a claim."""

        factor: Annotated[float, Field(gt=1)] = Field(2.0, description="growth of a value's share, class over table, that makes it suspect")
        least: Annotated[float, Field(gt=0, le=1)] = Field(0.5, description="share in the class that it must reach")

    def fit(self, view: View, blocks: Iterable[list[NDArray[np.float64]]]) -> Reconstruction:
        """Return the reading of the coalition's classes."""
        classes = Classes.of(layout_of(view), blocks)
        growth = classes.posterior / classes.prior
        suspect = (growth >= self.parameters.factor - 1e-12) & (classes.posterior >= self.parameters.least - 1e-12)
        claims = np.where(suspect.any(axis=1), np.where(suspect, growth, 0.0).argmax(axis=1), -1)
        return ClassReading(classes, np.arange(len(classes.values)), claims)

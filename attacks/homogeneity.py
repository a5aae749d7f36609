"""Homogeneity: find a target's class by its quasi-identifiers; if the class's sensitive values are (nearly) all alike, the value is learnt.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v)`` | share of value v in the target's class | machanavajjhala2007, section 2.1 |
| claim | the commonest value of the class, if its share is at least c (``confidence``) | |

k says nothing of it: a class of a thousand alike gives away a thousand. Wins when sensitive values follow from the quasi-identifiers, or
when one is common. Fails where every class is ℓ-diverse (c = 1), or no share reaches c, as (α, k) with α < c makes sure.
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
class Homogeneity(RowAttack):
    """Learns the sensitive value of records whose class has (nearly) one value only."""

    name = "homogeneity"
    reference = "machanavajjhala2007, section 2.1"
    families = frozenset({"k-anonymity"})
    knowledge = (KnownAttributes.name,)
    assumes = "The adversary knows that its target is in the table, and all of its quasi-identifiers."
    wins = "Wins on classes whose sensitive values are alike, whatever k; fails on diverse ones."

    class Parameters(PluginParameters):
        """How sure is sure."""

        confidence: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of one value in a class from which it is claimed")

    def fit(self, view: View, blocks: Iterable[list[NDArray[np.float64]]]) -> Reconstruction:
        """Return the reading of the coalition's classes."""
        classes = Classes.of(layout_of(view), blocks)
        P_E = classes.posterior
        sure = (P_E.max(axis=1) >= self.parameters.confidence - 1e-12) & (classes.sizes > 0)
        claims = np.where(sure, P_E.argmax(axis=1), -1)
        return ClassReading(classes, np.arange(len(classes.values)), claims)

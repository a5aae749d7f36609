"""Homogeneity: find a target's class by its quasi-identifiers; if the class's sensitive values are (nearly) all the same, it is disclosed.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v)`` | share of value v in the target's class | machanavajjhala2007 |
| claim | the commonest value of the class, if its share is at least c (``confidence``) | |

k says nothing of it: a class of a thousand alike gives away a thousand. Wins when sensitive values follow from the quasi-identifiers, or
when one is common. Fails where every class is ℓ-diverse (c = 1), or no share reaches c, as (α, k) with α < c makes sure.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from auditor.plugin import Array, Indices, PluginParameters, register

from ._anonymous import ClassAttack, surest


@register
class Homogeneity(ClassAttack):
    """Learns the sensitive value of records whose class has (nearly) one value only."""

    name = "homogeneity"
    attack_kind = "attribute disclosure"
    reference = "machanavajjhala2007; liu2008, section 5"
    wins = "Wins on classes whose sensitive values are alike, whatever k; fails on diverse ones."

    class Parameters(PluginParameters):
        """How sure is sure."""

        confidence: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of one value in a class from which it is claimed")

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        """Return the commonest value of classes that are sure of it."""
        return surest(sizes, P_E, self.parameters.confidence)

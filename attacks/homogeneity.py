"""Homogeneity: claim the value that (nearly) all records of a class share.

| symbol | meaning | source |
| --- | --- | --- |
| ``P_E(v)`` | share of value v in the target's class | machanavajjhala2007 |
| claim | the commonest value of the class, if its share is at least c (``confidence``) | |

k does not limit it; ℓ-diversity (c = 1) and (α, k) with α < c do.
"""

from pydantic import Field

from auditor.plugin import Array, Indices, PluginParameters, register

from ._anonymous import ClassAttack, surest


@register
class Homogeneity(ClassAttack):
    """Claim the sensitive value of classes with (nearly) one value."""

    name = "homogeneity"
    attack_kind = "attribute disclosure"
    reference = "machanavajjhala2007; liu2008, section 5"
    wins = "Wins on classes whose sensitive values are alike, whatever k; fails on diverse ones."

    class Parameters(PluginParameters):
        """Confidence of a claim."""

        confidence: float = Field(1.0, gt=0, le=1)
        """share of one value in a class from which it is claimed"""

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        return surest(sizes, P_E, self.parameters.confidence)

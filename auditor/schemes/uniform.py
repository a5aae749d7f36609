r"""Uniform perturbation: every value kept with probability p, else replaced by one drawn from its domain.

| symbol | meaning | source |
| --- | --- | --- |
| ``p`` | retention probability, a copy's level: more = *less* noisy | xiao2009, section 1 |
| ``s`` | size of the domain | |
| ``P(y\|x)`` | ``p·[x = y] + (1 − p)/s`` | xiao2009, eq. 1 |

``uniform`` draws anew for every copy, even at a level asked for before: broken on purpose as a multilevel scheme, since a value that two
copies agree on is unlikely to be random in both (xiao2009, section 1.1). ``uniform-multilevel`` is one replacement process per tuple,
seen at time ``−ln p``: replacements arrive at rate 1 and each draws from the domain, so that everything perturbed further is a noisier
view of the least perturbed copy held, and the posterior given any coalition is the posterior given that copy (Theorem 1 there).

Reference: xiao2009, sections 5 and 6. Fails, like every perturbation of single tuples, where tuples are correlated and the
adversary knows how.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from auditor.registry import PluginParameters, register
from auditor.schemes.base.scheme import Key
from auditor.schemes.replacement.base import BridgedCopies, Copies, FreshCopies, MultiPertCopies, ProcessCopies, UniformScheme
from auditor.types import Codes

MAKERS: dict[str, type[Copies]] = {"process": ProcessCopies, "bridge": BridgedCopies, "multi-pert": MultiPertCopies}


@register
class Uniform(UniformScheme):
    """Categories kept with probability p or redrawn from their domain, anew in every copy. Broken under collusion."""

    name = "uniform"
    multilevel = False
    claims = "Nothing under collusion: the reconstruction probability rises with every copy pooled (xiao2009, Fig. 7)."
    reference = "xiao2009, eq. 1"
    assumes = "Recipients never pool their copies, and tuples are independent."

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes fresh copies."""
        return FreshCopies(original, size, key)


@register
class UniformMultilevel(UniformScheme):
    """Categories replaced by one process seen at several levels: no coalition learns more than from its best copy."""

    name = "uniform-multilevel"
    multilevel = True
    claims = "No collusion gain: the posterior given a coalition is that given its least perturbed copy (xiao2009, Theorem 1)."
    reference = "xiao2009, Theorem 1"
    assumes = "Tuples are independent; holds for every prior and every attack."

    class Parameters(PluginParameters):
        """Which of three implementations draws; all three draw from the same law."""

        implementation: Literal["process", "bridge", "multi-pert"] = Field(
            "process",
            description="process: a look-up in a stream of replacements; bridge: from the two neighbouring copies; "
            "multi-pert: the paper's Figure 3 on compressed histories",
        )

    def copies(self, original: Codes, size: int, key: Key) -> Copies:
        """Return what makes copies, by the chosen implementation."""
        return MAKERS[self.parameters.implementation](original, size, key)

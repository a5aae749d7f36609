"""Similarity: a class whose sensitive values differ but mean much the same gives that meaning away.

| symbol | meaning | source |
| --- | --- | --- |
| group | sensitive values that count as one: between two neighbouring ``edges``, in the attribute's unit | li2007, section 3 |
| claim | the commonest group of the class, if its share is at least c (``confidence``) | |

Three stomach diseases, or three salaries at the low end, are 3-diverse and tell what there is to tell. For coded categories the edges are
the semantic hierarchy: codes of one branch lie between two of them. Wins where ℓ-diversity does not look at meaning; fails on classes whose
values spread over groups. t-closeness bounds how much more a class says than the table: where most of the table is of one group, so may be
all of a class that is close to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from attacks._anonymous import Classes, ClassReading, Layout
from auditor.attack import Reconstruction, RowAttack, View
from auditor.knowledge import KnownAttributes
from auditor.registry import PluginParameters, register


@register
class Similarity(RowAttack):
    """Learns the sensitive value up to a group of like values, where a class lies within one group."""

    name = "similarity"
    reference = "li2007, section 3"
    families = frozenset({"k-anonymity"})
    knowledge = (KnownAttributes.name,)
    assumes = "The adversary knows that its target is in the table, and all of its quasi-identifiers."
    wins = "Wins on classes diverse in value but not in meaning; fails where values spread over groups."

    class Parameters(PluginParameters):
        """What counts as alike."""

        edges: list[float] = Field(min_length=1, description="borders between groups of values; a border belongs to the upper one")
        confidence: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of one group in a class from which it is claimed")

    def fit(self, view: View, blocks: Iterable[list[NDArray[np.float64]]]) -> Reconstruction:
        """Return the reading of the coalition's classes."""
        classes = Classes.of(Layout.of(view), blocks)
        groups = np.searchsorted(np.sort(self.parameters.edges), classes.values, side="right")
        share = classes.posterior @ np.eye(int(groups.max()) + 1)[groups]
        sure = (share.max(axis=1) >= self.parameters.confidence - 1e-12) & (classes.sizes > 0)
        claims = np.where(sure, share.argmax(axis=1), -1)
        return ClassReading(classes, groups, claims, view.attributes.index(view.scheme["sensitive"]))

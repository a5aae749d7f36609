"""Similarity: a class whose sensitive values differ but mean much the same gives that meaning away.

| symbol | meaning | source |
| --- | --- | --- |
| group | sensitive values that count as one: of one node of their hierarchy, or between two neighbouring ``edges`` | li2007 |
| claim | the commonest group of the class, if its share is at least c (``confidence``) | |

Three stomach diseases, or three salaries at the low end, are 3-diverse and tell what there is to tell. ``height`` takes the nodes of the
hierarchy declared under ``data: hierarchies:``, 1 being the lowest, and ``edges`` cut a column of numbers. Wins where ℓ-diversity does not
look at meaning; fails on classes whose values spread over groups. t-closeness bounds how much more a class says than the table: where most
of the table is of one group, so may be all of a class that is close to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from auditor.plugin import Array, AuditorError, Indices, PluginParameters, View, register

from ._anonymous import ClassAttack, surest


@register
class Similarity(ClassAttack):
    """Learns the sensitive value up to a group of like values, where a class lies within one group."""

    name = "similarity"
    attack_kind = "attribute disclosure"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on classes diverse in value but not in meaning; fails where values spread over groups."
    trial = MappingProxyType({"edges": [90.0, 100.0, 110.0]})

    class Parameters(PluginParameters):
        """What counts as alike: either ``height`` or ``edges``."""

        height: Annotated[int, Field(ge=1)] | None = Field(None, description="height of the nodes in the declared hierarchy; 1 the lowest")
        edges: list[float] | None = Field(
            None, min_length=1, description="borders between groups of values, in their unit; a border belongs to the upper one"
        )
        confidence: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="share of one group in a class from which it is claimed")

        @model_validator(mode="after")
        def _one(self) -> Any:
            if (self.height is None) == (self.edges is None):
                raise ValueError("give either height or edges")
            return self

    def check_scheme(self, public: Mapping[str, Any]) -> None:
        """Refuse a height that the sensitive attribute's hierarchy does not have below its root."""
        height, sensitive = self.parameters.height, public.get("sensitive")
        if height is None or sensitive is None:
            return
        hierarchy = public["hierarchies"].get(sensitive)
        if hierarchy is None:
            raise AuditorError(f"height needs a hierarchy of {sensitive!r} under data.hierarchies")
        if height >= hierarchy.height:
            raise AuditorError(f"height must be below the root's, {hierarchy.height} in the hierarchy of {sensitive!r}; got {height}")

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        """Return the commonest group of classes that are sure of it."""
        return surest(sizes, P_E, self.parameters.confidence)

    def groups(self, view: View, values: Array) -> Indices:
        """Return the group of each value, shape (V,)."""
        if self.parameters.edges is not None:
            return np.searchsorted(np.sort(self.parameters.edges), values, side="right")
        self.check_scheme(view.scheme)
        hierarchy = view.scheme["hierarchies"][view.scheme["sensitive"]]
        return np.asarray(hierarchy.groups(self.parameters.height)[values.astype(np.intp)], dtype=np.intp)

"""Similarity: claim a group of similar values that a class shares.

| symbol | meaning | source |
| --- | --- | --- |
| group | similar sensitive values: of one hierarchy node, or between two neighbouring ``edges`` | li2007 |
| claim | the commonest group of the class, if its share is at least c (``confidence``) | |

``height`` selects nodes of the hierarchy under ``data: hierarchies:``, 1 being the lowest. ``edges``
cut a numeric column. t-closeness only bounds the gain over the table.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from auditor.plugin import Array, AuditorError, Indices, PluginParameters, View, register

from ._anonymous import ClassAttack, surest


@register
class Similarity(ClassAttack):
    """Claim the group of similar values that a class lies within."""

    name = "similarity"
    attack_kind = "attribute disclosure"
    reference = "li2007; liu2008, section 5"
    wins = "Wins on classes diverse in value but not in meaning; fails where values spread over groups."
    trial = MappingProxyType({"edges": [90.0, 100.0, 110.0]})

    class Parameters(PluginParameters):
        """Groups of similar values, by ``height`` or ``edges``."""

        height: int | None = Field(None, ge=1)
        """height of the nodes in the declared hierarchy; 1 the lowest"""
        edges: list[float] | None = Field(None, min_length=1)
        """borders between groups of values, in their unit; a border belongs to the upper one"""
        confidence: float = Field(1.0, gt=0, le=1)
        """share of one group in a class from which it is claimed"""

        @model_validator(mode="after")
        def _one(self) -> Any:
            if (self.height is None) == (self.edges is None):
                raise ValueError("give either height or edges")
            return self

    def check_scheme(self, public: Mapping[str, Any]) -> None:
        height, sensitive = self.parameters.height, public.get("sensitive")
        if height is None or sensitive is None:
            return
        hierarchy = public["hierarchies"].get(sensitive)
        if hierarchy is None:
            raise AuditorError(f"height needs a hierarchy of {sensitive!r} under data.hierarchies")
        if height >= hierarchy.height:
            raise AuditorError(
                f"height must be below the root's, {hierarchy.height} in the hierarchy of {sensitive!r}; got {height}"
            )

    def claimed(self, sizes: Array, P_E: Array, P: Array) -> Indices:
        return surest(sizes, P_E, self.parameters.confidence)

    def groups(self, view: View, values: Array) -> Indices:
        if self.parameters.edges is not None:
            return np.searchsorted(np.sort(self.parameters.edges), values, side="right")
        self.check_scheme(view.scheme)
        hierarchy = view.scheme["hierarchies"][view.scheme["sensitive"]]
        return hierarchy.groups(self.parameters.height)[values.astype(int)]

"""Changes of a release that would leave half of each attribute unknown."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Remedy(BaseModel):
    """Change that would leave half of every attribute unknown.

    Attributes
    ----------
    attack, attribute : str
        The strongest attack and the worst attribute; ``*`` for categories.
    unknown : float
        Current unknown share.
    levels : list of float
        Sufficient levels; empty if no level of the scheme is.
    lossless : float or None
        Level of the least perturbed copy under another scheme without pooling gain. Without it or
        levels no noise suffices, because known attributes determine too much.
    kind : 'noise' or 'retention'
        Kind of levels: noise multiples (more is safer) or retention probabilities (less is safer).
    estimated : bool
        Whether the closed form of linear attacks was scaled to the strongest attack's result.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    attack: str
    attribute: str
    unknown: float
    levels: list[float] = Field(default_factory=list)
    lossless: float | None = None
    kind: Literal["noise", "retention"] = "noise"
    estimated: bool = False

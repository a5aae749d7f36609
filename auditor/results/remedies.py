"""What would change an exposure: how much more noise, or which other scheme, would leave half unknown."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Remedy(BaseModel):
    """What would leave half of every attribute unknown, of a release that leaves less to some attack.

    Attributes
    ----------
    attack, attribute : str
        Who leaves least, and of what; ``*`` of categories.
    unknown : float
        The share that is left now.
    levels : list of float
        Levels at which half would be left; empty where no level of the scheme would do.
    lossless : float or None
        Level of the least perturbed copy under a scheme that gains nothing by pooling, where that
        is another scheme; without it or levels no noise helps, as the attributes that an adversary
        was given in clear say so much.
    kind : 'noise' or 'retention'
        What levels are: noise multiples, of which more is safer, or chances to keep a value, of
        which less is.
    estimated : bool
        Whether the closed form of linear attacks was scaled by what the strongest attack left here,
        rather than taken as it is.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    attack: str
    attribute: str
    unknown: float
    levels: list[float] = Field(default_factory=list)
    lossless: float | None = None
    kind: Literal["noise", "retention"] = "noise"
    estimated: bool = False

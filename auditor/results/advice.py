"""Recommended releases, and remedies for a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from auditor.results.records import Verdict


class Exposed(NamedTuple):
    """Exposure of the worst attribute to the strongest attack of any coalition.

    Attributes
    ----------
    unknown, half : float
        Mean share of the attribute's variance that stays unknown, and half-width of its 95 % range
        over single releases at the target.
    attack, attribute : str
        The strongest attack, and the attribute; ``*`` for categories, which are one attribute.
    coalition : tuple of int
        The copies held.
    """

    unknown: float
    half: float
    attack: str
    attribute: str
    coalition: tuple[int, ...]


class Epsilon(NamedTuple):
    """ε of differential privacy of all copies together, within the stated bounds.

    Attributes
    ----------
    at_delta : float
        ε of (ε, δ).
    pure : float
        ε at δ = 0; infinite if there is none.
    """

    at_delta: float
    pure: float


@dataclass(frozen=True)
class Tried:
    """One candidate release.

    Attributes
    ----------
    scheme : str
    levels : tuple of float
        Levels of its copies, the least perturbed first.
    on_paper : float
        Upper bound of the unknown share: closed form of the best attack on all copies, in the worst
        attribute.
    exposed : Exposed or None
        Measured exposure; None if the closed form already excludes the release.
    verdict : {'holds', 'fails', 'undecided'}
        Outcome of an audit of any new release, against every attack, in every attribute; undecided
        if it depends on the draw.
    in_full : bool
        Whether the whole release was audited, or one sufficient copy.
    pooling : float
        Share of the least perturbed copy's error that pooling removes, by closed form or measured.
    losses : tuple of float
        Loss of use by copy; empty if not measured.
    epsilon : Epsilon or None
        By the law of the noise; None without bounds.
    """

    scheme: str
    levels: tuple[float, ...]
    on_paper: float
    exposed: Exposed | None
    verdict: Verdict
    in_full: bool
    pooling: float
    losses: tuple[float, ...]
    epsilon: Epsilon | None = None

    @property
    def met(self) -> bool:
        """Whether every such release meets the target."""
        return self.verdict == "holds"

    @property
    def loss(self) -> float:
        """Mean loss of use over copies; NaN if unknown."""
        return sum(self.losses) / len(self.losses) if self.losses else math.nan


@dataclass(frozen=True)
class Advice:
    """The release that meets the target at the least loss of use.

    Attributes
    ----------
    data : str
        The requested data.
    rows, all_rows : int
        Numbers of measured and of all records.
    target : float
        Share that must stay unknown.
    delta : float
        δ of ``Epsilon.at_delta``.
    utility, use : str
        Name and description of the measure of loss.
    grid : str
        Description of the searched levels.
    frontier : tuple of Tried
        All measured releases, by scheme and strength.
    chosen : Tried
        The recommended release.
    weaker : Tried or None
        The next weaker release, which fails the same audit; None if there is none on the grid.
    step : str
        Distance of these two: audits of so many records cannot distinguish closer releases.
    scenario : dict
        Scenario that makes and audits the recommended release.
    command : str
        Command that makes its copies.
    notes : tuple of str
        Exclusions and reasons.
    """

    data: str
    rows: int
    all_rows: int
    replicates: int
    target: float
    delta: float
    utility: str
    use: str
    grid: str
    frontier: tuple[Tried, ...]
    chosen: Tried
    weaker: Tried | None
    step: str
    scenario: dict[str, Any]
    command: str
    notes: tuple[str, ...]
    stopped: str | None = None

    @property
    def loss_on_average(self) -> float:
        """Interpolated loss at which the mean over draws meets the target."""
        measured = (one for one in self.frontier if one.scheme == self.chosen.scheme and one.losses)
        own = sorted((one.exposed.unknown, one.loss) for one in measured if one.exposed)
        return float(
            np.interp(self.target, [unknown for unknown, _ in own], [loss for _, loss in own])
        )


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

"""What `auditor advise` found: releases that were tried, the one that it recommends, and the scenario that makes and audits it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from auditor.results.records import Verdict


class Exposed(NamedTuple):
    """What the strongest attack leaves unknown of the attribute that is worst off, over every coalition that was measured.

    Attributes
    ----------
    unknown, half : float
        Share of the attribute's variance that stays unknown on average over draws of the noise, and
        by how much 95 in 100 single releases at the target differ from that at most.
    attack, attribute : str
        Who, and of what; ``*`` of categories, which are one attribute.
    coalition : tuple of int
        The copies held.
    """

    unknown: float
    half: float
    attack: str
    attribute: str
    coalition: tuple[int, ...]


class Epsilon(NamedTuple):
    """ε of differential privacy that holds of all copies together, of a change of one record within the stated bounds.

    Attributes
    ----------
    at_delta : float
        Of (ε, δ).
    pure : float
        At δ = 0; infinite where the noise has none.
    """

    at_delta: float
    pure: float


@dataclass(frozen=True)
class Tried:
    """One release that was considered.

    Attributes
    ----------
    scheme : str
    levels : tuple of float
        Of its copies, the least perturbed first.
    on_paper : float
        Share of the worst attribute that the best attack with a closed form leaves, from all copies
        pooled: no more stays unknown.
    exposed : Exposed or None
        As measured; None where paper says already that the release is none to recommend.
    verdict : {'holds', 'fails', 'undecided'}
        What an audit of one new release will find, whatever its draw, against every attack, in
        every attribute; undecided where that is up to the draw.
    in_full : bool
        Whether the whole release was audited, or one copy that tells as much as all of it by the
        law of the noise.
    pooling : float
        Share of what the least perturbed copy leaves that pooling takes off, by the closed form or,
        where there is none, as measured; 0 where it adds nothing.
    losses : tuple of float
        What each copy lost of its use; empty where that must be measured and was not.
    epsilon : Epsilon or None
        By the law of the noise; None where no bounds are stated.
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
        """Whether one release meets the target for sure."""
        return self.verdict == "holds"

    @property
    def loss(self) -> float:
        """What copies lost of their use, on average; NaN where that is not known."""
        return sum(self.losses) / len(self.losses) if self.losses else math.nan


@dataclass(frozen=True)
class Advice:
    """Which release leaves enough unknown at the least loss of use.

    Attributes
    ----------
    data : str
        As it was asked for.
    rows, all_rows : int
        Records that were measured, and records that there are.
    target : float
        Share that must stay unknown.
    delta : float
        δ of ``Epsilon.at_delta``.
    utility, use : str
        What loss is counted by, its name and in words.
    grid : str
        The levels that were searched, in words.
    frontier : tuple of Tried
        Everything that was measured, by scheme and from the least to the most perturbed.
    chosen : Tried
        The recommended release.
    weaker : Tried or None
        The next weaker that fails, audited in the same way; None where none on the grid does.
    step : str
        In words, how far apart these two are: no closer releases can audits of so many records tell
        apart for sure.
    scenario : dict
        Makes and audits the recommended release.
    command : str
        Makes its copies.
    notes : tuple of str
        What was left out, and why.
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

    @property
    def loss_on_average(self) -> float:
        """Loss at which the mean over draws meets the target, and about every other release misses it; read between what was measured."""
        measured = (one for one in self.frontier if one.scheme == self.chosen.scheme and one.losses)
        own = sorted((one.exposed.unknown, one.loss) for one in measured if one.exposed)
        return float(
            np.interp(self.target, [unknown for unknown, _ in own], [loss for _, loss in own])
        )

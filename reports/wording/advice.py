"""Sentences of advice: releases, exposure, pooling and loss of use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..figures.figures import clipped, number, percent

if TYPE_CHECKING:
    from auditor.results.advice import Advice, Tried

ADVERSARY = (
    "Every attack that applies to an adversary who knows means, correlations and the law of the noise exactly, and holds any set of the "
    "copies. Not tried: adversaries who know some records, a sample or other columns besides; name them under `knowledge` in the scenario."
)
HOW = (
    "On paper: what the best linear attack leaves (for retention, exact Bayes) bounds from above what stays unknown, and tells how much "
    "pooled copies are worth. Measured: what every attack leaves, first of one copy that by the law of the noise tells as much as all "
    "copies pooled, then of the whole release; ± is by how much one release differs from the mean of many, 95 times in 100. "
    "The target is met where the expectation `exposure` will hold in 199 of 200 audits of one new release, and missed where it will fail "
    "in as many. Between these the draw of the noise decides, and no such level is recommended. Fewer records spread more: the levels "
    "that they tell apart lie farther apart, and being sure costs more noise."
)
GUARANTEE = (
    "Of differential privacy, (ε, δ), by the law of the noise: how well whoever holds all copies can tell any record from any other within "
    "the stated bounds, which also size the noise, so that it tells nothing of the table."
)
MET = {"holds": "met", "undecided": "open", "fails": "missed"}


LARGE = 10
"""Growth from which it is written as a factor."""


def levels_text(one: Tried) -> str:
    """Format a release's levels: ``1.21, 2.42, 4.84``, shortened if many."""
    shown = [f"{level:g}" for level in one.levels]
    return ", ".join(shown if len(shown) <= 6 else [*shown[:2], "…", shown[-1]])


def share_text(one: Tried) -> str:
    """Format the measured share unknown and its spread over releases."""
    assert one.exposed is not None
    return f"{100 * one.exposed.unknown:.1f} ± {100 * one.exposed.half:.1f} %"


def pooling_text(one: Tried) -> str:
    """State the effect of pooling."""
    if len(one.levels) == 1:
        return "there is one copy"
    if one.pooling <= 0:
        return "adds nothing to the least perturbed copy, whatever the attack"
    return f"takes {percent(one.pooling)} off what the least perturbed copy leaves"


def epsilon_text(advice: Advice, one: Tried) -> str:
    """Format ε at δ, and pure ε if it is finite."""
    assert one.epsilon is not None
    pure = "" if math.isinf(one.epsilon.pure) else f", and {number(one.epsilon.pure)} at δ = 0"
    return f"{number(one.epsilon.at_delta)} at δ = {advice.delta:g}{pure}"


def attribute_text(one: Tried) -> str:
    """Name the most exposed attribute."""
    assert one.exposed is not None
    return "the categories" if one.exposed.attribute == "*" else clipped(one.exposed.attribute, 40)


def loss_text(advice: Advice, loss: float) -> str:
    """Format a loss of use, a standard error's growth or a difference."""
    if math.isnan(loss):
        return "–"
    if advice.utility != "mean":
        return f"{loss:.3f}"
    return f"+{percent(loss)}" if loss < LARGE else f"×{1 + loss:,.0f}"

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
    "On paper: the error of the best linear attack (for retention, of exact Bayes) is an upper bound on the share unknown. It also ranks "
    "pooled copies. Measured: the error of every attack, first on a single copy that is equivalent to all copies under the law, then on "
    "the whole release. ± is the deviation of one release from the mean of many, 95 times in 100. "
    "The target is met if the expectation `exposure` will hold in 199 of 200 audits of a new release, and missed if it will fail in 199 "
    "of 200. In between the noise draw decides, and no level is recommended. With fewer records the spread is larger: levels must differ "
    "more to be distinguished, and certainty needs more noise."
)
GUARANTEE = (
    "Of (ε, δ) differential privacy under the law of the noise: the risk that a holder of all copies distinguishes any record from "
    "another within the stated bounds. The bounds also determine the noise, so its size discloses nothing about the table."
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

"""The metrics of an audit: what each number means, in one place for results, reports, expectations and docs."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """What a metric's values mean.

    Attributes
    ----------
    name : str
        As in results and scenarios.
    unit : str
        Of its values.
    meaning : str
        One sentence.
    leak : 'low', 'high' or 'neither'
        Which values mean that more of the original leaks.
    """

    name: str
    unit: str
    meaning: str
    leak: Literal["low", "high", "neither"]


METRICS = {
    metric.name: metric
    for metric in (
        Metric("distortion", "squared data units", "Mean squared error of the estimate, over rows and attributes.", "low"),
        Metric("rmse", "data units", "Square root of the distortion.", "low"),
        Metric(
            "normalized_error",
            "share of variance",
            "Squared error over the data's variance, N·D/Tr(K_X) or D_j/K_jj: 0 is exact, 1 no better than guessing the mean.",
            "low",
        ),
        Metric(
            "collusion_gain",
            "share",
            "1 − D(coalition) / min D(copy alone): what pooling bought; 0 is nothing, 1 everything.",
            "high",
        ),
        Metric("within", "share of records", "Share of the records whose value is recovered within the tolerance.", "high"),
        Metric(
            "records_within",
            "share of records",
            "Share of the records rebuilt as a whole: ‖x̂ − x‖ at most the tolerance times ‖x‖, over the attack's guesses.",
            "high",
        ),
        Metric(
            "most_exposed",
            "probability",
            "Chance that the record which its adversary finds most exposed is rebuilt within the tolerance.",
            "high",
        ),
        Metric("reconstruction_probability", "probability", "Chance that the best guess of a record is right.", "high"),
        Metric("posterior_max", "probability", "Largest posterior probability, averaged over records.", "high"),
        Metric("delta_growth", "probability", "Largest growth of a probability from prior to posterior.", "high"),
        Metric("rho_breach", "share of records", "Share of the records whose probability rises from below ρ1 to above ρ2.", "high"),
        Metric("learnt", "share of records", "Share of the records whose sensitive value the attack claims, and claims rightly.", "high"),
        Metric("claimed", "share of records", "Share of the records of which the attack claims a sensitive value.", "neither"),
        Metric("learning_gain", "share of records", "Right guesses of the sensitive value beyond those by the table's shares.", "high"),
        Metric("linkage", "probability", "Chance of naming a record's own row by its quasi-identifiers, averaged over records.", "high"),
        Metric("geometry_distances", "share", "Spread of the copy's distances over the original's: std over mean; 0 is none.", "neither"),
        Metric("geometry_neighbours", "share of records", "Share of the records that keep their nearest neighbour in the copy.", "neither"),
        Metric("geometry_clusters", "adjusted Rand index", "Likeness of 4-means clusters in the copy and in the original.", "neither"),
        Metric("seconds", "seconds", "Time to make the copies, or the last request of them.", "neither"),
    )
}

ALWAYS = ("distortion", "rmse", "normalized_error", "collusion_gain")
"""Measured for every cell of a numeric table; they cost nothing beyond the moments."""


def is_metric(name: str) -> bool:
    """Whether a name is a metric's; ``utility_…`` names belong to whoever measures utility."""
    return name in METRICS or name.startswith("utility_")


def canonical(name: str) -> str:
    """Return the metric's name for a spelling with hyphens."""
    return name.replace("-", "_")


def nearest(name: str) -> list[str]:
    """Return close metric names."""
    return get_close_matches(canonical(name), METRICS, n=2)

"""Severity scale of the normalized error.

``1 − normalized error`` is the share of the variance that the attacker knows: *rebuilt* at least 95
%, *severe* 75 %, *high* 50 %, *moderate* 25 %, else *low*. The most exposed attribute is graded by
its upper bound. The worse of the overall grade and this one counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Severity(NamedTuple):
    """One step of the scale.

    Attributes
    ----------
    rank : int
        5 (worst) to 1; the number of filled bars.
    below : float
        Upper bound (exclusive) of the normalized error.
    style : str
        Terminal colour; lightness and hue both differ between steps.
    """

    rank: int
    word: str
    below: float
    meaning: str
    style: str

    @property
    def bars(self) -> str:
        """Five blocks, of which ``rank`` are filled."""
        return "■" * self.rank + "□" * (5 - self.rank)

    @property
    def bound(self) -> str:
        """The step's range of normalized errors."""
        return f"below {self.below:g}" if self.below < math.inf else f"{SCALE[-2].below:g} and up"


SCALE = (
    Severity(
        5, "rebuilt", 0.05, "the attacker knows at least 95 % of the variance", "bold color(166)"
    ),
    Severity(4, "severe", 0.25, "the attacker knows 75 to 95 % of the variance", "color(172)"),
    Severity(3, "high", 0.5, "the attacker knows 50 to 75 % of the variance", "color(136)"),
    Severity(2, "moderate", 0.75, "the attacker knows 25 to 50 % of the variance", "color(67)"),
    Severity(1, "low", math.inf, "the attacker knows less than 25 % of the variance", "color(31)"),
)


def severity(normalized_error: float) -> Severity:
    """Return the severity of a normalized error."""
    return next((step for step in SCALE if normalized_error < step.below), SCALE[-1])

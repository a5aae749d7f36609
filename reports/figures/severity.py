"""How bad a reconstruction is: five words for the normalized error, defined once for every report.

``1 − normalized error`` is the share of the data's variance that the attacker knows, so the words bound that share:
*rebuilt* at least 95 %, *severe* at least 75 %, *high* at least half, *moderate* at least a quarter, *low* less.
A mean over attributes may hide the one that is exposed: that one is graded too, by what its error surely does not exceed, and the worse
grade counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Severity(NamedTuple):
    """One step of the scale.

    Attributes
    ----------
    rank : int
        5 (worst) to 1; bars drawn beside the word, so that colour never stands alone.
    below : float
        Normalized errors below this bound, and not below the next worse one, have this severity.
    style : str
        Terminal colour; the steps differ in lightness as well as in hue, and run from orange to blue.
    """

    rank: int
    word: str
    below: float
    meaning: str
    style: str

    @property
    def bars(self) -> str:
        """Five blocks, as many filled as the rank."""
        return "■" * self.rank + "□" * (5 - self.rank)

    @property
    def bound(self) -> str:
        """The normalized errors that it is of."""
        return f"below {self.below:g}" if self.below < math.inf else f"{SCALE[-2].below:g} and up"


SCALE = (
    Severity(5, "rebuilt", 0.05, "the attacker knows at least 95 % of the variance", "bold color(166)"),
    Severity(4, "severe", 0.25, "the attacker knows 75 to 95 % of the variance", "color(172)"),
    Severity(3, "high", 0.5, "the attacker knows 50 to 75 % of the variance", "color(136)"),
    Severity(2, "moderate", 0.75, "the attacker knows 25 to 50 % of the variance", "color(67)"),
    Severity(1, "low", math.inf, "the attacker knows less than 25 % of the variance", "color(31)"),
)


def severity(normalized_error: float) -> Severity:
    """Return the step of the scale that a normalized error falls in."""
    return next((step for step in SCALE if normalized_error < step.below), SCALE[-1])

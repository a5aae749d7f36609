"""Spelling suggestions: the valid names nearest to a wrong one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

ALIKE, ALIKE_SHORT = 0.75, 0.66
"""Least ratio of common letters: TOTSALES is not OTHRSALES, but UDX may be UDR."""
LONGEST = 100
"""Letters of a name to compare; longer names are no misspellings."""


def closest(name: object, known: Iterable[str]) -> list[str]:
    """Return at most two valid names that are most alike, ignoring case.

    Examples
    --------
    >>> closest("li2021", ["li2011", "li2012", "huang2005"]), closest("TOTSALES", ["RESSALES", "INDSALES"])
    (['li2012', 'li2011'], [])
    """
    wanted = str(name).strip().casefold()[:LONGEST]
    least = ALIKE if len(wanted) > 4 else ALIKE_SHORT
    ratios: dict[str, float] = {}
    for other in dict.fromkeys(known):
        match = SequenceMatcher(None, other.strip().casefold(), wanted)
        if len(other) <= LONGEST and match.real_quick_ratio() >= match.quick_ratio() >= least:
            ratios[other] = match.ratio()
    best = max(ratios.values(), default=0.0)
    found = [other for other, ratio in ratios.items() if ratio >= max(best - 0.01, least)]
    letters = Counter(wanted)
    return sorted(found, key=lambda other: (-(Counter(other.casefold()) & letters).total(), other))[
        :2
    ]

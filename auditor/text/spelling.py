"""Spelling suggestions: the valid names nearest to a wrong one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher

LETTERS_PER_SLIP = 5
"""Letters per allowed slip: TOTSALES is neither RESSALES nor OTHRSALES."""
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
    letters = max(1, len(wanted))
    # one slip leaves at least the share 1 − 1/n of n letters
    least = max(0.5, 0.999 - max(1, letters // LETTERS_PER_SLIP) / letters)
    ratios: dict[str, float] = {}
    for other in dict.fromkeys(known):
        match = SequenceMatcher(None, other.strip().casefold(), wanted)
        if len(other) <= LONGEST and match.real_quick_ratio() >= match.quick_ratio() >= least:
            ratios[other] = match.ratio()
    best = max(ratios.values(), default=0.0)
    found = [other for other, ratio in ratios.items() if ratio >= max(best - 0.01, least)]
    common = Counter(wanted)
    found.sort(key=lambda other: (-(Counter(other.casefold()) & common).total(), other))
    return found[:2]

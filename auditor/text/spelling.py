"""Spelling suggestions: the valid names nearest to a wrong one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

LETTERS_PER_SLIP = 5
"""Letters per allowed slip: TOTSALES is neither RESSALES nor COMSALES."""
LONGEST = 100
"""Letters of a name to compare; longer names are no misspellings."""


def closest(name: object, known: Iterable[str]) -> list[str]:
    """Return at most two valid names at the least distance, ignoring case.

    Ties are ordered by common letters, then by common prefix.

    Examples
    --------
    >>> closest("li2021", ["li2011", "li2012", "huang2005"]), closest("TOTSALES", ["RESSALES", "INDSALES"])
    (['li2012', 'li2011'], [])
    """
    wanted = str(name).strip().casefold()[:LONGEST]
    best = max(1, len(wanted) // LETTERS_PER_SLIP)
    found: list[tuple[tuple[int, int, int, str], str]] = []
    for other in dict.fromkeys(known):
        folded = other.strip().casefold()
        unlike = _unlike(wanted, folded)
        if len(folded) > LONGEST or unlike > best:
            continue  # the letter counts give a cheap lower bound on the distance
        distance = slips(wanted, folded)
        if distance <= best:
            best = distance
            found.append(((distance, unlike, -_common(wanted, folded), other), other))
    return [other for key, other in sorted(found) if key[0] == best][:2]


def slips(a: str, b: str) -> int:
    """Return the edit distance of two texts, with swaps of neighbours.

    Notes
    -----
    The optimal string alignment distance, row by row: D[i, j] = min(D[i−1, j] + 1, D[i, j−1] + 1,
    D[i−1, j−1] + (aᵢ ≠ bⱼ), and for two neighbours exchanged D[i−2, j−2] + 1).

    Examples
    --------
    >>> slips("brigde", "bridge"), slips("TOTSALES", "RESSALES")
    (1, 3)
    """
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            row.append(min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other)))
            if i > 1 and j > 1 and letter == b[j - 2] and other == a[i - 2]:
                row[j] = min(row[j], before[j - 2] + 1)
        before, last = last, row
    return last[-1]


def _unlike(a: str, b: str) -> int:
    """Return a lower bound on ``slips`` from letter counts."""
    if abs(len(a) - len(b)) > len(a):
        return abs(len(a) - len(b))
    mine, theirs = Counter(a), Counter(b)
    return max((mine - theirs).total(), (theirs - mine).total())


def _common(a: str, b: str) -> int:
    return next(
        (at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )

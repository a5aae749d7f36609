"""Which valid names are meant by one that is not: the nearest by the slips of a hand, and none where none is near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

LETTERS_PER_SLIP = 5
"""One slip is forgiven for so many letters: TOTSALES is not RESSALES, nor COMSALES."""
LONGEST = 100
"""Letters of a name that are looked at; what is longer is no name that somebody mistyped."""


def closest(name: object, known: Iterable[str]) -> list[str]:
    """Return the valid names at the least distance, capitals apart: two at most, those with the same letters and beginning first.

    Parameters
    ----------
    name : object
        What was written.
    known : iterable of str
        What would have been valid.

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
            continue  # no distance is less than what letters alone differ by: most names are put aside by that, at no cost
        distance = slips(wanted, folded)
        if distance <= best:
            best = distance
            found.append(((distance, unlike, -_common(wanted, folded), other), other))
    return [other for key, other in sorted(found) if key[0] == best][:2]


def slips(a: str, b: str) -> int:
    """Return how many letters must be put in, left out, changed or exchanged with their neighbour to make one text the other.

    Notes
    -----
    The optimal string alignment distance, row by row: D[i, j] = min(D[i−1, j] + 1, D[i, j−1] + 1, D[i−1, j−1] + (aᵢ ≠ bⱼ), and for two
    neighbours exchanged D[i−2, j−2] + 1).

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
    """Return the most letters of either that the other has not: exchanged letters count for nothing, so it is never above ``slips``."""
    if abs(len(a) - len(b)) > len(a):
        return abs(len(a) - len(b))
    mine, theirs = Counter(a), Counter(b)
    return max((mine - theirs).total(), (theirs - mine).total())


def _common(a: str, b: str) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

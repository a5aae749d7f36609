"""Text of messages: quoted names, spelling, durations, safe output.

No character can control a terminal or change the direction of a line. A message has column names,
shortened, and never values.
"""

from __future__ import annotations

import re
import unicodedata
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


LONGEST_NAME = 60
"""Longest quoted name in characters, because a header may hold anything."""


def quoted(name: object) -> str:
    """Return a printable quoted name of at most 60 characters."""
    text = repr(str(name))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 2] + "…" + text[-1]


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Join names as ``'a', 'b' and 3 more``."""
    every = [quoted(name) for name in names]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def nearest(name: object, known: Iterable[str]) -> str:
    """Return ``; did you mean 'age'?``, or the first known names.

    Names from files are quoted and shortened, unlike in `auditor.base.errors.did_you_mean`.
    """
    names = list(known)
    close = closest(name, names)
    if close:
        return "; did you mean " + " or ".join(quoted(match) for match in close) + "?"
    return f"; valid are {listed(names)}" if names else ""


def counted(number: int, noun: str) -> str:
    """Return ``1 record`` or ``2 records``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, direction marks, line separators and surrogates."""
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and separators of lines."""
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Zero-width joiners; Persian, Hindi and others need them, and they are harmless."""


_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def clean(text: object) -> str:
    """Return text on one line, with unsafe characters replaced by �."""
    line = str(text).replace("\n", " ").replace("\t", " ")
    if line.isprintable():  # fast path for nearly all texts
        return line
    return "".join(
        "�"
        if unicodedata.category(character) in _UNSEEN and character not in _JOINERS
        else character
        for character in line
    )


def clean_lines(text: object) -> str:
    """Clean a message line by line."""
    return "\n".join(clean(line) for line in str(text).split("\n"))


def escaped(document: str) -> str:
    """Escape control characters of a JSON document, which stays equivalent.

    Line ends between its parts stay. JSON already escapes line ends in text.
    """
    if document.replace("\n", "").isprintable():  # fast path: no unsafe character is printable
        return document
    return _STEERING.sub(_escape, document)


def visible(text: str) -> str:
    """Escape unsafe characters as JSON does, except tabs and line ends."""
    return text if text.isprintable() else _STEERING.sub(_escape, text)


def visible_on_one_line(text: str) -> str:
    """Escape unsafe characters, tabs and line ends as JSON does.

    Examples
    --------
    >>> visible_on_one_line("age" + chr(10) + chr(27)) == "age" + chr(92) + "n" + chr(92) + "u001b"
    True
    """
    return (
        text
        if text.isprintable()
        else visible(text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )


def without_formula(text: str) -> str:
    """Return text for a CSV cell, after an apostrophe if a spreadsheet would run it as a formula.

    Examples
    --------
    >>> without_formula("=1+1"), with_formula(without_formula("=1+1")), without_formula("age")
    ("'=1+1", '=1+1', 'age')
    """
    return (
        f"'{text}"
        if text.startswith(_STARTS_A_FORMULA) or text.lstrip().startswith(_STARTS_A_FORMULA)
        else text
    )


def with_formula(text: str) -> str:
    """Return the text of which `without_formula` made a cell."""
    bare = text[1:]
    return bare if text != bare and without_formula(bare) == text else text


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return character if character in "\n\t\r" else f"\\u{ord(character):04x}"


UNITS = {"": 1, "s": 1, "min": 60, "h": 3600}


def duration(seconds: float) -> str:
    """Format an approximate duration.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.2, 41.7, 100.0, 4000.0, 20_000.0)]
    ['1 s', '42 s', '2 minutes', '67 minutes', '5.6 hours']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def seconds(text: str) -> float | None:
    """Return the seconds of a duration as ``30s``, ``5min`` or ``1h``; None for other texts.

    Examples
    --------
    >>> [seconds(text) for text in ("30s", "1.5 min", "2h", "soon")]
    [30.0, 90.0, 7200.0, None]
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(|s|min|h)\s*", text)
    return None if found is None else float(found[1]) * UNITS[found[2]]

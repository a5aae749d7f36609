"""User errors, text of messages, and deferred libraries.

Messages hold no original value. They state the column, the row number and the expectation.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from importlib import import_module
from textwrap import shorten
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
    import scipy


# -- Text of messages: quoted names, spelling, durations, safe output ------------------------------


LETTERS_PER_SLIP = 5
"""Letters per allowed slip: TOTSALES is neither RESSALES nor OTHRSALES."""
LONGEST = 100
"""Letters of a name to compare; longer names are no misspellings."""


def closest(name: object, known: Iterable[str]) -> list[str]:
    """At most two valid names that are most alike, ignoring case.

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
    """Printable quoted name of at most 60 characters."""
    text = repr(str(name))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 2] + "…" + text[-1]


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Join names as ``'a', 'b' and 3 more``."""
    every = [quoted(name) for name in names]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def nearest(name: object, known: Iterable[str]) -> str:
    """``; did you mean 'age'?``, or the first known names.

    Names from files are quoted and shortened, unlike in `auditor.base.did_you_mean`.
    """
    names = list(known)
    return _close(name, names) or (f"; valid are {listed(names)}" if names else "")


def _close(name: object, known: list[str]) -> str:
    close = " or ".join(map(quoted, closest(name, known)))
    return f"; did you mean {close}?" if close else ""


def counted(number: int, noun: str) -> str:
    """``1 record`` or ``2 records``."""
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
    """Text on one line, with unsafe characters replaced by �."""
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
    """Text for a CSV cell, after an apostrophe if a spreadsheet would run it as a formula.

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
    """Seconds of a duration as ``30s``, ``5min`` or ``1h``; None for other texts.

    Examples
    --------
    >>> [seconds(text) for text in ("30s", "1.5 min", "2h", "soon")]
    [30.0, 90.0, 7200.0, None]
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*)\s*(|s|min|h)\s*", text)
    return None if found is None else float(found[1]) * UNITS[found[2]]


# --------------------------------------------------------------------------------------------------


WRONG_REQUEST, FAILED_RUNNING = 2, 3
"""Exit statuses: wrong request, and failure while running."""
LONGEST_LINE = 500
"""Longest line of a message in characters; longer lines lose their middle."""
MOST_LINES = 100
"""Most lines of a message, so that one request cannot fill a log."""
LONGEST_LIST = 320
"""Longest list of valid names in characters."""


def bounded(message: str) -> str:
    r"""Limit a message to 100 lines of 500 characters, with a count of others.

    Examples
    --------
    >>> len(bounded("x" * 10_000)), bounded("wrong\n" * 1_000).endswith("and 900 problems more")
    (500, True)
    """
    lines = message.removesuffix("\n").split("\n")
    if len(lines) > MOST_LINES + 1:  # the extra line may be another message's count
        lines = [*lines[:MOST_LINES], f"and {len(lines) - MOST_LINES:,} problems more"]
    return "\n".join(shortened(line, LONGEST_LINE) for line in lines)


def shortened(text: str, longest: int) -> str:
    """Cut the middle of a long text, because errors are at its ends."""
    return (
        text
        if len(text) <= longest
        else f"{text[: longest - longest // 4 - 1]}…{text[-(longest // 4) :]}"
    )


class AuditorError(Exception):
    """Root of user errors: one message of limited length, without traceback."""

    def __init__(self, message: object = "") -> None:
        super().__init__(bounded(str(message)))


class DataError(AuditorError):
    """The table cannot be audited (text, missing values, constants …).

    ``path`` is the field of a scenario's ``data`` or knowledge that requests it, as ``("columns",
    1)``; empty for all.
    """

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


class PluginError(AuditorError):
    """A plugin is unknown, registered twice, or breaks its contract."""


class PluginFailed(AuditorError):  # noqa: N818 - an outcome in reports
    """A plugin raised an unexpected exception; the message is safe."""


class AuditorWarning(UserWarning):
    """A note for the user on an accepted request, shown as one message."""


class StorageError(AuditorError):
    """A disk is full or broken during an audit; exit status of a failure."""


class WorkersLost(AuditorError):  # noqa: N818 - an outcome in reports
    """Worker processes died repeatedly: killed, or out of memory."""


class NotApplicable(AuditorError):  # noqa: N818 - an outcome in reports
    """An impossible pairing; reports show the message as the reason."""


class Problem(NamedTuple):
    """One error in a scenario, with its position.

    Attributes
    ----------
    path : str
        The field, as ``attacks[1].components``; empty for the whole document.
    message : str
        Expected and found, to follow the path in a sentence.
    file : str or None
        The scenario file, if any.
    line, column : int or None
        Position in the file, from 1.
    """

    path: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def bounded(self) -> Problem:
        """Error on one line, with limited path and message."""
        path, message = (
            shortened(" ".join(text.split("\n")), most)
            for text, most in ((self.path, 120), (self.message, 360))
        )
        return self._replace(path=path, message=message)

    def __str__(self) -> str:
        where = ":".join(
            str(part) for part in (self.file, self.line, self.column) if part is not None
        )
        what = f"{self.path} {self.message}" if self.path else self.message
        return f"{where}: {what}" if where else what


class ScenarioError(AuditorError):
    """All errors of a scenario; ``problems`` has the first hundred."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        every = [problem.bounded() for problem in problems]
        self.problems = tuple(every[:MOST_LINES])
        super().__init__("\n".join(map(str, every)))


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``; did you mean 'llse'?``, or the list of valid names."""
    names = sorted(set(known))
    valid = shorten(", ".join(names), LONGEST_LIST, placeholder=" …")
    return _close(name, names) or (f"; valid are {valid}" if names else "")


# -- Slow libraries, imported at first use ---------------------------------------------------------


__all__ = ["pa", "pd", "pq", "scipy"]


class Deferred(ModuleType):
    """A module, imported at the first use of one of its names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if not TYPE_CHECKING:
    pa, pd, pq, scipy = map(Deferred, ("pyarrow", "pandas", "pyarrow.parquet", "scipy"))

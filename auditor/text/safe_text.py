"""Safe printing of text from data, scenarios and files.

No character can control a terminal or change the direction of a line.
"""

from __future__ import annotations

import re
import unicodedata

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

"""Text that comes from data, a scenario or a file, made safe to print: nothing in it can steer a terminal or turn a line around."""

from __future__ import annotations

import re
import unicodedata

_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
"""Control characters, marks and overrides of direction, separators of lines, and halves of characters."""
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters and separators of lines."""
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_JOINERS = "\u200c\u200d"
"""Zero-width joiner and non-joiner: Persian, Hindi and others are misspelt without them, and they steer nothing."""


_STARTS_A_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def clean(text: object) -> str:
    """Return text on one line, with a replacement character for every control character, direction override or unassigned character."""
    line = str(text).replace("\n", " ").replace("\t", " ")
    if line.isprintable():  # nearly all are: no look at each character
        return line
    return "".join(
        "�" if unicodedata.category(character) in _UNSEEN and character not in _JOINERS else character
        for character in line
    )


def clean_lines(text: object) -> str:
    """Clean a message line by line."""
    return "\n".join(clean(line) for line in str(text).split("\n"))


def escaped(document: str) -> str:
    """Return a JSON document with steering characters escaped, which JSON reads as the same text.

    Line ends between its parts stay; within text JSON has escaped its own already.
    """
    if document.replace("\n", "").isprintable():  # looked through at once; no steering character is printable
        return document
    return _STEERING.sub(_escape, document)


def visible(text: str) -> str:
    """Return text with steering characters escaped as JSON does it, all but tabs and line ends, so that a reader sees what it was."""
    return text if text.isprintable() else _STEERING.sub(_escape, text)


def visible_on_one_line(text: str) -> str:
    """Return text with steering characters, tabs and line ends escaped as JSON does it; for tables, whose cells are read one a line.

    Examples
    --------
    >>> visible_on_one_line("age" + chr(10) + chr(27)) == "age" + chr(92) + "n" + chr(92) + "u001b"
    True
    """
    return text if text.isprintable() else visible(text).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def without_formula(text: str) -> str:
    """Return text for a CSV cell, after an apostrophe if a spreadsheet would run it as a formula.

    Examples
    --------
    >>> without_formula("=1+1"), with_formula(without_formula("=1+1")), without_formula("age")
    ("'=1+1", '=1+1', 'age')
    """
    return f"'{text}" if text.startswith(_STARTS_A_FORMULA) or text.lstrip().startswith(_STARTS_A_FORMULA) else text


def with_formula(text: str) -> str:
    """Return the text of which `without_formula` made a cell."""
    bare = text[1:]
    return bare if text != bare and without_formula(bare) == text else text


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return character if character in "\n\t\r" else f"\\u{ord(character):04x}"

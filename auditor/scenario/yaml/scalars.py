"""YAML 1.2 core schema: numbers, truth values, null and text.

=====================  ==================================================
written                read as
=====================  ==================================================
``null ~`` (nothing)   null; also ``Null NULL``
``true false``         truth value; also ``True TRUE False FALSE``
``12 -3 012``          integer, decimal even with a leading zero
``0o14 0xC``           integer, octal and hexadecimal
``1.5 .5 1e3 1.``      double; an exponent makes a double, never an integer
``.inf -.inf .nan``    double; also ``.Inf .INF .NaN .NAN``
anything else          text: ``on off yes NO 1_000 1:30 2012-01-01``
=====================  ==================================================

Reference: YAML 1.2.2, section 10.3.2, https://yaml.org/spec/1.2.2/#1032-tag-resolution
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

from auditor.parameters import kind_of

Scalar: TypeAlias = str | int | float | bool | None

# Above any count or seed, below Python's limit of 4300 digits.
MAX_DIGITS = 1000

CORE_PREFIX = "tag:yaml.org,2002:"

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(
        (sign + word for sign in ("", "+") for word in (".inf", ".Inf", ".INF")), math.inf
    ),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGERS = {
    10: re.compile(r"[-+]?[0-9]+"),
    8: re.compile(r"0o[0-7]+"),
    16: re.compile(r"0x[0-9a-fA-F]+"),
}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")

_TAGS: dict[str, type] = {
    CORE_PREFIX + "str": str,
    CORE_PREFIX + "int": int,
    CORE_PREFIX + "float": float,
    CORE_PREFIX + "bool": bool,
    CORE_PREFIX + "null": type(None),
}


def resolve(text: str) -> Scalar:
    """Read an unquoted scalar by the core schema.

    Raises
    ------
    ValueError
        An integer has more than `MAX_DIGITS` digits, or a decimal exceeds the range of a double.

    Examples
    --------
    >>> [resolve(text) for text in ("012", "0o14", "1e3", "NO", "~")]
    [12, 12, 1000.0, 'NO', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    for base, pattern in _INTEGERS.items():
        if pattern.fullmatch(text):
            return _integer(text, base)
    return _double(text) if _FLOAT.fullmatch(text) else text


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Read a scalar with an explicit core tag, for example ``!!str 5``.

    The tag is complete, as ``tag:yaml.org,2002:str``. The text may be quoted.

    Raises
    ------
    KeyError
        The tag is not a core scalar tag.
    ValueError
        The text is not a value of this kind.
    """
    wanted = _TAGS[tag]
    if wanted is str:
        return text
    value = resolve(text)
    if wanted is float and type(value) is int:
        return _double(text) if _FLOAT.fullmatch(text) else float(value)
    if type(value) is not wanted:
        raise ValueError(f"is tagged !!{tag.removeprefix(CORE_PREFIX)} but is {kind_of(value)}")
    return value


def _integer(text: str, base: int) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"is an integer of more than {MAX_DIGITS} digits")
    return int(text, base)


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("is beyond the range of a double; write .inf if infinity is meant")
    return value

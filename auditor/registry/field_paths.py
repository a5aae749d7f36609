"""Paths in a scenario, written ``attacks[1].components``.

The value is ``("attacks", 1, "components")``. An element is a mapping's key (text), a list item's
number (from 0), or a list item's id or name (text, as in ``schemes[corner-wave].levels``). Keys
with dots, brackets, quotes or blanks are quoted: ``sweep["data.rows"]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias, Union, cast

from auditor.base.errors import AuditorError, did_you_mean
from auditor.registry.parameters import Found, kind_of

Value: TypeAlias = Union[dict[str, "Value"], list["Value"], str, int, float, bool, None]  # noqa: UP007 - recursive
Path: TypeAlias = tuple[str | int, ...]

# A scenario needs depth 6; Python's stack allows about 1,000.
MAX_DEPTH = 50

EVERY = "*"
"""Wildcard: ``schemes[*].levels`` is the levels of every scheme."""

# `format_path` writes these elements without quotes; `parse_path` also accepts ``a.b/c`` and
# ``[corner wave]``.
_BARE = re.compile(r"[^\W\d][\w-]*")

# Alternatives have distinct first characters, so matching cannot be slow.
_ELEMENT = re.compile(
    r"""\[ (?P<index> -?[0-9]{1,1000} ) \]
      | \[ (?P<quoted> "(?:[^"\\]|\\.)*" ) \]
      | \[ '(?P<single> (?:[^']|'')* )' \]
      | \[ (?P<name> [^\[\]"'\s] [^\[\]"']* ) \]
      | (?P<dot> \.? ) (?P<key> [^.\[\]"'\s]+ )
    """,
    re.VERBOSE | re.DOTALL,
)


def format_path(path: Path) -> str:
    """Format a path for error messages and ``--set``.

    Examples
    --------
    >>> format_path(("attacks", 1, "components")), format_path(("sweep", "data.rows"))
    ('attacks[1].components', 'sweep["data.rows"]')
    """
    return "".join(_format_element(element) for element in path).removeprefix(".")


def parse_path(text: str) -> Path:
    """Parse a path; the inverse of `format_path`.

    Parameters
    ----------
    text : str
        As ``schemes[0].levels.count``, ``schemes[corner-wave].levels`` or ``sweep["data.rows"]``;
        empty for the whole document.

    Raises
    ------
    AuditorError
        The text is not a path; the message has the position.

    Examples
    --------
    >>> parse_path("schemes[0].levels.count"), parse_path('sweep["data.rows"]')
    (('schemes', 0, 'levels', 'count'), ('sweep', 'data.rows'))
    """
    elements: list[str | int] = []
    at = 0
    while at < len(text):
        match = _ELEMENT.match(text, at)
        if match is None or (match["key"] is not None and bool(match["dot"]) != bool(elements)):
            raise _bad_path(text, at)
        elements.append(_parse_element(match, text))
        at = match.end()
    return tuple(elements)


def set_at(value: Value, path: Path, new: Value, places: list[Path] | None = None) -> Value:
    """Copy a document's value with one place, or all of ``[*]``, replaced or added.

    Missing (or null) mappings on the path are created. A bare name in a list, as in ``schemes:
    [corner-wave]``, becomes ``{name: corner-wave}`` if a field below it is set.

    ``value`` is unchanged, and independent of the result. An empty path means the whole.
    ``places`` receives the path of every place, with numbers for ids and names.

    Raises
    ------
    AuditorError
        The path leads through a scalar, past the end of a list, to an unknown or ambiguous name, or
        is longer than `MAX_DEPTH`.

    Examples
    --------
    >>> set_at({"schemes": ["corner-wave"]}, ("schemes", 0, "levels"), [0.5])
    {'schemes': [{'name': 'corner-wave', 'levels': [0.5]}]}
    """
    if len(path) > MAX_DEPTH:
        raise AuditorError(
            f"a path of {len(path)} elements is longer than the {MAX_DEPTH} a scenario may be deep"
        )
    found: list[Path] = [] if places is None else places

    def changed(here: Any, parent: Any, at: Path, depth: int) -> Any:
        """Return a value with everything below it set; ``at`` is its numbered path."""
        if depth == len(path):
            found.append(at)
            return copy_value(new)
        element = path[depth]
        if element == EVERY and not isinstance(here, dict):
            if not isinstance(here, list):
                raise AuditorError(
                    f"{_place(path, depth)} is not a list, so [*] names nothing in it"
                )
            return [changed(item, here, (*at, n), depth + 1) for n, item in enumerate(here)]
        if isinstance(here, list):
            number = _item_number(here, path, depth)
            item = changed(here[number], here, (*at, number), depth + 1)
            return [*here[:number], item, *here[number + 1 :]]
        if isinstance(element, str) and here is None:
            here = {}
        elif isinstance(element, str) and isinstance(here, str) and isinstance(parent, list):
            here = {"name": here}
        if isinstance(here, dict) and isinstance(element, str):
            return here | {element: changed(here.get(element), here, (*at, element), depth + 1)}
        raise AuditorError(_dead_end(here, parent, path, depth))

    return cast("Value", changed(copy_value(value), None, (), 0))


def copy_value(value: Value) -> Value:
    """Copy a value recursively.

    Unlike `copy.deepcopy`, repeated lists become independent copies.
    """
    if isinstance(value, dict):
        return {key: copy_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_value(item) for item in value]
    return value


def find_item(items: list[Value], name: str) -> list[int]:
    """Return the numbers of items with an id or, if none, with a name.

    Items are bare names, or mappings with ``name`` and perhaps ``id``.
    """
    by_id = [
        at for at, item in enumerate(items) if isinstance(item, dict) and item.get("id") == name
    ]
    return by_id or [at for at, item in enumerate(items) if _name(item) == name]


def shortened(text: str, limit: int = 60) -> str:
    """Return the beginning of a text, for an error message."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quoted(text: str) -> str:
    """Return the beginning of a text, quoted and with controls escaped."""
    start = shortened(text)
    return repr(start) if start.isprintable() else ascii(start)


def _format_element(element: str | int) -> str:
    if isinstance(element, int):
        return f"[{element}]"
    if _BARE.fullmatch(element):
        return f".{element}"
    # escape the whole text if any character is not printable
    return f"[{json.dumps(element, ensure_ascii=not element.isprintable())}]"


def _parse_element(match: re.Match[str], text: str) -> str | int:
    if match["index"] is not None:
        return int(match["index"])
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    if match["quoted"] is None:
        return match["key"] or match["name"].rstrip()
    try:
        return str(json.loads(match["quoted"], strict=False))
    except json.JSONDecodeError:
        raise _bad_path(text, match.start("quoted")) from None


def _bad_path(text: str, at: int) -> AuditorError:
    found = quoted(text[at : at + 20]) if at < len(text) else "the end"
    return AuditorError(
        f"{quoted(text)} is not a path: at character {at + 1} expected a key, .key, [number], [name] or "
        f'["quoted key"]; got {found}'
    )


def _item_number(items: list[Value], path: Path, depth: int) -> int:
    element, where = path[depth], _place(path, depth)
    count = f"{len(items)} item" + "s" * (len(items) != 1)
    if isinstance(element, int):
        if 0 <= element < len(items):
            return element
        raise AuditorError(f"{where} has {count}, numbered from 0; got [{element}]")
    found = find_item(items, element)
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"[{at}]" for at in found)
        advice = f"{several}; choose by number or id"
        raise AuditorError(f"{where} has several items named {quoted(element)}: {advice}")
    ids = (item.get("id") for item in items if isinstance(item, dict))
    names = {name for name in (*ids, *map(_name, items)) if isinstance(name, str)}
    numbered = element in map(str, range(len(items)))
    hint = f"; write {where}[{element}]" if numbered else did_you_mean(element, names)
    raise AuditorError(f"{where} is a list of {count}, none named {quoted(element)}{hint}")


def _dead_end(here: Value, parent: Any, path: Path, depth: int) -> str:
    where, element = _place(path, depth), path[depth]
    if isinstance(here, dict):
        hint = did_you_mean(element, here)
        return f"{where} is a mapping, so [{element}] is no place in it{hint}"
    if here is None:
        return f"{where} is not given, so it has no item [{element}]"
    # the key may belong to the parent
    hint = did_you_mean(element, parent) if isinstance(parent, dict) else ""
    got = shortened(format_path(path), 120)
    return f"{where} is {kind_of(here)}, so nothing can be set below it; got {got}{hint}"


def _place(path: Path, depth: int) -> str:
    return shortened(format_path(path[:depth]), 120) or "the document"


def _name(item: Value) -> Value:
    return item.get("name") if isinstance(item, dict) else item


def sentence(found: Iterable[Found]) -> str:
    """Return errors of fields, each after its path, as one sentence."""
    return "; ".join(f"{format_path(path)} {message}".lstrip() for path, message, _ in found)

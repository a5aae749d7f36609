"""Paths in a scenario, written ``attacks[1].components``.

The value is ``("attacks", 1, "components")``. An element is a mapping's key (text), a list item's
number (from 0), or a list item's id or name (text, as in ``schemes[corner-wave].levels``). Keys
with dots, brackets, quotes or blanks are quoted: ``sweep["data.rows"]``.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeAlias, Union, cast

from auditor.errors import AuditorError, did_you_mean
from auditor.parameters import kind_of

Value: TypeAlias = Union[dict[str, "Value"], list["Value"], str, int, float, bool, None]  # noqa: UP007 - recursive
Path: TypeAlias = tuple[str | int, ...]

# A scenario needs depth 6; Python's stack allows about 1,000.
MAX_DEPTH = 50

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


def set_at(value: Value, path: Path, new: Value) -> Value:
    """Copy a document's value with one place replaced or added.

    Missing (or null) mappings on the path are created. A bare name in a list, as in ``schemes:
    [corner-wave]``, becomes ``{name: corner-wave}`` if a field below it is set.

    ``value`` is unchanged, and independent of the result. An empty path means the whole.

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
    # an outer list makes the whole document an ordinary place
    root: Any = [copy_value(value)]
    parent, slot = root, cast("str | int", 0)
    for depth, element in enumerate(path):
        _make_room(parent, slot, element, in_list=depth > 0 and isinstance(parent, list))
        here = parent.get(slot) if isinstance(parent, dict) else parent[slot]
        parent, slot = here, _slot(here, parent, path, depth)
    parent[slot] = copy_value(new)
    return cast("Value", root[0])


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
    if match["quoted"] is not None:
        return _unquote(match, text)
    return match["key"] or match["name"].rstrip()


def _unquote(match: re.Match[str], text: str) -> str:
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


def _make_room(parent: Any, slot: str | int, element: str | int, *, in_list: bool) -> None:
    """Create a mapping at the slot if a key below it needs one."""
    if isinstance(element, int):
        return
    if isinstance(parent, dict):
        parent.setdefault(slot, None)
    if parent[slot] is None:
        parent[slot] = {}
    elif in_list and isinstance(parent[slot], str):
        parent[slot] = {"name": parent[slot]}


def _slot(here: Value, parent: Any, path: Path, depth: int) -> str | int:
    element = path[depth]
    if isinstance(here, list):
        return _item_number(here, path, depth)
    if isinstance(here, dict) and isinstance(element, str):
        return element
    raise AuditorError(_dead_end(here, parent, path, depth))


def _item_number(items: list[Value], path: Path, depth: int) -> int:
    element, where = path[depth], _place(path, depth)
    if isinstance(element, int):
        if 0 <= element < len(items):
            return element
        raise AuditorError(f"{where} has {_counted(items)}, numbered from 0; got [{element}]")
    found = find_item(items, element)
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"[{at}]" for at in found)
        raise AuditorError(
            f"{where} has several items named {quoted(element)}: {several}; choose by number or id"
        )
    hint = (
        f"; write {where}[{element}]"
        if element in map(str, range(len(items)))
        else did_you_mean(element, _names(items))
    )
    raise AuditorError(
        f"{where} is a list of {_counted(items)}, none named {quoted(element)}{hint}"
    )


def _dead_end(here: Value, parent: Any, path: Path, depth: int) -> str:
    where, element = _place(path, depth), path[depth]
    if isinstance(here, dict):
        return (
            f"{where} is a mapping, so [{element}] is no place in it{did_you_mean(element, here)}"
        )
    if here is None:
        return f"{where} is not given, so it has no item [{element}]"
    # the key may belong to the parent
    beside = did_you_mean(element, parent) if isinstance(parent, dict) else ""
    return f"{where} is {kind_of(here)}, so nothing can be set below it; got {shortened(format_path(path), 120)}{beside}"


def _place(path: Path, depth: int) -> str:
    return shortened(format_path(path[:depth]), 120) or "the document"


def _counted(items: list[Value]) -> str:
    return f"{len(items)} item" + "s" * (len(items) != 1)


def _name(item: Value) -> Value:
    return item.get("name") if isinstance(item, dict) else item


def _names(items: list[Value]) -> set[str]:
    ids = (item.get("id") for item in items if isinstance(item, dict))
    return {name for name in (*ids, *map(_name, items)) if isinstance(name, str)}

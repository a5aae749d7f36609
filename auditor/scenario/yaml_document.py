"""Scenario files in YAML 1.2, with the position of every value.

PyYAML alone reads YAML 1.1 (``1e3`` is text, ``on`` is true, ``NO`` is false, ``012`` is ten),
keeps the last of two equal keys and expands alias bombs. This package uses only its parser, whose
events are read within limits. `auditor.registry.parameters` defines the notation of places.

=====================  ==================================================
written                read as (YAML 1.2.2, section 10.3.2)
=====================  ==================================================
``null ~`` (nothing)   null; also ``Null NULL``
``true false``         truth value; also ``True TRUE False FALSE``
``12 -3 012``          integer, decimal even with a leading zero
``0o14 0xC``           integer, octal and hexadecimal
``1.5 .5 1e3 1.``      double; an exponent makes a double, never an integer
``.inf -.inf .nan``    double; also ``.Inf .INF .NaN .NAN``
anything else          text: ``on off yes NO 1_000 1:30 2012-01-01``
=====================  ==================================================
"""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, NoReturn, TypeAlias

import yaml

from auditor.base.errors import AuditorError, Problem, ScenarioError
from auditor.registry.parameters import (
    MAX_DEPTH,
    Path,
    Value,
    copy_value,
    find_item,
    format_path,
    kind_of,
    quoted,
    set_at,
    shortened,
)

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


Position: TypeAlias = tuple[int, int]

# The largest scenario with all grids written out has about 10,000 bytes.
MAX_BYTES = 1_000_000
# Nodes with aliases expanded: 100 times the largest scenario.
MAX_NODES = 100_000
# Long text counts as several nodes, so that aliases of it are limited as well.
CHARACTERS_PER_NODE = 64
# A file with so many errors is no scenario. Messages have at most 100 lines.
MAX_PROBLEMS = 99
# Characters of the document in a message.
MAX_EXCERPT = 100

# Controls, surrogates, inner byte order marks and non-characters are forbidden in YAML. NEL and the
# Unicode separators are line breaks only in YAML 1.1, so parser and editor would count lines
# differently.
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# JSON writes characters beyond U+FFFF as two escapes, which only PyYAML's own parser reads.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(slots=True)
class Node:
    """A value and its position.

    Attributes
    ----------
    at : tuple of int
        Line and column, from 1; an alias has its own position.
    value : dict, list or scalar
        The plain value.
    entries : dict
        The key's position and the node of each entry, by key or number.
    weight : int
        Number of nodes in the subtree with aliases expanded; long texts count for more.
    height : int
        Depth of nested collections; 0 for a scalar.
    """

    at: Position
    value: Any
    entries: dict[str | int, tuple[Position, Node]] = field(default_factory=dict)
    weight: int = 1
    height: int = 0

    def add(self, place: str | int, at: Position, node: Node) -> None:
        """Add an entry whose key is at a position; the first of equal keys stays."""
        if isinstance(place, int):
            self.value.append(node.value)
        elif place not in self.value:
            self.value[place] = node.value
        self.entries.setdefault(place, (at, node))


@dataclass(frozen=True)
class Document:
    """A document's value with the position of each part.

    Attributes
    ----------
    value : dict, list or scalar
        Plain Python values; aliases are copied.
    file : str or None
        Source file.
    """

    value: Value
    file: str | None
    _root: Node = field(repr=False, compare=False)

    def position(self, path: Path, key: bool = False) -> Position:
        """Return line and column, from 1, of a value or its nearest parent.

        The path has keys, and numbers, ids or names of items. An alias has its own position. With
        ``key``, it is the position of the key.
        """
        at, node = self._root.at, self._root
        for element in path:
            if isinstance(element, str) and isinstance(node.value, list):
                element = next(iter(find_item(node.value, element)), element)
            if element not in node.entries:
                return node.at
            at, node = node.entries[element]
        return at if key else node.at


def load(text: str, file: str | None = None) -> Document:
    r"""Read a YAML 1.2 document.

    An initial byte order mark is ignored. ``file`` is a name for messages.

    Raises
    ------
    ScenarioError
        With every error's position: syntax; equal keys; keys that are not text; merge keys; tags
        other than the core ones; unknown, self-referring or exploding aliases; a second document or
        none; forbidden characters; more than `MAX_BYTES` bytes, 50 levels or 100,000 values.

    Examples
    --------
    >>> document = load("seed: 1e3\nschemes: [corner-wave]")
    >>> document.value, document.position(("schemes", 0))
    ({'seed': 1000.0, 'schemes': ['corner-wave']}, (2, 11))
    """
    text = text.removeprefix("\ufeff")
    long = len(text) > MAX_BYTES
    _check_size(len(text) if long else len(text.encode(errors="surrogatepass")), file)
    first = _FORBIDDEN.search(text)
    if first is not None:
        more = sum(1 for _ in _FORBIDDEN.finditer(text)) - 1
        message = f"the character U+{ord(first[0]):04X} is forbidden here; in double quotes it can be written as an escape"
        others = f" ({more} more such characters follow)" if more else ""
        place = _position_in(text, first.start())
        raise ScenarioError([Problem("", message + others, file, *place)])
    root = _Reader(text, file).document()
    return Document(root.value, file, root)


def load_file(path: str | FilePath) -> Document:
    """Read a YAML 1.2 file in UTF-8.

    Raises
    ------
    AuditorError
        The file does not exist or cannot be read.
    ScenarioError
        The file is not UTF-8, or as `load`.
    """
    file = str(path)
    try:
        with FilePath(path).open("rb") as stream:  # perhaps a large table
            content = stream.read(MAX_BYTES + len(BOM_UTF8) + 1).removeprefix(BOM_UTF8)
    except FileNotFoundError:
        raise AuditorError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise AuditorError(f"{path}: is a directory; a scenario is a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise AuditorError(f"{path}: cannot be read: {reason}") from None
    _check_size(len(content), file)
    try:
        return load(content.decode(), file)
    except UnicodeDecodeError as error:
        if content.startswith(_UTF16_MARKS):
            message, before = "the document is UTF-16; save the file as UTF-8", ""
        else:
            before = content[: error.start].decode()
            message = f"the document is not UTF-8: byte 0x{content[error.start]:02X}; save the file as UTF-8"
        place = _position_in(before, len(before))
        raise ScenarioError([Problem("", message, file, *place)]) from None


def scalar(text: str, file: str | None = None) -> Value:
    """Read one value from the command line, by the rules of a file.

    Parameters
    ----------
    text : str
        Text after the equals sign: ``1e3``, ``corner-wave``, ``[0.25, 1]``, ``{estimated: {rows:
        400}}``. Blank text is null.
    file : str, optional
        Name for messages, as ``--set data.rows``.

    Raises
    ------
    ScenarioError
        As `load`.

    Examples
    --------
    >>> scalar("1e3"), scalar("on"), scalar("[0.25, 1]"), scalar("")
    (1000.0, 'on', [0.25, 1], None)
    """
    return load(text, file).value if text.strip() else None


def _check_size(size: int, file: str | None) -> None:
    if size > MAX_BYTES:
        message = f"the document is larger than {MAX_BYTES} bytes"
        raise ScenarioError([Problem("", message, file, 1, 1)])


def _position_in(text: str, at: int) -> Position:
    breaks = list(_LINE_BREAK.finditer(text, 0, at))
    return len(breaks) + 1, at - (breaks[-1].end() if breaks else 0) + 1


def _position(mark: Any) -> Position:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


class _Reader:
    """Tree of one document from the parser's events.

    PyYAML's composer recurses in C, so deep nesting would overflow the stack. The recursion here is
    at most `MAX_DEPTH` deep.
    """

    def __init__(self, text: str, file: str | None) -> None:
        fast = hasattr(yaml, "CSafeLoader") and not _SURROGATE_ESCAPE.search(text)
        self.events = yaml.parse(text, Loader=yaml.CSafeLoader if fast else yaml.SafeLoader)
        self.text, self.file, self.at = text, file, (1, 1)
        self.problems: list[Problem] = []
        self.weight = 0
        self.anchors: dict[str, Node | None] = {}
        """Nodes by anchor; None while the node is being read."""

    def document(self) -> Node:
        self.next()
        event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            self.stop((1, 1), "is empty")
        if event.version not in (None, (1, 2)):
            why = "declares another version than YAML 1.2, as which it would be read"
            self.report(_position(event.start_mark), why)
        event = self.next()
        root = self.node(event, (), 0)
        if _is_plain(event, "") and event.tag is None:
            self.report(root.at, "is empty")
        self.next()
        event = self.next()
        if not isinstance(event, yaml.StreamEndEvent):
            self.stop(_position(event.start_mark), "is followed by a second one; a file holds one")
        if self.problems:
            raise ScenarioError(self.problems)
        return root

    def next(self) -> Any:
        """Return the parser's next event; its exceptions become one error."""
        try:
            event = next(self.events)
        except yaml.MarkedYAMLError as error:
            at = _position(error.problem_mark) if error.problem_mark else self.at
            self.stop(at, _syntax_message(error, self.text))
        except (yaml.YAMLError, ValueError, OverflowError):
            # PyYAML passes escapes and directives unchecked to chr(), int() or a codec
            self.stop(self.at, "not valid YAML: a malformed escape or directive")
        self.at = _position(event.end_mark)
        return event

    def problem(self, at: Position, message: str, path: Path) -> Problem:
        place = shortened(format_path(path), MAX_EXCERPT)
        whole = place or message.startswith("not valid")
        return Problem(place, message if whole else f"the document {message}", self.file, *at)

    def stop(self, at: Position, message: str, path: Path = ()) -> NoReturn:
        raise ScenarioError([*self.problems, self.problem(at, message, path)])

    def report(self, at: Position, message: str, path: Path = ()) -> None:
        self.problems.append(self.problem(at, message, path))
        if len(self.problems) >= MAX_PROBLEMS:
            self.stop(at, f"has {MAX_PROBLEMS} problems so far; the rest is not read")

    def node(self, event: Any, path: Path, depth: int) -> Node:
        """Read a node inside ``depth`` collections."""
        at = _position(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(str(event.anchor), at, path, depth)
        if isinstance(event, yaml.ScalarEvent):
            weight = 1 + len(event.value) // CHARACTERS_PER_NODE
            node = Node(at, self.scalar(event, at, path), weight=weight)
            self.count(at, weight)
        else:
            self.check_depth(at, depth + 1)
            self.count(at, 1)
            if event.anchor is not None:
                self.anchors[event.anchor] = None
            listed = isinstance(event, yaml.SequenceStartEvent)
            if event.tag not in (None, "!", CORE_PREFIX + ("seq" if listed else "map")):
                self.report_tag(event.tag, at, path)
            node = Node(at, [] if listed else {}, height=1)
            while not isinstance(inner := self.next(), yaml.CollectionEndEvent):
                if listed:
                    place = len(node.value)
                    item = self.node(inner, (*path, place), depth + 1)
                    node.add(place, item.at, item)
                else:
                    item = self.entry(inner, node, path, depth + 1)
                node.weight += item.weight
                node.height = max(node.height, item.height + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def entry(self, event: Any, mapping: Node, path: Path, depth: int) -> Node:
        """Read a key and its value; return the value, with the key's weight."""
        if _is_plain(event, "<<"):
            why = "has a merge key (<<), which YAML 1.2 has not; write the keys out"
            self.report(_position(event.start_mark), why, path)
        key = self.node(event, path, depth)
        name = key.value
        if not isinstance(name, str):
            advice = "; write it in quotes" if key.height == 0 else ""
            why = f"has {kind_of(name)} as a key; keys are text{advice}"
            self.report(key.at, why, path)
            return self.node(self.next(), path, depth)
        if name in mapping.entries:
            line, column = mapping.entries[name][0]
            why = f"is given twice; first at line {line}, column {column}"
            self.report(key.at, why, (*path, name))
        value = self.node(self.next(), (*path, name), depth)
        mapping.add(name, key.at, value)
        mapping.weight += key.weight
        return value

    def scalar(self, event: Any, at: Position, path: Path) -> Value:
        try:
            # joins surrogate pairs
            text = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
            # the parser treats quoted text with the tag "!" as plain, but YAML as text
            if event.tag == "!" or (event.style and event.tag is None):
                return str(text)
            return resolve(text) if event.tag is None else resolve_tagged(event.tag, text)
        except KeyError:
            self.report_tag(event.tag, at, path)
        except UnicodeError:
            self.report(at, "escapes half a character (a lone surrogate)", path)
        except ValueError as error:
            self.report(at, str(error), path)
        return str(event.value)

    def alias(self, name: str, at: Position, path: Path, depth: int) -> Node:
        if name not in self.anchors:
            self.report(at, f"refers to an anchor that is not set before it: {quoted(name)}", path)
            return Node(at, None)
        target = self.anchors[name]
        if target is None:
            self.stop(at, f"refers to itself, through the anchor {quoted(name)}", path)
        self.check_depth(at, depth + target.height)
        self.count(at, target.weight)
        value = copy_value(target.value)
        return Node(at, value, target.entries, target.weight, target.height)

    def count(self, at: Position, weight: int) -> None:
        self.weight += weight
        if self.weight > MAX_NODES:
            self.stop(at, f"holds over {MAX_NODES} values once its aliases are written out")

    def check_depth(self, at: Position, depth: int) -> None:
        if depth > MAX_DEPTH:
            why = f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another"
            self.stop(at, why)

    def report_tag(self, tag: str, at: Position, path: Path) -> None:
        written = "!!" + tag.removeprefix(CORE_PREFIX) if tag.startswith(CORE_PREFIX) else tag
        why = f"has the tag {quoted(written)}, which does not belong here; leave it out"
        self.report(at, why, path)


def _is_plain(event: Any, text: str) -> bool:
    return isinstance(event, yaml.ScalarEvent) and not event.style and event.value == text


def _syntax_message(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    found = text[mark.index : mark.index + 1] if mark else ""
    if found == "\t":
        return "not valid YAML: a tab where only spaces may stand; indent with spaces"
    problem = shortened(str(error.problem or "unreadable"), MAX_EXCERPT)
    context = f" ({shortened(str(error.context), MAX_EXCERPT)})" if error.context else ""
    quote = "; quote the text that begins with it" if "cannot start any token" in problem else ""
    return f"not valid YAML: {problem}{context}{quote}"


LISTS = ("schemes", "attacks", "knowledge", "coalitions", "measures", "expect", "cite")
"""Sections that accept a single item as a list of one."""


@dataclass(frozen=True)
class Places:
    """Positions of a scenario's fields, for messages.

    Attributes
    ----------
    document : Document or None
        The file; None for plain values.
    changed : tuple of Path
        Fields set from outside, without a position in the file.
    swept : tuple of (Path, Path)
        Swept fields, each with the path of its value under ``sweep``.
    """

    document: Document | None = field(default=None, repr=False)
    changed: tuple[Path, ...] = ()
    swept: tuple[tuple[Path, Path], ...] = ()

    def problem(self, path: Path, message: str, key: bool = False) -> Problem:
        """Return an error with its position; ``key`` selects the key's."""
        for place, origin in self.swept:
            if path[: len(place)] == place:
                return self._at(
                    origin,
                    f"makes an invalid scenario: {Problem(format_path(path), message)}",
                    key=False,
                )
        return self._at(path, message, key)

    def _at(self, path: Path, message: str, key: bool) -> Problem:
        if self.document is None or any(path[: len(place)] == place for place in self.changed):
            return Problem(format_path(path), message)
        written = _as_written(self.document.value, path)
        line, column = self.document.position(written, key)
        return Problem(format_path(path), message, self.document.file, line, column)

    def located(self, found: Iterable[tuple[Path, str, bool]]) -> list[Problem]:
        """Return unique errors in file order."""
        problems = dict.fromkeys(self.problem(*item) for item in found)
        return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _as_written(value: Any, path: Path) -> Path:
    """Return a path in a file that may have single items for lists."""
    lone = (
        isinstance(value, dict)
        and len(path) > 1
        and path[1] == 0
        and not isinstance(value.get(str(path[0])), list)
    )
    return (path[0], *path[2:]) if lone else path


def spelt_out(value: Any) -> Any:
    """Return a document without short forms, so that nested fields can be set."""
    if not isinstance(value, dict):
        return value
    long = {name: [value[name]] for name in LISTS if isinstance(value.get(name), (str, dict))}
    source = {"data": {"source": value["data"]}} if isinstance(value.get("data"), str) else {}
    return value | long | source


def put(value: Any, changes: Iterable[tuple[Path, Any]]) -> tuple[Any, list[Path]]:
    """Return a document with changes applied, and the numbered paths.

    Raises
    ------
    AuditorError
        A path is invalid.
    """
    changed: list[Path] = []
    value = spelt_out(value)
    for path, new in changes:
        value = set_at(value, path, new, changed)
    return value, changed

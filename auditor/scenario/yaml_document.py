"""Scenario files in YAML 1.2, with the position of every value.

PyYAML alone reads YAML 1.1, keeps the last of two equal keys and expands alias bombs. So its nodes
are read here, within limits.

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
from typing import Any, NoReturn

import yaml

from auditor.base import AuditorError, Problem, ScenarioError
from auditor.registry.parameters import (
    MAX_DEPTH,
    Path,
    Value,
    find_item,
    format_path,
    kind_of,
    quoted,
    set_at,
    shortened,
)

Position = tuple[int, int]
"""Line and column, from 1."""

MAX_DIGITS = 1000
"""Above any count or seed, below Python's limit of 4300 digits."""
MAX_BYTES = 1_000_000
"""A hundred times the largest scenario with all grids written out."""
MAX_NODES = 100_000
"""Nodes with aliases expanded."""
CHARACTERS_PER_NODE = 64
"""Long text counts as several nodes, also by alias."""
MAX_PROBLEMS = 99
"""Messages have at most 100 lines."""
MAX_EXCERPT = 100
"""Characters of the document in a message."""

CORE = "tag:yaml.org,2002:"
PLAIN = "plain"
"""Tag of scalars without quotes and without a tag."""

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{
        f"{sign}{word}": float(f"{sign}inf")
        for sign in ("", "+", "-")
        for word in (".inf", ".Inf", ".INF")
    },
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGERS = {10: r"[-+]?[0-9]+", 8: r"0o[0-7]+", 16: r"0x[0-9a-fA-F]+"}
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_TYPES: dict[str, type] = {f"{CORE}{kind.__name__}": kind for kind in (str, int, float, bool)} | {
    f"{CORE}null": type(None)
}

# Forbidden in YAML: controls, surrogates, inner byte order marks and non-characters. NEL and the
# Unicode separators break lines only in YAML 1.1: parser and editor would count differently.
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser; every plain scalar has the tag ``plain``."""

    yaml_implicit_resolvers: Any = {None: [(PLAIN, re.compile(""))]}  # noqa: RUF012 - as its base


def _resolved(text: str, tag: str) -> Any:
    """Scalar's value by the core schema; ``tag`` may demand a kind."""
    wanted = _TYPES.get(tag)
    if wanted is str:
        return text
    value: Any = _WORDS.get(text, text)
    base = next((base for base, form in _INTEGERS.items() if re.fullmatch(form, text)), None)
    if base is not None and not (wanted is float and base == 10):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"is an integer of more than {MAX_DIGITS} digits")
        value = float(int(text, base)) if wanted is float else int(text, base)
    elif re.fullmatch(_FLOAT, text):
        value = float(text)
        if math.isinf(value):
            raise ValueError("is beyond the range of a double; write .inf if infinity is meant")
    if wanted is not None and type(value) is not wanted:
        raise ValueError(f"is tagged !!{tag.removeprefix(CORE)} but is {kind_of(value)}")
    return value


@dataclass(frozen=True)
class Document:
    """A document's plain value with positions."""

    value: Value
    file: str | None
    _places: dict[Path, tuple[Position, Position]] = field(repr=False, compare=False)
    """Positions of key and value by path."""

    def position(self, path: Path, key: bool = False) -> Position:
        """Line and column of a value or its nearest parent; ``key``: of the key.

        The path has keys, and numbers, ids or names of items. An alias has its anchor's position.
        """
        here: Any = self.value
        place: Path = ()
        for element in path:
            if isinstance(element, str) and isinstance(here, list):
                element = next(iter(find_item(here, element)), element)
            if (*place, element) not in self._places:
                return self._places[place][1]
            place, here = (*place, element), here[element]
        return self._places[place][0 if key else 1]


def load(text: str, file: str | None = None) -> Document:
    r"""Read a YAML 1.2 document; ``file`` is a name for messages.

    Raises
    ------
    ScenarioError
        With every error's position: syntax; equal keys; keys that are not text; merge keys; other than
        core tags; unknown, self-referring or exploding aliases; a second document or none; forbidden
        characters; more than `MAX_BYTES` bytes, 50 levels or 100,000 values.

    Examples
    --------
    >>> document = load("seed: 1e3\nschemes: [corner-wave]")
    >>> document.value, document.position(("schemes", 0))
    ({'seed': 1000.0, 'schemes': ['corner-wave']}, (2, 11))
    """
    text = text.removeprefix("\ufeff")
    _check_size(len(text.encode(errors="surrogatepass")), file)
    first = _FORBIDDEN.search(text)
    if first is not None:
        more = sum(1 for _ in _FORBIDDEN.finditer(text)) - 1
        message = f"the character U+{ord(first[0]):04X} is forbidden here; in double quotes it can be written as an escape"
        others = f" ({more} more such characters follow)" if more else ""
        place = _position_in(text, first.start())
        raise ScenarioError([Problem("", message + others, file, *place)])
    return _Reader(text, file).document()


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
        if content.startswith((b"\xff\xfe", b"\xfe\xff")):
            message, before = "the document is UTF-16; save the file as UTF-8", ""
        else:
            before = content[: error.start].decode()
            message = f"the document is not UTF-8: byte 0x{content[error.start]:02X}; save the file as UTF-8"
        place = _position_in(before, len(before))
        raise ScenarioError([Problem("", message, file, *place)]) from None


def scalar(text: str, file: str | None = None) -> Value:
    """Read one value from the command line, by the rules of a file; blank is null.

    Raises
    ------
    ScenarioError
        As `load`; messages name ``file``.

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


class _Reader:
    def __init__(self, text: str, file: str | None) -> None:
        self.text, self.file, self.weight = text, file, 0
        self.problems: dict[tuple[Position, str], Problem] = {}
        self.places: dict[Path, tuple[Position, Position]] = {}
        self.open: list[Any] = []
        """Collections that contain the current node."""

    def document(self) -> Document:
        root = self.root()
        if root is None or (root.tag == PLAIN and not root.value):
            self.stop((1, 1) if root is None else _start(root), "is empty")
        value = self.value(root, ())
        self.places[()] = _start(root), _start(root)
        if self.problems:
            raise ScenarioError(self.problems.values())
        return Document(value, self.file, self.places)

    def root(self) -> Any:
        """Root node of the only document, None if empty; report syntax errors.

        PyYAML's composer recurses in C, so depth is checked before.
        """
        depth, documents, at = 0, 0, (1, 1)
        try:
            for event in yaml.parse(self.text, _Loader):
                at = _start(event)
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                self.check_depth(at, depth)
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        self.stop(at, "is followed by a second one; a file holds one")
                    if event.version not in (None, (1, 2)):
                        why = "declares another version than YAML 1.2, as which it would be read"
                        self.stop(at, why)
            return yaml.compose(self.text, _Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            message = _syntax_message(error, self.text)
            self.stop((mark.line + 1, mark.column + 1) if mark else at, message)
        except (yaml.YAMLError, ValueError, OverflowError):
            # PyYAML passes these unchecked to chr(), int() or a codec
            self.stop(at, "not valid YAML: a malformed escape or directive")

    def problem(self, at: Position, message: str, path: Path) -> Problem:
        place = shortened(format_path(path), MAX_EXCERPT)
        whole = place or message.startswith("not valid")
        return Problem(place, message if whole else f"the document {message}", self.file, *at)

    def stop(self, at: Position, message: str, path: Path = ()) -> NoReturn:
        raise ScenarioError([*self.problems.values(), self.problem(at, message, path)])

    def report(self, at: Position, message: str, path: Path) -> None:
        """Add an error, once for all aliases of a node."""
        self.problems.setdefault((at, message), self.problem(at, message, path))
        if len(self.problems) >= MAX_PROBLEMS:
            self.stop(at, f"has {MAX_PROBLEMS} problems so far; the rest is not read")

    def value(self, node: Any, path: Path) -> Any:
        at = _start(node)
        if any(node is outer for outer in self.open):
            self.stop(at, "refers to itself, through an anchor", path)
        scalar = isinstance(node, yaml.ScalarNode)
        self.weight += 1 + (len(node.value) // CHARACTERS_PER_NODE if scalar else 0)
        if self.weight > MAX_NODES:
            self.stop(at, f"holds over {MAX_NODES} values once its aliases are written out")
        if scalar:
            return self.scalar(node, at, path)
        self.check_depth(at, len(self.open) + 1)
        listed = isinstance(node, yaml.SequenceNode)
        self.check_tag(node, at, path, [f"{CORE}{'seq' if listed else 'map'}"])
        self.open.append(node)
        if listed:
            items = enumerate(node.value)
            found: Any = [self.entry(path, place, item, item) for place, item in items]
        else:
            found = self.mapping(node, path)
        self.open.pop()
        return found

    def mapping(self, node: Any, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in node.value:
            at = _start(key)
            if key.tag == PLAIN and key.value == "<<":
                why = "has a merge key (<<), which YAML 1.2 has not; write the keys out"
                self.report(at, why, path)
            name = self.value(key, path)
            if not isinstance(name, str):
                advice = "" if isinstance(name, (list, dict)) else "; write it in quotes"
                self.report(at, f"has {kind_of(name)} as a key; keys are text{advice}", path)
                self.value(item, path)
            elif name in found:
                line, column = self.places[*path, name][0]
                why = f"is given twice; first at line {line}, column {column}"
                self.report(at, why, (*path, name))
                self.value(item, (*path, name))
            else:
                found[name] = self.entry(path, name, key, item)
        return found

    def entry(self, path: Path, place: str | int, key: Any, node: Any) -> Any:
        self.places[*path, place] = _start(key), _start(node)
        return self.value(node, (*path, place))

    def scalar(self, node: Any, at: Position, path: Path) -> Any:
        self.check_tag(node, at, path, [PLAIN, *_TYPES])
        try:
            return _resolved(node.value, node.tag)
        except ValueError as error:
            self.report(at, str(error), path)
            return ""

    def check_depth(self, at: Position, depth: int) -> None:
        if depth > MAX_DEPTH:
            why = f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another"
            self.stop(at, why)

    def check_tag(self, node: Any, at: Position, path: Path, known: list[str]) -> None:
        if node.tag not in known:
            written = f"!!{node.tag[len(CORE) :]}" if node.tag.startswith(CORE) else node.tag
            why = f"has the tag {quoted(written)}, which does not belong here; leave it out"
            self.report(at, why, path)


def _start(node: Any) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


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

    ``changed`` fields are set from outside. ``swept`` has paths of values under ``sweep``.
    """

    document: Document | None = field(default=None, repr=False)
    changed: tuple[Path, ...] = ()
    swept: tuple[tuple[Path, Path], ...] = ()

    def problem(self, path: Path, message: str, key: bool = False) -> Problem:
        """Error with its position; ``key`` selects the key's."""
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
        """Unique errors in file order."""
        problems = dict.fromkeys(self.problem(*item) for item in found)
        return sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))


def _as_written(value: Any, path: Path) -> Path:
    """Path in a file that may have single items for lists."""
    lone = (
        isinstance(value, dict)
        and len(path) > 1
        and path[1] == 0
        and not isinstance(value.get(str(path[0])), list)
    )
    return (path[0], *path[2:]) if lone else path


def spelt_out(value: Any) -> Any:
    """Document without short forms, so that nested fields can be set."""
    if not isinstance(value, dict):
        return value
    long = {name: [value[name]] for name in LISTS if isinstance(value.get(name), (str, dict))}
    source = {"data": {"source": value["data"]}} if isinstance(value.get("data"), str) else {}
    return value | long | source


def put(value: Any, changes: Iterable[tuple[Path, Any]]) -> tuple[Any, list[Path]]:
    """Document with changes applied, and the numbered paths.

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

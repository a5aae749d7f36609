"""Tree of YAML values with positions, built within limits.

PyYAML's parser gives events. Its composer is not used, because it recurses (deep nesting overflows
the C stack), keeps the last of two equal keys, and expands aliases without limit. This module uses
an explicit stack and stops at the first event beyond a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, TypeAlias

import yaml

from auditor.errors import Problem, ScenarioError
from auditor.field_paths import MAX_DEPTH, Path, Value, copy_value, format_path, quoted, shortened
from auditor.parameters import kind_of
from auditor.scenario.yaml.scalars import CORE_PREFIX, resolve, resolve_tagged

Position: TypeAlias = tuple[int, int]

# Nodes with aliases expanded: 100 times the largest scenario.
MAX_NODES = 100_000
# Long text counts as several nodes, so that aliases of it are limited as well.
CHARACTERS_PER_NODE = 64
# With this many errors, the file is probably not a scenario.
# one more line states the stop; messages have at most 100 lines (auditor.errors.MOST_LINES)
MAX_PROBLEMS = 99
# Characters of the document in a message.
MAX_EXCERPT = 100

# JSON writes characters beyond U+FFFF as two escapes, which libyaml refuses and PyYAML reads.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class _PureLoader(yaml.SafeLoader):
    """PyYAML's scanner, modified to skip tabs between tokens like libyaml.

    JSON may be indented with tabs.
    """

    def scan_to_next_token(self) -> None:
        super().scan_to_next_token()
        while self.peek() == "\t" and (self.flow_level or not self.allow_simple_key):
            self.forward()
            super().scan_to_next_token()


class Entry(NamedTuple):
    """An entry of a mapping or list: the key's position, and the node."""

    key: Position
    node: Node


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
        Entries of a mapping or list, by key or number.
    weight : int
        Number of nodes in the subtree with aliases expanded; long texts count for more.
    height : int
        Depth of nested collections; 0 for a scalar.
    """

    at: Position
    value: Value
    entries: dict[str | int, Entry] = field(default_factory=dict)
    weight: int = 1
    height: int = 0


@dataclass(slots=True)
class _Open:
    node: Node
    path: Path
    key: Node | None = None


def compose(text: str, file: str | None = None) -> Node:
    """Read the single document of a text.

    The text must have no control characters or byte order mark. The result is the root.

    Raises
    ------
    ScenarioError
        With every error; fatal ones (syntax, depth, size) come last.
    """
    composer = _Composer(file)
    try:
        for event in _events(text, file):
            composer.take(event)
    except ScenarioError as error:
        raise ScenarioError([*composer.problems, *error.problems]) from None
    if composer.root is None:
        composer.report((1, 1), "is empty")
    if composer.problems or composer.root is None:
        raise ScenarioError(composer.problems)
    return composer.root


def _events(text: str, file: str | None) -> Iterator[yaml.Event]:
    """Yield the parser's events; an exception of the parser becomes one error."""
    at: Position = (1, 1)
    try:
        for event in yaml.parse(text, Loader=_backend(text)):
            at = _position(event.end_mark)
            yield event
    except yaml.MarkedYAMLError as error:
        at = _position(error.problem_mark) if error.problem_mark else at
        raise ScenarioError([Problem("", _syntax_message(error, text), file, *at)]) from None
    except (yaml.YAMLError, ValueError, OverflowError):
        # PyYAML passes escapes and directives unchecked to chr(), int() or a codec
        raise ScenarioError(
            [Problem("", "not valid YAML: a malformed escape or directive", file, *at)]
        ) from None


def _backend(text: str) -> type[yaml.SafeLoader | yaml.CSafeLoader]:
    if _SURROGATE_ESCAPE.search(text) or not hasattr(yaml, "CSafeLoader"):
        return _PureLoader
    return yaml.CSafeLoader


def _position(mark: yaml.Mark | yaml._yaml.Mark | None) -> Position:
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


def _syntax_message(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    found = text[mark.index : mark.index + 1] if mark else ""
    if found == "\t":
        return "not valid YAML: a tab where only spaces may stand; indent with spaces"
    problem = shortened(str(error.problem or "unreadable"), MAX_EXCERPT)
    context = f" ({shortened(str(error.context), MAX_EXCERPT)})" if error.context else ""
    quote = "; quote the text that begins with it" if "cannot start any token" in problem else ""
    return f"not valid YAML: {problem}{context}{quote}"


class _Composer:
    def __init__(self, file: str | None) -> None:
        self.file = file
        self.root: Node | None = None
        self.problems: list[Problem] = []
        self._documents = 0
        self._weight = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}

    def take(self, event: yaml.Event) -> None:
        at = _position(event.start_mark)
        match event:
            case yaml.DocumentStartEvent():
                self._begin_document(event, at)
            case yaml.AliasEvent():
                self._attach(self._alias(event, at))
            case yaml.ScalarEvent():
                self._attach(self._scalar(event, at))
            case yaml.SequenceStartEvent():
                self._begin(event, Node(at, [], height=1), CORE_PREFIX + "seq")
            case yaml.MappingStartEvent():
                self._begin(event, Node(at, {}, height=1), CORE_PREFIX + "map")
            case yaml.CollectionEndEvent():
                self._attach(self._open.pop().node)

    def report(self, at: Position, message: str, path: Path | None = None) -> None:
        self.problems.append(self._problem(at, message, path))
        if len(self.problems) >= MAX_PROBLEMS:
            self._give_up(at, f"has {MAX_PROBLEMS} problems so far; the rest is not read", ())

    def _give_up(self, at: Position, message: str, path: Path | None = None) -> NoReturn:
        raise ScenarioError([self._problem(at, message, path)])

    def _problem(self, at: Position, message: str, path: Path | None) -> Problem:
        place = shortened(format_path(self._path() if path is None else path), MAX_EXCERPT)
        return Problem(place, message if place else f"the document {message}", self.file, *at)

    def _begin_document(self, event: yaml.DocumentStartEvent, at: Position) -> None:
        self._documents += 1
        if self._documents > 1:
            self._give_up(at, "is followed by a second one; a file holds one", ())
        if event.version not in (None, (1, 2)):
            self.report(at, "declares another version than YAML 1.2, as which it would be read")

    def _begin(self, event: yaml.CollectionStartEvent, node: Node, tag: str) -> None:
        path = self._path()
        if event.tag not in (None, "!", tag):
            self._report_tag(event.tag, node.at)
        self._check_depth(node.at, 1)
        self._count(node)
        self._remember(event.anchor, node)
        self._open.append(_Open(node, path))

    def _scalar(self, event: yaml.ScalarEvent, at: Position) -> Node:
        plain = not event.style
        if plain and event.value == "" and event.tag is None and not self._open:
            self.report(at, "is empty")
        if plain and event.value == "<<" and self._expects_key():
            self.report(at, "has a merge key (<<), which YAML 1.2 has not; write the keys out")
        node = Node(
            at, self._scalar_value(event, at), weight=1 + len(event.value) // CHARACTERS_PER_NODE
        )
        self._count(node)
        self._remember(event.anchor, node)
        return node

    def _scalar_value(self, event: yaml.ScalarEvent, at: Position) -> Value:
        try:
            text = _join_surrogates(event.value)
            # the parser treats quoted text with the tag "!" as plain, but YAML as text
            if event.tag == "!" or (event.style and event.tag is None):
                return text
            return resolve(text) if event.tag is None else resolve_tagged(event.tag, text)
        except KeyError:
            self._report_tag(event.tag or "", at)
        except UnicodeError:
            self.report(at, "escapes half a character (a lone surrogate)")
        except ValueError as error:
            self.report(at, str(error))
        return str(event.value)

    def _alias(self, event: yaml.AliasEvent, at: Position) -> Node:
        name = event.anchor or ""
        target = self._anchors.get(name)
        if target is None:
            self.report(at, f"refers to an anchor that is not set before it: {quoted(name)}")
            return Node(at, None)
        if any(frame.node is target for frame in self._open):
            self._give_up(at, f"refers to itself, through the anchor {quoted(name)}")
        self._check_depth(at, target.height)
        self._count(Node(at, None, weight=target.weight))
        return Node(at, copy_value(target.value), target.entries, target.weight, target.height)

    def _attach(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.node.weight += node.weight
        parent.node.height = max(parent.node.height, node.height + 1)
        if isinstance(parent.node.value, list):
            parent.node.entries[len(parent.node.value)] = Entry(node.at, node)
            parent.node.value.append(node.value)
        elif parent.key is None:
            self._check_key(parent, node)
            parent.key = node
        else:
            _enter(parent, parent.key, node)
            parent.key = None

    def _check_key(self, parent: _Open, key: Node) -> None:
        if not isinstance(key.value, str):
            advice = "; write it in quotes" if key.height == 0 else ""
            self.report(
                key.at, f"has {kind_of(key.value)} as a key; keys are text{advice}", parent.path
            )
        elif key.value in parent.node.entries:
            line, column = parent.node.entries[key.value].key
            self.report(
                key.at,
                f"is given twice; first at line {line}, column {column}",
                (*parent.path, key.value),
            )

    def _expects_key(self) -> bool:
        return (
            bool(self._open)
            and isinstance(self._open[-1].node.value, dict)
            and self._open[-1].key is None
        )

    def _path(self) -> Path:
        """Return the next node's path, or for a key, the mapping's path."""
        if not self._open:
            return ()
        parent = self._open[-1]
        if isinstance(parent.node.value, list):
            return (*parent.path, len(parent.node.value))
        if parent.key is None or not isinstance(parent.key.value, str):
            return parent.path
        return (*parent.path, parent.key.value)

    def _remember(self, anchor: str | None, node: Node) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _count(self, node: Node) -> None:
        self._weight += node.weight
        if self._weight > MAX_NODES:
            self._give_up(
                node.at, f"holds over {MAX_NODES} values once its aliases are written out", ()
            )

    def _check_depth(self, at: Position, height: int) -> None:
        if len(self._open) + height > MAX_DEPTH:
            self._give_up(
                at, f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another", ()
            )

    def _report_tag(self, tag: str, at: Position) -> None:
        written = "!!" + tag.removeprefix(CORE_PREFIX) if tag.startswith(CORE_PREFIX) else tag
        self.report(at, f"has the tag {quoted(written)}, which does not belong here; leave it out")


def _enter(parent: _Open, key: Node, node: Node) -> None:
    value = parent.node.value
    if isinstance(value, dict) and isinstance(key.value, str) and key.value not in value:
        value[key.value] = node.value
        parent.node.entries[key.value] = Entry(key.at, node)


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs; `UnicodeError` for a single surrogate."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16")

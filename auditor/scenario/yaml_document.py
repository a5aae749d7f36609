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

import re
from codecs import BOM_UTF8
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path as FilePath
from typing import Any, NoReturn

import yaml

from auditor.base import AuditorError, Problem, ScenarioError, shortened
from auditor.base.types import Plain, frozen
from auditor.registry.parameters import MAX_DEPTH, Path, Value, format_path, set_at

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

PLAIN = "plain"
"""Tag of scalars without quotes and without a tag."""
TAGS = {
    yaml.ScalarNode: (PLAIN, "tag:yaml.org,2002:str"),
    yaml.SequenceNode: ("tag:yaml.org,2002:seq",),
    yaml.MappingNode: ("tag:yaml.org,2002:map",),
}
"""Tags of nodes that are written without one."""

_WORDS: Plain = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_NOT_FINITE = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"

# Forbidden in YAML: controls, surrogates, inner byte order marks and non-characters. NEL and the
# Unicode separators break lines only in YAML 1.1: parser and editor would count differently.
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's parser; every plain scalar has the tag ``plain``."""

    yaml_implicit_resolvers: Any = {None: [(PLAIN, re.compile(""))]}  # noqa: RUF012 - as its base


def _resolved(text: str) -> Any:
    """Plain scalar's value by the core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if re.fullmatch(_INTEGER, text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"is an integer of more than {MAX_DIGITS} digits")
        return int(text, 0 if text[1:2] in ("o", "x") else 10)
    if re.fullmatch(_NOT_FINITE, text):
        return float(text.replace(".", ""))
    value = float(text) if re.fullmatch(_FLOAT, text) else text
    if value in (float("inf"), float("-inf")):
        raise ValueError("is beyond the range of a double; write .inf if infinity is meant")
    return value


@frozen
class Document:
    """A document's plain value with positions."""

    value: Value
    file: str | None
    _places: dict[Path, tuple[Position, Position]] = field(repr=False, compare=False)
    """Positions of key and value by path."""

    def position(self, path: Path, key: bool = False) -> Position:
        """Line and column of a value or its nearest parent; ``key``: of the key.

        An alias has its anchor's position.
        """
        for length in range(len(path), 0, -1):
            if (found := self._places.get(path[:length])) is not None:
                return found[0 if key and length == len(path) else 1]
        return self._places[()][1]


def load(text: str, file: str | None = None) -> Document:
    r"""Read a YAML 1.2 document; ``file`` is a name for messages.

    Raises
    ------
    ScenarioError
        With every error's position: syntax; equal keys; keys that are not text; merge keys; tags;
        unknown, self-referring or exploding aliases; a second document or none; forbidden
        characters; more than `MAX_BYTES` bytes, 50 levels or 100,000 values.

    Examples
    --------
    >>> document = load("seed: 1e3\nschemes: [corner-wave]")
    >>> document.value, document.position(("schemes", 0))
    ({'seed': 1000.0, 'schemes': ['corner-wave']}, (2, 11))
    """
    text = text.removeprefix("\ufeff")
    _check_size(len(text.encode(errors="surrogatepass")), file)
    if (first := _FORBIDDEN.search(text)) is not None:
        raise _refusal(
            f"the character U+{ord(first[0]):04X} is forbidden here; in double quotes it can be written as an escape",
            file,
            text[: first.start()],
        )
    return _Reader(text, file).document()


def load_file(path: str | FilePath) -> Document:
    """Read a YAML 1.2 file in UTF-8.

    Raises
    ------
    AuditorError
        The file cannot be read.
    ScenarioError
        The file is not UTF-8, or as `load`.
    """
    file = str(path)
    try:
        with FilePath(path).open("rb") as stream:  # perhaps a large table
            content = stream.read(MAX_BYTES + len(BOM_UTF8) + 1).removeprefix(BOM_UTF8)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise AuditorError(f"{path}: cannot be read: {reason}") from None
    _check_size(len(content), file)
    try:
        return load(content.decode(), file)
    except UnicodeDecodeError as error:
        raise _refusal(
            f"the document is not UTF-8: byte 0x{content[error.start]:02X}; save the file as UTF-8",
            file,
            content[: error.start].decode(),
        ) from None


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
        raise _refusal(f"the document is larger than {MAX_BYTES} bytes", file)


def _refusal(message: str, file: str | None, before: str = "") -> ScenarioError:
    lines = _LINE_BREAK.split(before)
    return ScenarioError([Problem("", message, file, len(lines), len(lines[-1]) + 1)])


class _Reader:
    def __init__(self, text: str, file: str | None) -> None:
        self.text, self.file, self.weight = text, file, 0
        self.problems: dict[tuple[Position, str], Problem] = {}
        self.places: dict[Path, tuple[Position, Position]] = {}

    def document(self) -> Document:
        root = self.root()
        if root is None or (root.tag == PLAIN and not root.value):
            self.stop((1, 1) if root is None else _start(root), "is empty")
        value = self.entry((), root, root)
        if self.problems:
            raise ScenarioError(self.problems.values())
        return Document(value, self.file, self.places)

    def root(self) -> Any:
        """Root node of the only document, None if empty; report syntax errors.

        PyYAML's composer recurses in C, so depth is checked before.
        """
        depth, at = 0, (1, 1)
        try:
            for event in yaml.parse(self.text, _Loader):
                at = _start(event)
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                self.check_depth(at, depth)
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

    def entry(self, path: Path, key: Any, node: Any) -> Any:
        self.places[path] = _start(key), _start(node)
        return self.value(node, path)

    def value(self, node: Any, path: Path) -> Any:
        at, content = _start(node), node.value
        self.weight += 1
        self.weight += len(content) // CHARACTERS_PER_NODE * isinstance(content, str)
        if self.weight > MAX_NODES:
            self.stop(at, f"holds over {MAX_NODES} values once its aliases are written out")
        if node.tag not in TAGS[type(node)]:
            self.report(at, f"has the tag {shortened(node.tag, MAX_EXCERPT)!a}; leave it out", path)
        if isinstance(content, str):
            try:
                return _resolved(content) if node.tag == PLAIN else content
            except ValueError as error:
                self.report(at, str(error), path)
                return ""
        self.check_depth(at, len(path) + 1)
        if isinstance(node, yaml.SequenceNode):
            return [self.entry((*path, place), item, item) for place, item in enumerate(content)]
        return self.mapping(content, path)

    def mapping(self, items: Any, path: Path) -> Plain:
        found: Plain = {}
        for key, item in items:
            at, named = _start(key), isinstance(key, yaml.ScalarNode)
            name = self.value(key, path) if named else None
            if key.tag == PLAIN and key.value == "<<":
                why = "has a merge key (<<), which YAML 1.2 has not; write the keys out"
                self.report(at, why, path)
            if not isinstance(name, str):
                why = "has a key that is no text" + "; write it in quotes" * named
                self.report(at, why, path)
            elif name in found:
                line, column = self.places[*path, name][0]
                why = f"is given twice; first at line {line}, column {column}"
                self.report(at, why, (*path, name))
            else:
                found[name] = self.entry((*path, name), key, item)
        return found

    def check_depth(self, at: Position, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.stop(
                at, f"is nested too deeply: over {MAX_DEPTH} lists and mappings in one another"
            )


def _start(node: Any) -> Position:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _syntax_message(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark and text[mark.index : mark.index + 1] == "\t":
        return "not valid YAML: a tab where only spaces may stand; indent with spaces"
    problem = shortened(str(error.problem or "unreadable"), MAX_EXCERPT)
    context = f" ({shortened(str(error.context), MAX_EXCERPT)})" if error.context else ""
    quote = "; quote the text that begins with it" if "cannot start any token" in problem else ""
    return f"not valid YAML: {problem}{context}{quote}"


LISTS = ("schemes", "attacks", "knowledge", "coalitions", "measures", "expect", "cite")
"""Sections that accept a single item as a list of one."""


@frozen
class Places:
    """Positions of a scenario's fields, for messages.

    ``changed`` fields are set from outside. ``swept`` has paths of values under ``sweep``.
    """

    document: Document | None = field(default=None, repr=False)
    changed: tuple[Path, ...] = ()
    swept: tuple[tuple[Path, Path], ...] = ()

    @property
    def file(self) -> str:
        """The file below the current folder, else its name; empty for none."""
        path = FilePath((self.document and self.document.file) or "")
        with suppress(OSError, ValueError):  # no current folder, or a file elsewhere
            path = path.relative_to(FilePath.cwd()) if path.is_absolute() else path
        return (
            path.as_posix()
            if path.name and not path.is_absolute() and ".." not in path.parts
            else path.name
        )

    def problem(self, path: Path, message: str, key: bool = False) -> Problem:
        """Error with its position; ``key`` selects the key's."""
        for place, origin in self.swept:
            if path[: len(place)] == place:
                return replace(self, swept=()).problem(
                    origin, f"makes an invalid scenario: {Problem(format_path(path), message)}"
                )
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
    long = {name: [value[name]] for name in LISTS if isinstance(value.get(name), str | dict)}
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

"""Scenario files in YAML 1.2, with the position of every value.

PyYAML alone reads YAML 1.1 (``1e3`` is text, ``on`` is true, ``NO`` is false, ``012`` is ten),
keeps the last of two equal keys and expands alias bombs. This package uses only its parser.
`auditor.scenario.yaml.scalars` defines numbers, `auditor.scenario.yaml.nodes` the refused
constructs, and `auditor.field_paths` the notation of places.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from auditor.errors import AuditorError, Problem, ScenarioError
from auditor.field_paths import Path, Value, find_item, format_path, parse_path, set_at
from auditor.scenario.yaml.nodes import Entry, Node, Position, compose

__all__ = [
    "Document",
    "Path",
    "Position",
    "Value",
    "format_path",
    "load",
    "load_file",
    "parse_path",
    "scalar",
    "set_at",
]

# The largest scenario with all grids written out has about 10,000 bytes.
MAX_BYTES = 1_000_000

# Controls, surrogates, inner byte order marks and non-characters are forbidden in YAML. NEL and the
# Unicode separators are line breaks only in YAML 1.1, so parser and editor would count lines
# differently. A pattern of allowed characters compiles ten times more slowly.
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


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

    def position(self, path: Path) -> Position:
        """Return line and column, from 1, of a value or its nearest parent.

        The path has keys, and numbers, ids or names of items. An alias has its own position.
        """
        return self._trace(path)[-1].node.at

    def key_position(self, path: Path) -> Position:
        """Return line and column, from 1, of a key, list item or nearest parent."""
        trace = self._trace(path)
        return trace[-1].key if len(trace) > len(path) else trace[-1].node.at

    def _trace(self, path: Path) -> list[Entry]:
        trace = [Entry(self._root.at, self._root)]
        for element in path:
            entry = _child(trace[-1].node, element)
            if entry is None:
                break
            trace.append(entry)
        return trace


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
    _check_size(
        len(text.encode(errors="surrogatepass")) if len(text) <= MAX_BYTES else len(text), file
    )
    _check_characters(text, file)
    root = compose(text, file)
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
    content = _read(FilePath(path)).removeprefix(BOM_UTF8)
    _check_size(len(content), file)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ScenarioError([_encoding_problem(content, error.start, file)]) from None
    return load(text, file)


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


def _child(node: Node, element: str | int) -> Entry | None:
    if isinstance(element, str) and isinstance(node.value, list):
        found = find_item(node.value, element)
        return node.entries[found[0]] if found else None
    return node.entries.get(element)


def _read(path: FilePath) -> bytes:
    """Read at most one byte above the limit, in case of a large table."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + len(BOM_UTF8) + 1)
    except FileNotFoundError:
        raise AuditorError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise AuditorError(f"{path}: is a directory; a scenario is a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise AuditorError(f"{path}: cannot be read: {reason}") from None


def _check_size(size: int, file: str | None) -> None:
    if size > MAX_BYTES:
        raise ScenarioError(
            [Problem("", f"the document is larger than {MAX_BYTES} bytes", file, 1, 1)]
        )


def _check_characters(text: str, file: str | None) -> None:
    """Report the first forbidden character and the number of others."""
    first = _FORBIDDEN.search(text)
    if first is None:
        return
    more = sum(1 for _ in _FORBIDDEN.finditer(text)) - 1
    message = f"the character U+{ord(first[0]):04X} may not stand here; in double quotes it can be written as an escape"
    others = f" ({more} more such characters follow)" if more else ""
    raise ScenarioError([Problem("", message + others, file, *_position_in(text, first.start()))])


def _position_in(text: str, at: int) -> Position:
    breaks = list(_LINE_BREAK.finditer(text, 0, at))
    return len(breaks) + 1, at - (breaks[-1].end() if breaks else 0) + 1


def _encoding_problem(content: bytes, at: int, file: str) -> Problem:
    if content.startswith(_UTF16_MARKS):
        return Problem("", "the document is UTF-16; save the file as UTF-8", file, 1, 1)
    before = content[:at].decode()
    message = f"the document is not UTF-8: byte 0x{content[at]:02X}; save the file as UTF-8"
    return Problem("", message, file, *_position_in(before, len(before)))

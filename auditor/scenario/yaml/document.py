"""Scenario files: YAML 1.2, safely, with the place of every value.

PyYAML out of the box reads YAML 1.1 (``1e3`` is text, ``on`` is true, ``NO`` is false, ``012`` is ten), keeps the last
of two equal keys and loads alias bombs. Here its parser is used and nothing else of it. See `auditor.scenario.yaml.scalars`
for what is a number, `auditor.scenario.yaml.nodes` for what is refused, `auditor.field_paths` for how places are written.
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

# The largest scenario with every grid written out has some ten thousand bytes.
MAX_BYTES = 1_000_000

# Controls, the halves of surrogate pairs, byte order marks inside the text, and the two non-characters that end the
# plane, which YAML forbids; NEL and the two Unicode separators, which only YAML 1.1 took for line breaks, so that
# parser and editor would count lines differently. Those that are allowed take ten times as long to compile.
_FORBIDDEN = re.compile("[\0-\b\v\f\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_LINE_BREAK = re.compile("\r\n|\r|\n")
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Document:
    """A document's value, and where each part of it is written.

    Attributes
    ----------
    value : dict, list or scalar
        Plain Python values; no part is shared with another, even where the document has aliases.
    file : str or None
        The file it was read from.
    """

    value: Value
    file: str | None
    _root: Node = field(repr=False, compare=False)

    def position(self, path: Path) -> Position:
        """Line and column, from 1, of the value at a path, or of what encloses it when there is none.

        Parameters
        ----------
        path : tuple of str or int
            Keys, and numbers, ids or names of items. For an alias, the place is where the alias stands.
        """
        return self._trace(path)[-1].node.at

    def key_position(self, path: Path) -> Position:
        """Line and column, from 1, of the key (or list item) at a path, or of the value that encloses it.

        Parameters
        ----------
        path : tuple of str or int
            As for `position`.
        """
        trace = self._trace(path)
        return trace[-1].key if len(trace) > len(path) else trace[-1].node.at

    def _trace(self, path: Path) -> list[Entry]:
        """The entries from the root down to the path, as far as they exist."""
        trace = [Entry(self._root.at, self._root)]
        for element in path:
            entry = _child(trace[-1].node, element)
            if entry is None:
                break
            trace.append(entry)
        return trace


def load(text: str, file: str | None = None) -> Document:
    r"""Read a YAML 1.2 document.

    Parameters
    ----------
    text : str
        The document; one byte order mark at its beginning is ignored.
    file : str, optional
        Named in the problems.

    Raises
    ------
    ScenarioError
        With the place of every problem: syntax; equal keys; keys that are not text; merge keys; tags other than the
        core ones; unknown, self-referring or exploding aliases; a second document or none; forbidden characters;
        more than `MAX_BYTES` bytes, 50 levels or 100,000 values.

    Examples
    --------
    >>> document = load("seed: 1e3\nschemes: [corner-wave]")
    >>> document.value, document.position(("schemes", 0))
    ({'seed': 1000.0, 'schemes': ['corner-wave']}, (2, 11))
    """
    text = text.removeprefix("\ufeff")
    _check_size(len(text.encode(errors="surrogatepass")) if len(text) <= MAX_BYTES else len(text), file)
    _check_characters(text, file)
    root = compose(text, file)
    return Document(root.value, file, root)


def load_file(path: str | FilePath) -> Document:
    """Read a YAML 1.2 file in UTF-8.

    Parameters
    ----------
    path : str or pathlib.Path
        The file; named in problems as it is given here.

    Raises
    ------
    AuditorError
        When there is no such file, or it cannot be read.
    ScenarioError
        When it is not UTF-8, and as `load`.
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
        What stands after the equals sign: ``1e3``, ``corner-wave``, ``[0.25, 1]``, ``{estimated: {rows: 400}}``.
        Nothing, or blanks, is null.
    file : str, optional
        Named in the problems in place of a file, as ``--set data.rows``.

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
    """At most one byte more than is allowed, so that a wrong path to a large table costs nothing."""
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
        raise ScenarioError([Problem("", f"the document is larger than {MAX_BYTES} bytes", file, 1, 1)])


def _check_characters(text: str, file: str | None) -> None:
    """Report the first character that may not occur, and how many follow: a binary file would fill the screen."""
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

"""Standard output belongs to the report: while a command runs, whatever else is written there goes to standard error.

A plugin may print, write to the descriptor, start a program that does, or close the stream; ``--format json`` stays a document.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import rich_click as click

from auditor.errors import StorageError
from auditor.text.safe_text import clean_lines


class _Lasting:
    """A stream that cannot be closed."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Do nothing."""


_reserved: list[TextIO | None] = []


@contextmanager
def reserved() -> Iterator[None]:
    """Keep standard output for ``put``."""
    before = sys.stdout, sys.stderr
    kept = _diverted()
    stream = _private(before[0], kept)
    _reserved.append(stream)
    if before[1] is not None:
        sys.stdout = sys.stderr = _Lasting(before[1])
    try:
        yield
    finally:
        _reserved.pop()
        sys.stdout, sys.stderr = before
        with suppress(OSError, ValueError):  # nobody reads it any more
            if stream is not before[0]:
                stream.close()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def stream() -> TextIO | None:
    """Return what reports are printed to; None where standard output was closed from the start."""
    return _reserved[-1] if _reserved else sys.stdout


def put(text: str, nl: bool = True) -> None:
    """Print a part of the report, if there is a standard output; a pipe that is closed is left to the framework.

    Raises
    ------
    StorageError
        It cannot be written, as on a full device.
    """
    if (report := stream()) is None:
        return
    try:
        click.echo(text, file=report, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"standard output cannot be written ({error.strerror or type(error).__name__})") from None


def tell(message: object) -> None:
    """Print lines as a part of the report; names in them come from files, and must not steer the terminal."""
    put(clean_lines(message))


def say(message: object) -> None:
    """Tell a person something on standard error, as safely."""
    with suppress(OSError):  # a full or closed device: there is nobody left to tell
        click.echo(clean_lines(message), err=True)


def _diverted() -> int | None:
    """Let descriptor 1 be standard error's, for what does not ask Python; return a copy of what it was."""
    with suppress(OSError, ValueError, AttributeError):  # one of them is closed, or sys.stdout is None
        sys.stdout.flush()
        kept = os.dup(1)
        try:
            os.dup2(2, 1)
        except OSError:
            os.close(kept)
            return None
        return kept
    return None


def _private(stream: Any, kept: int | None) -> Any:
    """Return a stream of our own for what was standard output; one that does not go to descriptor 1 is left as it is."""
    with suppress(OSError, ValueError, AttributeError):
        if kept is not None and stream.fileno() == 1:
            return open(os.dup(kept), "w", encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123 - of a descriptor
    return stream

"""Standard output reserved for the report.

Other output goes to standard error, so ``--format json`` stays valid.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import rich_click as click

from auditor.base.errors import StorageError
from auditor.base.text import clean_lines


class _Lasting:
    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None: ...


_reserved: list[TextIO | None] = []


@contextmanager
def reserved() -> Iterator[None]:
    """Reserve standard output for ``put``."""
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
        with suppress(OSError, ValueError):  # closed by the reader
            if stream is not before[0]:
                stream.close()
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


def stream() -> TextIO | None:
    """Report's stream; None if standard output was closed."""
    return _reserved[-1] if _reserved else sys.stdout


def put(text: str, nl: bool = True) -> None:
    """Print a part of the report; a closed pipe is left to click.

    Raises
    ------
    StorageError
        The stream cannot be written.
    """
    if (report := stream()) is None:
        return
    try:
        click.echo(text, file=report, nl=nl)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"standard output cannot be written ({error.strerror or type(error).__name__})"
        ) from None


def tell(message: object) -> None:
    """Print lines of the report, cleaned of terminal controls."""
    put(clean_lines(message))


def say(message: object) -> None:
    """Print a cleaned message on standard error."""
    with suppress(OSError):  # a full or closed device
        click.echo(clean_lines(message), err=True)


def _diverted() -> int | None:
    with suppress(OSError, ValueError, AttributeError):  # a closed stream, or sys.stdout is None
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
    with suppress(OSError, ValueError, AttributeError):
        if kept is not None and stream.fileno() == 1:
            return open(os.dup(kept), "w", encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123 - of a descriptor
    return stream

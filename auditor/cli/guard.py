"""Wrapper of every command: standard output, exit status, plugin errors."""

from __future__ import annotations

import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any

from click import get_current_context
from click.exceptions import Abort, ClickException, Exit

from auditor.base.errors import FAILED_RUNNING, AuditorError
from auditor.process.console import say

FIELD = re.compile(r"`([\w-]+):(?: ([\w-]+))?`")
"""A scenario field in a message, with or without its value."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Reserve standard output for the report and protect the exit status.

    It handles Ctrl-C and errors that escape the containment of plugin calls.
    """

    @wraps(command)
    def inner(*arguments: Any, **options: Any) -> None:
        from auditor.process.console import reserved
        from auditor.process.containment import exits_refused, is_ours, withhold_uncaught
        from auditor.process.interrupt import CtrlC, own_interrupt

        undo = withhold_uncaught()
        try:
            with reserved(), own_interrupt(), exits_refused():
                command(*arguments, **options)
        except CtrlC as error:
            say(str(error) or "interrupted")
            sys.exit(error.status)
        except AuditorError as error:
            error.args = (
                with_options(
                    str(error),
                    {
                        option
                        for each in get_current_context().command.params
                        for option in each.opts
                    },
                ),
            )
            raise
        except Exception as error:
            # raised by a plugin; this program raises none of these
            if isinstance(error, (EOFError, Exit, ClickException, Abort)):
                sys.exit(report_bug(error))
            raise
        except BaseException as error:
            if isinstance(error, SystemExit) and is_ours(error):
                raise
            sys.exit(report_bug(error))
        finally:
            undo()

    return inner


def with_options(message: str, options: Collection[str]) -> str:
    """Return a message with scenario fields written as the command's options.

    Examples
    --------
    >>> with_options("set `missing: drop`, or choose with `columns:`", ["--missing"])
    'set `--missing drop`, or choose with `columns:`'
    """

    def named(field: re.Match[str]) -> str:
        option, value = f"--{field[1]}", field[2]
        return (
            field[0]
            if option not in options
            else f"`{option}`"
            if value is None
            else f"`{option} {value}`"
        )

    return FIELD.sub(named, message)


def report_bug(error: BaseException) -> int:
    """Print a bug's location and return the exit status."""
    from auditor.process.containment import known

    frames = "".join(traceback.format_tb(error.__traceback__))
    message = (
        str(error)
        if os.environ.get("AUDITOR_DEBUG")
        else "message withheld, it might hold data; AUDITOR_DEBUG=1 shows it"
    )
    say(f"Traceback (most recent call last):\n{frames}{known(type(error)).__name__}: {message}")
    return FAILED_RUNNING


def close_up(before: Sequence[threading.Thread], status: Any) -> None:
    """Close standard output and end the process despite plugins' threads.

    Python would wait for these threads, possibly forever.
    """
    from auditor.base.text import counted
    from auditor.process.containment import withhold_uncaught

    withhold_uncaught()
    with suppress(OSError, ValueError, AttributeError):  # already closed
        sys.stdout.flush()
        os.dup2(2, 1)
    ours = [
        *before,
        *(thread for thread in threading.enumerate() if thread.name.startswith("auditor-")),
    ]
    left = [
        thread
        for thread in threading.enumerate()
        if thread not in ours and thread.is_alive() and not thread.daemon
    ]
    if left and isinstance(status, (int, type(None))):
        say(
            f"warning: {counted(len(left), 'thread')} that a plugin started did not end; the program ends without it"
        )
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status or 0)

"""What surrounds every command: standard output is the report's, and whatever a plugin raises ends with the right exit status."""

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

from auditor.errors import FAILED_RUNNING, AuditorError
from auditor.process.console import say

FIELD = re.compile(r"`([\w-]+):(?: ([\w-]+))?`")
"""How a message names a field of a scenario, with its value or without."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Keep standard output for the report while a command runs, and its exit status from whatever a plugin raises.

    What plugins raise is contained where they are called; this is for what slips through, and for Ctrl-C.
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
            error.args = (with_options(str(error), {option for each in get_current_context().command.params for option in each.opts}),)
            raise
        except Exception as error:
            if isinstance(error, (EOFError, Exit, ClickException, Abort)):  # of a plugin: none are ours
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
    """Return a message with fields of a scenario named as the command's own options, where it has such.

    Examples
    --------
    >>> with_options("set `missing: drop`, or choose with `columns:`", ["--missing"])
    'set `--missing drop`, or choose with `columns:`'
    """

    def named(field: re.Match[str]) -> str:
        option, value = f"--{field[1]}", field[2]
        return field[0] if option not in options else f"`{option}`" if value is None else f"`{option} {value}`"

    return FIELD.sub(named, message)


def report_bug(error: BaseException) -> int:
    """Tell where something broke; return the exit status."""
    from auditor.process.containment import known

    frames = "".join(traceback.format_tb(error.__traceback__))
    message = str(error) if os.environ.get("AUDITOR_DEBUG") else "message withheld, it might hold data; AUDITOR_DEBUG=1 shows it"
    say(f"Traceback (most recent call last):\n{frames}{known(type(error)).__name__}: {message}")
    return FAILED_RUNNING


def close_up(before: Sequence[threading.Thread], status: Any) -> None:
    """See to it that what plugins left behind adds nothing to the report, and does not keep the process from ending.

    Python would wait for threads, perhaps for ever.
    """
    from auditor.process.containment import withhold_uncaught
    from auditor.text.column_names import counted

    withhold_uncaught()
    with suppress(OSError, ValueError, AttributeError):  # closed, or nobody reads it
        sys.stdout.flush()
        os.dup2(2, 1)
    ours = [*before, *(thread for thread in threading.enumerate() if thread.name.startswith("auditor-"))]
    left = [thread for thread in threading.enumerate() if thread not in ours and thread.is_alive() and not thread.daemon]
    if left and isinstance(status, (int, type(None))):
        say(f"warning: {counted(len(left), 'thread')} that a plugin started did not end; nobody waits for that")
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status or 0)

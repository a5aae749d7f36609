"""The program ``auditor``: its commands put together, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Sequence

import rich_click as click

from auditor.cli import advise, attack, completion, inspect, perturb, run, selftest
from auditor.cli.guard import close_up, report_bug
from auditor.errors import FAILED_RUNNING, WRONG_REQUEST, AuditorError, PluginFailed, StorageError
from auditor.process.console import say

click.rich_click.TEXT_MARKUP = "ansi"

BY_THE_SYSTEM = {errno.ENAMETOOLONG: WRONG_REQUEST, errno.ENOSPC: FAILED_RUNNING}
"""What a system refuses whoever asks, and the exit status then: a path that no file can have, help that a full device is to show."""
COMMANDS = (run.run, *inspect.COMMANDS, advise.advise, perturb.perturb, attack.attack, selftest.selftest)


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="auditor", message="%(prog)s %(version)s")
@completion.option
def cli() -> None:
    """How well does every known attack rebuild the private records from every coalition's perturbed copies?

    Exit status: 0 every expectation holds; 1 one does not; 2 the request is wrong; 3 something failed while running (an attack, a scheme,
    a full disk, killed workers); 130 or 143 stopped by Ctrl-C or SIGTERM, with a partial report.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's error is one message, a bug keeps its traceback but not its text.

    The text of a foreign exception may quote whatever it met, and that may be an original value.
    """
    from auditor.process.environment import begin_program

    before = threading.enumerate()
    if arguments is None:  # the program, and not a call of it in somebody else's
        begin_program()
    try:
        cli.main(args=None if arguments is None else list(arguments), prog_name="auditor", standalone_mode=True)
    except SystemExit as done:
        if arguments is None and "auditor.process.containment" in sys.modules:
            close_up(before, done.code)
        raise
    except AuditorError as error:
        say(f"error: {error}")
        sys.exit(FAILED_RUNNING if isinstance(error, (StorageError, PluginFailed)) else WRONG_REQUEST)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)
    except OSError as error:
        if error.errno not in BY_THE_SYSTEM:
            sys.exit(report_bug(error))
        say(f"error: {os.strerror(error.errno)}")
        sys.exit(BY_THE_SYSTEM[error.errno])
    except Exception as error:
        sys.exit(report_bug(error))

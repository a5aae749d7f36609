"""Command line: parse arguments and call the API.

``guard`` wraps every command, ``arguments`` holds shared arguments; ``run``,
``copies`` and ``inspect`` have the commands.

Modules import only errors and the console at the top. Commands import the rest, so ``auditor
--help`` starts fast. ``auditor.runs.output`` writes results. ``auditor.runs.api`` is the Python
equivalent.
"""

import errno
import os
import sys
import threading
from collections.abc import Sequence

import rich_click as click

from auditor.base import FAILED_RUNNING, WRONG_REQUEST, AuditorError, PluginFailed, StorageError
from auditor.cli import copies, inspect, run
from auditor.cli.arguments import close_up, report_bug
from auditor.process.environment import begin_program, say

click.rich_click.TEXT_MARKUP = "ansi"

BY_THE_SYSTEM = {errno.ENAMETOOLONG: WRONG_REQUEST, errno.ENOSPC: FAILED_RUNNING}
"""Exit status for system errors: a path too long, or help on a full device."""
COMMANDS = (run.run, *inspect.COMMANDS, copies.advise, copies.perturb, copies.attack, run.selftest)


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(
    None, "-V", "--version", package_name="auditor", message="%(prog)s %(version)s"
)
def cli() -> None:
    """Measure how well attacks rebuild private records from perturbed copies.

    Exit status: 0 every expectation holds; 1 one does not; 2 the request is wrong; 3 something
    failed while running (an attack, a scheme, a full disk, killed workers); 130 or 143 stopped by
    Ctrl-C or SIGTERM, with a partial report.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    A user's error is one message. A bug keeps its traceback without the text, which may quote an
    original value.
    """
    before = threading.enumerate()
    if arguments is None:  # as a program, not called from Python
        begin_program()
    try:
        cli.main(
            args=None if arguments is None else list(arguments),
            prog_name="auditor",
            standalone_mode=True,
        )
    except SystemExit as done:
        if arguments is None and "auditor.process.containment" in sys.modules:
            close_up(before, done.code)
        raise
    except AuditorError as error:
        say(f"error: {error}")
        sys.exit(
            FAILED_RUNNING if isinstance(error, StorageError | PluginFailed) else WRONG_REQUEST
        )
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

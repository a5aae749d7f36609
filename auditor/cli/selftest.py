"""``auditor selftest``: detection and false-alarm rates on known releases."""

from __future__ import annotations

import sys
import time

import rich_click as click

from auditor.cli.arguments import format_option, quiet_option, several, warn_of_broken_plugins
from auditor.cli.guard import guarded
from auditor.errors import AuditorError
from auditor.process.console import put, say

FORMATS = ("table", "markdown", "json")


@click.command()
@click.option(
    "--rows",
    type=click.IntRange(min=2),
    default=[1000],
    show_default=True,
    multiple=True,
    help="Records in each table (repeatable: each size is tested).",
)
@click.option(
    "--releases",
    type=click.IntRange(min=1),
    default=[5],
    show_default=True,
    multiple=True,
    help="Releases of each case, with seeds of their own; once, or once for each `--rows`.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the first release of each case.",
)
@several("--case", "cases", metavar="NAME", about="This case alone; `auditor list cases` shows all")
@format_option(*FORMATS)
@quiet_option
@guarded
def selftest(
    rows: tuple[int, ...],
    releases: tuple[int, ...],
    seed: int,
    cases: tuple[str, ...],
    form: str,
    quiet: bool,
) -> None:
    """Audit planted leaks and honest releases, and count the verdicts.

    Exit status: 0 if no leak was acquitted and no more honest releases were refuted than the stated
    level allows; 1 otherwise.
    """
    from auditor.runs.output import screen
    from auditor.selftest import self_test, to_json
    from auditor.selftest_report import markdown, terminal

    warn_of_broken_plugins()
    if len(releases) not in (1, len(rows)):
        raise AuditorError(
            f"--releases must be given once, or once for each of {len(rows)} --rows; got {len(releases)}"
        )
    found, start = [], time.process_time()
    for size, many in zip(rows, releases * (len(rows) if len(releases) == 1 else 1), strict=True):
        listener = None if quiet else lambda name, size=size: say(f"case {name}, {size:,} rows")
        found.append(self_test(size, many, seed, cases, listener))
    seconds = time.process_time() - start
    put(
        to_json(found)
        if form == "json"
        else markdown(found, seconds)
        if form == "markdown"
        else terminal(found, **screen()),
        nl=False,
    )
    sys.exit(max(each.exit_status for each in found))

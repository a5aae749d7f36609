"""The command ``selftest``: how often the program finds planted leaks, and how often it refutes honest releases."""

from __future__ import annotations

import sys

import rich_click as click

from auditor.cli.arguments import warn_of_broken_plugins
from auditor.cli.guard import guarded
from auditor.process.console import put, say

FORMATS = ("table", "markdown", "json")


@click.command()
@click.option("--rows", type=click.IntRange(min=2), default=1000, show_default=True, help="Records in each table.")
@click.option(
    "--releases", type=click.IntRange(min=1), default=5, show_default=True, help="Releases of each case, with seeds of their own."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the first release of each case.")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="This case alone (repeatable); `auditor list cases` shows all.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="What to print.")
@click.option("--quiet", is_flag=True, help="Say nothing of progress.")
@guarded
def selftest(rows: int, releases: int, seed: int, cases: tuple[str, ...], form: str, quiet: bool) -> None:
    """Audit planted leaks and honest releases, and print how often each is found, acquitted or refuted.

    Exit status: 0 if no leak was acquitted and no more honest releases were refuted than the stated level allows; 1 otherwise.
    """
    from auditor.runs.output import screen
    from auditor.selftest import self_test
    from auditor.selftest_report import markdown, terminal

    warn_of_broken_plugins()
    found = self_test(rows, releases, seed, cases, None if quiet else lambda name: say(f"case {name}"))
    put(found.to_json() if form == "json" else markdown(found) if form == "markdown" else terminal(found, **screen()), nl=False)
    sys.exit(found.exit_status)

"""``auditor advise``: recommend a scheme and levels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import rich_click as click

from auditor.cli.arguments import (
    all_overrides,
    format_option,
    names,
    one_line_warnings,
    parsed,
    quiet_option,
    several,
    spans,
    warn_of_broken_plugins,
)
from auditor.cli.guard import guarded
from auditor.process.console import put, say, tell

UTILITIES = ("mean", "regression", "classifier")
FORMATS = ("table", "markdown", "html")


@click.command()
@click.argument("data")
@click.option(
    "--copies", type=int, required=True, metavar="M", help="How many copies there shall be."
)
@click.option(
    "--unknown",
    type=float,
    required=True,
    metavar="SHARE",
    help="Share of every attribute that must stay unknown, as 0.5.",
)
@click.option(
    "--utility",
    type=click.Choice(UTILITIES),
    default="mean",
    show_default=True,
    help="Measure of the loss of use.",
)
@click.option("--target", metavar="COLUMN", help="The class that --utility classifier predicts.")
@several(
    "--scheme", "schemes", metavar="NAME", about="A scheme to consider; all for numbers by default"
)
@click.option(
    "--columns",
    callback=parsed(names),
    metavar="A,B,...",
    help="Columns to perturb; every numeric one that is no identifier by default.",
)
@click.option(
    "--spread",
    type=float,
    default=4.0,
    show_default=True,
    help="How many times more the last copy is perturbed than the first.",
)
@several(
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    about="Of the schemes, as replacement=prior",
    parse=all_overrides,
)
@several(
    "--bounds", metavar="COLUMN=LOW:HIGH", about="By how much one record may change", parse=spans
)
@click.option(
    "--epsilon",
    type=float,
    metavar="E",
    help="The largest ε at δ that all copies together may have; needs --bounds.",
)
@click.option("--delta", type=float, default=1e-5, show_default=True, help="δ of that ε.")
@click.option(
    "--rows",
    type=click.IntRange(min=20),
    help="Records to measure; by default as many as the target needs.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Seed of the measurements, not of copies.",
)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False), help="Folder for the scenario and the page."
)
@format_option(*FORMATS)
@quiet_option
@guarded
def advise(output: str | None, form: str, quiet: bool, **asked: Any) -> None:
    """Find the scheme and levels that leave enough of DATA unknown.

    The search minimizes the loss of use. Exposure is measured against the strongest attack of every
    coalition. DATA is a registered source or a file. The output has the recommended release,
    everything that was tried, the command that makes the copies, and a scenario that audits them.
    With --bounds, noise is sized by the change of one record, and every release has its ε.
    """
    from auditor.results.model import STOPPED
    from auditor.runs.advice.advise import advise as advised
    from auditor.runs.advice.advise import write_advice
    from auditor.runs.advice.columns import Request
    from auditor.runs.output import rendered_advice, screen

    warn_of_broken_plugins()
    request = Request(**asked)
    with one_line_warnings():
        advice = advised(request, lambda words: None if quiet else say(f"advise: {words}"))
    put(rendered_advice(form, advice, **(screen() if form == "table" else {})), nl=False)
    for path in write_advice(advice, Path(output)) if output is not None else ():
        tell(f"written: {path}")
    if advice.stopped is not None:
        sys.exit(STOPPED[advice.stopped])

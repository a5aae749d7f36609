"""``auditor advise``: recommend a scheme and levels."""

from __future__ import annotations

from pathlib import Path

import rich_click as click

from auditor.cli.arguments import one_line_warnings, override, span, warn_of_broken_plugins
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
@click.option(
    "--scheme",
    "schemes",
    multiple=True,
    metavar="NAME",
    help="A scheme to consider (repeatable); all for numbers by default.",
)
@click.option(
    "--columns",
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
@click.option(
    "--param",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of the schemes, as replacement=prior (repeatable).",
)
@click.option(
    "--bounds",
    "spans",
    multiple=True,
    metavar="COLUMN=LOW:HIGH",
    help="By how much one record may change (repeatable).",
)
@click.option(
    "--epsilon",
    type=float,
    metavar="E",
    help="The largest ε at δ that all copies together may have; needs --bounds.",
)
@click.option("--delta", type=float, default=1e-5, show_default=True, help="δ of that ε.")
@click.option(
    "--rows", type=click.IntRange(min=20), help="Records to measure; the first 5,000 by default."
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
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="What to print.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of progress.")
@guarded
def advise(
    data: str,
    copies: int,
    unknown: float,
    utility: str,
    target: str | None,
    schemes: tuple[str, ...],
    columns: str | None,
    spread: float,
    changes: tuple[str, ...],
    spans: tuple[str, ...],
    epsilon: float | None,
    delta: float,
    rows: int | None,
    seed: int,
    output: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Find the scheme and levels that leave enough of DATA unknown.

    The search minimizes the loss of use. Exposure is measured against the strongest attack of every
    coalition. DATA is a registered source or a file. The output has the recommended release,
    everything that was tried, the command that makes the copies, and a scenario that audits them.
    With --bounds, noise is sized by the change of one record, and every release has its ε.
    """
    from auditor.runs.advice.advise import advise as advised
    from auditor.runs.advice.advise import write_advice
    from auditor.runs.advice.request import Request
    from auditor.runs.output import rendered_advice, screen

    warn_of_broken_plugins()
    named = None if columns is None else tuple(name for name in columns.split(",") if name)
    parameters, bounds = dict(map(override, changes)), dict(map(span, spans))
    request = Request(
        data,
        copies,
        unknown,
        utility,
        target,
        schemes,
        named,
        rows,
        spread,
        seed,
        parameters,
        bounds,
        delta,
        epsilon,
    )
    with one_line_warnings():
        advice = advised(request, lambda words: None if quiet else say(f"advise: {words}"))
    put(rendered_advice(form, advice, **(screen() if form == "table" else {})), nl=False)
    for path in write_advice(advice, Path(output)) if output is not None else ():
        tell(f"written: {path}")

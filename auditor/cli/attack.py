"""``auditor attack``: run one attack on copies in files."""

from __future__ import annotations

from typing import Any

import rich_click as click

from auditor.cli.arguments import (
    all_overrides,
    names,
    numbers,
    one_line_warnings,
    parsed,
    several,
    value_of,
    warn_of_broken_plugins,
)
from auditor.cli.guard import guarded
from auditor.process.console import say, tell


@click.command()
@click.argument("attack", metavar="NAME")
@click.argument("copies", nargs=-1, required=True, metavar="COPY...")
@click.option(
    "--original",
    required=True,
    metavar="DATA",
    help="The table that the copies are of: a file, or a registered source.",
)
@click.option(
    "--scheme",
    callback=parsed(lambda text: value_of(text, "--scheme")),
    metavar="NAME",
    help="Scheme of the copies' law, or `{name: NAME, …}`; left out, the law is estimated.",
)
@several(
    "--levels",
    metavar="L,L,...",
    about="The copies' levels, in their order",
    parse=lambda texts: numbers(",".join(texts)) if texts else (),
)
@click.option(
    "--columns",
    callback=parsed(names),
    metavar="A,B,...",
    help="Columns to rebuild; by default those of numbers that the original and all copies have.",
)
@click.option(
    "--knowledge",
    callback=parsed(lambda text: value_of(text, "--knowledge")),
    default="perfect",
    show_default=True,
    help="As in a scenario: `{estimated: {rows: 400}}`.",
)
@several(
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    about="A parameter of the attack",
    parse=all_overrides,
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the records that an adversary is given.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write the reconstruction, record by record, to this .csv or .parquet file.",
)
@guarded
def attack(output: str | None, **options: Any) -> None:
    """Attack copies in files with the attack NAME, and print its error.

    All copies are pooled. The estimate is written only with --output: it may be as secret as the
    original.
    """
    from auditor.runs.attack_files import (
        Request,
        attack_files,
        check_output,
        described,
        write_estimate,
    )

    warn_of_broken_plugins()
    asked = Request(**options)
    if output is not None:
        check_output(asked, output)
    with one_line_warnings():
        found = attack_files(asked)
    tell(described(asked, found))
    if output is not None:
        say(f"written: {write_estimate(found, output)}")

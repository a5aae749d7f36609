"""``auditor attack``: run one attack on copies in files."""

from __future__ import annotations

from typing import Any

import rich_click as click

from auditor.cli.arguments import (
    numbers,
    one_line_warnings,
    override,
    value_of,
    warn_of_broken_plugins,
)
from auditor.cli.guard import guarded
from auditor.process.console import say, tell


@click.command()
@click.argument("name")
@click.argument("copies", nargs=-1, required=True, metavar="COPY...")
@click.option(
    "--original",
    required=True,
    metavar="DATA",
    help="The table that the copies are of: a file, or a registered source.",
)
@click.option(
    "--scheme",
    metavar="NAME",
    help="Scheme of the copies' law, or `{name: NAME, …}`; left out, the law is estimated.",
)
@click.option(
    "--levels",
    multiple=True,
    metavar="L,L,...",
    help="The copies' levels, in their order (repeatable).",
)
@click.option(
    "--columns",
    metavar="A,B,...",
    help="Columns to rebuild; by default those of numbers that the original and all copies have.",
)
@click.option(
    "--knowledge",
    default="perfect",
    show_default=True,
    help="As in a scenario: `{estimated: {rows: 400}}`.",
)
@click.option(
    "--param",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the attack (repeatable).",
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
def attack(
    name: str,
    copies: tuple[str, ...],
    original: str,
    scheme: str | None,
    levels: tuple[str, ...],
    columns: str | None,
    knowledge: str,
    changes: tuple[str, ...],
    seed: int,
    output: str | None,
) -> None:
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
    stated: Any = None if scheme is None else value_of(scheme, "--scheme")
    asked = Request(
        name,
        copies,
        original,
        stated,
        numbers(",".join(levels)) if levels else (),
        None if columns is None else columns.split(","),
        value_of(knowledge, "--knowledge"),
        seed,
        dict(override(change) for change in changes),
    )
    if output is not None:
        check_output(asked, output)
    with one_line_warnings():
        found = attack_files(asked)
    tell(described(asked, found))
    if output is not None:
        say(f"written: {write_estimate(found, output)}")

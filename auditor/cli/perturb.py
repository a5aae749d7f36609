"""``auditor perturb``: perturbed copies of a table, as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from auditor.cli.arguments import numbers, one_line_warnings, override, warn_of_broken_plugins
from auditor.cli.guard import guarded
from auditor.errors import AuditorError
from auditor.process.console import say, tell

if TYPE_CHECKING:
    from auditor.runs.drawn_copies import Precision
    from auditor.runs.finished_copies import Blank

FOR_STUDY = (
    "WARNING: copies made with --seed are FOR STUDY ONLY: whoever knows or guesses the seed and the table takes the noise off again. "
    "For copies to hand out leave --seed out."
)
FOR_RELEASE = """\
note: another run on this table draws anew, and the copies of two runs average out. For more copies later extend this release, in Python:
  import auditor
  release = auditor.read_release(X, FOLDER).extend([LEVEL])    # X: the table as a DataFrame
  release.copies[-1].to_csv("another.csv", index=False)"""

NOT_EXTENDED = (
    "note: another run on this table draws anew, and the copies of two runs average out. Copies that are rounded, cut off or left blank "
    "cannot be extended later: make all that you will need now."
)


@click.command()
@click.argument("data")
@click.option("--scheme", required=True, help="A registered scheme.")
@click.option("--levels", required=True, multiple=True, metavar="L,L,...", help="Levels in order of release (repeatable).")
@click.option("--seed", type=click.IntRange(min=0), help="For studies only: the same copies again; left out, nobody can make them again.")
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False), help="Folder for the copies.")
@click.option("--columns", metavar="A,B,...", help="Columns to perturb and release; every numeric one by default.")
@click.option("--keep", metavar="A,B,...", help="Columns of the file that go into every copy UNCHANGED; without it none does.")
@click.option("--keep-rest", is_flag=True, help="Keep every column that --columns does not name, unchanged: names and identifiers too.")
@click.option("--rows", type=click.IntRange(min=2), help="Only the first so many rows.")
@click.option("--param", "changes", multiple=True, metavar="NAME=VALUE", help="A parameter of the scheme (repeatable).")
@click.option("--format", "form", type=click.Choice(("csv", "parquet")), help="Of the copies; like the data by default.")
@click.option(
    "--precision", type=click.Choice(("double", "single")), default="double", show_default=True,
    help="Numbers of 64 or 32 bits; single is refused where its rounding could change a conclusion.",
)  # fmt: skip
@click.option(
    "--missing", type=click.Choice(("refuse", "drop", "mean", "keep")), default="refuse", show_default=True,
    help="Blank cells: leave their records out, perturb the column's mean in their place, or keep them blank in every copy.",
)  # fmt: skip
@click.option("--round", "rounded", is_flag=True, help="Round each column to the step that its values lie on: whole numbers, cents, days.")
@click.option("--dates", "forms", multiple=True, metavar="COLUMN=FORMAT", help="How text holds dates unless as 2020-01-31: day=%d/%m/%Y.")
@click.option("--clip", "bounds", multiple=True, metavar="[COLUMN=]LOW:HIGH", help="Cut copies off at bounds that you state (repeatable).")
@guarded
def perturb(
    data: str, scheme: str, levels: tuple[str, ...], seed: int | None, output: str, columns: str | None, keep: str | None, keep_rest: bool,
    rows: int | None, changes: tuple[str, ...], form: str | None, precision: Precision, missing: Blank, rounded: bool,
    forms: tuple[str, ...], bounds: tuple[str, ...],
) -> None:  # fmt: skip
    """Write perturbed copies of DATA (a registered source, a file of data, or a folder of parts) as files, block by block.

    Only perturbed columns are released, unless others are asked for by name with --keep: attributes that are not sensitive pass through
    as they are, cell by cell. A column that tells who somebody is should not be among them.

    Rounding and cutting off are done to each copy alone, after it is drawn: Theorem 4 is then no longer exact, and the audit of the files
    (scheme: published) measures what collusion gains. Bounds are public; take them from what a column means, not from its extremes.
    """
    from auditor.runs.copy_files import averages_out, unperturbed, write_copies
    from auditor.runs.finished_copies import Treatment

    warn_of_broken_plugins()
    if keep is not None and keep_rest:
        raise AuditorError("--keep names columns and --keep-rest keeps all there are; one of the two")
    selection = None if columns is None else _names(columns)
    unchanged: Any = "rest" if keep_rest else _names(keep or "")
    parameters = dict(override(change) for change in changes)
    asked = numbers(",".join(levels))
    treatment = Treatment(missing, rounded, dict(map(_bounds, bounds)), _forms(forms))
    with one_line_warnings():
        written = write_copies(data, scheme, asked, seed, Path(output), selection, rows, parameters, form, precision, unchanged, treatment)
    for path in written:
        tell(f"written: {path}")
    for copy in unperturbed(scheme, asked):
        say(f"warning: level {asked[copy - 1]:g} perturbs nothing: copy {copy} is the data as they are")
    if seed is not None:
        say(FOR_STUDY)
    elif averages_out(scheme):
        say(FOR_RELEASE if treatment.is_plain else NOT_EXTENDED)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _forms(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the formats of columns of dates, as a scenario's ``dates`` has them."""
    from auditor.data.columns.dates import parse_dates

    forms = {column: form for column, _, form in (text.partition("=") for text in texts)}
    try:
        parse_dates(forms)
    except ValueError as error:
        raise AuditorError(f"--dates {error}") from None
    return forms


def _bounds(text: str) -> tuple[str, tuple[str, str]]:
    """Return column, or nothing for every one, and its two bounds as they are written."""
    column, _, both = text.rpartition("=")
    low, colon, high = both.partition(":")
    if not colon or ":" in high:
        raise AuditorError(f"--clip must be LOW:HIGH or COLUMN=LOW:HIGH, as age=0:120 or pay=0: for no upper bound; got {text!r}")
    return column, (low, high)

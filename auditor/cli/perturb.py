"""``auditor perturb``: write perturbed copies of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource
from click.globals import get_current_context

from auditor.cli.arguments import numbers, one_line_warnings, override, span, warn_of_broken_plugins
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
EXTEND = """\
For more copies later extend this release, in Python:
  import auditor
  auditor.read_release(X, FOLDER).extend([LEVEL])    # X: the table as a DataFrame; the new copy is in FOLDER"""
FOR_RELEASE = (
    f"note: another run on this table draws anew, and the copies of two runs average out. {EXTEND}"
)
NESTED = f"note: another run on this table makes classes without regard to these, and some would cut these. {EXTEND}"

KEEP_ORIGINALS = (
    "note: keep the originals of every batch unchanged: they determine the scale of the noise "
    "and the records already released."
)

NOT_EXTENDED = (
    "note: another run on this table draws anew, and the copies of two runs average out. Copies that are rounded, cut off or left blank "
    "cannot be extended later: make all that you will need now."
)

OF_THE_RELEASE = {
    "scheme": "--scheme",
    "levels": "--levels",
    "output": "--output",
    "columns": "--columns",
    "keep": "--keep",
    "keep_rest": "--keep-rest",
    "rows": "--rows",
    "changes": "--param",
    "form": "--format",
    "precision": "--precision",
    "rounded": "--round",
    "bounds": "--clip",
    "epsilon": "--epsilon",
    "gaussian_dp": "--gaussian-dp",
    "spans": "--bounds",
    "force": "--force",
}
OF_A_BATCH = {"earlier": "--earlier", "key": "--key", "repeats": "--repeats"}


@click.command()
@click.argument("data")
@click.option("--scheme", help="A registered scheme.")
@click.option(
    "--levels",
    multiple=True,
    metavar="L,L,...",
    help="Levels in order of release (repeatable); a rotation has none.",
)
@click.option(
    "--epsilon",
    metavar="E,E,...",
    help="In place of levels: what each copy keeps alone (laplace, geometric); needs --bounds.",
)
@click.option(
    "--gaussian-dp",
    metavar="M,M,...",
    help="In place of levels: μ that each copy keeps alone (corner-wave); needs --bounds.",
)
@click.option(
    "--bounds",
    "spans",
    multiple=True,
    metavar="COLUMN=LOW:HIGH",
    help="By how much one record may change (repeatable).",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="For studies only: the same copies again; left out, nobody can make them again.",
)
@click.option("-o", "--output", type=click.Path(file_okay=False), help="Folder for the copies.")
@click.option(
    "--force",
    is_flag=True,
    help="Replace the release in the folder: it can then be neither extended nor appended to.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="A,B,...",
    help="Columns to perturb and release (repeatable); all there are by default.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="A,B,...",
    help="Columns that go into every copy UNCHANGED (repeatable); none by default.",
)
@click.option(
    "--keep-rest",
    is_flag=True,
    help="Keep every column that --columns does not name, unchanged: names and identifiers too.",
)
@click.option("--rows", type=click.IntRange(min=2), help="Only the first so many rows.")
@click.option(
    "--param",
    "changes",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the scheme (repeatable).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("csv", "parquet")),
    help="Of the copies; like the data by default.",
)
@click.option(
    "--precision",
    type=click.Choice(("double", "single")),
    default="double",
    show_default=True,
    help="Numbers of 64 or 32 bits; single is refused where its rounding could change a conclusion.",
)
@click.option(
    "--missing",
    type=click.Choice(("refuse", "drop", "mean", "keep")),
    default="refuse",
    show_default=True,
    help="Blank cells: leave their records out, perturb the column's mean in their place, or keep them blank in every copy.",
)
@click.option(
    "--round",
    "rounded",
    is_flag=True,
    help="Round each column to the step that its values lie on: whole numbers, cents, days.",
)
@click.option(
    "--dates",
    "forms",
    multiple=True,
    metavar="COLUMN=FORMAT",
    help="How text holds dates unless as 2020-01-31: day=%d/%m/%Y.",
)
@click.option(
    "--clip",
    "bounds",
    multiple=True,
    metavar="[COLUMN=]LOW:HIGH",
    help="Cut copies off at bounds that you state (repeatable).",
)
@click.option(
    "--append",
    type=click.Path(file_okay=False),
    help="Folder of a release that DATA has new records for: its scheme, levels.",
)
@click.option(
    "--earlier",
    multiple=True,
    metavar="FILE",
    help="With --append: originals of each batch that is out, in order (repeatable).",
)
@click.option(
    "--key",
    metavar="COLUMN",
    help="With --append: a column that identifies records; those that are out already are refused.",
)
@click.option(
    "--repeats",
    is_flag=True,
    help="With --append and --key: perturb records that are out already once more.",
)
@guarded
def perturb(
    data: str,
    scheme: str | None,
    levels: tuple[str, ...],
    seed: int | None,
    output: str | None,
    columns: tuple[str, ...],
    keep: tuple[str, ...],
    keep_rest: bool,
    rows: int | None,
    changes: tuple[str, ...],
    form: str | None,
    precision: Precision,
    missing: Blank,
    rounded: bool,
    forms: tuple[str, ...],
    bounds: tuple[str, ...],
    append: str | None,
    earlier: tuple[str, ...],
    key: str | None,
    repeats: bool,
    epsilon: str | None,
    gaussian_dp: str | None,
    spans: tuple[str, ...],
    force: bool,
) -> None:
    """Write perturbed copies of DATA as files, block by block.

    DATA is a registered source, a file of data, or a folder of parts. Only perturbed columns are
    released, unless --keep names others. Kept columns pass through unchanged, cell by cell. They
    should not identify persons.

    Rounding and cutting off apply to each copy alone, after it is drawn. Theorem 4 is then no
    longer exact, and the audit of the files (scheme: published) measures the gain of collusion.
    Bounds are public; derive them from a column's meaning, not from its extremes.

    With --append, DATA holds records that arrived later. Their copies at all levels of a release
    are written next to the earlier ones, as copy-1-batch-2.csv and so on. No earlier record is
    drawn again, and noise keeps the scale of the first batch.
    """
    from auditor.runs.copy_files import averages_out, is_nested, unperturbed, write_copies
    from auditor.runs.finished_copies import Treatment
    from auditor.runs.perturb import make_plugin

    warn_of_broken_plugins()
    if append is not None:
        _refuse_given(OF_THE_RELEASE, "is that of the release that --append names")
        _append(data, append, earlier, seed, missing, forms, key, repeats)
        return
    _refuse_given(OF_A_BATCH, "goes with --append")
    parameters = dict(override(change) for change in changes)
    given = levels or epsilon or gaussian_dp
    own = (
        list(make_plugin("scheme", scheme, parameters).default_levels())
        if scheme is not None and not given
        else []
    )
    if scheme is None or output is None or not (given or own):
        needed = (("--scheme", scheme), ("--levels", given or own), ("--output", output))
        lacking = next(name for name, value in needed if not value)
        raise AuditorError(
            f"missing option {lacking}; or --append for records that belong to a release"
        )
    if keep and keep_rest:
        raise AuditorError(
            "--keep names columns and --keep-rest keeps all there are; one of the two"
        )
    selection = _names(columns) if columns else None
    unchanged: Any = "rest" if keep_rest else _names(keep)
    stated = {
        name: text
        for name, text in (("epsilon", epsilon), ("gaussian-dp", gaussian_dp))
        if text is not None
    }
    if len(stated) + bool(levels or own) != 1 or bool(stated) != bool(spans):
        raise AuditorError(
            "give --levels, or one of --epsilon and --gaussian-dp with --bounds of every column to perturb"
        )
    if stated:
        (currency, text), *_ = stated.items()
        kept = numbers(text, f"--{currency}")
        asked, parameters, selection = _sized(
            data, scheme, parameters, currency, kept, spans, selection, rows, missing
        )
    else:
        asked = own or numbers(",".join(levels))
    treatment = Treatment(missing, rounded, dict(map(_bounds, bounds)), _forms(forms))
    with one_line_warnings():
        written = write_copies(
            data,
            scheme,
            asked,
            seed,
            Path(output),
            selection,
            rows,
            parameters,
            form,
            precision,
            unchanged,
            treatment,
            force,
        )
    for path in written:
        tell(f"written: {path}")
    for copy in unperturbed(scheme, asked):
        say(
            f"warning: level {asked[copy - 1]:g} perturbs nothing: copy {copy} is the data as they are"
        )
    if seed is not None:
        say(FOR_STUDY)
    elif is_nested(scheme) and treatment.is_plain:
        say(NESTED)
    elif averages_out(scheme):
        say(FOR_RELEASE if treatment.is_plain else NOT_EXTENDED)


def _sized(
    data: str,
    scheme: str,
    parameters: dict[str, Any],
    currency: str,
    stated: list[float],
    spans: tuple[str, ...],
    selection: list[str] | None,
    rows: int | None,
    missing: str,
) -> tuple[list[float], dict[str, Any], list[str]]:
    """Return levels, parameters and columns for noise sized by bounds.

    All records must lie within the bounds.
    """
    from auditor.data.bounds import check_bounds
    from auditor.data.load import load_table
    from auditor.numerics.random_streams import stream
    from auditor.scenario.stated_levels import sized_by_bounds

    if not all(one > 0 for one in stated):
        raise AuditorError(f"--{currency} must be numbers above 0")
    bounds = dict(map(span, spans))
    if selection is not None and sorted(selection) != sorted(bounds):
        raise AuditorError("--columns and --bounds must name the same columns; leave --columns out")
    columns = list(bounds) if selection is None else selection
    bounds = {name: bounds[name] for name in columns}
    levels, parameters = sized_by_bounds(scheme, parameters, currency, stated, bounds)
    handled: Any = "drop" if missing == "keep" else missing
    check_bounds(
        load_table(data, columns=columns, rows=rows, missing=handled, rng=stream(0, "data")), bounds
    )
    return levels, parameters, columns


def _append(
    data: str,
    folder: str,
    earlier: tuple[str, ...],
    seed: int | None,
    missing: Blank,
    forms: tuple[str, ...],
    key: str | None,
    repeats: bool,
) -> None:
    from auditor.runs.copy_files import append_copies

    with one_line_warnings():
        written = append_copies(
            data, Path(folder), earlier, seed, missing, _forms(forms), key, repeats
        )
    for path in written:
        tell(f"written: {path}")
    say(FOR_STUDY if seed is not None else KEEP_ORIGINALS)


def _refuse_given(options: Mapping[str, str], why: str) -> None:
    context = get_current_context()
    for parameter, option in options.items():
        if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE:
            raise AuditorError(f"{option} {why}")


def _names(texts: Sequence[str]) -> list[str]:
    return [name for text in texts for name in text.split(",") if name]


def _forms(texts: tuple[str, ...]) -> dict[str, str]:
    from auditor.data.columns.dates import parse_dates

    forms = {column: form for column, _, form in (text.partition("=") for text in texts)}
    try:
        parse_dates(forms)
    except ValueError as error:
        raise AuditorError(f"--dates {error}") from None
    return forms


def _bounds(text: str) -> tuple[str, tuple[str, str]]:
    """Parse ``[COLUMN=]LOW:HIGH`` into column (or empty) and bounds as text."""
    column, _, both = text.rpartition("=")
    low, colon, high = both.partition(":")
    if not colon or ":" in high:
        raise AuditorError(
            f"--clip must be LOW:HIGH or COLUMN=LOW:HIGH, as age=0:120 or pay=0: for no upper bound; got {text!r}"
        )
    return column, (low, high)

"""Commands on copies: ``perturb``, ``advise`` and ``attack``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.core import ParameterSource
from click.globals import get_current_context
from rich_click import Choice, IntRange, Path as PathType, argument, command, option

from auditor.base import AuditorError
from auditor.cli.arguments import (
    bounds_option,
    file_options,
    format_option,
    guarded,
    names,
    numbers,
    one_line_warnings,
    param_option,
    parsed,
    quiet_option,
    seed_option,
    several,
    value_of,
    warn_of_broken_plugins,
)
from auditor.process.environment import put, say, tell

if TYPE_CHECKING:
    from auditor.runs.copy_files.draw import Blank

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

WITH_APPEND = set("data sheet blank append seed missing forms earlier key repeats".split())
"""Parameters that may be given with --append."""
ONLY_WITH_APPEND = {"earlier", "key", "repeats"}


def _clip(texts: Sequence[str]) -> dict[str, tuple[str, str]]:
    bounds = {}
    for text in texts:
        column, _, both = text.rpartition("=")
        low, colon, high = both.partition(":")
        if not colon or ":" in high:
            wanted = "LOW:HIGH or COLUMN=LOW:HIGH, as age=0:120 or pay=0: for no upper bound"
            raise AuditorError(f"--clip must be {wanted}; got {text!r}")
        bounds[column] = (low, high)
    return bounds


def _forms(texts: Sequence[str]) -> dict[str, str]:
    from auditor.data.columns.checks import parse_dates

    forms = {column: form for column, _, form in (text.partition("=") for text in texts)}
    try:
        parse_dates(forms)
    except ValueError as error:
        raise AuditorError(f"--dates {error}") from None
    return forms


@command()
@argument("data")
@option("--scheme", help="A registered scheme.")
@several(
    "--levels",
    metavar="L,L,...",
    about="Levels in order of release; a rotation has none",
    parse=lambda texts: numbers(",".join(texts)) if texts else [],
)
@option(
    "--epsilon",
    callback=parsed(lambda text: numbers(text, "--epsilon")),
    metavar="E,E,...",
    help="In place of levels: what each copy keeps alone (laplace, geometric); needs --bounds.",
)
@option(
    "--gaussian-dp",
    callback=parsed(lambda text: numbers(text, "--gaussian-dp")),
    metavar="M,M,...",
    help="In place of levels: μ that each copy keeps alone (corner-wave); needs --bounds.",
)
@bounds_option
@seed_option("For studies only: the same copies again; left out, nobody can make them again.")
@option("-o", "--output", type=PathType(file_okay=False), help="Folder for the copies.")
@option(
    "--force",
    is_flag=True,
    help="Replace the release in the folder: it can then be neither extended nor appended to.",
)
@several(
    "--columns",
    metavar="A,B,...",
    about="Columns to perturb and release; all there are by default",
    parse=names,
)
@several(
    "--keep",
    metavar="A,B,...",
    about="Columns that go into every copy UNCHANGED; none by default",
    parse=names,
)
@option(
    "--keep-rest",
    is_flag=True,
    help="Keep every column that --columns does not name, unchanged: names and identifiers too.",
)
@option("--rows", type=IntRange(min=2), help="Only the first so many rows.")
@param_option("A parameter of the scheme")
@option(
    "--format",
    "form",
    type=Choice(("csv", "parquet")),
    help="Of the copies; like the data by default.",
)
@option(
    "--precision",
    type=Choice(("double", "single")),
    default="double",
    show_default=True,
    help="Numbers of 64 or 32 bits; single is refused where its rounding could change a conclusion.",
)
@option(
    "--missing",
    type=Choice(("refuse", "drop", "mean", "keep")),
    default="refuse",
    show_default=True,
    help="Blank cells: leave their records out, perturb the column's mean in their place, or keep them blank in every copy.",
)
@option(
    "--round",
    "rounded",
    is_flag=True,
    help="Round each column to the step that its values lie on: whole numbers, cents, days.",
)
@option(
    "--unit",
    metavar="COLUMN",
    help="Households or persons: all records of one get one noise in columns that are constant within each.",
)
@several(
    "--dates",
    "forms",
    metavar="COLUMN=FORMAT",
    about="How text holds dates unless as 2020-01-31: day=%d/%m/%Y",
    parse=_forms,
)
@several(
    "--clip",
    "clipped",
    metavar="[COLUMN=]LOW:HIGH",
    about="Cut copies off at bounds that you state",
    parse=_clip,
)
@option(
    "--append",
    type=PathType(file_okay=False),
    help="Folder of a release that DATA has new records for: its scheme, levels.",
)
@several(
    "--earlier",
    metavar="FILE",
    about="With --append: originals of each batch that is out, in order",
)
@option(
    "--key",
    metavar="COLUMN",
    help="With --append: a column that identifies records; those that are out already are refused.",
)
@option(
    "--repeats",
    is_flag=True,
    help="With --append and --key: perturb records that are out already once more.",
)
@file_options
@guarded
def perturb(
    data: str,
    sheet: str | None,
    blank: tuple[str, ...],
    append: str | None,
    seed: int | None,
    missing: Blank,
    forms: dict[str, str],
    earlier: tuple[str, ...],
    key: str | None,
    repeats: bool,
    **release: Any,
) -> None:
    """Write perturbed copies of DATA as files, block by block.

    DATA is a registered source, a file of data, or a folder of parts. Only perturbed columns are
    released, unless --keep names others. Kept columns pass through unchanged, cell by cell. They
    should not identify persons.

    Rounding and cutting off apply to each copy alone, after it is drawn. Theorem 4 is then no
    longer exact, and the audit of the files (scheme: published) measures the gain of collusion.
    Bounds are public: derive each from the column's meaning, not from its extremes.

    With --append, DATA holds records that arrived later. Their copies at all levels of a release
    are written next to the earlier files, as copy-1-batch-2.csv and so on. No earlier record is
    drawn again, and noise keeps the scale of the first batch.
    """
    warn_of_broken_plugins()
    from auditor.results.files import with_reading

    data = with_reading(data, sheet, blank or None)
    if append is None:
        _refuse_given(ONLY_WITH_APPEND, "goes with --append")
        _release(data, missing, forms, seed=seed, **release)
        return
    every = {parameter.name or "" for parameter in get_current_context().command.params}
    _refuse_given(every - WITH_APPEND, "is that of the release that --append names")
    from auditor.runs.copy_files.append import append_copies

    with one_line_warnings():
        folder = Path(append)
        written = append_copies(data, folder, earlier, seed, missing, forms, key, repeats)
    for path in written:
        tell(f"written: {path}")
    say(FOR_STUDY if seed is not None else KEEP_ORIGINALS)


def _refuse_given(parameters: Collection[str], why: str) -> None:
    context = get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "")
        if parameter.name in parameters and given is ParameterSource.COMMANDLINE:
            raise AuditorError(f"{max(parameter.opts, key=len)} {why}")


def _release(
    data: str,
    missing: Blank,
    forms: dict[str, str],
    *,
    scheme: str | None,
    levels: list[float],
    epsilon: list[float] | None,
    gaussian_dp: list[float] | None,
    bounds: dict[str, tuple[float, float]],
    output: str | None,
    columns: tuple[str, ...],
    keep: tuple[str, ...],
    keep_rest: bool,
    rounded: bool,
    unit: str | None,
    clipped: dict[str, tuple[str, str]],
    **others: Any,
) -> None:
    from auditor.registry import get
    from auditor.runs.arguments import make_plugin
    from auditor.runs.copy_files.draw import Treatment
    from auditor.runs.copy_files.write import write_copies

    asked = (("epsilon", epsilon), ("gaussian-dp", gaussian_dp))
    stated = {currency: values for currency, values in asked if values is not None}
    if scheme is not None and not levels and not stated:
        levels = list(make_plugin("scheme", scheme, others["parameters"]).default_levels())
    if scheme is None or output is None or not (levels or stated):
        needed = (("--scheme", scheme), ("--levels", levels or stated), ("--output", output))
        lacking = next(name for name, value in needed if not value)
        why = "or --append for records that belong to a release"
        raise AuditorError(f"missing option {lacking}; {why}")
    if keep and keep_rest:
        why = "--keep names columns and --keep-rest keeps all there are; one of the two"
        raise AuditorError(why)
    if len(stated) + bool(levels) != 1 or bool(stated) != bool(bounds):
        one_of = "one of --epsilon and --gaussian-dp with --bounds of every column to perturb"
        raise AuditorError(f"give --levels, or {one_of}")
    treatment = Treatment(missing, rounded, clipped, forms, unit=unit)
    with one_line_warnings():
        written = write_copies(
            data,
            scheme,
            stated or levels,
            output=Path(output),
            columns=list(columns) or None,
            keep="rest" if keep_rest else keep,
            treatment=treatment,
            bounds=bounds,
            **others,
        )
    for path in written:
        tell(f"written: {path}")
    cls = get("scheme", scheme)
    for copy, level in enumerate([] if stated else levels, start=1):
        if level == cls.level_of_original:
            say(f"warning: level {level:g} perturbs nothing: copy {copy} is the data as they are")
    if others["seed"] is not None:
        say(FOR_STUDY)
    elif getattr(cls, "nested", False) and treatment.is_plain:
        say(NESTED)
    elif cls.level_of_original is not None:
        say(FOR_RELEASE if treatment.is_plain else NOT_EXTENDED)


@command()
@argument("attack", metavar="NAME")
@argument("copies", nargs=-1, required=True, metavar="COPY...")
@option(
    "--original",
    required=True,
    metavar="DATA",
    help="The table that the copies are of: a file, or a registered source.",
)
@option(
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
@option(
    "--columns",
    callback=parsed(names),
    metavar="A,B,...",
    help="Columns to rebuild; by default those of numbers that the original and all copies have.",
)
@option(
    "--knowledge",
    callback=parsed(lambda text: value_of(text, "--knowledge")),
    default="perfect",
    show_default=True,
    help="As in a scenario: `{estimated: {rows: 400}}`.",
)
@param_option("A parameter of the attack")
@seed_option("Of the records that an adversary is given.", 0)
@option(
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
    from auditor.runs.attack_files import Request, attack_files
    from auditor.runs.estimate_files import check_output, described, write_estimate

    warn_of_broken_plugins()
    asked = Request(**options)
    if output is not None:
        check_output(asked, output)
    with one_line_warnings():
        found = attack_files(asked)
    tell(described(asked, found))
    if output is not None:
        say(f"written: {write_estimate(found, output)}")


UTILITIES = ("mean", "regression", "classifier")


@command()
@argument("data")
@option("--copies", type=int, required=True, metavar="M", help="How many copies there shall be.")
@option(
    "--unknown",
    type=float,
    required=True,
    metavar="SHARE",
    help="Share of every attribute that must stay unknown, as 0.5.",
)
@option(
    "--utility",
    type=Choice(UTILITIES),
    default="mean",
    show_default=True,
    help="Measure of the loss of use.",
)
@option("--target", metavar="COLUMN", help="The class that --utility classifier predicts.")
@several(
    "--scheme", "schemes", metavar="NAME", about="A scheme to consider; all for numbers by default"
)
@option(
    "--columns",
    callback=parsed(names),
    metavar="A,B,...",
    help="Columns to perturb; every numeric one that is no identifier by default.",
)
@option(
    "--spread",
    type=float,
    default=4.0,
    show_default=True,
    help="How many times more the last copy is perturbed than the first.",
)
@param_option("Of the schemes, as replacement=prior")
@bounds_option
@option(
    "--epsilon",
    type=float,
    metavar="E",
    help="The largest ε at δ that all copies together may have; needs --bounds.",
)
@option("--delta", type=float, default=1e-5, show_default=True, help="δ of that ε.")
@option(
    "--rows",
    type=IntRange(min=20),
    help="Records to measure; by default as many as the target needs.",
)
@seed_option("Seed of the measurements, not of copies.", 1)
@option(
    "-o", "--output", type=PathType(file_okay=False), help="Folder for the scenario and the page."
)
@format_option("table", "markdown", "html")
@quiet_option
@guarded
def advise(output: str | None, form: str, quiet: bool, **asked: Any) -> None:
    """Find the scheme and levels that leave enough of DATA unknown.

    The search minimizes the loss of use. Exposure is measured against the strongest attack of every
    coalition. Every draw of the noise (5 to 25) leaves enough; a new release leaves less than all R
    draws with probability 1/(R + 1). Attacks that were not tried may leave less. DATA is a
    registered source or a file. The output has the recommended release, everything that was tried,
    the command for the copies, and a scenario for their audit. With --bounds, noise is
    sized by the change of one record, and every release has its ε.
    """
    from auditor.runs.advice.advise import advise as advised, write_advice
    from auditor.runs.advice.columns import Request
    from auditor.runs.output import rendered_advice, screen

    warn_of_broken_plugins()
    request = Request(**asked)
    with one_line_warnings():
        advice = advised(request, lambda words: None if quiet else say(f"advise: {words}"))
    put(rendered_advice(form, advice, **(screen() if form == "table" else {})), nl=False)
    for path in write_advice(advice, Path(output)) if output is not None else ():
        tell(f"written: {path}")
    sys.exit(advice.exit_status)

"""Commands on copies: ``perturb``, ``advise`` and ``attack``."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.core import ParameterSource
from click.globals import get_current_context
from rich_click import command

from auditor.base import AuditorError
from auditor.cli.arguments import (
    all_overrides,
    guarded,
    names,
    numbers,
    one_line_warnings,
    options,
    spans,
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
    from auditor.data.columns.checks import date_format

    try:
        parts = (text.partition("=") for text in texts)
        return {column: date_format(form) for column, _, form in parts}
    except ValueError as error:
        raise AuditorError(f"--dates {error}") from None


def _levels(texts: Sequence[str]) -> list[float]:
    return numbers(",".join(texts)) if texts else []


@command()
@options(
    "perturb",
    levels=_levels,
    epsilon=partial(numbers, option="--epsilon"),
    gaussian_dp=partial(numbers, option="--gaussian-dp"),
    bounds=spans,
    columns=names,
    keep=names,
    parameters=all_overrides,
    forms=_forms,
    clipped=_clip,
)
@guarded
def perturb(
    data: str,
    sheet: str | None,
    blank: Sequence[str],
    append: str | None,
    seed: int | None,
    missing: Blank,
    forms: dict[str, str],
    earlier: Sequence[str],
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
    from auditor.runs.copy_files.read import append_copies

    with one_line_warnings():
        written = append_copies(data, Path(append), earlier, seed, missing, forms, key, repeats)
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
    columns: Sequence[str],
    keep: Sequence[str],
    keep_rest: bool,
    rounded: bool,
    unit: str | None,
    clipped: dict[str, tuple[str, str]],
    **others: Any,
) -> None:
    from auditor.registry import get
    from auditor.runs.copy_files.draw import Treatment
    from auditor.runs.copy_files.write import write_copies
    from auditor.scenario.arguments import make_plugin

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
        raise AuditorError(
            "--keep names columns and --keep-rest keeps all there are; one of the two"
        )
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
@options(
    "attack",
    scheme=partial(value_of, option="--scheme"),
    levels=_levels,
    columns=names,
    knowledge=partial(value_of, option="--knowledge"),
    parameters=all_overrides,
)
@guarded
def attack(output: str | None, **options: Any) -> None:
    """Attack copies in files with the attack NAME, and print its error.

    All copies are pooled. The estimate is written only with --output: it may be as secret as the
    original.
    """
    from auditor.runs.copy_files.read import Request, attack_files
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


@command()
@options("advise", columns=names, shown=names, parameters=all_overrides, bounds=spans)
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
    from auditor.runs.output import rendered, screen

    warn_of_broken_plugins()
    request = Request(**asked)
    with one_line_warnings():
        advice = advised(request, lambda words: None if quiet else say(f"advise: {words}"))
    put(rendered(form, advice, **(screen() if form == "table" else {})), nl=False)
    for path in write_advice(advice, Path(output)) if output is not None else ():
        tell(f"written: {path}")
    sys.exit(advice.exit_status)

"""New scenarios: a draft for a table, and templates that run."""

import os
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from math import ceil, inf, isfinite, sqrt
from pathlib import Path
from types import MappingProxyType

import yaml

from auditor import registry
from auditor.base import (
    AuditorError,
    AuditorWarning,
    DataError,
    ScenarioError,
    counted,
    did_you_mean,
    listed,
    quoted,
    visible,
)
from auditor.base.types import frozen
from auditor.data.columns.kinds import FEWEST_EACH, Column
from auditor.data.describe import Description, categories_in_clear, describe, renamed_in
from auditor.data.load import file_notes
from auditor.data.table import is_file
from auditor.process.environment import shipped_folder, templated
from auditor.results.files import located, reading_of, split_name, with_reading
from auditor.scenario.yaml_document import scalar

MOST_COMBINATIONS = 1_000
"""Most combinations of categories, each an entry of a posterior."""
MOST_NUMBERS = 12
"""Most numeric and date columns; time grows with the square."""
MOST_DROPPED = 0.5
"""Largest share of records dropped for blanks."""


@frozen
class Selection:
    """Audited columns, and reasons against others."""

    numbers: tuple[Column, ...]
    dates: tuple[Column, ...]
    categories: tuple[Column, ...]
    left_out: tuple[tuple[Column, str], ...]
    missing: str

    @property
    def used(self) -> tuple[Column, ...]:
        """All audited columns."""
        return (*self.numbers, *self.dates, *self.categories)


def select(found: Description, unused: Mapping[str, str] = MappingProxyType({})) -> Selection:
    """Up to twelve numeric columns, and categories within limits.

    ``unused`` has reasons against columns, by name.

    Raises
    ------
    DataError
        No column can be audited; the message has the reasons.
    """
    missing = _missing(found)
    why = {column.name: column.why for column in found.columns if not column.used}
    why = {**unused, **why}
    used = [column for column in found.columns if column.name not in why]
    categories, most = _together(
        [column for column in used if column.kind == "category"], found.rows, missing == "mean"
    )
    for column in used:
        if column.kind == "category" and column not in categories and not column.numeric:
            blank = column.blank and missing == "mean"
            why[column.name] = (
                "is a category with blanks, for which no mean can stand"
                if blank
                else _TOO_MANY.format(most)
            )
    numbers = [column for column in used if column not in categories and column.name not in why]
    why |= {column.name: _TOO_WIDE for column in numbers[MOST_NUMBERS:]}
    left_out = tuple((column, why[column.name]) for column in found.columns if column.name in why)
    if not (numbers or categories):
        reasons = "; ".join(f"{quoted(column.name)} {reason}" for column, reason in left_out[:3])
        more = f"; and {counted(len(left_out) - 3, 'column')} more" if len(left_out) > 3 else ""
        raise DataError(
            f"no column holds numbers, dates or categories that an audit could use: {reasons}{more}"
        )
    dates = tuple(column for column in numbers[:MOST_NUMBERS] if column.kind == "date")
    return Selection(
        tuple(column for column in numbers[:MOST_NUMBERS] if column not in dates),
        dates,
        tuple(categories),
        left_out,
        missing,
    )


_TOO_MANY = "is a category, and with it there would be more than {:,} combinations; audit it in a scenario of its own"
_TOO_WIDE = (
    f"comes after the first {MOST_NUMBERS} columns of numbers; add it, as it may tell of these"
)


def _missing(found: Description) -> str:
    blank = sum(column.blank for column in found.columns if column.used)
    if found.whole and not blank:
        return "refuse"
    return "drop" if blank <= MOST_DROPPED else "mean"


def _together(
    categories: Sequence[Column], rows: int, without_blanks: bool
) -> tuple[list[Column], int]:
    taken: list[Column] = []
    combinations, most = 1, min(MOST_COMBINATIONS, max(2, rows // FEWEST_EACH))
    for column in categories:
        if combinations * column.values <= most and not (column.blank and without_blanks):
            taken.append(column)
            combinations *= column.values
    return taken, most


OLD_TRUTHS = ("y", "n", "yes", "no", "on", "off")
"""Text in YAML 1.2, but truth values in YAML 1.1."""
MOST_ROWS = 20_000
"""Records of a first audit: a few minutes on one core."""
MOST_LEFT_OUT = 50
"""Most excluded columns with a description."""


def drafted(scenario: Path, data: str, copies: Sequence[str]) -> str:
    """YAML of a scenario file for a table and its copies.

    Warns
    -----
    AuditorWarning
        Notes on the reading of the table.

    Raises
    ------
    DataError
        No column can be audited, or a file cannot be read.
    """
    source, files = source_named(data), [source_named(copy) for copy in copies]
    for note in file_notes(source):
        warnings.warn(AuditorWarning(note), stacklevel=2)
    found = describe(source)
    named = {source_for(copy, scenario): describe(copy) for copy in files}
    clear = categories_in_clear(source, found, files)
    return draft(
        source_for(source, scenario), found, named, clear, renamed_in(source, found, files)
    )


def draft(
    source: str,
    found: Description,
    copies: Mapping[str, Description] = MappingProxyType({}),
    clear: Collection[str] = (),
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """YAML of a scenario.

    ``source`` and ``copies`` have names from ``source_for``; without copies, schemes draw some.
    Copies show ``clear`` categorical columns unchanged, and ``renamed`` columns under another name.

    Raises
    ------
    DataError
        No column can be audited.
    """
    blurred = set().union(*(names_of(copy, "number") for copy in copies.values()))
    blurred &= {column.name for column in found.columns if column.numeric} & names_of(
        found, "category"
    )
    columns = [
        replace(column, kind="number") if column.name in blurred else column
        for column in found.columns
    ]
    found = replace(found, columns=tuple(columns))
    unused = dict.fromkeys(clear, "is in a copy as it is; attackers use it")
    for column in found.columns:
        lacking = any(column.name not in names_of(copy) for copy in copies.values())
        if lacking and column.name not in renamed:
            unused[column.name] = "is not in every copy; attackers use it where it is"
    chosen = select(found, unused)
    noisy = (*chosen.numbers, *chosen.dates)
    few = not copies and found.varied_by * 2 <= MOST_ROWS
    records = min(found.rows, MOST_ROWS) if few else found.rows
    # few records have varying errors, so a safe table needs more noise
    level = ceil(2.0 + 60.0 / sqrt(records))
    safe = ["corner-wave"] * bool(noisy) + ["uniform-multilevel"] * bool(chosen.categories)
    bare, reading = split_name(source)
    return templated(
        "scenario/new/draft.yaml.jinja",
        name=Path(bare).name if is_file(source) else source,
        source=bare,
        reading=reading,
        found=found,
        chosen=chosen,
        copies=list(copies),
        key=_key(found, copies),
        levels=f"[{level:.1f}, {4 * level:.1f}]",
        records=records,
        strongest=max(map(abs, found.dependent.values()), default=0.0),
        stepped=any(isfinite(column.step) for column in noisy),
        safe=safe[0] if len(safe) == 1 else f"[{', '.join(safe)}]",
        margin=f"{_bound(0.01, 1.0, records):g}",
        resolution=f"{_bound(0.1, 10.0, records):g}",
        most_left_out=MOST_LEFT_OUT,
        renamed=renamed,
        **{function.__name__: function for function in (text, quoted, counted, listed, isfinite)},
    )


def names_of(table: Description, kind: str | None = None) -> set[str]:
    """Names of all columns, or of one kind."""
    return {column.name for column in table.columns if kind in (None, column.kind)}


def _key(found: Description, copies: Mapping[str, Description]) -> str | None:
    names = [names_of(table, "identifier") for table in (found, *copies.values())]
    shared = set.intersection(*names) if copies else set()
    return next((column.name for column in found.columns if column.name in shared), None)


def source_named(data: str) -> str:
    """Source name, with a slash after an unregistered folder."""
    named = is_file(data) or registry.has("source", data)
    folder = not named and any(path.is_dir() for path in located(data))
    return f"{data}/" if folder else data


def source_for(source: str, scenario: Path) -> str:
    """Source's name relative to the scenario's folder."""
    there = located(source)
    if not is_file(source) or Path(source).expanduser().is_absolute() or not there:
        return source
    path = Path(os.path.relpath(there[0], scenario.parent)).as_posix()
    path = f"{path}/" if there[0].is_dir() else path
    return with_reading(path, reading_of(there[0]).sheet, reading_of(there[0]).blank)


def text(value: str) -> str:
    """Text in YAML, in double quotes if necessary.

    Examples
    --------
    >>> text("age"), text("no"), text("1e3"), text("a: b")
    ('age', '"no"', '"1e3"', '"a: b"')
    """
    bare = re.fullmatch(r"[A-Za-z0-9_./-]+( [A-Za-z0-9_./-]+)*", value)
    if bare and value.lower() not in OLD_TRUTHS:
        with suppress(ScenarioError):
            if scalar(value) == value:
                return value
    written = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=inf)
    return visible(written.removesuffix("\n"))


def _bound(usual: float, scale: float, records: int) -> float:
    return min(0.99, max(usual, ceil(100.0 * scale / sqrt(records)) / 100.0))


BESIDE = {"published": ("published-copies/copy-1.csv", "published-copies/copy-2.csv")}
"""Copies that a template audits, by template name."""


def template_names() -> list[str]:
    """Names of all templates except the default."""
    return sorted(
        item.name.removesuffix(".yaml")
        for item in _folder().iterdir()
        if item.name.endswith(".yaml")
    )


def template(name: str | None = None) -> bytes:
    """Template's YAML.

    Raises
    ------
    AuditorError
        Unknown template.
    """
    if name is None:
        return files("auditor").joinpath("scenario/template.yaml").read_bytes()
    if name not in template_names():
        raise AuditorError(f"there is no template {name!r}{did_you_mean(name, template_names())}")
    return _folder().joinpath(f"{name}.yaml").read_bytes()


def beside(name: str | None) -> dict[str, bytes]:
    """Template's additional files by relative path."""
    return {
        path: shipped_folder().joinpath(path).read_bytes() for path in BESIDE.get(name or "", ())
    }


def _folder() -> Traversable:
    return files("auditor").joinpath("scenario/new/templates")

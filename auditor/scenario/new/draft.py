"""Draft of a scenario for a table, from ``auditor.data.describe``.

The draft runs unchanged. It has column names, kinds, steps and shares, but no value of the table.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import yaml

from auditor import registry
from auditor.data.columns.kinds import Column
from auditor.data.describe import Description
from auditor.data.request import is_file
from auditor.errors import ScenarioError
from auditor.results.files import located
from auditor.scenario.new.selection import Selection, select
from auditor.scenario.yaml.document import scalar
from auditor.text.column_names import counted, listed, quoted
from auditor.text.safe_text import visible

OLD_TRUTHS = ("y", "n", "yes", "no", "on", "off")
"""Text in YAML 1.2, which this project reads, but truth values in YAML 1.1."""
MOST_ROWS = 20_000
"""Records of a first audit, which takes a few minutes on one core."""
NO_COPIES: Mapping[str, Description] = MappingProxyType({})
MOST_LEFT_OUT = 50
"""Number of excluded columns with a description."""


def draft(
    source: str,
    found: Description,
    copies: Mapping[str, Description] = NO_COPIES,
    clear: Collection[str] = (),
) -> str:
    """Return the YAML of a scenario.

    Parameters
    ----------
    source : str
        A name from ``source_for``.
    found : Description
    copies : mapping
        Copies to audit, by their names from ``source_for``; without any, schemes make copies.
    clear : collection of str
        Categorical columns that copies show as they are.

    Raises
    ------
    DataError
        No column can be audited.
    """
    shared = [{column.name for column in copy.columns} for copy in copies.values()]
    unused = dict.fromkeys(clear, "is in a copy as it is; attackers use it")
    for column in found.columns:
        if not all(column.name in names for names in shared):
            unused[column.name] = "is not in every copy; attackers use it where it is"
    chosen = select(found, unused)
    few = not copies and found.varied_by * 2 <= MOST_ROWS
    records = min(found.rows, MOST_ROWS) if few else found.rows
    parts = [
        _head(source, found),
        _data(source, found, chosen, records, copies),
        _published(copies) if copies else _schemes(chosen, records),
        _ADVERSARIES,
    ]
    if any(math.isfinite(column.step) for column in (*chosen.numbers, *chosen.dates)):
        parts.append(
            _line(
                "measures: [exact]",
                "share of values recovered exactly, at the step that they are recorded in",
            )
        )
    return "\n".join([*parts, "", _expectations(chosen, records, copies)])


def source_named(data: str) -> str:
    """Return a source name, with a slash after an unregistered folder."""
    folder = (
        not is_file(data)
        and not registry.has("source", data)
        and any(path.is_dir() for path in located(data))
    )
    return f"{data}/" if folder else data


def source_for(source: str, scenario: Path) -> str:
    """Return a source's name relative to the scenario's folder."""
    there = located(source)
    if not is_file(source) or Path(source).expanduser().is_absolute() or not there:
        return source
    path = Path(os.path.relpath(there[0], scenario.parent)).as_posix()
    return f"{path}/" if there[0].is_dir() else path


def text(value: str) -> str:
    """Return a text in YAML, in double quotes if necessary.

    Examples
    --------
    >>> text("age"), text("no"), text("1e3"), text("a: b")
    ('age', '"no"', '"1e3"', '"a: b"')
    """
    if (
        re.fullmatch(r"[A-Za-z0-9_./-]+( [A-Za-z0-9_./-]+)*", value)
        and value.lower() not in OLD_TRUTHS
    ):
        with suppress(ScenarioError):
            if scalar(value) == value:
                return value
    return visible(
        yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf).removesuffix(
            "\n"
        )
    )


def _head(source: str, found: Description) -> str:
    name = Path(source).name if is_file(source) else source
    lines = [
        f"# An audit of perturbed copies of {quoted(name)}, made from what the table holds; what a column is was judged by its values.",
        "# Check it with `auditor check FILE`, which says how long it takes, and run it with `auditor run FILE`.",
    ]
    if not found.whole:
        lines.append(
            f"# Looked at were {found.seen:,} of about {found.rows:,} records, from parts spread evenly over the whole."
        )
    if found.unnamed:
        lines.append(
            f"# {counted(found.unnamed, 'column')} without a name, as the index of a data frame has none, cannot be asked for."
        )
    title = f"title: {text(f'An audit of {name}')}"
    return "\n".join(
        [
            *lines,
            "schema: 1",
            title,
            _line("seed: 1", "the same scenario, data and seed give the same numbers"),
            "",
        ]
    )


def _data(
    source: str,
    found: Description,
    chosen: Selection,
    records: int,
    copies: Mapping[str, Description],
) -> str:
    lines = ["data:", f"  source: {text(source)}"]
    key = _key(found, copies)
    if key is not None:
        lines.append(_line(f"  key: {text(key)}", "tells which record of a copy is which"))
    # without `columns:`, all numeric columns would be taken
    main = chosen.numbers or chosen.dates or chosen.categories
    lines += [
        _line(
            "  columns:",
            "taken as categories below" if main is chosen.categories else "noise is added to them",
        ),
        *_items(main),
    ]
    if chosen.dates:
        lines.append(_line("  dates:", "read as days since 1970, to which noise is added"))
        forms = ["null" if column.form is None else text(column.form) for column in chosen.dates]
        lines += [
            _line(f"    {text(column.name)}: {form}", _about(column))
            for column, form in zip(chosen.dates, forms, strict=True)
        ]
    if chosen.categories:
        lines += [
            _line("  categorical:", "each record's are kept by chance, or else drawn anew"),
            *_items(chosen.categories),
        ]
    lines += _blanks(found, chosen)
    if records < found.rows:
        lines.append(
            _line(
                f"  rows: {records}",
                f"the first of about {found.rows:,}, for a first look; leave it out to audit all",
            )
        )
    return "\n".join([*lines, *_order(found), *_left_out(chosen), ""])


def _line(field: str, comment: str) -> str:
    return f"{field:<32} # {comment}" if comment else field


def _items(columns: Iterable[Column]) -> list[str]:
    return [_line(f"    - {text(column.name)}", _about(column)) for column in columns]


def _about(column: Column) -> str:
    facts = []
    if column.kind == "category":
        facts.append(f"{column.values} different values")
    elif column.step == 1:
        facts.append("whole days" if column.kind == "date" else "whole numbers")
    elif math.isfinite(column.step):
        facts.append(f"in steps of {column.step:g}")
    if column.heap:
        facts.append(f"one value is that of {column.heap:.0%} of the records")
    if column.blank:
        facts.append(f"{column.blank:.0%} blank" if column.blank >= 0.01 else "some blank")
    return ", ".join(facts)


def _blanks(found: Description, chosen: Selection) -> list[str]:
    if chosen.missing == "refuse":
        return []
    if chosen.missing == "mean":
        return [
            _line(
                "  missing: mean",
                "blanks are filled in; to leave records with any out would cost too many of them",
            )
        ]
    there = "" if found.whole else ", should there be any"
    return [
        _line(
            "  missing: drop",
            f"records with a blank are left out{there}; `mean` would fill numbers in",
        )
    ]


def _order(found: Description) -> list[str]:
    if not found.dependent:
        return [
            "  # No column depends on the preceding record, so the order of the records discloses nothing."
        ]
    largest = max(map(abs, found.dependent.values()))
    notes = [
        f"  # The record order discloses {listed(found.dependent, 3)}: rank correlation with the preceding record up to {largest:.1f}.",
        "  # Serial attacks use it. Unless the order is needed, shuffle the records before making copies.",
    ]
    return (
        notes
        if found.order is None
        else [
            _line(f"  order: {text(found.order)}", "left out, and records are put in its order"),
            *notes,
        ]
    )


def _left_out(chosen: Selection) -> list[str]:
    lines = [
        f"  #   {quoted(column.name)} {why}" for column, why in chosen.left_out[:MOST_LEFT_OUT]
    ]
    more = len(chosen.left_out) - MOST_LEFT_OUT
    lines += [f"  #   and {counted(more, 'column')} more"] if more > 0 else []
    return ["  # Left out:", *lines] if lines else []


def _key(found: Description, copies: Mapping[str, Description]) -> str | None:
    """Return a column that identifies the records in the original and in every copy."""
    tables = [found, *copies.values()]
    names = [
        {column.name for column in table.columns if column.kind == "identifier"} for table in tables
    ]
    shared = set.intersection(*names) if copies else set()
    return next((column.name for column in found.columns if column.name in shared), None)


def _published(copies: Mapping[str, Description]) -> str:
    names = [f"      - {text(name)}" for name in copies]
    return "\n".join(["schemes:", "  - name: published", "    copies:", *names, ""])


def _schemes(chosen: Selection, records: int) -> str:
    # errors of few records vary: more noise keeps a safe table clear of the bound
    level = math.ceil(2.0 + 60.0 / math.sqrt(records))
    levels = f"[{level:.1f}, {4 * level:.1f}]"
    lines = [
        "# How copies are made: one for each level, here two; add a level for each further recipient. Copies that are there as files:",
        "# {name: published, copies: [copy-1.csv, copy-2.csv]}",
        "schemes:",
    ]
    if chosen.numbers or chosen.dates:
        lines += [
            "  # For numbers a level is the variance of the noise, as a multiple of the data's: more is noisier.",
            f"  - {{name: correlated,  levels: {levels}}}   # fresh noise in every copy, for comparison: pooling averages it away",
            f"  - {{name: corner-wave, levels: {levels}}}   # each copy is the one before with more noise: pooling gains nothing",
        ]
    if chosen.categories:
        lines += [
            "  # For categories it is the chance to keep a record's values: less is noisier.",
            "  - {name: uniform-multilevel, levels: [0.4, 0.1]}",
        ]
    return "\n".join([*lines, ""])


_ADVERSARIES = """\
knowledge:
  - perfect                      # means, covariances and shares of the data, and the law of the noise: more than most would know
  # - estimated: {rows: 400}     # the same, estimated from so many released rows
  # - known-records: 20          # so many records in clear; set `replicates: 5`, which gives all attacks error bars
coalitions: [subsets]            # every group of recipients pools its copies; for more than ten copies [singles, prefixes]
attacks: all                     # every attack that applies
# replicates: 5                  # each draws the noise anew"""


def _expectations(chosen: Selection, records: int, copies: Collection[str]) -> str:
    lines, safe = [], []
    numbers = "unknown: {at-least: 0.5}, close: {at-most: 0.1}"
    if chosen.numbers or chosen.dates:
        safe.append("corner-wave")
        scheme = "" if copies else "scheme: corner-wave, "
        lines += [
            "  # half of each column stays unknown, and copies let few values be guessed closely",
            f"  - exposure: {{{scheme}{numbers}}}",
        ]
    if chosen.categories:
        safe.append("uniform-multilevel")
        scheme = "" if copies else "scheme: uniform-multilevel, "
        lines.append(
            f'  - exposure: {{{scheme}attribute: "*", unknown: {{at-least: 0.5}}}}   # and of categories'
        )
    margin, resolution = _bound(0.01, 1.0, records), _bound(0.1, 10.0, records)
    scheme = "" if copies else f"scheme: {_flow(safe)}, "
    if len(copies) != 1:
        lines.append(
            f"  - no-collusion-gain: {{{scheme}margin: {margin:g}}}   # pooling gains less than the margin"
        )
    if not copies:
        lines.append(
            f"  - noise-follows-law: {{resolution: {resolution:g}}}   # and copies follow their law; more records give a finer test"
        )
    head = "# What must hold for the release to be safe. `auditor run` ends with status 1 if anything here does not."
    return "\n".join([head, "expect:", *lines, ""])


def _flow(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _bound(usual: float, scale: float, records: int) -> float:
    """Return a bound in proportion to 1/√n."""
    return min(0.99, max(usual, math.ceil(100.0 * scale / math.sqrt(records)) / 100.0))

"""Draft of a scenario for a table, from ``auditor.data.describe``.

``draft.yaml.jinja`` is its text. The draft runs unchanged. It has column names, kinds, steps and
shares, but no value of the table.
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import yaml

from auditor import registry
from auditor.data.columns.kinds import Column
from auditor.data.describe import Description
from auditor.data.request import is_file
from auditor.errors import ScenarioError
from auditor.results.files import located
from auditor.scenario.new.selection import select
from auditor.scenario.yaml.document import scalar
from auditor.text.column_names import counted, listed, quoted
from auditor.text.safe_text import visible

OLD_TRUTHS = ("y", "n", "yes", "no", "on", "off")
"""Text in YAML 1.2, which this project reads, but truth values in YAML 1.1."""
MOST_ROWS = 20_000
"""Records of a first audit, which takes a few minutes on one core."""
MOST_LEFT_OUT = 50
"""Number of excluded columns with a description."""


def draft(source: str, found: Description) -> str:
    """Return the YAML of a scenario; ``source`` is a name from ``source_for``.

    Raises
    ------
    DataError
        No column can be audited.
    """
    from jinja2 import Environment, StrictUndefined  # start-up

    chosen = select(found)
    noisy = (*chosen.numbers, *chosen.dates)
    records = min(found.rows, MOST_ROWS) if found.varied_by * 2 <= MOST_ROWS else found.rows
    safe = ["corner-wave"] * bool(noisy) + ["uniform-multilevel"] * bool(chosen.categories)
    page = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    template = files("auditor").joinpath("scenario/new/draft.yaml.jinja")
    return page.from_string(template.read_text(encoding="utf-8")).render(
        name=Path(source).name if is_file(source) else source,
        source=source,
        found=found,
        chosen=chosen,
        records=records,
        strongest=max(map(abs, found.dependent.values()), default=0.0),
        stepped=any(math.isfinite(column.step) for column in noisy),
        safe=safe[0] if len(safe) == 1 else f"[{', '.join(safe)}]",
        margin=f"{_bound(0.01, 1.0, records):g}",
        resolution=f"{_bound(0.1, 10.0, records):g}",
        most_left_out=MOST_LEFT_OUT,
        line=lambda field, comment: f"{field:<32} # {comment}" if comment else field,
        **{function.__name__: function for function in (text, quoted, counted, listed)},
        about=_about,
    )


def source_named(data: str) -> str:
    """Return a source name, with a slash after an unregistered folder."""
    named = is_file(data) or registry.has("source", data)
    folder = not named and any(path.is_dir() for path in located(data))
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
    bare = re.fullmatch(r"[A-Za-z0-9_./-]+( [A-Za-z0-9_./-]+)*", value)
    if bare and value.lower() not in OLD_TRUTHS:
        with suppress(ScenarioError):
            if scalar(value) == value:
                return value
    written = yaml.safe_dump(value, default_style='"', allow_unicode=True, width=math.inf)
    return visible(written.removesuffix("\n"))


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


def _bound(usual: float, scale: float, records: int) -> float:
    """Return a bound in proportion to 1/√n."""
    return min(0.99, max(usual, math.ceil(100.0 * scale / math.sqrt(records)) / 100.0))

"""Section ``sweep``: paths and their values."""

from __future__ import annotations

from typing import Any

from auditor.errors import AuditorError, did_you_mean
from auditor.field_paths import parse_path
from auditor.parameters import shown
from auditor.scenario.fields import FIELDS
from auditor.scenario.problems import Problems

MOST_POINTS = 10_000


def _repeats(values: list[Any]) -> list[int]:
    """Return the indices of repeated values; 1 and 1.0 are equal."""
    plain = [
        float(value) if type(value) is int and abs(value) < 2**53 else value for value in values
    ]
    texts = [repr(value) for value in plain]
    return (
        [number for number, text in enumerate(texts) if text in texts[:number]]
        if len(set(texts)) < len(texts)
        else []
    )


def read_sweep(fields: dict[str, Any], problems: Problems) -> dict[str, list[Any]]:
    """Return the section ``sweep`` without invalid entries, and report errors."""
    value = {} if fields.get("sweep") is None else fields["sweep"]
    if not isinstance(value, dict):
        problems.add(
            ("sweep",), f"must map paths of this file to lists of values; got {shown(value)}"
        )
        return {}
    sweep, points = {}, 1
    for path, values in value.items():
        if not isinstance(values, list) or not values:
            problems.add(("sweep", path), f"must be a list of values to try; got {shown(values)}")
            continue
        try:
            head = (*parse_path(path), "")[0]
        except AuditorError as error:
            problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
            continue
        if head == "sweep":
            problems.add(
                ("sweep", path),
                "cannot be swept: it is what sweeps; any other section can",
                key=True,
            )
            continue
        if head not in FIELDS:
            problems.add(
                ("sweep", path), f"is not a path of this file{did_you_mean(head, FIELDS)}", key=True
            )
            continue
        for number in _repeats(values):  # repeated points would look like replicates
            problems.add(
                ("sweep", path, number), f"repeats a value of this path: {shown(values[number])}"
            )
        points *= len(values)
        sweep[path] = values
    if points > MOST_POINTS:
        problems.add(("sweep",), f"has {points:,} combinations; at most {MOST_POINTS:,}")
    return sweep

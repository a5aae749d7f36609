"""Section ``sweep``, and the scenario at each point of its sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import copy
from itertools import product
from typing import Any

from auditor.errors import AuditorError, Problem, did_you_mean
from auditor.field_paths import Path, format_path, parse_path
from auditor.parameters import shown
from auditor.scenario.model import FIELDS, ExpectationUse
from auditor.scenario.problems import Problems
from auditor.scenario.read_expectations import Audited, read_expectations
from auditor.scenario.yaml.positions import put

MOST_POINTS = 10_000


def of_expectations(path: str) -> bool:
    """Whether a swept path is in ``expect`` and so changes no result."""
    return parse_path(path)[:1] == ("expect",)


def read_sweep(fields: dict[str, Any], problems: Problems) -> dict[str, list[Any]]:
    """Return the section ``sweep`` without invalid entries, and report errors."""
    value = {} if fields.get("sweep") is None else fields["sweep"]
    if not isinstance(value, dict):
        wanted = "must map paths of this file to lists of values"
        problems.add(("sweep",), f"{wanted}; got {shown(value)}")
        return {}
    sweep, points = {}, 1
    for path, values in value.items():
        if not isinstance(values, list) or not values:
            problems.add(("sweep", path), f"must be a list of values to try; got {shown(values)}")
            continue
        if why := _refused(path):
            problems.add(("sweep", path), why, key=True)
            continue
        # 1 and 1.0 are equal, and repeated points would look like replicates
        texts = [repr(float(v) if type(v) is int and abs(v) < 2**53 else v) for v in values]
        for number, text in enumerate(texts):
            if text in texts[:number]:
                message = f"repeats a value of this path: {shown(values[number])}"
                problems.add(("sweep", path, number), message)
        points *= len(values)
        sweep[path] = values
    if points > MOST_POINTS:
        problems.add(("sweep",), f"has {points:,} combinations; at most {MOST_POINTS:,}")
    return sweep


def _refused(path: str) -> str:
    """Return why a path cannot be swept; empty if it can."""
    try:
        head = (*parse_path(path), "")[0]
    except AuditorError as error:
        return f"is not a path of this file: {error}"
    if head == "sweep":
        return "cannot be swept: it is what sweeps; any other section can"
    return "" if head in FIELDS else f"is not a path of this file{did_you_mean(head, FIELDS)}"


def read_judged(
    fields: dict[str, Any],
    written: tuple[ExpectationUse, ...],
    audited: Audited,
    problems: Problems,
) -> tuple[ExpectationUse, ...]:
    """Return the expectations to judge, one per swept value.

    Without swept expectations, the result is ``written``. ``problems`` receives errors in swept
    values.
    """
    swept = {path: values for path, values in audited.sweep.items() if of_expectations(path)}
    before = len(problems.found)
    try_values(swept, fields, lambda new, found: read_expectations(new, found, audited), problems)
    if not swept or len(problems.found) > before:
        return written
    judged: dict[tuple[int, str], ExpectationUse] = {}
    for values in product(*swept.values()):
        point = dict(zip(swept, values, strict=True))
        places: dict[str, list[Path]] = {}
        changed: Any = fields
        for path, value in point.items():
            changed, places[path] = put(changed, [(parse_path(path), value)])
        for use in read_expectations(changed, Problems(), audited):
            own = {
                path: value
                for path, value in point.items()
                if any(len(place) == 1 or place[1] == use.place for place in places[path])
            }
            if (here := _at(use, own)) is not None:
                judged.setdefault((use.place, json.dumps(own, default=str)), here)
    return tuple(judged[key] for key in sorted(judged, key=lambda key: key[0]))


def _at(use: ExpectationUse, point: Mapping[str, Any]) -> ExpectationUse | None:
    """Return an expectation limited to its sweep points; None if excluded."""
    filters: dict[str, Any] = getattr(use.expectation.parameters, "sweep", None) or {}
    if any(path in filters and filters[path] != value for path, value in point.items()):
        return None
    if not point:
        return use
    everywhere = {**filters, **point}
    again = copy(use.expectation)
    again.parameters = use.expectation.parameters.model_copy(update={"sweep": everywhere})
    return use._replace(expectation=again, where={**use.where, "sweep": everywhere})


def try_values(
    swept: Mapping[str, list[Any]],
    fields: Any,
    read: Callable[[Any, Problems], object],
    problems: Problems,
) -> None:
    """Read fields with every swept value, and report new errors."""
    anyway = {(path, message) for path, message, _ in problems.found}
    before: dict[Path, str] = {}
    for path, values in swept.items():
        places: list[Path] = []
        for number, value in enumerate(values):
            found = Problems()
            try:
                changed, places = put(fields, [(parse_path(path), value)])
            except AuditorError as error:
                problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
                break
            read(changed, found)
            new = [item[:2] for item in found.found if item[:2] not in anyway]
            if new:
                first = Problem(format_path(new[0][0]), new[0][1])
                problems.add(("sweep", path, number), f"makes an invalid scenario: {first}")
        for place, other in before.items():  # else points would have wrong labels
            if any(place[: len(new_place)] == new_place for new_place in places):
                why = (
                    f"would overwrite what {other} has set: put it first, or leave one of them out"
                )
                problems.add(("sweep", path), why, key=True)
                break
        before |= dict.fromkeys(places, path)

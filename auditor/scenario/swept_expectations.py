"""Expectations with swept parameters, judged at the matching sweep points."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import copy
from itertools import product
from typing import Any

from auditor.errors import AuditorError, Problem
from auditor.field_paths import Path, format_path, parse_path
from auditor.scenario.model import ExpectationUse
from auditor.scenario.problems import Problems
from auditor.scenario.read_expectations import Audited, read_expectations
from auditor.scenario.yaml.positions import put

SECTION = "expect"


def of_expectations(path: str) -> bool:
    """Whether a swept path is in ``expect`` and so changes no result."""
    return parse_path(path)[:1] == (SECTION,)


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
    if not swept or not _all_read(fields, swept, audited, problems):
        return written
    judged: dict[tuple[int, str], ExpectationUse] = {}
    for values in product(*swept.values()):
        point = dict(zip(swept, values, strict=True))
        changed, places = _changed(fields, point)
        for use in read_expectations(changed, Problems(), audited):
            own = {
                path: value
                for path, value in point.items()
                if any(len(place) == 1 or place[1] == use.place for place in places[path])
            }
            here = _at(use, own)
            if here is not None:
                judged.setdefault((use.place, json.dumps(own, default=str)), here)
    return tuple(judged[key] for key in sorted(judged, key=lambda key: key[0]))


def _all_read(
    fields: dict[str, Any], swept: Mapping[str, list[Any]], audited: Audited, problems: Problems
) -> bool:
    """Report invalid swept values and paths; return whether all are valid."""
    noted = len(problems.found)
    try_values(
        swept, fields, lambda changed, found: read_expectations(changed, found, audited), problems
    )
    return len(problems.found) == noted


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
            new = [
                Problem(format_path(place), message)
                for place, message, _ in found.found
                if (place, message) not in anyway
            ]
            if new:
                problems.add(("sweep", path, number), f"makes an invalid scenario: {new[0]}")
        undone = overwritten(before, places)
        if undone is not None:  # else points would have wrong labels
            problems.add(
                ("sweep", path),
                f"would overwrite what {undone} has set: put it first, or leave one of them out",
                key=True,
            )
        before |= dict.fromkeys(places, path)


def _changed(
    fields: dict[str, Any], point: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, list[Path]]]:
    places: dict[str, list[Path]] = {}
    value: Any = fields
    for path, item in point.items():
        value, places[path] = put(value, [(parse_path(path), item)])
    return value, places


def overwritten(before: Mapping[Path, str], places: list[Path]) -> str | None:
    """Return the earlier swept path that one of these places contains."""
    return next(
        (
            path
            for place, path in before.items()
            if any(place[: len(other)] == other for other in places)
        ),
        None,
    )


def _at(use: ExpectationUse, point: Mapping[str, Any]) -> ExpectationUse | None:
    """Return an expectation limited to its sweep points; None if excluded."""
    filters: dict[str, Any] = getattr(use.expectation.parameters, "sweep", None) or {}
    if any(path in filters and filters[path] != value for path, value in point.items()):
        return None
    if not point:
        return use
    everywhere = {**filters, **point}
    parameters = use.expectation.parameters.model_copy(update={"sweep": everywhere})
    again = copy(use.expectation)
    again.parameters = parameters
    return use._replace(expectation=again, where={**use.where, "sweep": everywhere})

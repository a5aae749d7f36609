"""Scenario at each point of its sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auditor.errors import ScenarioError
from auditor.field_paths import Path, parse_path
from auditor.scenario.model import Scenario
from auditor.scenario.problems import Problems
from auditor.scenario.sections import assemble
from auditor.scenario.swept_expectations import of_expectations, try_values
from auditor.scenario.yaml.positions import put


def check_points(scenario: Scenario, problems: Problems) -> None:
    """Check the scenario at every swept value, before anything runs."""
    # others are checked when read
    swept = {path: values for path, values in scenario.sweep.items() if not of_expectations(path)}

    def read(document: Any, found: Problems) -> None:
        assemble(document, found, scenario.base, scenario.name)

    try_values(swept, without_sweep(scenario.document), read, problems)


def at_point(scenario: Scenario, point: Mapping[str, Any]) -> Scenario:
    """Return the scenario at one sweep point.

    Raises
    ------
    ScenarioError
        The swept values make it invalid.
    """
    if not point:
        return scenario
    value: Any = without_sweep(scenario.document)
    swept: list[tuple[Path, Path]] = []
    for path, item in point.items():
        if of_expectations(path):
            continue
        value, places = put(value, [(parse_path(path), item)])
        number = next(
            (place for place, other in enumerate(scenario.sweep.get(path, [])) if other == item), 0
        )
        origin = ("sweep", path, number)
        swept += [(place, origin) for place in places]
    here = replace(scenario.places, swept=tuple(swept))
    problems = Problems()
    built = assemble(value, problems, scenario.base, scenario.name)
    if problems.found:
        raise ScenarioError(here.located(problems.found))
    return replace(built, places=here, expect=scenario.expect, judged=scenario.judged)


def without_sweep(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without sweep and expectations."""
    return {key: item for key, item in document.items() if key not in ("sweep", "expect")}

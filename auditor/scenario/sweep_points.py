"""A scenario at each point of its sweep: tried before anything runs, and made when its turn comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from auditor.errors import AuditorError, Problem, ScenarioError
from auditor.field_paths import Path, format_path, parse_path
from auditor.scenario.model import Scenario
from auditor.scenario.problems import Problems
from auditor.scenario.sections import assemble
from auditor.scenario.swept_expectations import of_expectations, overwritten
from auditor.scenario.yaml.positions import put


def check_points(scenario: Scenario, problems: Problems) -> None:
    """Check the scenario at every swept value, so that nothing is refused halfway through a run."""
    anyway = {(path, message) for path, message, _ in problems.found}
    before: dict[Path, str] = {}
    for path, values in scenario.sweep.items():
        if of_expectations(path):  # looked at where they are read
            continue
        places: list[Path] = []
        for number, value in enumerate(values):
            found = Problems()
            try:
                changed, places = put(without_sweep(scenario.document), [(parse_path(path), value)])
            except AuditorError as error:
                problems.add(("sweep", path), f"is not a path of this file: {error}", key=True)
                break
            assemble(changed, found, scenario.base, scenario.name)
            new = [Problem(format_path(place), message) for place, message, _ in found.found if (place, message) not in anyway]
            if new:
                problems.add(("sweep", path, number), f"makes an invalid scenario: {new[0]}")
        undone = overwritten(before, places)
        if undone is not None:  # every point would be labelled with a value that it has not
            problems.add(("sweep", path), f"would overwrite what {undone} has set: put it first, or leave one of them out", key=True)
        before |= dict.fromkeys(places, path)


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
        number = next((place for place, other in enumerate(scenario.sweep.get(path, [])) if other == item), 0)
        origin = ("sweep", path, number)
        swept += [(place, origin) for place in places]
    here = replace(scenario.places, swept=tuple(swept))
    problems = Problems()
    built = assemble(value, problems, scenario.base, scenario.name)
    if problems.found:
        raise ScenarioError(here.located(problems.found))
    return replace(built, places=here, expect=scenario.expect, judged=scenario.judged)


def without_sweep(document: dict[str, Any]) -> dict[str, Any]:
    """Return what is left at one sweep point; expectations speak of all points together."""
    return {key: item for key, item in document.items() if key not in ("sweep", "expect")}

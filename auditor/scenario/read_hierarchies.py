"""Section ``data.hierarchies``: nested mappings with lists of values."""

from __future__ import annotations

from typing import Any

from auditor.data.columns.hierarchy import hierarchy_of
from auditor.field_paths import format_path
from auditor.parameters import kind_of, shown
from auditor.scenario.problems import Path, Problems

WANTED = "must map what values have in common to a list of them, or to a mapping that does"


def parse_hierarchies(value: Any, problems: Problems) -> dict[str, Any]:
    """Return the hierarchies by column and report errors."""
    at: Path = ("data", "hierarchies")
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.add(at, f"must map columns to their hierarchies; got {shown(value)}")
        return {}
    before = len(problems.found)
    for name, declared in value.items():
        _check_column((*at, name), declared, problems)
    return value if len(problems.found) == before else {}


def _check_column(at: Path, declared: Any, problems: Problems) -> None:
    if not isinstance(declared, dict) or not declared:
        problems.add(at, f"{WANTED}; got {kind_of(declared)}")
        return
    before = len(problems.found)
    seen: dict[Any, Path] = {}
    _check_node(at, declared, seen, problems)
    if len(problems.found) > before:
        return
    depths = {len(chain) for chain in hierarchy_of(declared).nodes}
    if len(depths) > 1:
        problems.add(
            at,
            f"must be as deep in every branch; some values lie under {min(depths)} nodes and some under {max(depths)}",
        )
    elif len(seen) < 2:
        problems.add(at, "must list at least two values")
    elif len({isinstance(leaf, str) for leaf in seen}) > 1:
        problems.add(at, "must list numbers or text, and not both")


def _check_node(at: Path, part: Any, seen: dict[Any, Path], problems: Problems) -> None:
    if isinstance(part, dict) and part:
        for name, below in part.items():
            _check_node((*at, name), below, seen, problems)
        return
    if not isinstance(part, list) or not part:
        problems.add(at, f"{WANTED}; got {kind_of(part)}")
        return
    for place, leaf in enumerate(part):
        here = (*at, place)
        if isinstance(leaf, bool) or not isinstance(leaf, (str, int, float)):
            problems.add(here, f"must be text or a number; got {kind_of(leaf)}")
        elif leaf in seen:
            problems.add(
                here, f"repeats a value of this hierarchy, first given at {format_path(seen[leaf])}"
            )
        else:
            seen[leaf] = here

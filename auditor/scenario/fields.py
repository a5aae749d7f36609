"""The sections of a scenario, and the short forms that any of them may be written in."""

from __future__ import annotations

from typing import Any

from auditor.scenario.problems import Problems

FIELDS = (
    "schema", "title", "cite", "seed", "data", "schemes", "knowledge", "coalitions", "attacks",
    "measures", "utility", "sweep", "replicates", "expect",
)  # fmt: skip


def optional_list(fields: dict[str, Any], name: str, problems: Problems) -> list[Any]:
    """Return a section that may be left out, left empty, or hold nothing but comments."""
    value = fields.get(name)
    return [] if value is None or value == [] else problems.sequence((name,), value)


def split(item: Any) -> tuple[Any, Any]:
    """Return name and argument of an entry: ``perfect``, ``{estimated: {rows: 400}}`` or ``{name: estimated, rows: 400}``."""
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], {key: value for key, value in item.items() if key != "name"} or None
    if isinstance(item, dict) and len(item) == 1:
        return next(iter(item.items()))
    return None, None

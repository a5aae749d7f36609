"""Sections of a scenario and the short forms of their entries."""

from __future__ import annotations

from typing import Any

from auditor.scenario.problems import Problems

FIELDS = (
    "schema",
    "title",
    "cite",
    "seed",
    "data",
    "schemes",
    "knowledge",
    "coalitions",
    "attacks",
    "measures",
    "utility",
    "sweep",
    "replicates",
    "expect",
)


def optional_list(fields: dict[str, Any], name: str, problems: Problems) -> list[Any]:
    """Return an optional section; empty if missing, empty or only comments."""
    value = fields.get(name)
    return [] if value is None or value == [] else problems.sequence((name,), value)


def split(item: Any) -> tuple[Any, Any]:
    """Split an entry into name and argument.

    Forms: ``perfect``, ``{estimated: {rows: 400}}`` or ``{name: estimated, rows: 400}``.
    """
    if isinstance(item, str):
        return item, None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return item["name"], {key: value for key, value in item.items() if key != "name"} or None
    if isinstance(item, dict) and len(item) == 1:
        return next(iter(item.items()))
    return None, None

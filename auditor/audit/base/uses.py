"""A scenario's uses of schemes: the plugin of one, its levels and how many copies it releases; nothing is drawn."""

from __future__ import annotations

from pathlib import Path

from auditor import registry
from auditor.data.table import Table
from auditor.errors import PluginError
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme


def release_levels(use: SchemeUse, scenario: Scenario, replicate: int = 1) -> tuple[float, ...]:
    """Return the levels of one use of a scheme, in order of release; none where nobody has said what they are."""
    if use.levels is not None:
        return use.levels.resolve(scenario.seed, replicate)
    levels = make_scheme(use, scenario.base).default_levels()
    if not isinstance(levels, tuple) or not all(
        isinstance(level, (int, float)) for level in levels
    ):
        raise PluginError("the scheme's default levels are no tuple of numbers")
    return levels


def release_copies(use: SchemeUse, scenario: Scenario) -> int:
    """Return how many copies one use of a scheme releases."""
    return make_scheme(use, scenario.base).count(release_levels(use, scenario))


def make_scheme(use: SchemeUse, base: Path | None, table: Table | None = None) -> Scheme:
    """Return the scheme plugin of one use, given its files' folder, and shown the table if it needs all of it."""
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    scheme.base = base
    if scheme.needs_table:
        scheme.table = table
    return scheme

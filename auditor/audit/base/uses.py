"""A scenario's uses of schemes: plugin, levels, number of copies, coalitions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from auditor import registry
from auditor.data.table import Table
from auditor.errors import PluginError
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme
from auditor.types import Coalition


def release_levels(use: SchemeUse, scenario: Scenario, replicate: int = 1) -> tuple[float, ...]:
    """Return the levels of one use of a scheme, in order of release; empty if unknown."""
    if use.levels is not None:
        return use.levels.resolve(scenario.seed, replicate)
    levels = make_scheme(use, scenario.base).default_levels()
    if not isinstance(levels, tuple) or not all(
        isinstance(level, (int, float)) for level in levels
    ):
        raise PluginError("the scheme's default levels are no tuple of numbers")
    return levels


def release_copies(use: SchemeUse, scenario: Scenario) -> int:
    """Return the number of copies that one use of a scheme releases."""
    return make_scheme(use, scenario.base).count(release_levels(use, scenario))


def make_scheme(use: SchemeUse, base: Path | None, table: Table | None = None) -> Scheme:
    """Return the scheme plugin of one use, with its folder, and the table if it needs it."""
    scheme: Scheme = registry.get("scheme", use.name)(use.parameters)
    scheme.base = base
    if scheme.needs_table:
        scheme.table = table
    return scheme


def already_out(use: SchemeUse, copies: int) -> int:
    """Return the number of copies that were released before; at least one is new."""
    share = use.already_out
    return min(copies - 1, int(share) if isinstance(share, int) else math.floor(share * copies))


def with_singles(coalitions: Iterable[Coalition]) -> list[Coalition]:
    """Return coalitions and their members alone, by size."""
    every = set(coalitions)
    every |= {(copy,) for coalition in every for copy in coalition}
    return sorted(every, key=lambda coalition: (len(coalition), coalition))

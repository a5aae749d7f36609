"""Assembly of a scenario from its sections."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from auditor.data.request import DataUse
from auditor.errors import did_you_mean
from auditor.parameters import is_whole, shown, whole
from auditor.results import bibliography
from auditor.scenario.fields import FIELDS, optional_list
from auditor.scenario.model import SCENARIO_VERSION, Scenario
from auditor.scenario.problems import Problems
from auditor.scenario.read_data import read_data
from auditor.scenario.read_expectations import Audited, read_expectations
from auditor.scenario.read_key import with_shared_key
from auditor.scenario.read_knowledge import read_knowledge
from auditor.scenario.read_measures import parse_utility, read_measures
from auditor.scenario.read_plugins import (
    EVERY,
    every_attack,
    none_applies,
    read_attacks,
    read_coalitions,
    read_schemes,
)
from auditor.scenario.read_sweep import read_sweep
from auditor.scenario.swept_expectations import read_judged

MOST_REPLICATES = 100_000
MOST_SEED = 2**128


def assemble(
    value: Any, problems: Problems, base: FilePath | None = None, name: str = "audit"
) -> Scenario:
    """Return the scenario of plain values and report every error.

    A scenario with errors must not be run. Swept values are checked in
    `auditor.scenario.sweep_points`. ``base`` is the first folder for paths of data, before the
    working directory. ``name`` is the default title.
    """
    fields = problems.mapping((), value, FIELDS, required=("data", "schemes"))
    if "attacks" not in fields and "utility" not in fields:
        problems.add(("attacks",), "is required, unless the scenario measures `utility`")
    if (
        type(fields.get("schema", SCENARIO_VERSION)) is not int
        or fields.get("schema", SCENARIO_VERSION) != SCENARIO_VERSION
    ):
        problems.add(
            ("schema",),
            f"must be {SCENARIO_VERSION}, the version this program reads; got {shown(fields['schema'])}",
        )
    schemes = read_schemes(fields, problems, base)
    data = read_data(fields.get("data"), problems, base) if "data" in fields else None
    data, schemes = with_shared_key(data, schemes, problems)
    if any(use.levels is not None and use.levels.currency is not None for use in schemes):
        # most scenarios do not need its imports
        from auditor.scenario.stated_levels import with_stated_levels

        schemes = with_stated_levels(schemes, data, problems)
    knowledge = read_knowledge(fields, problems)
    asked = fields.get("attacks")
    if asked == EVERY or (isinstance(asked, list) and EVERY in asked):
        every = every_attack(
            schemes, knowledge, categories=data is not None and bool(data.bins or data.categorical)
        )
        items = asked if isinstance(asked, list) else [asked]
        fields["attacks"] = [
            entry for item in items for entry in (every if item == EVERY else [item])
        ]
        if not fields["attacks"]:
            del fields["attacks"]
            if schemes and knowledge:  # else report schemes and knowledge first
                problems.add(("attacks",), none_applies(schemes, knowledge))
    attacks = read_attacks(fields, problems)
    measures = read_measures(fields, problems)
    utility = parse_utility(fields["utility"], problems) if "utility" in fields else None
    sweep = read_sweep(fields, problems)
    audited = Audited.of(fields, knowledge, measures, utility, sweep)
    expect = read_expectations(fields, problems, audited)
    return Scenario(
        title=_text(fields, "title", name, problems),
        seed=_integer(fields, "seed", 0, 0, MOST_SEED, problems),
        data=data or DataUse("gaussian"),
        schemes=schemes,
        knowledge=knowledge,
        coalitions=read_coalitions(
            ("coalitions",), fields.get("coalitions", ["singles", "all"]), problems
        ),
        attacks=attacks,
        measures=measures,
        sweep=sweep,
        replicates=_integer(fields, "replicates", 1, 1, MOST_REPLICATES, problems),
        expect=expect,
        judged=read_judged(fields, expect, audited, problems),
        cite=_cite(fields, problems),
        utility=utility,
        base=base,
        name=name,
        document=value if isinstance(value, dict) else {},
    )


def _text(fields: dict[str, Any], name: str, default: str, problems: Problems) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str):
        problems.add((name,), f"must be text; got {shown(value)}")
        return default
    return value


def _integer(
    fields: dict[str, Any], name: str, default: int, low: int, high: int, problems: Problems
) -> int:
    value = whole(fields.get(name, default))
    if not is_whole(value, low, high):
        limit = f"{high:,}" if high < 2**64 else "2¹²⁸"
        problems.add((name,), f"must be an integer from {low} to {limit}; got {shown(value)}")
        return default
    return value


def _cite(fields: dict[str, Any], problems: Problems) -> tuple[str, ...]:
    keys = optional_list(fields, "cite", problems)
    known = bibliography.keys()
    for place, key in enumerate(keys):
        if key not in known:
            problems.add(
                ("cite", place),
                f"is not in the bibliography: {shown(key)}{did_you_mean(key, known)}",
            )
    return tuple(key for key in keys if key in known)

"""Checks of a scenario that need the table, or all copies together."""

import warnings
from collections.abc import Sequence
from typing import Any

from auditor import registry
from auditor.adversary.attack import Attack
from auditor.audit.base.request import release_copies
from auditor.audit.numeric.release import make_scheme
from auditor.base import (
    AuditorError,
    AuditorWarning,
    PluginFailed,
    Problem,
    ScenarioError,
    did_you_mean,
)
from auditor.data.table import Table, is_file
from auditor.expectations.base import listed
from auditor.process.containment import contained
from auditor.registry.parameters import Problems
from auditor.runs.check_scheme import check_scheme, check_states, note_refusal
from auditor.runs.tables import notes_of, outlined
from auditor.scenario.model import Scenario
from auditor.scenario.read_plugins import parse_coalitions


def check_data(scenario: Scenario) -> list[Table]:
    """Check the scenario at every sweep point; return their tables.

    Raises
    ------
    ScenarioError
        All problems: a table that cannot be audited, or has too little for the scenario.
    """
    tables, problems = list[Table](), dict[tuple[Any, str], Problem]()
    for here in scenario.points:
        found = Problems()
        table = _check_point(here, found)
        tables += [] if table is None else [table]
        swept = ", ".join(f"{path}={value}" for path, value in here.point.items())
        for path, message, key in found.found:
            told = f"{message} (at {swept})" if swept else message
            problems.setdefault((path, message), here.places.problem(path, told, key))
    found = Problems()
    if tables:
        _check_attributes(scenario, tables, found)
        _check_coalitions(scenario, found)
    every = [*problems.values(), *scenario.places.located(found.found)]
    if every:
        raise ScenarioError(
            sorted(every, key=lambda problem: (problem.line or 0, problem.column or 0))
        )
    return tables


def _check_point(here: Scenario, found: Problems) -> Table | None:
    try:
        table, moments = outlined(here)
    except PluginFailed:
        raise
    except AuditorError as error:
        found.add(("data", *getattr(error, "path", ())), f"cannot be used: {error}")
        return None
    except (MemoryError, OverflowError):
        where = ("data", "rows") if here.data.rows else ("data",)
        found.add(where, "cannot be used: the table does not fit into memory")
        return None
    for note in notes_of(here, table) if is_file(here.data.source) else ():
        warnings.warn(AuditorWarning(note), stacklevel=2)
    check_states(here, table, found)
    if here.utility is not None:
        # rarely needed, slow to import
        from auditor.audit.measures.utility import utility_problems

        for path, message in utility_problems(here, table):
            found.add(("utility", *path), message)
    for place, judged in enumerate(here.expect):
        by = judged.expectation.grouped_by
        if by is not None and table.categorical is None:
            # rarely needed, slow to import
            from auditor.audit.measures.utility import column_of

            try:
                column_of(here, table, by)
            except AuditorError as error:
                found.add(("expect", place, "exposure", "by"), f"cannot be used: {error}")
    for place, use in enumerate(here.schemes):
        check_scheme(here, place, use, table, moments, found)
    for place, one in enumerate(here.attacks):
        with contained() as failure:
            attack: Attack = registry.get("attack", one.name)(one.parameters)
            attack.check_table(table)
            for scheme in (make_scheme(use, here.base, table) for use in here.schemes):
                if scheme.family in attack.families:
                    attack.check_scheme(scheme.public)
        note_refusal(failure, ("attacks", place), one.id, found)
    return table


def _check_attributes(scenario: Scenario, tables: Sequence[Table], found: Problems) -> None:
    known = {name for table in tables for name in table.attributes}
    categories = {table.categorical.names for table in tables if table.categorical is not None}
    known.update(name for names in categories if len(names) > 1 for name in names)
    for attack in scenario.attacks:
        known.update(getattr(attack.parameters, "predicates", {}))
    for use in scenario.expect:
        for name in listed(getattr(use.expectation.parameters, "attribute", None)):
            if name not in known | {"*"}:
                found.add(
                    ("expect", use.place, use.name, "attribute"),
                    "names the only category, whose figures are of '*'"
                    if (name,) in categories
                    else f"names no column that is audited: {name!r}{did_you_mean(name, known)}",
                )


def _check_coalitions(scenario: Scenario, found: Problems) -> None:
    asked = [
        (use, getattr(use.expectation.parameters, "coalition", None)) for use in scenario.expect
    ]
    asked = [(use, wanted) for use, wanted in asked if wanted is not None]
    released: dict[str, int] = {}
    for here in scenario.points if asked else ():
        for scheme in here.schemes:
            with contained():
                released[scheme.id] = max(released.get(scheme.id, 0), release_copies(scheme, here))
    for use, wanted in asked:
        parsed = parse_coalitions(wanted)
        last = max((parsed.count if parsed.kind == "first" else 0, *parsed.copies))
        schemes = listed(getattr(use.expectation.parameters, "scheme", None)) or list(released)
        most = max((released.get(scheme, 0) for scheme in schemes), default=0)
        if last > most:
            copies = "copies are" if most != 1 else "copy is"
            found.add(
                ("expect", use.place, use.name, "coalition"),
                f"names copy {last}, but only {most} {copies} released",
            )

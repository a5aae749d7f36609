"""Checks of a scenario that need the table, or all copies together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from auditor import registry
from auditor.adversary.attack import Attack, expand_all
from auditor.adversary.published import check_knowledge
from auditor.audit.base.request import make_scheme, perturbed_table, release_copies, release_levels
from auditor.base import (
    AuditorError,
    AuditorWarning,
    DataError,
    PluginFailed,
    Problem,
    ScenarioError,
    did_you_mean,
)
from auditor.data.columns.checks import LARGEST_VARIANCE
from auditor.data.table import Table, is_file
from auditor.expectations.base import listed
from auditor.numerics.blocks import moment_groups
from auditor.process.containment import contained
from auditor.results import metrics
from auditor.runs.tables import notes_of, outlined
from auditor.scenario.model import Scenario, SchemeUse
from auditor.scenario.problems import Problems
from auditor.scenario.read import at_point
from auditor.scenario.read_plugins import parse_coalitions
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import Scheme, TableMoments, by_engine, table_moments
from auditor.schemes.draw import check_takes_batches, released_grid

Tables = list[tuple[dict[str, Any], Table]]


def check_data(scenario: Scenario) -> Tables:
    """Check the scenario at every sweep point; return points and tables.

    Raises
    ------
    ScenarioError
        All problems: a table that cannot be audited, or has too little for the scenario.
    """
    tables: Tables = []
    problems: dict[tuple[Any, str], Problem] = {}
    for point in scenario.sweep_points():
        try:
            here = at_point(scenario, point)
        except ScenarioError as error:
            problems.update({(None, str(problem)): problem for problem in error.problems})
            continue
        found = Problems()
        table = _check_point(here, found)
        if table is not None:
            tables.append((point, table))
        swept = ", ".join(f"{path}={value}" for path, value in point.items())
        for path, message, key in found.found:
            told = f"{message} (at {swept})" if point else message
            problems.setdefault((path, message), here.places.problem(path, told, key))
    found = Problems()
    if tables:
        _check_attributes(scenario, tables, found)
        _check_coalitions(scenario, tables, found)
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


def _check_attributes(scenario: Scenario, tables: Tables, found: Problems) -> None:
    known = {name for _, table in tables for name in table.attributes}
    for attack in scenario.attacks:
        known.update(getattr(attack.parameters, "predicates", {}))
    for use in scenario.expect:
        for name in listed(getattr(use.expectation.parameters, "attribute", None)):
            if name not in known | {"*"}:
                found.add(
                    ("expect", use.place, use.name, "attribute"),
                    f"names no column that is audited: {name!r}{did_you_mean(name, known)}",
                )


def _check_coalitions(scenario: Scenario, tables: Tables, found: Problems) -> None:
    asked = [
        (use, getattr(use.expectation.parameters, "coalition", None)) for use in scenario.expect
    ]
    asked = [(use, wanted) for use, wanted in asked if wanted is not None]
    released: dict[str, int] = {}
    for point, _ in tables if asked else ():
        here = at_point(scenario, point)
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


# -- knowledge and schemes -------------------------------------------------------------------------

MOST_MOMENT_BYTES = 4 * 2**30
MOST_RECORDS = 5_000_000
"""Most rows of results: seven gigabytes of memory, and 200 MB of Parquet."""


def note_refusal(
    failure: contained, path: tuple[str | int, ...], name: str, found: Problems
) -> None:
    """Add a plugin's refusal; the run will record failures."""
    if failure.error is not None and not isinstance(failure.error, PluginFailed):
        found.add(path, f"({name}) cannot be used: {failure.reason}")


def check_states(here: Scenario, table: Table, found: Problems, lead: str = "") -> None:
    """Check that each state of knowledge fits the table."""
    for place, knowledge in enumerate(here.knowledge):
        try:
            check_knowledge(knowledge, table)
        except AuditorError as error:
            more = error.path if isinstance(error, DataError) else ()
            found.add(("knowledge", place, knowledge.name, *more), f"{lead}{error}")


def check_scheme(
    here: Scenario, place: int, use: SchemeUse, table: Table, moments: TableMoments, found: Problems
) -> None:
    """Check a scheme's table, levels, law, size and coalitions."""
    with contained() as failure:
        if use.per_unit:
            table = perturbed_table(use, table)
            moments = table_moments(table)
        levels = release_levels(use, here)
        scheme = make_scheme(use, here.base)
        scheme.check_table(table, here.data)
        make_scheme(use, here.base, table).check_levels(levels)
        if here.data.first_batch is not None and scheme.makes_copies:
            check_takes_batches(scheme)
        part = scheme.audited(table).table
        if part is not table:
            lead = f"is of what {use.id} has in common with the data: it "
            check_states(here, part, found, lead)
        copies = scheme.count(levels)
        check_size(scheme, table, copies)
        if use.public_grid:
            released_grid(scheme, table, levels, scale=moments.scale)
        law = scheme.law(levels, moments.scale)
        loudest = max(levels, default=0.0) * float(np.diag(moments.covariance).max(initial=0.0))
        if isinstance(law, KroneckerNoise):
            size = law.level_covariance.max(initial=0.0) * law.shape.max(initial=0.0)
            loudest = float(np.nan_to_num(size, nan=np.inf, posinf=np.inf))
        if not loudest <= LARGEST_VARIANCE:
            raise AuditorError(
                f"noise of variance {loudest:.3g} is beyond what double precision can square"
            )
    if failure.error is not None:
        note_refusal(failure, ("schemes", place), use.id, found)
        return
    possible = len(found.found)
    for number, entry in enumerate(here.coalitions):
        try:
            next(entry.expand(copies, here.seed), None)
        except AuditorError as error:
            found.add(("coalitions", number), f"cannot be had of scheme {use.id}: {error}")
    if len(found.found) == possible:
        _check_records(here, use, copies, table.width, found)


def check_size(scheme: Scheme, table: Table, copies: int) -> None:
    """Refuse numbers with joint moments that do not fit into memory.

    Raises
    ------
    AuditorError
        With the memory that they need; it grows with the square of copies × attributes.
    PluginError
        The scheme names an unknown engine.
    """
    if by_engine({"numeric": False, "categorical": True}, scheme):
        return
    width = table.width
    if width == 0:
        raise AuditorError("the table has no column of numbers to add noise to")
    columns = width * (1 + copies * (scheme.output_width(width) == width))
    size = 8 * columns**2 * (1 + moment_groups(table.rows, width, columns)[-1][-1][0])
    if size > MOST_MOMENT_BYTES:
        raise AuditorError(
            f"{copies:,} copies of {width} attributes need {size / 2**30:,.1f} GiB for their joint moments, more than the "
            f"{MOST_MOMENT_BYTES / 2**30:.0f} GiB allowed; audit fewer copies at a time"
        )


def _check_records(
    here: Scenario, use: SchemeUse, copies: int, width: int, found: Problems
) -> None:
    each = len(here.knowledge) * len(here.attacks) * here.replicates
    each *= (width + 1) * len(metrics.ALWAYS)
    coalitions = max((entry.size(copies) for entry in here.coalitions), default=0)
    if coalitions * each <= MOST_RECORDS:  # a million coalitions need not be named
        coalitions = len(expand_all(here.coalitions, copies, here.seed))
    if coalitions * each > MOST_RECORDS:
        count = (
            f"{coalitions:,} coalitions of scheme {use.id} make {coalitions * each:,} measurements"
        )
        found.add(
            ("coalitions",),
            f"ask for too much: {count}, more than the {MOST_RECORDS:,} allowed; try {{random: 1000}}",
        )

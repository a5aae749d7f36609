"""Budget of work: fewer records, replicates, coalitions and attacks.

Work is estimated seconds at the nominal speed of ``auditor.audit.workload``. The speed of the
machine does not count, so a budget gives the same audit everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from auditor.adversary.attack import Attack, LinearAttack
from auditor.audit.base.session import made_attack, promise
from auditor.errors import ScenarioError
from auditor.expectations.base import listed
from auditor.field_paths import parse_path
from auditor.process.containment import contained
from auditor.runs.check import Tables, check_data
from auditor.runs.plan import plan_lines, seconds_of
from auditor.scenario.model import AttackUse, Scenario
from auditor.scenario.read import read_scenario
from auditor.scenario.read_plugins import DECIDING
from auditor.text.durations import duration

ENOUGH_ROWS, FEWEST_ROWS = 20_000, 1_000
"""Records kept until coalitions and attacks are cut, and at the last: errors of 1 % and 4.5 %."""


def within_budget(scenario: Scenario, tables: Tables) -> tuple[Scenario, Tables]:
    """Return the scenario cut to its budget, with its tables.

    What goes first: records down to 20,000, replicates, coalitions, attacks that read rows (the
    costliest first, but the last of its kind later), linear attacks, records down to 1,000. Attacks
    and coalitions that an expectation names stay.

    Parameters
    ----------
    scenario : Scenario
        With or without a budget.
    tables : list of (point, Table)
        From ``check_data``.
    """
    if scenario.budget is None or _fits(scenario, tables):
        return scenario, tables
    for some_rows in (True, False):
        cut = scenario
        for cut in _smaller(scenario, tables, some_rows):
            if _fits(cut, tables):
                break
        notes = tuple(_left_out(scenario, cut, tables))
        try:
            return replace(cut, left_out=notes), check_data(cut)
        except ScenarioError:  # too few records for the scenario, as for a sample of known ones
            continue
    return scenario, tables


def _fits(scenario: Scenario, tables: Tables) -> bool:
    assert scenario.budget is not None
    return seconds_of(plan_lines(scenario, tables)) <= scenario.budget


def _smaller(scenario: Scenario, tables: Tables, some_rows: bool) -> Iterator[Scenario]:
    """Yield ever smaller scenarios; swept fields stay.

    Numbers of records are tried for every choice of the rest, as small tables draw more often.
    """
    swept = {parse_path(path)[0] for path in scenario.sweep}
    rows = max(table.rows for _, table in tables)
    fewer = list(_fewer(rows)) if some_rows and "data" not in swept else []
    named = [use.where["coalition"] for use in scenario.expect if use.where.get("coalition")]
    cuts: list[dict[str, Any]] = [{"replicates": n} for n in _halves(scenario.replicates)]
    cuts.append({"coalitions": [*DECIDING, *(one for one in named if one not in DECIDING)]})
    cuts += [{"attacks": [use.spec() for use in uses]} for uses in _fewer_attacks(scenario)]
    for cut in [{}, *cuts]:
        if not swept.intersection(cut):
            scenario = read_scenario(scenario, tuple(cut.items()))
            yield scenario
            for n in fewer:
                if n >= ENOUGH_ROWS:
                    yield read_scenario(scenario, [("data.rows", n)])
    for n in fewer:
        yield read_scenario(scenario, [("data.rows", n)])


def _fewer(rows: int) -> Iterator[int]:
    """Yield numbers of records, each a quarter less, to two digits."""
    while rows > FEWEST_ROWS:
        rows = max(FEWEST_ROWS, int(float(f"{0.75 * rows:.2g}")))
        yield rows


def _halves(count: int) -> Iterator[int]:
    while count > 1:
        count //= 2
        yield count


def _fewer_attacks(scenario: Scenario) -> Iterator[list[AttackUse]]:
    """Yield ever fewer attacks."""
    asked = {name for use in scenario.expect for name in listed(use.where.get("attack"))}
    kept, made = list(scenario.attacks), dict[str, Attack]()
    for use in kept:
        with contained():  # the run records an attack that cannot be made
            made[use.id] = made_attack(use)
    ranked = sorted(made, key=lambda name: promise(made[name]), reverse=True)
    left = [name for name in ranked[:-1] if name not in asked]
    while left:
        kinds = Counter(made[use.id].attack_kind for use in kept if use.id in made)
        gone = min(
            left,
            key=lambda name: (
                isinstance(made[name], LinearAttack),
                kinds[made[name].attack_kind] == 1,
                ranked.index(name),
            ),
        )
        left.remove(gone)
        kept = [use for use in kept if use.id != gone]
        yield kept


def _left_out(whole: Scenario, cut: Scenario, tables: Tables) -> Iterator[str]:
    """Yield what the budget left out, in words."""
    assert cut.budget is not None
    rows = max(table.rows for _, table in tables)
    if cut.data.rows is not None and cut.data.rows < rows:
        yield f"records after the first {cut.data.rows:,} of {rows:,}"
    if cut.replicates < whole.replicates:
        yield f"{whole.replicates - cut.replicates:,} of {whole.replicates:,} replicates"
    counts = [
        max((line.coalitions for line in plan_lines(one, tables)), default=0)
        for one in (whole, cut)
    ]
    if counts[1] < counts[0]:
        yield f"{counts[0] - counts[1]:,} of {counts[0]:,} coalitions"
    kept = {use.id for use in cut.attacks}
    gone = [use.id for use in whole.attacks if use.id not in kept]
    if gone:
        yield f"{len(gone)} of {len(whole.attacks)} attacks ({', '.join(gone)})"
    if not _fits(cut, tables):
        took = duration(seconds_of(plan_lines(cut, tables)))
        yield f"nothing more that can be cut: this audit takes about {took} of work"

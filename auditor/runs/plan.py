"""Plan of a run, and cuts to a budget.

Work is in seconds at the nominal speed of ``auditor.audit.workload``, so a budget gives the same
audit on any machine.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from auditor.adversary.attack import Attack, LinearAttack
from auditor.audit.base.request import release_copies
from auditor.audit.base.session import made_attack, promise
from auditor.audit.workload import Workload, workload
from auditor.base import ScenarioError, counted, duration, shortened
from auditor.base.types import Options, Plain
from auditor.data.table import Table
from auditor.expectations.base import listed
from auditor.process.containment import contained
from auditor.process.environment import KEPT_BYTES, available, free, may_fork, processors
from auditor.registry.parameters import parse_path
from auditor.runs.check import check_data
from auditor.scenario.model import AttackUse, Scenario, SchemeUse
from auditor.scenario.read import Source, read_scenario
from auditor.scenario.read_plugins import DECIDING

SECONDS_PER_RUN, SECONDS_PER_CELL = 1.0, 1e-4
"""Nominal time of starting and ending a run, and of a cell's records."""
WORTH_SHARING = 2.0
"""Least seconds for several processes by default."""
MOST_SCHEMES = 40
LONGEST_SWEEP = 80
"""Characters of a swept path's values."""


class Line(NamedTuple):
    """Plan of one scheme at one sweep point."""

    scheme: str
    rows: int
    copies: int
    replicates: int
    cells: int
    work: Workload


def memory_of(lines: Sequence[Line]) -> int:
    """Bytes of one process; each engine's freed memory may stay."""
    engines = {line.work.engine for line in lines}
    return max(line.work.memory for line in lines) + 2 * KEPT_BYTES * (len(engines) - 1)


def outline(scenario: Scenario, tables: Sequence[Table]) -> str:
    """Plan as text, for the tables of ``check_data``."""
    lines = plan_lines(scenario, tables)
    cells, values = sum(line.cells for line in lines), sum(line.work.values for line in lines)
    took = duration(seconds_of(lines))
    memory, there, now = memory_of(lines), available(), free()
    replicates = {line.replicates for line in lines}
    releases = f"{counted(len(lines), 'release')} × {counted(min(replicates), 'replicate')}"
    if len(replicates) > 1:
        total = sum(line.replicates for line in lines)
        releases = f"{len(lines)} releases, {total:,} with their replicates"
    text = [
        f"{scenario.name}: {scenario.title}",
        f"  valid; {releases}, {cells:,} cells, {counted(len(scenario.expect), 'expectation')}",
        f"  about {values:,} values to draw, {took} on one core; {memory / 2**20:,.0f} MB of memory in each worker process",
    ]
    if memory > there:
        text.append(
            f"  WARNING: that is more than the {there / 2**20:,.0f} MB that there are; audit fewer rows, copies or coalitions"
        )
    elif memory > now:
        text.append(
            f"  WARNING: that is more than the {now / 2**20:,.0f} MB free now; end other programs, or audit less at a time"
        )
    if scenario.budget is not None:
        out = "; ".join(scenario.left_out) or "nothing"
        text.append(f"  budget of {scenario.budget:g} s leaves out: {out}")
    for path, swept in scenario.sweep.items():
        listed = shortened(json.dumps(swept, ensure_ascii=False), LONGEST_SWEEP)
        text.append(
            f"  swept: {path} over {len(swept)} {'value' if len(swept) == 1 else 'values'}: {listed}"
        )
    schemes = list(dict.fromkeys(line.scheme for line in lines))
    for name in schemes[:MOST_SCHEMES]:
        own = [line for line in lines if line.scheme == name]
        figures = ((line.rows, line.work.width, line.copies, line.work.coalitions) for line in own)
        rows, width, copies, coalitions = map(_span, zip(*figures, strict=True))
        points, in_all = (f" at {len(own)} sweep points", " in all") if own[1:] else ("", "")
        text.append(
            f"  {name}{points}: {rows} rows × {width}, {copies} {'copy' if copies == '1' else 'copies'}, "
            f"{coalitions} coalition{'s' * (coalitions != '1')}, {sum(line.cells for line in own):,} cells{in_all}"
        )
    if len(schemes) > MOST_SCHEMES:
        text.append(f"  … and {len(schemes) - MOST_SCHEMES} more")
    return "\n".join(text)


def seconds_of(lines: Sequence[Line]) -> float:
    """Estimated time of a run on one core."""
    return SECONDS_PER_RUN + sum(
        line.work.seconds + line.cells * SECONDS_PER_CELL for line in lines
    )


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def workers_worth(scenario: Scenario, tables: Sequence[Table]) -> int:
    """Default number of processes.

    One per processor for a long run, if half of the free memory suffices. One without forks, or if
    a plugin fails.
    """
    with contained():
        work = seconds_of(lines := plan_lines(scenario, tables)) - SECONDS_PER_RUN
        if work >= WORTH_SHARING and may_fork():
            return max(1, min(processors(), free() // (2 * memory_of(lines))))
    return 1


def plan_lines(scenario: Scenario, tables: Sequence[Table]) -> list[Line]:
    """Plan of every release, for the tables of ``check_data``."""
    return [
        line_of(here, use, table)
        for here, table in zip(scenario.points, tables, strict=True)
        for use in here.schemes
    ]


def line_of(here: Scenario, use: SchemeUse, table: Table) -> Line:
    """Plan of one release of a scenario at a sweep point."""
    copies, replicates = release_copies(use, here), here.replicates_of(use)
    work = workload(here, table, use, copies, here.asks_pooling(use.id))
    cells = work.coalitions * len(here.knowledge) * len(here.attacks) * replicates
    return Line(use.id, table.rows, copies, replicates, cells, work)


def checked_scenario(source: Source, overrides: Options, seed: int | None) -> Scenario:
    """Scenario, checked against its data and cut to its budget."""
    scenario = read_scenario(source, tuple(overrides.items()), seed)
    return within_budget(scenario, check_data(scenario))[0]


ENOUGH_ROWS, FEWEST_ROWS = 20_000, 1_000
"""Records kept until coalitions and attacks are cut, and at the last: errors of 1 % and 4.5 %."""


def within_budget(scenario: Scenario, tables: Sequence[Table]) -> tuple[Scenario, Sequence[Table]]:
    """Scenario cut to its budget, with its tables.

    In order: records down to 20,000, replicates, coalitions, attacks that read rows (the costliest
    first, the last of its kind later), linear attacks, records down to 1,000. Attacks and
    coalitions
    that an expectation names stay.

    ``tables`` are from ``check_data``.
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
        except ScenarioError:
            continue
    return scenario, tables


def _fits(scenario: Scenario, tables: Sequence[Table]) -> bool:
    assert scenario.budget is not None
    return seconds_of(plan_lines(scenario, tables)) <= scenario.budget


def _smaller(scenario: Scenario, tables: Sequence[Table], some_rows: bool) -> Iterator[Scenario]:
    swept = {parse_path(path)[0] for path in scenario.sweep}
    rows = max(table.rows for table in tables)
    fewer = list(_fewer(rows)) if some_rows and "data" not in swept else []
    named = [use.where["coalition"] for use in scenario.expect if use.where.get("coalition")]
    cuts: list[Plain] = [
        {"replicates": scenario.replicates >> k} for k in range(1, scenario.replicates.bit_length())
    ]
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
    while rows > FEWEST_ROWS:
        rows = max(FEWEST_ROWS, int(float(f"{0.75 * rows:.2g}")))
        yield rows


def _fewer_attacks(scenario: Scenario) -> Iterator[list[AttackUse]]:
    asked = {name for use in scenario.expect for name in listed(use.where.get("attack"))}
    kept, made = list(scenario.attacks), dict[str, Attack]()
    for use in kept:
        with contained():  # the run records it
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


def _left_out(whole: Scenario, cut: Scenario, tables: Sequence[Table]) -> Iterator[str]:
    assert cut.budget is not None
    rows = max(table.rows for table in tables)
    if cut.data.rows is not None and cut.data.rows < rows:
        yield f"records after the first {cut.data.rows:,} of {rows:,}"
    if cut.replicates < whole.replicates:
        yield f"{whole.replicates - cut.replicates:,} of {whole.replicates:,} replicates"
    counts = [
        max((line.work.coalitions for line in plan_lines(one, tables)), default=0)
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

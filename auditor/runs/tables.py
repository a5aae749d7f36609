"""The table of a scenario, loaded once per process and file version."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from auditor.data.bounds import check_bounds
from auditor.data.columns.categorical_table import Categories
from auditor.data.columns.hierarchy import hierarchy_of
from auditor.data.request import is_file
from auditor.data.source import outlined_table
from auditor.data.table import Table
from auditor.numerics.random_streams import stream
from auditor.process.environment import one_thread
from auditor.results.files import located
from auditor.scenario.model import Scenario
from auditor.scenario.read_data import DATA_FIELDS
from auditor.schemes.base.scheme import TableMoments, table_moments


def table_of(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Return the scenario's table and its exact moments, cached."""
    base = None if scenario.base is None else str(scenario.base)
    with one_thread():
        # order counts: columns make a product domain, leaves a hierarchy
        spec = json.dumps(scenario.data.spec())
        declared = json.dumps(scenario.data.hierarchies)
        states = ((path, path.stat()) for path in table_files(scenario))
        stamp = tuple((str(path), state.st_mtime_ns, state.st_size) for path, state in states)
        return _table(spec, declared, base, scenario.seed, stamp)


def outlined(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Return the table and moments for a check, records loaded if needed."""
    table = outlined_table(scenario.data, lambda: table_of(scenario)[0])
    return table_of(scenario) if table is None else (table, table_moments(table))


def table_files(scenario: Scenario) -> list[Path]:
    """Return the files of the scenario's table."""
    source = scenario.data.source
    for path in located(source, scenario.base) if is_file(source) else []:
        return sorted(path.resolve().iterdir()) if path.is_dir() else [path.resolve()]
    return []


@lru_cache(maxsize=4)
def _table(
    spec: str, declared: str, base: str | None, seed: int, stamp: tuple[tuple[str, int, int], ...]
) -> tuple[Table, TableMoments]:
    # for start-up: a check may not need the records
    from auditor.data.load import in_batches, load_table

    data = json.loads(spec)
    own = {key: value for key, value in data.items() if key not in DATA_FIELDS}
    table = load_table(
        data["source"],
        columns=data["columns"],
        rows=data["rows"],
        missing=data["missing"],
        standardize=data["standardize"],
        parameters=own,
        rng=stream(seed, "data"),
        base=None if base is None else Path(base),
        categories=Categories(data.get("bin", {}), data.get("categorical", {})),
        dates=data.get("dates", {}),
        order=data.get("order"),
        key=data.get("key"),
        unit=data.get("unit"),
        weight=data.get("weight"),
        hierarchies={name: hierarchy_of(tree) for name, tree in json.loads(declared).items()},
    )
    bounds = {name: (low, high) for name, (low, high) in data.get("bounds", {}).items()}
    check_bounds(table, bounds)
    table = in_batches(replace(table, bounds=bounds), data.get("first-batch"))
    return table, table_moments(table)

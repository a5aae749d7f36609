"""The table of a scenario, loaded once per process and file version."""

import json
from pathlib import Path

from auditor.data.source import outlined_table
from auditor.data.table import Table, is_file, remembered
from auditor.numerics.random_streams import stream
from auditor.process.environment import one_thread
from auditor.results.files import located
from auditor.scenario.model import Scenario
from auditor.schemes.base.scheme import TableMoments, table_moments


def table_of(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Scenario's table and its exact moments, loaded once."""
    states = ((str(path), path.stat()) for path in table_files(scenario))
    stamps = [(path, state.st_mtime_ns, state.st_size) for path, state in states]
    # order counts: columns span a product domain, leaves a hierarchy
    key = json.dumps([scenario.data.spec(), str(scenario.base), scenario.seed, stamps])

    def load() -> tuple[Table, TableMoments]:
        # a check may not need the records
        from auditor.data.load import load_table

        with one_thread():
            table = load_table(scenario.data, stream(scenario.seed, "data"), scenario.base)
            return table, table_moments(table)

    return remembered(key, load)


def notes_of(scenario: Scenario, table: Table) -> list[str]:
    """Notes on the reading of a file, and questions on the table."""
    if not is_file(scenario.data.source):
        return list(table.notes)
    # slow to import
    from auditor.data.load import file_notes

    return [*file_notes(scenario.data.source, scenario.base), *table.notes]


def outlined(scenario: Scenario) -> tuple[Table, TableMoments]:
    """Table and moments for a check, records loaded if needed."""
    table = outlined_table(scenario.data, lambda: table_of(scenario)[0])
    return table_of(scenario) if table is None else (table, table_moments(table))


def table_files(scenario: Scenario) -> list[Path]:
    """Files of the scenario's table."""
    source = scenario.data.source
    for path in located(source, scenario.base) if is_file(source) else []:
        return sorted(path.resolve().iterdir()) if path.is_dir() else [path.resolve()]
    return []

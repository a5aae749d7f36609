"""What the audit of a release takes, before it is run: values to draw, memory, time.

Large arrays are counted. Memory has one margin for the rest, so that too much is predicted: at most
2.5 times the measured peak, as tests hold, for tables in memory and in files. Of categories it is a
function of the domain, the copies and the block, and not of the rows. What belongs to one engine is
imported when it is asked for, and the engines themselves are not: ``auditor check`` would wait for
them.
"""

from __future__ import annotations

from auditor import registry
from auditor.audit.cost import Workload
from auditor.data.table import Table
from auditor.scenario.model import Scenario, SchemeUse
from auditor.schemes.base.scheme import Scheme, by_engine

ENGINES = {"numeric": True, "categorical": False}
"""Whether copies are of numbers, by the name that ``Scheme.engine`` states."""


def check_size(scheme: Scheme, table: Table, copies: int) -> None:
    """Refuse a release that does not fit into memory, however few rows are looked at at once; what is kept of categories is bounded.

    Raises
    ------
    AuditorError
        Saying what it would need.
    PluginError
        The scheme names no engine that there is.
    """
    if by_engine(ENGINES, scheme):
        from auditor.audit import numeric_workload

        numeric_workload.check_size(scheme, table, copies)


def workload(here: Scenario, table: Table, use: SchemeUse, copies: int) -> Workload:
    """Return what one release would take, by rule of thumb.

    Raises
    ------
    PluginError
        The scheme names no engine that there is.
    """
    if by_engine(ENGINES, registry.get("scheme", use.name)):
        from auditor.audit.numeric_workload import numeric_workload

        return numeric_workload(here, table, use, copies)
    from auditor.audit.categorical_workload import categorical_workload

    return categorical_workload(here, table, use, copies)

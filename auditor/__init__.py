"""Privacy attack-and-audit workbench for perturbed microdata.

>>> import auditor
>>> result = auditor.run("scenarios/quickstart.yaml")       # doctest: +SKIP
>>> release = auditor.perturb([[1.0, 2.0], [2.0, 3.5], [4.0, 3.0]], scheme="corner-wave", levels=[0.25, 0.5], seed=7)
>>> auditor.attack("llse", release, coalition=[1, 2]).coalition
(1, 2)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.audit.measures.empirical_guarantee import EpsilonAudit, empirical_epsilon
    from auditor.base.errors import (
        AuditorError,
        DataError,
        NotApplicable,
        PluginError,
        ScenarioError,
    )
    from auditor.results.model import AuditResult
    from auditor.results.records import Measurement
    from auditor.runs.api import run
    from auditor.runs.estimate import attack
    from auditor.runs.estimate_numbers import Estimate
    from auditor.runs.folder_release import read_release
    from auditor.runs.perturb import Release, perturb
    from auditor.scenario.model import Scenario

# Imported at first use, so that `import auditor` and the command line start without numpy.
_HOMES = {
    "run": "auditor.runs.api",
    "perturb": "auditor.runs.perturb",
    "read_release": "auditor.runs.folder_release",
    "attack": "auditor.runs.estimate",
    "Release": "auditor.runs.perturb",
    "EpsilonAudit": "auditor.audit.measures.empirical_guarantee",
    "empirical_epsilon": "auditor.audit.measures.empirical_guarantee",
    "Estimate": "auditor.runs.estimate_numbers",
    "AuditResult": "auditor.results.model",
    "Measurement": "auditor.results.records",
    "Scenario": "auditor.scenario.model",
    "AuditorError": "auditor.base.errors",
    "DataError": "auditor.base.errors",
    "NotApplicable": "auditor.base.errors",
    "PluginError": "auditor.base.errors",
    "ScenarioError": "auditor.base.errors",
}

__all__ = [
    "AuditResult",
    "AuditorError",
    "DataError",
    "EpsilonAudit",
    "Estimate",
    "Measurement",
    "NotApplicable",
    "PluginError",
    "Release",
    "Scenario",
    "ScenarioError",
    "attack",
    "empirical_epsilon",
    "perturb",
    "read_release",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

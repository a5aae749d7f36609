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
    from auditor.runs.api import (
        AuditorError,
        AuditResult,
        DataError,
        Estimate,
        Measurement,
        NotApplicable,
        PluginError,
        Release,
        Scenario,
        ScenarioError,
        attack,
        perturb,
        read_release,
        run,
    )

__all__ = [
    "AuditResult",
    "AuditorError",
    "DataError",
    "Estimate",
    "Measurement",
    "NotApplicable",
    "PluginError",
    "Release",
    "Scenario",
    "ScenarioError",
    "attack",
    "perturb",
    "read_release",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import everything at first use, so that the command line starts without numpy."""
    if name not in __all__:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    return getattr(import_module("auditor.runs.api"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

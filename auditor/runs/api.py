"""The Python interface."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor import registry
from auditor.base import (
    AuditorError,
    DataError,
    NotApplicable,
    PluginError,
    ScenarioError,
    StorageError,
)
from auditor.registry.parameters import is_whole, plain
from auditor.results.files import writing
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor.runs.copy_files.read import read_release
from auditor.runs.estimate import attack
from auditor.runs.estimate_numbers import Estimate
from auditor.runs.output import watched
from auditor.runs.perturb import Release, perturb
from auditor.runs.plan import checked_scenario
from auditor.runs.run_scenario import Listener, run_scenario
from auditor.runs.tasks import Keep
from auditor.scenario.model import Scenario

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


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any] | Scenario,
    *,
    workers: int = 1,
    cluster: str | None = None,
    seed: int | None = None,
    budget: str | float | None = None,
    overrides: Mapping[str, Any] | None = None,
    listener: Listener | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool | None = None,
) -> AuditResult:
    """Run an audit and return its result.

    Parameters
    ----------
    scenario : path, mapping or Scenario
        A YAML file, the name of a shipped scenario, or plain values.
    workers : int
        Processes; results do not depend on the number.
    cluster : str, optional
        Address of a running Dask scheduler, instead of local processes.
    seed : int, optional
        Replaces the scenario's seed.
    budget : str or float, optional
        Most work, as ``"30s"``, at a nominal speed; replaces the scenario's.
    overrides : mapping, optional
        Changes, as ``{"data.rows": 1000, "schemes[0].levels": [0.5]}``.
    listener : callable, optional
        Receives the progress after every task.
    output : path, optional
        Folder for ``results.json``, ``results.parquet`` and ``finished-tasks``.
    resume : bool
        Whether only missing or changed tasks run.
    progress : bool, optional
        Whether to show progress without a ``listener``; by default in a notebook or at a prompt.

    Raises
    ------
    ScenarioError
        All errors of the scenario.
    AuditorError
        The data cannot be audited; ``resume`` without ``output``; another run uses the folder.
    StorageError
        The disk is full, or the folder is not writable; finished work is kept.
    WorkersLost
        Worker processes were killed repeatedly; finished work is kept.
    """
    if not is_whole(workers := plain(workers), 1):
        raise AuditorError(f"workers must be an integer of at least 1; got {workers!r}")
    if resume and output is None:
        raise AuditorError("resume needs `output`, the folder where finished work is kept")
    registry.discover_if_extended()
    for failure in registry.failures:
        warnings.warn(str(failure), stacklevel=2)
    changes = dict(overrides or {}) | ({} if budget is None else {"budget": budget})
    checked = checked_scenario(scenario, changes, seed)
    output = None if output is None else Path(output).absolute()  # independent of a plugin's chdir
    keep = None
    if output is not None:
        with writing(output, StorageError):
            output.mkdir(parents=True, exist_ok=True)
        keep = Keep(output, resume)
    with watched(checked.title, False if listener is not None else progress) as shown:
        result = run_scenario(
            checked, workers=workers, cluster=cluster, listener=listener or shown, keep=keep
        )
    if output is not None:
        result.save(output)
    return result

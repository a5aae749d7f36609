"""A real Dask scheduler and workers on loopback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError
from auditor.data import table as tables
from auditor.data.columns import scan as streamed
from auditor.runs import workers
from auditor.runs.workers import Crew
from tests.programs import PATIENCE, wait_for

pytest.importorskip("distributed", reason="--cluster is an extra: pip install 'auditor[cluster]'")

ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(Path.cwd()), str(Path(__file__).parent)]),
    "DASK_DISTRIBUTED__WORKER__DAEMON": "false",
}


class Cluster:
    """A scheduler and two worker processes, each with one thread."""

    def __init__(self, folder):
        self._folder = folder
        self._processes = []
        told = folder / "scheduler.json"
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(told),
        )  # fmt: skip
        wait_for(lambda: told.exists() and told.stat().st_size > 0, "no scheduler")
        import json

        self.address = json.loads(told.read_text())["address"]
        self.workers = []
        self.complete()

    def complete(self):
        there = [worker for worker in self.workers if worker.poll() is None]
        self.workers = [*there, *(self._worker() for _ in range(2 - len(there)))]

    def _worker(self):
        place = self._folder / f"worker-{len(self._processes)}"
        return self._start(
            "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0",
            "--local-directory", str(place),
        )  # fmt: skip

    def _start(self, *arguments):
        log = (self._folder / f"log-{len(self._processes)}").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]],
            stdout=log, stderr=log, env=ENVIRONMENT,
        )  # fmt: skip
        self._processes.append(process)
        return process

    def stop(self):
        for process in reversed(self._processes):
            process.kill()
            process.wait(PATIENCE)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.stop()


@pytest.fixture
def cluster(started):
    """The same one for all tests, whole again."""
    started.complete()
    return started


@pytest.fixture
def document(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    tables._remembered.clear()
    rng = np.random.default_rng(8)
    path = tmp_path / "table.parquet"
    pd.DataFrame({f"x{k}": 1e4 + rng.standard_normal(20_000) for k in range(40)}).to_parquet(
        path, row_group_size=4_999
    )
    yield {
        "title": "on a cluster",
        "seed": 11,
        "data": {"source": str(path)},
        "schemes": [
            {"name": "independent", "levels": [0.3, 1.0]},
            {"name": "corner-wave", "levels": [0.3, 1.0]},
        ],
        "knowledge": ["perfect", {"known-records": 5}],
        "attacks": ["ndr", "llse"],
        "expect": [{"no-collusion-gain": {"scheme": "corner-wave"}}],
    }
    tables._remembered.clear()


def without_clock(result):
    import json

    found = json.loads(result.to_json())
    for name in ("start", "duration", "command"):
        del found["provenance"][name]
    return found


@pytest.mark.slow
def test_the_same_results_as_here(cluster, document):
    assert without_clock(auditor.run(document, cluster=cluster.address)) == without_clock(
        auditor.run(document)
    )


@pytest.mark.slow
def test_an_audit_goes_on_when_a_worker_is_killed(cluster, document, monkeypatch):
    expected = without_clock(auditor.run(document))
    killed = []

    def kill(progress):
        if not killed and progress.done >= 2:
            cluster.workers[0].send_signal(signal.SIGKILL)
            killed.append(cluster.workers[0].wait(PATIENCE))

    from auditor.runs.run_scenario import run_scenario
    from auditor.scenario.read import read_scenario

    result = run_scenario(read_scenario(document, [], None), cluster=cluster.address, listener=kill)
    assert killed == [-signal.SIGKILL]
    assert without_clock(result) == expected


def test_no_scheduler_there(monkeypatch):
    monkeypatch.setattr(workers, "ANSWER_SECONDS", 0.5)
    with pytest.raises(AuditorError, match="no Dask scheduler answers"):
        Crew(cluster="tcp://127.0.0.1:9")

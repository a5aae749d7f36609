"""Processes that carry tasks out."""

import json
import os
from pathlib import Path

import pytest
import yaml

from auditor.scenario.read import read_scenario
from tests.programs import python

SCENARIO = {
    "title": "Shared", "seed": 1, "data": {"source": "cps", "columns": ["age", "salary"], "rows": 1_000}, "coalitions": ["subsets"],
    "schemes": [{"name": name, "levels": [0.25, 0.5, 1.0]} for name in ("independent", "corner-wave", "correlated")],
    "attacks": ["llse", "ndr"], "knowledge": ["perfect", {"estimated": {"rows": 200}}], "replicates": 2,
}  # fmt: skip


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("shared.yaml").write_text(yaml.safe_dump(SCENARIO))
    return read_scenario("shared.yaml")


ONE = {
    "schemes": [{"name": "corner-wave", "levels": [0.25, 0.5, 1.0]}], "attacks": ["llse", "map-estimate", "distribution-analysis"],
    "knowledge": ["perfect", {"known-records": 40}], "replicates": 1, "expect": [{"no-collusion-gain": {"margin": 0.5}}],
}  # fmt: skip


LONG = {
    "schemes": [{"name": name, "levels": [0.25, 0.5, 1.0]} for name in ("corner-wave", "correlated", "independent")],
    "attacks": ["llse"], "replicates": 1, "expect": [{"no-collusion-gain": {"scheme": "corner-wave", "margin": 0.5}}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "steps"),
    [({}, 6), (ONE, 6), (LONG, 4)],
    ids=["releases", "attempts on one", "trees of one"],
)
@pytest.mark.slow
def test_copies_of_the_program_find_what_it_finds(scenario, changed, steps):
    Path("shared.yaml").write_text(yaml.safe_dump(SCENARIO | changed))
    found = []
    for workers in (1, 3):
        done = python(
            *"-m auditor run shared.yaml --output".split(),
            str(workers),
            "--workers",
            str(workers),
            check=True,
        )
        assert "warning" not in done.stderr
        judged = json.loads(Path(str(workers), "shared/results.json").read_text())["expectations"]
        assert (f"of {steps} done" in done.stderr) == (changed is not LONG or workers > 1)
        assert bool(judged) == ("boosted-tree attack" in str(judged))
        found.append(
            (
                Path(str(workers), "shared/results.parquet").read_bytes(),
                judged,
                done.stdout.replace(f"{workers}/shared", ""),
            )
        )
    assert found[0] == found[1]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")


WORKERS = """
import os, signal, sys
from auditor.process import environment, interrupt
from auditor.runs.workers import Crew

def told(_):
    return os.getppid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

environment.begin_program()
with interrupt.interruptible(), Crew(2) as crew:
    for leader, deaf, ends in crew.in_order(told, range(4)):
        print(leader == os.getpid(), deaf, ends)
"""


@needs_fork
def test_copies_leave_ctrl_c_to_the_program_and_end_by_a_signal_to_them():
    assert python("-c", WORKERS, check=True).stdout.split() == ["True"] * 12

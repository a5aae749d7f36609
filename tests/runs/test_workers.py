"""Workers, budgets and memory."""

import json
import os
import re
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
            *"-m auditor run shared.yaml --output".split(), str(workers), "--workers", str(workers),
            check=True,
        )  # fmt: skip
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
from auditor.process import containment
from auditor.process import environment

from auditor.runs.workers import Crew

def told(_):
    return os.getppid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN, signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

environment.begin_program()
with containment.interruptible(), Crew(2) as crew:
    for leader, deaf, ends in crew.in_order(told, range(4)):
        print(leader == os.getpid(), deaf, ends)
"""


@needs_fork
def test_copies_leave_ctrl_c_to_the_program_and_end_by_a_signal_to_them():
    assert python("-c", WORKERS, check=True).stdout.split() == ["True"] * 12


FACTOR = 2.5


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(),
    reason="reads peak memory from /proc, which this system has not",
)


WHOLE_RUN = """
import re, sys
from pathlib import Path
from auditor.cli import main
try:
    main(["run", sys.argv[1], "--output", sys.argv[2], "--quiet", "--workers", "1"])
except SystemExit as end:
    assert end.code in (None, 0, 1), end.code  # an expectation may fail
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""
KINDS = {
    "a few records": (4, 2, 2, "singles, prefixes, all", "llse"),
    "400 copies": (20_000, 2, 400, "singles, prefixes, all", "llse"),
    "gains of trees": (50_000, 2, 5, "subsets", "llse", "perfect", "no-collusion-gain"),
}


@pytest.mark.slow
@needs_proc
@pytest.mark.parametrize("kind", KINDS)
def test_predicted_and_measured_of_the_whole_command_with_its_page(tmp_path, command, kind):
    rows, width, copies, coalitions, attacks, *others = KINDS[kind]
    knowledge, expect = (*others, *("perfect", "")[len(others) :])
    scenario = tmp_path / "audit.yaml"
    scenario.write_text(
        f"data: {{source: gaussian, rows: {rows}, spectrum: {{mean-variance: 1, count: 1, small: 0.5, attributes: {width}}}}}\n"
        f"schemes: [{{name: correlated, levels: {{uniform: [0.25, 1.0], count: {copies}}}}}]\n"
        f"coalitions: [{coalitions}]\nattacks: {attacks if attacks == 'all' else f'[{attacks}]'}\nknowledge: {knowledge}\n"
        f"expect: [{expect}]\n"
    )
    check_whole_run(command, scenario, tmp_path)


def check_whole_run(command, scenario, folder):
    _, outline, _ = command("check", scenario)
    predicted = float(re.search(r"([\d,]+) MB of memory", outline)[1].replace(",", ""))
    done = python("-c", WHOLE_RUN, scenario, folder / "out", check=True, timeout=300)
    measured = float(done.stdout.split()[-1])
    assert measured <= predicted <= measured * FACTOR, (predicted, measured)

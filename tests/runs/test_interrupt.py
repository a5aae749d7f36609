"""Ctrl-C and SIGTERM."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import pytest
import yaml

import auditor
from auditor import registry
from auditor.process import containment
from auditor.results.model import AuditResult
from auditor.runs import tasks
from auditor.runs.tasks import FOLDER
from tests.programs import PATIENCE, running, wait_for

SCENARIO = {
    "title": "Stopped", "seed": 1,
    "data": {"source": "cps", "columns": ["age", "salary"], "rows": 400}, "replicates": 2,
    "schemes": [{"name": "correlated", "levels": [0.25, 1.0]}, {"name": "corner-wave", "levels": [0.25, 1.0]}],
    "attacks": ["ndr", "llse"],
    "expect": [
        {"collusion-gain": {"scheme": "correlated", "attack": "llse", "at-least": 0.05}},
        {"normalized_error": {"scheme": "corner-wave", "attack": "llse", "at-least": 0.1}},
        "matches-theory",
    ],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("first", "second", "third"):
        Path(f"{name}.yaml").write_text(yaml.safe_dump(SCENARIO))
    more = {"replicates": 16, "data": {"source": "census-like", "rows": 40_000}}
    Path("many.yaml").write_text(yaml.safe_dump(SCENARIO | more | {"coalitions": ["subsets"]}))
    return tmp_path


@pytest.fixture
def signalled(monkeypatch):
    """Send this process a signal when so many tasks were carried out."""
    real, state = tasks.carry_out, {"done": 0, "at": None, "signal": signal.SIGINT}

    def carry_out(task, *share):
        if state["done"] == state["at"]:
            state["at"] = None  # once
            os.kill(os.getpid(), state["signal"])
        state["done"] += 1
        return real(task, *share)

    monkeypatch.setattr(tasks, "carry_out", carry_out)
    return state


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow_after_first
def test_a_signal_leaves_a_report_that_resume_completes(folder, run, signalled, number, status):
    signalled.update(at=3, signal=number)
    found, out, err = run("first.yaml")
    assert found == status
    assert f"Partial: 3 of 4 tasks finished; interrupted by {number.name}." in " ".join(out.split())
    assert "first: PARTIAL: 3 of 4 tasks are finished" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert "Partial: 3 of 4 tasks finished" in Path("audit/first/report.html").read_text()
    result = AuditResult.load("audit/first")
    assert (
        result.partial.finished, result.partial.tasks, result.partial.signal, result.exit_status,
    ) == (3, 4, number.name, status)  # fmt: skip
    assert [record.status for record in result.expectations] == ["holds", "undecided", "undecided"]
    assert "1 task that it covers is missing" in result.expectations[1].why
    assert run("first.yaml", "--resume")[0] == 0
    assert AuditResult.load("audit/first").partial is None
    assert signalled["done"] == 4


def test_scenarios_that_were_not_reached_are_named_and_those_before_stand(folder, run, signalled):
    signalled["at"] = 6
    status, out, err = run("first.yaml", "second.yaml", "third.yaml")
    assert status == 130
    assert "third: not carried out" in err
    assert not Path("audit/third/results.json").exists()
    assert AuditResult.load("audit/first").partial is None
    assert AuditResult.load("audit/second").partial.finished == 2
    assert out.count("Stopped ━") == 2
    assert run("first.yaml", "second.yaml", "third.yaml", "--resume")[0] == 0
    assert signalled["done"] == 12


def test_a_run_stopped_in_its_first_task_keeps_its_first_look(folder, run, signalled):
    signalled["at"] = 0
    status, _, err = run("first.yaml")
    result = AuditResult.load("audit/first")
    assert (status, result.partial.finished) == (130, 0)
    assert result.measurements.where(status="ok", attack="llse").all()
    assert "so far: " in err


def test_stopped_before_anything_was_finished_whole_results_are_left_alone(folder, run, signalled):
    run("first.yaml")
    before = Path("audit/first/results.json").read_bytes()
    signalled.update(at=signalled["done"])
    status, _, err = run("first.yaml")
    assert status == 130
    assert "is left as it was" in err
    assert Path("audit/first/results.json").read_bytes() == before
    assert run("first.yaml", "--resume")[0] == 0
    assert signalled["done"] == 4


def test_a_signal_while_results_are_written_waits_until_they_are(folder, run, monkeypatch):
    real = AuditResult.save

    def save(self, directory):
        os.kill(os.getpid(), signal.SIGINT)
        return real(self, directory)

    monkeypatch.setattr(AuditResult, "save", save)
    status, _, err = run("first.yaml", "second.yaml")
    assert status == 130
    assert sorted(path.name for path in Path("audit/first").iterdir()) == [
        FOLDER, "report.html", "results.json", "results.parquet",
    ]  # fmt: skip
    assert "second: not carried out" in err


def test_results_are_written_though_the_run_s_folder_was_removed(folder, run, monkeypatch):
    real, done = tasks.carry_out, []

    def carry_out(task, *share):
        done.append(task)
        if len(done) == 4:
            shutil.rmtree("audit/first")
        return real(task, *share)

    monkeypatch.setattr(tasks, "carry_out", carry_out)
    status, _, err = run("first.yaml")
    assert (status, "make room" in err) == (0, False)
    assert AuditResult.load("audit/first").partial is None


def test_from_python_ctrl_c_is_python_s_own(folder, signalled):
    signalled["at"] = 2
    with pytest.raises(KeyboardInterrupt):
        auditor.run("first.yaml", output="mine")
    auditor.run("first.yaml", output="mine", resume=True)
    assert signalled["done"] == 4


@pytest.fixture
def started(folder):
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(
            running(*arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )


def patiently(condition, program):
    wait_for(lambda: condition() or program.poll() is not None, "what is waited for does not come")
    assert program.poll() is None, said(program)


def said(program):
    try:
        return program.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        pytest.fail(f"after {PATIENCE} s there are still {members(program)}")


def begun(folder):
    """Whether two tasks are finished."""
    return len(list((folder / "audit/many" / FOLDER).glob("*-*.json"))) > 1


@pytest.mark.slow
def test_ctrl_c_reaches_program_and_workers_at_once_and_nobody_shows_a_traceback(folder, started):
    program = started("-m", "auditor", "run", "many.yaml", "--workers", "2")
    patiently(lambda: begun(folder), program)
    os.killpg(program.pid, signal.SIGINT)
    _, err = said(program)
    assert (program.returncode, "Traceback" in err) == (130, False)
    assert "many: PARTIAL: " in err
    document = json.loads((folder / "audit/many/results.json").read_text())
    assert 0 < document["partial"]["finished"] < document["partial"]["tasks"] == 32


def members(program):
    """The command lines of a program and all that came of it."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-g", str(program.pid)], capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
    return [line for line in found.stdout.splitlines() if "<defunct>" not in line]


def all_end(program):
    wait_for(lambda: not members(program), "somebody outlives the program", seconds=60)
    return True


def has_workers(program):
    # copies of the program, of the same name
    return sum("many.yaml" in line for line in members(program)) == 3


@pytest.mark.parametrize(
    "moment", [pytest.param("at work", marks=pytest.mark.slow), "just started"]
)
def test_workers_end_when_the_program_is_killed(folder, started, moment):
    program = started("-m", "auditor", "run", "many.yaml", "--workers", "2")
    patiently(lambda: begun(folder) if moment == "at work" else has_workers(program), program)
    program.kill()
    said(program)
    assert all_end(program)


SECOND = """
import hashlib, sys
from auditor.process import containment

with containment.interruptible():
    try:
        with containment.shielded():  # whenever the first comes, it meets the program in compiled code
            print("ready", flush=True)
            hashlib.pbkdf2_hmac("sha256", b"x", b"y", 2 * 10**8)
    finally:
        print("survived", flush=True)
"""


def test_a_second_ctrl_c_stops_at_once_even_in_compiled_code(started):
    program = started("-c", SECOND)
    assert program.stdout.readline() == "ready\n"
    os.killpg(program.pid, signal.SIGINT)
    assert program.stderr.readline() == "\n"
    assert "Ctrl-C again stops at once" in program.stderr.readline()
    time.sleep(2 * containment.ONE_PRESS)
    os.killpg(program.pid, signal.SIGINT)
    out, err = said(program)
    assert (program.returncode, err, "survived" in out) == (130, "stopped at once\n", False)


def test_plugins_are_all_loaded_though_a_signal_comes_early(monkeypatch):
    monkeypatch.setattr(registry, "_discovered", set())
    loaded = []

    def load(*of):
        if not loaded:
            os.kill(os.getpid(), signal.SIGTERM)
        loaded.append(of)

    monkeypatch.setattr(registry, "_import", load)
    with pytest.raises(containment.Interrupted), containment.interruptible():
        registry.discover()
    assert (len(loaded) > 1, registry._discovered) == (True, set())


def test_a_run_does_not_wait_for_the_workers_of_an_interrupted_start():
    with containment.interruptible():
        worker = get_context("fork").Process(target=time.sleep, args=(5,), daemon=True)
        worker.start()
    assert worker.is_alive()
    worker.kill()

"""Never twice the same work."""

import os
import resource
from pathlib import Path

import numpy as np
import pytest
import yaml

import auditor
from auditor.base import WorkersLost
from auditor.runs import tasks, workers
from auditor.runs.tasks import FOLDER
from benchmarks import kills
from benchmarks.kills import _outcome, disturb_and_resume, shipped
from tests.programs import environment, python

SCENARIO = {
    "title": "Small", "seed": 1, "data": {"source": "table.csv"}, "replicates": 2,
    "schemes": [
        {"name": "correlated", "levels": [0.25, 1.0]},
        {"name": "corner-wave", "levels": [0.25, 1.0], "noise": {"matrix": "shape.csv"}},
    ],
    "attacks": ["ndr", "llse"], "expect": ["matches-theory"],
}  # fmt: skip
TASKS = 4


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_table(np.random.default_rng(0).normal(size=(300, 2)))
    np.savetxt("shape.csv", [[1.0, 0.2], [0.2, 1.0]], delimiter=",")
    write(SCENARIO)
    return tmp_path


def write_table(values):
    np.savetxt("table.csv", values, delimiter=",", header="a,b", comments="")


def write(scenario, name="small.yaml"):
    Path(name).write_text(yaml.safe_dump(scenario))


@pytest.fixture
def carried_out(monkeypatch):
    real = tasks.carry_out

    class Calls(list):
        before = staticmethod(lambda number: None)

    calls = Calls()

    def counted(task, *share):
        calls.before(len(calls))
        calls.append((task.scheme, task.replicates))
        return real(task, *share)

    monkeypatch.setattr(tasks, "carry_out", counted)
    return calls


def crash(number):
    def before(done):
        if done == number:
            raise MemoryError

    return staticmethod(before)


def outcome(name="small", output="audit", status=0):
    return _outcome(status, Path(output) / name)


@pytest.mark.parametrize("at", [2, 0])
@pytest.mark.slow_after_first
def test_after_a_crash_only_unfinished_tasks_run_and_results_agree(folder, run, carried_out, at):
    assert run("small.yaml", "--output", "undisturbed")[0] == 0
    carried_out.clear()
    carried_out.before = crash(at)
    assert run("small.yaml")[0] == 3
    carried_out.before = staticmethod(lambda number: None)
    first = list(carried_out)
    status, _, err = run("small.yaml", "--resume")
    assert len(first) == at
    assert len(carried_out) == TASKS
    assert len(set(carried_out)) == TASKS
    assert f"resumed: {at} of {TASKS} tasks are finished already" in err or at == 0
    assert outcome(status=status) == outcome(output="undisturbed")


def test_resuming_what_is_whole_does_nothing_again(folder, run, carried_out):
    run("small.yaml")
    before = outcome()
    _, _, err = run("small.yaml", "--resume")
    assert len(carried_out) == TASKS
    assert f"resumed: {TASKS} of {TASKS} tasks are finished already\n" in err
    assert outcome() == before


def test_a_cell_that_failed_is_tried_again(folder, run, carried_out, monkeypatch):
    from auditor import registry

    with monkeypatch.context() as broken:
        broken.setattr(registry.get("attack", "ndr"), "affine", lambda self, view: 1 / 0)
        assert run("small.yaml")[0] == 3
    assert run("small.yaml", "--resume")[0] == 0
    assert not auditor.AuditResult.load("audit/small").failed


CHANGES = {
    "one value": lambda: Path("table.csv").write_text(Path("table.csv").read_text()[:-2] + "7\n"),
    "a noise matrix": lambda: np.savetxt("shape.csv", [[1.0, 0.3], [0.3, 1.0]], delimiter=","),
    "seed": lambda: write(SCENARIO | {"seed": 2}),
    "attacks": lambda: write(SCENARIO | {"attacks": ["ndr", "llse", "udr"]}),
    "data": lambda: write(SCENARIO | {"data": {"source": "table.csv", "rows": 200}}),
    "pooling": lambda: write(SCENARIO | {"expect": ["no-collusion-gain"]}),
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.slow_after_first
def test_everything_that_a_change_touches_is_done_again(folder, run, carried_out, what):
    run("small.yaml")
    CHANGES[what]()
    _, _, err = run("small.yaml", "--resume")
    assert f"resumed: 0 of {TASKS} tasks are finished already" in err
    assert len(carried_out) == 2 * TASKS
    resumed = outcome(status=0)
    run("small.yaml", "--output", "afresh")
    assert resumed == outcome(output="afresh")


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"title": "Another"}, 0),
        ({"expect": [{"normalized_error": {"at-least": 0.0}}]}, 0),
        ({"replicates": 3}, 2),
        ({"schemes": [{"name": "independent", "levels": [0.5]}, *SCENARIO["schemes"]]}, 2),
        ({"schemes": SCENARIO["schemes"][1:]}, 0),
        ({"sweep": {"schemes[0].levels[0]": [0.25, 0.5]}}, 2 * TASKS),
    ],
    ids=["title", "expectation", "a replicate more", "a scheme more", "a scheme less", "a sweep"],
)
@pytest.mark.slow_after_first
def test_what_a_change_does_not_touch_is_not_done_again(folder, run, carried_out, change, more):
    run("small.yaml")
    write(SCENARIO | change)
    status = run("small.yaml", "--resume")[0]
    assert len(carried_out) == TASKS + more
    assert run("small.yaml", "--output", "afresh")[0] == status
    assert outcome() == outcome(output="afresh")


def test_a_file_that_changes_while_it_is_audited_is_not_believed_later(folder, run, carried_out):
    def before(number):
        if number == 2:
            write_table(np.random.default_rng(3).normal(size=(300, 2)))

    original = Path("table.csv").read_bytes()
    carried_out.before = staticmethod(before)
    assert "table.csv changed while it was audited" in run("small.yaml")[2]
    carried_out.before = staticmethod(lambda number: None)
    Path("table.csv").write_bytes(original)
    carried_out.clear()
    run("small.yaml", "--resume")
    assert len(carried_out) == 2


def files(folder="audit/small"):
    return [path for path in sorted(Path(folder, FOLDER).iterdir())]


def test_damaged_files_are_told_and_their_tasks_done_again(folder, run, carried_out):
    run("small.yaml", "--output", "undisturbed")
    run("small.yaml")
    carried_out.clear()
    torn, flipped, forged, _ = files()
    torn.write_bytes(torn.read_bytes()[:-7])
    flipped.write_bytes(flipped.read_bytes().replace(b"5", b"6", 1))
    content = b"[0.1,[[[[1]],[],[]]]]"
    forged.rename(forged.with_name(f"{forged.name.partition('-')[0]}-{tasks._hash(content)}.json"))
    files()[2].write_bytes(content)
    told = run("small.yaml", "--resume")[2]
    assert "resumed: 1 of 4 tasks are finished already; 3 damaged entries are left out" in told
    assert len(carried_out) == 3
    assert outcome() == outcome(output="undisturbed")


def test_finished_tasks_are_their_owner_s_alone_and_no_more_than_the_results_use(folder, run):
    run("small.yaml")
    write(SCENARIO | {"seed": 2})
    run("small.yaml", "--resume")
    assert len(files()) == TASKS
    assert {path.stat().st_mode & 0o777 for path in Path("audit/small", FOLDER).iterdir()} == {
        0o600
    }
    assert Path("audit/small", FOLDER).stat().st_mode & 0o777 == 0o700


def test_two_runs_cannot_write_to_one_folder(folder, run):
    Path("audit/small").mkdir(parents=True)
    lock = tasks.lock_folder(Path("audit/small"))
    try:
        status, _, err = run("small.yaml")
    finally:
        os.close(lock)
    assert status == 2
    assert "another run is writing there" in err


def limited(size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def shell(*arguments, **options):
    return python("-m", "auditor", "run", *arguments, **options)


@pytest.mark.slow
def test_a_full_disk_is_told_and_nothing_that_was_finished_is_lost(folder, run, carried_out):
    run("small.yaml", "--output", "undisturbed")
    size = 2 * max(path.stat().st_size for path in files("undisturbed/small"))
    assert size < Path("undisturbed/small/results.json").stat().st_size
    done = shell(
        "small.yaml", preexec_fn=limited(size), env=environment(PYTHONDONTWRITEBYTECODE="1")
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be written (File too large)" in done.stderr
    assert "run again with --resume" in done.stderr
    assert sorted(path.name for path in Path("audit/small").iterdir()) == [FOLDER]
    carried_out.clear()
    status, _, err = run("small.yaml", "--resume")
    assert not carried_out
    assert "damaged" not in err
    assert outcome(status=status) == outcome(output="undisturbed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "disturbance"),
    [("small", "SIGTERM"), ("passes", "SIGKILL, all"), ("records", "SIGKILL, program")],
)
def test_runs_disturbed_at_random_and_resumed_agree(folder, monkeypatch, kind, disturbance):
    for name, records in {
        "NUMBERS": 400_000 if kind == "passes" else 1_000, "RECORDS": 1_000, "PEOPLE": 10,
    }.items():  # fmt: skip
        monkeypatch.setattr(kills, name, records)
    monkeypatch.setattr(kills, "_environment", environment)
    write(SCENARIO | {"replicates": 24})
    (scenario,) = (
        path.resolve()
        for path in (Path("small.yaml"), *shipped(folder))
        if path.stem.endswith(kind)
    )
    if kind != "small":
        fewer = yaml.safe_load(scenario.read_text()) | {"replicates": 1}
        fewer["data"] |= {} if kind == "passes" else {"rows": 200}
        scenario.write_text(yaml.safe_dump(fewer))
    tally = disturb_and_resume([scenario], folder / "rounds", 1, seed=6, kinds=(disturbance,))
    assert tally.whole, str(tally)
    assert tally.rounds.total() == 1


def test_lost_workers_leave_a_partial_report_and_a_journal(folder, run, carried_out, monkeypatch):
    def lost(crew, work, tasks):
        yield 1, work(tasks[1])
        raise WorkersLost("worker processes were killed 3 times")

    with monkeypatch.context() as broken:
        broken.setattr(workers.Crew, "_done", lost)
        status, out, err = run("small.yaml", "--workers", "2")
    assert status == 3
    assert "1 of 4 tasks finished; worker processes were killed" in out
    assert "--resume" in err
    assert auditor.AuditResult.load("audit/small").partial.finished == 1
    run("small.yaml", "--resume")
    assert auditor.AuditResult.load("audit/small").partial is None

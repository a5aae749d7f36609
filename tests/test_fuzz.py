"""Ten seconds of `python -m benchmarks.fuzz`."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from auditor.cli import arguments, copies as perturb, inspect, run
from auditor.process.environment import say
from benchmarks.fuzz import corpus
from benchmarks.fuzzing import scenarios, tables
from benchmarks.fuzzing.judge import judged

draws = st.randoms(use_true_random=False)
settings.register_profile(
    "fuzz", parent=settings.get_profile("audit"), database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
CORPUS = dict(corpus())


@pytest.mark.parametrize("part", range(8))
def test_nothing_of_the_corpus_shows_a_fault(part):
    found = {name: judged(CORPUS[name]).faults for name in sorted(CORPUS)[part::8]}
    assert {name: faults for name, faults in found.items() if faults} == {}


@settings(settings.get_profile("fuzz"), max_examples=30)
@given(draws)
@pytest.mark.slow
def test_no_mutated_scenario_shows_a_fault(draw):
    assert judged(scenarios.mutated(draw)).faults == []


@settings(settings.get_profile("fuzz"), max_examples=30)
@given(draws)
@pytest.mark.slow
def test_no_mutated_table_shows_a_fault(draw):
    assert judged(tables.mutated(draw)).faults == []


def plain():
    draw = random.Random(3)
    return tables.asked("planted", "t.csv", tables.csv_text(tables.canaries(draw)), "some numbers")


def raising(error):
    def act(*_, **__):
        raise error

    return act


@pytest.mark.parametrize(("planted", "shown"), [
    (raising(ValueError("x")), "a traceback"), (raising(SystemExit(0)), "a traceback"),
    (lambda *_: say("x\n" * 200), "201 lines"), (lambda *_: say("x" * 5_000), "a line of"),
    (lambda *_: say(Path("t.csv").read_text().split("\n")[1]), "a cell in a message"),
    (
        lambda *_: (Path("audit/s/finished-tasks").mkdir(parents=True), Path("audit/s/finished-tasks/1-2.json").write_text(Path("t.csv").read_text())),
        "a cell in 1-2",
    ),
])  # fmt: skip
@pytest.mark.slow_after_first
def test_a_planted_fault_is_found(monkeypatch, planted, shown):
    monkeypatch.setattr(run, "_check_all", lambda scenarios, _: planted() or [1 for _ in scenarios])
    for commands in (arguments, run, perturb, inspect):
        monkeypatch.setattr(commands, "warn_of_broken_plugins", planted)
    assert any(shown in fault for fault in judged(plain()).faults)

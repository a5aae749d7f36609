"""Attempts on a large file that were finished are not made again: each is kept, as the figures that its task will hold, and no row with it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from large_tables import SMALLER, figures

import auditor
from auditor import registry
from auditor.audit.base import release as making
from auditor.process.interrupt import CtrlC
from auditor.runs import schedule
from auditor.runs.journal import NAME, _line

ROWS = 6_250
BLOCKS = 2
ATTEMPTS = 9
"""Two attacks on rows with two states of knowledge, on two schemes, and trees on one that pooling is judged of, in two parts; `ndr` is linear
and is none."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    return pd.DataFrame(
        draw.standard_normal((ROWS, 1)) + draw.standard_normal((ROWS, 3)), columns=["a", "b", "c"]
    )


@pytest.fixture
def document(table, here, large, small_blocks):
    return scenario(table)


def scenario(table):
    table.to_parquet("table.parquet", row_group_size=650)
    return {
        "schema": 1, "title": "long", "seed": 5, "data": {"source": "table.parquet"},
        "schemes": [{"name": name, "levels": [0.3, 0.6]} for name in ("correlated", "corner-wave")],
        "knowledge": ["perfect", {"known-records": 40}], "coalitions": ["subsets"], "attacks": ["ndr", "map-estimate", "distribution-analysis"],
        "expect": [{"no-collusion-gain": {"scheme": "corner-wave"}}],
    }  # fmt: skip


@pytest.fixture
def made(monkeypatch):
    """Every attempt that is made as a step of its own, by scheme and number; ``made.stop`` of them stop the run."""
    real = schedule.attempt

    class Made(list):
        stop = None

    steps = Made()

    def attempt(step):
        if len(steps) == steps.stop:
            raise CtrlC
        steps.append((step.task.scheme, step.number))
        return real(step)

    monkeypatch.setattr(schedule, "attempt", attempt)
    return steps


@pytest.fixture
def drawn(monkeypatch):
    """The numbers of all blocks that copies are drawn of, again and again."""
    blocks, real = [], making.Drawing.block
    monkeypatch.setattr(
        making.Drawing,
        "block",
        lambda self, index, *more: blocks.append(index) or real(self, index, *more),
    )
    return blocks


@pytest.fixture
def undisturbed(document, made, drawn, once):
    """The run that nobody stops, made once for all tests: its results, its attempts, and how many blocks it drew."""
    if not once:
        once.update(result=auditor.run(document), made=list(made), drawn=len(drawn))
        made.clear()
    return SimpleNamespace(**once)


def stopped_after(count, document, made):
    made.stop = count
    with pytest.raises(CtrlC):
        auditor.run(document, output="audit")
    made.stop = None
    made.clear()


def journal() -> Path:
    return next(Path("audit").rglob(NAME))


def parts() -> list:
    """Return what is kept of attempts, in order."""
    lines = [line.split(" ", 2) for line in journal().read_text().splitlines()]
    return [json.loads(text)[1] for _, key, text in lines if ".attempt-" in key]


@pytest.mark.parametrize("count", [1, 5])
def test_what_was_made_is_not_made_again_and_the_results_are_the_same(
    document, undisturbed, made, drawn, count
):
    assert len(undisturbed.made) == ATTEMPTS
    stopped_after(count, document, made)
    drawn.clear()
    resumed = auditor.run(document, output="audit", resume=True)
    assert made == undisturbed.made[count:]
    assert figures(resumed) == figures(undisturbed.result)
    # an attempt goes through all blocks, once at least
    assert undisturbed.drawn - len(drawn) >= count * BLOCKS


def test_attempts_are_the_same_for_any_number_of_workers(table, here, large):
    """With blocks as they are: workers, which are started anew, have no others."""
    document = scenario(pd.concat([table] * SMALLER, ignore_index=True))
    alone = figures(auditor.run(document))
    assert figures(auditor.run(document, workers=2)) == alone


def test_what_is_kept_is_what_the_task_holds(document, made):
    """So nothing is written earlier that would not be written at all: aggregates, and no record."""
    stopped_after(ATTEMPTS - 1, document, made)
    kept = parts()
    assert len(kept) == ATTEMPTS - 1
    auditor.run(document, output="audit", resume=True)
    assert parts() == []
    whole = {
        text
        for line in journal().read_text().splitlines()
        for text in numbers(json.loads(line.split(" ", 2)[2]))
    }
    assert all(number in whole for part in kept for number in numbers(part))


def numbers(value) -> set[str]:
    """Return every number with a fraction in a JSON value, in full."""
    if isinstance(value, (list, dict)):
        return set().union(*map(numbers, value.values() if isinstance(value, dict) else value))
    return {repr(value)} if isinstance(value, float) else set()


@pytest.mark.parametrize("damage", ["torn", "another shape"])
def test_a_damaged_attempt_is_made_again_alone(document, undisturbed, made, damage):
    stopped_after(6, document, made)
    lines = journal().read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b".attempt-1 " in line)
    key = lines[place].split(b" ", 2)[1].decode()
    lines[place] = (
        lines[place].replace(b"0.", b"1.")
        if damage == "torn"
        else _line(key, '[0.1,[[[1]],[],[],"x"]]')
    )
    journal().write_bytes(b"".join(lines))
    assert figures(auditor.run(document, output="audit", resume=True)) == figures(
        undisturbed.result
    )
    assert made == [undisturbed.made[0], *undisturbed.made[6:]]


def test_an_attempt_that_failed_is_made_again(document, made, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(registry.get("attack", "map-estimate"), "fit", lambda *_: 1 / 0)
        stopped_after(4, document, made)
        assert len(parts()) == 2
    auditor.run(document, output="audit", resume=True)
    assert len(made) == ATTEMPTS - 2


def test_what_trees_gain_is_found_with_the_release_where_it_could_not_be_apart(
    document, undisturbed, monkeypatch
):
    real = schedule.attempt
    monkeypatch.setattr(schedule, "attempt", lambda step: None if step.number == -1 else real(step))
    assert figures(auditor.run(document)) == figures(undisturbed.result)
    assert "boosted-tree attack" in undisturbed.result.expectations[0].why


def test_where_every_record_is_counted_linear_attacks_are_steps_too(document, made):
    auditor.run(
        document
        | {
            "measures": [{"within": {"tolerance": 0.5}}],
            "schemes": document["schemes"][:1],
            "expect": [],
        }
    )
    assert [number for _, number in made] == list(range(6))

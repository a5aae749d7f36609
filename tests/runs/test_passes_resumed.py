"""A pass over a large file that was stopped goes on where it was: sums are kept, and no row of the table with them."""

from __future__ import annotations

import collections
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from large_tables import figures

import auditor
from auditor.audit.numeric import moment_pass
from auditor.audit.numeric.gather import Chosen, Stripe
from auditor.audit.numeric.moment_pass import MomentJob
from auditor.numerics import blocks
from auditor.numerics.moments import Moments
from auditor.numerics.passes import Job
from auditor.runs import checkpoint as keeper
from auditor.runs import passes
from auditor.runs.journal import NAME
from auditor.runs.task_keys import Identity

ROWS, STEPS, SCHEMES = 60_000, 10, 2


JOB = MomentJob(ROWS, 2, 1, np.zeros(2), np.ones(2), {})


class StopError(BaseException):
    """What no handler of failures catches, like a kill."""


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    strong = draw.standard_normal((ROWS, 4)) @ draw.standard_normal((4, 20))
    return pd.DataFrame(
        strong + draw.standard_normal((ROWS, 20)), columns=[f"x{k}" for k in range(20)]
    )


@pytest.fixture
def document(table, tmp_path, large, few_redraws, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # half of what it is, so that half of forty columns makes as many blocks
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 2**17)
    table.to_parquet("table.parquet", row_group_size=9_999)
    return {
        "schema": 1, "title": "long", "seed": 5, "data": {"source": "table.parquet"},
        "schemes": [{"name": "correlated", "levels": [0.3, 0.6, 1.0]}, {"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}],
        "knowledge": ["perfect", {"estimated": {"rows": 100}}, {"known-records": 3}],
        "coalitions": ["subsets"], "attacks": ["ndr", "llse"], "expect": ["matches-theory"],
    }  # fmt: skip


@pytest.fixture
def gathered(monkeypatch):
    """Every step of a pass that is gone through; the one at ``gathered.stop`` stops the run."""
    real = passes.go_through

    class Steps(list):
        stop = None

    steps = Steps()

    def gather(task):
        if len(steps) == steps.stop:
            raise StopError
        steps.append(task)
        return real(task)

    monkeypatch.setattr(passes, "go_through", gather)
    return steps


@pytest.fixture
def undisturbed(document, gathered, once):
    """The run that nobody stops, made once for all tests of the same document: its figures, and how many steps it went through."""
    if not once:
        once.update(figures=figures(auditor.run(document)), steps=len(gathered))
        gathered.clear()
    return SimpleNamespace(**once)


def stopped_at(step, document, gathered):
    gathered.stop = step
    with pytest.raises(StopError):
        auditor.run(document, output="audit")
    gathered.stop = None
    gathered.clear()


def summed(steps):
    """Return for how many schemes each step took sums; for the others it looked for chosen rows alone."""
    return [sum(job.sums for job in step.jobs.values()) for step in steps]


def journal():
    return (
        Path("audit/scenario" if Path("audit/scenario").exists() else "audit") / NAME
    ).read_text()


@pytest.mark.parametrize(
    "step", [6, *(pytest.param(step, marks=pytest.mark.slow) for step in (1, STEPS - 1))]
)
@pytest.mark.slow
def test_what_was_summed_is_not_summed_again_and_the_results_are_the_same(
    document, undisturbed, gathered, step
):
    assert undisturbed.steps == STEPS
    stopped_at(step, document, gathered)
    resumed = auditor.run(document, output="audit", resume=True)
    assert summed(gathered) == [0] * step + [SCHEMES] * (STEPS - step)
    assert figures(resumed) == undisturbed.figures


def test_the_seconds_of_a_part_are_those_of_its_task_whoever_found_it(tmp_path, monkeypatch):
    """Two tasks share a pass of three steps, a second each, and take ten more; parts of both are kept, the time once."""
    now, wanted = [0.0], {}
    monkeypatch.setattr(keeper.time, "perf_counter", lambda: now[0])

    def carry_out(some, begun):
        for step in ("0", "1", "2"):
            if any(begun.read(place, step) is None for place in range(len(some))):
                now[0] += 1.0
                if (step, "pass") == wanted.get("stop"):
                    raise StopError
                begun.keep(step, dict.fromkeys(range(len(some)), 7))
        for place, task in enumerate(some):
            now[0] += 10.0
            if (task, "task") == wanted.get("stop"):
                raise StopError
            yield place, task

    def run(resume, **stop):
        wanted.clear()
        wanted.update(stop)
        kept = keeper.TaskCheckpoint(
            keeper.Keep(tmp_path, resume), Identity({}, ["a", "b"]), str, lambda _: True
        )
        before = now[0]
        try:
            found = sorted(kept.finished(["A", "B"], carry_out))
        except StopError:
            return None
        assert found == [(0, "A"), (1, "B")]
        return kept.spent + now[0] - before

    assert run(False) == 23.0
    assert run(True) == 23.0  # all of it is there
    assert run(False, stop=("2", "pass")) is None
    assert run(True) == 23.0  # two steps are
    assert run(False, stop=("B", "task")) is None
    assert run(True, stop=("B", "task")) is None
    assert run(True) == 23.0  # one task, and what the other's parts took of their own
    assert run(True) == 23.0


@pytest.mark.slow
def test_where_nobody_was_given_rows_nothing_is_looked_at_again(document, gathered, monkeypatch):
    document["knowledge"] = ["perfect"]
    undisturbed = auditor.run(document)
    gathered.clear()
    stopped_at(7, document, gathered)
    resumed = auditor.run(document, output="audit", resume=True)
    assert [task.first for task in gathered] == [7, 8, 9]
    assert figures(resumed) == figures(undisturbed)


@pytest.mark.slow
def test_blocks_without_chosen_rows_are_not_read_again(document, gathered, monkeypatch):
    from auditor.data.file_rows import FileRows

    document["knowledge"] = ["perfect", {"known-records": 2}]
    stopped_at(9, document, gathered)
    read, real = [], FileRows.read
    monkeypatch.setattr(FileRows, "read", lambda self, a, b: read.append(a) or real(self, a, b))
    before = passes.go_through
    monkeypatch.setattr(
        passes, "go_through", lambda task: (read.clear(), before(task), again.append(len(read)))[1]
    )
    again = []
    auditor.run(document, output="audit", resume=True)
    assert again[9] == 1
    assert sum(again[:9]) <= 2


@pytest.mark.slow
def test_the_journal_holds_sums_over_many_rows_and_no_row(document, gathered, table):
    stopped_at(9, document, gathered)
    lines = [line.split(" ", 2) for line in journal().splitlines()]
    parts = [json.loads(text)[1] for _, key, text in lines if "." in key]
    assert len(parts) == 9 * SCHEMES
    for stripes in parts:
        for groups, finite, _ in stripes:
            assert finite
            assert min(count for _, count, _, _ in groups) >= moment_pass.FEWEST_RECORDS
    numbers = {
        f"{number:.9g}"
        for stripes in parts
        for groups, _, _ in stripes
        for _, _, *sums in groups
        for part in sums
        for number in part
    }
    centred = table.to_numpy() - table.to_numpy().mean(axis=0)
    for values in (table.to_numpy(), centred, centred**2):
        assert not numbers & {f"{value:.9g}" for value in values[:2000].ravel()}


@pytest.mark.slow
def test_a_changed_table_is_gone_through_again(document, gathered, table):
    stopped_at(8, document, gathered)
    (table + 1e-9).to_parquet("table.parquet", row_group_size=9_999)
    auditor.run(document, output="audit", resume=True)
    assert summed(gathered) == [SCHEMES] * STEPS


@pytest.mark.slow
def test_a_whole_run_keeps_no_sums(document, gathered):
    stopped_at(4, document, gathered)
    auditor.run(document, output="audit", resume=True)
    assert not any("." in line.split(" ", 2)[1] for line in journal().splitlines())


@pytest.mark.slow
def test_damaged_sums_are_taken_again(document, gathered):
    stopped_at(8, document, gathered)
    path = next(Path().rglob(NAME))
    lines = path.read_bytes().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if b".pass-0-stripes-3-4 " in line]
    lines[places[0]] = lines[places[0]].replace(b"true", b"tru3")
    path.write_bytes(b"".join(lines))
    auditor.run(document, output="audit", resume=True)
    # of the one scheme whose sums were damaged
    assert summed(gathered) == [0, 0, 0, 1, 0, 0, 0, 0, SCHEMES, SCHEMES]


# -- any job
# ---------------------------------------------------------------------------------------------------------------


class Count(Job):
    """Counts, of which those above a limit may be kept."""

    exact = True

    def __init__(self, limit):
        self.limit = limit

    def weight(self, records):
        return 8

    def begin(self):
        return Counter()

    def take(self, block, into):
        into[block] += 1

    def storable(self, parts):
        return (
            [dict(part) for part in parts]
            if all(min(part.values()) > self.limit for part in parts)
            else None
        )

    def restored(self, kept):
        return [Counter(part) for part in kept or ()]


class Counter(collections.Counter):
    add = collections.Counter.update


def test_parts_of_any_job_are_kept_as_far_as_it_says():
    """Two schemes whose counts may be kept above 5 and above 10, in a pass of two steps, begun twice."""
    kept, done = {}, []

    class Crew:
        def carry_out(self, work, steps):
            for step in steps:
                done.append((step.first, sorted(step.jobs)))
                yield {scheme: [Counter({"a": 9 * (step.first + 1)})] for scheme in step.jobs}

    begun = SimpleNamespace(
        read=lambda place, name: kept.get((place, name)),
        keep=lambda name, values: kept.update(
            {(place, name): value for place, value in values.items()}
        ),
    )
    jobs = {0: Count(5), 1: Count(10)}
    steps = [
        passes.PassTask(None, SimpleNamespace(rows=100_000), 1, jobs, 3, 8, a, a + 1)
        for a in (0, 1)
    ]
    checkpoint = passes.Checkpoint(begun, {0: 7, 1: 8})
    found = list(passes.passed(steps, Crew(), checkpoint))
    assert set(kept) == {
        (7, "pass-3-stripes-0-1"),
        (7, "pass-3-stripes-1-2"),
        (8, "pass-3-stripes-1-2"),
    }
    assert done == [(0, [0, 1]), (1, [0, 1])]
    done.clear()
    assert list(passes.passed(steps, Crew(), checkpoint)) == found
    assert done == [(0, [1])]
    other = [replace(step, number=4) for step in steps]
    done.clear()
    list(passes.passed(other, Crew(), passes.Checkpoint(begun, {0: 7, 1: 8})))
    assert done == [(0, [0, 1]), (1, [0, 1])]  # another pass over the same stripes


# -- what may be kept
# --------------------------------------------------------------------------------------------------


def sums(count, columns=2):
    return Moments(
        count, np.arange(columns) / 3, np.outer(np.arange(columns), np.arange(columns)) / 7
    )


def test_sums_come_back_to_the_last_bit_and_what_was_chosen_does_not_go():
    stripe = Stripe({3: sums(1_000), 4: sums(5_000)}, {"known": Chosen({0: sums(1)})}, True, 0.1)
    text = json.dumps(JOB.storable([stripe]))
    (back,) = JOB.restored(json.loads(text))
    assert back.chosen == {}
    assert (back.finite, back.seconds, list(back.groups)) == (True, 0.1, [3, 4])
    for number, moments in back.groups.items():
        assert moments.count == stripe.groups[number].count
        np.testing.assert_array_equal(moments.total, stripe.groups[number].total)
        np.testing.assert_array_equal(moments.products, stripe.groups[number].products)


@pytest.mark.parametrize(("count", "columns"), [(999, 2), (1_699, 170), (10**6, 200)])
def test_sums_over_few_records_or_of_many_columns_are_not_kept(count, columns):
    assert JOB.storable([Stripe({0: sums(10**6)}), Stripe({1: sums(count, columns)})]) is None


def test_nothing_is_kept_of_copies_without_moments():
    assert JOB.storable([Stripe()]) is None


@pytest.mark.parametrize(
    "kept",
    [
        None,
        3,
        "text",
        [[1]],
        [[[[0, 5, [1.0], [1.0, 2.0]]], True, 0.1]],
        [[[[0, 5, [1.0, 2.0], [1.0]]], True, 0.1]],
        [[[], "yes", 0.1]],
    ],
)
def test_what_makes_no_sense_is_taken_again(kept):
    assert JOB.restored(kept) == []

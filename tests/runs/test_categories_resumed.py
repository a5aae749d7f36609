"""A pass over categories that was stopped goes on where it was, as far as what it found may be written: sums over ten records of each value."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from large_tables import figures

import auditor
from auditor.audit.categorical import stored_sums
from auditor.audit.categorical.posterior_measures import Sums
from auditor.audit.categorical.posterior_pass import Found, MeasureJob
from auditor.process.interrupt import CtrlC
from auditor.results.disclosure import FEWEST_RECORDS
from auditor.runs import passes
from auditor.runs.journal import NAME, _line

ROWS, STEPS = 18_750, 5
MEASURED = STEPS
"""The step of the run that the second pass begins with: the first counts."""


@pytest.fixture
def document(here, large, small_blocks):
    draw = np.random.default_rng(8)
    disease, sex = (
        draw.choice(["flu", "HIV", "none", "cold"], ROWS, p=[0.5, 0.05, 0.3, 0.15]),
        draw.choice(["f", "m"], ROWS),
    )
    pd.DataFrame({"disease": disease, "sex": sex}).to_parquet("table.parquet", row_group_size=3_125)
    return {
        "schema": 1, "title": "long", "seed": 11, "data": {"source": "table.parquet", "categorical": ["disease", "sex"]},
        "schemes": [{"name": "uniform-multilevel", "levels": [0.3, 0.1, 0.5]}], "coalitions": ["subsets"],
        "knowledge": ["perfect", {"estimated": {"rows": 1_000}}], "attacks": ["posterior"], "measures": ["delta-growth", "belief-gap"],
        "expect": ["no-collusion-gain"],
    }  # fmt: skip


@pytest.fixture
def gone(monkeypatch):
    """Every step that is gone through: what its job is, and the attempts it serves; the one at ``gone.stop`` stops the run."""
    real = passes.go_through

    class Steps(list):
        stop = None

    steps = Steps()

    def go_through(step):
        if len(steps) == steps.stop:
            raise CtrlC
        (job,) = step.jobs.values()
        steps.append(
            (type(job).__name__, [knowledge for _, knowledge in getattr(job, "fitted", ())])
        )
        return real(step)

    monkeypatch.setattr(passes, "go_through", go_through)
    return steps


@pytest.fixture
def undisturbed(document, gone, once):
    """The run that nobody stops, made once for all tests of the same document: its figures, and the steps it went through."""
    if not once:
        once.update(figures=figures(auditor.run(document)), gone=list(gone))
        gone.clear()
    return SimpleNamespace(**once)


def stopped_at(step, document, gone):
    gone.stop = step
    with pytest.raises(CtrlC):
        auditor.run(document, output="audit")
    gone.stop = None
    gone.clear()


def journal() -> Path:
    return next(Path("audit").rglob(NAME))


def lines() -> list[tuple[str, object]]:
    """Return names and values of the parts that are kept."""
    found = [line.split(" ", 2) for line in journal().read_text().splitlines()]
    return [(key.partition(".")[2], json.loads(text)[1]) for _, key, text in found if "." in key]


@pytest.mark.slow
@pytest.mark.parametrize("step", [MEASURED + 3, 2 * STEPS + 2])
def test_what_was_summed_is_not_summed_again_and_the_results_are_the_same(
    document, undisturbed, gone, step
):
    whole = undisturbed.gone
    assert [name for name, _ in whole[MEASURED : MEASURED + STEPS]] == ["MeasureJob"] * STEPS
    stopped_at(step, document, gone)
    resumed = auditor.run(document, output="audit", resume=True)
    done = min(step, MEASURED + STEPS)
    # counts hold some of single records, and are counted again
    assert gone == whole[:MEASURED] + whole[done:]
    assert figures(resumed) == undisturbed.figures
    assert lines() == []


@pytest.mark.slow
def test_who_knows_records_goes_through_the_rows_again(document, gone):
    """Beside sums over all records sums over all but theirs would tell them."""
    document["knowledge"] = ["perfect", {"known-records": 400}]
    undisturbed = figures(auditor.run(document))
    gone.clear()
    stopped_at(MEASURED + 3, document, gone)
    assert {
        knowledge for _, stripes in lines() for stripe in stripes for (_, knowledge), _, _ in stripe
    } == {"perfect"}
    assert figures(auditor.run(document, output="audit", resume=True)) == undisturbed
    served = [knowledge for name, knowledge in gone if name == "MeasureJob"]
    assert served == [["known-records(400)"]] * 3 + [["perfect", "known-records(400)"]] * 2


@pytest.mark.slow
def test_the_journal_holds_sums_over_many_records_of_each_value_and_no_count_of_fewer(
    document, gone
):
    stopped_at(2 * STEPS + 2, document, gone)
    assert [name for name, _ in lines()] == [
        f"pass-2-stripes-{step}-{step + 1}" for step in range(STEPS)
    ]
    for _, stripes in lines():
        for stripe in stripes:
            assert all(min(counts) >= FEWEST_RECORDS for _, _, (counts, *_) in stripe)
            assert {len(counts) for _, _, (counts, *_) in stripe} == {8}


@pytest.mark.slow
def test_nothing_is_kept_of_a_step_that_lacks_a_value(document, gone):
    """Its count there is none, and of fewer than ten."""
    frame = pd.read_parquet("table.parquet")
    frame.loc[(np.arange(ROWS) < ROWS - 1_875) & (frame["disease"] == "HIV"), "disease"] = "flu"
    frame.to_parquet("table.parquet", row_group_size=3_125)
    stopped_at(2 * STEPS + 2, document, gone)
    assert [name for name, _ in lines()] == ["pass-2-stripes-4-5"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["torn", "another shape"])
def test_damaged_sums_are_taken_again_alone(document, undisturbed, gone, damage):
    stopped_at(2 * STEPS, document, gone)
    found = journal().read_bytes().splitlines(keepends=True)
    (place,) = [number for number, line in enumerate(found) if b".pass-2-stripes-1-2 " in line]
    key = found[place].split(b" ", 2)[1].decode()
    found[place] = (
        found[place].replace(b"0.", b"1.")
        if damage == "torn"
        else _line(key, '[0.1,[[[["posterior","perfect"],[1],[[],[],{},[],{}]]]]]')
    )
    journal().write_bytes(b"".join(found))
    assert figures(auditor.run(document, output="audit", resume=True)) == undisturbed.figures
    assert [name for name, _ in gone].count("MeasureJob") == 1


# -- what may be kept
# --------------------------------------------------------------------------------------------------


def job(**changes):
    """Two values in two row groups of 100 records, the second of which has a piece of nine more."""
    groups = [[(0, 0, 100)], [(1, 100, 200)], [(1, 200, 209)]]
    fitted = {("posterior", "perfect"): SimpleNamespace(inferences={(1,): None}, hidden=None)}
    return MeasureJob(
        **{
            "size": 3,
            "groups": groups,
            "fitted": fitted,
            "draws": {},
            "held": np.array([True, True, False]),
        }
        | changes
    )


def found(counts=(60, 40, 0), group=0, **more):
    sums = Sums(3, 2, **more)
    sums.counts, sums.squares = np.array(counts, dtype=float), np.array([1 / 3, 0.25, 0])
    sums.means, sums.growth = {"accuracy": np.array([0.1, 1 / 7, 0])}, {"*": 1 / 9}
    sums.groups[group] = 1 / 11
    return Found({("posterior", "perfect"): {(1,): sums}})


def test_sums_come_back_to_the_last_bit():
    part = found()
    (back,) = job().restored(json.loads(json.dumps(job().storable([part]))))
    mine, theirs = (each.sums["posterior", "perfect"][1,] for each in (part, back))
    for name in ("counts", "squares", "groups", "sizes"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(mine.means["accuracy"], theirs.means["accuracy"])
    assert (mine.growth, back.failed, back.waiting) == (theirs.growth, {}, {})


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        (found((60, 9, 0)), {}),
        (found((60, 0, 0)), {}),
        (found(group=1), {}),
        (found(apart=True), {}),
        (Found(failed={("posterior", "perfect"): ("failed", "why")}), {}),
        (Found(), {}),
        (found(), {"held": None}),
    ],
    ids=[
        "few records of a value",
        "none",
        "few of a row group",
        "groups apart",
        "failed",
        "nothing",
        "values unknown",
    ],
)
def test_other_sums_are_not_kept(part, changes):
    assert job(**changes).storable([part]) is None


def test_no_more_numbers_are_kept_than_a_step_is_worth(monkeypatch):
    monkeypatch.setattr(stored_sums, "MOST_NUMBERS", 8)
    assert job().storable([found()]) is None


WHOLE = [
    ["posterior", "perfect"],
    [1],
    [[60.0, 40.0, 0.0], [1.0, 1.0, 0.0], {"accuracy": [1.0, 1.0, 0.0]}, [[0, 1.0]], {"*": 0.5}],
]


@pytest.mark.parametrize(
    "kept",
    [
        None, 3, "text", [[]], [[1]], [[[["posterior", "rules"], *WHOLE[1:]]]], [[[WHOLE[0], [2], WHOLE[2]]]], [[WHOLE[:2]]],
        [[[*WHOLE[:2], [[60.0], *WHOLE[2][1:]]]]], [[[*WHOLE[:2], [*WHOLE[2][:3], [[2, 1.0]], {}]]]], [[[*WHOLE[:2], [*WHOLE[2][:3], [[-1, 1.0]], {}]]]],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_summed_again(kept):
    assert len(job().restored([[WHOLE]])) == 1
    assert job().restored(kept) == []

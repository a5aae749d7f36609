"""The estimate of time: more work takes longer."""

import pytest

from auditor.audit.base.request import release_copies
from auditor.audit.workload import tries, workload
from auditor.base.errors import ScenarioError
from auditor.runs.check import check_data
from auditor.runs.plan import outline
from auditor.scenario.read import read_scenario

ROWS, WIDTH, COPIES = 2000, 2, 3


def scenario(**changes):
    numbers = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": ROWS}
    whole = {"data": numbers, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}], "coalitions": ["singles", "all"],
             "attacks": ["llse"], "replicates": 5}  # fmt: skip
    return read_scenario(whole | changes)


def outlined(here):
    return outline(here, check_data(here))


def seconds(**changes):
    here = scenario(**changes)
    ((_, table),) = check_data(here)
    pooling = any(one.expectation.needs_pooling for one in here.expect)
    copies = release_copies(here.schemes[0], here)
    return workload(here, table, here.schemes[0], copies, pooling).seconds


def test_coalitions_are_those_that_the_attack_is_tried_on_and_their_members():
    here = scenario(
        coalitions=["subsets"], attacks=["llse", {"name": "map-estimate", "coalitions": [[1, 2]]}]
    )
    assert [(attack.name, count) for attack, _, count in tries(here, here.schemes[0], COPIES)] == [
        ("llse", 7),
        ("map-estimate", 3),
    ]


def test_what_does_not_apply_takes_nothing():
    assert seconds(attacks=["llse", "ica", "known-io-boosting", "homogeneity"]) == seconds()


def test_more_rows_copies_replicates_attacks_and_questions_take_longer():
    numbers = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 10 * ROWS}
    levels = {"uniform": [0.3, 1.0], "count": 2 * COPIES}
    more = [
        {"data": numbers},
        {"schemes": [{"name": "corner-wave", "levels": levels}]},
        {"replicates": 10},
        {"attacks": ["llse", "map-estimate"]},
        {"expect": [{"no-collusion-gain": {}}]},
    ]
    assert all(seconds(**change) > seconds() for change in more)
    rotated = {"knowledge": [{"known-records": 1}], "schemes": ["rotation"], "coalitions": "all"}
    assert seconds(
        attacks=[{"name": "known-io-rotation", "guesses": 2000}], **rotated
    ) > 1.5 * seconds(attacks=[{"name": "known-io-rotation", "guesses": 1000}], **rotated)


def test_a_sweep_is_folded_into_a_line_for_each_scheme():
    swept = scenario(sweep={"data.rows": [500, 2000, 1000], "replicates": [1, 2]}, schemes=[
        {"name": "corner-wave", "levels": [0.3, 1.0]}, {"name": "correlated", "levels": [0.3, 0.6, 1.0]},
    ])  # fmt: skip
    head, *lines = outlined(swept).splitlines()[2:]
    assert "MB of memory in each worker process" in head
    assert lines == [
        "  swept: data.rows over 3 values: [500, 2000, 1000]", "  swept: replicates over 2 values: [1, 2]",
        "  corner-wave at 6 sweep points: 500 to 2,000 rows × 2, 2 copies, 3 coalitions, 27 cells in all",
        "  correlated at 6 sweep points: 500 to 2,000 rows × 2, 3 copies, 4 coalitions, 36 cells in all",
    ]  # fmt: skip


def test_more_memory_than_there_is_is_warned_of(monkeypatch):
    assert "WARNING" not in outlined(scenario())
    monkeypatch.setattr("auditor.runs.plan.available", lambda: 100 * 2**20)
    assert "WARNING: that is more than the 100 MB that there are" in outlined(scenario())


def test_every_subset_of_20_copies_is_refused_without_naming_one(monkeypatch):
    """Whatever their number of attributes; what could be tried instead is said."""
    monkeypatch.setattr("auditor.runs.check.expand_all", None)
    for levels in ({"uniform": [0.3, 1.0], "count": 20}, {"uniform": [0.3, 1.0], "count": 40}):
        with pytest.raises(ScenarioError, match=r"try (\{random: 1000\}|random)"):
            outlined(
                scenario(
                    schemes=[{"name": "corner-wave", "levels": levels}],
                    coalitions=["subsets"],
                    replicates=1,
                )
            )


def test_the_plan_says_minutes_where_it_takes_minutes():
    assert " minutes on one core" in outlined(
        scenario(
            attacks=["mixture-estimate", "map-estimate"], coalitions=["subsets"], replicates=1000
        )
    )
    assert " s on one core" in outlined(scenario())

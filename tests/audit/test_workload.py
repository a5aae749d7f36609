"""The estimate of time: added up by hand for a few cells, and more of whatever takes time is more."""

from __future__ import annotations

from typing import Any

import pytest

from auditor import registry
from auditor.audit import workload as cost
from auditor.audit.workload import numeric_seconds, tree_seconds, tries
from auditor.errors import ScenarioError
from auditor.results.evidence import ROW_REDRAWS
from auditor.runs.plan import outline
from auditor.scenario.model import Scenario
from auditor.scenario.read import read_scenario

ROWS, WIDTH, COPIES = 2000, 2, 3
EACH = cost.COALITION + cost.SOLVE * WIDTH**3 + cost.WEIGHT * COPIES * WIDTH**2
"""Of one coalition in one draw."""


def scenario(**changes: Any) -> Scenario:
    numbers = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": ROWS}
    whole = {"data": numbers, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}], "coalitions": ["singles", "all"],
             "attacks": ["llse"], "replicates": 5}  # fmt: skip
    return read_scenario(whole | changes)


def seconds(rows: int = ROWS, copies: int = COPIES, **changes: Any) -> float:
    here = scenario(**changes)
    return numeric_seconds(
        here, here.schemes[0], tries(here, here.schemes[0], copies), rows, WIDTH, copies
    )[0]


def test_a_linear_attack_is_the_passes_and_a_solve_for_each_coalition() -> None:
    drawn, read = ROWS * WIDTH * COPIES * cost.NORMAL, ROWS * WIDTH * (COPIES + 1) * cost.READ
    products = ROWS * (WIDTH * (COPIES + 1)) ** 2 * cost.PRODUCT
    solves = cost.ATTEMPT + cost.ERRORS * WIDTH + 4 * EACH  # three single copies, and all
    assert seconds() == pytest.approx(cost.RELEASE + drawn + read + products + solves)


def test_an_attack_over_rows_adds_its_fits_and_again_for_every_other_draw() -> None:
    stated, drawn = registry.get("attack", "map-estimate").cost, ROWS * WIDTH * COPIES * cost.NORMAL
    one = 4 * WIDTH * (stated.fit + stated.row * ROWS) + drawn
    assert seconds(attacks=["llse", "map-estimate"]) - seconds() == pytest.approx(one)
    alone = seconds(attacks=["llse", "map-estimate"], replicates=1) - seconds(replicates=1)
    assert alone == pytest.approx((1 + ROW_REDRAWS) * one)


def test_coalitions_are_those_that_the_attack_is_tried_on_and_their_members() -> None:
    here = scenario(
        coalitions=["subsets"], attacks=["llse", {"name": "map-estimate", "coalitions": [[1, 2]]}]
    )
    assert [(attack.name, count) for attack, _, count in tries(here, here.schemes[0], COPIES)] == [
        ("llse", 7),
        ("map-estimate", 3),
    ]


def test_what_does_not_apply_takes_nothing() -> None:
    assert seconds(attacks=["llse", "ica", "known-io-boosting", "homogeneity"]) == seconds()


def test_trees_are_taught_where_an_expectation_asks_what_pooling_buys() -> None:
    asked = scenario(expect=[{"no-collusion-gain": {}}])
    assert tree_seconds(scenario(), ROWS, WIDTH, COPIES) == 0
    assert tree_seconds(asked, ROWS, WIDTH, 1) == tree_seconds(asked, 300, WIDTH, COPIES) == 0
    few, many = (tree_seconds(asked, rows, WIDTH, COPIES) for rows in (ROWS, 10**9))
    assert 0 < few < many < 10  # a bounded number of rows is looked at


def test_more_rows_copies_and_replicates_take_longer() -> None:
    assert seconds(rows=10 * ROWS) > seconds()
    assert (
        seconds(copies=5, schemes=[{"name": "corner-wave", "levels": [1.0, 2.0, 3.0, 4.0, 5.0]}])
        > seconds()
    )


def test_every_guess_that_is_counted_takes_its_time() -> None:
    records = {
        "knowledge": [{"known-records": 1}],
        "schemes": ["rotation"],
        "measures": [{"records-within": {"tolerance": 0.1}}],
        "coalitions": "all",
    }
    many, few = (
        seconds(copies=1, attacks=[{"name": "known-io-rotation", "guesses": guesses}], **records)
        for guesses in (2000, 1000)
    )
    assert many - few == pytest.approx(1000 * (cost.GUESS + cost.GUESSED * ROWS * WIDTH))


def test_a_sweep_is_folded_into_a_line_for_each_scheme() -> None:
    swept = scenario(sweep={"data.rows": [500, 2000, 1000], "replicates": [1, 2]}, schemes=[
        {"name": "corner-wave", "levels": [0.3, 1.0]}, {"name": "correlated", "levels": [0.3, 0.6, 1.0]},
    ])  # fmt: skip
    head, *lines = outline(swept).splitlines()[2:]
    assert "MB of memory in each worker process" in head
    assert lines == [
        "  swept: data.rows over 3 values: [500, 2000, 1000]", "  swept: replicates over 2 values: [1, 2]",
        "  corner-wave at 6 sweep points: 500 to 2,000 rows × 2, 2 copies, 3 coalitions, 27 cells in all",
        "  correlated at 6 sweep points: 500 to 2,000 rows × 2, 3 copies, 4 coalitions, 36 cells in all",
    ]  # fmt: skip


def test_more_memory_than_there_is_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "WARNING" not in outline(scenario())
    monkeypatch.setattr("auditor.runs.plan.available", lambda: 100 * 2**20)
    assert "WARNING: that is more than the 100 MB that there are" in outline(scenario())


def test_every_subset_of_20_copies_is_refused_without_naming_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever their number of attributes; what could be tried instead is said."""
    monkeypatch.setattr("auditor.runs.check.expand_all", None)
    for levels in ({"uniform": [0.3, 1.0], "count": 20}, {"uniform": [0.3, 1.0], "count": 40}):
        with pytest.raises(ScenarioError, match=r"try (\{random: 1000\}|random)"):
            outline(
                scenario(
                    schemes=[{"name": "corner-wave", "levels": levels}],
                    coalitions=["subsets"],
                    replicates=1,
                )
            )


def test_the_plan_says_minutes_where_it_takes_minutes() -> None:
    assert " minutes on one core" in outline(
        scenario(
            attacks=["mixture-estimate", "map-estimate"], coalitions=["subsets"], replicates=1000
        )
    )
    assert " s on one core" in outline(scenario())

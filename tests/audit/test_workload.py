"""The estimate of time and memory."""

from typing import Any

import pytest

from auditor.audit import workload as cost
from auditor.audit.workload import numeric_seconds, tries
from auditor.errors import ScenarioError
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

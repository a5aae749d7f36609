"""A budget of work: equal audits on all machines, and a report of omitted work."""

import json

import pytest

import auditor
from auditor.base import ScenarioError
from auditor.runs.check import check_data
from auditor.runs.plan import plan_lines, seconds_of, within_budget
from auditor.scenario.read import read_scenario

SCENARIO = {
    "data": {"source": "gaussian", "rows": 50_000, "covariance": [[1.0, 0.6], [0.6, 1.0]]},
    "schemes": [{"name": "corner-wave", "levels": [0.5, 1.0, 2.0, 4.0, 8.0]}],
    "coalitions": "subsets",
    "attacks": ["all", "udr"],
    "expect": [{"normalized_error": {"attack": "udr", "coalition": [2, 3], "at-least": 0.2}}],
}


def cut(budget, **changes):
    """Return the scenario within a budget, and its estimated work."""
    asked = read_scenario(SCENARIO | {"budget": budget} | changes)
    within, tables = within_budget(asked, check_data(asked))
    return within, seconds_of(plan_lines(within, tables))


def test_a_budget_is_kept_and_states_what_it_leaves_out():
    whole, work = cut("9 h")
    assert whole.left_out == ()
    assert len(whole.attacks) > 9
    sizes = []
    for budget in (work, 0.5 * work, 0.2 * work, 1.5):
        within, took = cut(budget)
        assert took <= budget
        assert bool(within.left_out) == (budget < work)
        # attacks that an expectation names stay
        assert "udr" in {use.id for use in within.attacks}
        assert any(entry.matches((2, 3), 5) for entry in within.coalitions)
        sizes.append((len(within.attacks), within.data.rows))
    assert sizes == sorted(sizes, reverse=True)
    least, took = cut("0.001s")
    assert took > 0.001
    assert "nothing more that can be cut" in least.left_out[-1]


@pytest.mark.parametrize("change", [{"sweep": {"data.rows": [40_000, 50_000]}}, {"replicates": 8}])
def test_swept_fields_stay_and_replicates_go(change):
    within, took = cut("4s", **change)
    assert took <= 4.0
    assert within.left_out
    assert within.sweep == change.get("sweep", {})


@pytest.mark.parametrize("budget", ["soon", "-3s", 0, True, [3], "1e3 s"])
def test_other_budgets_are_refused(budget):
    with pytest.raises(ScenarioError, match=r"budget.* must be a duration above 0, as 30s"):
        read_scenario(SCENARIO | {"budget": budget})


def test_command_python_and_scenario_agree_and_the_report_names_the_rest(tmp_path, command):
    safe = {"exposure": {"unknown": {"at-least": 0.1}}}
    noisy = [{"name": "corner-wave", "levels": [5.0, 6.0, 7.0, 8.0, 9.0]}]
    quiet = SCENARIO | {"schemes": noisy, "expect": [safe]}
    (tmp_path / "audit.yaml").write_text(
        json.dumps(quiet | {"attacks": ["llse", "udr", "mixture-estimate"]})
    )
    status, shown, _ = command(
        "run", tmp_path / "audit.yaml", "--budget", "1.5s", "-o", tmp_path / "out", "-j", "1"
    )
    words = " ".join(shown.split())
    assert status == 0
    assert "Safe against everything tried within the budget" in words
    assert "The budget of 1.5 s of work left out: " in words
    assert "1 of 3 attacks (mixture-estimate)" in words
    saved = json.loads((tmp_path / "out/audit/results.json").read_text())
    result = auditor.run(tmp_path / "audit.yaml", budget="1.5s")
    assert saved["left_out"] == result.left_out
    assert saved["scenario"]["budget"] == 1.5
    assert saved["scenario"]["attacks"] == result.scenario["attacks"]
    _, plan, _ = command("check", tmp_path / "audit.yaml", "--budget", "1.5s")
    assert f"budget of 1.5 s leaves out: {'; '.join(result.left_out)}" in plan

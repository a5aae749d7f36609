"""Two folders of results are compared scenario by scenario."""

from pathlib import Path

import pytest

import auditor
from auditor.results.comparison import GONE, compare_paths
from auditor.results.model import AuditResult

SCENARIO = {
    "seed": 1, "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 400},
    "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}], "attacks": ["llse"],
}  # fmt: skip


@pytest.fixture(scope="module")
def quiet():
    return auditor.run(SCENARIO)


@pytest.fixture(scope="module")
def loud():
    return auditor.run(SCENARIO, overrides={"schemes[0].levels": [0.05, 0.1]})


@pytest.fixture
def folders(tmp_path, quiet, loud, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, result in (
        ("old/same", quiet), ("new/same", quiet), ("old/leaks", quiet), ("new/leaks", loud),
        ("old/gone", quiet), ("new/added", quiet),
    ):  # fmt: skip
        result.save(place)
    return tmp_path


def test_scenarios_are_matched_by_name_and_each_is_judged(folders):
    found = {one.name: one for one in compare_paths("old", "new")}
    assert list(found) == ["added", "gone", "leaks", "same"]
    assert {name: one.worse for name, one in found.items()} == {
        "added": False, "gone": True, "leaks": True, "same": False,
    }  # fmt: skip
    assert found["gone"].broken == [GONE]
    assert found["gone"].compared == found["added"].compared == 0
    assert found["added"].only_new
    assert not found["added"].only_old
    assert found["same"].compared > 10
    assert not found["same"].worsened


def test_the_command_exits_1_where_anything_got_worse_or_nothing_was_compared(folders, command):
    assert command("compare", "old", "new")[0] == 1
    assert command("compare", "old", "old")[0] == 0
    assert command("compare", "new/added", "new/same")[0] == 0
    AuditResult.load("old/same").model_copy(update={"measurements": []}).save("empty")
    status, _, err = command("compare", "empty", "old/same")
    assert (status, err) == (
        1,
        "nothing was compared: the old and the new results have no cell in common\n",
    )
    before = Path("old/same/results.json").read_bytes()
    assert command("compare", "old", "new", "--output", "old/same/results.json")[0] == 2
    assert Path("old/same/results.json").read_bytes() == before

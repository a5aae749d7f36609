"""Checks of a scenario and larger tables."""

import numpy as np
import pandas as pd
import pytest
from dying import die, die_once
from large_tables import figures, in_memory

import auditor
from auditor.audit.base import request
from auditor.base import AuditorError
from auditor.data.sources.built_in import CensusLike, Cps
from auditor.numerics import blocks
from auditor.runs import workers
from auditor.runs.check import check_data
from auditor.runs.plan import outline
from auditor.scenario.read import read_scenario
from tests.programs import ROOT

OF_CPS = sorted(
    path.stem
    for path in (ROOT / "scenarios").glob("*.yaml")
    if "source: cps" in path.read_text(encoding="utf-8")
)[::3]


def said(name, *changes):
    try:
        scenario = read_scenario(ROOT / f"scenarios/{name}.yaml", changes)
        return outline(scenario, check_data(scenario))
    except AuditorError as error:
        return str(error)


@pytest.fixture
def read(monkeypatch):
    """Have no source know its table ahead."""

    def forget():
        for source in (Cps, CensusLike):
            monkeypatch.setattr(source, "outline", lambda self, rows: None)

    return forget


@pytest.mark.parametrize("name", OF_CPS)
def test_a_plan_is_the_same_without_the_records(name, read):
    ahead = said(name)
    assert "valid; " in ahead
    read()
    assert said(name) == ahead


@pytest.mark.parametrize(
    "changes",
    [
        {"data.columns": ["age", "wage"]}, {"data.rows": 200_000}, {"data.missing": "drop"},
        {"data.source": "census-like", "data.columns": ["age"]},
        {"expect": [], "knowledge": [{"known-records": 193_682}]}, {"schemes[0].levels": [1e300]},
        {"expect": [], "attacks": ["record-linkage"], "knowledge": [{"known-attributes": ["wage"]}]},
        {"expect": [{"normalized_error": {"attribute": "wage", "at-least": 0.1}}]},
    ],
    ids=str,
)  # fmt: skip
def test_whatever_is_wrong_is_told_likewise_without_the_records(changes, read):
    ahead = said("quickstart", *changes.items())
    read()
    assert said("quickstart", *changes.items()) == ahead


ROWS, SHORT = 30_000, 3_750
"""Ten blocks of all forty columns, where blocks are small."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return written(tmp_path_factory.mktemp("data"), ROWS)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """For this process, where blocks are small."""
    return written(tmp_path_factory.mktemp("data"), SHORT)


def written(folder, rows):
    path = folder / "table.parquet"
    rng = np.random.default_rng(8)
    age = rng.integers(18, 80, rows)
    width = 40
    columns = {
        f"x{k}": 1e5 * (k % 3) + age * (k % 5) + rng.standard_normal(rows) * 9
        for k in range(width - 1)
    }
    pd.DataFrame({"age": age, **columns}).to_parquet(path, row_group_size=rows // 6 - 1)
    return path


SCHEMES = [
    {"name": "independent", "levels": [0.3, 0.6, 1.0]},
    {"name": "corner-wave", "levels": [0.3, 0.6, 1.0]},
    {"name": "corner-wave", "id": "two-requests", "levels": [0.3, 0.6, 1.0], "already-out": 1},
    {"name": "rotation-noise", "levels": [0.5]},
]


def scenario(file, **changes):
    return {
        "schema": 1, "title": "out of core", "seed": 11,
        "data": {"source": str(file), "columns": ["age", "x1", "x4"], "standardize": True},
        "schemes": SCHEMES,
        "knowledge": ["perfect", {"estimated": {"rows": 300}}, {"known-records": 40}, {"known-attributes": ["age"]}],
        "coalitions": ["subsets"], "attacks": ["ndr", "llse"],
        "expect": [{"no-collusion-gain": {"scheme": "corner-wave"}}],
    } | changes  # fmt: skip


CASES = {
    "linear": {},
    "sweep": {"sweep": {"data.rows": [1_250, 2_500]}, "schemes": SCHEMES[:2], "knowledge": ["perfect"], "expect": []},
    "rows": {
        "attacks": ["udr", "spectral-filter", "distribution-analysis"],
        "coalitions": ["prefixes"], "schemes": SCHEMES[1:3],
        "knowledge": ["perfect", {"known-records": 40}],
        "data": {"source": "", "columns": ["age", "x1"], "rows": 1_000},
        "measures": ["error-distribution", {"within": 0.2}, "exact", "error-quantiles", "geometry", "entropy-privacy"],
    },
    "heads of every row": {
        "measures": [{"error-distribution": {"records": 400}}, "within"], "attacks": ["udr"],
        "coalitions": ["all"], "expect": [],
    },
    "whole table": {
        "schemes": [{"name": "k-anonymity", "levels": [5, 10], "quasi": ["age"], "sensitive": "x1"}],
        "data": {"source": "", "columns": ["age", "x1"], "rows": 2_000}, "knowledge": ["perfect"],
        "attacks": ["homogeneity"], "expect": [],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case == "whole table" else pytest.mark.slow) for case in CASES],
)
def test_the_same_results_as_in_memory(short, large, small_blocks, few_redraws, monkeypatch, case):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 2**13)  # so that three columns have two blocks
    changes = {key: value for key, value in CASES[case].items() if key != "data"}
    document = scenario(short, **changes)
    if "data" in CASES[case]:
        document["data"] = CASES[case]["data"] | {"source": str(short)}
    streamed_ = auditor.run(document)
    assert not [record.reason for record in streamed_.measurements if record.status == "failed"]
    assert figures(streamed_) == figures(in_memory(monkeypatch, document))


def wide(file):
    return scenario(
        file, data={"source": str(file)}, schemes=SCHEMES[:2], attacks=["ndr"],
        knowledge=["perfect", {"known-records": 5}],
    )  # fmt: skip


@pytest.mark.slow
def test_any_number_of_workers_and_any_cut_give_the_same_results(file, large, monkeypatch):
    document = wide(file)
    plain = figures(auditor.run(document))
    for count, shares in [(2, 256), (3, 3)]:
        monkeypatch.setattr(request, "MOST_STEPS", shares)
        assert figures(auditor.run(document, workers=count)) == plain


@pytest.mark.slow
def test_tasks_of_a_killed_worker_are_done_again(tmp_path):
    with workers.Crew(2) as crew:
        found = list(crew.in_order(die_once, [(str(tmp_path), number) for number in range(8)]))
    assert found == [number**2 for number in range(8)]
    assert (tmp_path / "dead").exists()


@pytest.mark.slow
def test_work_that_kills_every_worker_is_given_up_with_a_message():
    with (
        workers.Crew(2) as crew,
        pytest.raises(AuditorError, match="killed 3 times in a row over the same work"),
    ):
        list(crew.in_order(die, [1, 2, 3, 4]))

"""Audits of categories that stay in their files."""

import numpy as np
import pandas as pd
import pytest
from large_tables import SMALLER, figures, in_memory

import auditor

ROWS = 150_000


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return written(tmp_path_factory.mktemp("data"), ROWS // SMALLER)


def written(folder, rows):
    path, rng = folder / "table.parquet", np.random.default_rng(8)
    frame = pd.DataFrame({
        "salary": np.round(np.exp(rng.standard_normal(rows) + 10)),
        "disease": rng.choice(["flu", "HIV", "none", "cold"], rows, p=[0.5, 0.05, 0.3, 0.15]),
        "sex": rng.choice(["f", "m"], rows),
    })  # fmt: skip
    frame.to_parquet(path, row_group_size=rows // 3 - 1)
    return path


SCHEMES = [
    {"name": "uniform", "levels": [0.3, 0.1, 0.5]},
    {"name": "uniform-multilevel", "levels": [0.3, 0.1, 0.5]},
    {
        "name": "uniform-multilevel", "id": "multi-pert", "implementation": "multi-pert",
        "levels": [0.3, 0.1, 0.5, 0.3], "already-out": 1,
    },
]  # fmt: skip


EXPECT = [
    {"no-collusion-gain": {"scheme": "uniform-multilevel"}},
    "marginal-is-uniform",
    {"matches-theory": {"metric": "accuracy"}},
]


def scenario(file, **changes):
    return {
        "schema": 1, "title": "out of core", "seed": 11,
        "data": {"source": str(file), "columns": ["disease", "sex"], "categorical": ["disease", "sex"]},
        "schemes": SCHEMES,
        "knowledge": ["perfect", "uniform-prior", {"estimated": {"rows": 1_000}}, {"known-records": 400}],
        "coalitions": ["subsets"],
        "attacks": [{"name": "posterior", "predicates": {"ill": [["HIV", "f"], ["HIV", "m"]]}}, "ndr"],
        "measures": [
            "rho-breach", "delta-growth", "belief-gap", "marginal-gap", "history-size",
            {"empirical-epsilon": {"trials": 2_000}},
        ],
        "expect": [*EXPECT, "noise-follows-law"],
    } | changes  # fmt: skip


BINNED = {"columns": ["salary"], "bin": {"salary": {"quantile": 40}}}
CASES = {"a product domain": {}, "equal width": {"data": {"columns": ["salary"], "bin": {"salary": {"equal-width": 9}}, "rows": 8_750, "standardize": True},
                    "attacks": ["posterior"], "schemes": SCHEMES[:3]}, "many copies": {"schemes": [{"name": name, "levels": {"uniform": [0.05, 0.7], "count": 14}} for name in ("uniform", "uniform-multilevel")],
                    "coalitions": ["all", {"copies": [1, 2, 3]}, {"first": 9}], "attacks": ["posterior"], "knowledge": ["perfect"],
                    "expect": [{"no-collusion-gain": {"scheme": "uniform-multilevel"}}, "marginal-is-uniform"]}, "both worlds": {"data": BINNED, "attacks": ["posterior", "llse"], "knowledge": ["perfect"], "measures": [], "expect": EXPECT,
                    "schemes": [{"name": name, "levels": levels} for name, levels in (("correlated", [0.5, 1.0, 2.0]), ("corner-wave", [0.5, 1.0]),
                                ("uniform", [0.5, 0.3]), ("uniform-multilevel", [0.5, 0.3]))]}}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case == "equal width" else pytest.mark.slow) for case in CASES],
)
def test_the_same_results_as_in_memory(short, large, small_blocks, few_redraws, monkeypatch, case):
    document = scenario(
        short, **{key: value for key, value in CASES[case].items() if key != "data"}
    )
    if "data" in CASES[case]:
        document["data"] = {"source": str(short)} | CASES[case]["data"]
    apart = auditor.run(document)
    assert not [record.reason for record in apart.measurements if record.status == "failed"]
    assert {record.status for record in apart.measurements} >= {"ok"}
    assert figures(apart) == figures(in_memory(monkeypatch, document))

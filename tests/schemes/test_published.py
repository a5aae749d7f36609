"""Published copies of numbers."""

import numpy as np
import pandas as pd
import pytest

import auditor


@pytest.fixture
def folder(tmp_path):
    X = pd.DataFrame(
        np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 50.0], columns=["a", "b"]
    )
    X.to_csv(tmp_path / "original.csv", index=False)
    copy = auditor.perturb(X, "correlated", [0.5], seed=1).copies[0]
    copy.to_csv(tmp_path / "copy.csv", index=False)
    copy[["b", "a"]].to_csv(tmp_path / "turned.csv", index=False)
    copy.assign(a=1.0).to_csv(tmp_path / "suppressed.csv", index=False)
    np.savetxt(tmp_path / "law.csv", 0.5 * np.cov(X.T, bias=True), delimiter=",")
    return tmp_path


def measured(folder, *copies, **fields):
    scheme = {"name": "published", "copies": [str(folder / copy) for copy in copies]} | fields
    result = auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [scheme], "attacks": ["ndr"], "coalitions": ["subsets"],
    })  # fmt: skip
    return {
        (r.coalition, r.attribute): r
        for r in result.measurements
        if (r.metric, r.attack) == ("distortion", "ndr")
    }


def test_columns_are_found_by_name(folder):
    straight, transformed = measured(folder, "copy.csv"), measured(folder, "turned.csv")
    assert [r.value for r in straight.values()] == [r.value for r in transformed.values()]


def test_a_copy_may_have_suppressed_a_column(folder):
    X = pd.read_csv(folder / "original.csv")
    found = measured(folder, "suppressed.csv", "copy.csv")
    assert found[(1,), "a"].value == pytest.approx(((X["a"] - 1.0) ** 2).mean())
    assert {r.status for r in found.values()} == {"ok"}


def test_a_complete_copy_of_a_table_that_left_records_out_is_told_the_cause(folder):
    X = pd.read_csv(folder / "original.csv")
    X.loc[3, "a"] = np.nan
    X.to_csv(folder / "holes.csv", index=False)
    data, scheme = (
        {"source": str(folder / "holes.csv"), "missing": "drop"},
        {"name": "published", "copies": [str(folder / "copy.csv")]},
    )
    with pytest.raises(
        auditor.AuditorError,
        match=r"100 rows where the original has 99; .*`missing: drop` left records of the original out",
    ):
        auditor.run({"data": data, "schemes": [scheme], "attacks": ["ndr"]})

"""Copies of other anonymisation tools: ranges, masks and stars as sets of values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError
from auditor.data.copies import middles

RNG = np.random.default_rng(2**40 + 16)


def original(rows):
    zips = np.array([81667, 81675, 81925, 81929])
    return pd.DataFrame({"age": RNG.integers(20, 80, rows), "zip": RNG.choice(zips, rows)})


def recoded(table, suppressed):
    low = table.age // 10 * 10
    copy = pd.DataFrame(
        {"age": [f"[{a}, {a + 10}[" for a in low], "zip": [f"{z}**" for z in table.zip // 100]}
    )
    copy.loc[suppressed, :] = "*"
    return copy


def test_middles_are_those_of_intervals_clipped_to_the_ends_that_are_shown():
    cells = pd.Series(["[20, 30[", "30-40", "<20", "40+", "*", None, "25"])
    assert middles(cells).tolist()[:5] == [25, 35, 20, 40, 30]
    assert np.isnan(middles(cells)[5])
    for other in (["a", "20-30"], ["*", "*"], ["40-30"]):
        assert middles(pd.Series(other)) is None


@pytest.mark.parametrize(
    "columns",
    [["zip"], *(pytest.param(c, marks=pytest.mark.slow) for c in (["age"], ["age", "zip"]))],
)
def test_generalised_copies_are_audited_without_a_law(columns, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = original(2_000)
    suppressed = RNG.random(2_000) < 0.05
    table.to_csv("t.csv", index=False)
    recoded(table, suppressed).to_csv("copy.csv", index=False, sep=";")
    data = {"source": "t.csv", "columns": ["age"] if "age" in columns else ["zip"]}
    if "zip" in columns:
        data["categorical"] = ["zip"]
    scheme = {"name": "published", "copies": ["copy.csv"]}
    audit = {"schema": 1, "data": data, "schemes": [scheme], "attacks": "all"}
    found = auditor.run(audit).frame()
    if "age" in columns:  # a band or a star leaves the variance of the band's ages
        band = (table.age - table.age // 10 * 10).var() / table.age.var()
        errors = found[(found.metric == "normalized_error") & (found.attribute == "age")]
        assert errors.value.min() == pytest.approx(0.95 * band + 0.05, abs=0.02)
    if columns == ["zip"]:  # one of two by a mask, of four by a star
        (right,) = found[(found.metric == "accuracy") & (found.attack == "posterior")].value
        assert right == pytest.approx(0.95 / 2 + 0.05 / 4, abs=0.04)


def test_an_honest_partner_and_a_typing_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original(500).to_csv("t.csv", index=False)
    pd.DataFrame({"age": ["*"] * 499 + ["[20, 80["], "zip": "*"}).to_csv("blind.csv", index=False)
    pd.DataFrame({"zip": ["91***"] * 500}).to_csv("wrong.csv", index=False)
    data = {"source": "t.csv", "columns": ["age"], "categorical": ["zip"]}
    scheme = {"name": "published", "copies": ["blind.csv"], "aligned": True}
    audit = {"schema": 1, "data": data, "schemes": [scheme], "attacks": "all"}
    gains = auditor.run(audit | {"data": data | {"columns": ["zip"]}}).frame()
    assert gains[gains.metric == "accuracy_gain"].value.abs().max() < 0.1
    audit["schemes"] = [{"name": "published", "copies": ["wrong.csv"]}]
    with pytest.raises(AuditorError, match="500 records outside the original's domain"):
        auditor.run(audit | {"data": data | {"columns": ["zip"]}})

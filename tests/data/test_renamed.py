"""Columns of the original that a copy shows under another name, unit or coding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.data.describe import other_name
from tests.programs import python

RNG = np.random.default_rng(2**40 + 17)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, 500),
        "pay": RNG.lognormal(7, 0.5, 500).round(2),
        "sex": RNG.choice(["f", "m"], 500),
    }
)
NOISY = TABLE.age + RNG.normal(0, 90, 500)


@pytest.mark.parametrize(
    ("column", "shown", "found"),
    [
        ("pay", TABLE.pay / 1000, True),
        ("pay", 3 - 2.5 * TABLE.pay, True),
        ("pay", np.log(TABLE.pay), True),
        ("pay", RNG.permutation(TABLE.pay), False),
        ("sex", TABLE.sex.map({"f": 2, "m": 1}), True),
        ("sex", TABLE.sex.map({"f": "x", "m": "y"}), True),
        ("sex", pd.Series(RNG.choice(["f", "m"], 500)), False),
    ],
)
def test_a_column_is_found_in_other_units_and_codes(column, shown, found):
    frame = pd.DataFrame({"z": RNG.normal(size=500), "other": shown})
    assert other_name(TABLE[column], frame) == ("other" if found else None)


@pytest.mark.parametrize(
    ("copy", "column", "rebuilt"),
    [
        ({"age": NOISY, "k_pay": TABLE.pay / 1000}, "pay", True),
        ({"age": NOISY, "k_pay": RNG.permutation(TABLE.pay)}, None, False),
        pytest.param(
            {"age": NOISY, "g": TABLE.sex.map({"f": 2, "m": 1})},
            "sex",
            True,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_drafted_audit_looks_for_lacking_columns(copy, column, rebuilt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    pd.DataFrame(copy).to_csv("c.csv", index=False)
    said = python("-m", "auditor", "new", "s.yaml", "--data", "t.csv", "--copies", "c.csv")
    assert said.returncode == 0, said.stderr
    if not rebuilt:
        assert "'pay' is not in every copy" in (tmp_path / "s.yaml").read_text()
        return
    frame = auditor.run("s.yaml").frame()
    if column == "sex":
        assert frame[frame.metric == "accuracy"].value.max() > 0.99
    else:
        errors = frame[(frame.metric == "normalized_error") & (frame.attribute == column)]
        assert errors.value.min() < 0.01

"""The picture of the most exposed attribute: bins of ten records, by hand and against a naive count."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import auditor
from auditor.audit.base.session import CELLS, PER_DEVIATION, bins
from auditor.results.model import AuditResult


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 25)))
def test_bins_are_runs_of_ten_records_or_none_and_hide_the_extremes(counts):
    found = bins(counts)
    if counts.sum() < 10:
        assert found == []
        return
    assert [first for first, _, _ in found] == [0, *(stop for _, stop, _ in found[:-1])]
    assert found[-1][1] == len(counts)
    assert all(held == counts[a:b].sum() for a, b, held in found)
    assert all(held == 0 or held >= 10 for _, _, held in found)
    for a, b, held in found:  # an empty bin begins and ends at cells of ten records
        if held == 0:
            assert a == 0 or counts[a - 1] >= 10
            assert b == len(counts) or counts[b] >= 10


def numbers(rows, **more):
    rng = np.random.default_rng(2**40 + 1)
    table = pd.DataFrame({"pay": rng.lognormal(8, 1, rows), "age": rng.normal(40, 12, rows)})
    levels = [0.2, 0.8]
    return table, {
        "seed": 7, "attacks": ["llse"], "coalitions": ["subsets"],
        "schemes": [{"name": "corner-wave", "levels": levels}, {"name": "independent", "levels": levels}], **more,
    }  # fmt: skip


@pytest.mark.slow
def test_a_picture_is_what_the_strongest_attack_estimates(tmp_path):
    table, scenario = numbers(3000)
    file = tmp_path / "staff.parquet"
    table.to_parquet(file)
    source = {"data": {"source": str(file), "disclosure": "public"}}
    result = auditor.run({**scenario, **source})
    assert [one.scheme for one in result.pictures] == ["corner-wave", "independent"]
    for one in result.pictures:
        errors = [
            (round(r.value, 9), len(r.coalition)) for r in result.measurements
            if r.metric == "normalized_error" and r.attribute != "*" and r.scheme == one.scheme
        ]  # fmt: skip
        mine = [
            (round(r.value, 9), len(r.coalition)) for r in result.measurements
            if r[1:5] == one[1:5] and (r.metric, r.attribute) == ("normalized_error", one.attribute)
        ]  # fmt: skip
        assert mine == [min(errors)]
        x = table[one.attribute].to_numpy()
        cell = np.floor((x - x.mean()) / x.std() * PER_DEVIATION + CELLS / 2).clip(0, CELLS - 1)
        naive = np.bincount(cell.astype(int), minlength=CELLS)
        assert one.original == tuple((a, b, n / 3000) for a, b, n in bins(naive))
        for part in (one.original, one.shown, one.estimate, one.joint):
            assert sum(each[-1] for each in part) == pytest.approx(1.0)
        near = sum(s for a, b, c, d, s in one.joint if c <= b and a <= d)
        assert near > 0.7  # most estimates are in the original's bin or next to it
    assert AuditResult.load(result.save(tmp_path / "out")).pictures == result.pictures
    lines = {**scenario, "data": source["data"], "seed": 7}
    assert auditor.run(lines, workers=2).pictures == result.pictures


@pytest.mark.slow
def test_a_picture_of_a_private_table_is_rounded_and_has_no_value(tmp_path):
    table, scenario = numbers(800)
    table.loc[0, "pay"] = 987654.321
    table.to_csv(tmp_path / "staff.csv", index=False)
    result = auditor.run({**scenario, "data": {"source": str(tmp_path / "staff.csv")}})
    written = json.loads(result.to_json())["pictures"]
    assert written
    assert "987654" not in json.dumps(written)
    exact = [one[-1] for one in result.pictures[0].original]
    shares = [one[-1] for one in written[0]["original"]]
    assert shares != exact
    errors = [
        abs(a - b) <= np.sqrt(b * (1 - b) / 800) / 2 for a, b in zip(shares, exact, strict=True)
    ]
    assert all(errors)
    few, scenario = numbers(9)
    few.to_csv(tmp_path / "few.csv", index=False)
    nine = auditor.run({**scenario, "data": {"source": str(tmp_path / "few.csv")}})
    assert json.loads(nine.to_json())["pictures"] == []


def test_a_picture_of_categories_has_the_right_guesses_on_its_diagonal():
    made = auditor.run({
        "seed": 1, "schemes": [{"name": "uniform-multilevel", "levels": [0.8, 0.3]}], "attacks": ["posterior"],
        "data": {"source": "cps", "columns": ["age"], "rows": 2000, "bin": {"age": {"quantile": 4}}},
    })  # fmt: skip
    (one,) = made.pictures
    right = next(
        r.value for r in made.measurements if r.metric == "accuracy" and r.coalition == (1,)
    )
    diagonal = sum(share for a, b, c, d, share in one.joint if (a, b) == (c, d) and b == a + 1)
    assert (one.width, one.cells, one.copy) == (0.0, 4, 1)
    assert diagonal == pytest.approx(right, abs=1e-9)

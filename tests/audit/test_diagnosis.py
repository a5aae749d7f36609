"""Diagnosis of copies from files: planted causes, and the sentence that names them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from auditor_reports.markdown import Markdown
from tests.audited import audited_files

RNG = np.random.default_rng(2**41 + 91)
START = RNG.bit_generator.state
N = 800


def audit(folder, table, copies, **data):
    result = audited_files(folder, table, copies, data, coalitions=["singles", "all"])
    frame = result.frame()
    frame = frame.assign(copies=frame.coalition.map(tuple))
    figures = frame.set_index(["metric", "attribute", "copies"]).value
    return result.expectations[0], figures, Markdown().render([result])


def people():
    return pd.DataFrame({"pay": RNG.lognormal(7, 0.5, N), "age": RNG.uniform(18, 90, N)})


def test_the_same_noise_in_two_copies_is_named_with_its_scale(tmp_path):
    table = people()
    noise, other = (RNG.normal(size=(N, 2)) * 2 * table.std().to_numpy() for _ in range(2))
    copies = [table + 2 * noise, table + other, table + noise]
    record, figures, page = audit(tmp_path, table, copies)
    assert record.status == "fails"
    assert "copies 1 and 3 carry the same noise, scaled by 2" in record.why
    assert abs(figures["noise_correlation(1, 2)", "pay", (1, 2)]) < 0.15
    assert figures["noise_ratio(1, 3)", "age", (1, 3)] == pytest.approx(2.0)
    assert "- Copies 1 and 3 carry the same noise." in page
    assert "| copies 1 and 3 | age | 1 | " in page
    on_value = np.corrcoef(other[:, 0], table["pay"])[0, 1]
    assert figures["noise_on_value", "pay", (2,)] == pytest.approx(on_value)


def test_kept_values_and_rounding_are_counted(tmp_path):
    table = people()
    kept = RNG.random(N) < 0.4
    pay = np.where(kept, table["pay"], table["pay"] + RNG.normal(size=N) * 3_000)
    copy = pd.DataFrame({"pay": pay, "age": (table["age"] / 5).round() * 5})
    record, figures, page = audit(tmp_path, table, [copy])
    assert figures["values_equal", "pay", (1,)] == pytest.approx(kept.mean())
    assert figures["rounding_step", "age", (1,)] == 5.0
    assert record.status != "holds"
    assert "copy 1 shows 4" in record.why
    assert re.search(r"copy 1 \| age \| [\d.]+ % \| −?[\d.]+ \| 5 \|", page)


@pytest.mark.parametrize("leaks", [True, False])
def test_every_shown_column_is_described(tmp_path, leaks):
    table = people()
    grade = pd.qcut(table["pay"], 12, labels=False) if leaks else RNG.integers(0, 12, N)
    table["grade"] = pd.Series(grade).map("E{}".format)
    table["person"] = [f"p{place}" for place in RNG.permutation(N)]
    table["score"] = RNG.normal(size=N)
    copy = table.assign(
        pay=table["pay"] + RNG.normal(size=N) * 3_000, age=table["age"] + RNG.normal(size=N) * 60
    )
    record, figures, page = audit(tmp_path, table, [copy], columns=["pay", "age"])
    assert figures["column_equal(grade)", "*", (1,)] == 1.0
    assert figures["column_equal(score)", "*", (1,)] == 1.0
    assert figures["column_unique(score)", "*", (1,)] == 1.0
    groups = table.groupby("grade")["pay"]
    within = ((table["pay"] - groups.transform("mean")) ** 2).sum() / (N - 12)
    tells = max(0.0, 1 - within / table["pay"].var())
    assert figures["column_tells(grade)", "pay", (1,)] == pytest.approx(tells)
    assert (tells > 0.5) == leaks
    assert ("the shown column 'grade' tells" in record.why) == leaks
    assert re.search(r"\| person \| copy 1 \| 100 % \| 100 % \|", page)
    assert bool(re.search(r"\| grade \| copy 1 \| 100 % \| 0 % \| pay [6-9]\d %", page)) == leaks

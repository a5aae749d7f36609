"""Diagnosis of copies and their last digits."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.law_tests.numeric import last_digits_test
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor_reports.pages import Markdown
from tests.audited import audited_files

RNG = np.random.default_rng(2**41 + 91)
START = RNG.bit_generator.state
N = 500


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


ORIGINALS = {
    "whole": lambda rng, n: rng.poisson(3.0, n).astype(float), "income": lambda rng, n: np.exp(8.0 + rng.normal(size=n)),
    "normal": lambda rng, n: rng.normal(size=n), "constant but for one": lambda rng, n: np.r_[np.full(n - 1, 5.0), 9.0],
}  # fmt: skip
NOISE = {
    "laplace": lambda rng, std, n: rng.laplace(0.0, std / math.sqrt(2.0), n), "gaussian": lambda rng, std, n: rng.normal(0.0, std, n),
    "uniform": lambda rng, std, n: rng.uniform(-math.sqrt(3.0) * std, math.sqrt(3.0) * std, n),
}  # fmt: skip


def p_value(x, y, distribution="gaussian", std=1.0):
    law = KroneckerNoise(np.eye(1), np.eye(1) * std**2, distribution=distribution)
    found = last_digits_test(law, x[:, None], y[:, None, None], ["x"], [1])
    return None if found is None else found.p


@pytest.mark.parametrize("kind", ["whole", "income", "normal"])
@pytest.mark.parametrize("distribution", list(NOISE))
def test_noise_straight_from_numpy_is_found(kind, distribution):
    rng = np.random.default_rng(1)
    x = ORIGINALS[kind](rng, 1_000)
    std = 2.0 * x.std()
    assert p_value(x, x + NOISE[distribution](rng, std, len(x)), distribution, std) < 1e-9


def smooth(y, rng):
    return y * (1.0 + rng.integers(-(2**20), 2**20, len(y)) * 2.0**-52)


HONEST = {
    "smooth": smooth, "decimals": lambda y, rng: np.round(y, 3), "single": lambda y, rng: y.astype(np.float32).astype(float),
    "a grid": lambda y, rng: np.round(y * 2.0**14) / 2.0**14, "fifteen digits": lambda y, rng: np.array([float(f"{v:.15g}") for v in y]),
    "cut off": lambda y, rng: np.clip(smooth(y, rng), 0.0, 4.0), "cut off elsewhere": lambda y, rng: np.clip(smooth(y, rng), 2.0, 1e4),
    "the original": lambda y, rng: np.rint(y),
}  # fmt: skip


@pytest.mark.parametrize("write", list(HONEST))
@pytest.mark.parametrize("distribution", list(NOISE))
def test_honest_values_are_not_accused(write, distribution):
    rng = np.random.default_rng(2)
    for kind in ORIGINALS:
        for std in (0.1, 1.0, 30.0):
            for _ in range(3):
                x = ORIGINALS[kind](rng, 300)
                found = p_value(
                    x, HONEST[write](x + NOISE[distribution](rng, std, len(x)), rng), distribution,
                    std,
                )  # fmt: skip
                assert found is None or found > 1e-4, (kind, std)


@pytest.mark.parametrize(("make", "status"), [(lambda X: X + np.random.default_rng(3).laplace(0.0, 10.0, X.shape), "fails"),
                                              (lambda X: auditor.perturb(X, "laplace", [1.0], noise={"variance": 200.0}).copies[0], "holds")])  # fmt: skip
@pytest.mark.slow_after_first
def test_an_audit_of_files_shows_it_without_being_asked(tmp_path, make, status):
    X = pd.DataFrame({"rooms": np.random.default_rng(1).integers(1, 9, 2_000).astype(float)})
    law = {"scheme": "laplace", "noise": {"variance": 200.0}}
    how = {"aligned": True, "levels": [1.0], "law": law}
    expect = [{"noise-follows-law": {"resolution": 0.5, "last-digits": asked}} for asked in (True, False)]  # fmt: skip
    result = audited_files(tmp_path, X, [make(X)], None, how, coalitions=["all"], expect=expect)
    assert [record.status for record in result.expectations] == [status, "holds"]
    assert ("last digits of published" in result.expectations[0].why) == (status == "fails")

"""Exposure of the worst group of records: a small group with little noise, and its partner."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.privacy import group_codes
from tests.audited import NO_LEARNER, audited_files

N = 3_000
RNG = np.random.default_rng(2**41 + 61)
START = RNG.bit_generator.state


def audit(folder, table, copy, by, knowledge=("perfect",)):
    bounds = {"unknown": {"at-least": 0.3}, "close": {"at-most": 0.3}}
    expect = [{"exposure": bounds}, {"exposure": {"by": by} | bounds}]
    more = {"attacks": ["llse", "ndr"], "expect": expect, "knowledge": list(knowledge)}
    return audited_files(folder, table, [copy], {"columns": ["pay", "age"]}, **more)


@pytest.mark.parametrize("by", ["region", "age"])
@pytest.mark.parametrize("leaks", [True, False])
def test_a_group_with_little_noise_is_found(tmp_path, leaks, by):
    table = pd.DataFrame({"pay": RNG.lognormal(7, 0.4, N), "age": RNG.uniform(18, 90, N)})
    table["region"] = np.where(table["age"] < 24, "secret-name", RNG.choice(list("abcd"), N))
    noise = RNG.normal(size=(N, 2)) * 3 * table[["pay", "age"]].std().to_numpy()
    if leaks:
        noise[table["age"] < 24] *= 0.02
    copy = table[["pay", "age"]] + noise
    whole, grouped = audit(tmp_path, table, copy, by).expectations
    assert whole.status == "holds"
    assert grouped.status == ("fails" if leaks else "holds")
    assert "secret-name" not in grouped.why
    assert not leaks or ("records" in grouped.why and by in grouped.why)


@pytest.mark.parametrize("size", [80, 120])
def test_a_group_in_which_a_leak_could_hide_gets_no_tick(tmp_path, size):
    table = pd.DataFrame({"pay": RNG.lognormal(7, 0.4, N), "age": RNG.uniform(18, 90, N)})
    table["region"] = np.where(RNG.permutation(N) < size, "a", "b")
    copy = (
        table[["pay", "age"]] + RNG.normal(size=(N, 2)) * 3 * table[["pay", "age"]].std().to_numpy()
    )
    whole, grouped = audit(tmp_path, table, copy, "region").expectations
    assert (whole.status, grouped.status) == ("holds", "holds" if size > 94 else "undecided")
    assert ("one of a group's 80 records could escape" in grouped.why) == (size == 80)


def test_groups_are_numbered_by_size_and_small_ones_left_out():
    codes = group_codes(np.repeat([3.0, 1.0, 2.0], [70, 49, 50]))
    assert codes.tolist() == [0] * 70 + [-1] * 49 + [1] * 50
    assert np.bincount(group_codes(RNG.normal(size=1_000))).tolist() == [100] * 10


def test_a_group_s_figures_are_the_naive_ones(tmp_path):
    table = pd.DataFrame({"pay": RNG.normal(50, 9, N), "age": RNG.uniform(18, 90, N)})
    table["region"] = RNG.choice(list("aab"), N)
    copy = table[["pay", "age"]] + RNG.normal(size=(N, 2)) * [9.0, 20.0]
    frame = audit(tmp_path, table, copy, "region", NO_LEARNER).frame()
    ndr = frame[(frame.attack == "ndr") & (frame.attribute == "pay")].set_index("metric").value
    group = table["region"] == "a"
    x, y = table["pay"][group], copy["pay"][group]
    assert ndr["group_error(region, 1 of 2)"] == pytest.approx(
        ((y - x) ** 2).mean() / x.var(ddof=0), rel=1e-5
    )


def test_an_unknown_column_is_refused_with_the_nearest_name(tmp_path):
    table = pd.DataFrame({"pay": RNG.normal(size=300), "age": RNG.normal(size=300), "region": "a"})
    with pytest.raises(auditor.AuditorError, match="region"):
        audit(tmp_path, table, table[["pay", "age"]] + 1.0, "regionn")

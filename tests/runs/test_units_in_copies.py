"""Kept columns that group records, and one noise per unit."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from auditor.base import AuditorError, AuditorWarning
from auditor.runs.copy_files.draw import Treatment
from auditor.runs.copy_files.read import append_copies
from auditor.runs.copy_files.write import write_copies

RNG = np.random.default_rng(2**40 + 21)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hid = RNG.permutation(np.repeat(np.arange(300), 4))
    frame = pd.DataFrame({"hid": hid, "rent": RNG.lognormal(6, 0.5, 300).round()[hid]})
    frame["age"] = RNG.integers(0, 90, 1_200)
    frame["dice"] = RNG.integers(0, 6, 1_200)
    frame.to_csv("t.csv", index=False)
    return frame


def write(tmp_path, unit=None, keep=("hid",), seed=2**33 + 1):
    columns, treatment = ["rent", "age"], Treatment(unit=unit)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        write_copies(
            "t.csv", "corner-wave", [0.5, 2.0], seed, tmp_path / "out", columns, keep=keep,
            treatment=treatment,
        )  # fmt: skip
    return [str(each.message) for each in said if each.category is AuditorWarning]


def test_a_kept_column_that_groups_records_with_equal_values_is_warned_about(table, tmp_path):
    assert any("'hid' is kept, and within its groups 'rent' has 0%" in n for n in write(tmp_path))


@pytest.mark.parametrize(("keep", "unit"), [(("dice",), None), (("hid",), "hid")])
def test_no_warning_of_a_column_that_says_nothing_or_names_the_units(table, tmp_path, keep, unit):
    assert not any("is kept" in note for note in write(tmp_path, unit, keep))


def test_records_of_a_unit_have_one_noise_where_the_unit_has_one_value(table, tmp_path):
    write(tmp_path, "hid")
    copies = [pd.read_csv(tmp_path / f"out/copy-{k}.csv") for k in (1, 2)]
    for copy, level in zip(copies, (0.5, 2.0), strict=True):
        noise = copy[["rent", "age"]] - table[["rent", "age"]]
        assert (noise.rent.groupby(table.hid).nunique() == 1).all()
        assert (noise.age.groupby(table.hid).nunique() == 4).all()
        # averaging over the members gains no accuracy: 300 draws of variance 0.5 or 2, ± 4 deviations
        means = noise.rent.groupby(table.hid).mean()
        expected = level * table.rent.var(ddof=0)
        assert abs(means.var() / expected - 1) < 4 * np.sqrt(2 / 300)
    # the second copy is the first with more noise, unit by unit
    first, more = (
        (a.rent - b).groupby(table.hid).first()
        for a, b in ((copies[0], table.rent), (copies[1], copies[0].rent))
    )
    assert abs(np.corrcoef(first, more)[0, 1]) < 4 / np.sqrt(300)


def test_a_release_with_a_noise_per_unit_is_not_appended_to(table, tmp_path):
    write(tmp_path, "hid", seed=None)
    table.assign(hid=table.hid + 300, age=table.age[::-1].to_numpy()).to_csv("new.csv", index=False)
    with pytest.raises(AuditorError, match="one noise per unit"):
        append_copies("new.csv", tmp_path / "out", ["t.csv"])

"""``auditor perturb --missing --round --clip``."""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import auditor
from auditor.base import AuditorError, AuditorWarning
from auditor.cli import cli
from auditor.data.columns import scan as streamed
from auditor.runs.copy_files.draw import Treatment
from auditor.runs.copy_files.write import write_copies
from tests.tiers import each_once

ROWS = 900
NAMES = ["hired", "pay", "age"]


@pytest.fixture
def staff():
    rng = np.random.default_rng(3)
    pay = np.round(rng.normal(3_000, 700, ROWS), 2)
    return pd.DataFrame({
        "id": np.arange(ROWS), "hired": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(7_000, size=ROWS), unit="D"),
        "pay": np.where(np.arange(ROWS) % 50 == 7, np.nan, pay), "age": rng.integers(18, 66, ROWS), "team": np.array(list("abc"))[rng.integers(3, size=ROWS)],
    })  # fmt: skip


@pytest.fixture
def path(tmp_path, staff):
    pay = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) if x == x else "" for x in staff["pay"]]
    staff.assign(pay=pay).to_csv(tmp_path / "staff.csv", index=False, sep=";")
    return str(tmp_path / "staff.csv")


def made(data, levels, folder, treatment, seed=1, scheme="corner-wave", columns=NAMES, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AuditorWarning)
        written = write_copies(
            data, scheme, levels, seed, Path(folder), columns, treatment=treatment, **options
        )
    read = [
        pd.read_csv(each) if each.suffix == ".csv" else pd.read_parquet(each)
        for each in written[:-1]
    ]
    return read, [str(each.message) for each in caught], json.loads(written[-1].read_text())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rounded_columns_come_back_as_the_kind_that_they_were(path, tmp_path, staff, form):
    read, noted, manifest = made(
        path, [0.5, 0.0], tmp_path / "out", Treatment("keep", True), form=form
    )
    for copy in read:
        copy["hired"] = pd.to_datetime(copy["hired"])
        assert pd.api.types.is_integer_dtype(copy["age"])
        assert copy["pay"].isna().equals(staff["pay"].isna())
        np.testing.assert_array_equal(copy["pay"], np.round(copy["pay"], 2))
        assert (copy["hired"].dt.normalize() == copy["hired"]).all()
    pd.testing.assert_frame_equal(read[1], staff[NAMES], check_dtype=False)
    assert not np.array_equal(read[0]["age"], staff["age"])
    assert manifest["post_processing"] == {"round": {"hired": 1.0, "pay": 0.01, "age": 1.0}}
    assert (manifest["missing"], manifest["grid"], manifest["for_study_only"]) == ("keep", {}, True)
    assert "seed" not in json.dumps(manifest)
    assert noted[0] == (
        "kept blank in every copy: 18 blank cells in 18 of 900 records, most in column 'pay'; "
        "every recipient sees which cells are blank, and of whom if records can be told"
    )
    assert noted[-1].startswith("left out: 'id', 'team';")


@pytest.mark.parametrize(("held", "missing"), each_once([0, 2**30], ["keep", "drop"]))
def test_blanks_keep_their_places_in_every_block(path, tmp_path, staff, monkeypatch, held, missing):
    from auditor.data.formats import parts

    monkeypatch.setattr(streamed, "HELD_BYTES", held)
    monkeypatch.setattr(parts, "CSV_BYTES", 9_000)
    read, _, manifest = made(
        path, [0.5, 1.0], tmp_path / "out", Treatment(missing), keep=["id", "team"]
    )
    rows = staff if missing == "keep" else staff[staff["pay"].notna()].reset_index(drop=True)
    assert manifest["rows"] == len(rows)
    for copy in read:
        assert list(copy) == list(staff)
        pd.testing.assert_frame_equal(copy[["id", "team"]], rows[["id", "team"]], check_dtype=False)
        assert copy["pay"].isna().equals(rows["pay"].isna())
        assert np.corrcoef(copy["pay"].dropna(), rows["pay"].dropna())[0, 1] > 0.5


def test_copies_are_cut_off_at_stated_bounds_on_the_steps_within(path, tmp_path):
    bounds = {"age": ("17.5", "65.2"), "pay": ("0", ""), "hired": ("2001-01-01", "2021-01-01")}
    (copy,), _, manifest = made(path, [2.0], tmp_path / "out", Treatment("drop", True, bounds))
    assert (copy["age"].min(), copy["age"].max(), copy["pay"].min()) == (18, 65, 0.0)
    assert (copy["hired"].min(), copy["hired"].max()) == ("2001-01-01", "2021-01-01")
    assert manifest["post_processing"]["clip"] == {
        name: list(pair) for name, pair in bounds.items()
    }
    how = Treatment("drop", False, {"": ("20", "3000")})
    (copy,), _, manifest = made(path, [2.0], tmp_path / "all", how, columns=["pay", "age"])
    assert (copy["pay"].max(), copy["age"].min()) == (3000.0, 20.0)
    assert manifest["post_processing"] == {"clip": {"*": ["20", "3000"]}}
    assert manifest["grid"] == {}


@pytest.mark.parametrize(("treatment", "scheme", "message"), [(Treatment("drop", bounds={"aeg": ("0", "1")}), "corner-wave", r"^bounds: no column 'aeg' is perturbed; did you mean 'age'\?$"), (Treatment("drop", bounds={"age": ("x", "1")}), "corner-wave", "'age': each must be a number; got 'x'"), (Treatment("drop", bounds={"hired": ("9", "")}), "corner-wave", "'hired': each must be a date, as 2020-01-31; got '9'"), (Treatment("drop", True), "rotation", "rotation are not the table's columns plus noise: none is rounded, cut off or left blank"), (Treatment("drop", True), "uniform", "are of categories, which are neither rounded nor cut off")])  # fmt: skip
def test_impossible_requests_leave_no_files(path, tmp_path, treatment, scheme, message):
    with pytest.raises(AuditorError, match=message):
        made(path, [0.5], tmp_path / "out", treatment, scheme=scheme)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_audit_reads_data_and_copies_without_an_edit(path, tmp_path):
    arguments = [
        "perturb", path, *"--scheme corner-wave --levels 0.5,1.0 --seed 3 --columns".split(),
        ",".join(NAMES), "--missing", "keep",
    ]  # fmt: skip
    more = ["--round", "--clip", "age=0:120", "--output", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, [*arguments, *more])
    assert result.exit_code == 0, result.output
    copies = [str(tmp_path / f"out/copy-{k}.csv") for k in (1, 2)]
    found = auditor.run({
        "schema": 1, "seed": 1, "data": {"source": path, "columns": ["pay", "age"], "dates": ["hired"], "missing": "drop"},
        "schemes": [{"name": "published", "copies": copies}], "knowledge": [{"estimated": {"rows": 800}}], "coalitions": ["all"], "attacks": ["llse"],
    })  # fmt: skip
    cells = found.frame()
    cells = cells[(cells["metric"] == "normalized_error") & (cells["attribute"] != "*")]
    assert set(cells["status"]) == {"ok"}
    np.testing.assert_allclose(cells["value"], 1 / 3, rtol=0.2)

"""``auditor perturb --keep``."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import auditor.runs.copy_files
from auditor.cli import cli
from auditor.data.formats import parts
from auditor.errors import AuditorError
from auditor.runs.copy_files import write_copies

ROWS = 700


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "illness", "note", "age", "zip"])
        for k in range(ROWS):
            note = ["", "a, b", 'he said "no"', "line\nbreak", "=1+1", "NA"][k % 6]
            writer.writerow([
                f"{k:05d}", ["flu", "none", "cold"][rng.integers(3)], note, rng.integers(20, 90),
                f"0{k % 97}.50",
            ])  # fmt: skip
    return str(tmp_path / "people.csv")


def cells(path):
    with Path(path).open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("batch", [7, 2**16])
@pytest.mark.parametrize(
    ("scheme", "column", "level"),
    [("uniform-multilevel", "illness", 0.3), ("corner-wave", "age", 0.5)],
)
def test_what_is_kept_is_the_same_text_row_by_row_in_the_files_order(
    path, tmp_path, monkeypatch, batch, scheme, column, level
):
    monkeypatch.setattr(parts, "CSV_BYTES", 40 * batch)
    write_copies(
        path, scheme, [level, level / 2], 1, tmp_path / "out", [column], keep=["zip", "note", "id"]
    )
    original = cells(path)
    names = [name for name in original[0] if name in {"zip", "note", "id", column}]
    for copy in ("copy-1.csv", "copy-2.csv"):
        released = cells(tmp_path / "out" / copy)
        assert released[0] == names
        for name in ("id", "note", "zip"):
            of, to = original[0].index(name), names.index(name)
            assert [row[to] for row in released[1:]] == [row[of] for row in original[1:]]
    assert json.loads((tmp_path / "out" / "release.json").read_text())["kept"] == [
        "zip",
        "note",
        "id",
    ]


LABELS = {"sex": {1: "male", 2: "female"}}


def labelled(path):
    frame = pd.DataFrame({
        "sex": [1.0, 2.0, np.nan, 9.0] * 10, "wave": [7.0, 8.0] * 20,
        "pay": np.arange(40.0) ** 1.5,
    })  # fmt: skip
    if path.suffix == ".dta":
        frame.astype({"wave": np.int16}).to_stata(path, write_index=False, value_labels=LABELS)
    else:
        pytest.importorskip("pyreadstat").write_sav(frame, path, variable_value_labels=LABELS)
    return str(path)


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_what_is_kept_of_a_labelled_column_are_its_labels_and_whole_numbers_have_no_point(
    tmp_path, suffix
):
    source = labelled(tmp_path / f"t{suffix}")
    for form in ("csv", "parquet"):
        write_copies(
            source,
            "corner-wave",
            [0.5],
            1,
            tmp_path / form,
            ["pay"],
            keep=["sex", "wave"],
            form=form,
        )
    assert [row[:2] for row in cells(tmp_path / "csv" / "copy-1.csv")[1:5]] == [
        ["male", "7"],
        ["female", "8"],
        ["", "7"],
        ["9", "8"],
    ]
    copy = pd.read_parquet(tmp_path / "parquet" / "copy-1.parquet")
    assert copy["sex"][[0, 1, 3]].tolist() == ["male", "female", "9"]
    assert pd.isna(copy["sex"][2])
    assert copy["wave"].dtype.kind == "i"


@pytest.mark.parametrize(("options", "message"), [
    (["--keep", "illness"], "is to be perturbed and kept"),
    (["--keep", "ilness"], "illness"),
    (["--keep", "id", "--keep-rest"], "one of the two"),
])  # fmt: skip
def test_requests_that_make_no_sense_leave_nothing_behind(path, tmp_path, options, message):
    out = tmp_path / "out"
    arguments = [
        "perturb", path, *"--scheme uniform --levels 0.3 --output".split(), str(out), "--columns",
        "illness", *options,
    ]  # fmt: skip
    result = CliRunner().invoke(cli, arguments)
    assert isinstance(result.exception, AuditorError)
    assert message in str(result.exception)
    assert not out.exists()


def test_a_registered_source_is_no_file_and_nothing_is_kept_unasked(path, tmp_path):
    with pytest.raises(AuditorError, match="can be kept of a file"):
        write_copies(
            "iris",
            "corner-wave",
            [0.5],
            1,
            tmp_path / "out",
            ["petal_length"],
            keep=["petal_width"],
        )
    auditor.runs.copy_files.write_copies(path, "corner-wave", [0.5], 1, tmp_path / "out", ["age"])
    assert cells(tmp_path / "out" / "copy-1.csv")[0] == ["age"]

"""``auditor perturb --keep``."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from auditor.base import AuditorError
from auditor.cli import cli
from auditor.data.formats import parts
from auditor.runs.copy_files.write import write_copies

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
def test_kept_columns_keep_text_and_order(
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
        "zip", "note", "id",
    ]  # fmt: skip


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

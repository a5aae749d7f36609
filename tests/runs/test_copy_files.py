"""Copies written block by block."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.base import AuditorError, AuditorWarning
from auditor.data.columns import scan as streamed
from auditor.data.formats.text_files import _exact_floats
from auditor.runs.copy_files.write import write_copies
from tests.tiers import each_once

ROWS, TWO_BLOCKS, LEVELS = 10_000, 6_000, [0.25, 1.0, 0.5]

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    return pd.DataFrame({
        "age": rng.integers(18, 80, ROWS), "salary": np.exp(10 + rng.standard_normal(ROWS)),
        "tax": rng.random(ROWS),
    })  # fmt: skip


@pytest.fixture(params=[0, 2**30], ids=["streamed", "held"])
def held(request, monkeypatch):
    monkeypatch.setattr(streamed, "HELD_BYTES", request.param)


DRAWN = {
    "corner-wave": {"algorithm": "bridge"}, "independent": {},
    "rotation-noise": {"noise": "corner-wave"}, "random-projection": {"dimensions": 2},
}  # fmt: skip


@pytest.mark.parametrize(("scheme", "form"), each_once(DRAWN, ["csv", "parquet"]))
@pytest.mark.slow_after_first
def test_the_values_that_perturb_makes(tmp_path, frame, held, form, scheme):
    parameters, frame = DRAWN[scheme], frame[:TWO_BLOCKS]
    source = tmp_path / "table.parquet"
    frame.to_parquet(source, row_group_size=2_700)
    levels = [0.0] if scheme == "random-projection" else LEVELS
    release = auditor.perturb(frame, scheme, levels, seed=5, **parameters)
    written = write_copies(
        str(source), scheme, levels, 5, tmp_path / "out", parameters=parameters, form=form
    )
    assert [path.name for path in written] == [
        *(f"copy-{k + 1}.{form}" for k in range(len(levels))),
        "release.json",
    ]
    for path, copy in zip(written, release.copies, strict=False):
        read = pd.read_csv(path, **_exact_floats()) if form == "csv" else pd.read_parquet(path)
        pd.testing.assert_frame_equal(read, copy, check_exact=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        path.name for path in written
    )


def test_an_error_leaves_nothing(tmp_path, frame, held, monkeypatch):
    from auditor.runs.copy_files import write as writing

    source, appended = tmp_path / "table.parquet", []
    frame.to_parquet(source)
    append = writing._File.append

    def full(self, part):
        appended.append(part)
        if len(appended) == 5:
            raise OSError(28, "No space left on device")
        append(self, part)

    monkeypatch.setattr(writing._File, "append", full)
    with pytest.raises(AuditorError, match="No space left on device"):
        write_copies(str(source), "corner-wave", LEVELS, 5, tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()


def table_in(folder, name="table.csv"):
    folder.mkdir(exist_ok=True)
    pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": [2.0, 1.0, 4.0]}).to_csv(folder / name, index=False)
    return str(folder / name)


def test_copies_are_not_written_over_the_data_nor_among_its_parts(tmp_path):
    data = table_in(tmp_path / "in", "copy-1.csv")
    before = Path(data).read_bytes()
    for folder in (tmp_path / "in", tmp_path / "in" / ".." / "in"):
        with pytest.raises(AuditorError, match="copy would be written over it"):
            write_copies(data, "correlated", [0.5], 1, folder)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(AuditorError, match="copy would be written over it"):
        write_copies(data, "correlated", [0.5], 1, tmp_path / "link")
    with pytest.raises(AuditorError, match="would be taken for parts"):
        write_copies(str(tmp_path / "in"), "correlated", [0.5], 1, tmp_path / "in")
    assert Path(data).read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["copy-1.csv"]


def test_a_release_that_is_out_is_replaced_only_by_force_and_then_wholly(tmp_path):
    data, folder = table_in(tmp_path), tmp_path / "out"
    write_copies(data, "corner-wave", [0.5, 1.0], 1, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for scheme, levels, form in (
        ("corner-wave", [0.5, 1.0], None),
        ("independent", [0.5], None),
        ("independent", [0.5, 1.0], "parquet"),
    ):
        with pytest.raises(
            AuditorError,
            match=r"holds a release of 3 records \(corner-wave, levels 0.5, 1\), and a second one .* with --force",
        ):
            write_copies(data, scheme, levels, 2, folder, form=form)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    with pytest.warns(
        AuditorWarning,
        match=r"a release of 3 records \(corner-wave, levels 0.5, 1\) is lost: it can no longer be extended",
    ):
        write_copies(data, "independent", [0.5], 1, folder, form="parquet", force=True)
    assert sorted(path.name for path in folder.iterdir()) == ["copy-1.parquet", "release.json"]
    (folder / "release.json").unlink()
    with pytest.raises(AuditorError, match=r"holds copy-1\.parquet of another release"):
        write_copies(data, "corner-wave", [0.5], 1, folder)

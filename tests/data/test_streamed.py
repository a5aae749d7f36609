"""Tables that stay in their files."""

import pickle
import tempfile
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from large_tables import FORMS, load, write

from auditor.base import DataError
from auditor.data.columns import scan as streamed
from auditor.data.formats import parts as pieces
from auditor.numerics.blocks import row_blocks
from tests.tiers import each_once

ROWS = 150_000
CSV_ROWS = 95_000


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(streamed, "HELD_BYTES", 100_000)
    monkeypatch.setattr(pieces, "CSV_BYTES", 2**18)


def columns(rows=ROWS, gaps=False):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, rows),
        "far": 1e7 + rng.standard_normal(rows).cumsum() / 100,
        "salary": np.exp(10 + rng.standard_normal(rows)),
    })  # fmt: skip
    if gaps:
        for k, name in enumerate(frame):
            frame[name] = frame[name].astype(float).mask(rng.random(rows) < 0.01 * (k + 1))
    return frame


def rows_of(form):
    return CSV_ROWS if "csv" in form else ROWS


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The table in a form, with gaps or without, written once."""

    @cache
    def path(form, gaps=False):
        return write(columns(rows_of(form), gaps), tmp_path_factory.mktemp("columns"), form)

    return path


ASKED = {
    "plain": {}, "standardize": {"standardize": True}, "columns": {"columns": ["salary", "age"]},
    "rows": {"rows": 70_001}, "rows and standardize": {"rows": 70_001, "standardize": True},
}  # fmt: skip


@pytest.mark.parametrize(("asked", "form"), each_once(ASKED, FORMS))
@pytest.mark.slow_after_first
def test_the_same_bytes_as_in_memory(written, small, monkeypatch, form, asked):
    path = written(form)
    large = load(path, **ASKED[asked])
    monkeypatch.setattr(streamed, "HELD_BYTES", 2**30)
    held = load(path, **ASKED[asked])
    assert (large.streamed, held.streamed) == (True, False)
    same(large, held)


@pytest.mark.parametrize(("missing", "form"), each_once(["drop", "mean"], FORMS))
@pytest.mark.slow_after_first
def test_missing_values_are_treated_as_in_memory(written, small, monkeypatch, form, missing):
    path = written(form, gaps=True)
    rows = rows_of(form) - 5_000
    large = load(path, missing=missing, standardize=True, rows=rows)
    monkeypatch.setattr(streamed, "HELD_BYTES", 2**30)
    same(large, load(path, missing=missing, standardize=True, rows=rows))
    complete = columns(rows_of(form), gaps=True).head(rows).notna().all(axis=1).sum()
    assert large.rows == (complete if missing == "drop" else rows)


def same(large, held):
    assert (large.attributes, large.rows, large.width) == (held.attributes, held.rows, held.width)
    assert large.fingerprint() == held.fingerprint()
    for a, b in zip(large.moments(), held.moments(), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in row_blocks(large.rows, large.width):
        np.testing.assert_array_equal(large.read(a, b), held.read(a, b))
    np.testing.assert_array_equal(large.values, held.values)


def test_moments_are_those_of_two_passes(written, small):
    """Offset 10⁷, trending: raw squares would lose nine digits."""
    frame = columns()
    mean, covariance = load(written("groups.parquet")).moments()
    x = frame.to_numpy(np.longdouble)
    exact = x.mean(axis=0)
    assert (np.abs(mean - exact) <= 1e-14 * x.std(axis=0) + 2.3e-16 * np.abs(exact)).all()
    np.testing.assert_allclose(
        covariance, np.asarray((x - exact).T @ (x - exact) / ROWS, float), rtol=1e-12
    )


def spoilt(what):
    frame = columns(CSV_ROWS).astype(float)
    if what == "missing":
        frame.loc[[70_001, 90_000], "age"] = np.nan
    elif what == "infinite":
        frame.loc[80_000, "far"] = np.inf
    elif what == "constant":
        frame["age"] = 7.0
    elif what == "no values":
        frame["age"] = np.nan
    elif what == "range":
        frame["age"] *= 1e200
    return frame


@pytest.mark.parametrize(
    ("what", "form"), each_once(["missing", "infinite", "constant", "no values", "range"], FORMS)
)
@pytest.mark.slow_after_first
def test_the_same_refusals_as_in_memory(tmp_path, small, monkeypatch, form, what):
    path = write(spoilt(what), tmp_path, form)
    told = []
    for held in (100_000, 2**30):
        monkeypatch.setattr(streamed, "HELD_BYTES", held)
        with pytest.raises(DataError) as caught:
            load(path)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "column '" in told[0]


def test_csv_is_never_cut_inside_quotation_marks(tmp_path, small):
    """Line breaks, commas and doubled marks inside quoted cells and names."""
    rng = np.random.default_rng(4)
    note = rng.choice(["two\nlines\n", "plain", 'say "x"', ",\n,", "x" * 300], 40_000)
    frame = pd.DataFrame(
        {"two\nlines": rng.standard_normal(40_000), "note": note, "b": rng.standard_normal(40_000)}
    )
    path = write(frame, tmp_path, "table.csv")
    table = load(path, columns=["b", "two\nlines"])
    assert table.streamed
    assert len(pieces.text_pieces(path)) > 10
    np.testing.assert_array_equal(table.values, frame[["b", "two\nlines"]].to_numpy())


def test_parts_are_taken_in_the_order_of_their_names_and_may_be_empty(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, cells in (("b", [3.0, 4.0]), ("a", [1.0, 2.0]), ("c", [])):
        pq.write_table(pa.table({"x": pa.array(cells, pa.float64())}), folder / f"{name}.parquet")
    assert load(f"{folder}/").values[:, 0].tolist() == [1, 2, 3, 4]


def test_folders_that_are_no_table(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, content, told in [
        (None, "", "holds no table"),
        ("a.csv", "a,b\n1,2\n3,5\n", None),
        ("b.csv", "b,c\n1,2\n3,5\n", "b.csv: lacks column 'a', which a.csv has"),
        ("notes.txt", "x", "holds more than parts of one table: 'notes.txt'"),
    ]:
        if name:
            (folder / name).write_text(content)
        if told is None:
            assert load(f"{folder}/").rows == 2
            continue
        with pytest.raises(DataError, match=told):
            load(f"{folder}/")
    (folder / "notes.txt").unlink()
    pq.write_table(pa.table({"a": [1.0, 2.0]}), folder / "c.parquet")
    with pytest.raises(DataError, match="parts of one table are of one kind"):
        load(f"{folder}/")


def test_records_stay_as_first_read_and_are_read_again_elsewhere(tmp_path, small, monkeypatch):
    path, asked = tmp_path / "groups.parquet", {"standardize": True, "missing": "drop"}
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    table = load(write(columns(gaps=True), tmp_path, "groups.parquet"), **asked)
    first = table.values
    assert list((tmp_path / "scratch").iterdir()) == []  # read again, under no name
    sent = pickle.dumps(table.content)
    table.content.scratch._file.close()  # as if it were on another machine
    np.testing.assert_array_equal(pickle.loads(sent)[:], first)
    write(columns(100_000), tmp_path, path.name)
    with pytest.raises(DataError, match=r"groups\.parquet|was changed"):
        pickle.loads(sent)[:10]

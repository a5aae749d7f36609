"""Every kind of file that owners have, against pandas' own reading."""

import gzip
import io
import traceback
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.base import AuditorWarning, DataError
from auditor.data.formats import file_kinds
from auditor.data.formats.parts import header, pieces_of, whole_frame
from auditor.data.formats.text_files import Marks, as_numbers, marks_of
from auditor.data.load import file_notes
from auditor.runs.copy_files.write import write_copies
from tests.loading import load_table

CANARY = "CANARY-4711"
ROWS = 40


@pytest.fixture
def frame():
    rng = np.random.default_rng(4)
    return pd.DataFrame({
        "age": rng.integers(18, 80, ROWS), "pay": np.where(np.arange(ROWS) % 9 == 4, np.nan, np.round(rng.normal(3e3, 900, ROWS), 2)),
        "town": np.array(["Köln", "Gent", "Oslo", "Łódź"])[rng.integers(4, size=ROWS)],
    })  # fmt: skip


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return whole_frame(pieces_of(path), header(path), None), file_notes(str(path))


def assert_as_pandas(path, theirs, *notes):
    ours, noted = read(path)
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_column_type=False)
    assert len(noted) == len(notes)
    assert all(note in told for note, told in zip(notes, noted, strict=True))
    pay = theirs["pay"].fillna(theirs["pay"].mean()).to_numpy(dtype=float)
    np.testing.assert_array_equal(column(path, "pay", missing="mean"), pay)


def column(path, name, **request):
    table = load_table(str(path), columns=[name], rng=np.random.default_rng(0), **request)
    return table.values[:, 0]


def refusal(path):
    with pytest.raises(DataError) as caught:
        read(path)
    shown = "".join(traceback.format_exception(caught.value, chain=True)).replace(str(path), "")
    assert CANARY not in shown
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("name", "options", "note"), [
    ("t.csv", {"sep": ";"}, ""), ("t.csv", {"sep": ";", "decimal": ","}, ""),
    ("t.tsv", {"sep": "\t", "decimal": ","}, ""), ("t.csv", {"sep": "|"}, ""),
    ("t.csv.zst", {"sep": ";", "decimal": ","}, ""), ("t.csv.zip", {}, ""),
    ("t.csv.gz", {"encoding": "utf-16", "sep": ";"}, "is UTF-16"),
    ("t.CSV", {"encoding": "utf-8-sig"}, ""),
])  # fmt: skip
def test_text_is_read_as_pandas_reads_it(tmp_path, frame, name, options, note):
    pytest.importorskip("zstandard")
    path = tmp_path / name
    frame.to_csv(path, index=False, **options)
    assert_as_pandas(path, pd.read_csv(path, **options), *[note] if note else [])


@pytest.mark.parametrize(
    ("thousands", "decimal", "sep"), [(",", ".", ","), (".", ",", ";"), (".", ",", "\t")]
)
def test_marks_between_thousands_are_taken_out(tmp_path, frame, thousands, decimal, sep):
    swap = str.maketrans({",": thousands, ".": decimal})
    text = frame.assign(pay=[f"{x:,.2f}".translate(swap) if x == x else "" for x in frame["pay"]])
    path = tmp_path / "t.csv"
    text.to_csv(path, index=False, sep=sep)
    assert_as_pandas(path, pd.read_csv(path, sep=sep, thousands=thousands, decimal=decimal))


@pytest.mark.parametrize(("content", "name"), [
    ('a,b\n1,"1,234"\n2,"5,678"\n', "b"), ("a;b\n1;1.234\n2;5.678\n", "b"),
    ('a,b,c\n1.5,"1,5","1,234"\n2.5,"2,5","1,235"\n', "c"),
])  # fmt: skip
def test_a_mark_that_may_be_either_is_never_guessed(tmp_path, content, name):
    path = tmp_path / "t.csv"
    path.write_text(content)
    said = "has a comma or a point before three digits, which may be decimals or tho"
    with pytest.raises(DataError, match=rf"^t\.csv: column '{name}' {said}"):
        column(path, name)
    assert column(path, "a").size == 2


@pytest.mark.parametrize(("content", "expected"), [
    ('a,b\n0.5,"1,234"\n2,"5,678"\n', [1234, 5678]),
    ("a;b\n0,5;1,234\n2;5,678\n", [1.234, 5.678]),
    ("a;b\n1;1.234.567\n2;1.234\n", [1234567, 1234]), ("a;b\n1;-1.234,5\n2;7\n", [-1234.5, 7]),
    ("a;b\n1;1e3\n2; 12345678901234567890\n", [1000, 12345678901234567890.0]),
])  # fmt: skip
def test_what_other_numbers_tell_decides(tmp_path, content, expected):
    (tmp_path / "t.csv").write_text(content)
    assert column(tmp_path / "t.csv", "b").tolist() == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda x: round(x, 2)), min_size=2, max_size=30),
    st.sampled_from([(",", "."), (".", ",")]),
    st.booleans(),
)
def test_numbers_come_back_however_they_are_written(values, marks, grouped):
    group, decimal = marks
    swap = str.maketrans({",": group if grouped else "", ".": decimal})
    cells = [f"{x:,.2f}".translate(swap) for x in values]
    found = marks_of("t.csv", [[cell] for cell in cells], ";")
    assert found == Marks(decimal, group)
    text = io.StringIO("a;b\n" + "\n".join(f"{cell};" for cell in cells))
    read_back = pd.read_csv(text, sep=";", decimal=decimal)["a"]
    assert as_numbers("t.csv", read_back, found).tolist() == values


def test_feather_and_arrow(tmp_path, frame):
    frame.to_feather(tmp_path / "t.feather")
    assert_as_pandas(tmp_path / "t.feather", pd.read_feather(tmp_path / "t.feather"))
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, pa.Schema.from_pandas(frame)) as writer,
    ):
        for start in range(0, ROWS, 7):
            part = frame.iloc[start : start + 7]
            writer.write_batch(pa.RecordBatch.from_pandas(part, preserve_index=False))
    assert_as_pandas(tmp_path / "t.arrow", frame)


def test_stata(tmp_path, frame):
    path = tmp_path / "t.dta"
    frame.assign(hired=pd.Timestamp("2020-01-31")).to_stata(path, write_index=False, version=118)
    assert_as_pandas(path, pd.read_stata(path))


@pytest.mark.parametrize("suffix", [".sav", ".zsav"])
def test_spss(tmp_path, frame, suffix):
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"t{suffix}"
    pyreadstat.write_sav(frame, path, compress=suffix == ".zsav")
    assert_as_pandas(path, pd.read_spss(path))


def test_excel(tmp_path, frame):
    pytest.importorskip("openpyxl")
    path = tmp_path / "t.xlsx"
    more = frame.assign(hired=pd.Timestamp("2020-01-31"), sick=np.arange(ROWS) % 2 == 0)
    more.to_excel(path, index=False)
    assert_as_pandas(path, pd.read_excel(path))
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="data", index=False)
        frame.head(3).to_excel(book, sheet_name="codes", index=False)
    assert_as_pandas(path, pd.read_excel(path), "the first sheet is read, and 1 other not")


@pytest.mark.parametrize("suffix", [".csv.gz", ".csv.zip", ".feather", ".dta", ".sav", ".xlsx"])
def test_damaged_files_are_one_clear_line(tmp_path, frame, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_bytes(f"a,b\n1,{CANARY}\n".encode() * 9)
    assert refusal(path).startswith(f"t{suffix}: cannot be ")
    assert refusal(path).endswith("the file is damaged or is something else")


@pytest.mark.parametrize("suffix", [".csv.gz", ".feather", ".xlsx"])
def test_files_that_are_cut_off_are_refused(tmp_path, frame, suffix):
    path = tmp_path / f"t{suffix}"
    write = {".feather": frame.to_feather, ".xlsx": frame.to_excel}
    write.get(suffix, frame.to_csv)(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "damaged" in refusal(path)


def test_archives_hold_one_file_that_is_not_encrypted(tmp_path):
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", f"a,b\n1,{CANARY}\n")
        archive.writestr("__MACOSX/._a.csv", "x")
    assert read(path)[0]["b"].tolist() == [CANARY]
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the archive's list
    path.write_bytes(content)
    assert refusal(path) == "t.zip: is encrypted; unpack it first"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "a\n1\n")
        archive.writestr("b.csv", "a\n1\n")
    several = "t.zip: holds 2 files, and a table is one; unpack the archive and name the file"
    assert refusal(path) == several


def test_files_that_expand_beyond_the_stated_size_are_refused_unread(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(file_kinds, "MOST_BYTES", 2_000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 10_000))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", b"a,b\n" + b"1,2\n" * 10_000)
    pd.DataFrame({"a": np.zeros(1_000)}).to_feather(tmp_path / "t.feather", compression="zstd")
    pd.DataFrame({"a": np.zeros(1_000)}).to_stata(tmp_path / "t.dta")
    pd.concat([frame] * 9).to_csv(tmp_path / "t.csv", encoding="utf-16")
    said = "holds more than 2,000 bytes, the most that is read of a file of its kind; save it as plain CSV"
    for name in ("t.csv.gz", "t.zip", "t.feather", "t.dta", "t.csv"):
        assert refusal(tmp_path / name).startswith(f"{name}: {said}")


def test_a_sheet_with_two_cells_far_apart_is_refused(tmp_path, monkeypatch):
    openpyxl = pytest.importorskip("openpyxl")
    monkeypatch.setattr(file_kinds, "MOST_CELLS", 1_000)
    book = openpyxl.Workbook()
    book.active["A1"], book.active["ZZ9"] = "a", CANARY
    book.save(tmp_path / "t.xlsx")
    said = "t.xlsx: the sheet has more than 1,000 cells, blank ones included"
    assert refusal(tmp_path / "t.xlsx").startswith(said)


@pytest.mark.parametrize(("suffix", "library"), [(".sav", "pyreadstat"), (".xlsx", "openpyxl")])
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, suffix, library):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    (tmp_path / f"t{suffix}").write_bytes(b"PK")
    said = f"files are read by {library}, which is not installed: pip install 'auditor[files]'"
    assert refusal(tmp_path / f"t{suffix}").endswith(said)


@pytest.mark.slow
def test_how_a_file_was_read_is_told_once_before_a_run_and_for_copies(tmp_path, frame, no_learner):
    numbers = frame[["age"]].assign(b=np.arange(ROWS) ** 2)
    named = numbers.assign(town=frame["town"].replace("Łódź", "Århus"))
    named.to_csv(tmp_path / "t.csv", index=False, encoding="latin-1")
    (numbers + 1.5).to_csv(tmp_path / "copy.csv", index=False, encoding="utf-16")
    asked = {
        "schema": 1, "seed": 1, "data": {"source": str(tmp_path / "t.csv"), "columns": ["age", "b"]}, "attacks": ["ndr"],
        "schemes": [{"name": "published", "copies": [str(tmp_path / "copy.csv")]}], "knowledge": ["perfect"], "coalitions": ["all"],
    }  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        auditor.run(asked)
    told = [str(each.message) for each in caught]
    for note in ("t.csv: is not UTF-8, and read as Latin-1 (Windows-1252)", "copy.csv: is UTF-16"):
        assert told.count(note) == 1
    with pytest.warns(AuditorWarning, match=r"^t\.csv: is not UTF-8"):
        write_copies(str(tmp_path / "t.csv"), "corner-wave", [0.5], 1, tmp_path / "out", ["age"])

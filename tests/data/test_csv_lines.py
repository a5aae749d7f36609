"""Lines of CSV files: what is a record and what is none, in memory and in pieces, whatever the line ends. No record is lost without a word."""

from __future__ import annotations

import pickle
import tempfile

import numpy as np
import pandas as pd
import pytest

from auditor.data import file_rows as streamed
from auditor.data.columns.categorical_table import Categories
from auditor.data.formats import parts as pieces
from auditor.data.load import load_table
from auditor.data.raw_columns import Kept
from auditor.errors import DataError
from tests.programs import python

HELD, PIECE = 2**26, 2**22
WAYS = {
    "in memory": (HELD, PIECE),
    "from its file": (0, PIECE),
    "in pieces of a few bytes": (0, 4),
    "in pieces of a line": (HELD, 1),
}
MEAN = 8 / 3


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def load(request, monkeypatch, tmp_path):
    """Return what a CSV file's table holds, or why it is refused; the file is held, streamed, or cut wherever it can be."""
    held, piece = request.param
    monkeypatch.setattr(streamed, "HELD_BYTES", held)
    monkeypatch.setattr(pieces, "CSV_BYTES", piece)

    def read(content: str | bytes, **request):
        (tmp_path / "table.csv").write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        try:
            return load_table(
                "table.csv", base=tmp_path, rng=np.random.default_rng(0), **request
            ).values.tolist()
        except DataError as error:
            return str(error)

    return read


def missing(*rows: int) -> str:
    count, first = (
        ("1 missing value, in", rows[0])
        if len(rows) == 1
        else (f"{len(rows)} missing values, the first in", rows[0])
    )
    return f"column 'a' has {count} data row {first}; set `missing: drop` to leave those records out, or `missing: mean` to fill them in"


OTHERS = (
    pytest.param("\n", id="Unix", marks=pytest.mark.slow),
    pytest.param("\r", id="old Mac", marks=pytest.mark.slow),
)
ENDINGS = pytest.mark.parametrize("ending", [pytest.param("\r\n", id="Windows"), *OTHERS])

BLANK = {
    "in the middle": ("a\n1\n\n2\n5\n", [2]),
    "first": ("a\n\n1\n2\n5\n", [1]),
    "several": ("a\n1\n\n\n2\n\n5\n", [2, 3, 5]),
    "last": ("a\n1\n2\n5\n\n", [4]),
    "several at the end": ("a\n1\n2\n5\n\n\n\n", [4, 5, 6]),
    "written as pandas writes it": ('a\n1\n""\n2\n5\n', [2]),
    "after a byte order mark": ("\ufeffa\n1\n\n2\n5\n", [2]),
    "after blank lines before the header": ("\n \n\na\n1\n\n2\n5\n", [2]),
    "after a byte order mark and a blank line": ("\ufeff\na\n1\n\n2\n5\n", [2]),
    "without a line break at the end": ("a\n1\n\n2\n5", [2]),
}


@ENDINGS
@pytest.mark.parametrize(("content", "rows"), BLANK.values(), ids=BLANK)
@pytest.mark.slow_after_first
def test_a_blank_line_in_a_file_of_one_column_is_a_missing_value(load, content, rows, ending):
    content = content.replace("\n", ending)
    assert load(content) == missing(*rows)
    assert load(content, missing="drop") == [[1], [2], [5]]
    filled = [1.0, 2.0, 5.0]
    for row in rows:
        filled.insert(row - 1, MEAN)
    np.testing.assert_allclose(np.ravel(load(content, missing="mean")), filled, rtol=1e-15)


@ENDINGS
@pytest.mark.parametrize("last", ["", "\n"], ids=["no line break at the end", "one"])
@pytest.mark.parametrize(
    "start",
    ["", "\ufeff", "\n\n", "\ufeff\n"],
    ids=["", "mark", "blank lines", "mark and blank line"],
)
@pytest.mark.slow_after_first
def test_what_ends_the_last_record_is_no_record(load, ending, last, start):
    assert load(f"{start}a\n1\n2\n5{last}".replace("\n", ending)) == [[1], [2], [5]]
    assert load(f"{start}a,b\n1,2\n2,3\n5,4{last}".replace("\n", ending)) == [
        [1, 2],
        [2, 3],
        [5, 4],
    ]


def test_in_a_file_of_several_columns_a_blank_line_is_no_record(load):
    assert load("a,b\n\n1,2\n  \n\n2,3\n5,4\n\n\n") == [[1, 2], [2, 3], [5, 4]]
    assert load("a,b\n1,2\n,\n2,3\n", missing="drop") == [[1, 2], [2, 3]]
    assert "column 'b' has 1 missing value, in data row 2" in load("a,b\n1,2\n3\n5,9\n")


def test_the_first_so_many_records_count_blank_ones_where_they_are_records(load):
    assert load("a\n1\n\n2\n5\n", rows=3, missing="drop") == [[1], [2]]
    assert load("a\n1\n\n2\n5\n", rows=2) == missing(2)
    assert load("a,b\n1,2\n\n2,3\n5,9\n", rows=2) == [[1, 2], [2, 3]]
    assert (
        load("a\n1\n2\n\n", rows=4)
        == "rows: 4 asks for more than there are; the table has 3 records"
    )


def test_line_breaks_in_quoted_cells_and_names_end_no_record(load):
    assert load('a,t\n1,"x\n\ny"\n2,"z\r\n"\n5,"\n"\n', columns=["a"]) == [[1], [2], [5]]
    assert load('"a\nb",c\n1,2\n2,3\n5,4\n') == [[1, 2], [2, 3], [5, 4]]
    assert load('"a\n\nb"\n1\n2\n5\n') == [[1], [2], [5]]


def test_a_mark_that_is_a_letter_of_a_name_opens_no_quotation(load):
    """The header is put before every piece; read on to the next mark, it would bring records with it."""
    assert load('5\'11" tall,a\n1,2\n2,3\n5,4\n"7",4\n') == [[1, 2], [2, 3], [5, 4], [7, 4]]


NONE = {
    "nothing": "", "a mark": "\ufeff", "blank lines": "\n\n\n", "a mark and blank lines": "\ufeff\n\r\n", "spaces": "  \n \t\n",
}  # fmt: skip


@pytest.mark.parametrize("content", NONE.values(), ids=NONE)
def test_only_blank_lines_are_an_empty_file(load, content):
    assert load(content) == "table.csv: the file is empty"


@pytest.mark.parametrize("content", ["a", "a\n", "\ufeffa\r\n", "a,b\n\n\n", "\na,b"])
def test_only_a_header_is_no_table(load, content):
    assert load(content) == "table.csv: has a header but no records"


@pytest.mark.parametrize("name", ['""', '" "'])
def test_the_first_record_is_not_taken_for_the_name_that_is_lacking(load, name):
    shown = load(f"{name}\nCANARY\nother\n")
    assert "CANARY" not in shown
    assert "no name" in shown or "column ' ' holds text" in shown


def test_too_many_cells_after_a_blank_line_are_told_by_line(load):
    assert load("a\n\n1,2\n5\n") == "table.csv: line 3 has 2 cells under 1 column names"
    assert load("\n\na\n1\n2\n\n1,2\n5\n") == "table.csv: line 7 has 2 cells under 1 column names"
    assert load("\na,b\n1,2\n2,3\n1,2,3\n") == "table.csv: line 5 has 3 cells under 2 column names"


def test_parts_without_records_and_with_blank_lines(load, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, content in {"1": "a\n1\n\n2\n", "2": "a\n", "3": "\ufeffa\r\n5\r\n"}.items():
        (folder / f"{name}.csv").write_bytes(content.encode())
    table = load_table("parts/", base=tmp_path, missing="drop", rng=np.random.default_rng(0))
    assert table.values.tolist() == [[1], [2], [5]]
    with pytest.raises(DataError, match="1 missing value, in data row 2"):
        load_table("parts/", base=tmp_path, rng=np.random.default_rng(0))


def test_blank_categories_are_missing_too(load, tmp_path):
    (tmp_path / "ill.csv").write_text("ill\nflu\n\nHIV\nflu\n")
    chosen = Categories({}, {"ill": None})
    with pytest.raises(DataError, match="missing"):
        load_table("ill.csv", base=tmp_path, rng=np.random.default_rng(0), categories=chosen)
    table = load_table(
        "ill.csv", base=tmp_path, rng=np.random.default_rng(0), categories=chosen, missing="drop"
    )
    assert table.categorical is not None
    assert len(table.categorical.codes) == 3


def test_records_are_the_same_for_columns_that_are_kept_as_they_are(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff\nid\n007\n\n008\n\n", encoding="utf-8")
    kept = Kept(str(path), ["id"])
    assert kept.take(4)["id"].tolist() == ["007", "", "008", ""]
    kept.finish()
    path.write_text("id,a\n007,1\n\n008\n")
    assert Kept(str(path), ["a", "id"]).take(2).to_numpy().tolist() == [["1", "007"], ["", "008"]]


def test_a_large_file_is_parsed_once_into_a_file_without_a_name(tmp_path, monkeypatch):
    path, rows = tmp_path / "t.csv", 5_000
    values = np.random.default_rng(2**40 + 5).normal(size=(rows, 2))
    frame = pd.DataFrame(values, columns=["a", "b"]).assign(c=["x", "y"] * (rows // 2))
    frame.to_csv(path, index=False)
    monkeypatch.setattr(streamed, "HELD_BYTES", 0)
    monkeypatch.setattr(pieces, "CSV_BYTES", 2**15)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    parsed = []
    monkeypatch.setattr(
        pieces, "text_frame", lambda *args, real=pieces.text_frame: parsed.append(1) or real(*args)
    )
    table = load_table(str(path), columns=["a", "b"], rng=np.random.default_rng(0))
    number = len(table.content.pieces)
    assert len(parsed) == number > 5
    np.testing.assert_array_equal(table.values, values)
    np.testing.assert_array_equal(table.read(17, 900), values[17:900])
    np.testing.assert_allclose(table.moments()[0], values.mean(axis=0))
    assert len(parsed) == number
    # another process of this user reads the same records, and no name leads to them
    assert list((tmp_path / "scratch").iterdir()) == []
    (tmp_path / "sent").write_bytes(pickle.dumps(table.content))
    program = (
        "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).read(17, 19).tolist())"
    )
    found = python("-c", program, tmp_path / "sent")
    assert found.stdout.strip() == str(values[17:19].tolist()), found.stderr

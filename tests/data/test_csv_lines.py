"""Lines of CSV files."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from auditor.base import DataError
from auditor.data.columns import scan as streamed
from auditor.data.formats import parts as pieces
from tests.loading import load_table

HELD, PIECE = 2**26, 2**22
WAYS = {
    "in memory": (HELD, PIECE), "from its file": (0, PIECE), "in pieces of a few bytes": (0, 4),
    "in pieces of a line": (HELD, 1),
}  # fmt: skip


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def load(request, monkeypatch, tmp_path):
    held, piece = request.param
    monkeypatch.setattr(streamed, "HELD_BYTES", held)
    monkeypatch.setattr(pieces, "CSV_BYTES", piece)

    def read(content, **request):
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


def missing(*rows):
    count, first = (
        ("1 missing value, in", rows[0])
        if len(rows) == 1
        else (f"{len(rows)} missing values, the first in", rows[0])
    )
    return f"column 'a' has {count} data row {first}; set `missing: drop` to leave those records out, or `missing: mean` to fill them in"


ENDINGS = pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["Unix", "Windows", "Mac"])

BLANK = [
    ("a\n1\n\n2\n5\n", [2]), ("a\n\n1\n2\n5\n", [1]), ("a\n1\n\n\n2\n\n5\n", [2, 3, 5]),
    ("a\n1\n2\n5\n\n", [4]), ("a\n1\n2\n5\n\n\n\n", [4, 5, 6]), ('a\n1\n""\n2\n5\n', [2]),
    ("\ufeffa\n1\n\n2\n5\n", [2]), ("\n \n\na\n1\n\n2\n5\n", [2]),
    ("\ufeff\na\n1\n\n2\n5\n", [2]), ("a\n1\n\n2\n5", [2]),
]  # fmt: skip


@ENDINGS
def test_a_blank_line_in_a_file_of_one_column_is_a_missing_value(load, ending):
    for content, rows in BLANK:
        content = content.replace("\n", ending)
        assert load(content) == missing(*rows)
        assert load(content, missing="drop") == [[1], [2], [5]]
        filled = [1.0, 2.0, 5.0]
        for row in rows:
            filled.insert(row - 1, 8 / 3)
        np.testing.assert_allclose(np.ravel(load(content, missing="mean")), filled, rtol=1e-15)


@ENDINGS
def test_what_ends_the_last_record_is_no_record(load, ending):
    for start, last in product(("", "\ufeff", "\n\n", "\ufeff\n"), ("", "\n")):
        one, two = f"{start}a\n1\n2\n5{last}", f"{start}a,b\n1,2\n2,3\n5,4{last}"
        assert load(one.replace("\n", ending)) == [[1], [2], [5]]
        assert load(two.replace("\n", ending)) == [[1, 2], [2, 3], [5, 4]]


def test_in_a_file_of_several_columns_a_blank_line_is_no_record(load):
    assert load("a,b\n\n1,2\n  \n\n2,3\n5,4\n\n\n") == [[1, 2], [2, 3], [5, 4]]
    assert load("a,b\n1,2\n,\n2,3\n", missing="drop") == [[1, 2], [2, 3]]
    assert "column 'b' has 1 missing value, in data row 2" in load("a,b\n1,2\n3\n5,9\n")


def test_the_first_so_many_records_count_blank_ones_where_they_are_records(load):
    assert load("a\n1\n\n2\n5\n", rows=3, missing="drop") == [[1], [2]]
    assert load("a\n1\n\n2\n5\n", rows=2) == missing(2)
    assert load("a,b\n1,2\n\n2,3\n5,9\n", rows=2) == [[1, 2], [2, 3]]
    said = "rows: 4 asks for more than there are; the table has 3 records"
    assert load("a\n1\n2\n\n", rows=4) == said


def test_line_breaks_in_quoted_cells_and_names_end_no_record(load):
    assert load('a,t\n1,"x\n\ny"\n2,"z\r\n"\n5,"\n"\n', columns=["a"]) == [[1], [2], [5]]
    assert load('"a\nb",c\n1,2\n2,3\n5,4\n') == [[1, 2], [2, 3], [5, 4]]
    assert load('"a\n\nb"\n1\n2\n5\n') == [[1], [2], [5]]


def test_a_file_without_records_is_refused(load):
    for content in ("", "\ufeff", "\n\n\n", "\ufeff\n\r\n", "  \n \t\n"):
        assert load(content) == "table.csv: the file is empty"
    for content in ("a", "a\n", "\ufeffa\r\n", "a,b\n\n\n", "\na,b"):
        assert load(content) == "table.csv: has a header but no records"


def test_the_first_record_is_not_taken_for_the_name_that_is_lacking(load):
    for name in ('""', '" "'):
        shown = load(f"{name}\nCANARY\nother\n")
        assert "CANARY" not in shown
        assert "no name" in shown or "column ' ' holds text" in shown


def test_too_many_cells_after_a_blank_line_are_told_by_line(load):
    assert load("a\n\n1,2\n5\n") == "table.csv: line 3 has 2 cells under 1 column names"
    assert load("\n\na\n1\n2\n\n1,2\n5\n") == "table.csv: line 7 has 2 cells under 1 column names"
    assert load("\na,b\n1,2\n2,3\n1,2,3\n") == "table.csv: line 5 has 3 cells under 2 column names"
    quoted = 'a,b\n1,2\n"3\n",4\n5,"6\n7",8\n'
    assert load(quoted) == "table.csv: line 5 has 3 cells under 2 column names"

"""Cells in other spellings."""

import csv

import numpy as np
import pandas as pd
import pytest

from auditor.base import DataError
from auditor.data.columns.categorical_table import Categories
from auditor.data.formats.text_files import Marks, as_numbers
from auditor.runs.copy_files.write import write_copies
from tests.loading import load_table

ROWS = [("01", "TRUE", "1.50"), ("03", "FALSE", "2.00"), ("10", "TRUE", "1.50")] * 10


def load(path, **request):
    return load_table(str(path), rng=np.random.default_rng(0), **request)


@pytest.fixture
def coded(tmp_path):
    path = tmp_path / "coded.csv"
    path.write_text("code,sworn,size\n" + "".join(",".join(row) + "\n" for row in ROWS))
    return path


def test_categories_keep_their_spelling_and_their_order(coded):
    names = {"code": ("01", "03", "10"), "sworn": ("FALSE", "TRUE"), "size": ("1.50", "2.00")}
    for name, labels in names.items():
        table = load(coded, columns=[name], categories=Categories({}, {name: None})).categorical
        assert table.labels == labels
    assert load(coded, columns=["code"], categories=Categories({}, {"code": None})).categorical.scores.tolist() == [1, 3, 10]  # fmt: skip


def test_a_label_in_two_spellings_is_one_category_as_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("code\n01\n1\n2\n")
    chosen = Categories({}, {"code": None})
    assert load(path, columns=["code"], categories=chosen).categorical.labels == (1, 2)


def test_released_copies_are_spelt_as_the_table(coded, tmp_path):
    write_copies(str(coded), "uniform", [0.5], 1, tmp_path / "out", columns=["code", "sworn"])
    with (tmp_path / "out/copy-1.csv").open() as file:
        head, *rows = csv.reader(file)
    assert head == ["code", "sworn"]
    assert {row[0] for row in rows} <= {"01", "03", "10"}
    assert {row[1] for row in rows} <= {"TRUE", "FALSE"}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["６５", "7.5"], [65, 7.5]), (["−65", "7,000.5"], [-65, 7000.5]), (["65-", "1"], [-65, 1]),
        (["－６５", "３−"], [-65, -3]),
    ],
    ids=["full-width", "Unicode minus", "trailing minus", "both"],
)  # fmt: skip
def test_numbers_in_other_characters_are_numbers(cells, expected):
    assert as_numbers("t.csv", pd.Series(cells), Marks(".", ",")).tolist() == expected


def test_text_with_a_full_width_digit_is_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,棟５\n2,５x\n", encoding="utf-8")
    assert load(path, columns=["a"]).rows == 2
    with pytest.raises(DataError, match="column 'b' holds text, not numbers"):
        load(path)


def test_columns_may_be_named_by_years_but_not_by_other_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("2019,2021,2023,town\n1,2,3,x\n4,1,7,y\n")
    assert load(path, columns=["2021"]).values.tolist() == [[2], [1]]
    path.write_text("2019,2020,2150,town\n1,2,3,x\n4,1,7,y\n")
    with pytest.raises(DataError, match="number or a date for a name"):
        load(path, columns=["2020"])


def test_sas_transport_of_version_8(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"a": [1.0, 2.0], "a_longer_name_than_eight": [3.5, 4.0]})
    pyreadstat.write_xport(frame, tmp_path / "t.xpt", file_format_version=8)
    assert load(tmp_path / "t.xpt").attributes == tuple(frame)

"""CSV and Parquet files."""

import datetime
import traceback

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from auditor.base import DataError
from tests.loading import load_table

CANARY = "CANARY-4711"


def load(path, **request):
    return load_table(path.name, base=path.parent, rng=np.random.default_rng(0), **request)


def csv(folder, content):
    path = folder / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(folder, table, **options):
    path = folder / "table.parquet"
    pq.write_table(table, path, **options)
    return path


def refusal(path, **request):
    with pytest.raises(DataError) as caught:
        load(path, **request)
    shown = "".join(traceback.format_exception(caught.value, chain=True))
    assert CANARY not in shown.replace(str(path), "")
    return str(caught.value)


def test_values_are_contiguous_float64_and_read_only(tmp_path):
    values = load(csv(tmp_path, "a,b\n1,2\n4,5\n")).values
    assert values.dtype == np.float64
    assert values.flags.c_contiguous
    assert not values.flags.writeable


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_rows_takes_the_first(tmp_path, suffix):
    frame = pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0) ** 2})
    path = tmp_path / f"table{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, row_group_size=7)
    np.testing.assert_array_equal(load(path, rows=10).values, frame.head(10).to_numpy())
    too_many = "rows: 101 asks for more than there are; the table has 100 records"
    assert refusal(path, rows=101) == too_many


def test_a_byte_order_mark_is_not_part_of_the_name(tmp_path):
    assert load(csv(tmp_path, b"\xef\xbb\xbfage\n1\n2\n")).attributes == ("age",)


def test_the_scenarios_folder_comes_before_the_current_one(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, last in ((here, 2), (there, 3)):
        folder.mkdir()
        (folder / "t.csv").write_text(f"a\n1\n{last}\n")
    (here / "only.csv").write_text("a\n1\n9\n")
    monkeypatch.chdir(here)
    rng = np.random.default_rng(0)
    assert load_table("t.csv", base=there, rng=rng).values[1, 0] == 3
    assert load_table("only.csv", base=there, rng=rng).values[1, 0] == 9
    assert load_table("t.csv", rng=rng).values[1, 0] == 2


@pytest.mark.parametrize(("cells", "expected"), [
    (["9007199254740993", "3"], [9007199254740992.0, 3.0]),
    (["12345678901234567890", "-3"], [12345678901234567890.0, -3.0]),
    (["0.1", "0.30000000000000004"], [0.1, 0.1 + 0.2]),
])  # fmt: skip
def test_numbers_of_any_size_in_csv(tmp_path, cells, expected):
    assert load(csv(tmp_path, "a\n" + "\n".join(cells) + "\n")).values[:, 0].tolist() == expected


def test_booleans_are_numbers_only_when_asked_for(tmp_path):
    path = csv(tmp_path, "a,sick\n1,True\n2,\n3,False\n")
    said = "column 'sick' holds booleans, not numbers; choose columns of numbers with `columns:`, here 'a'"
    assert refusal(path, missing="drop") == said
    assert load(path, columns=["sick"], missing="drop").values[:, 0].tolist() == [1, 0]
    path = parquet(tmp_path, pa.table({"sick": [True, None, False]}))
    assert load(path, columns=["sick"], missing="drop").values[:, 0].tolist() == [1, 0]


names = st.lists(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20).filter(
        lambda name: name.strip() and not name.startswith("\ufeff")
    ),
    min_size=1,
    max_size=4,
    unique=True,
)
numbers = st.floats(-1e34, 1e34) | st.integers(-(2**53), 2**53).map(float)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(names, st.integers(2, 6), st.data())
@pytest.mark.slow_after_first
def test_round_trip_through_files(tmp_path, names, rows, data):
    names = [f"n{name}" for name in names]  # a header of numbers alone is refused
    column = st.lists(numbers, min_size=rows, max_size=rows).filter(lambda x: 1e-70 < np.var(x))
    frame = pd.DataFrame({name: data.draw(column) for name in names})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        table = load(path)
        assert table.attributes == tuple(names)
        np.testing.assert_array_equal(table.values, frame.to_numpy(dtype=float))


SHAPES = {
    "empty": ("", "table.csv: the file is empty"),
    "blank": ("\n \n", "table.csv: the file is empty"),
    "header only": ("a,b\n", "table.csv: has a header but no records"),
    "one record": ("a,b\n1,2\n", "an audit needs at least 2 records; the table has 1 record"),
    "names twice": (
        "a,b,a\n1,2,3\n2,3,4\n",
        "table.csv: columns 1 and 3 have a name that another column has as well; give every column a name of its own",
    ),
    "no header": ("4711,31\n1,2\n3,4\n", "table.csv: the first line holds numbers where the column names should be; add a header"),
    "every record too long": ("a,b\n1,2,3\n4,5,6\n", "table.csv: data row 1 has 3 cells under 2 column names"),
    "one record too long": (f"a,b\n1,2\n4,5,{CANARY}\n", "table.csv: line 3 has 3 cells under 2 column names"),
    "open quote": (f'a,b\n1,"{CANARY}\n4,5\n', "table.csv: cannot be read as CSV; is a quotation mark left open?"),
    "two marks": (
        f"a;b,c;d\n1;{CANARY},2;3\n",
        "table.csv: cells may be separated by commas or semicolons; put names and cells that hold either in quotation marks",
    ),
    "two encodings": (
        f"a,b\n1,{CANARY}é".encode() + b"\xe9\n",
        "table.csv: is not UTF-8 text, nor UTF-16 or Latin-1; save it as UTF-8",
    ),
    "utf-32": ("a\n1\n2\n".encode("utf-32"), "table.csv: is not CSV but UTF-32 text; save it as UTF-8"),
    "Excel": (b"PK\x03\x04" + CANARY.encode(), "table.csv: is not CSV but a ZIP archive or an Excel workbook"),
    "gzip": (b"\x1f\x8b\x08", "table.csv: is not CSV but compressed with gzip"),
    "binary": (b"a\n\0\1\n", "table.csv: is not text"),
    "pandas index": (
        ",a\n0,2\n1,4\n",
        "table.csv: column 1 has no name (is it the index of a data frame?); " "name those to audit with `columns:`",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), SHAPES.values(), ids=SHAPES)
def test_shape_of_csv(tmp_path, content, message):
    assert refusal(csv(tmp_path, content)) == message


def test_shape_of_parquet(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(b"")
    assert refusal(path) == "table.parquet: the file is empty"
    path.write_text(f"a,b\n1,{CANARY}\n")
    damaged = "table.parquet: cannot be read as Parquet; the file is damaged or is something else"
    assert refusal(path) == damaged
    content = parquet(tmp_path, pa.table({"a": np.arange(1000)})).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert refusal(path) == damaged
    (tmp_path / "table.csv").write_bytes(content)
    assert refusal(tmp_path / "table.csv") == "table.csv: is not CSV but a Parquet file"
    assert refusal(parquet(tmp_path, pa.table({}))) == "table.parquet: has no columns"
    empty = pa.table({"a": pa.array([], pa.int64())})
    assert refusal(parquet(tmp_path, empty)) == "table.parquet: has 1 column but no records"
    twice = pa.table([[1, 2], [3, 4]], names=["a", "a"])
    named = "columns 1 and 2 have a name that another column has as well; give every column a name of its own"
    assert refusal(parquet(tmp_path, twice)) == f"table.parquet: {named}"


@pytest.mark.parametrize("columns", [None, ["a", "b"]])
def test_text_cells_are_counted_and_placed_but_not_shown(tmp_path, columns):
    message = refusal(csv(tmp_path, f"a,b\n1,2\n3,{CANARY}\n5,{CANARY}\n"), columns=columns)
    assert message == (
        "column 'b' holds text, not numbers (2 such cells, the first in data row 2); "
        "choose columns of numbers with `columns:`, here 'a'"
    )


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (["1", "2"], "numbers stored as text; store them as numbers"),
        (["1", CANARY], "text, not numbers (1 such cell, in data row 2)"),
        ([datetime.date(2020, 1, 1)] * 2, "dates, not numbers"),
        ([CANARY.encode()] * 2, "bytes, not numbers"),
        ([{"x": CANARY}] * 2, "mixed or nested values, not numbers"),
        (pa.array([CANARY, "y"]).dictionary_encode(), "categories, not numbers"),
    ],
)
def test_what_is_no_number_in_parquet(tmp_path, cells, what):
    path = parquet(tmp_path, pa.table({"ok": [1, 2], "bad": cells}))
    said = f"column 'bad' holds {what}; choose columns of numbers with `columns:`, here 'ok'"
    assert refusal(path) == said
    assert load(path, columns=["ok"]).width == 1


def test_file_not_found(tmp_path):
    (tmp_path / "f.csv").mkdir()
    for name, base, said in [
        ("x.csv", tmp_path, r"there is no file 'x\.csv' in the scenario's folder or the current one$"),
        ("x.parquet", None, r"there is no file 'x\.parquet' in the current folder$"),
        ("x.rds", None, r"source 'x\.rds' is neither a registered source nor a \.csv, \.tsv or \.tab file"),
        ("f.csv", tmp_path, r"source 'f\.csv' is a folder"),
    ]:  # fmt: skip
        with pytest.raises(DataError, match=f"^{said}"):
            load_table(name, base=base, rng=np.random.default_rng(0))

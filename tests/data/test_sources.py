"""Sources of data: files, shipped tables and simulations."""

import numpy as np
import pandas as pd
import pytest

from auditor.base import DataError
from auditor.data.columns.kinds import column_of
from auditor.data.describe import describe, describe_frames
from tests.loading import load_table

REQUIRED = {
    "gaussian": {"spectrum": [4.0, 1.0, 0.5]},
    "inline": {"values": {"a": [1, 2], "b": [5, 3]}},
}


def load(source, seed=0, **request):
    return load_table(source, rng=np.random.default_rng(seed), **request)


@pytest.mark.parametrize("name", sorted(REQUIRED.keys() | {"cps", "iris", "census-like"}))
def test_same_seed_same_table(name):
    first, again, other = (
        load(name, seed, parameters=REQUIRED.get(name, {})) for seed in (1, 1, 2)
    )
    assert first.fingerprint() == again.fingerprint()
    assert (first.fingerprint() == other.fingerprint()) == (name in {"cps", "iris", "inline"})


def test_cps():
    table = load("cps")
    assert table.values.shape == (193_682, 6)
    assert table.attributes[:2] == ("age", "salary")
    assert table.licence == "CC0 1.0"
    assert "taxcalc 6.8.0" in table.description
    age, salary = table.values[:, 0], table.values[:, 1]
    assert (age.min(), age.max()) == (18, 80)
    assert np.corrcoef(age, salary)[0, 1] == pytest.approx(0.17, abs=0.005)
    np.testing.assert_array_equal(
        load("cps", rows=10, columns=["salary", "age"]).values, table.values[:10, [1, 0]]
    )


def test_wisconsin():
    with pytest.raises(
        DataError, match=r"^column 'bare_nuclei' has 16 missing values, the first in data row 24; "
    ):
        load("wisconsin")
    table = load("wisconsin", missing="drop")
    assert table.values.shape == (683, 9)
    assert "diagnosis" not in table.attributes
    assert (table.values.min(), table.values.max()) == (1, 10)
    assert table.licence == "CC BY 4.0"
    assert "Wolberg" in table.description
    assert load("wisconsin", missing="mean").rows == 699
    assert load("wisconsin", columns=["mitoses"]).rows == 699
    with pytest.raises(
        DataError,
        match=r"^column 'diagnosis' holds text, not numbers \(699 such cells, the first in",
    ):
        load("wisconsin", columns=["diagnosis"])


@pytest.mark.parametrize(("values", "message"), [
    ({"a": [1, 2], "b": [1]}, "values 'b' has 1 values where 'a' has 2"),
    ({"a": [4711.5, "x"]}, "values.a[1] must be a number; got text"),
    ({"a": [4711.0] * 10_001}, "values at most 10,000 cells; put a larger table in a .csv"),
])  # fmt: skip
def test_inline_refuses(values, message):
    with pytest.raises(DataError) as caught:
        load("inline", parameters={"values": values})
    assert str(caught.value).startswith(f"source 'inline': {message}")
    assert "4711" not in str(caught.value)


def inline(values, **request):
    return load_table(
        "inline", parameters={"values": values}, rng=np.random.default_rng(0), **request
    )


def refusal(values, **request):
    with pytest.raises(DataError) as caught:
        inline(values, **request)
    return str(caught.value)


AB = {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}


def test_selection():
    assert inline(AB, columns=["b", "a"]).attributes == ("b", "a")
    assert refusal(AB, columns=["a", "b", "a"]) == "`columns` names 'a' more than once"
    assert refusal({"age": [1, 2]}, columns=["agee", "x"]) == (
        "there is no column 'agee'; did you mean 'age'?; there is no column 'x'; valid are 'age'"
    )
    assert (
        refusal({"age": [1, 2]}, columns=["AGE"]) == "there is no column 'AGE'; did you mean 'age'?"
    )
    assert refusal(AB, columns=[]) == "`columns` must name at least one column"


def test_rows():
    np.testing.assert_array_equal(inline(AB, rows=2).values, [[1, 3], [2, 1]])
    assert refusal(AB, rows=4) == "rows: 4 asks for more than there are; the table has 3 records"
    assert refusal({"a": [1]}) == "an audit needs at least 2 records; the table has 1 record"


def test_missing():
    gaps = {"a": [1, None, 4, 5], "b": [None, 2, 2, 5]}
    assert refusal(gaps) == (
        "column 'a' has 1 missing value, in data row 2; column 'b' has 1 missing value, in data row 1; "
        "set `missing: drop` to leave those records out, or `missing: mean` to fill them in"
    )
    np.testing.assert_array_equal(inline(gaps, missing="drop").values, [[4, 2], [5, 5]])
    np.testing.assert_allclose(
        inline(gaps, missing="mean").values, [[1, 3], [10 / 3, 2], [4, 2], [5, 5]]
    )
    said = "an audit needs at least 2 records; `missing: drop` leaves 1 record"
    assert refusal(gaps, missing="drop", rows=3) == said
    sentence = "column 'b' has no values at all"
    assert refusal({"a": [1, 2], "b": [None, None]}, missing="mean") == sentence


def test_constant():
    assert refusal({"a": [1, 2], "b": [7, 7]}) == (
        "column 'b' is constant: there is nothing to protect, and the normalized error is undefined; "
        "leave such columns out with `columns:`"
    )
    assert refusal({"a": [7, 7, None]}, missing="mean").startswith("column 'a' is constant")


@pytest.mark.parametrize("cells", [[1e200, -1e200], [1e-40, 2e-40]])
def test_variance_out_of_range(cells):
    words = "column 'a' has a variance outside the range of double precision; change its unit"
    assert refusal({"a": cells}) == words


def test_standardize():
    values = inline(AB, standardize=True).values
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(values.var(axis=0), 1, rtol=1e-14)
    far = inline({"a": [1e15, 1e15 + 2, 1e15 + 4]}, standardize=True).values[:, 0]
    np.testing.assert_allclose(far, [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-14)


def test_a_table_of_its_units_alone_has_no_column_to_audit(tmp_path):
    (tmp_path / "t.csv").write_text("home\n1\n1\n2\n")
    with pytest.raises(DataError, match="no column is left to audit"):
        load_table("t.csv", base=tmp_path, rng=np.random.default_rng(0), unit="home")


RNG = np.random.default_rng(17)
N = 400
CENTS = RNG.integers(150_000, 900_000, N) / 100
DAYS = pd.to_datetime("2010-01-01") + pd.to_timedelta(RNG.integers(0, 5000, N), unit="D")
WORDS = [f"word{number} and {number * 7}" for number in range(N)]


def kind(cells, name="x", **options):
    return column_of(name, pd.Series(cells), **options).kind


@pytest.mark.parametrize(
    ("cells", "is_"),
    [(CENTS, "number"), (RNG.integers(20, 66, N), "number"), (np.arange(N) + 10_001, "identifier"), (RNG.permutation(N) + 7.0, "identifier"), (RNG.choice(2 * N - 50, N, replace=False) * 10, "identifier"), (np.delete(np.arange(N + 30), range(5, 300, 10)), "identifier"), (RNG.integers(1, 6, N), "category"), (RNG.random(N) < 0.3, "category"), (RNG.choice(["Sales", "Legal"], N), "category"), (DAYS.strftime("%Y-%m-%d"), "date"), (DAYS.strftime("%d/%m/%Y"), "date"), (DAYS.sort_values().unique().strftime("%Y-%m-%d"), "identifier"), (WORDS, "identifier"), ([*WORDS[:-1], WORDS[0]], "free text"), ([f"${value:,.2f}" for value in CENTS], "unusable"), (["-", *map(str, CENTS[1:])], "unusable"), ([f"E{number}" for number in range(N)], "identifier"), ([np.nan] * N, "unusable"), (np.where(np.arange(N) % 2 + (np.arange(N) < 9), np.nan, CENTS), "unusable"), (np.where(np.arange(N) == 5, np.inf, CENTS), "unusable"), ([[1, 2]] * N, "unusable"), (pd.to_timedelta(np.arange(N) % 50, unit="D"), "unusable")],
)  # fmt: skip
def test_what_a_column_is(cells, is_):
    assert kind(cells) == is_


@pytest.mark.parametrize(
    ("name", "is_"), [("EmployeeID", "identifier"), ("ID", "identifier"), ("paid", "number")]
)
def test_a_name_that_says_so_makes_whole_numbers_that_are_all_different_an_identifier(name, is_):
    assert kind(RNG.choice(10**9, N, replace=False), name) == is_
    assert kind(CENTS, name) == "number"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_number_that_is_written_with_a_zero_before_it_is_a_code(suffix, tmp_path):
    frame = pd.DataFrame({"born in": RNG.integers(1_000, 99_999, N), "pay": CENTS})
    path = tmp_path / f"staff.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.assign(
            **{"born in": frame["born in"].map("{:05d}".format), "pay": frame["pay"] / 1e6}
        ).to_csv(path, index=False)
    found = {column.name: column.kind for column in describe(str(path)).columns}
    assert found == {"born in": "number" if suffix == "parquet" else "unusable", "pay": "number"}


def test_a_series_is_found_in_the_files_order_or_in_that_of_a_column_that_counts():
    walk = pd.DataFrame({
        "no": np.arange(300) + 5, "t": np.cumsum(np.random.default_rng(1).normal(size=300)),
        "u": RNG.normal(size=300),
    })  # fmt: skip
    found = describe_frames([walk])
    assert (found.order, list(found.dependent)) == (None, ["t"])
    shuffled = describe_frames([walk.sample(frac=1, random_state=2)])
    assert (shuffled.order, list(shuffled.dependent)) == ("no", ["t"])
    assert describe_frames([walk[["no", "u"]].sample(frac=1, random_state=2)]).order is None


@pytest.fixture
def frame():
    return pd.DataFrame({
        "no": np.arange(6_000),
        "pay": np.round(np.random.default_rng(2).lognormal(10, 0.4, 6_000), 2),
        "late": np.arange(6_000) // 5_999,
    })  # fmt: skip


def test_a_column_without_a_name_is_counted_and_registered_sources_are_described(tmp_path, frame):
    frame[["pay"]].to_csv(tmp_path / "t.csv")
    found = describe(str(tmp_path / "t.csv"))
    assert (found.unnamed, [column.name for column in found.columns]) == (1, ["pay"])
    assert {column.kind for column in describe("iris").columns} == {"number"}

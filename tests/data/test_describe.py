import numpy as np
import pandas as pd
import pytest

from auditor.data.columns.kinds import column_of
from auditor.data.describe import describe, describe_frames

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

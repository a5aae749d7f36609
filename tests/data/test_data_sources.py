"""The sources that ship with data, the inline one, and what holds for every registered source."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from auditor import registry
from auditor.data.load import load_table
from auditor.data.request import DataUse
from auditor.data.source import Source, outlined_table
from auditor.data.sources import shipped as cps
from auditor.data.table import Table
from auditor.errors import DataError, PluginError

REQUIRED = {
    "gaussian": {"spectrum": [4.0, 1.0, 0.5]},
    "inline": {"values": {"a": [1, 2], "b": [5, 3]}},
}
SOURCES = registry.names("source")


def load(source: str, seed: int = 0, **request: object) -> Table:
    return load_table(source, rng=np.random.default_rng(seed), **request)  # type: ignore[arg-type]


def test_the_sources_of_the_design_are_registered():
    assert {"cps", "wisconsin", "iris", "census-like", "gaussian", "inline"} <= set(SOURCES)


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


def test_the_outline_of_cps_is_what_its_file_holds():
    """In whole numbers, so that nothing is lost before the one rounding."""
    values = load("cps").values.astype(np.int64)
    n, sums, products = len(values), values.sum(axis=0), values.T @ values
    assert (n, np.abs(values).max() ** 2 * n < 2**63) == (cps.ROWS, True)
    mean = [float(Fraction(int(total), n)) for total in sums]
    covariance = [
        [
            float(Fraction(n * int(products[i, j]) - int(sums[i]) * int(sums[j]), n * n))
            for j in range(6)
        ]
        for i in range(6)
    ]
    known = cps.Cps().outline(None)
    assert (known.columns, known.rows) == (load("cps").attributes, n)
    np.testing.assert_array_equal(known.mean, mean)
    np.testing.assert_array_equal(known.covariance, covariance)


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"columns": ("state_tax", "age")},
        {"rows": 193_682},
        {"standardize": True},
        {"missing": "drop"},
    ],
    ids=str,
)
def test_cps_is_promised_as_it_is(asked):
    table, whole = outlined_table(DataUse("cps", **asked), NotImplemented), load("cps", **asked)
    described = (
        "attributes",
        "rows",
        "width",
        "source",
        "description",
        "licence",
        "standardized",
        "dropped",
        "streamed",
        "categorical",
    )
    assert [getattr(table, name) for name in described] == [
        getattr(whole, name) for name in described
    ]
    for known, found in zip(table.moments(), whole.moments(), strict=True):
        np.testing.assert_allclose(known, found, rtol=1e-12, atol=1e-12)


def test_of_fewer_records_of_cps_nothing_is_promised():
    assert outlined_table(DataUse("cps", rows=cps.ROWS - 1), NotImplemented) is None


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


def test_iris():
    table = load("iris")
    assert table.values.shape == (150, 4)
    assert table.attributes == ("sepal_length", "sepal_width", "petal_length", "petal_width")
    np.testing.assert_array_equal(table.values[0], [5.1, 3.5, 1.4, 0.2])
    with pytest.raises(
        DataError, match=r"^rows: 151 asks for more than there are; the table has 150 records$"
    ):
        load("iris", rows=151)


def test_inline_two_row_example():
    table = load("inline", parameters={"values": {"age": [9, 11]}})
    assert table.attributes == ("age",)
    assert table.values.tolist() == [[9], [11]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": [1, 2], "b": [1]}, "parameter 'values': 'b' has 1 values where 'a' has 2"),
        ({"a": [4711.5, "x"]}, "parameter 'values.a.1': Input should be a valid number"),
        ({"a": [4711.5, True]}, "parameter 'values.a.1': Input should be a valid number"),
        ({}, "parameter 'values': Dictionary should have at least 1 item"),
        (
            {"a": [4711.0] * 10_001},
            "parameter 'values': at most 10,000 cells; put a larger table in a .csv",
        ),
    ],
)
def test_inline_refuses(values, message):
    with pytest.raises(DataError) as caught:
        load("inline", parameters={"values": values})
    assert str(caught.value).startswith(f"source 'inline': {message}")
    assert "4711" not in str(caught.value)


def test_a_source_that_breaks_its_contract_is_told(monkeypatch):
    cls: type[Source] = registry.get("source", "iris")
    monkeypatch.setattr(cls, "frame", lambda self, rows, rng: np.zeros((3, 2)))
    with pytest.raises(PluginError, match="source 'iris' broke its contract"):
        load("iris")


def by_frame(source: str, monkeypatch: pytest.MonkeyPatch, **request: object) -> Table:
    """The table of a source of numbers as it was made before ``numbers``: through a DataFrame."""
    with monkeypatch.context() as patched:
        patched.setattr(
            registry.get("source", source),
            "frame",
            lambda self, rows, rng: Source.frame(self, rows, rng),
            raising=False,
        )
        return load(source, **request)


@pytest.mark.parametrize(
    "name", [name for name in SOURCES if registry.get("source", name).frame is Source.frame]
)
@pytest.mark.parametrize("standardize", [False, True])
def test_numbers_are_the_same_table_as_their_frame(name, standardize, monkeypatch):
    request = {
        "rows": 500,
        "standardize": standardize,
        "parameters": dict(registry.get("source", name).trial),
    }
    direct, framed = load(name, **request), by_frame(name, monkeypatch, **request)
    assert direct.attributes == framed.attributes
    assert direct.values.tobytes() == framed.values.tobytes()
    assert direct.fingerprint() == framed.fingerprint()
    assert (direct.description, direct.licence) == (framed.description, framed.licence)
    assert (direct.population is None) == (framed.population is None)


@pytest.mark.parametrize(
    "numbers",
    [
        {},
        {"a": np.zeros((3, 2))},
        {"a": np.zeros(3), "b": np.zeros(2)},
        {"a": np.array(["x", "y"])},
    ],
)
def test_a_source_whose_numbers_break_its_contract_is_told(numbers, monkeypatch):
    monkeypatch.setattr(
        registry.get("source", "census-like"), "numbers", lambda self, rows, rng: numbers
    )
    with pytest.raises(PluginError, match="source 'census-like' broke its contract: `numbers`"):
        load("census-like")

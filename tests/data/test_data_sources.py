import numpy as np
import pytest

from auditor.base.errors import DataError
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

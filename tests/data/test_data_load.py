import numpy as np
import pytest

from auditor.base.errors import DataError
from tests.loading import load_table


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
    assert (
        refusal(gaps, missing="drop", rows=3)
        == "an audit needs at least 2 records; `missing: drop` leaves 1 record"
    )
    assert (
        refusal({"a": [1, 2], "b": [None, None]}, missing="mean")
        == "column 'b' has no values at all"
    )


def test_constant():
    assert refusal({"a": [1, 2], "b": [7, 7]}) == (
        "column 'b' is constant: there is nothing to protect, and the normalized error is undefined; "
        "leave such columns out with `columns:`"
    )
    assert refusal({"a": [7, 7, None]}, missing="mean").startswith("column 'a' is constant")


@pytest.mark.parametrize("cells", [[1e200, -1e200], [1e-40, 2e-40]])
def test_variance_out_of_range(cells):
    assert (
        refusal({"a": cells})
        == "column 'a' has a variance outside the range of double precision; change its unit"
    )


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

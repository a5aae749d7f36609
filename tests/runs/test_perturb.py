"""``auditor.perturb`` and ``Release.extend``."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import AuditorError, DataError, PluginError
from auditor.base import AuditorWarning

X = np.random.default_rng(0).normal(size=(8, 2)) * [3.0, 50.0] + [40.0, 900.0]
FRAME = pd.DataFrame(X, columns=["age", "salary"], index=[f"r{k}" for k in range(8)])


def refusal(error, call, *args, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.filterwarnings("error")
def test_frame_in_frame_out_and_notes_that_are_errors_are_shown():
    release = auditor.perturb(FRAME.astype(object), scheme="corner-wave", levels=[0.5], seed=1)
    assert list(release.copies[0].columns) == ["age", "salary"]
    assert release.copies[0].index.equals(FRAME.index)
    assert release != release.extend([0.5], seed=2)
    with pytest.raises(AuditorWarning, match="equal one that is out already"):
        release.append(FRAME.set_index(FRAME.index + "x"), seed=2)
    with pytest.raises(AuditorError, match="release must be of `perturb`"):
        auditor.attack("llse", release.copies)


@pytest.mark.parametrize("shape", [(16,), (16, 1), (8, 2)])
def test_array_in_array_of_that_shape_out(shape):
    release = auditor.perturb(X.reshape(shape), scheme="corner-wave", levels=[0.5], seed=1)
    assert release.copies[0].shape == shape


def test_the_original_is_not_written_to():
    before = X.copy()
    auditor.perturb(X, scheme="corner-wave", levels=[0.5, 0.0], seed=1).extend([0.0], seed=2)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(("levels", "words"), [
    ([0.5, -1.0], "level 2 must be a finite noise multiple σ² ≥ 0; got -1.0"),
    ([0.5, float("inf")], "levels[1] must be a finite number; got inf"),
    (["a"], "levels[0] must be a number; got 'a'"), ([], "levels must have 1 or more entries"),
    ([0.5] * 20_000, "levels must have 10,000 or fewer entries; got a list of 20000"),
    ({"uniform": [1.0, 0.5], "count": 2}, "levels.uniform needs low ≤ high"),
])  # fmt: skip
def test_impossible_levels_are_refused(levels, words):
    assert words in refusal(AuditorError, auditor.perturb, X, "corner-wave", levels, 1)
    release = auditor.perturb(X, scheme="corner-wave", levels=[0.5], seed=1)
    assert words in refusal(AuditorError, release.extend, levels, seed=1)


def test_unknown_scheme_names_the_nearest():
    words = refusal(PluginError, auditor.perturb, X, scheme="corner-wav", levels=[0.5])
    assert words == "unknown scheme 'corner-wav'; did you mean 'corner-wave'?"


@pytest.mark.parametrize(("table", "words"), [
    (np.column_stack([X[:, 0], np.ones(8)]), "column 'x2' is constant"),
    (np.where(X > 900, np.nan, X), "missing values in column 'x2'"),
    (pd.DataFrame({"x": [1, 2, pd.NA]}, dtype="Int64"), "missing values in column 'x'"),
    (X[:1], "a table needs at least 2 rows; got 1"),
    (np.zeros((2, 2, 2)), "a table must be an array of rows and columns"),
    (FRAME.to_records(), "or a DataFrame"),
    (pd.DataFrame({"age": [1.0, 2.0], "name": ["x", "y"]}), "columns must hold numbers; 'name' do not"),
    (pd.DataFrame([[1.0, 2.0], [2.0, 3.0]], columns=["a", "a"]), "two columns have the same name"),
    (np.array([["1", "2"], ["3", "4"]]), "columns must hold numbers; 'x1', 'x2' do not"),
    ([[1.0, 2.0], [3.0]], "the table must hold numbers only"),
])  # fmt: skip
def test_impossible_tables_are_refused(table, words):
    assert words in refusal(DataError, auditor.perturb, table, "corner-wave", [0.5], 1)


@pytest.mark.parametrize(("noise", "words"), [
    ("pink", "noise must be 'white', 'data' or 'bounds' or a mapping"),
    ({"varince": 1.0}, "noise.varince is not a known field; did you mean 'variance'"),
    ({"variance": 1.0, "spectrum": [1.0, 1.0]}, "noise.spectrum does not go with the other fields"),
    ({"spectrum": [1.0]}, "noise.spectrum must have one eigenvalue per attribute, 2; got 1"),
    ({"matrix": [[1.0, 2.0], [2.0, 1.0]]}, "noise.matrix must be positive semi-definite, as a covariance is"),
    ({"matrix": [[1.0]]}, "noise.matrix must be 2 × 2, one row per attribute; got 1 × 1"),
    ({"matrix": "nowhere.csv"}, "noise.matrix: there is no file 'nowhere.csv'"),
])  # fmt: skip
def test_impossible_noise_shapes_are_refused_once(noise, words):
    shown = refusal(AuditorError, auditor.perturb, X, "corner-wave", [0.5], 1, noise=noise)
    assert shown.startswith(words)
    assert "\n" not in shown


def test_another_original_is_matched_by_the_names_of_its_columns_and_refused_in_another_order_of_records():
    values = 100 + 10 * np.random.default_rng(5).normal(size=(200, 2))
    X = pd.DataFrame(values, columns=["a", "b"]).rename("r{}".format)
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 1.0], seed=1)
    wanted = auditor.attack("llse", release).normalized_error
    swapped = auditor.attack("llse", release, original=X[["b", "a"]])
    assert swapped.normalized_error == wanted
    assert list(swapped.values.columns) == ["a", "b"]
    for other in (X.to_numpy(), X.reset_index(drop=True)):
        assert auditor.attack("llse", release, original=other).normalized_error == wanted
    for other, why in ((X[::-1], "in another order"), (X.add_prefix("c"), "must have the columns")):
        with pytest.raises(DataError, match=why):
            auditor.attack("llse", release, original=other)

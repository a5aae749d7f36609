"""The best linear attack on copies with missing cells."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.every_cell import by_group, unbiased_errors
from tests.audited import NO_LEARNER, audited_files, cells

QUIETLY = pytest.mark.filterwarnings("ignore::auditor.base.AuditorWarning")
K = np.array([[1.0, 0.6], [0.6, 2.0]])


def test_errors_are_those_of_the_hat_matrix():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    Y = np.column_stack([Y, Y[:, 0] + Y[:, 1], np.full(12, 7.0)])  # a total, and a constant
    design = np.column_stack([np.ones(12), Y])
    hat = design @ np.linalg.pinv(design)
    naive = (X - hat @ X) / np.sqrt(1.0 - np.diag(hat))[:, None]
    np.testing.assert_allclose(unbiased_errors(X, Y), naive, atol=1e-10)


def test_their_mean_square_is_what_the_best_map_leaves_however_few_the_records():
    """12 records for five coefficients, 2,000 times."""
    rng = np.random.default_rng(8)
    squares = []
    for _ in range(2_000):
        Y = rng.normal(size=(12, 4))
        X = Y.sum(axis=1, keepdims=True) + rng.normal(size=(12, 1))
        squares.append((unbiased_errors(X, Y) ** 2).mean())
    assert abs(np.mean(squares) - 1.0) < 5 * np.std(squares) / np.sqrt(2_000)


def test_errors_that_differ_along_the_file_do_not_widen_the_bars():
    """Copies that are equal in the first half of the rows: its error is the mean of two halves."""
    z = np.random.default_rng(2**40 + 3).standard_normal(9_999)
    square = 1.2 * (np.arange(9_999) > 5_000) * z**2
    bar = by_group([(1,)], [square[:, None]], np.ones(1)).distortion.std_error[0, 0]
    exact = 1.2 * np.sqrt(2.0 * 4_998) / 9_999  # Σ χ²(1) over the second half
    assert abs(bar / exact - 1.0) < 4.0 * np.sqrt(0.5 / 31)


def released(rows=4_000, seed=4):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 2)) @ np.linalg.cholesky(K).T, columns=["a", "b"])
    return X, auditor.perturb(X, "corner-wave", [0.3, 0.6], seed=seed).copies


def audited(folder, X, copies, *expect, knowledge=("perfect",), **scheme):
    who = {
        "knowledge": list(knowledge),
        "coalitions": ["subsets"],
        "expect": list(expect),
        "seed": 1,
    }
    return audited_files(folder, X, copies, None, scheme, **who)


def unknown(result, coalition, attribute):
    of = {"attack": "every-cell", "metric": "normalized_error"}
    return cells(result, coalition=coalition, attribute=attribute, **of)[0]


@pytest.mark.slow
@QUIETLY
def test_a_column_that_one_copy_lacks_is_rebuilt_from_the_others_as_theory_says(tmp_path):
    """``H`` with the missing row dropped, and five standard errors."""
    X, (first, second) = released()
    result = audited(tmp_path, X, [first.drop(columns="b"), second], knowledge=NO_LEARNER)
    K_X, held = np.cov(X.T, bias=True), [0, 2, 3]
    H = np.vstack([np.eye(2), np.eye(2)])[held]
    K_Z = np.kron([[0.3, 0.3], [0.3, 0.6]], K_X)[np.ix_(held, held)]
    left = K_X - K_X @ H.T @ np.linalg.solve(H @ K_X @ H.T + K_Z, H @ K_X)
    for j, name in enumerate(X.columns):
        found = unknown(result, (1, 2), name)
        assert abs(found.value - left[j, j] / K_X[j, j]) < 5 * found.std_error
        assert found.std_error < 0.02
    assert unknown(result, (1,), "b").value > 0.8  # what a tells of b alone: 1 − ρ²/(1 + σ²)


@QUIETLY
@pytest.mark.parametrize("leak", [True, False])
def test_the_order_of_a_file_joined_by_keys_is_one_more_cell(tmp_path, leak):
    X, (first, _) = released(1_000)
    table, copy = (each.assign(id=range(1_000)) for each in (X, first))
    order = np.argsort((X if leak else first)["a"].to_numpy())
    expect = {"exposure": {"unknown": {"at-least": 0.1}}}
    result = audited(tmp_path, table, [copy.iloc[order]], expect, key="id")
    found = unknown(result, (1,), "a").value
    assert result.expectations[0].status == ("fails" if leak else "holds")
    assert (found < 0.01) if leak else (found > 0.15)

"""The best linear attack on every cell that copies from files have: by hand, as written, against theory, and in verdicts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.audit.measures import every_cell
from auditor.audit.measures.every_cell import best_alone, squared_errors, unbiased_errors

QUIETLY = pytest.mark.filterwarnings("ignore::auditor.errors.AuditorWarning")
STATED = {"levels": [0.3, 0.6], "law": {"scheme": "corner-wave"}}
K = np.array([[1.0, 0.6], [0.6, 2.0]])


def test_a_constant_alone_by_hand():
    """Of 1, 2 and 6, mean 3, the mean square is the variance with divisor 2, which is 7."""
    found = unbiased_errors(np.array([[1.0], [2.0], [6.0]]), np.empty((3, 0)))
    np.testing.assert_allclose(found[:, 0], np.array([-2.0, -1.0, 3.0]) / np.sqrt(2 / 3))
    assert (found**2).mean() == pytest.approx(7.0)


def test_errors_are_those_of_the_hat_matrix():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    Y = np.column_stack([Y, Y[:, 0] + Y[:, 1], np.full(12, 7.0)])  # a total, and a constant
    design = np.column_stack([np.ones(12), Y])
    hat = design @ np.linalg.pinv(design)
    naive = (X - hat @ X) / np.sqrt(1.0 - np.diag(hat))[:, None]
    np.testing.assert_allclose(unbiased_errors(X, Y), naive, atol=1e-10)


def test_their_mean_square_is_what_the_best_map_leaves_however_few_the_records():
    """12 records for five coefficients, 2,000 times: five standard errors."""
    rng = np.random.default_rng(8)
    squares = []
    for _ in range(2_000):
        Y = rng.normal(size=(12, 4))
        squares.append(
            (
                unbiased_errors(Y.sum(axis=1, keepdims=True) + rng.normal(size=(12, 1)), Y) ** 2
            ).mean()
        )
    assert abs(np.mean(squares) - 1.0) < 5 * np.std(squares) / np.sqrt(2_000)


def test_records_are_rebuilt_from_what_is_there():
    """One copy as it was where it has both cells, its first cell alone elsewhere, and one record of which nothing is known."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    Y = X.copy()
    Y[100:, 1] = np.nan
    Y[199] = np.nan
    found = squared_errors(X, Y)
    np.testing.assert_allclose(found[:100], 0.0, atol=1e-20)
    np.testing.assert_allclose(found[100:199, 0], 0.0, atol=1e-20)
    assert found[100:199, 1].mean() == pytest.approx(X[100:199, 1].var(), rel=0.2)
    np.testing.assert_allclose(found[199], (X[199] - X.mean(axis=0)) ** 2 * 200 / 199)


def test_a_rare_pattern_is_learnt_from_all_records_that_have_its_cells():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 1))
    Y = np.hstack([X + rng.normal(size=(300, 1)), X + 2.0 * rng.normal(size=(300, 1))])
    Y[:5, 0] = np.nan
    alike = unbiased_errors(X, Y[:, 1:])[:5] ** 2
    np.testing.assert_array_equal(squared_errors(X, Y)[:5], alike)


def test_a_gap_that_tells_of_the_value_is_used():
    """The largest tenth suppressed: they are known to be among the largest."""
    X = np.random.default_rng(7).normal(size=(500, 1))
    top = X[:, 0] > np.quantile(X, 0.9)
    found = squared_errors(X, np.where(top[:, None], np.nan, X))[top]
    np.testing.assert_allclose(found[:, 0], (X[top, 0] - X[top].mean()) ** 2 * 50 / 49)


def test_records_of_patterns_too_many_to_learn_each_are_one_regression_with_gaps_filled(
    monkeypatch,
):
    monkeypatch.setattr(every_cell, "MOST_PATTERNS", 1)
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 1))
    Y = np.hstack([X + 0.5 * rng.normal(size=X.shape) for _ in range(3)]) + 5.0
    gone = rng.random(Y.shape) < 0.2
    Y[gone] = np.nan
    rare, some = gone.any(axis=1), ~gone.all(axis=1)
    found = squared_errors(X, Y)[rare & some]
    design = np.hstack([np.where(gone, 0.0, Y - np.nanmean(Y, axis=0)), ~gone])[rare & some]
    np.testing.assert_allclose(found, unbiased_errors(X[rare & some], design) ** 2)
    assert found.mean() < 0.3  # of two copies 0.111, of one 0.2


def files(folder, rows=4_000, seed=4):
    """Return an original and corner-wave copies of it, as frames; σ² = 0.3 and 0.6."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(rows, 2)) @ np.linalg.cholesky(K).T, columns=["a", "b"])
    X.to_csv(folder / "x.csv", index=False)
    return X, [
        pd.DataFrame(copy, columns=["a", "b"])
        for copy in auditor.perturb(X, "corner-wave", [0.3, 0.6], seed=seed).copies
    ]


def audited(folder, frames, *expect, **more):
    for number, frame in enumerate(frames, start=1):
        frame.to_csv(folder / f"y{number}.csv", index=False)
    copies = [str(folder / f"y{number}.csv") for number in range(1, len(frames) + 1)]
    return auditor.run({
        "seed": 1, "data": {"source": str(folder / "x.csv")}, "attacks": ["llse"], "coalitions": ["subsets"], "knowledge": ["perfect"],
        "schemes": [{"name": "published", "copies": copies, **more}], "expect": list(expect),
    })  # fmt: skip


def unknown(result, coalition, attribute):
    return next(r for r in result.measurements
                if (r.attack, r.metric, r.coalition, r.attribute) == ("every-cell", "normalized_error", coalition, attribute))  # fmt: skip


@QUIETLY
def test_a_column_that_one_copy_lacks_is_rebuilt_from_the_others_as_theory_says(tmp_path):
    """``H`` with the missing row dropped, and five standard errors."""
    X, (first, second) = files(tmp_path)
    result = audited(tmp_path, [first.drop(columns="b"), second])
    K_X, held = np.cov(X.T, bias=True), [0, 2, 3]
    H = np.vstack([np.eye(2), np.eye(2)])[held]
    K_Z = np.kron([[0.3, 0.3], [0.3, 0.6]], K_X)[np.ix_(held, held)]
    left = K_X - K_X @ H.T @ np.linalg.solve(H @ K_X @ H.T + K_Z, H @ K_X)
    for j, name in enumerate(X.columns):
        found = unknown(result, (1, 2), name)
        assert abs(found.value - left[j, j] / K_X[j, j]) < 5 * found.std_error
        assert found.std_error < 0.02
    assert unknown(result, (1,), "b").value > 0.8  # what a tells of b alone: 1 − ρ²/(1 + σ²)


def test_the_best_copy_is_that_of_each_pattern_and_attribute():
    copies = [np.array([[1.0], [1.0], [np.nan], [np.nan]]), np.ones((4, 1))]
    # means 2, 9 and 2.5, 3
    alone = [np.array([[1.0], [3.0], [9.0], [9.0]]), np.array([[5.0], [0.0], [2.0], [4.0]])]
    assert best_alone(copies, alone)[:, 0].tolist() == [1.0, 3.0, 2.0, 4.0]


@pytest.mark.slow
@QUIETLY
@pytest.mark.parametrize(("lacking", "status"), [(0, "fails"), (1, "holds")])
def test_pooling_pays_where_the_best_copy_lacks_a_column_and_not_where_a_worse_one_does(
    tmp_path, lacking, status
):
    """Of the column that the best copy lacks another has it, and the best copy's other column tells more of it than that one's own."""
    frames = files(tmp_path)[1]
    frames[lacking] = frames[lacking].drop(columns="b")
    result = audited(tmp_path, frames, {"no-collusion-gain": {"margin": 0.03}}, **STATED)
    assert result.expectations[0].status == status
    assert ("every-cell" in result.expectations[0].why) == (status == "fails")


@pytest.mark.slow
@QUIETLY
def test_records_and_cells_that_a_copy_lacks_at_random_are_no_gain_of_pooling(tmp_path):
    """A tenth of the best copy's records are in the other one alone: whoever holds both holds more records, and knows none better."""
    _, (first, second) = files(tmp_path)
    gone = np.random.default_rng(5).random((len(first), 1)) < 0.1
    result = audited(
        tmp_path,
        [first.mask(np.repeat(gone, 2, axis=1)), second],
        {"no-collusion-gain": {"margin": 0.03}},
        **STATED,
    )
    assert unknown(result, (1, 2), "a").value < unknown(result, (1,), "a").value - 0.03
    assert result.expectations[0].status == "holds"


@QUIETLY
@pytest.mark.slow
def test_a_bare_column_that_another_copy_lacks_is_no_longer_left_out_of_exposure(tmp_path):
    X, (first, second) = files(tmp_path, 300)
    result = audited(
        tmp_path,
        [first.assign(b=X["b"]), second.drop(columns="b")],
        {"exposure": {"unknown": {"at-least": 0.1}}},
    )
    assert result.expectations[0].status == "fails"
    assert unknown(result, (1,), "b").value < 1e-20
    for form in ("markdown", "table", "html"):
        assert "every-cell" in registry.get("renderer", form)().render([result])


@QUIETLY
def test_nothing_is_said_of_every_cell_where_all_is_audited(tmp_path):
    assert all(
        record.attack != "every-cell"
        for record in audited(tmp_path, files(tmp_path, 100)[1]).measurements
    )


@QUIETLY
@pytest.mark.parametrize("leak", [True, False])
def test_the_order_of_a_file_joined_by_keys_is_one_more_cell(tmp_path, leak):
    """Sorted by what was to be hidden a copy shows every record's rank; at random, or by its own values, its order says nothing."""
    X, (first, _) = files(tmp_path, 1_000)
    X.assign(id=range(1_000)).to_csv(tmp_path / "x.csv", index=False)
    order = np.argsort((X if leak else first)["a"].to_numpy())
    result = audited(
        tmp_path,
        [first.assign(id=range(1_000)).iloc[order]],
        {"exposure": {"unknown": {"at-least": 0.1}}},
        key="id",
    )
    found = unknown(result, (1,), "a").value
    assert result.expectations[0].status == ("fails" if leak else "holds")
    assert (found < 0.01) if leak else (found > 0.15)

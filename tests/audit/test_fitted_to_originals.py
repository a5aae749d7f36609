"""What the originals teach of copies without a law: by hand, one record left out at a time, in planted leaks and honest releases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.measures.fitted_to_originals import (
    by_place,
    factors,
    in_heap,
    left_out,
    means_by_value,
    other_rows,
    pieces,
    squared_errors,
)
from auditor.numerics.statistics import standard_ranks
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.verdict import verdicts

RNG = np.random.default_rng
QUIETLY = pytest.mark.filterwarnings("ignore::auditor.errors.AuditorWarning")
HALF = {"exposure": {"unknown": {"at-least": 0.5}}}


def audit(folder, X, copies, attacks=("ndr", "llse"), knowledge=("perfect",), **fields):
    """Audit copies in files, vouching that they are the table's: some are so far from it that nothing shows it."""
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame.to_csv(folder / "original.csv", index=False)
    for number, copy in enumerate(copies):
        pd.DataFrame(copy, columns=["a", "b"]).to_csv(folder / f"copy-{number}.csv", index=False)
    scheme = {"name": "published", "copies": [str(folder / f"copy-{number}.csv") for number in range(len(copies))], "aligned": True}
    return auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [scheme | fields], "attacks": list(attacks), "coalitions": "subsets",
        "knowledge": list(knowledge), "expect": [HALF],
    })  # fmt: skip


def taught(result, coalition=(1,), attribute="*"):
    found = [r for r in result.measurements if (r.attack, r.metric, r.attribute) == ("fitted-to-originals", "normalized_error", attribute)]
    return next(r for r in found if r.coalition == coalition)


def test_pieces_by_hand():
    """Six records in threes; records of one value stay together, and what is left over joins the last piece."""
    assert [piece.tolist() for piece in pieces(np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]), 3)] == [[0, 1, 2], [3, 4, 5]]
    assert [piece.tolist() for piece in pieces(np.array([1.0, 1.0, 1.0, 1.0, 2.0, 3.0]), 3)] == [[0, 1, 2, 3, 4, 5]]
    assert [piece.tolist() for piece in pieces(np.arange(5.0), 9)] == [[0, 1, 2, 3, 4]]


def test_a_heap_by_hand():
    y = np.concatenate([np.full(3, 7.0), np.arange(97.0) / 10 + 0.05])
    assert in_heap(y).tolist() == [True] * 3 + [False] * 97
    assert not in_heap(np.arange(100.0)).any()
    assert not in_heap(np.arange(100) % 3).any()  # three values are classes, and no heaps


def test_errors_are_those_of_a_regression_that_never_saw_the_record():
    rng = RNG(1)
    X, Y = rng.standard_normal((14, 2)), rng.standard_normal((14, 3))
    naive = []
    for t in range(14):
        others = np.arange(14) != t
        design = np.column_stack([np.ones(13), Y[others]])
        naive.append(X[t] - np.array([1.0, *Y[t]]) @ np.linalg.lstsq(design, X[others], rcond=None)[0])
    np.testing.assert_allclose(left_out(X, Y), naive, atol=1e-10)


def test_of_normal_noise_it_leaves_what_the_best_linear_attack_does_and_a_little_more():
    """At σ² = 1 half; 20 tables of 600 records: what learning costs is within 1 + 2(p + 1)/m of pieces of m records."""
    rng, left = RNG(2), []
    for _ in range(20):
        X = rng.standard_normal((600, 1))
        Y = X + rng.standard_normal((600, 1))
        left.append(squared_errors(X, [Y]).mean() / X.var())
    error = np.std(left, ddof=1) / np.sqrt(20)
    assert 0.5 - 4 * error < np.mean(left) < 0.5 * (1 + 2 * 2 / 20) + 4 * error


def test_nothing_is_learnt_of_long_tails_where_there_is_nothing():
    """One record makes nearly all of the variance: who is fitted with it in the sample would know it."""
    rng = RNG(3)
    X, Y = rng.standard_t(1.2, (2_000, 2)), rng.standard_t(1.2, (2_000, 2))
    assert (squared_errors(X, [Y]).mean(axis=0) / X.var(axis=0) > 0.98).all()


def test_a_curve_is_followed_and_so_are_records_whose_noise_is_small():
    rng = RNG(4)
    X = rng.standard_normal((2_000, 2))
    ranks = X.argsort(axis=0).argsort(axis=0).astype(float)
    assert (squared_errors(X, [ranks]).mean(axis=0) < 0.03).all()
    loud = X + rng.standard_normal(X.shape) * np.where(rng.random(X.shape) < 0.1, 50.0, 0.01)
    # a tenth is lost, and a tenth of those that were lost lie among the others
    assert (squared_errors(X, [loud]).mean(axis=0) < 0.3).all()


def test_records_that_either_copy_holds_are_rebuilt_from_both():
    """Copies of half of the records each, the others filled with the mean: a quarter is in neither."""
    rng = RNG(5)
    X = rng.standard_normal((2_000, 2))
    held = rng.random((2, 2_000, 1)) < 0.5
    copies = [np.where(each, X, X.mean(axis=0)) for each in held]
    left = squared_errors(X, copies)
    np.testing.assert_allclose(left[held.any(axis=0)[:, 0]], 0.0, atol=1e-20)
    assert (left.mean(axis=0) / X.var(axis=0)).max() < 0.3


def test_values_that_copies_agree_on_are_told_apart():
    """Of five copies with four values of ten exchanged, three or more show the original in 68 records of 100, and two do in 23."""
    rng = RNG(12)
    X = rng.standard_normal((3_000, 1))
    copies = [np.where(rng.random(X.shape) < 0.4, rng.permutation(X), X) for _ in range(5)]
    assert squared_errors(X, copies).mean() / X.var() < 0.15
    assert squared_errors(X, copies[:1]).mean() / X.var() > 0.6


def test_what_a_place_foretells():
    """Noise that comes again after 40 rows, and noise that drifts: what is left is what an average over as many rows leaves of them."""
    rng = RNG(13)
    X = rng.standard_normal((2_000, 2))
    again, drifting = np.tile(3.0 * rng.standard_normal((40, 2)), (50, 1)), 3.0 * np.sin(np.linspace(0.0, 7.0, 2_000))[:, None]
    for noise in (again, drifting):
        assert (squared_errors(X, [X + noise]).mean(axis=0) < 0.1).all()
    np.testing.assert_allclose(by_place(X + 5.0 * again)[:, 0], by_place(5.0 * again)[:, 0], atol=2.0)


def test_a_product_of_powers_by_hand():
    """``x = 3·y²/z`` is found again; of values that are not all above 0 there are no logarithms."""
    Y = np.exp(RNG(40).standard_normal((60, 2)))
    x = 3.0 * Y[:, 0] ** 2 / Y[:, 1]
    np.testing.assert_allclose(factors(x, Y)[:, 0], x, rtol=1e-9)
    assert factors(-x, Y).shape == factors(x, Y - Y.min()).shape == (60, 0)


def test_means_by_value_by_hand():
    """Every second record teaches the others: cells 7 7 5 7 5 8 have in even places x = 1, 3, 5, and in odd ones 2, 4, 6."""
    x, y = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), np.array([7.0, 7.0, 5.0, 7.0, 5.0, 8.0])
    np.testing.assert_allclose(means_by_value(x, y)[:, 0], [3.0, 1.0, 4.0, 1.0, 4.0, 3.0])  # 5 and 8 have no other half: the mean
    assert means_by_value(x, np.arange(6.0)).shape == (6, 0)


@QUIETLY
def test_other_names_for_values_hide_nothing(tmp_path):
    """A leak that left a tenth: every age has a code of its own, in no order. Shuffled ages are as safe as they were."""
    rng = RNG(42)
    X = np.column_stack([rng.integers(18, 80, 3_000), rng.standard_normal(3_000)])
    names = rng.permutation(400)
    coded = np.column_stack([names[X[:, 0].astype(int)], X[:, 1] + 5.0 * rng.standard_normal(3_000)])
    result = audit(tmp_path, X, [coded])
    assert taught(result, attribute="a").value < 0.01
    assert result.expectations[0].status == "fails"
    assert taught(audit(tmp_path, X, [np.column_stack([rng.permutation(X[:, 0]), coded[:, 1]])]), attribute="a").value > 0.98


def test_a_guess_by_factors_does_not_give_away_what_it_was_taught_by():
    """Shuffled copies of 30 long-tailed tables: as much is left as without any, and what learning costs; a guess by all others left 0.9."""
    left = []
    for seed in range(30):
        X = np.exp(RNG(seed).normal(0.0, 0.7, (1_500, 1)))
        left.append(squared_errors(X, [RNG(seed + 50).permutation(X)]).mean() / X.var())
    assert np.mean(left) > 1.0
    assert min(left) > 0.97


@QUIETLY
def test_a_factor_that_another_copy_tells_gives_all_away(tmp_path):
    """A leak of which a quarter was left: salaries times a secret factor each, and the factors as a second copy."""
    X, secret = np.exp(RNG(41).normal(0.0, 0.7, (2, 2_000, 2)))
    result = audit(tmp_path, X, [X * secret, secret])
    assert taught(result, (1,)).value > 0.5
    assert taught(result, (1, 2)).value < 1e-9
    assert result.expectations[0].status == "fails"


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("k", [1, 7, 298])
def test_the_other_rows_are_those_that_stand_out_of_all_distances(step, k):
    """Every distance in turn, as the definition says; the copy holds, with noise, what stands ``k`` rows further, or from the end."""
    X = RNG(k).exponential(size=(299, 1))
    Y = (X if step == 1 else X[::-1]) + 0.5 * RNG(k + 1).standard_normal(X.shape)
    Y = np.roll(Y, k, axis=0)
    x, y = standard_ranks(X)[:, 0], standard_ranks(Y)[:, 0]
    naive = {(s, j): abs((x * y[[s * (t + j) % 299 for t in range(299)]]).sum()) for s in (1, -1) for j in range(299) if (s, j) != (1, 0)}
    s, j = max(naive, key=lambda one: naive[one])
    found = other_rows(X, Y)
    assert s == step
    assert (found == Y[[s * (t + j) % 299 for t in range(299)]]).all(
        axis=0
    ).sum() == 1  # of rows from the end any pair counts twice: more is chance


def test_nothing_stands_elsewhere_of_rows_in_no_order():
    """Ranks of ten honest copies of a long-tailed table: noise, shuffled, values of one class."""
    X = RNG(30).standard_t(1.5, (1_000, 2))
    copies = [X + scale * RNG(31).standard_normal(X.shape) for scale in (0.0, 1.0, 30.0)]
    copies += [RNG(seed).permutation(X) for seed in range(5)] + [np.ones(X.shape), np.round(X)]
    assert [other_rows(X, copy).shape[1] for copy in copies] == [0] * 10


def test_values_of_a_record_or_of_the_one_before_are_guessed_from_both_cells():
    """Three of four replaced: the best linear guess from a record's cell and the next one's leaves 0.425, ``1 − cᵀΣ⁻¹c`` by hand."""
    c, S = np.array([0.25, 0.75]), np.array([[1.0, 0.1875], [0.1875, 1.0]])
    linear, left, rng = 1.0 - c @ np.linalg.solve(S, c), [], RNG(21)
    for _ in range(10):
        X = rng.standard_normal((2_000, 1))
        Y = np.where(rng.random(X.shape) < 0.75, np.roll(X, 1, axis=0), X)
        left.append(squared_errors(X, [Y], beside=other_rows(X, Y)).mean() / X.var())
    error = np.std(left, ddof=1) / np.sqrt(10)
    assert 0.425 == pytest.approx(linear, abs=5e-4)
    assert np.mean(left) < linear * (1 + 2 * 3 / 30) + 4 * error  # what learning costs in pieces of 30 records


@QUIETLY
@pytest.mark.parametrize("move", ["all", "from the end"])
def test_rows_that_were_moved_are_found_in_other_rows(move, tmp_path):
    """A leak that left 102 %: whoever made the copies knows where a record went. Rows in no order hide it, of values far from normal."""
    X = np.exp(RNG(20).normal(size=(2_000, 2)))
    result = audit(tmp_path, X, [np.roll(X, 1, axis=0) if move == "all" else X[::-1]])
    assert taught(result).value < 1e-9
    assert result.expectations[0].status == "fails"
    shuffled = audit(tmp_path, X, [RNG(22).permutation(X)])
    assert taught(shuffled).value > 0.95
    assert shuffled.expectations[0].status == "holds"


@QUIETLY
def test_rows_moved_in_a_long_table_are_looked_at_before_it_is_thinned_out(tmp_path, monkeypatch):
    monkeypatch.setattr("auditor.audit.measures.fitted_to_originals.MOST_TAUGHT", 400)
    X = np.exp(RNG(23).normal(size=(2_000, 2)))
    assert taught(audit(tmp_path, X, [np.roll(X, 1, axis=0)])).value < 1e-9


def test_wide_tables_are_one_regression():
    X = RNG(18).standard_normal((900, 40))
    np.testing.assert_allclose(squared_errors(X, [3.0 - 2.0 * X], orders=[np.arange(900)]), 0.0, atol=1e-20)


def test_an_order_that_is_the_attribute_s_own_gives_it_away():
    """Noise of three deviations leaves nine tenths, and none of it in a table that is sorted, or whose keys count by it."""
    X = RNG(15).standard_normal((2_000, 2))
    noisy, order = X + 3.0 * RNG(16).standard_normal(X.shape), X[:, 1].argsort().argsort()
    blind = squared_errors(X, [noisy], orders=[np.arange(2_000)]).mean(axis=0) / X.var(axis=0)
    assert blind.min() > 0.85
    told = squared_errors(X, [noisy], orders=[np.arange(2_000), order]).mean(axis=0) / X.var(axis=0)
    assert told[1] < 0.01
    assert told[0] > 0.85


@QUIETLY
def test_keys_that_count_by_an_attribute_are_found_out(tmp_path):
    rng = RNG(17)
    X = pd.DataFrame(rng.uniform(-2.0, 2.0, (600, 2)), columns=["a", "b"])
    keyed = X.assign(id=X["b"].rank().astype(int) + 1_000)
    keyed.to_csv(tmp_path / "original.csv", index=False)
    copy = keyed.assign(a=X["a"] + 3.0 * rng.standard_normal(600), b=X["b"] + 3.0 * rng.standard_normal(600))
    copy.to_csv(tmp_path / "copy.csv", index=False)
    result = auditor.run({
        "data": {"source": str(tmp_path / "original.csv")}, "attacks": ["ndr"], "knowledge": ["perfect"], "expect": [HALF],
        "schemes": [{"name": "published", "copies": [str(tmp_path / "copy.csv")], "key": "id"}],
    })  # fmt: skip
    assert taught(result, attribute="b").value < 0.05 < 0.8 < taught(result, attribute="a").value
    assert result.expectations[0].status == "fails"


def test_a_place_foretells_nothing_of_records_in_no_order():
    """A hundred columns, of normal records and of long tails, at one false alarm in ten thousand each: one is as much as chance allows."""
    rng = RNG(14)
    assert by_place(rng.standard_normal((999, 50))).shape[1] + by_place(np.exp(2.0 * rng.standard_normal((500, 50)))).shape[1] <= 1


@QUIETLY
@pytest.mark.parametrize(
    "made",
    [lambda x: 2.54 * x + 1e3, lambda x: -x, lambda x: np.exp(x / 20.0), lambda x: x.argsort(axis=0).argsort(axis=0)],
    ids=["other units", "sign", "exponential", "ranks"],
)
def test_a_copy_that_keeps_everything_is_no_safe_copy(tmp_path, made):
    """All that was told of them was what taking them for the original leaves: up to 277 times the variance, «Exposure low»."""
    X = RNG(6).standard_normal((800, 2)) * 10.0 + 50.0
    result = audit(tmp_path, X, [made(X)])
    assert result.expectations[0].status == "fails"
    assert taught(result).value < 0.05
    (verdict,) = verdicts(Reading(result))
    assert verdict.state == "bad"
    assert verdict.severity is None or verdict.severity.word == "rebuilt"  # None of what is rebuilt exactly


@QUIETLY
def test_honest_copies_are_acquitted_as_before(tmp_path):
    rng = RNG(7)
    X = rng.standard_normal((3_000, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    result = audit(tmp_path, X, [X + 2.0 * rng.standard_normal(X.shape)])
    assert result.expectations[0].status == "holds"
    shuffled = audit(tmp_path, X, [rng.permuted(X, axis=0)])
    assert shuffled.expectations[0].status == "holds"
    assert taught(shuffled).value > 0.95


def test_who_knows_nothing_of_how_copies_were_made_is_not_taught(tmp_path):
    X = RNG(8).standard_normal((300, 2))
    result = audit(tmp_path, X, [np.minimum(X, 0.5)], knowledge=[{"known-records": 50}], attacks=["ndr"])
    assert "fitted-to-originals" not in {r.attack for r in result.measurements}


def test_a_covariance_alone_is_no_whole_law(tmp_path):
    """Noise in the logarithms of 1 and 1,000: by its covariance next to nothing is known, and a threshold tells 98 of 100 apart."""
    X = pd.DataFrame(np.where(RNG(9).random((1_000, 2)) < 0.5, 1.0, 1_000.0), columns=["a", "b"])
    X.to_csv(tmp_path / "original.csv", index=False)
    result = auditor.run({
        "data": {"source": str(tmp_path / "original.csv")}, "attacks": ["llse"], "coalitions": "singles", "knowledge": ["perfect"],
        "schemes": [{"name": "multiplicative-noise", "levels": [3.0], "logs": True}],
        "expect": [HALF],
    })  # fmt: skip
    assert taught(result).value < 0.2
    assert min(r.value for r in result.measurements if (r.metric, r.attack) == ("normalized_error", "llse")) > 0.8
    assert result.expectations[0].status == "fails"


@pytest.mark.parametrize("times", [4.0, 20.0])
def test_noise_that_swings_ever_faster_is_found_by_its_place(times):
    """A sine of the square of the row's number stands out at no frequency of all rows: it left 70 to 98 %, and *held*."""
    x, t = np.exp(0.5 * RNG(31).standard_normal(3_000))[:, None], np.arange(3_000.0)[:, None]
    Y = x + times * x.std() * np.sin(np.pi * 0.4 * t**2 / 3_000)
    assert squared_errors(x, [Y]).mean() / x.var() < 0.35
    assert by_place(x + times * x.std() * RNG(32).standard_normal(x.shape)).shape == (3_000, 0)


def test_stretches_that_overlap_add_up_to_the_whole(monkeypatch):
    """Where all of the periodogram is kept the column comes back, whatever its length."""
    monkeypatch.setattr("auditor.audit.measures.fitted_to_originals.BY_CHANCE", 1e300)
    for rows in (1, 2, 63, 64, 65, 200, 256):
        Y = RNG(rows).standard_normal((rows, 2))
        found = by_place(Y)
        np.testing.assert_allclose(found[:, -2:] if found.size else 0.0, Y - Y.mean(axis=0), atol=1e-12)

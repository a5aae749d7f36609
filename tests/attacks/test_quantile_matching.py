"""Quantile matching and the orientation of copies."""

import numpy as np
import pandas as pd
import pytest

from auditor.numerics.statistics import column_ranks
from auditor.results.records import UNSEARCHED
from auditor_attacks.quantile_matching import match, orientation, recodings
from tests.audited import audited_files, cells

N, M = 3_000, 400


def table():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {"age": rng.gamma(9.0, 5.0, N).round(), "salary": np.exp(10.0 + 0.6 * rng.standard_normal(N)).round()},
    )  # fmt: skip


def taxed():
    original = table()
    salary = original["salary"] * np.exp(0.02 * (original["age"] - 45.0))
    return original.assign(salary=salary, tax=np.maximum(0.0, salary - 30_000.0))


def found(folder, *copies, expect=(), attacks=("quantile-matching",), of=table, **published):
    who = {"knowledge": [{"known-sample": M}], "coalitions": ["all"], "attacks": [*attacks]}
    return audited_files(folder, of(), copies, None, published, expect=[*expect], **who)


def errors(result):
    return {r.attribute: r.value for r in cells(result, metric="normalized_error", attack="quantile-matching")}  # fmt: skip


def test_a_place_among_the_copy_s_values_is_one_among_the_sample_s():
    """Of 10, 20, 20, 40 the places are 1/8, 1/2 and 7/8."""
    found = match(np.array([20.0, 10.0, 40.0, 20.0]), np.array([3.0, 1.0, 4.0, 2.0]))
    assert found(np.array([10.0, 20.0, 40.0])).tolist() == [1.0, 2.5, 4.0]
    assert found(np.array([0.0, 15.0, 99.0])).tolist() == [1.0, 1.75, 4.0]
    turned = match(np.array([20.0, 10.0, 40.0, 20.0]), np.array([3.0, 1.0, 4.0, 2.0]), -1.0)
    assert turned(np.array([10.0, 20.0, 40.0])).tolist() == [4.0, 2.5, 1.0]


@pytest.mark.parametrize("change", [np.log, lambda x: x.rank()], ids=["logarithms", "ranks"])
def test_a_copy_that_keeps_the_order_is_no_safe_copy_to_who_has_a_sample(change, tmp_path):
    result = found(
        tmp_path, change(table()), expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
        attacks=["all"],
    )  # fmt: skip
    assert max(errors(result).values()) < 0.1
    assert result.expectations[0].status == "fails"


@pytest.mark.parametrize(
    "change", [lambda x: x.max() - x, lambda x: x * [-1, 1, -2]], ids=["from the top", "some"]
)
def test_a_copy_that_turns_the_order_round_is_no_safe_copy_either(change, tmp_path):
    turned = found(
        tmp_path, change(taxed()), expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
        attacks=["all"], of=taxed,
    )  # fmt: skip
    assert max(errors(turned).values()) < 0.1
    assert turned.expectations[0].status == "fails"
    # each copy by itself
    assert max(errors(found(tmp_path, change(taxed()), taxed() * 3, of=taxed)).values()) < 0.1


def test_noise_turns_nothing_round(tmp_path):
    rng = np.random.default_rng(13)
    result = found(
        tmp_path,
        table() + 2.0 * table().std().to_numpy() * rng.standard_normal((N, 2)),
        expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
    )
    assert all(0.5 < error < 1.5 for error in errors(result).values())
    assert UNSEARCHED in result.expectations[0].why


RNG = np.random.default_rng


def pay(seed, rows):
    rng = RNG(seed)
    age = rng.gamma(9.0, 5.0, rows)
    salary = np.exp(10.0 + 0.015 * age + 0.6 * rng.standard_normal(rows)).round(-2)
    return np.column_stack([age, salary, np.maximum(0.0, salary - np.exp(10.2))])


@pytest.mark.parametrize("turned", [(1, 1, 1), (-1, 1, 1), (1, -1, -1)])
@pytest.mark.parametrize(
    "scale",
    [np.copy, np.cbrt, lambda x: np.column_stack([column_ranks(column) for column in x.T])],
    ids=["units", "roots", "ranks"],
)
def test_what_is_turned_is_told_by_signs_and_shapes(turned, scale):
    assert (orientation(scale(pay(1, 3_000) * turned), pay(2, 400)) == turned).all()


NOISES = {
    "none": lambda rng, x: x,
    "half": lambda rng, x: x + np.sqrt(0.5) * x.std(axis=0) * rng.standard_normal(x.shape),
    "four": lambda rng, x: x + 2.0 * x.std(axis=0) * rng.standard_normal(x.shape),
    "factors": lambda rng, x: x * np.exp(0.5 * rng.standard_normal(x.shape)),
    "swapped": lambda rng, x: rng.permuted(x, axis=0),
    "rounded": lambda rng, x: np.round(x / x.std(axis=0)),
    "logarithms": lambda rng, x: np.log1p(x),
    "squares": lambda rng, x: x**2,
}


@pytest.mark.parametrize("noise", NOISES)
def test_copies_the_right_way_up_are_not_turned(noise):
    """None of 40 draws each, of samples of 30 to 1,000 records."""
    for seed in range(40):
        X = pay(seed, 1_500)
        assert (orientation(NOISES[noise](RNG(seed), X), pay(100 + seed, (30, 100, 300, 1_000)[seed % 4])) == 1.0).all()  # fmt: skip


def test_every_recoding_is_increasing():
    for x in (np.linspace(0.5, 9.0, 50), np.linspace(-3.0, 4.0, 50), np.arange(30.0)):
        assert all((np.diff(found) > 0).all() for found in recodings(x))

"""`quantile-matching`: by hand, against whatever keeps the order of values, pooled, and against what does not keep it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import auditor
from auditor.types import Array
from auditor_attacks.quantile_matching import match

N, M = 3_000, 400


def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "age": rng.gamma(9.0, 5.0, N).round(),
            "salary": np.exp(10.0 + 0.6 * rng.standard_normal(N)).round(),
        }
    )


def taxed() -> pd.DataFrame:
    """Age, a salary that goes with it, and what three of ten pay of it: as in real tables all of it hangs together, and some is heaped."""
    original = table()
    salary = original["salary"] * np.exp(0.02 * (original["age"] - 45.0))
    return original.assign(salary=salary, tax=np.maximum(0.0, salary - 30_000.0))


def found(
    folder: Path,
    *copies: pd.DataFrame,
    expect: Any = (),
    attacks: Any = ("quantile-matching",),
    of: Any = table,
    **published: bool,
) -> auditor.AuditResult:
    of().to_csv(folder / "original.csv", index=False)
    for place, copy in enumerate(copies):
        copy.to_csv(folder / f"copy-{place}.csv", index=False)
    names = [str(folder / f"copy-{place}.csv") for place in range(len(copies))]
    return auditor.run({
        "data": {"source": str(folder / "original.csv")}, "schemes": [{"name": "published", "copies": names, **published}],
        "knowledge": [{"known-sample": M}], "coalitions": ["all"], "attacks": [*attacks], "expect": [*expect],
    })  # fmt: skip


def errors(result: auditor.AuditResult) -> dict[str, float]:
    return {
        r.attribute: r.value
        for r in result.measurements
        if r.metric == "normalized_error" and r.attack == "quantile-matching"
    }


def test_a_place_among_the_copy_s_values_is_one_among_the_sample_s() -> None:
    """Of 10, 20, 20, 40 the places are 1/8, 1/2 and 7/8; of a sample 1, 2, 3, 4 the values there are 1, 2.5 and 4."""
    found = match(np.array([20.0, 10.0, 40.0, 20.0]), np.array([3.0, 1.0, 4.0, 2.0]))
    assert found(np.array([10.0, 20.0, 40.0])).tolist() == [1.0, 2.5, 4.0]
    assert found(np.array([0.0, 15.0, 99.0])).tolist() == [1.0, 1.75, 4.0]
    turned = match(np.array([20.0, 10.0, 40.0, 20.0]), np.array([3.0, 1.0, 4.0, 2.0]), -1.0)
    assert turned(np.array([10.0, 20.0, 40.0])).tolist() == [4.0, 2.5, 1.0]


@given(
    arrays(float, st.integers(1, 30), elements=st.floats(-1e6, 1e6)),
    arrays(float, st.integers(1, 30), elements=st.floats(-1e6, 1e6)),
)
def test_whatever_is_shown_stands_for_a_value_that_the_sample_spans_in_one_order(
    y: Array, x: Array
) -> None:
    meant = match(y, x)(np.sort(y))
    assert (x.min() <= meant).all()
    assert (meant <= x.max()).all()
    assert (np.diff(meant) >= 0).all()


@pytest.mark.parametrize(
    "change",
    [lambda x: 12.0 * x, np.log, lambda x: x.rank(), lambda x: x**3],
    ids=["units", "logarithms", "ranks", "cubes"],
)
def test_a_copy_that_keeps_the_order_is_no_safe_copy_to_who_has_a_sample(
    change: Any, tmp_path: Path
) -> None:
    """The audit said «holds» here: no other attack applies to who has a sample and copies without a law."""
    result = found(
        tmp_path,
        change(table()),
        expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
        attacks=["all"],
    )
    assert max(errors(result).values()) < 0.1
    assert result.expectations[0].status == "fails"


@pytest.mark.parametrize(
    "change",
    [lambda x: -x, lambda x: x.max() - x, lambda x: x * [-1, 1, -2]],
    ids=["sign", "from the top", "some"],
)
def test_a_copy_that_turns_the_order_round_is_no_safe_copy_either(
    change: Any, tmp_path: Path
) -> None:
    """A leak that left 380 % of ages and 330 % of salaries, and *held*: who sees where the tail is, and the heap, turns them back."""
    turned = found(
        tmp_path,
        change(taxed()),
        expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
        attacks=["all"],
        of=taxed,
    )
    assert max(errors(turned).values()) < 0.1
    assert turned.expectations[0].status == "fails"
    # each copy by itself
    assert max(errors(found(tmp_path, change(taxed()), taxed() * 3, of=taxed)).values()) < 0.1


def test_copies_are_averaged(tmp_path: Path) -> None:
    alone, both = (
        errors(found(tmp_path, table() * 3)),
        errors(found(tmp_path, table() * 3, table().rank())),
    )
    assert both == pytest.approx(alone)  # either says the same


def test_noise_turns_nothing_round(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    result = found(
        tmp_path,
        table() + 2.0 * table().std().to_numpy() * rng.standard_normal((N, 2)),
        expect=[{"exposure": {"unknown": {"at-least": 0.5}}}],
    )
    assert all(0.5 < error < 1.5 for error in errors(result).values())
    assert result.expectations[0].status == "holds"


def test_swapped_values_stay_unknown(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    swapped = pd.DataFrame({name: rng.permutation(column) for name, column in table().items()}) * 3
    result = found(
        tmp_path, swapped, expect=[{"exposure": {"unknown": {"at-least": 0.5}}}], aligned=True
    )
    # of two values drawn apart
    assert all(error == pytest.approx(2.0, abs=0.5) for error in errors(result).values())
    assert result.expectations[0].status == "holds"

"""The resolution of a column."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from auditor.data.columns.scan import resolution

RNG = np.random.default_rng(8)


def of(*columns, block=1000):
    x = np.column_stack(columns).astype(float)
    return resolution(
        lambda: (x[start : start + block] for start in range(0, len(x), block)), *x.shape
    )


@pytest.mark.parametrize(("values", "step"), [([18, 25, 61], 1.0), ([19.99, 5, 0.01], 0.01), ([-20, 15, 0], 5.0), ([1e11, 1e11 + 3, 4], 1.0)])  # fmt: skip
def test_steps_by_hand(values, step):
    assert of(values).steps[0] == pytest.approx(step, rel=1e-12)


@pytest.mark.parametrize("values", [RNG.normal(size=9), [0, 0, 0], [1 / 3, 1, 2]])
def test_a_column_without_a_step_has_none(values):
    found = of(values)
    assert np.isnan(found.steps[0])
    assert np.isnan(found.commonest[0])


@given(
    units=st.lists(st.integers(-500, 500), min_size=2, max_size=30).filter(any),
    places=st.integers(0, 4),
    block=st.integers(1, 9),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_it_is_the_greatest_common_divisor_in_any_blocks(units, places, block):
    step = Fraction(
        of([unit / 10**places for unit in units], block=block).steps[0]
    ).limit_denominator(10**4)
    exact = [Fraction(unit, 10**places) / step for unit in units]
    assert all(one.denominator == 1 for one in exact)
    assert np.gcd.reduce([one.numerator for one in exact]) == 1

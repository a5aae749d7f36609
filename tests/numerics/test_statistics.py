"""Noncentral F and standard ranks."""

from __future__ import annotations

import math

import numpy as np
import scipy
from hypothesis import given
from hypothesis import strategies as st

from auditor.numerics import statistics
from auditor.numerics.statistics import noncentral_f, share_tests, standard_ranks


def test_a_share_that_rules_a_margin_out_beyond_doubt_does_so_whatever_its_last_digit():
    for last in (0.0005696908449430218, 0.0005696908449437131):
        none, some = share_tests([(last, 31, 100_000), (0.00032785175242645246, 31, 100_000)], 0.01)
        assert 0.0 <= none < 1e-30
        assert some == 1.0


@given(st.integers(1, 60), st.integers(10, 10**5), st.floats(0.1, 300.0), st.floats(0.5, 4.0))
def test_the_sum_over_poisson_is_what_scipy_has_where_that_has_it(
    degrees, rest, noncentrality, ratio
):
    F = ratio * (1.0 + noncentrality / degrees)
    known = float(scipy.special.ncfdtr(degrees, rest, noncentrality, F))
    with np.errstate(all="ignore"):
        lost = statistics.scipy
        try:
            statistics.scipy = _WithoutF()
            assert math.isclose(
                noncentral_f(F, degrees, rest, noncentrality), known, rel_tol=1e-9, abs_tol=1e-12
            )
        finally:
            statistics.scipy = lost


class _WithoutF:
    """SciPy without that function."""

    class special:
        def __getattr__(self, name):
            return getattr(scipy.special, name)

        @staticmethod
        def ncfdtr(*_):
            return math.nan

    special = special()


def test_standard_ranks_by_hand():
    """Of 5, 1, 1, 9 the ranks are 3, 1.5, 1.5, 4."""
    np.testing.assert_allclose(
        standard_ranks(np.array([[5.0], [1.0], [1.0], [9.0]]))[:, 0],
        np.array([0.5, -1.0, -1.0, 1.5]) / 1.125**0.5,
    )
    assert (standard_ranks(np.ones((3, 1))) == 0.0).all()

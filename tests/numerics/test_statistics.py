"""Noncentral F and standard ranks."""

import numpy as np

from auditor.numerics.statistics import share_tests, standard_ranks


def test_a_share_that_rules_a_margin_out_beyond_doubt_does_so_whatever_its_last_digit():
    for last in (0.0005696908449430218, 0.0005696908449437131):
        none, some = share_tests([(last, 31, 100_000), (0.00032785175242645246, 31, 100_000)], 0.01)
        assert 0.0 <= none < 1e-30
        assert some == 1.0


def test_standard_ranks_by_hand():
    """Of 5, 1, 1, 9 the ranks are 3, 1.5, 1.5, 4."""
    np.testing.assert_allclose(
        standard_ranks(np.array([[5.0], [1.0], [1.0], [9.0]]))[:, 0],
        np.array([0.5, -1.0, -1.0, 1.5]) / 1.125**0.5,
    )
    assert (standard_ranks(np.ones((3, 1))) == 0.0).all()

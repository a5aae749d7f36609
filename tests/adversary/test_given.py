"""Parts of an adversary's knowledge in a view."""

import numpy as np
import pytest

from auditor.adversary.knowledge import Estimated, KnownRecords, Perfect
from auditor.adversary.view import ExactMoments, Records, SampleMoments, UnpairedRecords, View
from auditor.base.errors import NotApplicable
from auditor.numerics.moments import Moments

X, Y, Z = (np.arange(6.0).reshape(3, 2) ** power for power in (1, 2, 3))


def view(knowledge, **given):
    return View(
        ("a", "b"),
        (3, 7),
        (0.5, 1.0),
        knowledge,
        None,
        np.zeros(2),
        Moments.of(np.hstack([Y, Z])),
        **given,
    )


def test_records_of_one_copy_are_those_with_that_copys_rows_and_moments():
    records = (
        view(KnownRecords(3), given=Records(X, (Y, Z), Moments.of(np.hstack([X, Y, Z]))))
        .coalition([7])
        .need(Records)
    )
    np.testing.assert_array_equal(records.original, X)
    np.testing.assert_array_equal(records.copies, [Z])
    np.testing.assert_array_equal(records.moments.products, np.hstack([X, Z]).T @ np.hstack([X, Z]))


def test_an_adversary_estimates_from_its_sample_or_else_from_all_that_is_released():
    sample = Moments.of(np.hstack([Y, Z])[:2])
    with_sample = view(Estimated(2), given=SampleMoments(sample))
    assert with_sample.held is sample
    np.testing.assert_array_equal(with_sample.coalition([3]).held.total, Y[:2].sum(axis=0))
    assert view(KnownRecords(2)).held.count == 3


@pytest.mark.parametrize("given", [{}, {"given": UnpairedRecords(X)}])
def test_what_was_not_given_is_asked_for_in_vain(given):
    with pytest.raises(NotApplicable, match="needs records in clear with their copies' rows"):
        view(KnownRecords(3), **given).need(Records)


def test_nobody_writes_to_what_is_given():
    held = view(Perfect(), given=ExactMoments(X.mean(axis=0), np.cov(X.T)))
    records = Records(X.copy(), (Y.copy(),), Moments.of(X))
    for array in (
        *held.data_moments,
        held.released.products,
        records.original,
        *records.copies,
        records.moments.products,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0

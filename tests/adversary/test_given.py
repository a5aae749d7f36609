"""Coalitions and the data that an adversary is given."""

from dataclasses import replace

import numpy as np
import pytest

from auditor.adversary.attack import Affine, Coalitions
from auditor.adversary.knowledge import Estimated, KnownRecords
from auditor.adversary.view import Records, SampleMoments, UnpairedRecords, View
from auditor.audit.numeric.linear_errors import Maps
from auditor.audit.numeric.reconstruct import errors_in_pieces
from auditor.base import NotApplicable
from auditor.data.table import ShownColumn
from auditor.numerics.blocks import Moments
from auditor.schemes.base.noise_law import KroneckerNoise

X, Y, Z = (np.arange(6.0).reshape(3, 2) ** power for power in (1, 2, 3))


def view(knowledge, **given):
    return View(
        ("a", "b"), (3, 7), (0.5, 1.0), knowledge, None, np.zeros(2), Moments.of(np.hstack([Y, Z])),
        **given,
    )  # fmt: skip


def test_records_of_one_copy_are_those_with_that_copys_rows_and_moments():
    known = view(KnownRecords(3), given=Records(X, (Y, Z), Moments.of(np.hstack([X, Y, Z]))))
    records = known.coalition([7]).need(Records)
    np.testing.assert_array_equal(records.original, X)
    np.testing.assert_array_equal(records.copies, [Z])
    np.testing.assert_array_equal(records.moments.products, np.hstack([X, Z]).T @ np.hstack([X, Z]))


def test_a_noisier_copy_counts_if_it_shows_another_column():
    law = KroneckerNoise(np.array([[0.3, 0.3], [0.3, 0.6]]), np.eye(2))
    for copy, counting in ((0, (3,)), (3, (3,)), (7, (3, 7))):
        shown = ShownColumn(copy, "town", np.array([0, 1, 1]))
        one = replace(view(KnownRecords(2)), law=law, shown=lambda shown=shown: [shown])
        assert one.counting == counting


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


ENTRIES = [
    Coalitions("singles"), Coalitions("pairs"), Coalitions("prefixes"), Coalitions("all"), Coalitions("subsets"), Coalitions("copies", (1,)),
    Coalitions("first", count=1), Coalitions("random", count=3), Coalitions("random", count=1000),
]  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_size_is_how_many_are_named(entry):
    for copies in (1, 2, 5):
        assert entry.size(copies) == len(list(entry.expand(copies, seed=1)))


def at_once(weights, offset, centre, copies):
    return centre + offset + np.hstack([copy - centre for copy in copies]) @ weights.T


@pytest.mark.parametrize(("n", "width"), [(1, 1), (15, 3), (5000, 2)])
@pytest.mark.parametrize("form", ["mixed", "factored", "one", "nothing"])
@pytest.mark.slow_after_first
def test_maps_are_applied_piece_by_piece_as_they_would_be_at_once(form, n, width):
    rng = np.random.default_rng(17)
    centre, offset = rng.standard_normal((2, width))
    copies = list(rng.standard_normal((3, n, width)))
    copies[1] = np.asfortranarray(copies[1])
    weights = {
        "mixed": rng.standard_normal((width, 3 * width)),
        "factored": np.kron(rng.standard_normal(3), rng.standard_normal((width, width))),
        "one": np.kron([0.0, 0.7, 0.0], rng.standard_normal((width, width))),
        "nothing": np.zeros((width, 3 * width)),
    }[form]
    before = [copy.copy() for copy in copies]
    maps, x = Maps.pad([Affine(weights, offset)], [(1, 2, 3)], 3), rng.standard_normal((n, width))
    pieces = errors_in_pieces(maps, lambda: iter([(0, x, copies)]), centre)
    found = np.concatenate([here + errors[:, 0] for _, here, errors in pieces])
    np.testing.assert_allclose(found, at_once(weights, offset, centre, copies), rtol=0, atol=1e-11)
    assert all((was == copy).all() for was, copy in zip(before, copies, strict=True))

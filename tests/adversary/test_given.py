"""Coalitions and the data that an adversary is given."""

from fractions import Fraction

import numpy as np
import pytest

import auditor
from auditor.adversary.attack import Affine, Coalitions
from auditor.adversary.view import (
    Estimated,
    ExactMoments,
    KnownRecords,
    Perfect,
    Records,
    SampleMoments,
    UnpairedRecords,
    View,
)
from auditor.base import NotApplicable
from auditor.numerics.combination import best_unbiased_combination
from auditor.numerics.moments import Moments
from auditor_attacks.llse import llse_weights

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


def write_estimates(weights, offset, centre, copies, out):
    return Affine(weights, offset).apply(copies, centre, out)


@pytest.mark.parametrize(("n", "width"), [(1, 1), (15, 3), (5000, 2)])
@pytest.mark.parametrize("form", ["mixed", "factored", "one", "nothing"])
@pytest.mark.slow_after_first
def test_maps_are_applied_piece_by_piece_as_they_would_be_at_once(form, n, width):
    rng = np.random.default_rng(17)
    centre, offset, copies = (
        rng.standard_normal(width),
        rng.standard_normal(width),
        list(rng.standard_normal((3, n, width))),
    )
    copies[1] = np.asfortranarray(copies[1])
    weights = {
        "mixed": rng.standard_normal((width, 3 * width)),
        "factored": np.kron(rng.standard_normal(3), rng.standard_normal((width, width))),
        "one": np.kron([0.0, 0.7, 0.0], rng.standard_normal((width, width))),
        "nothing": np.zeros((width, 3 * width)),
    }[form]
    before = [copy.copy() for copy in copies]
    found = Affine(weights, offset).apply(copies, centre, np.empty((n, width)))
    np.testing.assert_allclose(found, at_once(weights, offset, centre, copies), rtol=0, atol=1e-11)
    assert all((was == copy).all() for was, copy in zip(before, copies, strict=True))


def test_under_corner_wave_noise_only_the_best_copy_is_read():
    X = np.random.default_rng(20).standard_normal((200, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]])
    release = auditor.perturb(
        X,
        "corner-wave",
        np.random.default_rng(1).uniform(0.25, 1.0, 10).tolist(),
        noise="white",
        seed=3,
    )
    best = int(np.argmin(release.levels))
    W = llse_weights(np.cov(X.T, ddof=0), release.law)
    copies = [
        copy if place == best else np.full_like(copy, np.nan)
        for place, copy in enumerate(release.copies)
    ]
    out = write_estimates(W, np.zeros(2), X.mean(axis=0), copies, np.empty((200, 2)))
    alone = at_once(W[:, 2 * best : 2 * best + 2], 0.0, X.mean(axis=0), [copies[best]])
    np.testing.assert_allclose(out, alone, rtol=1e-12)


def test_far_from_zero_an_estimate_is_as_exact_as_the_copies():
    rng = np.random.default_rng(19)
    centre, levels = np.array([1e7, -3e6]), np.array([1.0, 1.002])
    w, _ = best_unbiased_combination(np.sqrt(np.outer(levels, levels)))
    copies = [centre + rng.standard_normal((20, 2)) for _ in levels]
    F = np.array([[0.9, 0.3], [-0.2, 0.8]])
    out = write_estimates(np.kron(w, F), np.zeros(2), centre, copies, np.empty((20, 2)))
    # Every stored value is off by up to half its last digit; the effect on an estimate:
    inherent = np.abs(np.kron(w, F)) @ np.spacing(np.abs(np.tile(centre, 2))) / 2
    for row in range(20):
        y = [Fraction(copy[row, j]) - Fraction(centre[j]) for copy in copies for j in range(2)]
        for i in range(2):
            exact = Fraction(centre[i]) + sum(
                Fraction(W) * value for W, value in zip(np.kron(w, F)[i], y, strict=True)
            )
            assert abs(float(Fraction(out[row, i]) - exact)) <= 4 * inherent[i]

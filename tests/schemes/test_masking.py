"""Schemes of official statistics: what they do to a table by hand, what they keep, and that leaks in them are found."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.errors import AuditorError
from auditor.numerics.random_streams import stream
from auditor.registry import get
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.masking import multiplicative_noise
from auditor.schemes.masking.condensation import drawn_alike
from auditor.schemes.masking.groups import in_deviations, mdav, means, nearest_to_random, runs
from auditor.schemes.masking.multiplicative_noise import factors
from auditor.schemes.masking.rank_swapping import partners
from auditor.schemes.masking.rounding import rounded
from auditor.testing import ContractError, check_scheme


def column(*values):
    return np.array(values, dtype=float)[:, None]


def made(name, **parameters):
    return get("scheme", name)(**parameters)


def rng(number=0):
    return stream(7, "test", number)


def people(rows=600, seed=1):
    """Age and income: one symmetric, one skewed, correlated."""
    g = np.random.default_rng(seed).normal(size=(rows, 2))
    return np.column_stack([40 + 12 * g[:, 0], np.exp(10 + 0.4 * g[:, 0] + 0.5 * g[:, 1])])


# -- rounding


def test_rounding_by_hand():
    np.testing.assert_array_equal(
        rounded(column(12, 18, -4, 33), np.array([10.0]), np.array([3.0])), column(13, 23, -7, 33)
    )
    X = np.array([[1.0, 5.0], [2.0, 5.0]])
    # a constant column stays
    np.testing.assert_array_equal(rounded(X, np.array([2.0, 0.0]), np.zeros(2))[:, 1], [5.0, 5.0])


def test_rounded_values_are_within_half_a_base_and_two_origins_tell_more_than_one():
    X = people()
    release = auditor.perturb(X, "rounding", [0.5, 0.5], seed=3, origin="random")
    assert (
        np.abs(np.array(release.copies) - X).max(axis=1) <= 0.25 * X.std(axis=0) * (1 + 1e-12)
    ).all()
    one, both = (
        auditor.attack("ndr", release, coalition=copies).normalized_error
        for copies in ([1], [1, 2])
    )
    assert one == pytest.approx(0.5**2 / 12, rel=0.2)
    assert both < 0.8 * one


# -- top coding


def test_top_coding_by_hand():
    X = column(*range(1, 12))
    np.testing.assert_array_equal(
        made("top-coding").mask(X, 0.2, rng()).ravel(), [*range(1, 10), 9, 9]
    )
    kept = made("top-coding", code="mean").mask(X, 0.2, rng())
    np.testing.assert_array_equal(kept.ravel(), [*range(1, 10), 10.5, 10.5])
    both = made("top-coding", ends="both").mask(X, 0.2, rng())
    np.testing.assert_array_equal(both.ravel(), [3, 3, *range(3, 10), 9, 9])


def test_a_mean_for_code_keeps_the_total_and_ties_at_the_quantile_are_not_coded():
    X = people()
    assert made("top-coding", code="mean", ends="both").mask(X, 0.1, rng()).sum() == pytest.approx(
        X.sum()
    )
    tied = column(1, 1, 2, 2, 2, 2)
    np.testing.assert_array_equal(made("top-coding").mask(tied, 0.3, rng()), tied)


# -- multiplicative noise


@pytest.mark.parametrize("logs", [False, True])
def test_factors_have_mean_1_and_the_variance_stated(logs):
    scheme, f = made("multiplicative-noise", logs=logs), factors(0.3, (200_000, 1), rng(), logs)
    (w,) = scheme.factor_variances([0.3])
    assert abs(f.mean() - 1.0) < 5 * np.sqrt(w / f.size)
    squares = (f - 1.0) ** 2
    assert abs(squares.mean() - w) < 5 * squares.std() / np.sqrt(f.size)
    assert (factors(0.0, (3, 1), rng(), logs) == 1.0).all()


@pytest.mark.parametrize("logs", [False, True])
def test_noise_has_the_covariance_of_the_law_over_draws_of_one_table(logs):
    X, levels, draws = people(40), (0.1, 0.4), 400
    moments = TableMoments(X.mean(axis=0), np.cov(X.T, ddof=0), len(X))
    law = made("multiplicative-noise", logs=logs).law(levels, moments)
    w = np.expm1(levels) if logs else np.array(levels)
    np.testing.assert_allclose(law.covariance, np.kron(np.diag(w), np.diag((X**2).mean(axis=0))))
    releases = [
        auditor.perturb(X, "multiplicative-noise", levels, seed=seed, logs=logs).copies
        for seed in range(draws)
    ]
    Z = np.array([np.hstack(copies) - np.hstack([X, X]) for copies in releases])
    found = np.einsum("dri,drj->dij", Z, Z) / len(X)
    assert (
        np.abs(found.mean(axis=0) - law.covariance) <= 5 * found.std(axis=0) / np.sqrt(draws)
    ).all()
    cross = np.einsum("ri,drj->dij", X, Z) / len(X)
    assert (np.abs(cross.mean(axis=0)) <= 5 * cross.std(axis=0) / np.sqrt(draws)).all()


def test_factors_other_than_those_stated_are_found_out(monkeypatch):
    check_scheme(get("scheme", "multiplicative-noise"), {"logs": True})
    drawn = multiplicative_noise.factors
    for wrong in (
        lambda level, *more: drawn(1.1 * level, *more),
        lambda level, shape, *more: drawn(level, (shape[0], 1), *more),
    ):
        monkeypatch.setattr(multiplicative_noise, "factors", wrong)
        with pytest.raises(ContractError, match="follows its law"):
            check_scheme(get("scheme", "multiplicative-noise"))


# -- groups: micro-aggregation and condensation


def test_mdav_by_hand():
    """Mean 22.5: furthest is 100, which takes its nearest, 31; opposite is 1, which takes 2; 3 and 30 are left, one group."""
    Z = column(1, 2, 3, 30, 31, 100)
    g = mdav(Z, 2)
    assert [sorted(np.flatnonzero(g == number)) for number in range(3)] == [[4, 5], [0, 1], [2, 3]]
    np.testing.assert_array_equal(means(Z, g).ravel(), [1.5, 1.5, 16.5, 16.5, 65.5, 65.5])


def naive_mdav(Z, k):
    """The paper's steps, one by one, over lists of rows."""
    left, groups = list(range(len(Z))), []

    def far(point):
        return max(left, key=lambda row: ((Z[row] - point) ** 2).sum())

    def take(row):
        group = sorted(left, key=lambda other: ((Z[other] - Z[row]) ** 2).sum())[:k]
        groups.append(set(group))
        left[:] = [other for other in left if other not in group]

    while len(left) >= 3 * k:
        r = far(np.mean([Z[row] for row in left], axis=0))
        s = far(Z[r])
        take(r)
        group = sorted(left, key=lambda other: ((Z[other] - Z[s]) ** 2).sum())[:k]
        groups.append(set(group))
        left[:] = [other for other in left if other not in group]
    if len(left) >= 2 * k:
        take(far(np.mean([Z[row] for row in left], axis=0)))
    return [*groups, set(left)]


@pytest.mark.parametrize(("rows", "k"), [(50, 3), (51, 3), (52, 3), (29, 10), (10, 10)])
def test_mdav_is_the_paper_s_and_groups_have_k_to_2k_minus_1_records(rows, k):
    Z = in_deviations(people(rows))
    g = mdav(Z, k)
    assert [set(np.flatnonzero(g == number)) for number in range(g.max() + 1)] == naive_mdav(Z, k)
    assert all(k <= count < 2 * k for count in np.bincount(g))


@pytest.mark.parametrize(("rows", "k"), [(50, 3), (29, 10), (10, 10)])
def test_every_group_has_k_records_whichever_way_it_is_made(rows, k):
    X = people(rows)
    assert np.bincount(nearest_to_random(in_deviations(X), k, rng())).min() >= k
    counts = np.bincount(runs(X[:, 1], k))
    assert counts.min() >= k
    assert counts.max() < 2 * k
    assert (np.diff(runs(X[:, 1], k)[np.argsort(X[:, 1])]) >= 0).all()


def test_micro_aggregation_keeps_means_and_makes_rows_alike():
    X = people(100)
    for method in ("mdav", "univariate"):
        Y = made("micro-aggregation", method=method).mask(X, 5, rng())
        np.testing.assert_allclose(Y.mean(axis=0), X.mean(axis=0))
        assert (Y.var(axis=0) < X.var(axis=0)).all()
    assert (
        np.unique(made("micro-aggregation").mask(X, 5, rng()), axis=0, return_counts=True)[1].min()
        >= 5
    )


def test_condensed_groups_have_their_mean_and_covariance():
    group = people(12)
    draws = np.array([drawn_alike(group, rng(number)) for number in range(3000)])
    means_of, wanted = draws.mean(axis=1), np.cov(group.T, ddof=0)
    assert (
        np.abs(means_of.mean(axis=0) - group.mean(axis=0))
        < 5 * means_of.std(axis=0) / np.sqrt(3000)
    ).all()
    d = draws - group.mean(axis=0)
    found = np.einsum("gri,grj->gij", d, d) / 12
    assert (np.abs(found.mean(axis=0) - wanted) < 5 * found.std(axis=0) / np.sqrt(3000)).all()
    assert (drawn_alike(np.ones((4, 2)), rng()) == 1.0).all()


def test_a_table_of_fewer_records_than_a_group_is_refused_by_their_number():
    with pytest.raises(AuditorError, match="at least 30 records at level 30; the table has 20"):
        auditor.perturb(people(20), "micro-aggregation", [30], seed=1)


# -- values exchanged


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 60), window=st.integers(0, 70), seed=st.integers(0, 99))
def test_ranks_are_exchanged_in_pairs_within_the_window(n, window, seed):
    other = partners(n, window, rng(seed))
    np.testing.assert_array_equal(other[other], np.arange(n))
    assert np.abs(other - np.arange(n)).max() <= window


def test_rank_swapping_by_hand():
    """With a window of 1 every rank goes with the next: 10 with 20, 30 with 40; the last has nobody left."""
    X = column(50, 10, 40, 20, 30)
    np.testing.assert_array_equal(
        made("rank-swapping").mask(X, 0.2, rng()).ravel(), [50, 20, 30, 10, 40]
    )


def test_data_swapping_moves_the_share_that_was_asked_for_and_within_a_column_nothing_of_it():
    X = people()
    Y = made("data-swapping").mask(X, 0.3, rng())
    assert ((Y != X).sum(axis=0) == 180).all()
    frame = pd.DataFrame({"group": np.arange(600) % 4, "income": X[:, 1]})
    (copy,) = auditor.perturb(frame, "data-swapping", [1.0], seed=1, within="group").copies
    np.testing.assert_array_equal(copy["group"], frame["group"])
    for _, rows in frame.groupby("group").groups.items():
        np.testing.assert_array_equal(np.sort(copy["income"][rows]), np.sort(frame["income"][rows]))
        assert (copy["income"][rows] != frame["income"][rows]).all()
    with pytest.raises(
        AuditorError, match="within: there is no attribute 'grup'; did you mean 'group'"
    ):
        auditor.perturb(frame, "data-swapping", [1.0], seed=1, within="grup")


def test_resampled_values_have_their_ranks_and_go_to_the_quantiles_with_many_samples():
    X = people(300)
    few, many = (made("resampling").mask(X, t, rng()) for t in (1, 300))
    for Y in (few, many):
        assert (np.diff(np.take_along_axis(Y, np.argsort(X, axis=0), axis=0), axis=0) >= 0).all()
    assert set(few.ravel()) <= set(X.ravel())  # one sample holds values of the table only
    assert ((many - X)[:, 0] ** 2).mean() < 0.5 * ((few - X)[:, 0] ** 2).mean()


# -- sampling


def test_sampled_records_are_out_and_others_hold_the_sample_s_mean():
    X = people(101)
    Y = made("sampling").mask(X, 0.3, rng())
    sampled = (Y == X).all(axis=1)
    assert sampled.sum() == 31
    np.testing.assert_allclose(Y[~sampled], np.tile(X[sampled].mean(axis=0), (70, 1)))


# -- all


@pytest.mark.parametrize(
    ("scheme", "level"),
    [
        ("condensation", 600),
        ("micro-aggregation", 600),
        ("data-swapping", 1.0),
        ("top-coding", 0.999),
    ],
)
def test_a_mask_that_tells_nothing_is_acquitted(scheme, level):
    release = auditor.perturb(people(), scheme, [level], seed=1)
    assert (
        auditor.attack(
            "known-io-regression", release, knowledge={"known-records": 100}
        ).normalized_error
        > 0.9
    )


NO_LEVEL = [("rounding", -0.5), ("top-coding", 0.0), ("top-coding", 1.0), ("multiplicative-noise", -0.1),
            ("micro-aggregation", 1), ("condensation", 2.5), ("rank-swapping", 1.1), ("data-swapping", -0.1), ("resampling", 0), ("sampling", 0)]  # fmt: skip


@pytest.mark.parametrize(("scheme", "level"), NO_LEVEL)
def test_a_level_that_cannot_be_is_refused(scheme, level):
    with pytest.raises(AuditorError, match="level 1 must be"):
        auditor.perturb(people(20), scheme, [level], seed=1)

"""Masking schemes of official statistics."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.base import AuditorError
from auditor.numerics.random_streams import stream
from auditor.numerics.statistics import standardised
from auditor.registry import get
from auditor.schemes import masking as masked
from auditor.schemes.base.scheme import TableMoments
from auditor.schemes.masking import mdav, means, partners, rounded
from auditor.testing import ContractError, check_scheme


def column(*values):
    return np.array(values, dtype=float)[:, None]


def made(name, **parameters):
    return get("scheme", name)(**parameters)


def rng(number=0):
    return stream(7, "test", number)


def people(rows=600, seed=1):
    """Age and income."""
    g = np.random.default_rng(seed).normal(size=(rows, 2))
    return np.column_stack([40 + 12 * g[:, 0], np.exp(10 + 0.4 * g[:, 0] + 0.5 * g[:, 1])])


def test_rounding_by_hand():
    np.testing.assert_array_equal(
        rounded(column(12, 18, -4, 33), np.array([10.0]), np.array([3.0])), column(13, 23, -7, 33)
    )
    X = np.array([[1.0, 5.0], [2.0, 5.0]])
    # a constant column stays
    np.testing.assert_array_equal(rounded(X, np.array([2.0, 0.0]), np.zeros(2))[:, 1], [5.0, 5.0])


def test_top_coding_by_hand():
    X = column(*range(1, 12))
    np.testing.assert_array_equal(
        made("top-coding").mask(X, 0.2, rng()).ravel(), [*range(1, 10), 9, 9]
    )
    kept = made("top-coding", code="mean").mask(X, 0.2, rng())
    np.testing.assert_array_equal(kept.ravel(), [*range(1, 10), 10.5, 10.5])
    both = made("top-coding", ends="both").mask(X, 0.2, rng())
    np.testing.assert_array_equal(both.ravel(), [3, 3, *range(3, 10), 9, 9])


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
    drawn = masked.factors
    for wrong in (
        lambda level, *more: drawn(1.1 * level, *more),
        lambda level, shape, *more: drawn(level, (shape[0], 1), *more),
    ):
        monkeypatch.setattr(masked, "factors", wrong)
        with pytest.raises(ContractError, match="follows its law"):
            check_scheme(get("scheme", "multiplicative-noise"))


def test_mdav_by_hand():
    """Mean 22.5."""
    Z = column(1, 2, 3, 30, 31, 100)
    g = mdav(Z, 2)
    assert [sorted(np.flatnonzero(g == number)) for number in range(3)] == [[4, 5], [0, 1], [2, 3]]
    np.testing.assert_array_equal(means(Z, g).ravel(), [1.5, 1.5, 16.5, 16.5, 65.5, 65.5])


def naive_mdav(Z, k):
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


@pytest.mark.parametrize(("rows", "k"), [(50, 3), (52, 3), (10, 10)])
def test_mdav_is_the_paper_s_and_groups_have_k_to_2k_minus_1_records(rows, k):
    Z = standardised(people(rows))
    g = mdav(Z, k)
    assert [set(np.flatnonzero(g == number)) for number in range(g.max() + 1)] == naive_mdav(Z, k)
    assert all(k <= count < 2 * k for count in np.bincount(g))


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 60), window=st.integers(0, 70), seed=st.integers(0, 99))
def test_ranks_are_exchanged_in_pairs_within_the_window(n, window, seed):
    other = partners(n, window, rng(seed))
    np.testing.assert_array_equal(other[other], np.arange(n))
    assert np.abs(other - np.arange(n)).max() <= window


def test_rank_swapping_by_hand():
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


def test_sampled_records_are_out_and_others_hold_the_sample_s_mean():
    X = people(101)
    Y = made("sampling").mask(X, 0.3, rng())
    sampled = (Y == X).all(axis=1)
    assert sampled.sum() == 31
    np.testing.assert_allclose(Y[~sampled], np.tile(X[sampled].mean(axis=0), (70, 1)))


@pytest.mark.parametrize(("scheme", "level"), [("condensation", 600), ("data-swapping", 1.0)])
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

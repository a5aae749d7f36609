"""Many coalitions at once against one at a time: the batches that make 1,023 coalitions cheap change no number."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor.adversary.affine import AffineStack
from auditor.audit.insider.noise_gain import noise_gains
from auditor.audit.numeric import linear_maps
from auditor.audit.numeric.error_bars import Members
from auditor.audit.numeric.linear_errors import squared_errors
from auditor.audit.numeric.linear_maps import Maps
from auditor.numerics.linear_algebra import ranked_regression
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import KroneckerNoise, makes_useless, one_suffices


def _covariance(seed, d, rank):
    # years beside dollars
    A = np.random.default_rng(seed).standard_normal((d, rank)) * np.logspace(0, 6, d)[:, None]
    return A @ A.T


def test_a_stack_of_regressions_may_mix_ranks():
    stack = np.array([_covariance(rank, 4, rank) for rank in (4, 2, 1)])
    W, ranks = ranked_regression(stack[:, :1], stack)
    assert ranks.tolist() == [4, 2, 1]
    for K, got in zip(stack, W, strict=True):
        np.testing.assert_allclose(got, ranked_regression(K[:1], K)[0], rtol=1e-9)


def _share_one_by_one(Sigma, levels, coalition):
    """The best copy's noise regressed on the others' differences from it, written for one coalition (li2012, Theorems 1 and 4)."""
    members = [copy - 1 for copy in coalition]
    b = min(members, key=lambda j: levels[j])
    others = [
        j for j in members if Sigma[j, j] - 2 * Sigma[j, b] + Sigma[b, b] > 1e-12 * Sigma[j, j]
    ]
    if not others:
        return 0.0, 0
    T = np.array(
        [[1.0 if i == j else -1.0 if i == b else 0.0 for i in range(len(Sigma))] for j in others]
    )
    D, cross = T @ Sigma @ T.T, T @ Sigma[b]
    return float(cross @ np.linalg.solve(D, cross) / Sigma[b, b]), len(others)


def test_noise_shares_of_every_coalition_equal_one_regression_each():
    rng = np.random.default_rng(3)
    levels = np.array([0.5, 0.25, 1.0, 0.25, 0.75])
    law = KroneckerNoise(np.minimum.outer(levels, levels), np.array([[2.0, 0.5], [0.5, 1.0]]))
    X = rng.standard_normal((400, 2))
    root = np.linalg.cholesky(law.covariance + 1e-14 * np.eye(10))
    Z = rng.standard_normal((400, 10)) @ root.T
    Z[:, 6:8] = Z[:, 2:4]  # a level asked for twice is the same copy
    total = Moments.of(np.hstack([X, *(X + Z[:, 2 * i : 2 * i + 2] for i in range(5))]))
    coalitions = sorted(
        (c for k in range(1, 6) for c in itertools.combinations(range(1, 6), k)),
        key=lambda c: (len(c), c),
    )
    gains = noise_gains(coalitions, total, law)
    blocks = (Z.T @ Z).reshape(5, 2, 5, 2)
    Sigma = np.einsum("injm,nm->ij", blocks, np.linalg.inv(law.shape)) / 800
    assert sorted(gains) == sorted(c for c in coalitions if len(c) > 1)
    for coalition, gain in gains.items():
        # its twin adds nothing to solve for
        one_less = tuple(c for c in coalition if not (c == 4 and 2 in coalition))
        share, _ = _share_one_by_one(Sigma, levels, one_less)
        assert gain.share == pytest.approx(share, abs=1e-9), coalition
        assert gain.regressors == len(one_less) - 1
        assert gain.observations == 800


def test_pairwise_uselessness_is_the_minimum_law_of_corollary_1():
    levels = np.array([0.5, 0.25, 1.0])
    useless = makes_useless(KroneckerNoise(np.minimum.outer(levels, levels), np.eye(2)))
    assert useless.tolist() == (levels[:, None] <= levels[None, :]).tolist()
    assert one_suffices(useless, (1, 2, 3))
    assert one_suffices(useless, (1, 3))
    fresh = makes_useless(KroneckerNoise(np.diag(levels), np.eye(2)))
    assert fresh.tolist() == np.eye(3, dtype=bool).tolist()
    assert one_suffices(fresh, (2,))
    assert not one_suffices(fresh, (1, 2))


@pytest.fixture(scope="module")
def stacks():
    """Random maps of every coalition of three copies of two attributes, a stack for each size."""
    rng = np.random.default_rng(11)
    coalitions = [c for k in range(1, 4) for c in itertools.combinations(range(1, 4), k)]
    runs = [list(run) for _, run in itertools.groupby(coalitions, key=len)]
    return coalitions, [
        AffineStack(
            rng.standard_normal((len(run), 2, 2 * len(run[0]))), rng.standard_normal((len(run), 2))
        )
        for run in runs
    ]


def test_linear_maps_are_padded_as_maps_one_by_one(stacks):
    coalitions, batches = stacks
    together, apart = (
        Maps.pad(batches, coalitions, 3),
        Maps.pad([list(batch) for batch in batches], coalitions, 3),
    )
    np.testing.assert_array_equal(together.weights, apart.weights)
    np.testing.assert_array_equal(together.offsets, apart.offsets)
    place = coalitions.index((1, 3))
    alone = batches[1][1]  # copies 1 and 3 are the second pair
    np.testing.assert_array_equal(
        together.weights[place],
        np.hstack([alone.weights[:, :2], np.zeros((2, 2)), alone.weights[:, 2:]]),
    )
    assert together.known is apart.known is None
    assert [len(batch[:2]) for batch in batches] == [2, 2, 1]


@pytest.mark.parametrize("weights", [1, 2**21])
def test_errors_read_no_copy_that_none_of_the_maps_weighs(monkeypatch, stacks, weights):
    """Against errors row by row, of maps one at a time and all together; a map that weighs no copy at all among them."""
    monkeypatch.setattr(linear_maps, "PIECE_WEIGHTS", weights)
    coalitions, batches = stacks
    maps = Maps.pad(
        [AffineStack(0.0 * batches[0].weights, batches[0].offsets), *batches[1:]], coalitions, 3
    )
    rows = np.random.default_rng(2).standard_normal((30, 8))
    errors = [
        rows[:, :2] - rows[:, 2:] @ W.T - offset
        for W, offset in zip(maps.weights, maps.offsets, strict=True)
    ]
    np.testing.assert_allclose(
        squared_errors(maps, Moments.of(rows)),
        [(error**2).sum(axis=0) for error in errors],
        rtol=1e-12,
    )
    assert [maps.residual(slice(place, place + 1))[0].shape[2] for place in range(7)] == [
        2,
        2,
        2,
        6,
        6,
        6,
        8,
    ]


def test_a_stack_on_all_copies_is_unpacked_to_each_coalition_s_own(stacks):
    coalitions, batches = stacks
    padded = Maps.pad(batches, coalitions, 3)
    whole = AffineStack(
        padded.weights,
        padded.offsets,
        True,
        [tuple(copy - 1 for copy in coalition) for coalition in coalitions],
    )
    alone = [affine for batch in batches for affine in batch]
    for one, same, other in zip(whole, whole[:7], alone, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(same.weights, other.weights)
    assert np.shares_memory(Maps.pad([whole], coalitions, 3).weights, padded.weights)
    np.testing.assert_array_equal(Maps.pad([alone], coalitions, 3).weights, padded.weights)


def test_known_values_of_some_maps_are_0_in_the_others(stacks):
    coalitions, batches = stacks
    V = np.diag([1.0, 0.0])
    maps = Maps.pad(
        [[replace(affine, known=V) for affine in batches[0]], *batches[1:]], coalitions, 3
    )
    assert maps.known is not None
    assert [known.tolist() for known in maps.known] == [V.tolist()] * 3 + [
        np.zeros((2, 2)).tolist()
    ] * 4


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6], [2, 0, 1, 4, 3, 5, 6]])
def test_the_best_copy_of_every_coalition_equals_a_look_at_each(order):
    coalitions = [((1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3))[place] for place in order]
    error = np.random.default_rng(5).random((7, 3))
    found = Members.of(coalitions).best(error)
    for coalition, row in zip(coalitions, found, strict=True):
        alone = {copy: coalitions.index((copy,)) for copy in coalition}
        assert row.tolist() == [
            min(alone.values(), key=lambda place: error[place, column]) for column in range(3)
        ]


TWO_COPIES = {
    "data": {"source": "gaussian", "covariance": [[1.0]], "rows": 50},
    "schemes": [{"name": "correlated", "levels": [0.5, 1.0]}],
    "attacks": ["llse"],
}


def test_a_plugin_that_returns_too_few_maps_is_told_so(monkeypatch):
    from auditor_attacks.llse import JointLLSE

    whole = JointLLSE.affine_batch
    monkeypatch.setattr(JointLLSE, "affine_batch", lambda *given: whole(*given)[:1])
    failed = {m.reason for m in auditor.run(TWO_COPIES).measurements if m.status == "failed"}
    assert failed == {"the attack returned 1 maps for 3 coalitions"}


def test_weights_on_copies_of_others_are_refused(monkeypatch):
    from auditor_attacks.llse import JointLLSE

    def greedy(self, view, coalitions):
        pooled, count = self.affine(view).weights, len(coalitions)
        return AffineStack(np.array([pooled] * count), np.zeros((count, 1)), True, [(0,)] * count)

    monkeypatch.setattr(JointLLSE, "affine_batch", greedy)
    alone = auditor.run(TWO_COPIES | {"coalitions": [[1]]}).measurements
    assert {m.reason for m in alone if m.status == "failed"} == {
        "the attack weighs copies that the coalition does not hold"
    }
    assert not [m for m in alone if m.attack == "llse" and m.value is not None]

"""Maps of many coalitions at once equal the map of each."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from auditor import registry
from auditor.adversary import view as view_module
from auditor.adversary.affine import AffineStack
from auditor.adversary.given import SampleMoments
from auditor.adversary.knowledge import Estimated, PublishedModel
from auditor.adversary.published_model import LinearModel, ModelledMoments
from auditor.adversary.view import View
from auditor.errors import NotApplicable
from auditor.numerics.combination import Levels, best_unbiased_combination, grain_of_moments
from auditor.numerics.linear_algebra import EPS, Pencil, clip_to_psd
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, level_root, psd_root
from auditor_attacks.llse import known_together

LEVELS = np.array([0.5, 0.25, 1.0, 0.25, 2.0])
MIX = np.array([[1.0, 0.0, 0.0], [0.7, 0.6, 0.0], [-0.2, 0.5, 0.8]])
# the third is the sum of the others, as in official statistics
SUM = np.array([[1.0, 0.0, 0.0], [0.7, 0.6, 0.0], [1.7, 0.6, 0.0]])
NEAR = np.sqrt([1.0, 1.0 + 3e-5, 2.0, 2.0 + 1e-3, 3.0])
SIGMA = {
    "independent": np.diag(LEVELS),
    "correlated": np.minimum.outer(LEVELS, LEVELS) + np.diag(LEVELS),
    "corner-wave": np.minimum.outer(LEVELS, LEVELS),
    "linearly-dependent": np.sqrt(np.outer(LEVELS, LEVELS)),
    "nearly equal": np.outer(NEAR, NEAR),
    "some correlated": np.diag(LEVELS)
    + 0.2 * np.kron(np.diag([1.0, 0.0]), np.ones((3, 3)))[:5, :5],
    "one exact": np.diag([0.5, 0.0, 1.0, 0.0, 2.0]),
}
TABLES = {
    "white": (MIX, np.eye(3)),
    "like the data": (MIX, MIX @ MIX.T),
    "one attribute without noise": (MIX, np.diag([1.0, 0.0, 2.0])),
    "singular": (SUM, SUM @ SUM.T),
}
"""What makes the data of independent normals, and the noise's covariance."""
ALL = np.eye(3)


def view_of(law, table="white", *, size=1.0, rows=400, follows=False, model=None, seed=3):
    """The view of who holds five copies, and estimates the moments of three attributes from some rows of them."""
    rng, Sigma, (mix, shape) = np.random.default_rng(seed), SIGMA[law], TABLES[table]
    X = rng.standard_normal((rows, 3)) @ mix.T
    Z = rng.standard_normal((rows, 15)) @ np.kron(level_root(Sigma), psd_root(shape)).T
    size = np.broadcast_to(size, 3)
    moments = Moments.of((np.tile(X, 5) + Z) * np.tile(size, 5))
    noise = KroneckerNoise(Sigma, shape * np.outer(size, size), follows_data=follows)
    knowledge, given = Estimated(rows=rows), SampleMoments(moments)
    if model is not None:
        knowledge, given = (
            PublishedModel(rows=rows, target="c", on=("a",)),
            ModelledMoments(moments, model),
        )
    return View(("a", "b", "c"), (1, 2, 3, 4, 5), (), knowledge, noise, 10.0 * size, moments, given)


def assert_as_one_by_one(view, size=1.0, mix=ALL, within=1e-12):
    """Weights in each attribute's own unit, and relative to the largest of the map: those that rebuild records exactly may be 10⁴.

    Where data and noise are combinations of fewer components (columns of ``mix``), weights on
    these: of others there is nothing to see. A combination with weights w is known to rounding
    times their squares, and so is what is made of its covariance."""
    size, attack, M = (np.broadcast_to(size, 3), registry.get("attack", "llse")(), len(view.copies))
    coalitions = [
        copies for k in range(1, M + 1) for copies in itertools.combinations(view.copies, k)
    ]
    stack = attack.affine_batch(view, coalitions)
    assert isinstance(stack, AffineStack)
    assert not stack.fixed
    assert stack.weights.shape == (len(coalitions), 3, 3 * M)
    for one, copies in zip(stack, coalitions, strict=True):
        unit, other = (
            np.tile(size, len(copies)) / size[:, None],
            attack.affine(view.coalition(copies)),
        )
        W, expected = ((affine.weights * unit).reshape(3, -1, 3) @ mix for affine in (one, other))
        largest = max(1.0, np.abs(expected).max())
        atol = largest * (within + 100 * EPS * np.square(view.coalition(copies).weights).sum())
        np.testing.assert_allclose(W, expected, rtol=0, atol=atol)
        np.testing.assert_allclose(one.offset / size, other.offset / size, rtol=0, atol=10 * atol)


# of eight rows the estimate less the noise is clipped in some coalitions, and not in others
@pytest.mark.parametrize("rows", [400, 8])
@pytest.mark.parametrize(
    ("law", "table"),
    [pair for pair in itertools.product(SIGMA, TABLES) if pair != ("nearly equal", "singular")],
)
def test_maps_by_estimated_moments_are_those_of_each_coalition_s_own_view(law, table, rows):
    """But of weights of 10⁵ on singular covariances: rounding has a say in which eigenvalues are 0."""
    assert_as_one_by_one(view_of(law, table, rows=rows), mix=TABLES[table][0])


@pytest.mark.parametrize("table", ["like the data", "singular"])
@pytest.mark.parametrize("law", SIGMA)
def test_and_where_the_noise_is_estimated_with_the_data(law, table):
    assert_as_one_by_one(view_of(law, table, follows=True), mix=TABLES[table][0])


def test_and_with_a_published_regression():
    """Which stands on a covariance that was clipped, and is singular: what rounding leaves of an eigenvalue counts by its root."""
    assert_as_one_by_one(
        view_of(
            "correlated", rows=6, model=LinearModel(2, np.array([0]), np.array([-0.2]), 1.0, 0.9)
        ),
        within=1e-7,
    )


def test_copies_of_a_smaller_view_are_found_by_their_numbers():
    assert_as_one_by_one(view_of("correlated").coalition((2, 3, 5)))


def test_noise_of_mixed_shapes_is_refused_as_for_one_coalition():
    view = replace(view_of("independent"), law=DenseNoise(np.eye(15), 3))
    with pytest.raises(NotApplicable, match="one shape"):
        registry.get("attack", "llse")().affine_batch(view, [(1, 2)])


def naive_combination(w, mean, C, held):
    """Σ w_i m_i, and Σ w_i C_ij w_j, term by term, of the copies held; with the sizes of the terms that are added up."""
    N = len(mean) // len(w)
    part = {i: slice(i * N, (i + 1) * N) for i in held}
    terms = [w[i] * w[j] * C[part[i], part[j]] for i in held for j in held]
    return sum(w[i] * mean[part[i]] for i in held), sum(terms), sum(map(np.abs, terms))


@pytest.mark.parametrize("together", [1, 3, 64])
@pytest.mark.parametrize(("M", "N"), [(1, 1), (1, 3), (7, 1), (7, 2), (12, 3)])
@pytest.mark.parametrize(
    "law", ["equal levels", "independent", "corner-wave", "linearly dependent"]
)
def test_combinations_of_neighbours_are_those_of_each(monkeypatch, law, M, N, together):
    """Singles and prefixes, which are windows, and copies from all over, which are not; however many are worked out at once."""
    monkeypatch.setattr(view_module, "MOST_NEIGHBOURS", together)
    rng = np.random.default_rng(M)
    levels = np.full(M, 0.5) if law == "equal levels" else rng.uniform(0.2, 2.0, M)
    across = {
        "independent": np.diag(levels),
        "equal levels": np.full((M, M), 0.5),
        "corner-wave": np.minimum.outer(levels, levels),
    }
    scattered = [tuple(np.flatnonzero(rng.random(M) < 0.5).tolist()) or (0,) for _ in range(5)]
    held = [(i,) for i in range(M)] + [tuple(range(k)) for k in range(1, M + 1)] + scattered
    w, v = Levels(across.get(law, np.sqrt(np.outer(levels, levels))), held).of_moments
    moments = Moments.of(rng.standard_normal((5, M * N)))
    mean, C = view_module.combinations(w, moments.mean, moments.covariance())
    for place, copies in enumerate(held):
        assert not np.delete(w[place], copies).any()
        m, K, size = naive_combination(w[place], moments.mean, moments.covariance(), copies)
        np.testing.assert_allclose(mean[place], m, rtol=0, atol=1e-13 * np.abs(w[place]).sum())
        np.testing.assert_allclose(C[place], K, rtol=0, atol=1e-14 * size.max())
    assert (v >= 0).all()


@pytest.mark.parametrize("law", SIGMA)
def test_levels_of_coalitions_in_any_order_are_those_of_each(law):
    """By their numbers, copies of a smaller view: 2, 3 and 5 of five."""
    copies, Sigma = (2, 3, 5), SIGMA[law][np.ix_([1, 2, 4], [1, 2, 4])]
    coalitions = [(2, 3, 5), (2,), (3,), (2, 5), (5,), (3, 5)]
    levels = Levels.of(Sigma, copies, coalitions)
    assert Levels.of(Sigma.copy(), copies, list(coalitions)) is levels
    for place, coalition in enumerate(coalitions):
        held = [copies.index(copy) for copy in coalition]
        own = Sigma[np.ix_(held, held)]
        grain = grain_of_moments(np.diag(own).max())
        assert (levels.extremes[0][place], levels.extremes[1][place]) == (
            np.diag(own).min(),
            np.diag(own).max(),
        )
        for (w, v), one in zip((levels.of_copies, levels.of_moments), (0.0, grain), strict=True):
            expected = best_unbiased_combination(own, one)
            np.testing.assert_allclose(w[place][held], expected[0], rtol=1e-12)
            np.testing.assert_allclose(v[place], expected[1], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("law", ["independent", "corner-wave"])
def test_what_coalitions_know_is_written_out(law, follows):
    """``K_X``: ``(Σ w_i C_ij w_j)/(1 + v)`` where the noise follows the data, else ``Σ w_i C_ij w_j − v K_0``, negative eigenvalues 0."""
    levels = Levels(SIGMA[law], [(0,), (4,), (0, 1, 2), (1, 4)])
    for rows in (8, 400):
        view = view_of(law, "like the data", follows=follows, rows=rows, seed=rows)
        mean, pencil, _ = known_together(view, view.law, levels)
        (w, v), A, c = levels.of_moments, pencil.basis, pencil.share
        for place, held in enumerate(levels.coalitions):
            m, K, _ = naive_combination(w[place], view.held.mean, view.held_covariance, held)
            values, Q = np.linalg.eigh(K - v[place] * view.law.shape)
            K_X = K / (1.0 + v[place]) if follows else (Q * np.maximum(values, 0.0)) @ Q.T
            np.testing.assert_allclose(mean[place], view.centre + m, rtol=1e-13)
            total = K_X + (K_X if follows else view.law.shape)
            np.testing.assert_allclose((A[place] * c[place]) @ A[place].T, K_X, atol=1e-12)
            np.testing.assert_allclose(A[place] @ A[place].T, total, atol=1e-12)


def test_pencils_of_several_pairs_equal_one_each_whatever_their_ranks():
    """Pairs of full rank, of one a multiple of the other, and of ranks 1 and 1 that leave a direction out, or share a 0 in one that is in."""
    a, b, c = np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, -1.0]), np.array([1.0, 0.0, 0.0])
    full = np.diag([1.0, 2.0, 3.0]) + np.outer(a, a)
    K_X = np.array(
        [
            full,
            full,
            np.outer(a, a),
            np.outer(b, b),
            np.zeros((3, 3)),
            np.outer(a, a) + np.outer(b, b),
        ]
    )
    K_0 = np.array(
        [np.eye(3), 0.3 * full, np.outer(b, b), np.outer(b, b), np.outer(c, c), np.outer(c, c)]
    )
    several, v = Pencil.of(K_X, K_0), np.array([0.5, 1.0, 2.0, 0.0, 0.1, 3.0])
    for place, pair in enumerate(zip(K_X, K_0, strict=True)):
        one = Pencil.of(*pair)
        np.testing.assert_allclose(several.gain(v)[place], one.gain(v[place]), atol=1e-12)
        np.testing.assert_allclose(several.error(v)[place], one.error(v[place]), atol=1e-12)
        A, share = several.basis[place], several.share[place]
        np.testing.assert_allclose((A * share) @ A.T, pair[0], atol=1e-12)
        np.testing.assert_allclose((A * (1 - share)) @ A.T, pair[1], atol=1e-12)


def test_covariances_are_clipped_each_in_its_own_units():
    like = np.array([np.eye(2), np.diag([1e-12, 1e12])])
    K = np.array([[[1.0, 2.0], [2.0, 1.0]], [[1e-12, 2.0], [2.0, 1e12]]])
    for together, one, alike in zip(clip_to_psd(K, like), K, like, strict=True):
        np.testing.assert_array_equal(together, clip_to_psd(one, alike))
    np.testing.assert_allclose(
        clip_to_psd(K, like), 1.5 * np.sqrt(like @ np.ones((2, 2)) @ like), rtol=1e-12
    )

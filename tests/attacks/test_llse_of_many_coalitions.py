"""Maps of many coalitions at once equal the map of each."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from auditor import registry
from auditor.adversary.attack import AffineStack
from auditor.adversary.knowledge import Estimated, PublishedModel
from auditor.adversary.published import ModelledMoments
from auditor.adversary.view import SampleMoments, View
from auditor.base.errors import NotApplicable
from auditor.numerics.linear_algebra import EPS
from auditor.numerics.moments import Moments
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise, level_root, psd_root

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
@pytest.mark.parametrize(("law", "table"), list(itertools.product(SIGMA, TABLES))[::3])
def test_maps_by_estimated_moments_are_those_of_each_coalition_s_own_view(law, table, rows):
    """But of weights of 10⁵ on singular covariances."""
    assert_as_one_by_one(view_of(law, table, rows=rows), mix=TABLES[table][0])


def test_noise_of_mixed_shapes_is_refused_as_for_one_coalition():
    view = replace(view_of("independent"), law=DenseNoise(np.eye(15), 3))
    with pytest.raises(NotApplicable, match="one shape"):
        registry.get("attack", "llse")().affine_batch(view, [(1, 2)])

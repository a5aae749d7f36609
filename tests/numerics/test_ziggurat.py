"""The ziggurat: layers of one area, its rule written out word by word, hand-worked draws, and the law of what is settled outside a layer."""

import math

import numpy as np
import pytest
from scipy import stats

from auditor.numerics.ziggurat import LAYERS, R, X, fill_normal


def drawn(words, uniforms=()):
    """Return what words give, and how many of the further numbers were asked for."""
    left, out = list(uniforms), np.empty(len(words))
    fill_normal(
        np.array(words, dtype=np.uint64), out, lambda n: np.array([left.pop(0) for _ in range(n)])
    )
    return out, len(uniforms) - len(left)


def word(layer, share):
    """Return the word that names a layer and a place, as a share of the layer's width from −1 to 1."""
    return ((int(share * 2**53) << 10) | layer) % 2**64


def test_all_layers_have_one_area_and_end_at_the_top():
    height = np.exp(-(X**2) / 2)
    areas = np.diff(height) * X[:-1]
    areas[0] = R * height[1] + math.sqrt(2 * math.pi) * stats.norm.sf(R)
    np.testing.assert_allclose(areas, areas[0], rtol=1e-12)
    assert len(areas) == LAYERS
    assert X[0] == pytest.approx(areas[0] / height[1], rel=1e-12)
    assert height[-1] == 1.0


def test_hand_worked_draws():
    np.testing.assert_allclose(
        drawn([word(100, 0.5), word(100, -0.5), word(0, 0.25)])[0],
        [X[100] / 2, -X[100] / 2, X[0] / 4],
        rtol=1e-15,
    )
    edge = 1 - 2**-20
    # At the edge of layer 100 a point is below f at the layer's foot, and above it at its top: then
    # it is drawn anew, with its sign.
    assert drawn([word(100, edge)], [0.0, 0.5])[0] == pytest.approx(X[100] * edge, rel=1e-12)
    assert drawn([word(100, -edge)], [1 - 2**-53, 0.5])[0] == pytest.approx(
        -stats.norm.isf(0.25), rel=1e-12
    )
    # Beyond r in the lowest layer the tail is drawn from.
    assert drawn([word(0, edge)], [0.0, 0.5])[0] == pytest.approx(
        stats.norm.isf(stats.norm.sf(R) / 2), rel=1e-12
    )


def test_the_rule_written_out():
    rng = np.random.default_rng(0)
    words, uniforms = (
        rng.integers(0, 2**64, 20_000, dtype=np.uint64).tolist(),
        rng.random(1_000).tolist(),
    )
    found, used = drawn(words, uniforms)
    layers = [w & 255 for w in words]
    x = [
        (((w >> 10) - (2**54 if w >= 2**63 else 0)) + 0.5) * 2.0**-53 * X[k]
        for w, k in zip(words, layers, strict=True)
    ]
    outside = [place for place, k in enumerate(layers) if abs(x[place]) >= X[k + 1]]
    assert used == 2 * len(outside)
    for rank, place in enumerate(outside):
        k, z, f = layers[place], x[place], lambda x: math.exp(-x * x / 2)
        if k == 0 or f(X[k]) + uniforms[rank] * (f(X[k + 1]) - f(X[k])) >= f(z):
            p = (uniforms[len(outside) + rank] + 2.0**-54) * (0.5 if k else stats.norm.sf(R))
            x[place] = math.copysign(stats.norm.isf(p), z)
    np.testing.assert_allclose(found, x, rtol=1e-12)


def test_both_tails():
    """Draws of layer 0 alone: beyond r, given that, they have the law of N(0, 1) there. False alarms: 1 in 1,000."""
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 400_000, dtype=np.uint64) & ~np.uint64(255)
    out = np.empty(words.size)
    fill_normal(words, out, rng.random)
    far = np.abs(out[np.abs(out) > R])
    assert len(far) > 10_000
    assert stats.kstest(stats.norm.sf(far) / stats.norm.sf(R), "uniform").pvalue > 1e-3

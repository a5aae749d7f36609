"""Joint distribution analysis: EM on a grid against the printed step, regions by hand, coloured noise, limits, and what it claims."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import auditor
from auditor.errors import NotApplicable
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined
from auditor_attacks._grid import Axis, Grid, besides, reconstructed
from auditor_attacks.joint_distribution_analysis import (
    Directions,
    JointDistributionAnalysis,
    OnGrids,
    independent,
)

NAME = "joint-distribution-analysis"
seeds = st.integers(0, 2**32 - 1)
properties = settings(max_examples=20, deadline=None, derandomize=True)


def ring(n=1500, seed=0, strangers=0):
    """A ring of radius 3, and some records at its centre, which no single attribute shows."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, n)
    X = 3 * np.column_stack([np.cos(turn), np.sin(turn)]) + 0.1 * rng.normal(size=(n, 2))
    X[:strangers] = 0.1 * rng.normal(size=(strangers, 2))
    return X


def audited(folder, X, levels, scheme="independent", measures=("interval-privacy",), **attack):
    """Audit the attack on a table in a file; return its figures by metric and copy."""
    pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).to_csv(
        folder / "x.csv", index=False
    )
    result = auditor.run({
        "seed": 1, "data": str(folder / "x.csv"), "schemes": [{"name": scheme, "levels": levels}], "coalitions": ["singles"], "replicates": 5,
        "attacks": [{"name": NAME} | attack], "measures": list(measures),
    })  # fmt: skip
    assert not (
        reasons := [record.reason for record in result.measurements if record.status == "failed"]
    ), reasons
    return {
        (m.metric, m.coalition[0]): m.value
        for m in result.measurements
        if m.attribute == "*" and m.replicate == 1
    }


# -- the grid
# ----------------------------------------------------------------------------------------------------------


@given(seed=seeds, p=st.integers(1, 3), steps=st.integers(1, 3))
@properties
def test_a_step_of_em_is_the_one_printed(seed, p, steps):
    """``π(b)/n Σ_y Π_j L_j(y, b_j) / Σ_b' π(b') Π_j L_j(y, b'_j)``, released value by value and cell by cell."""
    rng = np.random.default_rng(seed)
    shape, released = (3, 2, 4)[:p], (4, 5, 3)[:p]
    counts, L = (
        rng.integers(0, 20, released).astype(float),
        [rng.random((c, b)) + 0.01 for c, b in zip(released, shape, strict=True)],
    )
    counts.flat[0] += 1.0
    edges = [np.cumsum(rng.random(b + 1) + 0.1) for b in shape]
    mass = {
        b: np.prod([(e[i + 1] - e[i]) / (e[-1] - e[0]) for e, i in zip(edges, b, strict=True)])
        for b in product(*map(range, shape))
    }
    found = reconstructed(counts, L, edges, steps, gain=-np.inf)
    for _ in range(steps):
        new = dict.fromkeys(mass, 0.0)
        for y in product(*map(range, released)):
            joint = {b: mass[b] * np.prod([L[j][y[j], b[j]] for j in range(p)]) for b in mass}
            for b in mass:
                new[b] += counts[y] * joint[b] / sum(joint.values()) / counts.sum()
        mass = new
    np.testing.assert_allclose([found[b] for b in mass], list(mass.values()), atol=1e-12)


def test_sums_over_all_other_directions_are_sums():
    rng = np.random.default_rng(1)
    mass, F = rng.random((2, 3, 4)), [rng.random((5, b)) for b in (2, 3, 4)]
    np.testing.assert_allclose(
        besides(mass, F, 1), np.einsum("xyz,ix,iz->iy", mass, F[0], F[2]), atol=1e-14
    )
    np.testing.assert_allclose(
        besides(mass[0, 0], F[2:], 0), np.tile(mass[0, 0], (5, 1)), atol=1e-14
    )


@given(seed=seeds)
@properties
def test_directions_of_coloured_noise_are_independent(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3)) * [1, 100, 0.01]
    T, std = independent(root.T @ root)
    decorrelated = T @ root.T @ root @ T.T
    np.testing.assert_allclose(decorrelated / np.outer(std, std), np.eye(3), atol=1e-6)
    np.testing.assert_array_equal(np.triu(T, 1), 0.0)


def by_hand(mass, rare, confidence=0.9):
    """An attack on two attributes on [0, 4]², four bins each, whose noise of a two-hundredth of a bin shows which cell a record is in."""
    edges, channel = np.arange(5.0), Combined(NoiseDensity("gaussian", 0.005), np.ones(1))
    grid = Grid([Axis(j, channel, edges) for j in range(2)], mass)
    return OnGrids(Directions(None, np.eye(2), np.eye(2), [channel] * 2), [grid], rare, confidence)


def test_regions_by_hand():
    """A hundred records on the diagonal, one at the corner (0.5, 3.5): it alone is in a cell of a hundredth, though no attribute shows it."""
    mass = np.diag([0.25, 0.25, 0.25, 0.24])
    mass[0, 3] = 0.01
    y = np.array([[0.5, 3.5], [0.5, 0.5], [3.5, 3.5], [0.5, 2.5]])
    found = by_hand(mass, rare=0.02).regions([y])
    # the last lies where nothing can be
    assert found.claims.tolist() == [True, False, False, False]
    assert (np.abs(found.low[0] - y[0]) < 0.05).all()
    assert (found.low[0] < y[0]).all()
    assert (y[0] < found.high[0]).all()
    assert not by_hand(mass, rare=0.005).regions([y]).claims.any()
    np.testing.assert_allclose(by_hand(mass, rare=0.02).rows([y]), y, atol=1e-9)


# -- what it finds
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "noise"), [("independent", "white"), ("correlated", "data"), ("laplace", None)]
)
def test_two_attributes_together_are_found_better_than_one_by_one(scheme, noise):
    """The ring's attributes are uncorrelated: no linear attack and no prior of one attribute knows that its middle is empty."""
    release = auditor.perturb(
        ring() @ np.array([[1.0, 0.6], [0.0, 0.8]]),
        scheme,
        [0.05],
        seed=2,
        **({} if noise is None else {"noise": noise}),
    )
    together, alone, line = (auditor.attack(*each[:1], release, **each[1]).normalized_error for each in (
        (NAME, {}), (NAME, {"dimensions": 1}), ("llse", {})))  # fmt: skip
    assert together < 0.92 * alone
    assert together < 0.92 * line


def test_strangers_are_found_by_two_attributes_and_not_by_one(tmp_path):
    """Five of 1,000 in the middle of the ring, where either attribute has hundreds of others; the noise is coloured."""
    X = ring(1000, strangers=5) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    two, one = (
        audited(tmp_path, X, [0.0005], "correlated", dimensions=dimensions, bins=40, rare=8)
        for dimensions in (2, 1)
    )
    none = audited(tmp_path, X[5:], [0.0005], "correlated", bins=40, rare=8)
    assert one["rare_claimed", 1] == 0.0
    assert two["rare_disclosed", 1] * 1000 >= none["rare_disclosed", 1] * 995 + 4


def test_without_noise_everybody_is_where_it_says_and_under_too_much_nobody_is_claimed(tmp_path):
    found = audited(tmp_path, ring(600), [1e-14, 100.0], bins=40, rare=6)
    assert found["rare_claimed", 1] == found["rare_disclosed", 1] > 0.5
    assert found["rare_claimed", 2] <= 1 / 600
    assert found["normalized_error", 1] < 1e-9


def test_intervals_hold_about_what_they_claim(tmp_path):
    """At 90 % of 2,000 records, learnt from the same noise: within 5 points, coloured noise from above."""
    X = ring(2000)
    measures = [{"interval-privacy": 0.9}]
    assert abs(audited(tmp_path, X, [0.1], measures=measures)["localised_share", 1] - 0.9) < 0.05
    assert (
        0.88
        < audited(tmp_path, X, [0.1], "correlated", measures=measures)["localised_share", 1]
        < 0.99
    )


def test_pooling_corner_wave_copies_changes_nothing():
    release = auditor.perturb(ring(400), "corner-wave", [0.1, 0.4], seed=3)
    best, pooled = (auditor.attack(NAME, release, coalition=c).values for c in ([1], [1, 2]))
    np.testing.assert_allclose(pooled, best, atol=1e-9)


@pytest.mark.parametrize("X", [
    np.array([[1.0, 5.0], [2.0, 7.0]]), np.column_stack([np.repeat([0.0, 1.0], 20), np.arange(40.0)]), 1e9 + ring(50), ring(50)[:, :1],
    np.hstack([ring(50), ring(50, 1)])[:, :3],
])  # fmt: skip
@pytest.mark.parametrize("dimensions", [2, 3])
def test_few_rows_ties_large_offsets_and_leftover_attributes(X, dimensions):
    release = auditor.perturb(X, "corner-wave", [1e-6], seed=4)
    assert auditor.attack(NAME, release, dimensions=dimensions).normalized_error < 0.01


# -- what it refuses
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"dimensions": 3, "bins": 41},
        {"bins": 257},
        {"dimensions": 4},
        {"rare": 0.0},
        {"confidence": 1.0},
    ],
)
def test_grids_that_are_too_large_are_refused(parameters):
    with pytest.raises(ValidationError) as refused:
        JointDistributionAnalysis.Parameters(**parameters)
    if "bins" in parameters:
        assert "bins each" in str(refused.value)


def test_what_has_no_law_or_no_independent_directions_is_refused():
    X = ring(60) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    release = auditor.perturb(X, "independent", [0.1], seed=1, noise="data", distribution="uniform")
    with pytest.raises(NotApplicable, match="correlated between attributes"):
        auditor.attack(NAME, release)

"""Joint distribution analysis."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

import auditor
from auditor.schemes.base.noise_density import NoiseDensity
from auditor_attacks._channel import Combined
from auditor_attacks._grid import Axis, Grid, reconstructed
from auditor_attacks.joint_distribution_analysis import (
    Directions,
    JointDistributionAnalysis,
    OnGrids,
)

NAME = "joint-distribution-analysis"
seeds = st.integers(0, 2**32 - 1)
properties = settings(max_examples=20, deadline=None, derandomize=True)


def ring(n=1500, seed=0, strangers=0):
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0, 2 * np.pi, n)
    X = 3 * np.column_stack([np.cos(turn), np.sin(turn)]) + 0.1 * rng.normal(size=(n, 2))
    X[:strangers] = 0.1 * rng.normal(size=(strangers, 2))
    return X


def audited(folder, X, levels, scheme="independent", measures=("interval-privacy",), **attack):
    """Audit the attack on a table in a file."""
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


@given(seed=seeds, p=st.integers(1, 3), steps=st.integers(1, 3))
@properties
def test_a_step_of_em_is_the_one_printed(seed, p, steps):
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


def by_hand(mass, rare, confidence=0.9):
    edges, channel = np.arange(5.0), Combined(NoiseDensity("gaussian", 0.005), np.ones(1))
    grid = Grid([Axis(j, channel, edges) for j in range(2)], mass)
    return OnGrids(Directions(None, np.eye(2), np.eye(2), [channel] * 2), [grid], rare, confidence)


def test_regions_by_hand():
    mass = np.diag([0.25, 0.25, 0.25, 0.24])
    mass[0, 3] = 0.01
    y = np.array([[0.5, 3.5], [0.5, 0.5], [3.5, 3.5], [0.5, 2.5]])
    found = by_hand(mass, rare=0.02).regions([y])
    # the last lies in an impossible place
    assert found.claims.tolist() == [True, False, False, False]
    assert (np.abs(found.low[0] - y[0]) < 0.05).all()
    assert (found.low[0] < y[0]).all()
    assert (y[0] < found.high[0]).all()
    assert not by_hand(mass, rare=0.005).regions([y]).claims.any()
    np.testing.assert_allclose(by_hand(mass, rare=0.02).rows([y]), y, atol=1e-9)


def test_strangers_are_found_by_two_attributes_and_not_by_one(tmp_path):
    X = ring(1000, strangers=5) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    two, one = (
        audited(tmp_path, X, [0.0005], "correlated", dimensions=dimensions, bins=40, rare=8)
        for dimensions in (2, 1)
    )
    none = audited(tmp_path, X[5:], [0.0005], "correlated", bins=40, rare=8)
    assert one["rare_claimed", 1] == 0.0
    assert two["rare_disclosed", 1] * 1000 >= none["rare_disclosed", 1] * 995 + 4


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

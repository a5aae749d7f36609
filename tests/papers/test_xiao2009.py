"""Xiao, Tao and Chen 2009: Figure 7."""

import math

import numpy as np
import pytest

import auditor
from auditor.data.columns.categorical_table import Categories
from auditor.scenario.model import parse_levels
from tests.loading import load_table

RANGE = {"uniform": [0.001, 0.5], "count": 7, "each-replicate": True}


def reconstruction(prior, levels, records, rng):
    s, total = len(prior), 0.0
    for x in rng.choice(s, records, p=prior):
        belief = prior.copy()
        for p in levels:
            y = x if rng.random() < p else rng.integers(s)
            likelihood = np.full(s, (1 - p) / s)
            likelihood[y] += p
            belief = belief * likelihood
        total += belief[x] / belief.sum()
    return total / records


@pytest.fixture(scope="module")
def drawn():
    changes = {
        "data.rows": 1000, "replicates": 8, "expect": [],
        "sweep": {"schemes[*].levels.count": [1, 7]},
    }  # fmt: skip
    return auditor.run("xiao2009-fig7", overrides=changes)


def line(result, scheme, count):
    return [
        r for r in result.measurements
        if (r.scheme, r.metric, len(r.levels)) == (scheme, "reconstruction_probability", count)
    ]  # fmt: skip


def test_every_draw_of_levels_has_the_reconstruction_that_the_paper_derives(drawn):
    prior = load_table(
        "salary-like", rows=1000, rng=np.random.default_rng(1), categories=Categories()
    ).categorical.prior  # type: ignore[union-attr]
    rng, records = np.random.default_rng(7), 1500
    for r in line(drawn, "uniform", 7):
        # a probability of mean m has at most the variance m(1 − m); 8 comparisons at 4.5 errors: a
        # false alarm in eighteen thousand
        bound = 4.5 * math.sqrt(r.value * (1 - r.value) * (1 / records + 1 / 1000))
        assert abs(r.value - reconstruction(prior, r.levels, records, rng)) < bound


def test_every_replicate_draws_levels_anew_and_both_schemes_have_the_same(drawn):
    fresh, nested = (line(drawn, scheme, 7) for scheme in ("uniform", "uniform-multilevel"))
    assert [r.levels for r in fresh] == [r.levels for r in nested]
    assert len({r.levels for r in fresh}) == 8
    # more recipients only add to fewer
    assert [r.levels[:1] for r in fresh] == [r.levels for r in line(drawn, "uniform", 1)]
    # the first are the shared ones
    assert fresh[0].levels == parse_levels({**RANGE, "each-replicate": False}).resolve(2009)


def test_theorem_3_holds_of_levels_drawn_anew():
    scenario = {
        "seed": 3, "data": {"source": "gaussian", "rows": 200, "covariance": [[4.0, 1.0], [1.0, 2.0]]}, "replicates": 8,
        "schemes": [{"name": "correlated", "levels": {"uniform": [0.25, 1.0], "count": 3, "each-replicate": True}}],
        "coalitions": ["prefixes"], "attacks": ["llse"], "expect": ["theorem-3"],
    }  # fmt: skip
    assert [e.status for e in auditor.run(scenario).expectations] == ["holds"]

"""A run is a function of scenario, data and seed."""

import numpy as np
import pytest

import auditor

SCENARIO = {
    "schema": 1, "title": "determinism", "seed": 5, "replicates": 2,
    "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 500},
    "schemes": [{"name": "corner-wave", "levels": {"uniform": [0.25, 1.0], "count": 3}}],
    "knowledge": ["perfect", {"estimated": {"rows": 100}}], "coalitions": ["subsets"],
    "attacks": ["llse"], "expect": [{"no-collusion-gain": {}}],
}  # fmt: skip
MORE_SCHEMES = [
    {"name": "independent", "levels": {"uniform": [0.25, 1.0], "count": 3}},
    *SCENARIO["schemes"],
]


def figures(**changes):
    scenario = SCENARIO | changes
    result = auditor.run(scenario)
    return [r for r in result.measurements if r.scheme == "corner-wave" and r.attack == "llse"]


@pytest.fixture(scope="module")
def plain():
    return figures()


@pytest.mark.slow
def test_one_and_two_workers_give_the_same_results():
    scenario = SCENARIO | {"schemes": MORE_SCHEMES}
    one, two = auditor.run(scenario, workers=1), auditor.run(scenario, workers=2)
    assert one.measurements == two.measurements
    assert one.expectations == two.expectations


ESTIMATED = [{"estimated": {"rows": rows}} for rows in (100, 200)]


@pytest.mark.parametrize("changes", [
    {}, {"knowledge": ["perfect", *ESTIMATED]}, {"replicates": 3}, {"expect": []},
    {"attacks": ["ndr", "llse"]}, {"schemes": MORE_SCHEMES},
    {"measures": [{"within": {"tolerance": 0.5}}, "seconds"]},
], ids=str)  # fmt: skip
@pytest.mark.slow_after_first
def test_adding_one_thing_changes_no_number_of_another(plain, changes):
    extra = [
        record
        for record in figures(**changes)
        if record.metric != "within"
        and record.knowledge != "estimated(rows=200)"
        and record.replicate <= 2
    ]
    assert extra == plain


def test_adding_a_level_at_the_end_changes_no_earlier_copy(plain):
    longer = figures(
        schemes=[{"name": "corner-wave", "levels": {"uniform": [0.25, 1.0], "count": 4}}]
    )
    singles = [r for r in longer if r.coalition in ((1,), (2,), (3,)) and r.metric == "distortion"]
    before = [r for r in plain if len(r.coalition) == 1 and r.metric == "distortion"]
    assert [r.coalition for r in singles] == [r.coalition for r in before]
    np.testing.assert_allclose([r.value for r in singles], [r.value for r in before], rtol=1e-12)


def test_seeds_and_replicates_matter(plain):
    errors = [r.value for r in plain if r.metric == "distortion"]
    other = [r.value for r in figures(seed=6) if r.metric == "distortion"]
    assert all(a != b for a, b in zip(errors, other, strict=True))
    alone = [r for r in plain if r.coalition == (1,) and r.attribute == "*"]
    drawn = {r.replicate: r.value for r in alone if r.metric == "distortion"}
    assert len(set(drawn.values())) == 2

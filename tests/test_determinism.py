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


def test_the_same_again(plain):
    assert figures() == plain


@pytest.mark.slow
def test_one_and_two_workers_give_the_same_results():
    scenario = SCENARIO | {"schemes": MORE_SCHEMES}
    one, two = auditor.run(scenario, workers=1), auditor.run(scenario, workers=2)
    assert one.measurements == two.measurements
    assert one.expectations == two.expectations


@pytest.mark.slow
def test_adding_one_thing_changes_no_number_of_another(plain):
    for changes in [
        {"attacks": ["ndr", "llse"]},
        {"schemes": MORE_SCHEMES},
        {"expect": []},
        {"measures": [{"within": {"tolerance": 0.5}}, "seconds"]},
    ]:
        extra = [record for record in figures(**changes) if record.metric != "within"]
        assert extra == plain


def test_adding_knowledge_changes_no_other_s_numbers(plain):
    more = figures(
        knowledge=["perfect", {"estimated": {"rows": 100}}, {"estimated": {"rows": 200}}]
    )
    assert [record for record in more if record.knowledge != "estimated(rows=200)"] == plain


def test_adding_a_replicate_changes_no_earlier_one(plain):
    more = figures(replicates=3)
    assert [record for record in more if record.replicate <= 2] == plain


def test_adding_a_level_at_the_end_changes_no_earlier_copy(plain):
    longer = figures(
        schemes=[{"name": "corner-wave", "levels": {"uniform": [0.25, 1.0], "count": 4}}]
    )
    singles = [r for r in longer if r.coalition in ((1,), (2,), (3,)) and r.metric == "distortion"]
    before = [r for r in plain if len(r.coalition) == 1 and r.metric == "distortion"]
    assert [r.coalition for r in singles] == [r.coalition for r in before]
    np.testing.assert_allclose([r.value for r in singles], [r.value for r in before], rtol=1e-12)


def test_seeds_matter(plain):
    other = figures(seed=6)
    assert all(
        a.value != b.value for a, b in zip(plain, other, strict=True) if a.metric == "distortion"
    )


def test_replicates_draw_noise_anew(plain):
    values = {
        r.replicate: r.value
        for r in plain
        if r.coalition == (1,) and r.metric == "distortion" and r.attribute == "*"
    }
    assert len(set(values.values())) == 2

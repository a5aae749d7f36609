"""Theorem 4 under every attack, with fresh copies as control."""

import numpy as np
import pytest
from scipy.stats import t as student

import auditor
from auditor import registry
from auditor.audit.attempts import opened
from auditor.audit.categorical import attack_records
from auditor.scenario.read import find_scenario, read_scenario
from tests.audited import cells

REPLICATES = 8
FALSE_ALARM = 0.005
"""Chance that an honest attack of all those below is said to gain."""
MIXED = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.4, 0.9]]
SERIAL = {
    "data": {"source": "autoregressive", "attributes": 2, "autocorrelation": 0.9, "rows": 125}, "replicates": 6,
    "attacks": ["serial-filter", {"name": "neighbour-mixture", "components": 2}, "trend-smoother", "matern-smoother", "hidden-markov"],
}  # fmt: skip

GROUPED = {
    "data": {"source": "cps", "columns": ["salary"], "shown": ["state_tax"], "rows": 600},
    "attacks": ["neighbour-mixture"],
    "knowledge": [{"estimated": {"rows": 200}}],
}


def every():
    found = [registry.get("attack", name) for name in registry.names("attack")]
    numeric = [one.name for one in found if "additive" in one.families]
    return [name for name in numeric if name != "low-order-bits"]  # it needs a step


def gains(scheme, **changes):
    result = auditor.run({
        "seed": 4, "data": {"source": "components", "shapes": ["gamma", "exponential", "bimodal"], "ratio": 1.0, "mixing": MIXED, "rows": 300},
        "schemes": [{"name": scheme, "levels": [0.3, 0.5], "noise": "white"} if scheme == "corner-wave" else {"name": scheme, "levels": [0.3, 0.5]}],
        "knowledge": ["perfect", {"known-records": 100}, {"known-attributes": ["x1"]}, {"model": {"target": "x3", "predictors": ["x1"], "depth": 2, "rows": 300}}],
        "coalitions": [[1], [1, 2]], "attacks": [{"name": name, "coalitions": [[1], [1, 2]]} for name in every()], "replicates": REPLICATES,
    } | changes)  # fmt: skip
    frame = result.frame()
    frame = frame[
        (frame.metric == "normalized_error") & (frame.attribute == "*") & (frame.status == "ok")
    ]
    size = frame.coalition.map(len)
    error = frame.assign(size=size).pivot_table(
        index=["knowledge", "attack", "replicate"], columns="size", values="value"
    )
    return (1.0 - error[2] / error[1]).unstack("replicate")


def sure(found):
    rows, n = found.shape
    return found.mean(axis=1) - student.isf(FALSE_ALARM / rows, n - 1) * found.sem(axis=1)


@pytest.fixture(scope="module")
def nested():
    return gains("corner-wave")


@pytest.fixture(scope="module")
def fresh():
    return gains("independent")


@pytest.mark.slow
def test_no_attack_gains_from_a_second_corner_wave_copy(nested):
    assert set(nested.index.get_level_values("attack")) == set(every())
    assert (sure(nested) <= 1e-9).all()
    assert (nested.mean(axis=1) <= 0.03).all()


@pytest.mark.slow
def test_every_attack_gains_from_a_second_fresh_copy(fresh):
    assert set(fresh.index.get_level_values("attack")) == set(every())
    assert (sure(fresh) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "geometric", "skellam"])
def test_nor_does_any_attack_from_a_second_copy_of_another_process(noise, monkeypatch):
    """Gains are exactly 0; fresh noise of one law is the control."""
    monkeypatch.setattr(opened, "ROW_REDRAWS", 2)
    # more components need a minute
    tried = [{"name": each, "components": 2} if each == "mixture-estimate" else each for each in every()]  # fmt: skip
    data = {"source": "cps", "columns": ["age", "household_size"], "rows": 300}
    asked = {"data": data, "knowledge": ["perfect"], "attacks": tried, "replicates": 1}
    nested, fresh = gains(f"{noise}-multilevel", **asked), gains(noise, **asked)
    assert len(nested) >= 12
    assert nested.index.equals(fresh.index)
    assert nested.abs().to_numpy().max() < 1e-9
    assert fresh.to_numpy().min() > 0.05


@pytest.mark.parametrize("asked", [SERIAL, pytest.param(GROUPED, marks=pytest.mark.slow)])
def test_nor_do_attacks_that_read_other_rows(asked):
    nested, fresh = (
        gains(scheme, **{"knowledge": ["perfect"]} | asked)
        for scheme in ("corner-wave", "independent")
    )
    assert (sure(nested) <= 1e-9).all()
    assert (sure(fresh) > 0.05).all()


def test_nor_does_who_names_rows():
    named = {}
    for scheme in ("corner-wave", "independent"):
        release = {"name": scheme, "levels": [0.001, 0.0012], **({"noise": "white"} if scheme == "corner-wave" else {})}  # fmt: skip
        result = auditor.run({
            "seed": 4, "data": {"source": "components", "shapes": ["exponential"], "attributes": 3, "rows": 600}, "schemes": [release],
            "knowledge": [{"known-attributes": ["x1", "x2"]}], "coalitions": [[1], [1, 2]], "attacks": ["record-linkage"], "replicates": REPLICATES,
        })  # fmt: skip
        frame = result.frame()
        frame = frame[frame.metric == "named"].assign(size=lambda rows: rows.coalition.map(len))
        named[scheme] = frame.pivot_table(index="replicate", columns="size", values="value")
    np.testing.assert_array_equal(named["corner-wave"][1], named["corner-wave"][2])
    more = named["independent"][2] - named["independent"][1]
    assert more.mean() > student.isf(FALSE_ALARM, REPLICATES - 1) * more.std() / np.sqrt(REPLICATES)


@pytest.mark.slow
def test_nor_do_attacks_on_categories_from_a_second_multilevel_copy(monkeypatch):
    monkeypatch.setattr(attack_records, "ROW_REDRAWS", 2)
    result = auditor.run({
        "seed": 4, "data": {"source": "markov-chain", "values": 4, "stay": 0.9, "rows": 1200, "categorical": ["state"]},
        "schemes": [{"name": name, "levels": [0.5, 0.4]} for name in ("uniform-multilevel", "uniform")],
        "knowledge": ["perfect"], "coalitions": [[1], [1, 2]], "attacks": ["posterior", "serial-posterior"],
    })  # fmt: skip
    found = {(r.scheme, r.attack): r.value for r in cells(result, metric="collusion_gain")}
    for attack in ("posterior", "serial-posterior"):
        assert found["uniform-multilevel", attack] == pytest.approx(0.0, abs=1e-9)
        assert found["uniform", attack] > 0.1


def test_the_scenario_tries_every_attack_on_numbers():
    assert {use.name for use in read_scenario(find_scenario("theorem-4")).attacks} == set(every())

"""Levels stated as ε, μ or a scale in data units."""

import json
import math

import jsonschema
import numpy as np
import pytest

import auditor
from auditor.base import AuditorError, ScenarioError
from auditor.scenario.json_schema import scenario_schema
from auditor.scenario.read import read_scenario

DATA = {
    "source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 200, "bounds": {"x1": [-5, 5], "x2": [-8, 8]},
}  # fmt: skip


def asked(scheme, levels, data=DATA, **parameters):
    return {
        "data": data, "schemes": [{"name": scheme, "levels": levels, **parameters}],
        "attacks": ["llse"], "coalitions": ["singles"],
    }  # fmt: skip


def levels(document):
    return read_scenario(document).schemes[0].levels.resolve(0)


def the_problem(document):
    with pytest.raises(ScenarioError) as caught:
        read_scenario(document)
    assert len(caught.value.problems) == 1, caught.value
    return str(caught.value)


def test_levels_are_what_hand_calculation_says():
    # 2 N²/ε²
    assert levels(asked("laplace-multilevel", {"epsilon": [1, 0.5]})) == pytest.approx(
        (8.0, 32.0), rel=1e-12
    )
    # N/μ²
    assert levels(asked("corner-wave", {"gaussian-dp": [1, 0.5]})) == pytest.approx(
        (2.0, 8.0), rel=1e-12
    )
    assert levels(asked("laplace", {"scale": [3]})) == pytest.approx((18.0,))
    assert levels(asked("correlated", {"scale": [3]})) == pytest.approx((9.0,))
    q = math.exp(-1 / 3)
    assert levels(asked("geometric", {"scale": [3]}, unit=1)) == pytest.approx(
        (2 * q / (1 - q) ** 2,), rel=1e-12
    )


def test_a_scenario_with_stated_levels_reads_as_itself_and_its_schema_allows_them():
    allowed = jsonschema.Draft202012Validator(scenario_schema())
    for document in (
        asked("laplace", {"epsilon": [1]}),
        asked("corner-wave", {"scale": [1, 2]}),
        asked("corner-wave", [1.0], noise="bounds"),
    ):
        assert allowed.is_valid(document)
        scenario = read_scenario(document)
        again = read_scenario(json.loads(json.dumps(scenario.spec())))
        assert again.schemes == scenario.schemes
        assert again.spec() == scenario.spec()


def test_what_cannot_be_had_is_told():
    for document, told in [
        (asked("corner-wave", {"epsilon": [1]}), "no noise of this law keeps any: epsilon is infinite: the ratio of chances has no bound"),
        (asked("laplace", {"epsilon": [1]}, {**DATA, "bounds": None}), "there are no bounds; say under `data:`"),
        (asked("laplace", {"epsilon": [0]}), "epsilon[0] must be greater than 0"),
        (asked("laplace", {"epsilon": [1], "scale": [1]}), "must be a list of levels, or a mapping with one of"),
        (asked("laplace", {"epsilon": [1e-300]}), "no noise that can be computed with keeps epsilon 1e-300"),
        (asked("laplace", {"epsilon": [1]}, noise="data"), "noise must be left out where levels are by epsilon"),
        (asked("skellam", {"gaussian-dp": [200]}, unit=1), "no noise that can be computed with keeps gaussian_dp 200"),
        (asked("rotation-noise", {"epsilon": [1]}), "adds no noise whose size could be stated so"),
    ]:  # fmt: skip
        assert told in the_problem(document)


X = np.random.default_rng(0).uniform(-4, 4, (50, 2))
BOUNDS = {"x1": (-5, 5), "x2": np.array([-8.0, 8.0])}


@pytest.mark.parametrize(("scheme", "stated", "more"), [("laplace-multilevel", {"epsilon": [1, 0.5]}, {}), ("correlated", {"scale": [3]}, {}), ("skellam", {"gaussian-dp": [2]}, {"unit": 0.5})])  # fmt: skip
def test_python_finds_the_levels_and_noise_that_a_scenario_finds(scheme, stated, more):
    from auditor.schemes.base.guarantees import Guarantees

    table = np.rint(2 * X) / 2 if more else X
    release = auditor.perturb(
        table, scheme, stated, seed=1, bounds=None if "scale" in stated else BOUNDS, **more
    )
    assert release.levels == levels(asked(scheme, stated, **more))
    later = release.extend(stated, seed=2)
    assert later.levels == release.levels * 2
    (currency, figures), metric = (
        next(iter(stated.items())),
        {"epsilon": "epsilon", "gaussian-dp": "gaussian_dp"},
    )
    if currency in metric:
        promised = Guarantees(later.law, np.array([10.0, 16.0]), 1e-5)
        found = [
            promised.of([copy])[metric[currency]].value for copy in range(1, len(later.levels) + 1)
        ]
        assert found == pytest.approx(list(figures) * 2, rel=1e-9)


def test_python_refuses_what_a_scenario_refuses():
    def refused(told, levels, scheme="laplace", **more):
        with pytest.raises(AuditorError, match=told):
            auditor.perturb(X, scheme, levels, seed=1, **more)

    refused("levels by epsilon need bounds, by how much one record may change", {"epsilon": [1]})
    refused("leave `noise` out", {"epsilon": [1]}, noise="data", bounds=BOUNDS)
    refused(r"epsilon\[1\] must be greater than 0; got -1", {"epsilon": [1, -1]}, bounds=BOUNDS)
    refused("epsilon is infinite", {"epsilon": [1]}, "corner-wave", bounds=BOUNDS)
    refused("'x2' has none", {"epsilon": [1]}, bounds={"x1": (-5, 5)})
    refused(
        "'x1' has 50 records outside the stated bounds",
        {"epsilon": [1]},
        bounds={"x1": (8, 9), "x2": (-8, 8)},
    )
    with pytest.raises(AuditorError, match="'x1' has 1 record outside the stated bounds"):
        auditor.perturb(X, "laplace", {"epsilon": [1]}, seed=1, bounds=BOUNDS).append(
            np.array([[9.0, 0.0]])
        )

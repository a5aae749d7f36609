"""What a scheme can do is stated on its class, is true, and is all that anybody asks; no family is dispatched on by name."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.audit.engine import ENGINES, engine_of
from auditor.errors import PluginError
from auditor.scenario.read import read_scenario
from auditor.schemes.corner_wave import CornerWave

SCHEMES = {name: registry.get("scheme", name) for name in registry.names("scheme")}
X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
COLOURS = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "green", "red", "blue"] * 8)})


def original_of(scheme):
    if SCHEMES[scheme].engine != "numeric":
        return COLOURS
    return (10 * X).round() if SCHEMES[scheme].on_lattice else X


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_names_an_engine_that_there_is(scheme):
    assert SCHEMES[scheme].engine in ENGINES


@pytest.mark.parametrize(
    "scheme",
    [
        name
        for name, cls in SCHEMES.items()
        if cls.makes_copies and cls.level_of_original is not None
    ],
)
def test_a_copy_at_the_level_of_the_original_is_the_original(scheme):
    original = original_of(scheme)
    (copy,) = auditor.perturb(
        original, scheme, [SCHEMES[scheme].level_of_original], seed=1, **SCHEMES[scheme].trial
    ).copies
    pd.testing.assert_frame_equal(copy, original)


def test_an_engine_that_there_is_not_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(CornerWave, "engine", "numerical")
    (use,) = read_scenario(
        {
            "data": "iris",
            "schemes": [{"name": "corner-wave", "levels": [1.0]}],
            "attacks": ["llse"],
            "seed": 1,
        }
    ).schemes
    with pytest.raises(
        PluginError, match=r"engine that there is not: 'numerical'; valid are categorical, numeric"
    ):
        engine_of(use)

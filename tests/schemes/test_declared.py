"""What a scheme can do is stated on its class, is true, and is all that anybody asks; no family is dispatched on by name."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import registry
from auditor.audit.engine import ENGINES, engine_of
from auditor.errors import PluginError
from auditor.scenario.read import read_scenario
from auditor.schemes.corner_wave import CornerWave
from auditor.schemes.uniform import Uniform

ROOT = Path(__file__).parents[2]
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


@pytest.mark.parametrize(
    "scheme", [name for name, cls in SCHEMES.items() if cls.adds_noise and cls.makes_copies]
)
def test_a_scheme_that_adds_noise_states_its_law_and_distribution(scheme):
    release = auditor.perturb(original_of(scheme), scheme, [0.5, 1.0], seed=1)
    assert release.law is not None
    assert release.scheme.distribution is not None


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
    with pytest.raises(
        PluginError, match=r"engine that there is not: 'numerical'; valid are categorical, numeric"
    ):
        auditor.perturb(X, "corner-wave", [1.0], seed=1)


def test_perturb_from_the_command_line_refuses_it_too(monkeypatch, tmp_path, capsys):
    from auditor.cli import main

    monkeypatch.setattr(CornerWave, "engine", "numerical")
    with pytest.raises(SystemExit):
        main(
            [
                "perturb",
                "iris",
                "--scheme",
                "corner-wave",
                "--levels",
                "1",
                "--seed",
                "1",
                "--output",
                str(tmp_path / "out"),
            ]
        )
    said = capsys.readouterr().err
    assert "engine that there is not: 'numerical'; valid are categorical, numeric" in " ".join(
        said.split()
    )
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("scheme", "breaks", "data", "attack"), [
    (CornerWave, "sampler", {"source": "inline", "values": {"a": [1.0, 2.0, 4.0, 3.0], "b": [2.0, 1.0, 1.0, 5.0]}}, "llse"),
    (Uniform, "copies", {"source": "occupation-like", "rows": 50}, "posterior"),
])  # fmt: skip
def test_a_release_that_fails_says_so_of_every_coalition_whatever_its_engine(
    monkeypatch, scheme, breaks, data, attack
):
    def broken(self, *given, **named):
        raise ValueError("CANARY")

    monkeypatch.setattr(scheme, breaks, broken)
    document = {
        "data": data,
        "schemes": [{"name": scheme.name, "levels": [0.5, 0.7]}],
        "attacks": [attack],
        "coalitions": ["subsets"],
        "seed": 1,
    }
    result = auditor.run(document)
    assert [(record.coalition, record.status) for record in result.measurements] == [
        ((1,), "failed"),
        ((2,), "failed"),
        ((1, 2), "failed"),
    ]


def test_nothing_dispatches_on_a_family_or_on_what_a_scheme_happens_to_have():
    found = re.compile(r"family [!=]=|hasattr\((self\.)?(scheme|release|attack|use|plugin)\b")
    assert not [
        str(path)
        for path in (ROOT / "auditor").rglob("*.py")
        if found.search(path.read_text(encoding="utf-8"))
    ]

"""Sources of error bars: closed forms, redraws, replicates."""

import numpy as np
import pytest

import auditor
from auditor.numerics.statistics import quantile

NON_LINEAR = [
    {"name": "udr", "id": "udr-learnt", "prior": "reconstructed"},
    {"name": "map-estimate", "prior": "histogram"},
    "distribution-analysis",
]


def audited(replicates):
    rng = np.random.default_rng(1)
    values = {"x": rng.exponential(size=200).tolist(), "y": rng.normal(size=200).tolist()}
    document = {
        "data": {"source": "inline", "values": values}, "schemes": [{"name": "independent", "levels": [0.5]}], "knowledge": ["perfect"],
        "coalitions": ["singles"], "attacks": [*NON_LINEAR, "llse"], "replicates": replicates,
    }  # fmt: skip
    return [
        m
        for m in auditor.run(document).measurements
        if m.metric == "distortion" and m.attribute == "*"
    ]


def test_replicates_replace_redraws_from_five_on():
    found = audited(4)
    bars = {m.attack: m.error_bar for m in found}
    assert bars == {
        "udr-learnt": "redraws",
        "map-estimate": "redraws",
        "distribution-analysis": "redraws",
        "llse": "closed-form",
    }
    for m in (m for m in found if m.attack == "llse"):
        assert m.ci_high - m.value == pytest.approx(1.959964 * m.std_error)
    cells = audited(5)
    assert {m.error_bar for m in cells if m.attack != "llse"} == {"replicates"}
    assert {m.error_bar for m in cells if m.attack == "llse"} == {"closed-form"}
    for attack in ("udr-learnt", "map-estimate", "distribution-analysis"):
        own = [m for m in cells if m.attack == attack]
        spread = np.std([m.value for m in own], ddof=1)
        for m in own:
            assert m.std_error == pytest.approx(spread)
            assert m.ci_high - m.value == pytest.approx(quantile(0.975, 4) * spread)

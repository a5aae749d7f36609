"""Where error bars come from: closed forms, the audit's own redraws where there are none, and from five replicates on their spread."""

from __future__ import annotations

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
    document = {
        "data": {
            "source": "inline",
            "values": {"x": rng.exponential(size=200).tolist(), "y": rng.normal(size=200).tolist()},
        },
        "schemes": [{"name": "independent", "levels": [0.5]}],
        "knowledge": ["perfect"],
        "coalitions": ["singles"],
        "attacks": [*NON_LINEAR, "llse"],
        "replicates": replicates,
    }
    return [
        m
        for m in auditor.run(document).measurements
        if m.metric == "distortion" and m.attribute == "*"
    ]


def test_replicates_replace_redraws_from_five_on():
    bars = {m.attack: m.error_bar for m in audited(4)}
    assert bars == {
        "udr-learnt": "redraws",
        "map-estimate": "redraws",
        "distribution-analysis": "redraws",
        "llse": "closed-form",
    }
    cells = audited(5)
    assert {m.error_bar for m in cells if m.attack != "llse"} == {"replicates"}
    assert {m.error_bar for m in cells if m.attack == "llse"} == {"closed-form"}
    for attack in ("udr-learnt", "map-estimate", "distribution-analysis"):
        own = [m for m in cells if m.attack == attack]
        spread = np.std([m.value for m in own], ddof=1)
        for m in own:
            assert m.std_error == pytest.approx(spread)
            assert m.ci_high - m.value == pytest.approx(quantile(0.975, 4) * spread)


def test_uniform_noise_has_exact_error_bars_and_the_same_theory():
    """Its kurtosis makes NDR's error of one copy steadier: Var = (4/5)σ⁴/n where Gaussian noise has 2σ⁴/n."""

    def run(distribution):
        return auditor.run({
            "data": {"source": "gaussian", "rows": 500, "spectrum": [1.0]},
            "schemes": [{"name": "independent", "levels": [1.0], "distribution": distribution}], "attacks": ["ndr"],
            "expect": [{"matches-theory": {}}],
        })  # fmt: skip

    uniform, gaussian = (
        next(
            r for r in run(d).measurements if r.metric == "normalized_error" and r.attribute == "*"
        )
        for d in ("uniform", "gaussian")
    )
    assert uniform.theory == pytest.approx(gaussian.theory)
    assert uniform.error_bar == "closed-form"
    assert uniform.std_error**2 == pytest.approx(0.8 / 500)
    assert gaussian.std_error**2 == pytest.approx(2.0 / 500)


def test_uniform_noise_is_uniform_and_bounded():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    noise = auditor.perturb(X, "independent", [2.0], seed=1, distribution="uniform").copies[0] - X
    reach = np.sqrt(3.0 * 2.0) * X.std()
    assert np.abs(noise).max() <= reach * (1 + 1e-12)
    # Kolmogorov's distance to the uniform law, false alarm one in ten thousand
    u = np.sort(noise[:, 0] / reach / 2 + 0.5)
    assert np.abs(u - (np.arange(20_000) + 0.5) / 20_000).max() < 2.23 / np.sqrt(20_000)

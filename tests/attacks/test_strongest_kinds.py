"""What the scenarios on kinds of attack claim, beside the exact answers: who knows the mixture, the law of the series, the chain."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from auditor.data.sources.components import Components
from auditor.scenario.read import find_scenario
from auditor.scenario.yaml.document import load_file
from auditor.schemes.replacement.law import UniformLaw
from auditor_attacks.serial_posterior import likelihood, posteriors
from tests.attacks.test_serial_filter import smoother_error
from tests.attacks.test_serial_posterior import chain, named, seen, true_chain


def scenario(name: str) -> dict[str, Any]:
    value = load_file(find_scenario(name)).value
    assert isinstance(value, dict)
    return value


def bounds(spec: dict[str, Any], metric: str, attack: str) -> tuple[float, float]:
    """The interval that a scenario expects an attack's figure in."""
    stated = next(
        e[metric]["between"]
        for e in spec["expect"]
        if metric in e and e[metric]["attack"] == attack and "between" in e[metric]
    )
    return float(stated[0]), float(stated[1])


def normal_density(d, S):
    return np.exp(-0.5 * d @ np.linalg.solve(S, d)) / np.sqrt(np.linalg.det(2 * np.pi * S))


def exact_posterior_mean(y, A, v):
    """``Σ_k q_k (m_k + V (V + vI)⁻¹ (y − m_k))`` over the four corners of two mixed coins, each blurred by 0.3, record by record."""
    V, corners = (
        0.09 / 1.09 * A @ A.T,
        [A @ np.array(corner) / np.sqrt(1.09) for corner in product((-1.0, 1.0), repeat=2)],
    )
    S = V + v * np.eye(2)
    q = np.array([normal_density(y - m, S) for m in corners])
    return sum(
        weight * (m + V @ np.linalg.solve(S, y - m))
        for weight, m in zip(q / q.sum(), corners, strict=True)
    )


def test_the_mixture_s_bounds_are_about_the_exact_posterior_mean() -> None:
    spec = scenario("strongest-kinds-mixture")
    source = {key: value for key, value in spec["data"].items() if key not in ("source", "rows")}
    X, rng = (
        Components(Components.Parameters.model_validate(source))
        .frame(4000, np.random.default_rng(5))
        .to_numpy(),
        np.random.default_rng(6),
    )
    # both attributes have variance 1
    A, v = np.array(source["mixing"]), spec["schemes"][0]["levels"][0]
    errors = [
        ((exact_posterior_mean(x + rng.normal(0.0, np.sqrt(v), 2), A, v) - x) ** 2).sum() / 2
        for x in X
    ]
    exact, error = np.mean(errors), np.std(errors) / np.sqrt(len(X))
    assert exact == pytest.approx(0.164, abs=4 * error)
    for attack in ("mixture-estimate", "sample-estimate"):
        low, high = bounds(spec, "normalized_error", attack)
        assert 0.164 - 0.01 < low < 0.164 < high < 0.164 * 1.07


def test_the_series_bounds_are_about_the_kalman_smoother() -> None:
    spec = scenario("strongest-kinds-series")
    low, high = bounds(spec, "normalized_error", "serial-filter")
    exact = smoother_error(spec["data"]["autocorrelation"], spec["schemes"][0]["levels"][0])
    assert low < exact < high < 1.07 * exact


def test_the_chain_s_bounds_are_about_who_knows_the_chain() -> None:
    spec = scenario("serial-categories")
    stay, values, p = (
        spec["sweep"]["data.stay"][0],
        spec["data"]["values"],
        max(spec["schemes"][1]["levels"]),
    )
    x, q, law = (
        chain(20_000, stay, values),
        np.full(values, 1.0 / values),
        UniformLaw((p,), values, False),
    )
    best = named(posteriors(true_chain(stay, values), q, likelihood(law, [seen(x, p, values)])), x)
    low = next(
        e["accuracy"]["at-least"] for e in spec["expect"] if "at-least" in e.get("accuracy", {})
    )
    assert best - 0.03 < low < best
    # as simulated beforehand, where a record by itself is named with p + (1 − p)/s
    assert best == pytest.approx(0.88, abs=0.015)
    low, high = bounds(spec, "accuracy", "posterior")
    assert low < p + (1 - p) / values < high
    assert p + (1 - p) / values == pytest.approx(0.52)

"""Gains by pooling copies of categories."""

import numpy as np
import pytest
from lying import LEVELS, scheme, shares, threes_only
from planted_coins import history_ignored, honest

import auditor
from auditor.audit.insider.category_gain import category_gains, correlations
from auditor.registry import lent
from auditor.schemes.replacement.law import UniformLaw


def exact_gain(given, prior):
    joint = prior.reshape(-1, *(1,) * (given.ndim - 1)) * given
    right = lambda j: (j**2 / j.sum(axis=0)).sum()  # noqa: E731
    alone = right(joint.sum(axis=tuple(range(2, joint.ndim))))
    return (right(joint) - alone) / (1 - alone)


def column(size, rows, seed):
    return np.minimum(np.random.default_rng(seed).geometric(0.3, rows) - 1, size - 1)


def test_correlations_of_honest_copies_have_the_stated_errors():
    z = []
    for seed in range(20):
        x = column(6, 1000, seed)
        rho, error, _ = correlations(x, honest(x, 6, np.random.default_rng(seed)), 6)
        z.append(np.divide(rho, error))
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(20)
    assert np.abs(np.var(z, axis=0) - 1.0).max() < 4 * np.sqrt(2 / 20)


def test_the_gain_is_that_of_the_best_attack():
    x = np.random.default_rng(0).integers(0, 2, 20_000)
    law = UniformLaw(LEVELS, 2, False).given_original()
    rho, error, _ = correlations(x, history_ignored(x, 2, np.random.default_rng(1)), 2)
    exact = exact_gain(law, np.full(2, 0.5))
    for r, e in zip(rho, error, strict=True):
        assert 0.8 * exact < r**2 < (r + 4 * e) ** 2
        assert abs(r - np.sqrt(exact)) < 4 * e + 0.02


@pytest.mark.parametrize("size", [5, 300])
@pytest.mark.parametrize("leak", [threes_only, shares, history_ignored])
def test_leaks_are_found_whatever_the_number_of_values(leak, size):
    x = column(size, 8000, 1) if size < 40 else np.random.default_rng(1).integers(0, size, 8000)
    copies = leak(x.astype(np.uint16), size, np.random.default_rng(2))
    rho, error, _ = correlations(x, copies, size)
    assert max(np.divide(rho, error)) > 8.0


@pytest.fixture
def lying():
    with lent("scheme", scheme("threes-only", threes_only)):
        yield


def audit(name, levels=LEVELS, coalitions=("subsets",), rows=60_000, **changes):
    document = {
        "data": {"source": "salary-like", "rows": rows}, "seed": 5,
        "schemes": [{"name": name, "levels": list(levels)}], "coalitions": list(coalitions),
        "attacks": ["posterior"], "expect": ["no-collusion-gain", "marginal-is-uniform"],
    }  # fmt: skip
    return auditor.run(document | changes)


@pytest.mark.slow
def test_a_leak_to_three_and_to_no_two_is_caught(lying):
    gain, marginal, *_ = audit("threes-only").expectations
    assert (gain.status, marginal.status) == ("fails", "holds")
    assert "copies 1–3" in gain.why
    pairs = audit("threes-only", coalitions=["pairs"]).expectations[0]
    assert pairs.status == "undecided", pairs.why  # the noise contradicts its law
    assert audit("threes-only", coalitions=["all"]).expectations[0].status == "fails"


def test_too_few_records_acquit_nobody():
    x = np.zeros(3, np.uint8)
    assert category_gains([(1, 2)], (0.5, 0.3), 4, lambda _: (x, {1: x, 2: x})) == {}

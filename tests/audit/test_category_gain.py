"""Gains by pooling categorical copies: calibrated on honest copies, of the right size where copies leak, and found in audits."""

import numpy as np
import pytest
from lying import LEVELS, scheme, shares, threes_only, threes_only_law
from planted_coins import history_ignored, honest

import auditor
from auditor.audit.insider.category_gain import category_gains, correlations, within_strata
from auditor.registry import _plugins, register
from auditor.schemes.replacement.law import UniformLaw


def exact_gain(given, prior):
    """Gain of all copies over the first, ``(E‖f_o‖² − E‖f_b‖²) / (1 − E‖f_b‖²)``, from the whole joint law."""
    joint = prior.reshape(-1, *(1,) * (given.ndim - 1)) * given
    right = lambda j: (j**2 / j.sum(axis=0)).sum()  # noqa: E731
    alone = right(joint.sum(axis=tuple(range(2, joint.ndim))))
    return (right(joint) - alone) / (1 - alone)


def column(size, rows, seed):
    return np.minimum(np.random.default_rng(seed).geometric(0.3, rows) - 1, size - 1)


def test_rows_less_the_mean_of_their_stratum():
    """Three records in stratum 1 and one in stratum 0, by hand."""
    from scipy.sparse import csr_array

    M = csr_array(np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0], [5.0, 5.0]]))
    found = within_strata(M, np.array([1, 1, 1, 0]), 2).toarray()
    np.testing.assert_allclose(found, [[0.0, -1.0], [-1.0, 2.0], [1.0, -1.0], [0.0, 0.0]])


def test_correlations_of_honest_copies_have_the_stated_errors():
    """Of 60 releases: mean 0 and variance 1 of ρ over its standard error, within four standard errors."""
    z = []
    for seed in range(60):
        x = column(6, 1200, seed)
        rho, error, _ = correlations(x, honest(x, 6, np.random.default_rng(seed)), 6)
        z.append(np.divide(rho, error))
    assert np.abs(np.mean(z, axis=0)).max() < 4 / np.sqrt(60)
    assert np.abs(np.var(z, axis=0) - 1.0).max() < 4 * np.sqrt(2 / 60)


def test_the_gain_is_that_of_the_best_attack():
    """The frequency table of two values learns the exact posterior of copies that ignore history."""
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
    """Register lying schemes for one test."""
    for cls in (scheme("threes-only", threes_only), scheme("shares", shares)):
        register(cls)
    yield
    for name in ("threes-only", "shares"):
        del _plugins["scheme"][name]


def audit(name, levels=LEVELS, coalitions=("subsets",), rows=60_000, **changes):
    document = {
        "data": {"source": "salary-like", "rows": rows},
        "seed": 5,
        "schemes": [{"name": name, "levels": list(levels)}],
        "coalitions": list(coalitions),
        "attacks": ["posterior"],
        "expect": ["no-collusion-gain", "marginal-is-uniform"],
    }
    return auditor.run(document | changes)


def test_a_leak_to_three_and_to_no_two_is_caught(lying):
    gain, marginal, *_ = audit("threes-only").expectations
    assert (gain.status, marginal.status) == ("fails", "holds")
    assert "copies 1–3" in gain.why
    pairs = audit("threes-only", coalitions=["pairs"]).expectations[0]
    assert pairs.status == "holds", pairs.why
    assert audit("threes-only", coalitions=["all"]).expectations[0].status == "fails"


def test_the_lying_scheme_is_lawful_in_every_pair():
    true, law = UniformLaw(LEVELS, 4, True).given_original(), threes_only_law(4, 0.5)
    for axis in (1, 2, 3):
        np.testing.assert_allclose(law.sum(axis=axis), true.sum(axis=axis), atol=1e-15)
    assert exact_gain(law, np.full(4, 0.25)) > 0.05
    assert exact_gain(true, np.full(4, 0.25)) == pytest.approx(0.0, abs=1e-15)


def test_a_leak_that_no_pattern_of_agreement_shows_is_caught(lying):
    data = {"source": "uniform-values", "values": 5, "rows": 60_000}
    gain, marginal, *_ = audit("shares", data=data).expectations
    assert (gain.status, marginal.status) == ("fails", "holds")


def test_a_leak_to_three_copies_of_a_wide_coalition_is_found(lying):
    levels = (*LEVELS, *np.geomspace(0.12, 0.001, 13))
    caught = audit("threes-only", levels, ["all"]).expectations[0]
    assert caught.status == "fails", caught.why
    honest = audit("uniform-multilevel", levels, ["all"]).expectations[0]
    assert honest.status == "holds"


def test_too_few_records_acquit_nobody():
    x = np.zeros(3, np.uint8)
    assert category_gains([(1, 2)], (0.5, 0.3), 4, lambda _: (x, {1: x, 2: x})) == {}


@pytest.mark.slow
def test_family_of_coalitions_of_a_lawful_release_is_not_accused():
    # 57 coalitions of 6 copies, 12 releases: 5 in 100 families may be accused
    result = audit("uniform-multilevel", (0.6, 0.5, 0.4, 0.3, 0.2, 0.1), rows=3000, replicates=12,
                   data={"source": "uniform-values", "values": 4, "rows": 3000})  # fmt: skip
    assert result.expectations[0].status != "fails"

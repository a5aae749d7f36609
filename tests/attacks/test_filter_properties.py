"""Properties of attacks on one copy; the copies and UDR."""

import numpy as np
import pytest

import auditor
from tests.audited import as_audited

USES = [
    ("udr", {}), ("spectral-filter", {}), ("svd-filter", {}),
    ("pca-filter", {"components": {"variance-share": 0.9}}),
    ("bayes-estimate", {}),
]  # fmt: skip
EVERY = pytest.mark.parametrize(("name", "parameters"), USES, ids=lambda item: str(item))


def table(n=120, N=5, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, N)) * 5 + rng.standard_normal(
        (n, N)
    )


@EVERY
def test_data_far_from_zero_are_attacked_as_well(name, parameters):
    X = table() / 5.0  # variance about 1
    here, there = (
        auditor.attack(
            name, as_audited(x, "independent", [0.2], 2, noise={"variance": 1.0}), **parameters
        )
        for x in (X, X + 1e6)
    )
    # At 10⁶ a copy is rounded to 1.2e-10, which is all that may be lost
    np.testing.assert_allclose(there.values - 1e6, here.values, atol=1e-8)


@EVERY
@pytest.mark.parametrize("knowledge", ["perfect", {"estimated": {"rows": 3}}], ids=str)
def test_more_attributes_than_rows_do_not_crash(name, parameters, knowledge):
    release = auditor.perturb(table(n=4, N=5), "independent", [1.0], seed=3)
    assert np.isfinite(
        auditor.attack(name, release, knowledge=knowledge, **parameters).values
    ).all()


@EVERY
def test_a_rotation_of_the_data_rotates_the_estimate_of_all_but_udr(name, parameters):
    X, T = table(), np.linalg.qr(np.random.default_rng(7).standard_normal((5, 5)))[0]
    release = auditor.perturb(X, "independent", [0.5], noise={"variance": 4.0}, seed=8)
    from dataclasses import replace

    transformed = replace(
        release, original=X @ T, copies=tuple(copy @ T for copy in release.copies)
    )
    values, rotated = (
        auditor.attack(name, release, **parameters).values,
        auditor.attack(name, transformed, **parameters).values,
    )
    assert np.allclose(rotated, values @ T, atol=1e-8) == (name != "udr")


X = np.random.default_rng(2).normal(size=(30, 2)) * [1.0, 20.0] + [5.0, 100.0]


def test_one_copy_is_the_estimate():
    release = auditor.perturb(X, scheme="correlated", levels=[0.5, 2.0], seed=1)
    np.testing.assert_allclose(
        auditor.attack("ndr", release, coalition=[2]).values, release.copies[1]
    )


def test_error_of_one_copy_is_the_noise_s_variance():
    """``D = σ² Tr(K_0)/N``: 2·v for level 2 and variance v = 9."""
    release = auditor.perturb(X, scheme="correlated", levels=[2.0], seed=1, noise={"variance": 9.0})
    assert auditor.attack("ndr", release).theory == pytest.approx(18.0)


def test_fresh_copies_are_weighed_by_precision():
    """Levels 1 and 4: weights 4/5 and 1/5, noise multiple 4/5."""
    release = auditor.perturb(X, scheme="correlated", levels=[1.0, 4.0], seed=1)
    estimate = auditor.attack("ndr", release)
    np.testing.assert_allclose(estimate.values, 0.8 * release.copies[0] + 0.2 * release.copies[1])
    assert estimate.theory == pytest.approx(0.8 * np.trace(np.cov(X.T, bias=True)) / 2)


def test_linearly_dependent_copies_give_the_table():
    release = auditor.perturb(X, scheme="linearly-dependent", levels=[1.0, 4.0], seed=1)
    np.testing.assert_allclose(auditor.attack("ndr", release).values, X, rtol=1e-10)


def test_no_knowledge_of_the_data_is_used():
    """``x̂`` moves with the copies."""
    here, there = (as_audited(x, "correlated", [1.0], 1) for x in (X, X + 1000.0))
    assert auditor.attack("ndr", there).distortion == pytest.approx(
        auditor.attack("ndr", here).distortion, rel=1e-9
    )

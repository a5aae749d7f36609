"""Properties of every attack made for one copy."""

import numpy as np
import pytest

import auditor
from tests.audited import as_audited

USES = [
    ("udr", {}),
    ("spectral-filter", {}),
    ("svd-filter", {}),
    ("pca-filter", {"components": {"variance-share": 0.9}}),
    ("bayes-estimate", {"covariance": "copies"}),
]
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
def test_rows_in_another_order_are_estimated_the_same(name, parameters):
    from dataclasses import replace

    release = auditor.perturb(table(), "independent", [0.3, 0.9], seed=5)
    order = np.random.default_rng(6).permutation(120)
    shuffled = replace(
        release,
        original=release.original[order],
        copies=tuple(copy[order] for copy in release.copies),
    )
    values = auditor.attack(name, release, **parameters).values
    np.testing.assert_allclose(
        auditor.attack(name, shuffled, **parameters).values, values[order], atol=1e-9
    )


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

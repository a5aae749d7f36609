"""Noise law estimated from published copies."""

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.numeric.views import estimated_noise
from auditor.numerics.blocks import Moments
from auditor.schemes.base.noise_law import KroneckerNoise
from auditor.schemes.base.scheme import TableMoments
from tests.audited import audited_files, cells, written

LEVELS = (0.3, 0.6, 0.45)


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(rows, 3)) @ np.array(
        [[1.0, 0.6, 0.2], [0.0, 0.8, 0.5], [0.0, 0.0, 0.7]]
    )
    return pd.DataFrame(mixed * [1.0, 10.0, 200.0] + 50.0, columns=["a", "b", "c"])


def estimate(X, copies, groups=16):
    values = np.hstack([X, *copies]) - np.tile(X.mean(axis=0), len(copies) + 1)
    parts = [Moments.of(part) for part in np.array_split(values, groups)]
    return estimated_noise(parts, TableMoments(X.mean(axis=0), np.cov(X.T, bias=True), len(X)))


def drawn(X, scheme, levels=LEVELS, seed=1):
    return auditor.perturb(X, scheme, list(levels), seed=seed).copies


@pytest.mark.parametrize("scheme", ["correlated", "linearly-dependent", "corner-wave"])
def test_levels_and_the_scheme_that_drew_copies_are_found(scheme):
    """20,000 rows."""
    X = people(20_000)
    found = estimate(X.to_numpy(), drawn(X, scheme))
    np.testing.assert_allclose(found.levels, LEVELS, rtol=0.05)
    assert (np.abs(found.levels - LEVELS) < 5 * found.std_errors).all()
    assert (found.std_errors < 0.02 * found.levels).all()
    assert min(found.distances, key=lambda name: found.distances[name]) == scheme
    assert found.distances[scheme] < 0.06
    assert isinstance(found.law, KroneckerNoise)
    assert found.law.follows_data


@pytest.mark.parametrize("change", [lambda X: np.minimum(X, np.median(X, axis=0)), lambda X: 0.5 * X, lambda X: X.round(-1)],
                         ids=["top-coded", "shrunk", "rounded"])  # fmt: skip
def test_what_depends_on_the_data_is_no_noise_law(change):
    X = people(2_000).to_numpy()
    found = estimate(X, [change(X)])
    assert found.dependence > 0.2
    assert found.law is None


def test_rounding_makes_no_variance_negative():
    rng, negative = np.random.default_rng(1), 0
    for _ in range(40):
        X = np.cumsum(rng.normal(size=(150, 2)), axis=0)
        law = estimate(X, [X + 1e-9 * X.std() * rng.normal(size=X.shape)]).law
        negative += (np.diag(law.covariance) < 0).any()
    assert not negative


def audit(folder, X, copies, expect=(), attacks=("llse",), **scheme):
    who = {"attacks": list(attacks), "coalitions": ["subsets"], "expect": list(expect), "seed": 1}
    return audited_files(folder, X, copies, None, scheme, **who)


@pytest.mark.slow
def test_attacks_that_need_a_law_run_with_the_estimate_and_nothing_is_proved_by_it(tmp_path):
    X = people(2_000)
    copies = drawn(X, "corner-wave", LEVELS[:2])
    expect = ["no-collusion-gain", "matches-theory", "noise-follows-law"]
    result = audit(tmp_path, X, copies, expect, ("llse", "bayes-estimate"))
    verdict = {record.expectation: record for record in result.expectations}
    assert verdict["matches-theory"].status == verdict["noise-follows-law"].status == "undecided"
    assert (
        "by law: none is stated" in verdict["no-collusion-gain"].why
        or verdict["no-collusion-gain"].status == "undecided"
    )
    assert verdict["no-collusion-gain"].status != "fails"
    assert {record.reason for record in result.measurements if record.status != "ok"} == set()
    assert all(record.theory is None for record in result.measurements)
    stated = audit(tmp_path, X, copies, levels=list(LEVELS[:2]), law={"scheme": "corner-wave"})
    both = {"metric": "normalized_error", "attack": "llse", "attribute": "*", "coalition": (1, 2)}
    one, other = (cells(each, **both)[0] for each in (result, stated))
    assert one.value == pytest.approx(other.value, rel=0.01)  # the estimate is as good as the law
    assert (one.error_bar, other.error_bar) == ("jackknife", "closed-form")


@pytest.mark.slow
@pytest.mark.parametrize("law", [{}, {"levels": [0.3], "law": {"scheme": "corner-wave"}}])
def test_copies_from_files_are_counted_once_however_many_replicates_are_asked_for(tmp_path, law):
    X = people(400)
    names = written(tmp_path, X, drawn(X, "corner-wave", LEVELS[:1]))
    document = {
        "seed": 1, "data": {"source": str(tmp_path / "table.csv")}, "attacks": ["llse"], "coalitions": ["subsets"],
        "schemes": [{"name": "published", "copies": names, **law}, {"name": "corner-wave", "levels": [0.3, 0.6]}],
    }  # fmt: skip
    once, often = (
        auditor.run(document | {"replicates": replicates}).measurements for replicates in (1, 3)
    )
    assert {r.replicate for r in often if r.scheme == "corner-wave"} == set(range(1, 4))
    files = [[r for r in each if r.scheme == "published"] for each in (once, often)]
    assert files[0] == files[1]
    assert files[0]

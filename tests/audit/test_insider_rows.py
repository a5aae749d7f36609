"""Leaks that the insider finds: rows, cells, levels and columns."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.audit.categorical.posterior_pass import Frame, error_without_copies
from auditor.audit.insider.features.other_rows import distances
from auditor.audit.measures.privacy import errors_alone
from tests.audited import audited_files
from tests.tiers import each_once

GAPS = [1e-1, 1e-4, 1e-7, 1e-9, 1e-12]
RNG = np.random.default_rng(14)
TABLES = {
    "round 0": RNG.normal(size=(400, 2)) @ [[1.0, 0.6], [0.0, 0.8]],
    "skewed": np.column_stack([RNG.lognormal(10, 1, 400), RNG.gamma(1, 1, 400)]),
    "far from 0": np.column_stack([RNG.normal(2000, 5, 400), RNG.normal(1e5, 30, 400)]),
}


def audited(tmp_path, X, levels, scheme="linearly-dependent", knowledge="perfect", **more):
    np.savetxt(tmp_path / "table.csv", X, delimiter=",", header="a,b", comments="", fmt="%.17g")
    return auditor.run({
        "schema": 1, "title": "near levels", "seed": 5, "data": {"source": str(tmp_path / "table.csv")}, "attacks": ["llse", "ndr"],
        "schemes": [{"name": scheme, "levels": levels, **more}], "coalitions": ["subsets"], "knowledge": [knowledge],
        "expect": ["no-collusion-gain"],
    })  # fmt: skip


def figures(result, metric, coalition=(1, 2)):
    return [r for r in result.measurements if r.metric == metric and r.coalition == coalition]


@pytest.mark.parametrize(("table", "gap"), each_once(TABLES, GAPS))
@pytest.mark.slow_after_first
def test_corner_wave_copies_gain_nothing_however_near(tmp_path, table, gap):
    result = audited(tmp_path, TABLES[table], [0.5, 0.5 + gap], "corner-wave")
    verdict = result.expectations[0]
    assert verdict.status != "fails", verdict.why
    assert "by theory" not in verdict.why or "no gain" in verdict.why
    assert {r.theory for r in figures(result, "collusion_gain")} == {0.0}


def published(tmp_path, X, copies, law, levels):
    table, *frames = (pd.DataFrame(rows, columns=["a", "b"]) for rows in (X, *copies))
    how = {} if law is None else {"law": law, "levels": levels}
    who = {"attacks": ["ndr"], "coalitions": ["all"], "expect": ["no-collusion-gain"], "seed": 5}
    return audited_files(tmp_path, table, frames, None, how, **who).expectations[0]


LAWS = (None, {"scheme": "corner-wave"})


@pytest.mark.parametrize(("gap", "stated"), each_once([1e-3, 1e-9], product(LAWS, ([], [1.5]))))
@pytest.mark.slow_after_first
def test_published_copies_of_one_scaled_draw_are_found_without_or_by_law(tmp_path, gap, stated):
    """Second moments hold their difference to 1e-8 at best: the learner sees the difference."""
    law, others = stated
    levels = [0.5, 0.5 + gap, *others]
    copies = auditor.perturb(
        TABLES["round 0"], scheme="linearly-dependent", levels=levels, seed=5
    ).copies
    verdict = published(tmp_path, TABLES["round 0"], copies, law, levels)
    assert verdict.status == "fails", verdict.why
    assert "on the data" in verdict.why


@pytest.mark.parametrize(("gap", "law"), each_once([0.0, 1e-7], LAWS))
@pytest.mark.slow
def test_published_copies_of_nested_noise_are_not(tmp_path, gap, law):
    X = np.random.default_rng(3).normal(size=(4000, 2))
    levels = [0.5 + gap, 0.5]
    copies = auditor.perturb(X, scheme="corner-wave", levels=levels, seed=5).copies
    verdict = published(tmp_path, X, copies, law, levels)
    assert verdict.status != "fails", verdict.why
    assert verdict.status == "holds" or "cannot tell" in verdict.why


@pytest.mark.parametrize("gap", [1e-3, 1e-11])
@pytest.mark.slow
def test_three_copies_that_together_give_the_record_away_are_never_called_safe(tmp_path, gap):
    """``(Y_3 − ½ Y_1 − ½ Y_2) / g`` is the first copy's noise."""
    X = np.random.default_rng(1).normal(size=(3000, 2))
    first, second = np.random.default_rng(2).normal(size=(2, *X.shape))
    copies = [X + first, X + first + second, X + (1 + gap) * first + second / 2]
    noise = (copies[2] - copies[0] / 2 - copies[1] / 2) / gap
    assert ((copies[0] - noise - X) ** 2).mean() < 1e-7
    verdict = published(tmp_path, X, copies, None, [])
    assert verdict.status == "fails", verdict.why


def test_the_linear_error_is_the_residual_of_a_regression():
    rng = np.random.default_rng(3)
    X = np.exp(rng.standard_normal((500, 3))) @ rng.standard_normal((3, 4))
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X -= X.mean(axis=0)
    found = errors_alone(X.T @ X / len(X), [1, 2])
    fitted = X[:, [1, 2]] @ np.linalg.lstsq(X[:, [1, 2]], X, rcond=None)[0]
    np.testing.assert_allclose(
        found, ((X - fitted) ** 2).mean(axis=0), atol=1e-9 * X.var(axis=0).max()
    )
    assert (found[[1, 2]] == 0).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=50)
def test_more_known_attributes_never_leave_more(seed, known):
    A = np.random.default_rng(seed).standard_normal((5, 5))
    fewer, more = errors_alone(A @ A.T, range(known - 1)), errors_alone(A @ A.T, range(known))
    assert (more <= fewer + 1e-9 * np.diag(A @ A.T)).all()
    np.testing.assert_allclose(errors_alone(A @ A.T, []), np.diag(A @ A.T))


def test_the_error_of_categories_is_that_of_every_record_s_own_posterior():
    rng = np.random.default_rng(4)
    # cells (a, b) of 2 × 3 values, b the faster
    q, prior = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    known = np.repeat([0, 1], 3)
    error = 0.0
    for x in range(6):
        same = [z for z in range(6) if known[z] == known[x]]
        share = sum(q[z] for z in same)
        error += prior[x] * sum(((z == x) - q[z] / share) ** 2 for z in same)
    assert error_without_copies(prior, Frame(q, known=known)) == pytest.approx(error)


def test_rows_that_follow_at_a_distance_in_a_fifth_of_the_table_are_found():
    """With half of the rows known: 200 products of ranks beside a deviation of 32."""
    x, rng = RNG.permutation(2_000.0 + np.arange(2_000)) - 2_999.5, np.random.default_rng(2**40)
    x /= x.std()
    y = np.where(np.arange(2_000) % 5 == 2, np.roll(x, 5), rng.permutation(x))[:, None]
    known = np.where(rng.random(2_000) < 0.5, x, 0.0)[:, None]
    assert distances(known, y) == [(1, 5)]
    # 1e-4 each: three in 500 have a chance of 2e-5
    assert sum(bool(distances(known, rng.permutation(y))) for _ in range(500)) < 3

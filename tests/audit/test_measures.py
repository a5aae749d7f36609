"""Shares, quantiles, intervals and entropies against definitions on rows, hand values, and the rule that no single record is told."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditor
from auditor.audit.measures.entropy import (
    attribute_histogram,
    entropy,
    information,
    lattice_histogram,
    noise_entropy,
)
from auditor.audit.numeric.error_tally import (
    FEWEST_IN_BIN,
    Rounding,
    Tally,
    Tolerance,
    reportable,
    size_quantile,
    spread_shares,
)
from auditor.errors import NotApplicable, ScenarioError
from auditor.schemes.base.noise_density import NoiseDensity

properties = settings(max_examples=40, deadline=None, derandomize=True)


def filled(errors, x, scale, **options):
    tally = Tally(scale, **options)
    for part in np.array_split(np.arange(len(x)), 3):
        tally.add(errors[part], x[part])
    return tally


@given(seed=st.integers(0, 2**32 - 1))
@properties
def test_shares_within_are_counted_as_defined(seed):
    rng = np.random.default_rng(seed)
    x, errors, scale = rng.normal(size=(50, 2)), rng.normal(size=(50, 3, 2)), np.array([2.0, 0.5])
    tally = filled(
        errors,
        x,
        scale,
        tolerances=(Tolerance(0.3), Tolerance(0.3, "absolute"), Tolerance(0.3, "relative")),
    )
    size = np.abs(errors)
    np.testing.assert_allclose(tally.sums["hits"][0], (size <= 0.3 * scale).sum(axis=0))
    np.testing.assert_allclose(tally.sums["hits"][1], (size <= 0.3).sum(axis=0))
    np.testing.assert_allclose(
        tally.sums["hits"][2], (size <= 0.3 * np.abs(x)[:, None]).sum(axis=0)
    )


@given(seed=st.integers(0, 2**32 - 1), probability=st.floats(0.05, 0.95))
@properties
def test_quantiles_are_within_a_grid_step_of_the_sorted_errors(seed, probability):
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(400, 1, 1)) * 10.0 ** rng.uniform(-3, 3)
    tally = filled(errors, np.zeros((400, 1)), np.ones(1), sizes=True)
    found = size_quantile(tally.sums["size_counts"], probability)[0, 0]
    below, above = np.quantile(
        np.abs(errors), [max(0, probability - 0.01), min(1, probability + 0.01)]
    )
    assert below * 0.99 <= found <= above * 1.01


def test_a_quantile_that_would_tell_of_single_records_is_not_told():
    assert reportable(0.95, 200)
    assert not reportable(0.95, 199)
    assert not reportable(0.99, 10**6)
    result = run("gaussian", rows=150, measures=[{"error-quantiles": [0.5, 0.95]}])
    statuses = {
        r.metric: r.status for r in result.measurements if r.metric.startswith("error_quantile")
    }
    assert statuses == {"error_quantile(0.5)": "ok", "error_quantile(0.95)": "not-applicable"}


def run(source, rows=4000, scheme="independent", attacks=("ndr",), noise="data", **more):
    data = {"source": source, "rows": rows} | ({"spectrum": [4.0]} if source == "gaussian" else {})
    if source.endswith(".csv"):
        data = source
    return auditor.run(
        {
            "seed": 1,
            "data": data,
            "schemes": [{"name": scheme, "levels": [1.0], "noise": noise}],
            "attacks": list(attacks),
            **more,
        }
    )


def only(result, metric, attribute="*"):
    return next(r for r in result.measurements if r.metric == metric and r.attribute == attribute)


def test_agrawal_srikant_intervals_of_gaussian_noise_are_3_92_deviations_wide():
    """And of uniform noise 0.95·2√3 = 3.29, both within three standard errors (agrawal2000, section 2)."""
    for distribution, width in (("gaussian", 3.92), ("uniform", 0.95 * 2 * np.sqrt(3.0))):
        result = auditor.run({
            "seed": 1, "data": {"source": "gaussian", "rows": 20_000, "spectrum": [4.0]}, "attacks": ["ndr"],
            "schemes": [{"name": "independent", "levels": [1.0], "distribution": distribution}], "measures": ["interval-privacy"],
        })  # fmt: skip
        found = only(result, "interval_privacy")
        assert abs(found.value - width) < 3 * found.std_error + 0.01
        assert found.ci_low < found.value < found.ci_high


def test_within_has_exact_chances_for_every_kind_of_tolerance():
    kinds = [0.5, {"tolerance": 1.0, "of": "absolute"}, {"tolerance": 0.5, "of": "relative"}]
    result = run("census-like", attacks=["llse"], measures=[{"within": kinds}])
    names = {"within(0.5 std)", "within(1 absolute)", "within(0.5 relative)"}
    records = [r for r in result.measurements if r.metric in names]
    assert {r.metric for r in records} == names
    for r in records:
        assert r.error_bar == "closed-form"
        assert abs(r.value - r.theory) < 4 * r.std_error


# -- values recovered exactly
# ------------------------------------------------------------------------------------------


AGES = np.random.default_rng(1).integers(18, 90, 3000)


def saved(folder, **columns):
    """Write a table and return its place."""
    pd.DataFrame(columns).to_csv(folder / "table.csv", index=False)
    return str(folder / "table.csv")


def test_an_estimate_is_exact_that_rounds_to_the_true_value():
    """By hand: of ages 18 and 20 (step 2) errors below 1 are exact; one that is half-way is not."""
    errors = np.array([0.0, 0.99, -0.99, 1.0, -1.0, 3.0])[:, None, None]
    tally = filled(
        errors, np.full((6, 1), 20.0), np.ones(1), tolerances=(Rounding(np.array([2.0])),)
    )
    assert tally.sums["hits"][0].tolist() == [[3.0]]


def test_a_top_coded_copy_keeps_half_its_values_whatever_squared_error_says(tmp_path):
    """Whole ages up to 39 as they are, those above all as 39: by hand half are exact, and one age in sixty by chance."""
    ages = np.tile(np.arange(10, 70), 10)
    x = saved(tmp_path, age=ages, height=np.random.default_rng(1).normal(size=600))
    pd.read_csv(x).assign(age=np.minimum(ages, 39)).to_csv(tmp_path / "copy.csv", index=False)
    result = auditor.run({
        "seed": 1, "data": x, "schemes": [{"name": "published", "copies": [str(tmp_path / "copy.csv")]}], "attacks": ["ndr"],
        "measures": ["exact"],
    })  # fmt: skip
    assert only(result, "exact", "age").value == 0.5
    assert only(result, "exact_gain", "age").value == pytest.approx(0.5 - 1 / 60)
    # ½ mean(1² … 30²) over (60² − 1)/12
    assert only(result, "normalized_error", "age").value == pytest.approx(
        0.5 * 31 * 61 / 6 / (3599 / 12)
    )
    assert only(result, "exact", "*").value == 0.5  # a continuous column has no part in it …
    assert only(result, "exact", "height").status == "not-applicable"  # … and says so
    assert "continuous" in only(result, "exact_gain", "height").reason


@pytest.mark.parametrize(("variance", "expected"), [(1e-4, 1.0), (1e6, 0.0)])
def test_exact_has_its_limits(variance, expected, tmp_path):
    """Noise far below the step leaves every value; noise far above leaves the share ``1/√(2πσ²)`` of them."""
    result = run(
        saved(tmp_path, age=AGES),
        scheme="independent",
        measures=["exact"],
        noise={"variance": variance},
    )
    found = only(result, "exact")
    assert found.value == pytest.approx(expected, abs=2e-3)
    assert found.error_bar == "closed-form"


def test_chances_of_exact_values_are_the_closed_form(tmp_path):
    """``Φ(s/2σ) − Φ(−s/2σ)`` for noise of deviation σ, beside the naive sum over rows; within four standard errors."""
    found = only(
        run(saved(tmp_path, age=AGES), measures=["exact", "within"], noise={"variance": 0.25}),
        "exact",
    )
    assert found.theory == pytest.approx(0.6826894921, abs=1e-8)
    assert abs(found.value - found.theory) < 4 * found.std_error


def test_expectations_name_variants():
    result = run("gaussian", measures=[{"within": [0.1, 0.5]}, "error-quantiles"],
                 expect=[{"within(0.5 std)": {"between": [0.3, 0.45]}}, {"error-quantile(0.5)": {"between": [0.6, 0.75]}}])  # fmt: skip
    assert [e.status for e in result.expectations] == ["holds", "holds"]


@pytest.mark.parametrize(("measure", "message"), [
    ({"error-quantiles": [0.99]}, "at most 0.95"),
    ({"interval-privacy": 0.2}, "at least 0.5"),
    ({"within": {"tolerance": 1, "of": "percent"}}, "'std', 'absolute' or 'relative'"),
    ({"within": [0.1, 0.1]}, "repeats tolerance"),
    ({"within": -1}, "greater than 0"),
])  # fmt: skip
def test_measures_that_cannot_be_are_refused(measure, message):
    with pytest.raises(ScenarioError, match=message):
        run("gaussian", measures=[measure])


# -- entropies
# ---------------------------------------------------------------------------------------------------------


def test_entropies_by_hand():
    """Uniform on [0, 8]: 3 bits; normal: ½ log₂ 2πe; uniform noise of reach ½: 0 bits."""
    assert entropy(np.full(16, 1 / 16), 0.5) == pytest.approx(3.0)
    assert noise_entropy(NoiseDensity("gaussian", 1.0)) == pytest.approx(2.0471, abs=1e-4)
    assert noise_entropy(NoiseDensity("uniform", 0.5 / np.sqrt(3.0))) == pytest.approx(0.0)


def test_information_of_uniform_data_under_uniform_noise_by_hand():
    """X on [0, 1], Z on [−1, 1]: h(Y) = ½·1 + ½ + 1/(4 ln 2) and h(Z) = 1, so I = 0.3607 bits."""
    found = information(
        np.linspace(0, 1, 21), np.full(20, 0.05), NoiseDensity("uniform", 1 / np.sqrt(3.0))
    )
    assert found == pytest.approx(1 / (4 * np.log(2)), abs=2e-3)


@pytest.mark.parametrize("level", [0.1, 1.0, 10.0])
def test_gaussian_loss_is_that_of_the_channel(level):
    """``I = ½ log₂(1 + 1/level)`` and so ``1 − 2^−I = 1 − (1 + 1/level)^−½``."""
    edges = np.linspace(-8, 8, 1601)
    mass = np.diff(NoiseDensity("gaussian", 1.0).cdf(edges))
    loss = 1 - 2 ** -information(edges, mass / mass.sum(), NoiseDensity("gaussian", np.sqrt(level)))
    assert loss == pytest.approx(1 - (1 + 1 / level) ** -0.5, abs=1e-3)


def test_whole_numbers_make_no_comb():
    edges, mass = attribute_histogram(np.repeat(np.arange(1.0, 9.0), 500))
    assert len(mass) == 8
    assert entropy(mass, edges[1] - edges[0]) == pytest.approx(3.0)


def test_entropy_of_a_release_is_of_its_best_copy_under_corner_wave_noise():
    result = auditor.run({
        "data": {"source": "gaussian", "rows": 20_000, "spectrum": [4.0]}, "measures": ["entropy-privacy"], "attacks": ["ndr"],
        "schemes": [{"name": "corner-wave", "levels": [1.0, 0.5]}], "coalitions": ["singles", "all"],
    })  # fmt: skip
    loss = {
        r.coalition: r
        for r in result.measurements
        if r.metric == "privacy_loss" and r.attribute == "*"
    }
    left = {
        r.coalition: r
        for r in result.measurements
        if r.metric == "entropy_privacy" and r.attribute == "*"
    }
    assert loss[1, 2].value == loss[2,].value > loss[1,].value
    assert loss[2,].value == pytest.approx(1 - 3**-0.5, abs=0.01)
    # 2^h(X|Y) of a normal with variance 1/3
    assert left[2,].value == pytest.approx(np.sqrt(2 * np.pi * np.e / 3), rel=0.02)
    assert all(
        r.attack is None and r.knowledge is None and r.std_error is None for r in loss.values()
    )


def test_information_under_laplace_noise_of_the_data_s_own_scale():
    """Both of scale 1: Y has density ``(1 + |y|) e^{−|y|}/4``, and ``h(Z) = log₂ 2e``; h(Y) by a sum over a fine grid."""
    edges = np.linspace(-40, 40, 2001)
    mass = np.diff(NoiseDensity("laplace", np.sqrt(2.0)).cdf(edges))
    y = (np.arange(400_000) + 0.5) / 5_000
    f = (1 + y) * np.exp(-y) / 4
    h = -2 * (f * np.log2(f)).sum() / 5_000
    assert information(edges, mass, NoiseDensity("laplace", np.sqrt(2.0))) == pytest.approx(
        h - np.log2(2 * np.e), abs=2e-3
    )


@pytest.mark.parametrize("distribution", ["geometric", "skellam"])
@pytest.mark.parametrize("std", [0.05, 1.5, 40.0])
def test_information_on_a_lattice_is_the_sum_over_its_points(distribution, std):
    """X is 10, 12 or 13 quarters: ``Σ p(x) f(y − x) log₂ f(y − x)/p(y)`` written out, in any unit."""
    noise = NoiseDensity(distribution, std / 4, 0.25)
    edges, mass = lattice_histogram(np.array([2.5, 3.0, 3.0, 3.25]), 0.25)
    np.testing.assert_allclose(edges, np.array([9.5, 10.5, 11.5, 12.5, 13.5]) / 4)
    np.testing.assert_allclose(mass, [0.25, 0.0, 0.5, 0.25])
    k = np.arange(-3000, 3001)
    f = np.array([noise.pdf((k - x) / 4.0) for x in (0, 2, 3)])
    p = np.array([0.25, 0.5, 0.25]) @ f
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.nansum(np.array([[0.25], [0.5], [0.25]]) * f * np.log2(f / p))
    assert information(edges, mass, noise) == pytest.approx(expected, abs=1e-9)


def test_geometric_entropy_has_a_closed_form():
    """``log₂((1 + q)/(1 − q)) − E|k| log₂ q`` with ``E|k| = 2q/(1 − q²)``; q = ½ at variance 4."""
    assert noise_entropy(NoiseDensity("geometric", 2.0)) == pytest.approx(
        np.log2(3.0) + 4 / 3, abs=1e-9
    )


def test_values_off_the_lattice_have_no_entropy_under_its_noise():
    with pytest.raises(NotApplicable, match="keep what is below it in every copy"):
        lattice_histogram(np.array([0.0, 0.5, 1.0]), 1.0)


@pytest.mark.parametrize("name", ["laplace", "geometric", "skellam"])
def test_entropy_of_one_process_is_of_its_best_copy_and_pooled_fresh_copies_have_none(name):
    result = auditor.run({
        "data": {"source": "inline", "values": {"x": [float(v) for v in np.random.default_rng(1).poisson(9, 400)]}},
        "schemes": [{"name": each, "levels": [1.0, 0.5]} for each in (name, f"{name}-multilevel")],
        "measures": ["entropy-privacy"], "attacks": ["ndr"], "coalitions": ["subsets"],
    })  # fmt: skip
    found = {
        (r.scheme, r.coalition): r
        for r in result.measurements
        if r.metric == "privacy_loss" and r.attribute == "*"
    }
    assert (
        found[f"{name}-multilevel", (1, 2)].value
        == found[f"{name}-multilevel", (2,)].value
        == found[name, (2,)].value
    )
    assert found[name, (2,)].value > found[name, (1,)].value > 0
    assert found[name, (1, 2)].status == "not-applicable"
    assert f"pooled {name} noise has no density of its own" in found[name, (1, 2)].reason


def entropies_of_uniform_noise(noise):
    result = auditor.run({
        "data": {"source": "gaussian", "rows": 5_000, "covariance": [[1.0, 0.8], [0.8, 1.0]]}, "measures": ["entropy-privacy"],
        "schemes": [{"name": "independent", "distribution": "uniform", "levels": [1.0, 0.5], "noise": noise}], "attacks": ["ndr"],
        "coalitions": ["subsets"],
    })  # fmt: skip
    return [r for r in result.measurements if r.metric == "privacy_loss" and r.attribute == "*"]


def test_uniform_noise_that_is_correlated_is_not_taken_for_uniform_in_one_attribute():
    records = entropies_of_uniform_noise("data")
    assert {r.status for r in records} == {"not-applicable"}
    assert all("not uniform in any one of them" in r.reason for r in records)


# -- the spread of a large table's errors
# ------------------------------------------------------------------------------


def test_a_spread_from_the_heads_of_blocks_is_that_of_all_records_but_for_chance():
    """Shares of cells: standard errors sqrt(p(1−p)/m) over m records, which are independent here; 4.5 of them at worst of 492."""
    document = {
        "seed": 3,
        "data": {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 400_000},
        "schemes": [{"name": "independent", "levels": [0.5, 1.0]}],
        "attacks": ["llse", "udr"],
        "knowledge": ["perfect", {"known-records": 3}],
        "measures": [{"error-distribution": {"records": 400_000}}],
    }
    whole = auditor.run(document)
    part = auditor.run(document | {"measures": [{"error-distribution": {"records": 50_000}}]})
    assert whole.measurements == part.measurements
    compared = 0
    for all_, some in zip(whole.distributions, part.distributions, strict=True):
        assert all_[:-3] == some[:-3]
        p, q = np.array([*all_.shares, all_.above]), np.array([*some.shares, some.above])
        compared += p.size
        assert (np.abs(p - q) <= 4.5 * np.sqrt(np.maximum(p, 1e-3) / 50_000)).all()
        assert not np.array_equal(p, q)
    assert compared == 12 * 41


@pytest.mark.parametrize(("rows", "bins"), [(12, 40), (300, 400), (300, 40), (3, 40)])
def test_no_bin_of_a_spread_tells_of_fewer_than_ten_records(rows, bins):
    rng = np.random.default_rng(rows)
    errors = np.abs(rng.standard_t(3, size=(rows, 2, 3)))
    tally = Tally(np.ones(3), bins=bins)
    tally.add(errors.copy(), np.zeros((rows, 3)))
    shares = spread_shares(tally.sums["counts"], rows)
    assert np.allclose(shares.sum(axis=-1), 1.0)
    for share in shares.reshape(-1, bins + 1):
        starts = np.flatnonzero(np.diff(share, prepend=-1.0))
        held = np.add.reduceat(share, starts) * rows
        assert (held[held > 1e-9] > min(rows, FEWEST_IN_BIN) - 1e-9).all()

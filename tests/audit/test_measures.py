"""Measures of exposure: closeness, hits, groups and utility."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import auditor
from auditor.adversary.attack import Reconstruction
from auditor.audit.measures.entropy import entropy, information, lattice_histogram, noise_entropy
from auditor.audit.measures.privacy import (
    best_constant_share,
    least_median_error,
    of_records,
    sampled,
)
from auditor.audit.measures.record_disclosure import Disclosures
from auditor.audit.numeric.error_tally import (
    Tally,
    Tolerance,
    reportable,
    size_quantile,
    spread_shares,
)
from auditor.base import ScenarioError
from auditor.runs.run_scenario import run_scenario
from auditor.scenario.read import read_scenario
from auditor.schemes.base.noise_density import NoiseDensity
from tests.audited import NO_LEARNER, audited_files

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
        errors, x, scale,
        tolerances=(Tolerance(0.3 * scale), Tolerance(0.3), Tolerance(0.0, 0.3)),
    )  # fmt: skip
    size = np.abs(errors)
    np.testing.assert_allclose(tally.sums["hits"][0], (size <= 0.3 * scale).sum(axis=0))
    np.testing.assert_allclose(tally.sums["hits"][1], (size <= 0.3).sum(axis=0))
    np.testing.assert_allclose(
        tally.sums["hits"][2], (size <= 0.3 * np.abs(x)[:, None]).sum(axis=0)
    )


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
            "seed": 1, "data": data, "schemes": [{"name": scheme, "levels": [1.0], "noise": noise}],
            "attacks": list(attacks), **more,
        }
    )  # fmt: skip


def only(result, metric, attribute="*"):
    return next(r for r in result.measurements if r.metric == metric and r.attribute == attribute)


def test_agrawal_srikant_intervals_of_gaussian_noise_are_3_92_deviations_wide():
    for distribution, width in (("gaussian", 3.92), ("uniform", 0.95 * 2 * np.sqrt(3.0))):
        result = auditor.run({
            "seed": 1, "data": {"source": "gaussian", "rows": 20_000, "spectrum": [4.0]}, "attacks": ["ndr"],
            "schemes": [{"name": "independent", "levels": [1.0], "distribution": distribution}], "measures": ["interval-privacy"],
        })  # fmt: skip
        found = only(result, "interval_privacy")
        assert abs(found.value - width) < 3 * found.std_error + 0.01
        assert found.ci_low < found.value < found.ci_high


AGES = np.random.default_rng(1).integers(18, 90, 3000)


def saved(folder, **columns):
    pd.DataFrame(columns).to_csv(folder / "table.csv", index=False)
    return str(folder / "table.csv")


def test_chances_of_exact_values_are_the_closed_form(tmp_path):
    found = only(
        run(saved(tmp_path, age=AGES), measures=["exact", "within"], noise={"variance": 0.25}),
        "exact",
    )
    assert found.theory == pytest.approx(0.6826894921, abs=1e-8)
    assert abs(found.value - found.theory) < 4 * found.std_error


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


def test_entropies_by_hand():
    """Uniform on [0, 8]."""
    assert entropy(np.full(16, 1 / 16), 0.5) == pytest.approx(3.0)
    assert noise_entropy(NoiseDensity("gaussian", 1.0)) == pytest.approx(2.0471, abs=1e-4)
    assert noise_entropy(NoiseDensity("uniform", 0.5 / np.sqrt(3.0))) == pytest.approx(0.0)


@pytest.mark.parametrize("distribution", ["geometric", "skellam"])
@pytest.mark.parametrize("std", [0.05, 40.0])
def test_information_on_a_lattice_is_the_sum_over_its_points(distribution, std):
    """X is 10, 12 or 13 quarters."""
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


@pytest.mark.parametrize(("rows", "bins"), [(12, 40), (300, 400), (300, 40), (3, 40)])
def test_no_bin_of_a_spread_tells_of_fewer_than_ten_records(rows, bins):
    errors = np.abs(np.random.default_rng(rows).standard_t(3, size=(rows, 2, 3)))
    tally = Tally(np.ones(3), bins=bins)
    tally.add(errors.copy(), np.zeros((rows, 3)))
    shares = spread_shares(tally.sums["counts"], rows)
    assert np.allclose(shares.sum(axis=-1), 1.0)
    for share in shares.reshape(-1, bins + 1):
        held = np.add.reduceat(share, np.flatnonzero(np.diff(share, prepend=-1.0))) * rows
        assert (held[held > 1e-9] > min(rows, 10) - 1e-9).all()


RNG = np.random.default_rng(2**41 + 5)
START = RNG.bit_generator.state
N = 4_000


def audit(table, copies, tmp_path, exposure, tolerance=None, attacks=("ndr", "llse"), **more):
    data = {} if tolerance is None else {"tolerance": tolerance}
    expect = [{"exposure": exposure}]
    return audited_files(
        tmp_path, table, copies, data, attacks=list(attacks), expect=expect, **more
    )


def figures(result, attack, metric):
    frame = result.frame()
    rows = frame[(frame.attack == attack) & (frame.metric == metric) & (frame.status == "ok")]
    return rows.set_index("attribute")


def naive(x, estimate, tolerance):
    guesses = np.unique(np.concatenate([x - tolerance, x, x + tolerance]))
    best = max(np.mean(np.abs(x - guess) <= tolerance) for guess in guesses)
    return np.mean(np.abs(estimate - x) <= tolerance) - best


def test_constant_guesses_agree_with_a_search_over_all_of_them():
    for x in (RNG.lognormal(size=60), RNG.integers(0, 9, 61).astype(float)):
        reach = np.abs(RNG.normal(size=x.size)) + 0.1
        candidates = np.concatenate([x - reach, x + reach])
        shares = [np.mean(np.abs(x - guess) <= reach + 1e-12) for guess in candidates]
        assert best_constant_share(x, reach) == pytest.approx(max(shares))
        middles = (x[:, None] + x[None, :]).ravel() / 2
        half = int(np.ceil(x.size / 2)) - 1
        medians = [np.sort(np.abs(x - guess))[half] for guess in middles]
        assert least_median_error(x) == pytest.approx(min(medians))


def test_figures_of_the_copy_itself_are_the_naive_ones(tmp_path):
    table = pd.DataFrame({"pay": RNG.lognormal(3, 1, N), "age": RNG.uniform(20, 60, N)})
    table["size"] = RNG.lognormal(size=N)
    copy = table + RNG.normal(size=table.shape) * [5.0, 3.0, 0.2]
    tolerance = {"pay": 2.0, "age": {"relative": 0.05}}
    exposure = {"close": {"at-most": 0.9}}
    result = audit(table, [copy], tmp_path, exposure, tolerance, knowledge=NO_LEARNER)
    close, ratio = (figures(result, "ndr", metric) for metric in ("close", "median_error_ratio"))
    x, y = table["pay"].to_numpy(), copy["pay"].to_numpy()
    assert close.value["pay"] == pytest.approx(naive(x, y, 2.0), abs=2e-3)
    x, y = table["size"].to_numpy(), copy["size"].to_numpy()
    tenth = 0.1 * np.subtract(*np.quantile(x, [0.75, 0.25]))
    assert close.value["size"] == pytest.approx(naive(x, y, tenth), abs=2e-3)
    x, y = table["age"].to_numpy(), copy["age"].to_numpy()
    assert close.value["age"] == pytest.approx(naive(x, y, 0.05 * x), abs=2e-3)
    expected = np.median(np.abs(y - x)) / least_median_error(x)
    assert ratio.value["age"] == pytest.approx(expected, rel=0.01)
    for frame in (close, ratio):
        assert (frame.ci_low < frame.value).all()
        assert (frame.value < frame.ci_high).all()


def test_honest_noise_on_a_skewed_table_holds(tmp_path):
    table = pd.DataFrame({"income": RNG.lognormal(9, 0.6, N), "hours": RNG.uniform(0, 60, N)})
    copy = table + RNG.normal(size=table.shape) * (2 * table.std().to_numpy())
    exposure = {"unknown": {"at-least": 0.5}, "close": {"at-most": 0.1}}
    result = audit(table, [copy], tmp_path, exposure, attacks=["ndr", "llse", "mixture-estimate"])
    assert [record.status for record in result.expectations] == ["holds"]


@pytest.mark.parametrize(
    ("tolerance", "expected"),
    [({"pay": 0}, "greater than 0"), ({"pai": 1.0}, "pay"), (3, "must be a mapping")],
)
def test_a_wrong_tolerance_is_refused_with_its_place(tmp_path, tolerance, expected):
    pd.DataFrame({"pay": RNG.normal(size=50)}).to_csv(tmp_path / "table.csv", index=False)
    asked = {
        "schema": 1, "title": "tolerance",
        "data": {"source": str(tmp_path / "table.csv"), "columns": ["pay"], "tolerance": tolerance},
        "schemes": [{"name": "independent", "levels": [1.0]}], "attacks": ["ndr"],
    }  # fmt: skip
    with pytest.raises(auditor.AuditorError, match=expected) as raised:
        auditor.run(asked)
    assert "tolerance" in str(raised.value)


BASE = {
    "seed": 3, "data": {"source": "components", "shapes": ["exponential", "uniform"], "attributes": 5, "mean": 1, "rows": 300},
    "coalitions": ["all"], "replicates": 5,
}  # fmt: skip


def measured(document):
    return run_scenario(read_scenario(BASE | document)).measurements


def test_success_is_the_exact_chance_and_the_most_exposed_record_is_told_by_its_chance_alone():
    """200 guesses × 5 replicates; four standard errors."""
    records = measured({
        "schemes": ["rotation"], "knowledge": [{"known-records": 2}, {"known-records": 4}],
        "attacks": [{"name": "known-io-rotation", "guesses": 200}], "measures": [{"records-within": {"tolerance": 0.5}}],
    })  # fmt: skip
    for knowledge in ("known-records(2)", "known-records(4)"):
        for metric in ("records_within", "most_exposed"):
            cell = [r for r in records if r.metric == metric and r.knowledge == knowledge]
            gap = np.array([r.value - r.theory for r in cell])
            assert abs(gap.mean()) < 4 * max(gap.std(ddof=1) / np.sqrt(5), 0.5 / np.sqrt(1000))


def test_whole_records_by_hand():
    class Fixed(Reconstruction):
        def guesses(self, copies):
            yield copies[0]
            yield copies[0] + 10

        def chances(self, copies, tolerance):
            return np.array([0.25, 0.5])

    counted = Disclosures(0.1)
    x = np.array([[3.0, 4.0], [0.0, 1.0]])
    # it guesses, so its estimate is but one of these
    counted.add(Fixed(), [x + np.array([[0.3, 0.3], [0.3, 0.0]])], x + 10, x)
    # the first record in the first guess: 0.42 of 5; the second is 0.3 of 1 off
    within, exposed = counted.figures()
    assert (within[1], counted.sums["chance"], exposed[3]) == (0.25, 0.75, 0.5)


def test_a_median_error_of_whole_numbers_is_at_least_half_a_step():
    """Half of the records have the commonest value, so one more hit is no median error of 0."""
    x = np.repeat([0.0, 1.0, 2.0], [498, 350, 152])[:, None]
    tally = sampled(x.std(axis=0), of_records(x, ["children"], {}))
    tally.add(np.minimum(np.arange(1_000.0) // 510, 1.0)[:, None, None], x)
    assert size_quantile(tally.sums["size_counts"], 0.5) * x.std() == pytest.approx(0.5, rel=0.01)

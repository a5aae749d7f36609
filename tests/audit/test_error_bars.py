"""Error bars: every figure, redraws and jackknife."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.attempts import opened, over_rows
from auditor.audit.numeric.error_bars import (
    from_groups,
    from_redraws,
    reaches,
    redraw_bars,
    redrawn_moments,
)
from auditor.audit.numeric.error_tally import REDRAWS
from auditor.numerics.blocks import Moments
from auditor.numerics.statistics import quantile
from auditor.schemes.base.noise_law import DenseNoise, KroneckerNoise
from benchmarks.coverage import LOW, measure
from tests.audited import cells

EXPOSURE = {"exposure": {"unknown": {"at-least": 0.5}, "close": {"at-most": 0.1}}}
METRICS = ["normalized_error", "median_error_ratio", "close"]


def audit(tmp_path, rows, scheme, attacks="all", seed=0, in_order=False):
    rng = np.random.default_rng(2**41 + 31 + seed)
    X = rng.normal(size=(rows, 2)) @ [[3.0, 1.0], [0.0, 2.0]] + [50, 20]
    X = X[X[:, 0].argsort()] if in_order else X
    table = pd.DataFrame(X, columns=["pay", "age"])
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    if "law" in scheme:
        release = auditor.perturb(table, "corner-wave", scheme["levels"], seed=2**41 + 7)
        names = [str(tmp_path / f"copy-{place}.csv") for place in range(2)]
        for name, copy in zip(names, release.copies, strict=True):
            copy.to_csv(name, index=False)
        scheme = scheme | {"copies": names}
    return auditor.run(
        {
            "schema": 1, "title": "error bars", "seed": 2**41, "data": {"source": str(path)},
            "schemes": [scheme], "knowledge": ["perfect"], "coalitions": ["subsets"],
            "attacks": attacks, "expect": [EXPOSURE],
        }
    )  # fmt: skip


def figures(result):
    frame = result.frame()
    return frame[frame.metric.isin(METRICS) & (frame.status == "ok")]


@pytest.mark.parametrize("law", [{"scheme": "corner-wave"}, None])
def test_every_figure_of_files_has_an_error_bar(tmp_path, law):
    scheme = {"name": "published", "levels": [4.0, 16.0], "law": law}
    attacks = ["llse", "mixture-estimate", "distribution-analysis"]
    result = audit(tmp_path, 1_600, scheme, attacks)
    found = figures(result)
    assert found.std_error.notna().all()
    assert result.expectations[0].status == "holds"
    if law:
        assert set(found[found.attack == "distribution-analysis"].error_bar) == {
            "redraws",
            "sampling",
        }


def test_some_records_of_a_large_table_give_the_error_bar_of_all(tmp_path, monkeypatch):
    scheme = {"name": "corner-wave", "levels": [4.0]}
    whole = figures(audit(tmp_path, 8_000, scheme, ["mixture-estimate", "bayes-estimate"]))
    monkeypatch.setattr(opened, "BLOCK_VALUES", 8_000)
    result = audit(tmp_path, 8_000, scheme, ["mixture-estimate", "bayes-estimate"])
    part = figures(result)
    redrawn = part[(part.metric == "normalized_error")].reset_index(drop=True)
    ratio = redrawn.std_error / whole[whole.metric == "normalized_error"].reset_index().std_error
    assert ratio.between(0.35, 2.8).all()  # F(8, 8) at 0.3 % of either side, squared root
    assert (redrawn.ci_low < redrawn.value).all()
    assert result.expectations[0].status == "holds"


def test_attacks_are_judged_on_some_records_of_a_large_table(tmp_path, monkeypatch):
    """2,000 of 8,000 records, also of a sorted file; all if an attack stores its estimates."""
    scheme = {"name": "corner-wave", "levels": [0.5, 4.0]}

    def judged(attack="mixture-estimate", **more):
        found = figures(audit(tmp_path, 8_000, scheme, [attack], **more))
        return found[found.metric == "normalized_error"].reset_index(drop=True)

    whole, smooth = judged(), judged("matern-smoother")
    assert (smooth.std_error > 0).all()
    monkeypatch.setattr(over_rows, "MOST_JUDGED", 2_000)
    pd.testing.assert_frame_equal(judged("matern-smoother"), smooth)
    for part in (judged(), judged(in_order=True)):
        assert set(part.error_bar) == {"jackknife"}
        assert ((part.value - whole.value).abs() < 4.5 * part.std_error).all()
        # squared normal errors: 2 σ⁴ of their mean's square per record; F(31, ∞) at 1e-4
        ratio = part.std_error / (part.value * np.sqrt(2 / 2_000))
        assert ratio[part.attribute != "*"].between(0.55, 1.5).all()


def test_a_small_table_says_how_many_records_or_which_level_would_do(tmp_path):
    result = audit(tmp_path, 120, {"name": "corner-wave", "levels": [1.6]}, ["llse", "ndr"])
    (record,) = result.expectations
    assert record.status == "undecided"
    assert "too few records to decide, about" in record.why
    more = float(record.why.rpartition("raise the level 1.6 to ")[2].partition(";")[0])
    assert 1.6 < more < 20
    wanted = int(record.why.partition("about ")[2].partition(" would")[0].replace(",", ""))
    more_rows = audit(tmp_path, 2 * wanted, {"name": "corner-wave", "levels": [1.6]}, ["llse"])
    assert more_rows.expectations[0].status == "holds"


def test_an_attack_far_worse_than_a_guess_has_a_lower_end(tmp_path):
    again = 0.95 + 0.02 * np.random.default_rng(2**41 + 3).normal(size=(39, 1, 2))
    again[::13] = 250.0
    figure = np.array([[1.001, 1.0]])
    found = from_redraws([(1,)], figure, again, np.ones(2)).distortion
    assert (found.std_error > 10).all()
    assert (figure - found.below > 0.85).all()
    sums = np.full((32, 1, 1), 95.0)
    sums[3] = 40_000.0
    found = from_groups([(1,)], sums, [100] * 32, np.ones(1)).distortion
    assert (found.value - found.below > 0.85).all()
    assert (found.std_error > 5).all()


def test_interval_of_an_error_that_is_all_rounding_ends_after_it_begins():
    sums = np.full((5, 1, 1), 1e-22) * np.arange(1.0, 6.0)[:, None, None]
    figure = from_groups([(1,)], sums, [10] * 5, np.array([1e8])).distortion
    assert (figure.value == 0.0).all()
    assert (figure.below >= 0.0).all()


@pytest.mark.slow
def test_intervals_of_learnt_priors_cover_in_skewed_tables():
    """A redraw that starts from the release's own fit covered 65 % of the time."""
    X = np.random.default_rng(2**41 + 5).lognormal(0, 1, (500, 2))
    rows = []
    for draw in range(40):
        spec = {
            "schema": 1, "title": "coverage", "seed": 2**41 + draw,
            "data": {"source": "inline", "values": {"x": X[:, 0].tolist(), "y": X[:, 1].tolist()}},
            "schemes": [{"name": "corner-wave", "levels": [1.0]}],
            "knowledge": ["perfect"], "attacks": ["mixture-estimate"],
        }  # fmt: skip
        rows.append(figures(auditor.run(spec)).assign(draw=draw))
    found = pd.concat(rows)
    truth = found.groupby(["metric", "attribute"]).value.transform("mean")
    covered = ((found.ci_low <= truth) & (truth <= found.ci_high)).groupby(found.metric).mean()
    assert (covered > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40)).all()


NON_LINEAR = [
    {"name": "udr", "id": "udr-learnt", "prior": "reconstructed"},
    {"name": "map-estimate", "prior": "histogram"},
    "distribution-analysis",
]


def audited(replicates):
    rng = np.random.default_rng(1)
    values = {"x": rng.exponential(size=200).tolist(), "y": rng.normal(size=200).tolist()}
    document = {
        "data": {"source": "inline", "values": values}, "schemes": [{"name": "independent", "levels": [0.5]}], "knowledge": ["perfect"],
        "coalitions": ["singles"], "attacks": [*NON_LINEAR, "llse"], "replicates": replicates,
    }  # fmt: skip
    return cells(auditor.run(document), metric="distortion", attribute="*")


def test_replicates_replace_redraws_from_five_on():
    found = audited(4)
    bars = {m.attack: m.error_bar for m in found}
    assert bars == {
        "udr-learnt": "redraws", "map-estimate": "redraws", "distribution-analysis": "redraws",
        "llse": "closed-form",
    }  # fmt: skip
    for m in (m for m in found if m.attack == "llse"):
        assert m.ci_high - m.value == pytest.approx(1.959964 * m.std_error)
    cells = audited(5)
    assert {m.error_bar for m in cells if m.attack != "llse"} == {"replicates"}
    assert {m.error_bar for m in cells if m.attack == "llse"} == {"closed-form"}
    for attack in ("udr-learnt", "map-estimate", "distribution-analysis"):
        own = [m for m in cells if m.attack == attack]
        spread = np.std([m.value for m in own], ddof=1)
        for m in own:
            assert m.std_error == pytest.approx(spread)
            assert m.ci_high - m.value == pytest.approx(quantile(0.975, 4) * spread)


LAWS = {
    "one noise in both": KroneckerNoise(np.array([[1.0, 2.0], [2.0, 4.0]]), np.eye(2)),
    "dense": DenseNoise(np.diag([1.0, 2.0, 3.0, 0.0]), 2),
    "uniform": KroneckerNoise(np.diag([0.5, 1.0]), np.diag([1.0, 4.0]), distribution="uniform"),
}


def by_rows(X, law, rng):
    shape, r = (len(X), law.root.shape[1]), np.sqrt(3)
    normal = law.excess_kurtosis is None
    U = rng.standard_normal(shape) if normal else rng.uniform(-r, r, shape)
    return Moments.of(np.hstack([X, np.tile(X, (1, law.copies)) + U @ law.root.T]))


def flat(moments):
    return np.concatenate([moments.total, moments.products[np.triu_indices(moments.size)]])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_moments_drawn_again_have_the_law_of_rows_drawn_again(law):
    """2,000 draws, some 40 comparisons of 4.5 standard errors."""
    rng, draws = np.random.default_rng(3), 2000
    X = rng.exponential(size=(12, 2)) - 1.0
    ours = np.array([flat(redrawn_moments(Moments.of(X), law, rng)) for _ in range(draws)])
    naive = np.array([flat(by_rows(X, law, rng)) for _ in range(draws)])
    varies = naive.std(axis=0) > 1e-9
    np.testing.assert_allclose(ours[:, ~varies], naive[:, ~varies], atol=1e-9)
    a, b = ours[:, varies], naive[:, varies]
    gap = np.abs(a.mean(axis=0) - b.mean(axis=0)) / b.std(axis=0)
    assert gap.max() < 4.5 * np.sqrt(2 / draws)
    a, b = ((each - each.mean(axis=0)) ** 2 for each in (a, b))
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / draws)
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) / error).max() < 4.5


def test_errors_and_gains_from_redraws_by_hand():
    """In each of two redraws another copy is the best."""
    first = np.array([[4.0], [2.0], [1.0]]).repeat(2, axis=1)
    again = np.array([[4.0, 3.0, 3.0], [3.0, 4.0, 1.5]])[:, :, None].repeat(2, axis=2)
    found = from_redraws([(1,), (2,), (1, 2)], first, again, np.ones(2), np.array([[0], [1], [0]]))
    assert found.gain.value[2, 0] == 0.5  # against copy 2
    assert found.gain.std_error[2, 0] == pytest.approx(np.std([0.0, 0.5], ddof=1))
    assert found.paired.gain[2, 0] == 0.75  # against copy 1
    assert found.paired.std_error[2, 0] == pytest.approx(np.std([0.25, 0.5], ddof=1))
    assert found.distortion.std_error[0, 0] == pytest.approx(np.sqrt(0.5))
    unsteady = np.array([[9.0, 9.0, 9.0], [0.1, 0.1, 0.1]])[:, :, None].repeat(2, axis=2)
    for other, spread in ((unsteady, 0.0), (unsteady * [[1], [1], [0.5]], np.nan)):
        gain = from_redraws([(1,), (2,), (1, 2)], unsteady[0], other, np.full(2, 9.0)).gain
        np.testing.assert_equal(gain.std_error[2], [spread] * 2)  # each draw's gain is 0, or not


def test_reach_is_student_and_past_the_mean():
    """Redraws 0 … 8."""
    again = np.tile(np.arange(9.0)[:, None], 3)
    t, past = quantile(0.925, 8) * np.sqrt(7.5), quantile(0.75, 8) * np.sqrt(7.5) / 3
    down, up = reaches(np.array([5.0, 20.0, -16.0]), again)
    np.testing.assert_allclose(down, [t, 16.0 + past, t])
    np.testing.assert_allclose(up, [t, t, 20.0 + past])


def test_the_lower_end_is_of_draws_that_are_at_most_a_mere_guess():
    again = np.array([0.9, 1.1, 1.0, 9000.0])[:, None]
    figure, kept = np.array([13.0]), np.minimum(again, 1.0)
    error, below, above = redraw_bars(figure, again, 1.0, most=1.0)
    assert error == again.std(ddof=1)
    np.testing.assert_allclose(figure - below, 1.0 - reaches(np.ones(1), kept)[0])
    np.testing.assert_allclose(above, reaches(figure, again)[1])


@pytest.mark.parametrize(("draw", "mean", "low", "high"), [
    (lambda rng, shape: rng.normal(size=shape), 0.0, 0.9625, 0.9625),
    (lambda rng, shape: rng.normal(size=shape) ** 2, 1.0, 0.93, 0.985),
    (lambda rng, shape: rng.normal(size=shape) + 8.0 * (rng.random(shape) < 0.1), 0.8, 0.93, 0.985),
], ids=["normal", "skewed", "two heaps"])  # fmt: skip
def test_intervals_hold_the_true_mean(draw, mean, low, high):
    """Of a normal figure 96 times in 100."""
    values = draw(np.random.default_rng(7), (20_000, REDRAWS + 1))
    figure, again = values[:, 0], values[:, 1:].T
    down, up = reaches(figure, again)
    held = np.mean((figure - down <= mean) & (mean <= figure + up))
    assert low - 0.0055 < held < high + 0.0055


def scenario(attack, replicates=1, knowledge="perfect", **data):
    values = np.random.default_rng(1).exponential(size=(120, 2))
    return {
        "data": {"source": "inline", "values": {"x": values[:, 0].tolist(), "y": values[:, 1].tolist()}},
        "schemes": [{"name": "independent", "levels": [0.5, 0.8]}], "knowledge": [knowledge], "coalitions": ["singles", "all"],
        "attacks": [attack], "replicates": replicates,
    }  # fmt: skip


def test_redraws_of_known_records_are_about_the_mean():
    """A table far from 0 has the error bars of one that is centred."""
    bars = []
    for far in (0.0, 1e7):
        document = scenario("known-io-regression", knowledge={"known-records": 60})
        columns = document["data"]["values"]
        document["data"]["values"] = {k: [v + far for v in values] for k, values in columns.items()}
        found = auditor.run(document).measurements
        bars.append([m.std_error for m in found if m.metric == "distortion" and m.attribute == "*"])
    np.testing.assert_allclose(bars[1], bars[0], rtol=1e-4)


def test_redraws_of_runs_with_fits_held_have_the_spread_of_theory():
    """A normal prior is linear, so its bars have a closed form; 16 degrees of freedom, 5 errors."""
    document = {
        "seed": 2**40 + 7,
        "data": {"source": "gaussian", "rows": 9_000, "spectrum": [2.0, 0.5]},
        "schemes": [
            {"name": "independent", "levels": [0.5, 0.8]},
            {"name": "corner-wave", "levels": [0.5, 0.8]},
        ],
        "coalitions": ["singles", "all"],
        "attacks": ["llse", {"name": "mixture-estimate", "components": 1}],
    }
    frame = auditor.run(document).frame()
    frame = frame[frame.metric == "distortion"].set_index(
        ["attack", "scheme", "coalition", "attribute"]
    )
    ours, exact = frame.loc["mixture-estimate"], frame.loc["llse"]
    np.testing.assert_allclose(ours.value, exact.value, rtol=0.02)
    off = np.log(ours.std_error / exact.std_error)
    assert np.abs(off).max() < 5 / np.sqrt(2 * 16)
    assert np.abs(off.mean()) < 5 / np.sqrt(2 * 16 * 4)


FAMILIES = ["independent records", "independent moments", "independent priors"]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_cover_on_a_skewed_table(family):
    """12 draws of salaries and ages."""
    rows = [row for _, found in measure(family, ["cps"], draws=12, seed=2) for row in found]
    assert rows
    for row in rows:
        assert row.intervals == 0 or row.coverage >= LOW - 0.189, row

"""Error bars of nonlinear attacks: for stated laws, for large tables, and for erratic attacks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor.audit.attempts import opened, over_rows
from auditor.audit.numeric.error_bars import from_groups, from_redraws

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
            "schema": 1,
            "title": "error bars",
            "seed": 2**41,
            "data": {"source": str(path)},
            "schemes": [scheme],
            "knowledge": ["perfect"],
            "coalitions": ["subsets"],
            "attacks": attacks,
            "expect": [EXPOSURE],
        }
    )


def figures(result):
    frame = result.frame()
    return frame[frame.metric.isin(METRICS) & (frame.status == "ok")]


@pytest.mark.parametrize("law", [{"scheme": "corner-wave"}, None])
def test_every_figure_of_files_has_an_error_bar(tmp_path, law):
    scheme = {"name": "published", "levels": [4.0, 16.0], "law": law}
    attacks = ["llse", "mixture-estimate", "distribution-analysis"]
    result = audit(tmp_path, 800, scheme, attacks)
    found = figures(result)
    assert found.std_error.notna().all()
    assert result.expectations[0].status == "holds"
    if law:
        assert set(found[found.attack == "distribution-analysis"].error_bar) == {"redraws"}


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
    """Of 2,000 of 8,000 records: an error of as many, also if the file is sorted by an attribute."""
    scheme = {"name": "corner-wave", "levels": [0.5, 4.0]}

    def judged(**more):
        found = figures(audit(tmp_path, 8_000, scheme, ["mixture-estimate"], **more))
        return found[found.metric == "normalized_error"].reset_index(drop=True)

    whole = judged()
    monkeypatch.setattr(over_rows, "MOST_JUDGED", 2_000)
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
    assert "too few records to show this, about" in record.why
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

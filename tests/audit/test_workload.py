"""Workloads, inferences, bins and joint counts."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

import auditor
from auditor.adversary.attack import Inferred
from auditor.audit.base.request import CellContext, release_copies
from auditor.audit.base.session import CELLS, PER_DEVIATION
from auditor.audit.measures.record_disclosure import Disclosures
from auditor.audit.numeric.error_tally import bins
from auditor.audit.workload import workload
from auditor.base import ScenarioError
from auditor.results.model import AuditResult
from auditor.runs.check import check_data
from auditor.runs.plan import outline
from auditor.scenario.read import read_scenario
from tests.audited import cells

ROWS, WIDTH, COPIES = 2000, 2, 3


def scenario(**changes):
    numbers = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": ROWS}
    whole = {"data": numbers, "schemes": [{"name": "corner-wave", "levels": [0.3, 0.6, 1.0]}], "coalitions": ["singles", "all"],
             "attacks": ["llse"], "replicates": 5}  # fmt: skip
    return read_scenario(whole | changes)


def outlined(here):
    return outline(here, check_data(here))


def seconds(**changes):
    here = scenario(**changes)
    (table,) = check_data(here)
    pooling = any(one.expectation.needs_pooling for one in here.expect)
    copies = release_copies(here.schemes[0], here)
    return workload(here, table, here.schemes[0], copies, pooling).seconds


def test_what_does_not_apply_takes_nothing():
    assert seconds(attacks=["llse", "ica", "known-io-boosting", "homogeneity"]) == seconds()


def test_more_rows_copies_replicates_attacks_and_questions_take_longer():
    numbers = {"source": "gaussian", "covariance": [[1.0, 0.5], [0.5, 2.0]], "rows": 10 * ROWS}
    levels = {"uniform": [0.3, 1.0], "count": 2 * COPIES}
    more = [
        {"data": numbers}, {"schemes": [{"name": "corner-wave", "levels": levels}]},
        {"replicates": 10}, {"attacks": ["llse", "map-estimate"]},
        {"expect": [{"no-collusion-gain": {}}]},
    ]  # fmt: skip
    assert all(seconds(**change) > seconds() for change in more)
    rotated = {"knowledge": [{"known-records": 1}], "schemes": ["rotation"], "coalitions": "all"}
    assert seconds(
        attacks=[{"name": "known-io-rotation", "guesses": 2000}], **rotated
    ) > 1.5 * seconds(attacks=[{"name": "known-io-rotation", "guesses": 1000}], **rotated)


def test_a_sweep_is_folded_into_a_line_for_each_scheme():
    swept = scenario(sweep={"data.rows": [500, 2000, 1000], "replicates": [1, 2]}, schemes=[
        {"name": "corner-wave", "levels": [0.3, 1.0]}, {"name": "correlated", "levels": [0.3, 0.6, 1.0]},
    ])  # fmt: skip
    head, *lines = outlined(swept).splitlines()[2:]
    assert "MB of memory in each worker process" in head
    assert lines == [
        "  swept: data.rows over 3 values: [500, 2000, 1000]", "  swept: replicates over 2 values: [1, 2]",
        "  corner-wave at 6 sweep points: 500 to 2,000 rows × 2, 2 copies, 3 coalitions, 27 cells in all",
        "  correlated at 6 sweep points: 500 to 2,000 rows × 2, 3 copies, 4 coalitions, 36 cells in all",
    ]  # fmt: skip


def test_more_memory_than_there_is_is_warned_of(monkeypatch):
    assert "WARNING" not in outlined(scenario())
    monkeypatch.setattr("auditor.runs.plan.available", lambda: 100 * 2**20)
    assert "WARNING: that is more than the 100 MB that there are" in outlined(scenario())


def test_every_subset_of_20_copies_is_refused_without_naming_one(monkeypatch):
    """For any number of attributes; the message has an alternative."""
    monkeypatch.setattr("auditor.runs.check_scheme.expand_all", None)
    for count in (20, 40):
        scheme = {"name": "corner-wave", "levels": {"uniform": [0.3, 1.0], "count": count}}
        many = scenario(schemes=[scheme], coalitions=["subsets"], replicates=1)
        with pytest.raises(ScenarioError, match=r"try (\{random: 1000\}|random)"):
            outlined(many)


def test_the_plan_says_minutes_where_it_takes_minutes():
    assert " minutes on one core" in outlined(
        scenario(attacks=["mixture-estimate", "map-estimate"], coalitions=["subsets"], replicates=1000),
    )  # fmt: skip
    assert " s on one core" in outlined(scenario())


PRIOR = np.array([0.9, 0.07, 0.03])


def drawn(rng, n):
    x = rng.choice(3, size=n, p=PRIOR)
    told = np.where(rng.random(n) < 0.8, x, rng.choice(3, size=n, p=PRIOR))
    posterior = np.full((n, 3), 0.05) + 0.85 * np.eye(3)[told]
    claims = np.where(rng.random(n) < 0.5, told, -1)
    return Inferred(0, np.arange(3.0), np.arange(3), posterior, PRIOR, claims, np.zeros(n)), x[
        :, None
    ].astype(float)


def measured(found, x):
    counted = Disclosures()
    for rows in np.array_split(np.arange(len(x)), 3):  # blocks of records
        counted.infer(
            Inferred(
                0, found.values, found.groups, found.posterior[rows], PRIOR, found.claims[rows],
                found.linked[rows],
            ),
            x[rows],
        )  # fmt: skip
    context = CellContext({}, "k-anonymity", (5.0,), 0, ("ill",), np.ones(1), 1)
    return next(
        r
        for r in counted.records(context, (1,))
        if (r.metric, r.attribute) == ("disclosed_beyond_chance", "ill")
    )


def test_it_is_what_right_claims_are_worth_over_the_doubt_of_all_records():
    found, x = drawn(np.random.default_rng(1), 500)
    news = doubt = 0.0
    for claim, true in zip(found.claims, x[:, 0].astype(int), strict=True):
        doubt += 1 - PRIOR[true]
        if claim >= 0:
            news += (claim == true) - PRIOR[claim]
    assert measured(found, x).value == pytest.approx(news / doubt)


def test_its_error_bar_is_the_spread_over_draws_of_the_records():
    draws, rng = 400, np.random.default_rng(2)
    records = [measured(*drawn(rng, 1_500)) for _ in range(draws)]
    errors = [(r.ci_high - r.value) / 1.96 for r in records]
    spread = np.std([r.value for r in records], ddof=1)
    # four standard errors of a standard deviation
    assert np.mean(errors) == pytest.approx(spread, rel=4 / np.sqrt(2 * draws))


def told(level):
    result = auditor.run({
        "seed": 1, "data": {"source": "cps", "columns": ["salary"], "rows": 400, "bin": {"salary": {"quantile": 10}}}, "attacks": ["posterior"],
        "schemes": [{"name": "corner-wave", "levels": [level]}],
    })  # fmt: skip
    return {
        record.metric: record.value for record in cells(result, attack="posterior", attribute="*")
    }


def test_noise_that_swamps_the_column_tells_nothing_and_takes_no_more_memory():
    """A grid as fine as the column would have 10⁸ cells of 10 bins."""
    swamped = told(1e9)
    assert abs(swamped["normalized_error"] - 1.0) < 0.02
    assert swamped["mutual_information"] < 0.02
    assert told(0.01)["mutual_information"] > 1.0


@given(arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 25)))
def test_bins_are_runs_of_ten_records_or_none_and_hide_the_extremes(counts):
    found = bins(counts)
    if counts.sum() < 10:
        assert found == []
        return
    assert [first for first, _, _ in found] == [0, *(stop for _, stop, _ in found[:-1])]
    assert found[-1][1] == len(counts)
    assert all(held == counts[a:b].sum() for a, b, held in found)
    assert all(held == 0 or held >= 10 for _, _, held in found)
    for a, b, held in found:  # an empty bin begins and ends at cells of ten records
        if held == 0:
            assert a == 0 or counts[a - 1] >= 10
            assert b == len(counts) or counts[b] >= 10


def numbers(rows, **more):
    rng = np.random.default_rng(2**40 + 1)
    table = pd.DataFrame({"pay": rng.lognormal(8, 1, rows), "age": rng.normal(40, 12, rows)})
    levels = [0.2, 0.8]
    return table, {
        "seed": 7, "attacks": ["llse"], "coalitions": ["subsets"],
        "schemes": [{"name": "corner-wave", "levels": levels}, {"name": "independent", "levels": levels}], **more,
    }  # fmt: skip


@pytest.mark.slow
def test_a_picture_is_what_the_strongest_attack_estimates(tmp_path):
    table, scenario = numbers(3000)
    file = tmp_path / "staff.parquet"
    table.to_parquet(file)
    source = {"data": {"source": str(file), "disclosure": "public"}}
    result = auditor.run({**scenario, **source})
    assert [one.scheme for one in result.pictures] == ["corner-wave", "independent"]
    for one in result.pictures:
        errors = [
            (round(r.value, 9), len(r.coalition), r.attribute, r[1:5])
            for r in cells(result, metric="normalized_error", scheme=one.scheme)
            if r.attribute != "*"
        ]
        assert min(errors)[2:] == (one.attribute, one[1:5])
        x = table[one.attribute].to_numpy()
        cell = np.floor((x - x.mean()) / x.std() * PER_DEVIATION + CELLS / 2).clip(0, CELLS - 1)
        naive = np.bincount(cell.astype(int), minlength=CELLS)
        assert one.original == tuple((a, b, n / 3000) for a, b, n in bins(naive))
        for part in (one.original, one.shown, one.estimate, one.joint):
            assert sum(each[-1] for each in part) == pytest.approx(1.0)
        near = sum(s for a, b, c, d, s in one.joint if c <= b and a <= d)
        assert near > 0.7  # most estimates are in the original's bin or next to it
    assert AuditResult.load(result.save(tmp_path / "out")).pictures == result.pictures
    lines = {**scenario, "data": source["data"], "seed": 7}
    assert auditor.run(lines, workers=2).pictures == result.pictures


@pytest.mark.slow
def test_a_picture_of_a_private_table_is_rounded_and_has_no_value(tmp_path):
    table, scenario = numbers(800)
    table.loc[0, "pay"] = 987654.321
    table.to_csv(tmp_path / "staff.csv", index=False)
    result = auditor.run({**scenario, "data": {"source": str(tmp_path / "staff.csv")}})
    written = json.loads(result.to_json())["pictures"]
    assert written
    assert "987654" not in json.dumps(written)
    exact = [one[-1] for one in result.pictures[0].original]
    shares = [one[-1] for one in written[0]["original"]]
    assert shares != exact
    errors = [
        abs(a - b) <= np.sqrt(b * (1 - b) / 800) / 2 for a, b in zip(shares, exact, strict=True)
    ]
    assert all(errors)
    few, scenario = numbers(9)
    few.to_csv(tmp_path / "few.csv", index=False)
    nine = auditor.run({**scenario, "data": {"source": str(tmp_path / "few.csv")}})
    assert json.loads(nine.to_json())["pictures"] == []


def test_a_picture_of_categories_has_the_right_guesses_on_its_diagonal():
    made = auditor.run({
        "seed": 1, "schemes": [{"name": "uniform-multilevel", "levels": [0.8, 0.3]}], "attacks": ["posterior"],
        "data": {"source": "cps", "columns": ["age"], "rows": 2000, "bin": {"age": {"quantile": 4}}},
    })  # fmt: skip
    (one,) = made.pictures
    right = next(r.value for r in cells(made, metric="accuracy", coalition=(1,)))
    diagonal = sum(share for a, b, c, d, share in one.joint if (a, b) == (c, d) and b == a + 1)
    assert (one.width, one.cells, one.copy) == (0.0, 4, 1)
    assert diagonal == pytest.approx(right, abs=1e-9)

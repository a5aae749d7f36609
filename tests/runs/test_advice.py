from __future__ import annotations

import math
import shlex
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import auditor
from auditor import AuditorError
from auditor.registry import get
from auditor.results.advice import Exposed, Tried
from auditor.results.records import Measurement
from auditor.runs.advice import audits
from auditor.runs.advice.advise import advise, command, steps_apart
from auditor.runs.advice.audits import Asked, Trials, astray, of_one_release
from auditor.runs.advice.candidates import (
    AddedNoise,
    Retention,
    mean_loss,
    noise_grid,
    regression_loss,
    share_loss,
    weakest,
)
from auditor.runs.advice.columns import Chosen, chosen
from auditor.runs.advice.request import Request
from auditor.runs.perturb import make_plugin
from auditor.scenario.stated_levels import sized_by_bounds
from auditor.schemes.base.scheme import TableMoments, table_moments

K = np.array([[4.0, 3.0], [3.0, 9.0]])
"""A covariance, with a correlation of a half."""
ONE = np.array([[2.5]])


def noise(scheme, copies=1, K_X=ONE, spread=4.0, loss=mean_loss):
    return AddedNoise(
        copies, spread, get("scheme", scheme)(), TableMoments(np.zeros(len(K_X)), K_X, 1000), loss
    )


@given(steps=st.integers(1, 80), data=st.data())
def test_the_search_finds_the_first_place_and_asks_of_few(steps, data):
    start = data.draw(st.integers(0, steps - 1))
    first = data.draw(st.integers(start, steps))  # `steps`: it is met nowhere
    asked = []
    found = weakest(lambda place: asked.append(place) or place >= first, start, steps)
    assert found == (first if first < steps else None)
    assert len(asked) == len(set(asked)) <= 2 * math.log2(steps + 1) + 3
    assert min(asked) >= start


class StubbedAudits(Asked):
    def __init__(self, target, worth=1.0, candidate=None):
        super().__init__({}, target, 1000, 1, False, {})
        self.__dict__.update(worth=worth, pooled_level=candidate.pooled_level, asked=[])

    def audit(self, scheme, levels):
        self.asked.append((scheme, tuple(levels)))
        return self.worth * self.pooled_level(tuple(levels))

    def exposed(self, result):
        return Exposed(result / (1.0 + result), 0.0, "stub", "x", (1,))

    def verdict(self, result, target=None):
        left = result / (1.0 + result)
        return (
            "holds"
            if left >= (target or self.target)
            else "undecided"
            if left >= 0.9 * self.target
            else "fails"
        )


def test_of_one_gaussian_attribute_half_stays_unknown_at_a_level_of_exactly_1():
    candidate = noise("corner-wave")  # LLSE leaves σ²/(1 + σ²), and there is nothing better
    trials = Trials(StubbedAudits(0.5, candidate=candidate), "mean")
    place = trials.lowest(candidate, math.inf)
    assert candidate.levels(place) == (1.0,)
    assert not trials.whole(candidate, place - 1).met


@pytest.mark.parametrize("worth", [1.0, 0.7, 0.05])
@pytest.mark.parametrize("scheme", ["corner-wave", "correlated"])
def test_the_place_found_meets_the_target_and_the_one_before_does_not(scheme, worth):
    candidate = noise(scheme, copies=3)
    trials = Trials(StubbedAudits(0.5, worth, candidate), "mean")
    place = trials.lowest(candidate, math.inf)
    assert trials.whole(candidate, place).met
    assert not trials.whole(candidate, place - 1).met
    assert len(trials.asked.asked) == len(set(trials.asked.asked)) <= 14


def test_schemes_of_one_shape_share_the_audits_of_single_copies():
    one, other = noise("corner-wave", 3), noise("correlated", 3)
    trials = Trials(StubbedAudits(0.5, 0.5, one), "mean")
    trials.lowest(one, math.inf)
    before = [asked for asked in trials.asked.asked if len(asked[1]) == 1]
    trials.lowest(other, math.inf)
    assert [asked for asked in trials.asked.asked if len(asked[1]) == 1] == before


def test_a_scheme_that_loses_more_on_paper_is_not_audited():
    candidate = noise("correlated", 3)
    trials = Trials(StubbedAudits(0.5, candidate=candidate), "mean")
    assert trials.lowest(candidate, best=0.1) is None
    assert trials.asked.asked == []
    assert [one.exposed for one in trials.tried.values()] == [None]


def test_a_target_beyond_the_grid_is_refused_and_the_largest_that_is_met_is_named():
    candidate = noise("corner-wave")
    trials = Trials(StubbedAudits(0.9999, candidate=candidate), "mean")
    # the strongest level, 1,000, leaves 1000/1001
    assert trials.lowest(candidate, math.inf) is None
    assert "the largest that is met is --unknown 0.99" in trials.refusal(candidate)


def drawn(mean, error, count=4, theory=None):
    return [Measurement({}, "s", "perfect", "llse", (1,), (1.0,), k, "x", "normalized_error", mean, error, None, None, theory, "ok", None, "replicates")
            for k in range(1, count + 1)]  # fmt: skip


def found(*cells):
    return SimpleNamespace(measurements=[record for cell in cells for record in cell])


def test_one_release_spreads_as_one_draw_and_in_proportion_to_its_error():
    # sqrt(4)·(sqrt(4·0.03²)/4)
    assert of_one_release(drawn(0.4, 0.03), 0.5).std_error == pytest.approx(0.03)
    assert of_one_release(drawn(0.6, 0.03), 0.5).std_error == pytest.approx(0.025)
    assert of_one_release(drawn(0.6, None), 0.5).std_error is None


@pytest.mark.parametrize(
    ("mean", "error", "verdict"),
    [
        # 5.0·0.02·0.5/0.6 = 0.08
        (0.63, 0.02, "holds"), (0.57, 0.02, "undecided"), (0.41, 0.02, "undecided"), (0.37, 0.02, "fails"),
        (1600.0, 7200.0, "holds"),
    ],
)  # fmt: skip
def test_a_target_is_met_by_more_than_one_release_spreads_and_missed_by_as_much(
    mean, error, verdict
):
    asked = Asked({}, 0.5, 1000, 1, False, {})
    assert asked.verdict(found(drawn(mean, error))) == verdict
    assert asked.verdict(found(drawn(mean, error, count=400))) == verdict


@pytest.mark.parametrize(
    ("bar", "z"), [("replicates", 1.645), ("replicates", 3.39), ("closed-form", 1.645)]
)
def test_an_audit_of_a_new_release_agrees_with_ten_draws_199_times_in_200(bar, z):
    """Of a release that just meets the target."""
    rng, n = np.random.default_rng(5), 200_000
    (one, *_), known = drawn(0.0, 1.0), bar == "closed-form"
    margin = z + astray(one._replace(error_bar=bar), 10, z)
    mean = rng.normal(size=(n, 10)).mean(axis=1)
    spread, found = (
        1.0 if known else np.sqrt(rng.chisquare(degrees, n) / degrees) for degrees in (9, 8)
    )
    off = np.mean(rng.normal(size=n) - z * found < mean - margin * spread)
    assert 0.0035 < off < 0.0056


def test_theory_below_the_target_refutes_and_the_cell_that_may_end_lowest_is_told():
    asked = Asked({}, 0.5, 1000, 1, False, {})
    assert asked.verdict(found(drawn(0.55, 0.02, theory=0.49))) == "fails"
    assert (
        asked.exposed(
            found(drawn(0.6, 0.01), [one._replace(attack="wide") for one in drawn(0.62, 0.1)])
        ).attack
        == "wide"
    )
    assert asked.exposed(found(drawn(0.4, 0.02))).half == pytest.approx(1.96 * 0.02, rel=1e-3)


def test_of_categories_the_value_that_is_given_away_most_counts_as_in_the_expectation():
    whole = [one._replace(attribute="*", attack="posterior") for one in drawn(0.66, 0.01)]
    believed = [one._replace(metric="value_belief", value=0.6) for one in whole]
    asked = Asked({}, 0.5, 1000, 1, True, {})
    assert asked.verdict(found(whole)) == "holds"
    assert asked.verdict(found(whole, believed)) == "fails"
    assert asked.exposed(found(whole, believed)).unknown == pytest.approx(0.4)


def test_fresh_copies_need_levels_that_together_tell_as_little():
    candidate = noise("correlated", copies=3)  # ratios 1, 2, 4: 1/v = (1 + 1/2 + 1/4)/L
    place = candidate.grid.index(1.0)
    assert candidate.levels(place) == (1.75, 3.5, 7.0)
    assert candidate.pooled_level((1.75, 3.5, 7.0)) == pytest.approx(1.0)
    assert candidate.unknown((1.75, 3.5, 7.0)) == pytest.approx(0.5)
    assert noise("corner-wave", copies=3).levels(place) == (1.0, 2.0, 4.0)


def test_the_closed_form_is_the_papers_second_equation_7_written_out():
    candidate = noise("independent", copies=2, K_X=K)
    levels = (0.7, 1.9)
    H, K_0 = np.vstack([np.eye(2)] * 2), np.trace(K) / 2 * np.eye(2)
    K_Z = np.kron(np.diag(levels), K_0)
    naive = K - K @ H.T @ np.linalg.inv(H @ K @ H.T + K_Z) @ H @ K
    assert candidate.unknown(levels) == pytest.approx((np.diag(naive) / np.diag(K)).min())


def test_noise_of_the_datas_shape_costs_a_regression_nothing_and_white_noise_does():
    assert regression_loss(K, 3.0 * K) == pytest.approx(0.0, abs=1e-12)
    white = 2.0 * np.eye(2)
    # naive: errors of b = K_Y,oj/K_Y,oo on the original, over K_jj, less the best
    lost = [1 - K[0, 1] ** 2 / 36, 1 - K[0, 1] ** 2 / 36]
    naive = []
    for j, o in ((0, 1), (1, 0)):
        b = K[o, j] / (K[o, o] + white[o, o])
        naive.append((K[j, j] - 2 * b * K[o, j] + b**2 * K[o, o]) / K[j, j] - lost[j])
    assert regression_loss(K, white) == pytest.approx(np.mean(naive))


def test_the_standard_error_of_a_mean_grows_as_noise_says():
    rng = np.random.default_rng(0)
    copies = rng.normal(size=(4000, 50)) + math.sqrt(3.0) * rng.normal(size=(4000, 50))
    grown = copies.mean(axis=1).std() / (1 / math.sqrt(50)) - 1
    # four standard errors of a deviation
    assert grown == pytest.approx(mean_loss(ONE, 3.0 * ONE), abs=4 * 2 / math.sqrt(2 * 4000))


def test_a_share_estimated_from_a_copy_is_as_uncertain_as_stated():
    prior, p, n, draws = np.array([0.7, 0.2, 0.1]), 0.4, 500, 4000
    q = p * prior + (1 - p) / 3
    shares = (np.random.default_rng(0).multinomial(n, q, size=draws) / n - (1 - p) / 3) / p
    grown = np.mean(shares.std(axis=0) / np.sqrt(prior * (1 - prior) / n) - 1)
    assert share_loss(prior, p) == pytest.approx(grown, abs=4 * (1 + grown) / math.sqrt(2 * draws))


def test_retention_leaves_what_exact_bayes_written_out_leaves():
    prior, p = np.array([0.5, 0.3, 0.2]), 0.6
    candidate = Retention(2, 4.0, get("scheme", "uniform-multilevel")(), prior)
    joint = prior[:, None] * (p * np.eye(3) + (1 - p) / 3)
    posterior = joint / joint.sum(axis=0)
    error = sum(
        joint[x, y] * ((np.eye(3)[x] - posterior[:, y]) ** 2).sum()
        for x in range(3)
        for y in range(3)
    )
    assert candidate.unknown((p, p / 4)) == pytest.approx(error / (1 - (prior**2).sum()))
    assert candidate.levels(candidate.grid.index(0.6)) == (0.6, 0.15)


BOUNDS = {"age": (0.0, 10.0), "pay": (0.0, 40.0)}


def bounded(scheme, copies=2, **parameters):
    spans = np.array([high - low for low, high in BOUNDS.values()])
    made = make_plugin("scheme", scheme, {"noise": "bounds", **parameters})
    return AddedNoise(
        copies,
        4.0,
        made,
        TableMoments(np.zeros(2), K, 1000, spans),
        mean_loss,
        1e-6,
        grid=noise_grid(-12, 3),
    )


def test_epsilon_of_all_copies_is_that_of_the_least_perturbed_by_its_law():
    levels = (0.5, 2.0)
    pure = bounded("laplace-multilevel").epsilon(levels).pure
    # Δ/b in each column, of variance 2b² = 0.5 Δ²
    assert pure == pytest.approx(2 * math.sqrt(2 / 0.5))
    gaussian = bounded("corner-wave").epsilon(levels)
    assert gaussian.pure == math.inf
    mu, eps = math.sqrt(2 / 0.5), gaussian.at_delta  # each column moves by 1/√0.5 deviations
    # balle2018, Theorem 8
    assert norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(
        -mu / 2 - eps / mu
    ) == pytest.approx(1e-6, rel=1e-6)
    assert noise("corner-wave").epsilon((1.0,)) is None  # no bounds


@pytest.mark.parametrize("scheme", ["corner-wave", "laplace-multilevel"])
def test_what_the_command_states_makes_the_levels_that_were_found(scheme):
    best, levels = bounded(scheme), (0.037, 0.148)
    request = Request("staff.csv", 2, 0.5, bounds=BOUNDS)
    taken = Tried(scheme, levels, 0.5, None, "holds", True, 0.0, ())
    words = shlex.split(
        command(
            request,
            Chosen({"columns": list(BOUNDS), "missing": "drop"}, {}, None, 0, ()),
            best,
            taken,
        )
    )
    currency = "gaussian-dp" if scheme == "corner-wave" else "epsilon"
    stated = [float(one) for one in words[words.index(f"--{currency}") + 1].split(",")]
    made, parameters = sized_by_bounds(scheme, {}, currency, stated, BOUNDS)
    np.testing.assert_allclose(made, levels, rtol=1e-5)
    assert parameters["noise"] in (
        {"variances": [100.0, 1600.0]},
        {"matrix": [[100.0, 0.0], [0.0, 1600.0]]},
    )
    assert ["age=0.0:10.0", "pay=0.0:40.0"] == [
        words[k + 1] for k, word in enumerate(words) if word == "--bounds"
    ]
    assert "--columns" not in words


def test_no_release_beyond_the_largest_epsilon_meets_the_request():
    candidate = bounded("laplace-multilevel")
    trials = Trials(StubbedAudits(0.5, candidate=candidate), "mean", most_epsilon=1.0)
    place = trials.lowest(candidate, math.inf)
    assert trials.whole(candidate, place).epsilon.at_delta <= 1.0
    assert candidate.levels(place)[0] == pytest.approx(8.0, rel=0.25)  # 2 √(2/v) ≤ 1
    weaker = trials.whole(candidate, place - 1)
    assert (weaker.verdict, weaker.epsilon.at_delta > 1.0) == ("fails", True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unknown": 1.0}, "below 1"),
        ({"unknown": 0.0}, "above 0"),
        ({"unknown": math.nan}, "above 0"),
        ({"copies": 0}, "--copies must be from 1 to 50; got 0"),
        ({"copies": 1_000_000}, "got 1,000,000"),
        ({"spread": 0.5}, "--spread"),
        ({"utility": "classifier"}, "needs --target"),
        ({"target": "age"}, "needs --target"),
        ({"schemes": ("rotation",)}, "has no level that decides"),
        ({"schemes": ("linearly-dependent",)}, "cancel their noise"),
        ({"schemes": ("corner-wave", "uniform")}, "apart"),
        ({"schemes": ("uniform",), "columns": None}, "one column at a time"),
        ({"schemes": ("uniform",), "utility": "regression"}, "--utility mean"),
        ({"utility": "regression"}, "two columns"),
        ({"epsilon": 1.0}, "needs --bounds"),
        ({"bounds": {"age": (0.0, 120.0)}, "epsilon": math.nan}, "above 0"),
        ({"bounds": {"age": (0.0, 120.0)}, "delta": 0.0}, "--delta"),
        ({"bounds": {"age": (0.0, 120.0)}, "parameters": {"noise": "data"}}, "sizes the noise"),
        ({"bounds": {"age": (0.0, 50.0)}}, "outside the stated bounds"),
        ({"bounds": {"age": (0.0, 120.0)}, "schemes": ("uniform",)}, "adds none"),
        ({"schemes": ("laplace",)}, "has no level that decides"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(change, words):
    asked = {"data": "cps", "copies": 2, "unknown": 0.5, "columns": ("age",), "rows": 50} | change
    with pytest.raises(AuditorError) as caught:
        advise(Request(**asked))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def staff(folder, n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "id": np.arange(5000, 5000 + n), "name": [f"secret{k}" for k in range(n)], "age": rng.normal(45, 12, n).round(1),
        "salary": np.exp(rng.normal(10, 0.5, n)).round(2), "department": rng.choice(["a", "b", "c"], n), "flag": 1,
    })  # fmt: skip
    frame.loc[::10, "salary"] = np.nan
    frame.to_csv(folder / "staff.csv", index=False)
    return frame


def test_columns_that_noise_cannot_protect_are_left_out_with_the_reason_and_no_value(here):
    staff(here)
    found = chosen("staff.csv", None, None, 1)
    assert found.data == {"source": "staff.csv", "columns": ["age", "salary"], "missing": "drop"}
    assert (found.table.rows, found.all_rows) == (54, 54)
    notes = " | ".join(found.notes)
    for words in ("'id' left out: it goes up or down evenly", "'name' left out: it ", "'flag' left out: it is the same", "6 records with blanks",
                  "'department' left out: it holds text with few different values; advice on it alone"):  # fmt: skip
        assert words in notes
    assert "secret" not in notes
    assert "5000" not in notes


def test_a_file_without_numbers_and_one_with_few_records_are_refused(here):
    pd.DataFrame({"name": ["secret"] * 30, "id": range(30)}).to_csv("names.csv", index=False)
    pd.DataFrame({"age": np.arange(19) ** 2.0}).to_csv("few.csv", index=False)
    with pytest.raises(AuditorError, match="no column can be perturbed") as caught:
        chosen("names.csv", None, None, 1)
    assert "secret" not in str(caught.value)
    with pytest.raises(AuditorError, match="at least 20 records"):
        chosen("few.csv", None, None, 1)


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(audits, "MOST_DRAWS", audits.FEWEST_DRAWS)


@pytest.mark.slow
def test_advice_on_a_small_table_holds_in_the_audit_that_it_hands_out(here, few_draws):
    pd.DataFrame({"age": np.random.default_rng(3).normal(size=120)}).to_csv(
        "small.csv", index=False
    )
    told = []
    advice = advise(Request("small.csv", 2, 0.3, schemes=("corner-wave",)), told.append)
    # 0.3/0.7 = 0.43
    assert told[0].startswith(
        "on paper first: attacks with a closed form ask for corner-wave at 0.464"
    )
    assert advice.chosen.met
    assert advice.weaker is not None
    assert not advice.weaker.met
    assert advice.chosen.levels[0] >= 0.464
    result = auditor.run(yaml.safe_load(yaml.safe_dump(advice.scenario)))
    assert result.exit_status == 0
    assert advice.command == f"auditor perturb small.csv --scheme corner-wave --levels {advice.chosen.levels[0]:g},{advice.chosen.levels[1]:g}" \
        " --columns age --output copies"  # fmt: skip


@pytest.fixture
def few_attacks(monkeypatch):
    every = Asked.scenario
    monkeypatch.setattr(
        Asked,
        "scenario",
        lambda *asked: (
            every(*asked) | {"attacks": ["llse", "distribution-analysis", "map-estimate"]}
        ),
    )


@pytest.mark.parametrize("scheme", ["corner-wave", "correlated"])
def test_over_other_draws_the_recommended_release_meets_the_target_and_the_next_weaker_fails(
    here, few_draws, few_attacks, scheme
):
    staff(here, 400, seed=1)
    table = chosen("staff.csv", ["salary"], None, 1)
    candidate = AddedNoise(2, 4.0, get("scheme", scheme)(), table_moments(table.table), mean_loss)
    asked = Asked(table.measured, 0.5, table.table.rows, 1, False, {})
    trials = Trials(asked, "mean")
    place = trials.lowest(candidate, math.inf)
    step = steps_apart(trials, candidate, place)
    for verdict, levels in (
        ("holds", candidate.levels(place)),
        ("fails", candidate.levels(place - step)),
    ):
        audited = asked.scenario(scheme, levels) | {"replicates": 1}
        found = [
            auditor.run(audited | {"seed": seed}).expectations[0].status for seed in range(11, 17)
        ]
        assert found.count(verdict) >= 3
        assert set(found) <= {verdict, "undecided"}


@pytest.mark.slow
def test_the_scenario_of_advice_on_two_columns_holds_under_other_seeds_and_of_the_next_weaker_release_fails(
    here, few_draws, few_attacks
):
    staff(here, 300, seed=1)
    advice = advise(
        Request("staff.csv", 1, 0.5, columns=("salary", "age"), schemes=("corner-wave",))
    )
    for verdict, release in (("holds", advice.chosen), ("fails", advice.weaker)):
        audited = advice.scenario | {
            "schemes": [{"name": release.scheme, "levels": list(release.levels)}]
        }
        assert [
            auditor.run(audited | {"seed": seed}).expectations[0].status for seed in (11, 12, 13)
        ] == [verdict] * 3

"""Advice: checks, samples and remedies."""

import math
import signal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import auditor
from auditor import AuditorError
from auditor.process.containment import Interrupted
from auditor.registry import get
from auditor.results.model import AuditResult
from auditor.results.records import Advice, Measurement
from auditor.runs.advice import audits, candidates, columns
from auditor.runs.advice.advise import advise, command, steps_apart
from auditor.runs.advice.audits import Asked, Trials, astray
from auditor.runs.advice.columns import Request, chosen
from auditor.scenario.arguments import make_plugin
from auditor.schemes.base.scheme import TableMoments, table_moments
from auditor.schemes.replacement.law import left_by_retention
from tests.audited import cells

K = np.array([[4.0, 3.0], [3.0, 9.0]])
"""A covariance, with a correlation of a half."""
ONE = np.array([[2.5]])


def noise(scheme, copies=1, K_X=ONE, spread=4.0, loss=candidates.mean_loss):
    return candidates.AddedNoise(
        copies, spread, get("scheme", scheme)(), TableMoments(np.zeros(len(K_X)), K_X, 1000), loss
    )


def drawn(mean, error, count=4, theory=None):
    return [Measurement({}, "s", "perfect", "llse", (1,), (1.0,), k, "x", "normalized_error", mean, error, None, None, theory, "ok", None, "replicates")
            for k in range(1, count + 1)]  # fmt: skip


def found(*cells):
    records = [record for cell in cells for record in cell]
    return SimpleNamespace(measurements=records, scenario={"replicates": len(cells[0])})


def test_one_draw_s_interval_does_not_judge_the_mean():
    """Ten draws at the value of no information, of which one went astray."""
    draws = [one._replace(value=0.999) for one in drawn(0.999, 1e-3, 10)]
    draws[0] = draws[0]._replace(value=12.6, ci_low=-9.0, ci_high=34.0)
    assert Asked({}, 0.5, 1000, 1, False, {}).verdict(found(draws)) == "holds"
    # one of 25 draws misses a target that the mean exceeds far enough
    for value, verdict in ((0.51, "holds"), (0.49, "undecided")):
        draws = [*drawn(0.999, 1e-3, 24), *drawn(value, 1e-3, 1)]
        spread = [one._replace(std_error=0.1) for one in draws]
        assert Asked({}, 0.5, 1000, 1, False, {}).verdict(found(spread)) == verdict


@pytest.mark.parametrize(("bar", "z"), [("replicates", 1.645), ("closed-form", 1.645)])
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


def test_the_closed_form_is_the_papers_second_equation_7_written_out():
    candidate = noise("independent", copies=2, K_X=K)
    levels = (0.7, 1.9)
    H, K_0 = np.vstack([np.eye(2)] * 2), np.trace(K) / 2 * np.eye(2)
    naive = K - K @ H.T @ np.linalg.inv(H @ K @ H.T + np.kron(np.diag(levels), K_0)) @ H @ K
    assert candidate.unknown(levels) == pytest.approx((np.diag(naive) / np.diag(K)).min())


def test_noise_of_the_datas_shape_costs_a_regression_nothing_and_white_noise_does():
    assert candidates.regression_loss(K, 3.0 * K) == pytest.approx(0.0, abs=1e-12)
    white = 2.0 * np.eye(2)
    # naive: errors of b = K_Y,oj/K_Y,oo on the original, over K_jj, less the best
    lost = [1 - K[0, 1] ** 2 / 36, 1 - K[0, 1] ** 2 / 36]
    naive = []
    for j, o in ((0, 1), (1, 0)):
        b = K[o, j] / (K[o, o] + white[o, o])
        naive.append((K[j, j] - 2 * b * K[o, j] + b**2 * K[o, o]) / K[j, j] - lost[j])
    assert candidates.regression_loss(K, white) == pytest.approx(np.mean(naive))


def test_a_share_estimated_from_a_copy_is_as_uncertain_as_stated():
    prior, p, n, draws = np.array([0.7, 0.2, 0.1]), 0.4, 500, 4000
    q = p * prior + (1 - p) / 3
    shares = (np.random.default_rng(0).multinomial(n, q, size=draws) / n - (1 - p) / 3) / p
    grown = np.mean(shares.std(axis=0) / np.sqrt(prior * (1 - prior) / n) - 1)
    assert candidates.share_loss(prior, p) == pytest.approx(
        grown, abs=4 * (1 + grown) / math.sqrt(2 * draws)
    )


def test_retention_leaves_what_exact_bayes_written_out_leaves():
    prior, p = np.array([0.5, 0.3, 0.2]), 0.6
    candidate = candidates.Retention(2, 4.0, get("scheme", "uniform-multilevel")(), prior)
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
    return candidates.AddedNoise(
        copies, 4.0, made, TableMoments(np.zeros(2), K, 1000, spans), candidates.mean_loss, 1e-6,
        grid=candidates.noise_grid(-12),
    )  # fmt: skip


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


@pytest.mark.parametrize(("change", "words"), [
    ({"unknown": 1.0}, "below 1"), ({"copies": 0}, "--copies must be from 1 to 50; got 0"),
    ({"spread": 0.5}, "--spread"), ({"utility": "classifier"}, "needs --target"),
    ({"schemes": ("linearly-dependent",)}, "cancel their noise"),
    ({"schemes": ("corner-wave", "uniform")}, "apart"), ({"epsilon": 1.0}, "needs --bounds"),
    ({"bounds": {"age": (0.0, 120.0)}, "delta": 0.0}, "--delta"),
    ({"bounds": {"age": (0.0, 50.0)}}, "outside the stated bounds"),
    ({"unknown": 0.9999, "copies": 1}, "of 'age' unknown to "),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_in_one_sentence(quick_advice, change, words):
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
    found = chosen(Request("staff.csv", 1, 0.5))
    assert found.data == {"source": "staff.csv", "columns": ["age", "salary"], "missing": "drop"}
    assert (found.table.rows, found.all_rows) == (54, 54)
    notes = " | ".join(found.notes)
    for words in ("'id' left out: it goes up or down evenly", "'name' left out: it ", "'flag' left out: it is the same", "6 records with blanks",
                  "'department' left out: it holds text with few different values; advice on it alone"):  # fmt: skip
        assert words in notes
    assert "secret" not in notes
    assert "5000" not in notes


def test_attacks_use_the_columns_that_every_copy_shows(here):
    rng = np.random.default_rng(2**40 + 7)
    place, means = rng.integers(0, 60, 600), 10 * rng.normal(size=60)
    pay = (means[place] + 2 * rng.normal(size=600)).round(2)
    pd.DataFrame({"place": [f"p{k}" for k in place], "pay": pay}).to_csv("t.csv", index=False)
    left = []
    for shown in (None, ("place",)):
        request = Request("t.csv", 1, 0.5, columns=("pay",), shown=shown)
        table = chosen(request)
        asked = Asked(table.measured, 0.5, 600, 1, False, {})
        attacks = ["llse", "neighbour-mixture"]
        left.append(asked.exposed(asked.audit("corner-wave", (1.0,), attacks, draws=1)))
        line = command(request, table, None, SimpleNamespace(levels=(1.0,), scheme="corner-wave"))
        assert ("--keep place" in line) == bool(shown)
    # the mean of some ten copies of a place leaves the variance within it, and a tenth of a copy's
    assert left[1].unknown < (4 + (4 + pay.var()) / 10) / pay.var() * 1.2 < 0.2 < left[0].unknown
    assert left[1].attack == "neighbour-mixture"
    notes = chosen(Request("t.csv", 1, 0.5, shown=("place",))).notes
    assert any("'place' left out: it is shown in every copy" in note for note in notes)


@pytest.mark.parametrize("scheme", ["corner-wave", "correlated"])
@pytest.mark.slow
def test_over_other_draws_the_advice_meets_the_target_and_weaker_fails(here, quick_advice, scheme):
    staff(here, 400, seed=1)
    table = chosen(Request("staff.csv", 1, 0.5, columns=["salary"]))
    candidate = candidates.AddedNoise(
        2, 4.0, get("scheme", scheme)(), table_moments(table.table), candidates.mean_loss
    )
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


@pytest.fixture
def request_of(tmp_path, monkeypatch):
    """A normal column of 12,000 records, of which 3,000 are measured; half stays unknown at 1."""
    x = np.random.default_rng(2**40 + 5).standard_normal(12_000)
    pd.DataFrame({"x": x}).to_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(columns, "MOST_ROWS", 1_000)
    monkeypatch.setattr(columns, "sample_size", lambda target: 3_000)
    scenario = audits.Asked.scenario

    def quick(self, scheme, levels, title="", attacks=(), draws=None):
        made = scenario(self, scheme, levels, title, attacks, draws)
        return made | {"attacks": list(attacks) or ["llse", "udr", "map-estimate"]}

    monkeypatch.setattr(audits.Asked, "scenario", quick)
    return Request(str(tmp_path / "table.parquet"), 2, 0.5, schemes=("corner-wave",))


@pytest.mark.slow
def test_a_sample_finds_the_level_of_all_records(request_of):
    said = []
    found = advise(request_of, said.append)
    assert (found.rows, found.all_rows, found.stopped) == (3_000, 12_000, None)
    # half of one normal attribute stays unknown at level 1; five draws of 3,000 records add 10 errors
    assert 1.0 <= found.chosen.levels[0] <= 1.5
    assert sum("target" in line for line in said) >= 2
    assert any("every attack was tried once" in note for note in found.notes)


@pytest.mark.slow
def test_the_best_so_far_survives_ctrl_c(request_of):
    def stop(line):
        if "target holds" in line:
            raise Interrupted(signal.SIGINT)

    found = advise(request_of, stop)
    assert isinstance(found, Advice)
    assert found.stopped == "SIGINT"
    assert found.chosen.verdict == "holds"
    assert any(note.startswith("stopped by SIGINT") for note in found.notes)


def test_before_any_release_holds_ctrl_c_ends_it(request_of):
    def stop(line):
        raise Interrupted(signal.SIGINT)

    with pytest.raises(Interrupted):
        advise(request_of, stop)


def audit(schemes, attacks, coalitions=("subsets",), **data):
    table = {"source": "cps", "columns": ["age", "salary"], "rows": 300} | data
    return auditor.run({
        "data": table, "schemes": schemes, "attacks": attacks, "coalitions": list(coalitions),
        "seed": 1,
    })  # fmt: skip


def remedies(result):
    return {release.scheme: release.remedy for release in result.releases}


def test_the_best_linear_attack_is_answered_exactly():
    found = remedies(
        audit([{"name": name, "levels": [0.05, 0.1]} for name in ("corner-wave", "correlated")], ["llse"]),
    )  # fmt: skip
    assert found["corner-wave"].levels == [1.0, 2.0]  # σ²/(1 + σ²) is a half at 1
    assert found["corner-wave"].lossless is None
    assert found["correlated"].levels == [1.5, 3.0]  # 1/v = 1/1.5 + 1/3
    assert found["correlated"].lossless == 1.0
    assert not found["correlated"].estimated


def test_levels_that_a_remedy_names_leave_half():
    exposed = audit([{"name": "independent", "levels": [0.05, 0.2]}], ["llse"])
    mended = audit(
        [{"name": "independent", "levels": remedies(exposed)["independent"].levels}],
        ["llse"],
        ["all"],
    )
    theory = [
        one.theory for one in cells(mended, metric="normalized_error") if one.attribute != "*"
    ]
    assert min(theory) == pytest.approx(0.5, abs=0.005)


def test_of_retention_exact_bayes_is_answered_exactly_and_survives_saving(here):
    schemes = [{"name": name, "levels": [0.9, 0.8]} for name in ("uniform-multilevel", "uniform")]
    result = auditor.run({
        "data": {"source": "cps", "columns": ["salary"], "bin": {"salary": {"quantile": 4}}, "rows": 300}, "schemes": schemes,
        "attacks": ["posterior"], "coalitions": ["all"], "seed": 1,
    })  # fmt: skip
    result.save(here / "saved")
    found = remedies(AuditResult.load(here / "saved"))
    assert found == remedies(result)
    assert left_by_retention(
        np.full(4, 0.25), found["uniform-multilevel"].levels[0]
    ) == pytest.approx(0.5, abs=0.01)
    assert found["uniform"].levels == []
    assert found["uniform"].lossless == found["uniform-multilevel"].levels[0]


def test_tables_too_small_to_be_told_of_have_no_remedy():
    result = auditor.run({
        "data": {"source": "cps", "columns": ["age"], "rows": 9}, "schemes": [{"name": "corner-wave", "levels": [0.01]}], "attacks": ["llse"],
        "seed": 1,
    })  # fmt: skip
    assert remedies(result)["corner-wave"] is None

import json

import numpy as np
import pytest
from click.testing import CliRunner

from auditor import registry
from auditor.base import PluginFailed
from auditor.cli import cli, trials
from auditor.schemes import planted
from auditor.schemes.base.scheme import Key, TableMoments
from auditor.schemes.planted import Planted
from tests.planted_cases import all_cases

BUILT = [case for case in all_cases() if issubclass(case, Planted)]


def noise_of(case, rows, seed=1):
    x = np.exp(np.random.default_rng(seed).standard_normal((rows, 2)) @ trials.MIXING)
    made, levels, table = (
        case(), case.trial_levels, TableMoments(x.mean(axis=0), np.cov(x.T, bias=True), rows),
    )  # fmt: skip
    out = [np.empty_like(x) for _ in levels]
    made.sampler(levels, table, Key(seed, case.name)).block(0, x, out)
    z = np.hstack([copy - x for copy in out])
    return x, np.linalg.solve(np.linalg.cholesky(made.law(levels, table).covariance), z.T).T


@pytest.mark.parametrize(
    "case", [case for case in BUILT if case.honest or case.lawful], ids=lambda case: case.name
)
def test_noise_that_is_said_to_be_lawful_has_the_covariance_of_its_law(case):
    x, u = noise_of(case, 40_000)
    found = np.corrcoef(np.hstack([x, u]).T)[:, 2:] - np.eye(2 + u.shape[1])[:, 2:]
    assert np.abs(found).max() < 0.03 + 0.015
    assert np.abs(u.var(axis=0) - 1.0).max() < 0.06


@pytest.mark.parametrize(
    "case", [case for case in BUILT if not case.honest], ids=lambda case: case.name
)
def test_a_planted_leak_changes_what_is_drawn(case):
    untouched = {name: getattr(Planted, name) for name in ("innovations", "noise", "release")}
    nothing = type("Nothing", (case,), {**untouched, "share": 0.0})
    assert not np.allclose(noise_of(case, 1000)[1], noise_of(nothing, 1000)[1])


def test_without_a_leak_the_noise_is_that_of_corner_wave():
    _, u = noise_of(type("Nothing", (Planted,), {"name": "nothing"}), 100_000)
    assert np.abs(np.cov(u.T) - np.eye(6)).max() < 4.5 * np.sqrt(2 / 100_000)


@pytest.mark.slow
def test_a_leak_is_found_an_honest_release_is_not_refuted_and_both_are_counted():
    found = trials.self_test(1000, 2, cases=["max-for-min", "honest-normal"])
    leak, sound = found.cases
    assert (leak.case, leak.honest, leak.together) == (
        "max-for-min", False, {"fails": 2, "undecided": 0, "holds": 0},
    )  # fmt: skip
    assert (sound.case, sound.honest, sound.together["fails"]) == ("honest-normal", True, 0)
    assert set(sound.by_expectation) == {"no-collusion-gain", "noise-follows-law"}
    assert found.exit_status == 0
    assert "max-for-min" not in registry.names("scheme")
    for page in (trials.terminal([found]), trials.markdown([found], 7.2)):
        text = " ".join(page.split())
        assert "2 of 2 (16 to 100 %) found" in text
        assert "0 of 2 (0 to 84 %) refuted by noise-follows-law, at level 0.0001" in text
    assert json.loads(trials.to_json([found]))["leaks"]["fails"] == {
        "count": 2,
        "interval": list(trials.interval(leak.together, "fails")),
    }


@pytest.mark.parametrize("case", ["one-neighbour", "forgetful-coin"])
def test_a_leak_in_a_bridge_or_a_coin_is_found(case):
    assert (
        trials.self_test(1000, 1, cases=[case])
        .cases[0]
        .by_expectation["noise-follows-law"]["fails"]
        == 1
    )


def test_the_interval_is_that_of_clopper_and_pearson_by_hand():
    none, every = ({"fails": k, "undecided": 5 - k, "holds": 0} for k in (0, 5))
    assert trials.interval(none, "fails") == pytest.approx((0.0, 1 - 0.025**0.2))
    assert trials.interval(every, "fails") == pytest.approx((0.025**0.2, 1.0))
    assert trials.interval(dict.fromkeys(trials.VERDICTS, 0), "fails") == (0.0, 1.0)


def tally(honest, fails=0, undecided=0, holds=0, name="no-collusion-gain"):
    counts = {"fails": fails, "undecided": undecided, "holds": holds}
    return trials.Tally("case", "A case.", honest, counts, {name: counts})


def test_the_exit_status():
    for cases, status in [
        ([tally(False, fails=5), tally(True, holds=5)], 0),
        ([tally(False, fails=4, undecided=1)], 0),
        ([tally(False, fails=4, holds=1)], 1),  # a leak is acquitted
        ([tally(True, fails=1, holds=19)], 0),  # 5 % of 20: the interval begins at 0.1 %
        ([tally(True, fails=5, holds=15)], 1),  # it begins at 8.7 %
        ([tally(True, fails=1, holds=19, name="noise-follows-law")], 1),  # of a level of 0.01 %
    ]:
        assert trials.SelfTest(1000, 5, 0, tuple(cases)).exit_status == status


def test_a_case_that_breaks_is_told_and_not_counted(monkeypatch):
    def broken(self, x, z, rng):
        raise ValueError("cannot")

    monkeypatch.setattr(planted.Bands, "noise", broken)
    with pytest.raises(PluginFailed, match="case 'bands' failed"):
        trials.self_test(300, 1, cases=["bands"])


def test_the_command_prints_json_and_ends_with_the_status():
    done = CliRunner().invoke(
        cli,
        [*"selftest --rows 300 --releases 1 --case one-neighbour --format json --quiet".split()],
    )
    found = json.loads(done.stdout)
    assert (done.exit_code, found["exit_status"], found["rows"]) == (0, 0, 300)
    assert [case["case"] for case in found["cases"]] == ["one-neighbour"]


def test_bad_options_are_refused():
    for wrong in [["--rows", "1"], ["--releases", "0"], ["--seed", "-1"], ["--format", "yaml"]]:
        assert CliRunner().invoke(cli, ["selftest", *wrong]).exit_code == 2

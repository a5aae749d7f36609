"""Verdicts on categories are told by right guesses, beside numbers on the same axes; and on who was given attributes in clear."""

from __future__ import annotations

from typing import Any

import pytest
import report_cases
from report_cases import measurement

from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor_reports import html, markdown, terminal
from auditor_reports.figures.figures import said
from auditor_reports.figures.matrix import matrix
from auditor_reports.figures.reading import ERROR, Reading, Setting
from auditor_reports.figures.strongest import guesses, losses
from auditor_reports.wording.card import most_telling
from auditor_reports.wording.detail import marks
from auditor_reports.wording.verdict import verdict

BLIND = 0.1
SETTING = Setting(0, "fresh", "perfect", "posterior")
ACCURACY = {(1,): 0.5, (2,): 0.3, (1, 2): 0.8}
TRUTH = {(1,): 0.4, (2,): 0.2, (1, 2): 0.7}
GAIN = 1 - 0.3 / 0.6


def guessed(
    scheme: str,
    pooled: dict[tuple[int, ...], tuple[float, float]],
    errors: dict[tuple[int, ...], float] | None = None,
) -> list[Measurement]:
    """Records of an attack on categories: accuracy and probability of the truth by coalition; numbers have a normalized error too."""
    records = []
    best = max(truth for coalition, (_, truth) in pooled.items() if len(coalition) == 1)
    for coalition, (right, truth) in pooled.items():
        key: dict[str, Any] = {
            "scheme": scheme,
            "knowledge": "perfect",
            "attack": "posterior",
            "coalition": coalition,
            "levels": (0.5,) * len(coalition),
        }
        told = {
            "accuracy": right,
            "accuracy_gain": right - BLIND,
            "reconstruction_probability": truth,
            "mutual_information": 1.0,
        }
        told |= {ERROR: errors[coalition]} if errors else {}
        told |= {"collusion_gain": 1 - (1 - truth) / (1 - best)} if len(coalition) > 1 else {}
        for metric, value in told.items():
            records.append(
                measurement(**key, metric=metric, **report_cases.with_bar(value, 0.001, None))
            )
    return records


def audit(quickstart: AuditResult, records: list[Measurement], **updates: Any) -> AuditResult:
    blank = {"measurements": records, "distributions": [], "releases": [], "expectations": []}
    return quickstart.model_copy(update=blank | updates)


@pytest.fixture
def nominal(quickstart: AuditResult) -> AuditResult:
    """Categories without an order, such as diseases: they have no normalized error at all."""
    fresh = {coalition: (ACCURACY[coalition], TRUTH[coalition]) for coalition in ACCURACY}
    multilevel = {coalition: (0.5, 0.4) if 1 in coalition else (0.3, 0.2) for coalition in ACCURACY}
    return audit(quickstart, [*guessed("fresh", fresh), *guessed("multilevel", multilevel)])


def test_guesses_are_held_against_the_guess_without_a_copy(nominal: AuditResult) -> None:
    found = guesses(Reading(nominal), SETTING, (1, 2))
    assert found is not None
    assert found.blind == pytest.approx(BLIND)
    assert found.left == pytest.approx(0.2 / 0.9)
    assert losses(Reading(nominal), SETTING)[(1, 2)].value == pytest.approx(0.3)


def test_pooling_categories_is_told_by_right_guesses(nominal: AuditResult) -> None:
    found = verdict(Reading(nominal), "fresh")
    assert found.finding == "gain"
    assert found.gain is not None
    assert found.gain.value == pytest.approx(GAIN)
    assert found.sentence == (
        "Pooling both copies, the best guess is right for 80.0 ± 0.2 % of the records instead of 50.0 ± 0.2 % from the most revealing single copy "
        "(without any copy: 10 %), and the probability given to a record's true value rises from 40.0 ± 0.2 % to 70.0 ± 0.2 %."
    )
    assert "variance" not in found.sentence
    assert found.severity is not None
    assert found.severity.word == "severe"  # 2 in 9 of the wrong guesses are left


def test_both_worlds_stand_on_the_same_axes(quickstart: AuditResult) -> None:
    fresh = {coalition: (ACCURACY[coalition], TRUTH[coalition]) for coalition in ACCURACY}
    noisy = {
        coalition: (0.2, 0.15) if len(coalition) > 1 else (0.15, 0.1) for coalition in ACCURACY
    }
    low = guessed("added noise", noisy, {(1,): 0.2, (2,): 0.4, (1, 2): 0.1})
    llse = [
        measurement(
            scheme="added noise",
            knowledge="perfect",
            attack="llse",
            coalition=(1,),
            metric=ERROR,
            **report_cases.with_bar(0.3, 0.001, None),
        )
    ]
    reading = Reading(
        audit(
            quickstart, [*guessed("fresh", fresh, {(1,): 0.7, (2,): 0.8, (1, 2): 0.6}), *low, *llse]
        )
    )
    found = [verdict(reading, scheme) for scheme in ("fresh", "added noise")]
    assert [item.who for item in found] == ["posterior, knows every category's share exactly"] * 2
    assert [[one.what for one in item.scales] for item in found] == [
        ["right guesses", "normalized error"]
    ] * 2
    # by guesses, and by the error
    assert [item.severity.word for item in found if item.severity] == ["severe", "severe"]
    lowest = most_telling(found)
    assert lowest is not None
    assert (lowest.scheme, lowest.strongest) == ("added noise", "normalized error 0.1000 ±0.0020")


def test_who_leaves_less_of_the_variance_than_any_guess_is_the_strongest_and_marked_so(
    quickstart: AuditResult,
) -> None:
    """The verdict names no weaker attack than the comparison shows, whatever it is made of."""
    noisy = {
        coalition: (0.2, 0.15) if len(coalition) > 1 else (0.15, 0.1) for coalition in ACCURACY
    }
    low = guessed("added noise", noisy, {(1,): 0.2, (2,): 0.4, (1, 2): 0.1})
    llse = [
        measurement(
            scheme="added noise",
            knowledge="perfect",
            attack="llse",
            coalition=(1,),
            metric=ERROR,
            **report_cases.with_bar(0.05, 0.001, None),
        )
    ]
    reading = Reading(audit(quickstart, [*low, *llse]))
    found = verdict(reading, "added noise")
    assert found.who == "llse, knows means and correlations exactly"
    assert "leaves 5.0 ± 0.2 % of the variance unknown" in found.sentence
    assert {attack: mark for (_, attack, _), mark in marks(reading, matrix(reading)).items()} == {
        "llse": "★"
    }


def test_replicates_do_not_turn_a_gain_in_probability_into_one_of_errors(
    quickstart: AuditResult,
) -> None:
    """From five replicates on a gain is a ratio of mean errors, and must not be one of squared errors where categories are guessed."""
    one = guessed(
        "fresh", {c: (ACCURACY[c], TRUTH[c]) for c in ACCURACY}, {(1,): 0.9, (2,): 0.9, (1, 2): 0.9}
    )
    records = [record._replace(replicate=replicate) for replicate in range(1, 7) for record in one]
    gain = Reading(audit(quickstart, records)).figures(SETTING, "collusion_gain").get((1, 2))
    assert gain is not None
    assert gain.value == pytest.approx(GAIN)


def given_case(quickstart: AuditResult) -> AuditResult:
    """The same attack twice: once by somebody who was given the salaries, whose error over all attributes is half as large for that alone."""
    known = "known-attributes(salary)"
    ours = [
        r
        for r in quickstart.measurements
        if r.knowledge == "perfect" and r.attack in ("llse", "ndr") and r.scheme == "correlated"
    ]
    more = [r._replace(knowledge=known, attack="partial", value=r.value / 2, theory=None, ci_low=None, ci_high=None)
            for r in ours if r.attack == "llse" and r.value is not None]  # fmt: skip
    scenario = {**quickstart.scenario, "knowledge": ["perfect", {"known-attributes": ["salary"]}]}
    return quickstart.model_copy(
        update={
            "scenario": scenario,
            "measurements": [*ours, *more],
            "distributions": [],
            "expectations": [],
        }
    )


def test_who_was_given_attributes_does_not_speak_for_all_and_is_told_apart(
    quickstart: AuditResult,
) -> None:
    case = given_case(quickstart)
    found = verdict(Reading(case), "correlated")
    assert found.who == "llse, knows means and correlations exactly"
    told = said(found.reasons[-2])
    assert "An adversary who already knows salary of every record is left with " in told
    assert told.endswith(" of the variance of the others unknown (partial).")
    for text in (
        terminal.Terminal(width=400).render([case]),
        markdown.Markdown().render([case]),
        html.Html().render([case]),
    ):
        assert "of the variance of the others unknown (partial)." in " ".join(text.split())
    page = html.Html().render([case])
    assert "are over the attributes that were not given in clear" in page
    assert ", given in clear</bdi></dd>" in page

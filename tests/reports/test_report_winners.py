"""Who wins where: the strongest adversary against each scheme is marked, with those that error bars do not tell from it, and why."""

from __future__ import annotations

import pytest

from auditor import registry
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor_reports.figures.matrix import matrix
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.winners import BEST, MARKS, NEAR, marks, winners

ERRORS = {"weak": 0.5, "good": 0.20, "twin": 0.20, "close": 0.205, "given": 0.05}
HALF = 0.01


def contest(quickstart: AuditResult, errors: dict[str, float] = ERRORS) -> AuditResult:
    """One scheme, a copy alone, and attacks of which one was given an attribute in clear."""
    first = next(
        r
        for r in quickstart.measurements
        if r.metric == "normalized_error" and r.coalition == (1,) and r.attribute == "*"
    )

    def record(attack: str, value: float) -> Measurement:
        knowledge = "known-attributes(age)" if attack == "given" else "perfect"
        interval = {"std_error": HALF / 1.96, "ci_low": value - HALF, "ci_high": value + HALF}
        return first._replace(
            attack=attack, knowledge=knowledge, value=value, theory=None, replicate=1, **interval
        )

    plugins = [
        p.model_copy(update={"id": "good", "wins": "Wins on Tuesdays."}) if p.id == "llse" else p
        for p in quickstart.plugins
    ]
    return quickstart.model_copy(
        update={
            "measurements": [record(attack, value) for attack, value in errors.items()], "distributions": [], "expectations": [],
            "releases": quickstart.releases[:1], "plugins": plugins,
            "scenario": quickstart.scenario | {"knowledge": ["perfect", {"known-attributes": ["age"]}]},
        }
    )  # fmt: skip


def test_the_strongest_is_marked_with_its_equal_and_with_whom_the_error_bars_do_not_tell_from_it(
    quickstart: AuditResult,
) -> None:
    reading = Reading(contest(quickstart))
    found = {attack: mark for (_, attack, _), mark in marks(reading, matrix(reading)).items()}
    assert found == {"good": BEST, "twin": BEST, "close": NEAR}


def test_the_table_names_winner_figure_rivals_and_reason(quickstart: AuditResult) -> None:
    reading = Reading(contest(quickstart))
    (one,) = winners(reading, matrix(reading))
    assert (one.scheme, one.who, one.why) == (
        "independent",
        "good, knows means and correlations exactly",
        "Wins on Tuesdays.",
    )
    assert one.figure == "0.200 ±0.010"
    assert one.tied == ["twin: perfect", "close: perfect"]


def test_a_few_attacks_are_marked_without_a_table_and_one_alone_is_not(
    quickstart: AuditResult,
) -> None:
    two, one = (
        Reading(contest(quickstart, {name: ERRORS[name] for name in names}))
        for names in (("weak", "good"), ("good",))
    )
    assert winners(two, matrix(two)) == []
    assert len(marks(two, matrix(two))) == 1
    assert marks(one, matrix(one)) == {}


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_every_report_says_who_wins(quickstart: AuditResult, form: str) -> None:
    text = registry.get("renderer", form)().render([contest(quickstart)])
    shown = " ".join(text.split())
    assert "Who wins where, and why" in shown
    assert "twin: perfect" in shown
    assert "Wins on Tuesdays." in shown
    assert shown.count(BEST) == 3  # two cells and what the mark means
    assert MARKS.split("  ")[0] in shown
    if form == "html":
        assert shown.count('<span class="unseen">, strongest</span>') == 2
        assert shown.count('<span class="unseen">, not told apart from the strongest</span>') == 1

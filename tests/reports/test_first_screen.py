import re

import pytest
from report_cases import audited, error
from test_report_pages import Page

import auditor
from auditor.results.model import Partial
from auditor.results.records import ExpectationRecord
from auditor_reports.figures import said
from auditor_reports.headline import OPEN, SAFE, UNSAFE, headline
from auditor_reports.pages import Html
from auditor_reports.reading import Reading
from auditor_reports.terminal import Terminal
from auditor_reports.verdict import verdicts

GATES = (SAFE, UNSAFE, OPEN)
BOUND = {"exposure": {"unknown": {"at-least": 0.5}}}


def numbers(rows, *levels, scheme="corner-wave"):
    return {
        "seed": 3, "data": {"source": "gaussian", "covariance": [[1.0, 0.3], [0.3, 4.0]], "rows": rows},
        "schemes": [{"name": scheme, "levels": list(levels)}], "attacks": ["llse"], "expect": [BOUND],
    }  # fmt: skip


SCENARIOS = {
    "small table": numbers(60, 0.4, 2.0),
    "undecided": numbers(2000, 1.08, 2.0),
    "all safe": numbers(4000, 8.0, 16.0),
    "categories": {
        "seed": 1, "schemes": [{"name": "uniform-multilevel", "levels": [0.8, 0.3]}], "attacks": ["posterior"],
        "data": {"source": "cps", "columns": ["state_tax", "age", "salary"], "rows": 2000,
                 "bin": {"age": {"quantile": 4}, "salary": {"quantile": 5}}},
    },
    "files": "published-copies",
}  # fmt: skip


@pytest.fixture(scope="module")
def audits(quickstart):
    return {"quickstart": quickstart} | {
        name: auditor.run(scenario) for name, scenario in SCENARIOS.items()
    }


def first_screen(result):
    """Return the text of the page before its first section."""
    page = Html().render([result])
    start = page.index("<article")
    return Page(page[start : page.index("</header>", start)]).text


@pytest.mark.parametrize(
    ("name", "gate", "who", "column"),
    [
        ("quickstart", UNSAFE, "opies .* of linearly-dependent together rebuild", "salary"),
        ("small table", UNSAFE, "Copy 1 alone guesses", "x2"),
        ("undecided", OPEN, "Copy 1 alone guesses", "x[12]"),
        ("all safe", SAFE, "Copy 1 alone guesses", "x[12]"),
        ("categories", UNSAFE, r"Copy 1 alone names the right (?!.?state_tax)", "age and salary"),
        ("files", UNSAFE, "top-coded alone guesses", "petal_length"),
    ],
)
def test_ten_seconds_answer_five_questions(audits, name, gate, who, column):
    text = first_screen(audits[name])
    assert [one for one in GATES if one in text] == [gate]  # Is it safe?
    assert re.search(rf"{who}.*{column}", text)
    assert "without copies" in text
    assert "the target is at least 50 %" in text or "target 50 %" in text
    assert text.count("Next:") == 1
    assert len(text.split()) < 150
    terminal = " ".join(Terminal(width=100, full=False).render([audits[name]]).split())
    for one in headline_texts(audits[name]):
        assert one in terminal


def headline_texts(result):
    first = headline(Reading(result), verdicts(Reading(result)))
    return [said(text) for text in (first.gate, first.number, *first.reasons, first.action)]


@pytest.mark.parametrize("name", ["quickstart", *SCENARIOS])
def test_the_first_level_is_short(audits, name):
    page = Html().render([audits[name]])
    folded = re.sub(
        r'<details class="section".*?</details>\s*(?=<details|</article>)', "", page,
        flags=re.DOTALL,
    )  # fmt: skip
    assert (
        len(Page(re.sub(r"<details.*?</details>", "", folded, flags=re.DOTALL)).text.split()) <= 600
    )
    assert "Values before and after" in folded
    lines = Terminal(width=80, full=False).render([audits[name]]).splitlines()
    assert len(lines) <= 62  # 46 of the quickstart
    assert "--full" in lines[-3] + lines[-4]


@pytest.mark.parametrize(
    ("value", "half", "state"),
    [(0.8, 0.01, "good"), (0.8, 0.35, "open"), (0.8, None, "open"), (0.4, 0.01, "bad")],
)
def test_a_tick_needs_the_whole_interval_at_the_target(value, half, state):
    result = audited([error("age", value, half), error("*", value, half)])
    (found,) = verdicts(Reading(result))
    assert (found.state, headline(Reading(result), [found]).state) == (state, state)
    assert {bar.state for bar in found.exposures} == {state}


def test_the_target_is_that_of_the_scenario_and_its_outcome_counts():
    result = audited([error("age", 0.8, 0.01), error("*", 0.8, 0.01)])

    def state(status, figure="unknown", **bounds):
        where = {figure: {name.replace("_", "-"): bound for name, bound in bounds.items()}}
        record = ExpectationRecord(
            expectation="exposure", where=where, status=status, observed=None, bound=0.5,
            why="close guesses 0.4, wanted at most 0.1 (a group); 1 of 2 hold",
        )  # fmt: skip
        reading = Reading(result.model_copy(update={"expectations": [record]}))
        found = verdicts(reading)
        first = headline(reading, found).reasons[0]
        fails = found[0].state == "bad" and found[0].target < 0.8
        assert said(first).endswith("wanted at most 0.1 (a group).") == fails
        return found[0].state

    assert state("holds", at_least=0.9) == "bad"
    assert state("undecided", at_least=0.5) == "open"
    assert state("holds", at_least=0.5) == state("fails", at_most=0.1) == "good"
    assert state("fails", "close", at_most=0.1) == "bad"


def test_no_tick_if_pooled_copies_were_not_tried_or_the_audit_is_not_whole():
    one = [error("age", 0.8, 0.01), error("*", 0.8, 0.01)]
    two = audited([*one, *(record._replace(coalition=(2,)) for record in one)])
    found = headline(Reading(two), verdicts(Reading(two)))
    assert found.gate == f"{OPEN}: pooled copies were not tried"
    part = Partial(finished=1, tasks=2, why="stopped")
    stopped = audited(one, partial=part)
    assert headline(Reading(stopped), verdicts(Reading(stopped))).state == "open"
    failed = ExpectationRecord(
        expectation="monotone", where={}, status="fails", observed=None, bound=None, why=""
    )
    missed = audited(one, expectations=[failed])  # the run ends with status 1
    found = headline(Reading(missed), verdicts(Reading(missed)))
    assert found.gate == f"{OPEN}: `monotone` fails"
    assert str(found.action).startswith("Make the expectation hold")
    nothing = headline(Reading(audited([])), verdicts(Reading(audited([]))))
    assert (nothing.state, nothing.gate.startswith(OPEN)) == ("open", True)


def test_a_safe_scheme_beside_an_unsafe_one_is_the_next_step():
    bad = [error(name, 0.1, 0.01) for name in ("age", "*")]
    good = [error(name, 0.9, 0.01, scheme="<wave>") for name in ("age", "*")]
    result = audited([*bad, *good])
    found = first_screen(result)
    assert f"{UNSAFE} with 1 of 2 schemes" in found
    assert "Next: Release copies of <wave> instead." in found
    one, other = verdicts(Reading(result))
    other.categories = True
    assert "instead" not in headline(Reading(result), [one, other]).action


def test_a_safe_audit_names_attacks_that_it_did_not_try():
    kinds = {"llse": "linear", "shapes": "joint"}
    records = error("age", 0.8, 0.01), error("*", 0.8, 0.01)
    result = audited(records, untried=["shapes"], attack_kinds=kinds)
    assert headline(Reading(result), verdicts(Reading(result))).state == "good"
    assert "Not tried: joint. attacks: all tries all that can" in first_screen(result)


def test_a_figure_of_a_paper_opens_with_its_claims_and_its_chart(swept):
    named = swept.model_copy(update={"name": "li2012-fig5"})
    text = Terminal(width=100, full=False).render([named])
    assert "✗ Not all claims hold: 1 of 3 holds, 1 fails, 1 undecided" in text
    assert not [gate for gate in GATES if gate in text]
    sections = re.findall(r'<section aria-labelledby="audit-1-([a-z]+)', Html().render([named]))
    assert sections == ["sweep", "expectations"]


@pytest.mark.parametrize("width", [40, 120])
def test_it_fits_every_width_with_hostile_names(hostile, width):
    text = Terminal(width=width, full=False).render([hostile])
    assert max(map(len, text.splitlines())) <= width
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)

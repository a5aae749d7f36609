import json

import numpy as np
import pytest
from report_cases import audited, error

import auditor
from auditor_reports import terminal
from auditor_reports.figures import said as joined
from auditor_reports.matrix import matrix
from auditor_reports.notebook import Notebook
from auditor_reports.pages import Html, Markdown
from auditor_reports.reading import Reading
from auditor_reports.terminal import Terminal
from auditor_reports.verdict import Verdict, verdicts

SAFE, NAMES = 0.9, ("age", "salary")
PERFECT, ESTIMATED = "perfect", "estimated(rows=400)"


def safe(**changes):
    return [error(name, SAFE, **changes) for name in ("*", *NAMES)]


def exposing(value, half=0.0, **changes):
    key = {name: changes[name] for name in ("knowledge", "attack", "coalition") if name in changes}
    shown = [*safe(), *safe(coalition=(2,)), *safe(coalition=(1, 2))]
    if key and (key.get("attack", "llse"), key.get("knowledge", PERFECT)) != ("llse", PERFECT):
        shown += safe(**key)
    target = error("age", value, half, **changes)
    same = ("knowledge", "attack", "coalition", "attribute", "replicate")
    kept = [
        one for one in shown if any(getattr(one, name) != getattr(target, name) for name in same)
    ]
    return audited([*kept, target])


def found(result):
    reading = Reading(result)
    return Verdict(reading, "s"), max(
        (row.cells[0] for row in matrix(reading)),
        key=lambda cell: cell.severity.rank if cell.severity else 0,
    )


WHO = {
    "the strongest": {},
    "another coalition": {"coalition": (2,)},
    "another attack": {"attack": "ndr"},
    "other knowledge": {"knowledge": ESTIMATED, "coalition": (1, 2)},
}


@pytest.mark.parametrize("who", WHO.values(), ids=WHO)
def test_an_attribute_rebuilt_exactly_is_graded_and_named_whoever_rebuilds_it(who):
    said, cell = found(exposing(0.0, **who))
    assert (said.severity.word, said.grade) == ("rebuilt", "rebuilt (age)")
    assert (cell.severity.word, cell.whole.word) == ("rebuilt", "low")
    assert cell.exposed is not None
    assert cell.exposed[0] == "age"
    text = joined(said.exposure)
    assert text.startswith("Most exposed: 0 % of age unknown")
    assert said.left == 0
    assert f"to {who.get('attack', 'llse')}, which knows means and correlations" in text


@pytest.mark.parametrize(("value", "half", "theory", "word"), [
    (0.04, 0.001, None, "rebuilt"), (0.04, 0.3, None, "high"), (0.2, 0.01, 0.01, "severe"),
    (0.7, 0.001, None, "moderate"),
])  # fmt: skip
def test_noise_alone_makes_no_attribute_exposed(value, half, theory, word):
    said, cell = found(exposing(value, half, theory=theory))
    assert said.grade == f"{word} (age)"
    assert (said.severity.word, cell.severity.word) == (word, word)


def test_every_report_names_the_attribute_and_escapes_it():
    name = "<b>age</b>\x1b[31m"
    result = exposing(0.0)
    records = [
        one._replace(attribute=name) if one.attribute == "age" else one
        for one in result.measurements
    ]
    result = result.model_copy(update={"measurements": records})
    terminal = Terminal(width=120).render([result])
    assert "Exposure rebuilt (<b>age</b>" in terminal
    assert "\x1b" not in terminal
    page = Html().render([result])
    assert page.count("&lt;b&gt;age") >= 2
    assert "<b>age" not in page
    assert 'class="v5"' in page
    assert "has the grade of that attribute" in page
    assert "rebuilt 0.9000 ±0.0010" in Markdown().render([result])
    assert "Most exposed" in Markdown().render([result])
    assert "(rebuilt; <bdi>&lt;b&gt;age" in Notebook().render([result])


def test_a_scheme_that_leaves_one_attribute_all_but_clear(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(3).normal(size=(2_000, 2)) * [1000.0, 1.0]
    np.savetxt("table.csv", draws, delimiter=",", header="salary,age", comments="")
    np.savetxt("noise.csv", np.diag([4e6, 1e-9]), delimiter=",")
    result = auditor.run({
        "schema": 1, "title": "t", "seed": 1, "data": {"source": "table.csv"}, "attacks": ["llse"],
        "schemes": [{"name": "corner-wave", "levels": [1.0, 2.0], "noise": {"matrix": "noise.csv"}}],
    })  # fmt: skip
    (said,) = verdicts(Reading(result))
    assert said.finding == "no-gain"
    assert said.grade == "rebuilt (age)"
    assert said.worst is not None
    assert said.worst.value > 0.75
    json.dumps(said.exposure)


def gaining(attribute, value, half):
    return error(attribute, value, half, metric="collusion_gain", coalition=(1, 2))


@pytest.mark.parametrize(
    ("age", "half", "finding"),
    [(0.4, 0.01, "gain"), (0.4, 0.5, "no-gain"), (-0.4, 0.01, "no-gain")],
)
def test_pooling_that_pays_in_one_attribute_is_not_called_no_gain(age, half, finding):
    records = [
        *safe(), *safe(coalition=(2,)), *safe(coalition=(1, 2)), gaining("*", 0.001, 0.0005),
        gaining("salary", 0.001, 0.0005),
    ]  # fmt: skip
    said, _ = found(audited([*records, gaining("age", age, half)]))
    assert said.finding == finding
    assert ("rebuilds age 1.67 times more accurately" in said.sentence) == (finding == "gain")


def test_guesses_no_better_than_the_mean_have_no_gain():
    errors = [error("*", 1.1, 0.01, coalition=held) for held in ((1,), (2,), (1, 2))]
    assert found(audited([*errors, gaining("*", 0.05, 0.001)]))[0].finding == "no-gain"


@pytest.mark.parametrize(("share", "state"), [(0.1, "good"), (0.56, "bad")])
def test_no_tick_where_classes_give_half_of_the_sensitive_values_away(share, state):
    records = [
        *safe(), *safe(coalition=(2,)), *safe(coalition=(1, 2)),
        error("*", 0.0, 1e-6, metric="collusion_gain", coalition=(1, 2)),
    ]  # fmt: skip
    away = [
        error("*", value, attack="homogeneity", metric=one, coalition=held)
        for one in ("disclosed", "disclosed_beyond_chance")
        for value, held in ((share / 2, (1,)), (share, (1, 2)))
    ]
    said, _ = found(audited([*records, *away]))
    assert said.state == state
    assert f"the sensitive value of {100 * share:.1f} ± 0.1 % of the records (homog" in said.text
    away = next(one for one in said.exposures if one.what == "sensitive values")
    assert away.left.value == pytest.approx(1 - share)


GUESSED = {"accuracy": 0.9, "accuracy_gain": 0.5, "reconstruction_probability": 0.6}


@pytest.mark.parametrize(("records", "state", "name"), [
    ([error("age", 0.4, 0.2), error("salary", 0.45, 0.01)], "bad", "salary"),
    ([error("age", 0.51, 0.001), error("salary", 0.55, 0.1)], "open", "salary"),
    ([error("*", 0.95, 0.01, attack="posterior"), *(
        error("*", value, 0.01, attack="posterior", metric=one) for one, value in GUESSED.items()
    )], "bad", "categories"),
])  # fmt: skip
def test_the_exposure_that_is_named_decides_and_counts_weaker_attacks(records, state, name):
    (said,) = verdicts(Reading(audited([error("*", SAFE, 0.01), *records])))
    assert (said.state, said.exposures[0].name) == (state, name)


TOLD = "to whoever knows "


def numbers(correlation, level):
    return {
        "title": "Known", "seed": 1, "schemes": [{"name": "independent", "levels": [level]}],
        "data": {"source": "gaussian", "covariance": [[1.0, correlation], [correlation, 1.0]], "rows": 4_000},
        "knowledge": ["perfect", {"known-attributes": ["x1"]}], "attacks": ["llse", "partial-disclosure"],
    }  # fmt: skip


def categories(level):
    return {
        "title": "Known", "seed": 1, "schemes": [{"name": "uniform", "levels": [level]}],
        "data": {"source": "cps", "columns": ["age", "salary", "state_tax"], "rows": 4_000,
                 "bin": {"age": {"quantile": 4}, "salary": {"quantile": 5}, "state_tax": {"quantile": 5}}},
        "knowledge": ["perfect", {"rules": {"margins": ["age", ["salary", "state_tax"]], "known": ["age", "salary"]}}],
        "attacks": ["posterior"],
    }  # fmt: skip


def verdict_on(scenario):
    """Return the verdict, and all that a terminal prints of the audit."""
    result = auditor.run(scenario)
    (found,) = verdicts(Reading(result))
    return found, " ".join(terminal.Terminal(width=300).render([result]).split())


@pytest.mark.parametrize(("scenario", "low", "high"), [
    pytest.param(numbers(0.6, 2.0), 0.44, 0.5, id="numbers"),
    pytest.param(categories(0.5), 0.38, 0.42, id="categories"),
])  # fmt: skip
def test_a_leak_to_who_was_given_attributes_is_in_the_headline(scenario, low, high):
    found, printed = verdict_on(scenario)
    assert found.given is not None
    exposed, alone = found.given
    assert low < exposed.left.value < high < 0.6 < (alone or 0.0)
    assert found.severity is not None
    assert found.severity.rank <= 2 < exposed.left.severity.rank
    assert found.state == "bad"
    assert f"high {TOLD}" in found.label
    assert f"high {TOLD}" in printed
    assert "of every record is left with" in printed
    assert "without any copy" in printed


@pytest.mark.parametrize(
    "scenario", [pytest.param(numbers(0.9, 400.0), id="numbers"), pytest.param(categories(0.0), id="categories")]
)  # fmt: skip
def test_copies_that_add_nothing_are_not_blamed_for_what_was_known(scenario):
    found, printed = verdict_on(scenario)
    assert found.given is None
    assert found.state != "bad"
    assert TOLD not in printed

"""One attribute exposed while the others are safe must not read as harmless: every grade looks at the worst attribute too, and names it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_cases

import auditor
from auditor.results.model import AuditResult
from auditor.results.records import Measurement
from auditor_reports.figures.figures import said as joined
from auditor_reports.figures.matrix import MatrixCell, matrix
from auditor_reports.figures.reading import Reading
from auditor_reports.html import Html
from auditor_reports.markdown import Markdown
from auditor_reports.notebook import Notebook
from auditor_reports.terminal import Terminal
from auditor_reports.wording.card import Verdict
from auditor_reports.wording.verdict import verdict, verdicts

SAFE, NAMES = 0.9, ("age", "salary")
PERFECT, ESTIMATED = "perfect", "estimated(rows=400)"


def error(attribute: str, value: float, half: float = 0.001, **changes: Any) -> Measurement:
    fields = {
        "scheme": "s", "knowledge": PERFECT, "attack": "llse", "coalition": (1,), "levels": (1.0,), "attribute": attribute,
        "metric": "normalized_error", "value": value, "std_error": half / 1.96, "ci_low": value - half, "ci_high": value + half,
        "error_bar": "closed-form",
    } | changes  # fmt: skip
    return report_cases.measurement(**fields)


def safe(**changes: Any) -> list[Measurement]:
    return [error(name, SAFE, **changes) for name in ("*", *NAMES)]


def audit(records: list[Measurement], knowledge: list[Any] | None = None) -> AuditResult:
    scenario = {
        "schema": 1,
        "title": "t",
        "schemes": [{"name": "correlated", "id": "s"}],
        "knowledge": knowledge or [PERFECT],
    }
    empty: dict[str, Any] = {"distributions": [], "releases": [], "expectations": []}
    return report_cases.quickstart().model_copy(
        update={"measurements": records, "scenario": scenario} | empty
    )


def exposing(value: float, half: float = 0.0, **changes: Any) -> AuditResult:
    """An audit in which age is rebuilt to a given error by somebody, and everything else is safe."""
    key = {name: changes[name] for name in ("knowledge", "attack", "coalition") if name in changes}
    shown = [*safe(), *safe(coalition=(2,)), *safe(coalition=(1, 2))]
    if key and (key.get("attack", "llse"), key.get("knowledge", PERFECT)) != ("llse", PERFECT):
        shown += safe(**key)
    target = error("age", value, half, **changes)
    same = ("knowledge", "attack", "coalition", "attribute", "replicate")
    kept = [
        one for one in shown if any(getattr(one, name) != getattr(target, name) for name in same)
    ]
    return audit([*kept, target])


def found(result: AuditResult) -> tuple[Verdict, MatrixCell]:
    reading = Reading(result)
    return verdict(reading, "s"), max(
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
def test_an_attribute_rebuilt_exactly_is_graded_and_named_whoever_rebuilds_it(
    who: dict[str, Any],
) -> None:
    said, cell = found(exposing(0.0, **who))
    assert (said.severity.word, said.grade) == ("rebuilt", "rebuilt (age)")  # type: ignore[union-attr]
    assert (cell.severity.word, cell.whole.word) == ("rebuilt", "low")  # type: ignore[union-attr]
    assert cell.exposed is not None
    assert cell.exposed[0] == "age"
    text = joined(said.exposure)
    assert text.startswith("Most exposed: age (0 % of its variance unknown")
    assert said.left == 0
    assert said.strongest == "0 of age"
    if "attack" in who or "knowledge" in who:
        knows = (
            f"{ESTIMATED} knowledge"
            if who.get("knowledge") == ESTIMATED
            else "which knows means and correlations exactly"
        )
        assert f"to {who.get('attack', 'llse')}, {knows}, copies {{" in text


@pytest.mark.parametrize(
    ("value", "half", "theory", "word"),
    [
        (0.04, 0.001, None, "rebuilt"),
        (0.04, 0.3, None, "high"),  # surely below 0.34, and no more
        (0.04, 0.3, 0.2, "severe"),  # what theory says and the measurement bears out
        (0.2, 0.01, 0.01, "severe"),  # theory that the measurement refutes is not believed
        (0.7, 0.001, None, "moderate"),
    ],
)
def test_noise_alone_makes_no_attribute_exposed(
    value: float, half: float, theory: float | None, word: str
) -> None:
    said, cell = found(exposing(value, half, theory=theory))
    assert said.grade == f"{word} (age)"
    assert (said.severity.word, cell.severity.word) == (word, word)  # type: ignore[union-attr]


def test_what_was_given_in_clear_is_nobody_s_work() -> None:
    knowledge = "known-attributes(age)"
    given = [
        *safe(),
        error("*", 0.45, knowledge=knowledge),
        error("age", 0.0, knowledge=knowledge),
        error("salary", SAFE, knowledge=knowledge),
    ]
    said, cell = found(audit(given, [PERFECT, {"known-attributes": ["age"]}]))
    assert (said.grade, said.singled_out) == ("low", None)
    assert cell.exposed is None
    only, cell = found(audit(given[3:], [{"known-attributes": ["age"]}]))
    assert (only.grade, cell.exposed) == ("low", None)  # salary alone is left to rebuild


def test_every_report_names_the_attribute_and_escapes_it() -> None:
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
    shown = Notebook().render([result])
    assert "(rebuilt; <bdi>&lt;b&gt;age" in shown


def test_a_scheme_that_leaves_one_attribute_all_but_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two units far apart the mean sees the large one only: noise of 10⁻⁹ on a column of variance 1 beside one of 10⁶."""
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


# -- pooling that pays in one attribute
# ------------------------------------------------------------------------------------


def gaining(attribute: str, value: float, half: float) -> Measurement:
    return error(attribute, value, half, metric="collusion_gain", coalition=(1, 2))


@pytest.mark.parametrize(
    ("age", "half", "finding"),
    [
        (0.4, 0.01, "gain"),
        (0.4, 0.5, "no-gain"),
        (0.005, 0.001, "no-gain"),
        (0.0, 0.0, "no-gain"),
        (-0.4, 0.01, "no-gain"),
    ],
)
def test_pooling_that_pays_in_one_attribute_is_not_called_no_gain(
    age: float, half: float, finding: str
) -> None:
    """The error of all together is mostly that of the largest attribute: what pooling buys in a small one drowns in it."""
    records = [
        *safe(),
        *safe(coalition=(2,)),
        *safe(coalition=(1, 2)),
        gaining("*", 0.001, 0.0005),
        gaining("salary", 0.001, 0.0005),
    ]
    said, _ = found(audit([*records, gaining("age", age, half)]))
    assert said.finding == finding
    assert ("rebuilds age 1.67 times more accurately" in said.sentence) == (finding == "gain")


def test_a_gain_in_one_attribute_is_told_of_a_real_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(4).normal(size=(3_000, 2)) * [1000.0, 1.0]
    np.savetxt("table.csv", draws, delimiter=",", header="salary,age", comments="")
    np.savetxt("noise.csv", np.diag([1e10, 1.0]), delimiter=",")
    schemes = [
        {"name": name, "levels": [1.0, 1.0], "noise": {"matrix": "noise.csv"}}
        for name in ("correlated", "corner-wave")
    ]
    document = {
        "schema": 1,
        "title": "t",
        "seed": 1,
        "data": {"source": "table.csv"},
        "attacks": ["llse"],
        "schemes": schemes,
    }
    fresh, multilevel = verdicts(Reading(auditor.run(document)))
    assert fresh.finding == "gain"
    assert re.search(r"rebuilds age 1\.[45] times", fresh.sentence)  # 1.48 by theory, ± 0.06
    assert fresh.sentence.endswith("All attributes together do not show it.")
    assert multilevel.finding == "no-gain"


def test_errors_of_who_was_given_attributes_are_over_the_others() -> None:
    """Variances 4 (given, no error), 3 and 1: of all together 0.3 · 4 / 8 stays unknown, of the others 0.3."""
    knowledge = "known-attributes(age)"
    result = audit([error(name, value, 0.02, knowledge=knowledge) for name, value in (("*", 0.15), ("age", 0.0), ("salary", 0.2), ("size", 0.6))],
                   [{"known-attributes": ["age"]}])  # fmt: skip
    table = result.data[0]
    attributes = [
        table.attributes[0].model_copy(update={"name": name, "variance": v})
        for name, v in (("age", 4.0), ("salary", 3.0), ("size", 1.0))
    ]
    result = result.model_copy(
        update={"data": [table.model_copy(update={"attributes": attributes})]}
    )
    reading = Reading(result)
    (shown,) = reading.figures(reading.settings()[0]).values()
    assert (shown.value, shown.half) == (
        pytest.approx((3 * 0.2 + 1 * 0.6) / 4),
        pytest.approx(0.04),
    )
    (one,) = reading.figures(reading.settings()[0], attribute="salary").values()
    assert one.value == 0.2


@pytest.mark.parametrize(
    "metrics",
    [("disclosed", "disclosed_beyond_chance"), ("disclosed",)],
    ids=["today's", "of saved results"],
)
@pytest.mark.parametrize(("share", "state"), [(0.1, "good"), (0.56, "bad")])
def test_no_tick_where_classes_give_half_of_the_sensitive_values_away(
    share: float, state: str, metrics: tuple[str, ...]
) -> None:
    """A squared error above that of a guess hides it: who names the class's only value for some is far off for others."""
    records = [
        *safe(),
        *safe(coalition=(2,)),
        *safe(coalition=(1, 2)),
        error("*", 0.0, 1e-6, metric="collusion_gain", coalition=(1, 2)),
    ]
    away = [
        error("*", value, attack="homogeneity", metric=one, coalition=held)
        for one in metrics
        for value, held in ((share / 2, (1,)), (share, (1, 2)))
    ]
    said, _ = found(audit([*records, *away]))
    assert said.state == state
    assert (
        f"Of {100 * share:.1f} ± 0.1 % of the records the class gives the sensitive value away (homogeneity)."
        in said.text
    )
    away = next(one for one in said.scales if one.what == "sensitive values given away")
    assert away.left.value == pytest.approx(1 - share)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import auditor
from auditor_reports import html, terminal
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.card import Verdict
from auditor_reports.wording.verdict import verdicts

TOLD = "to whoever knows "


def numbers(correlation: float, level: float) -> dict[str, Any]:
    return {
        "title": "Known", "seed": 1, "schemes": [{"name": "independent", "levels": [level]}],
        "data": {"source": "gaussian", "covariance": [[1.0, correlation], [correlation, 1.0]], "rows": 4_000},
        "knowledge": ["perfect", {"known-attributes": ["x1"]}], "attacks": ["llse", "partial-disclosure"],
    }  # fmt: skip


def categories(level: float) -> dict[str, Any]:
    return {
        "title": "Known", "seed": 1, "schemes": [{"name": "uniform", "levels": [level]}],
        "data": {"source": "cps", "columns": ["age", "salary", "state_tax"], "rows": 4_000,
                 "bin": {"age": {"quantile": 4}, "salary": {"quantile": 5}, "state_tax": {"quantile": 5}}},
        "knowledge": ["perfect", {"rules": {"margins": ["age", ["salary", "state_tax"]], "known": ["age", "salary"]}}],
        "attacks": ["posterior"],
    }  # fmt: skip


def verdict_on(scenario: dict[str, Any]) -> tuple[Verdict, str]:
    """Return the verdict, and all that a terminal prints of the audit."""
    result = auditor.run(scenario)
    (found,) = verdicts(Reading(result))
    return found, " ".join(terminal.Terminal(width=300).render([result]).split())


@pytest.mark.parametrize(("scenario", "low", "high"), [
    pytest.param(numbers(0.6, 2.0), 0.44, 0.5, id="numbers"),
    pytest.param(categories(0.5), 0.38, 0.42, id="categories"),
])  # fmt: skip
def test_a_leak_to_who_was_given_attributes_is_in_the_headline(
    scenario: dict[str, Any], low: float, high: float
) -> None:
    found, printed = verdict_on(scenario)
    assert found.given is not None
    assert low < found.given.shown.value < high < 0.6 < (found.given.alone or 0.0)
    assert found.severity is not None
    assert found.severity.rank <= 2 < found.given.rank
    assert found.state == "bad"
    assert f"high {TOLD}" in found.label
    assert f"high {TOLD}" in printed
    assert "of every record is left with" in printed
    assert "without any copy" in printed


@pytest.mark.parametrize(
    "scenario", [pytest.param(numbers(0.9, 400.0), id="numbers"), pytest.param(categories(0.0), id="categories")]
)  # fmt: skip
def test_copies_that_add_nothing_are_not_blamed_for_what_was_known(
    scenario: dict[str, Any],
) -> None:
    found, printed = verdict_on(scenario)
    assert found.given is not None
    assert found.given.shown.value == pytest.approx(found.given.alone, rel=0.1)
    assert found.given.rank == 0
    assert found.state != "bad"
    assert TOLD not in printed


def test_a_column_s_name_is_escaped_on_the_page() -> None:
    scenario = numbers(0.6, 2.0)
    known, other = np.random.default_rng(6).standard_normal((2, 400))
    scenario["data"] = {
        "source": "inline",
        "values": {"<script>": known.tolist(), "pay": (0.6 * known + 0.8 * other).tolist()},
    }
    scenario["knowledge"] = ["perfect", {"known-attributes": ["<script>"]}]
    page = html.Html().render([auditor.run(scenario)])
    assert "high to whoever knows &lt;script&gt;" in page
    assert "knows <script>" not in page

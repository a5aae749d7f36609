"""Advice as it is printed, written as Markdown and drawn on a page, the same in all; and the line that ends a report of an exposed release."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import altair as alt
import pytest

from auditor.results.advice import Advice, Epsilon
from auditor.results.model import SchemeSummary
from auditor.results.remedies import Remedy
from auditor_reports.html import Html
from auditor_reports.layout.advice import _chart
from auditor_reports.markdown import Markdown
from auditor_reports.terminal import Terminal
from auditor_reports.wording.headline import remedy_text


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_the_release_first_and_everything_in_its_width(
    advice: Advice, width: int
) -> None:
    text = Terminal(width=width).render_advice(advice)
    lines = text.splitlines()
    assert lines[1] == "✓ corner-wave at 1.21, 2.42, 4.84 leaves 50 % or more unknown"
    assert "\x1b" not in text
    # what is to be copied is never broken
    assert all(len(line) <= width for line in lines if "auditor perturb" not in line)
    whole = " ".join(text.split())
    for words in (
        "52.0 ± 1.2 %",
        "49.0 ± 1.2 %",
        "✗ missed",
        "? open",
        "distinguish is 1, 2, 4, by a factor of 1.2 in σ². It",
        "not measured: it would",
        "×3,001",
        "19 %",
    ):
        assert words in whole


def test_what_being_sure_costs_is_said_where_it_costs_anything(advice: Advice) -> None:
    """Halfway between 49 % at a loss of 0.2 and 52 % at 0.5, a third of the way, half would be left on average."""
    one, taken, *others = (
        replace(tried, losses=(loss,))
        for tried, loss in zip(advice.frontier, (0.2, 0.5, 0.7, 0.9), strict=True)
    )
    dear = Markdown().render_advice(replace(advice, frontier=(one, taken, *others), chosen=taken))
    assert (
        "Price of being sure: a loss of +50 % on average over copies. From +30 % on, the mean of many"
        in dear
    )
    assert "Price" not in Markdown().render_advice(advice)


def test_markdown_and_the_page_say_what_the_terminal_says(advice: Advice) -> None:
    text, page = (
        Markdown().render_advice(advice),
        Html().render_advice(advice).replace("\u202f", " ").replace("\xa0", " "),
    )
    for words in (
        "corner-wave at 1.21, 2.42, 4.84 leaves 50 % or more unknown",
        "adds nothing to the least perturbed copy",
    ):
        assert words in text
        assert words in page
    assert "<b>" not in text
    assert "<b>pay" not in page
    assert advice.command in page
    assert 'id="advice-frontier"' in page  # the chart is there


def test_the_frontier_is_what_the_charts_schema_allows_and_holds_what_was_measured(
    advice: Advice,
) -> None:
    chart = _chart(advice)
    alt.Chart.from_dict(chart.views[0], validate=True)
    assert [row["y"] for row in chart.rows] == [0.49, 0.52, 0.53]
    assert [row["w"] for row in chart.rows] == [0, 1, 0]
    assert [row["x"] for row in chart.rows] == pytest.approx(
        [sum((0.4, 0.7, 1.2)) / 3] * 3, rel=1e-5
    )
    assert "<" not in chart.caption


def test_a_loss_that_is_not_known_is_no_figure(advice: Advice) -> None:
    one = replace(advice.chosen, losses=(), in_full=False)
    assert math.isnan(one.loss)
    shown = replace(advice, utility="classifier", frontier=(one, advice.chosen))
    assert not re.search(
        r"\bnan\b", Markdown().render_advice(shown) + Terminal(width=80).render_advice(shown)
    )
    assert len(_chart(shown).rows) == 1


def test_epsilon_is_a_column_where_bounds_are_stated(advice: Advice) -> None:
    kept = replace(advice.chosen, epsilon=Epsilon(2.5, math.inf))
    text = Markdown().render_advice(
        replace(advice, chosen=kept, frontier=(kept, replace(kept, epsilon=Epsilon(3.25, 3.5))))
    )
    for words in (
        "ε = 2.5 at δ = 1e-05.",
        "| loss | ε | target |",
        "| +77 % | 2.5 | ✓ met |",
        "| +77 % | 3.25 | ✓ met |",
        "Here δ is 1e-05",
    ):
        assert words in text
    assert "3.25 at δ = 1e-05, and 3.5 at δ = 0" in Markdown().render_advice(
        replace(advice, chosen=replace(kept, epsilon=Epsilon(3.25, 3.5)))
    )
    assert "ε" not in Markdown().render_advice(advice)


# -- what would change an exposure
# -----------------------------------------------------------------------------------------


def released(**remedy: object) -> str:
    base = {"attack": "llse", "attribute": "age", "unknown": 0.05} | remedy
    return remedy_text(
        SchemeSummary(sweep={}, scheme="s", plugin="s", levels=[0.1], summary="", claims=""),
        Remedy.model_validate(base),
    )


def test_a_remedy_in_words() -> None:
    assert (
        released(levels=[1.0])
        == "s at levels of at least 1 would leave half of age unknown (llse, closed form)."
    )
    assert "(estimate)" in released(levels=[1.0], estimated=True)
    assert "; or corner-wave at levels of at least 1.1, which pooling does not weaken" in released(
        levels=[1.5], lossless=1.1
    )
    assert "no level is known to help; corner-wave at levels of at least 1" in released(
        lossless=1.0
    )
    assert "retention of at most 0.7, 0.6 would leave half of the categories" in released(
        levels=[0.7, 0.6], attribute="*", kind="retention"
    )

"""Results and releases in a notebook: inert tables, and charts that are the page's."""

from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import pytest
import report_cases

import auditor
from auditor.errors import AuditorError
from auditor.results.model import AuditResult
from auditor_reports.figures.reading import Reading
from auditor_reports.wording.headline import headline
from auditor_reports.wording.verdict import verdicts


def test_results_show_their_verdicts_and_comparison(quickstart: AuditResult) -> None:
    text = quickstart._repr_html_()
    first = headline(Reading(quickstart), verdicts(Reading(quickstart)))
    assert first.gate in text
    assert all(scheme in text for scheme in report_cases.SCHEMES)
    assert "<script" not in text
    assert text.count("<table>") == 1


def test_hostile_names_stay_text_in_a_notebook(hostile: AuditResult) -> None:
    text = hostile._repr_html_()
    assert "<script" not in text
    assert "<img" not in text
    assert not re.search(r"onmouseover='", text)
    assert "\u202e" not in text


def test_a_release_shows_its_law_and_no_value() -> None:
    frame = pd.DataFrame({"age": [71.123, 72.456, 79.789], "<b>": [1.5, 2.25, 9.125]})
    release = auditor.perturb(frame, scheme="corner-wave", levels=[0.25, 0.5], seed=3)
    text = release._repr_html_()
    assert "3 × 2" in text
    assert "corner-wave" in text
    values = [
        *frame.to_numpy().ravel(),
        *np.concatenate([copy.to_numpy() for copy in release.copies]).ravel(),
    ]
    assert not [value for value in values if f"{value:.3f}" in text]
    assert auditor.perturb(
        np.array([1.0, 2.0, 4.0]), scheme="independent", levels=[1.0], seed=1
    )._repr_html_()


def test_plots_are_altair_charts_of_the_page_s_rows(quickstart: AuditResult) -> None:
    chart = quickstart.plot.collusion(
        adversary="ndr, knows means and correlations exactly", attribute="age"
    )
    document = chart.to_dict()
    assert "var(--" not in str(document)
    rows = document["datasets"]["rows"]
    assert {row["s"] for row in rows} == set(report_cases.SCHEMES)
    assert quickstart.plot.available == ["values", "collusion", "coalitions", "errors", "frontier"]


@pytest.mark.parametrize(
    "name",
    [
        "collusion",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("errors", "coalitions", "sweep", "runtime")
        ),
    ],
)
def test_every_plot_is_a_picture(swept: AuditResult, name: str) -> None:
    import vl_convert

    svg = vl_convert.vegalite_to_svg(getattr(swept.plot, name)().to_dict())
    assert svg.startswith("<svg")
    assert "var(" not in svg
    assert svg.count("<path") > 5


@pytest.mark.slow
def test_plot_called_draws_the_first_chart_or_the_one_named(quickstart: AuditResult) -> None:
    plot = quickstart.plot
    assert plot().to_dict() == plot.collusion().to_dict()
    assert plot("errors", attribute="salary").to_dict() == plot.errors(attribute="salary").to_dict()
    with pytest.raises(
        AuditorError, match="no runtime chart; they have collusion, coalitions, errors, frontier"
    ):
        plot("runtime")
    with pytest.raises(AuditorError, match="no chart; they have none"):
        quickstart.model_copy(update={"measurements": [], "distributions": []}).plot()


def test_where_altair_is_missing_it_is_named_and_so_is_the_way_around_it(
    quickstart: AuditResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("auditor_reports.charts.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "altair", None)  # as Python says that a module is not there
    with pytest.raises(
        AuditorError,
        match=r"pip install altair\. With matplotlib draw from the table: result\.frame\(\)",
    ):
        quickstart.plot()


def test_a_wrong_choice_names_the_right_ones(quickstart: AuditResult) -> None:
    with pytest.raises(AuditorError, match="adversary must be one of"):
        quickstart.plot.collusion(adversary="nobody")
    with pytest.raises(AuditorError, match="unknown choice 'colour'"):
        quickstart.plot.collusion(colour="red")
    with pytest.raises(AuditorError, match="no runtime chart"):
        quickstart.plot.runtime()

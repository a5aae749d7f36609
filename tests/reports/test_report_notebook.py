"""Results and releases in a notebook."""

from __future__ import annotations

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


def test_a_wrong_choice_names_the_right_ones(quickstart: AuditResult) -> None:
    with pytest.raises(AuditorError, match="adversary must be one of"):
        quickstart.plot.collusion(adversary="nobody")
    with pytest.raises(AuditorError, match="unknown choice 'colour'"):
        quickstart.plot.collusion(colour="red")
    with pytest.raises(AuditorError, match="no runtime chart"):
        quickstart.plot.runtime()

"""Sentences of verdicts against the figures that they cite."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import auditor
from auditor.expectations.metric import judge_bounds
from auditor.results.metrics import causes
from auditor_reports.figures.figures import Figure
from auditor_reports.figures.reading import Reading
from auditor_reports.terminal import Terminal
from auditor_reports.wording.sentences import Numbers, exactly, share
from auditor_reports.wording.verdict import verdicts
from benchmarks import leaks
from tests.audited import written
from tests.reports.report_cases import measurement

N = 1_000
RNG = np.random.default_rng(2**41 + 71)
START = RNG.bit_generator.state


def shown(value, half=None):
    low, high = (None, None) if half is None else (value - half, value + half)
    return Figure(value, low, high, None, (1,), (), "redraws", 1)


@given(st.floats(0, 30), st.floats(1e-4, 2))
def test_a_share_is_its_figure_and_never_more_than_all(value, half):
    said = share(shown(value, half))
    number = float(re.match(r"[<≤]?\s*([\d.]+)", said)[1])
    assert number <= 100
    if 0.001 < value < 1:
        assert number == pytest.approx(100 * value, abs=max(1.0, 100 * half))


@given(st.floats(0, 1e-6))
def test_exactly_is_said_of_rounding_errors_alone(value):
    sentence = Numbers(1, []).exact(shown(value), None)
    assert (
        ("records exactly" in sentence) == (value <= 1e-12) == (exactly(shown(value)) == " exactly")
    )


def first_screen(folder, table, copies):
    names = written(folder, table, copies)
    result = auditor.run({
        "schema": 1, "title": "sentences", "data": {"source": str(folder / "table.csv")},
        "schemes": [{"name": "published", "copies": names}], "knowledge": ["perfect"], "coalitions": ["subsets"],
        "attacks": ["llse", "ndr"], "expect": [{"exposure": {"unknown": {"at-least": 0.5}}}],
    })  # fmt: skip
    return result, Terminal(width=80, full=False).render([result])


def test_little_noise_beside_a_missing_code_is_not_exact(tmp_path):
    pay = RNG.lognormal(8, 0.5, N).round()
    table = pd.DataFrame({"pay": np.where(RNG.random(N) < 0.05, 9_999_999, pay)})
    copy = table * (1 + 0.01 * RNG.normal(size=(N, 1)) * (table < 9e6))
    result, page = first_screen(tmp_path, table, [copy])
    assert result.expectations[0].status == "fails"
    said = " ".join(page.split("Exposure by attribute")[0].split())
    assert "records exactly" not in said
    assert "pay exactly" not in said


def test_values_that_no_copy_shows_are_not_said_to_stand(tmp_path):
    table = pd.DataFrame({"pay": RNG.lognormal(8, 0.5, N).round(2), "age": RNG.uniform(18, 90, N)})
    spread = 2 * table.std().to_numpy()
    noise = np.round(RNG.normal(size=(N, 2)) * spread, 2)
    other = RNG.normal(size=(N, 2)) * spread * (RNG.random((N, 2)) < 0.3)
    result, page = first_screen(
        tmp_path, table, [table + noise, table - noise + 2 * other.round(2)]
    )
    assert result.expectations[0].status != "holds"
    assert "as they were" not in page
    assert "carry no noise" not in result.expectations[0].why


def diagnosed(metric, coalition, value, attribute="pay"):
    return measurement(metric=metric, coalition=coalition, value=value, attribute=attribute)


@given(st.floats(-1, 1), st.floats(0.1, 10), st.floats(0, 1.02), st.floats(0, 1))
def test_causes_are_said_of_their_figures_alone(correlation, ratio, tells, equal):
    found = [
        diagnosed("noise_correlation(1, 2)", (1, 2), correlation),
        diagnosed("noise_ratio(1, 2)", (1, 2), ratio),
        diagnosed("column_tells(a (b))", (1,), tells),
        diagnosed("values_equal", (2,), equal),
    ]
    said = "; ".join(causes(found))
    assert ("copies 1 and 2 carry the same noise" in said) == (abs(correlation) >= 0.999)
    for pattern, value in (
        (r"column 'a \(b\)' tells (\d+)% of the variance of 'pay'", tells),
        (r"copy 2 shows (\d+)% of the values of 'pay' unchanged", equal),
        (r"scaled by ([\d.]+)", None),
    ):
        for number in re.findall(pattern, said):
            if value is None:
                assert float(number) == pytest.approx(max(ratio, 1 / ratio), rel=0.06)
            else:
                assert float(number) <= 100
                assert float(number) == pytest.approx(100 * min(1, value), abs=0.51)
    assert ("tells" in said) == (tells >= 0.5)
    assert ("unchanged" in said) == (equal >= 0.05)


@given(st.lists(st.tuples(st.floats(0, 1.5), st.floats(1e-3, 0.3)), min_size=1, max_size=5))
def test_a_bound_is_judged_on_the_cell_that_it_cites(cells):
    records = [
        measurement(
            metric="normalized_error", attribute=f"a{k}", value=value, std_error=error,
            ci_low=value - 1.96 * error, ci_high=value + 1.96 * error, scheme="s", attack="llse",
            knowledge="perfect", coalition=(1,), error_bar="sampling",
        )
        for k, (value, error) in enumerate(cells)
    ]  # fmt: skip
    judged = judge_bounds([[one] for one in records], 0.5, None, 0.5, "share unknown")
    value, bar, place = re.search(
        r"share unknown (\S+) ± (\S+), wanted at least 0.5 \(.*, a(\d)\)", judged.why
    ).groups()
    cited = records[int(place)]
    assert float(value) == pytest.approx(cited.value, rel=1e-3)
    assert float(bar) == pytest.approx(1.96 * cited.std_error, rel=0.06)
    # fails only if all of the cited interval is below, holds only if all intervals are above
    assert judged.status != "fails" or cited.ci_high < 0.5
    assert judged.status != "holds" or all(one.ci_low > 0.5 for one in records)
    if len(cells) > 1:
        hold, of = map(int, re.search(r"(\d) of (\d) comparisons", judged.why).groups())
        assert of == len(cells)
        assert (hold == of) == (judged.status == "holds")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [leaks.one_noise, leaks.kept, leaks.graded_noise, leaks.branch])
def test_every_figure_of_a_verdict_is_measured(tmp_path, kind):
    result = leaks.audited_leak(kind(np.random.default_rng(2**42 + 5)), tmp_path)
    measured = [
        (turned(one.value), abs(turned(one.ci_high) - turned(one.ci_low)) / 2)
        for one in result.measurements
        if one.value is not None and one.ci_low is not None
        for turned in (lambda v: v, lambda v: 1 - v, lambda v: v * abs(v))
    ]
    for verdict in verdicts(Reading(result)):
        for value, bar in re.findall(r"([\d.]+) ± ([\d.]+) %", verdict.text):
            step = 10.0 ** -len(value.partition(".")[2])
            assert any(
                abs(100 * each - float(value)) <= step and abs(100 * half - float(bar)) <= step
                for each, half in measured
            ), (value, bar, verdict.text)

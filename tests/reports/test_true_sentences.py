"""Sentences of verdicts against the figures that they cite."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from auditor import registry
from auditor.expectations.metric import Limits, judge_bounds
from auditor.results.metrics import causes
from auditor.results.records import Evidence, InsiderGain, Pooling, ReleaseEvidence
from auditor_reports import sentences as say
from auditor_reports.audit_document import noise, shown_columns
from auditor_reports.figures import Figure
from auditor_reports.reading import Reading
from auditor_reports.sentences import Numbers, exactly, share
from auditor_reports.terminal import Terminal
from auditor_reports.verdict import verdicts
from benchmarks import leaks
from tests.audited import audited_files
from tests.reports.report_cases import audited, error, measurement

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
    result = audited_files(folder, table, copies, coalitions=["subsets"], attacks=["llse", "ndr"])
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


@pytest.mark.slow
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
    judged = judge_bounds([[one] for one in records], Limits(at_least=0.5), "share unknown")
    value, bar, place = re.search(
        r"share unknown (\S+) ± (\S+), wanted at least 0.5 \(.*, a(\d)\)", judged.why
    ).groups()
    cited = records[int(place)]
    assert float(value) == pytest.approx(cited.value, rel=1e-3)
    assert float(bar) == pytest.approx(1.96 * cited.std_error, rel=0.06)
    # fails only if the cited interval is below at 5 %, holds only if all intervals are above
    assert judged.status != "fails" or cited.value + 1.64 * cited.std_error < 0.5
    assert judged.status != "holds" or all(one.ci_low > 0.5 for one in records)
    if len(cells) > 1:
        hold, of = map(int, re.search(r"(\d) of (\d) comparisons", judged.why).groups())
        assert of == len(cells)
        assert (hold == of) == (judged.status == "holds")


def judged(name, records, releases=(), **parameters):
    plugin = registry.get("expectation", name)
    asked = plugin.Parameters.model_validate(parameters)
    return plugin(asked).judge(Evidence(records, list(releases)))


def near(cited, value, digits=3):
    return float(cited.replace(",", "")) == pytest.approx(value, rel=2 * 10.0**-digits, abs=1e-9)


SHARES = st.floats(0.02, 0.98)


@given(SHARES, SHARES, st.floats(1e-3, 0.1))
def test_a_sentence_on_pooling_cites_its_gain_and_its_errors(gain, alone, half):
    pooled = alone * (1 - gain)
    pair = shown(gain, half)._replace(coalition=(1, 2))
    said = Numbers(3).paying(pair, shown(pooled, half), shown(alone, half))
    factor = re.search(r"records ([\d.,]+) times more accurately", said)[1]
    assert near(factor, alone / pooled, 2)
    before, after = re.search(r"from ([\d.]+) .*? % to ([\d.]+) ", said).groups()
    for cited, value in ((before, alone), (after, pooled)):
        assert float(cited) == pytest.approx(100 * value, abs=max(0.51, 100 * half))
    bounds = [pair, shown(0.0, 0.0)]
    none = say.nothing(bounds, shown(alone), Numbers(3))
    most = re.search(r"gains more than ([\d.]+) %", none)[1]
    assert float(most) == pytest.approx(100 * (gain + half), abs=0.51)
    open_ = say.undecided(bounds, shown(alone), Numbers(3))
    low, high = re.search(r"lies between ([−\d.]+) % and ([\d.]+) %", open_).groups()
    assert float(low.replace("−", "-")) == pytest.approx(100 * (gain - half), abs=0.51)
    assert float(high) == pytest.approx(100 * min(1, gain + half), abs=0.51)


@given(st.sampled_from([-0.3, 0.0]) | st.floats(0.01, 0.9), st.floats(1e-3, 0.2))
def test_a_verdict_on_the_learner_s_gain_follows_from_the_gain_it_cites(correlation, bar):
    insider = InsiderGain(1, (1, 2), (correlation,), (bar,), (1e9,), 5_000)
    pooling = {(1, 2): Pooling(None, insider=insider)}
    release = ReleaseEvidence({}, "s", "published", 2, 1, 5_000, pooling=pooling)
    found = judged("no-collusion-gain", [], [release])
    assert found.status != "holds" or correlation + 1.64 * bar < 0.1
    assert found.status != "fails" or correlation - 1.64 * bar > 0.1
    cited = re.search(r"([+-][\d.]+)% ± ([\d.]+)%", found.why)
    excluded = re.search(r"beyond ([\d.]+)%", found.why)
    if excluded:
        most = 100 * (max(correlation, 0) + 1.96 * bar) ** 2
        assert float(excluded[1]) == pytest.approx(most, abs=0.01, rel=0.01)
    if cited:
        assert float(cited[1]) == pytest.approx(100 * max(correlation, 0) ** 2, abs=0.06)


@given(st.lists(st.sampled_from("pqr"), unique=True), st.lists(st.sampled_from("xyz"), unique=True))
def test_unused_columns_are_named_with_their_reason_and_leave_no_tick(texts, many):
    reasons = {"a text of their own": texts, "only 40 columns": many}
    records = [
        measurement(metric=f"column_unused({name})", value=1.0, coalition=(1,), reason=reason)
        for reason, names in reasons.items()
        for name in names
    ]
    found = judged("exposure", [error("pay", 0.9), *records], unknown={"at-least": 0.5})
    assert found.status == ("undecided" if texts or many else "holds")
    for reason, names in reasons.items():
        said = re.search(rf"shown columns? ([^:]*): {reason}", found.why)
        assert sorted(re.findall(r"'(\w)'", said[1] if said else "")) == sorted(names)


@given(st.lists(st.tuples(st.floats(0.05, 1.5), st.integers(50, 900)), min_size=1, max_size=4))
def test_a_sentence_on_a_group_cites_the_worst_group_and_its_size(groups):
    records = [error("pay", 1.0)]
    for k, (value, size) in enumerate(groups):
        metric, reason = f"group_error(region, {k + 1} of 9)", f"the group has {size:,} records"
        records.append(error("pay", value, 0.01, metric=metric, reason=reason))
    found = judged("exposure", records, unknown={"at-least": 0.5}, by="region")
    worst, _ = min(groups)
    if worst < 1:
        cited = re.search(r"unknown (\S+) ± (\S+), .*; the group has ([\d,]+) rec", found.why)
        assert near(cited[1], worst)
        assert near(cited[2], 0.01, 1)
        assert (worst, int(cited[3].replace(",", ""))) in groups
    assert found.status == ("holds" if worst > 0.52 else "fails" if worst < 0.48 else found.status)


@given(st.floats(0.3, 0.8), st.floats(0.01, 0.2), st.integers(100, 10_000))
def test_the_records_that_would_do_do(value, half, rows):
    release = ReleaseEvidence({}, "s", "corner-wave", 1, 1, rows)
    found = judged("exposure", [error("pay", value, half)], [release], unknown={"at-least": 0.5})
    advised = re.search(r"about ([\d,]+) would do", found.why)
    if advised is None:
        return
    assert found.status == "undecided"
    wanted = int(advised[1].replace(",", ""))
    less = half * (rows / wanted) ** 0.5
    assert wanted > rows
    enough = error("pay", value, 0.99 * less)
    decided = judged("exposure", [enough], unknown={"at-least": 0.5}).status
    assert decided == ("holds" if value > 0.5 else "fails")
    level = re.search(r"raise the level 1 to ([\d.]+)", found.why)
    if level:  # s/(s + c): the share unknown of normal values and noise
        s, c = float(level[1]), (1 - value) / value
        raised = error("pay", s / (s + c), 0.98 * half)
        assert judged("exposure", [raised], unknown={"at-least": 0.5}).status == "holds"


@settings(max_examples=10)
@given(*([st.floats(0, 1)] * 4), st.floats(-1, 1), st.floats(0.1, 10))
def test_tables_of_a_diagnosis_hold_its_figures(kept, equal, unique, tells, correlation, ratio):
    figures = {
        ("values_equal", (1,), "pay"): kept, ("noise_on_value", (1,), "pay"): correlation,
        ("noise_correlation(1, 2)", (1, 2), "pay"): correlation, ("noise_ratio(1, 2)", (1, 2), "pay"): ratio,
        ("column_equal(grade)", (1,), "*"): equal, ("column_unique(grade)", (1,), "*"): unique,
        ("column_tells(grade)", (1,), "pay"): tells,
    }  # fmt: skip
    records = [
        measurement(metric=metric, coalition=copies, attribute=name, value=value, scheme="s")
        for (metric, copies, name), value in figures.items()
    ]
    reading = Reading(audited([error("pay", 0.9), *records]))
    (_, alone, pairs), (_, columns) = noise(reading), shown_columns(reading)
    cells = [cell for table in (alone, pairs, columns) for row in table.rows for cell in row.cells]
    wanted = [
        100 * kept, correlation, None, correlation, ratio, 100 * equal, 100 * unique, 100 * tells,
    ]  # fmt: skip
    assert len(cells) == len(wanted)
    for cell, value in zip(cells, wanted, strict=True):
        cited = re.search(r"−?[\d.]+", str(cell).replace("×10", " "))
        if value is not None and abs(value) > 1e-3:
            assert float(cited[0].replace("−", "-")) == pytest.approx(value, abs=0.51, rel=0.01)


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

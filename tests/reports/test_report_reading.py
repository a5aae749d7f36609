import random

import pytest

from auditor.results.records import ExpectationRecord
from auditor_reports.figures.figures import Figure, number, plus_minus
from auditor_reports.figures.reading import Reading, paired_gain
from auditor_reports.wording.verdict import verdict, verdicts


def of(value, half=None, coalition=(1,)):
    low, high = (None, None) if half is None else (value - half, value + half)
    return Figure(value, low, high, None, coalition, (), "closed-form", 1)


@pytest.mark.parametrize(("value", "half", "text"), [
    (0.08333, 0.00118, "0.0833 ±0.0012"), (0.2, 1e-9, "0.2000 ±<0.0001"),
    (3e-17, 1e-18, "3×10⁻¹⁷"), (0.0, None, "0"), (15234.7, 120.0, "15,230 ±120"),
    (1285407536.0, None, "1.285×10⁹"), (-0.012, 0.004, "−0.012 ±0.004"),
])  # fmt: skip
def test_a_figure_is_written_to_the_precision_of_its_error_bar(value, half, text):
    assert f"{number(value, half)} {plus_minus(half, value)}".strip() == text


def test_a_gain_over_replicates_is_a_ratio_of_means_with_student_s_bar():
    noise = random.Random(5)
    alone = {r: 1.0 + noise.gauss(0, 0.2) for r in range(1, 21)}
    pooled_errors = {r: 0.5 * value for r, value in alone.items()}
    gain = paired_gain(of(0.5, coalition=(1, 2)), of(1.0), {(1, 2): pooled_errors, (1,): alone})
    assert gain is not None
    assert gain.value == pytest.approx(0.5)
    # the pairs move together, and so the noise cancels
    assert gain.half == pytest.approx(0.0, abs=1e-12)
    assert (
        paired_gain(of(0.5, coalition=(1, 2)), of(1.0), {(1, 2): {1: 0.5}, (1,): {1: 1.0}}) is None
    )


def test_verdicts_of_the_four_schemes(quickstart):
    found = {item.scheme: item for item in verdicts(Reading(quickstart))}
    assert {scheme: item.finding for scheme, item in found.items()} == {
        "independent": "gain", "correlated": "gain", "linearly-dependent": "exact", "corner-wave": "no-gain",
    }  # fmt: skip
    assert "all five copies" in found["correlated"].sentence
    assert found["correlated"].worst is not None
    assert f"{100 * found['correlated'].worst.value:.1f}" in found["correlated"].sentence
    assert "26 coalitions" in found["corner-wave"].sentence


def with_gains(result, error, **updates):
    """The corner-wave release with wide, or no, error bars of the gain."""

    def widen(record):
        if record.metric != "collusion_gain":
            return record
        low, high = (None, None) if error is None else (record.value - error, record.value + error)
        return record._replace(
            std_error=None if error is None else error / 1.96, ci_low=low, ci_high=high
        )

    measurements = [widen(record) for record in result.measurements]
    return Reading(
        result.model_copy(update={"measurements": measurements, "expectations": [], **updates})
    )


@pytest.mark.parametrize("error", [0.05, None])
def test_wide_or_missing_error_bars_are_undecided_and_said_so(quickstart, error):
    found = verdict(with_gains(quickstart, error), "corner-wave")
    assert found.finding == "undecided"
    assert found.sentence.startswith("Undecided whether pooling endangers the records")


@pytest.mark.parametrize(
    ("status", "error", "finding"),
    [("fails", 0.001, "refuted"), ("undecided", 0.001, "undecided"), ("holds", 0.05, "no-gain")],
)
def test_the_verdict_never_contradicts_an_expectation(quickstart, status, error, finding):
    record = ExpectationRecord(
        expectation="theorem-4", where={"scheme": "corner-wave"}, status=status, observed=None,
        bound=None, why="",
    )  # fmt: skip
    found = verdict(with_gains(quickstart, error, expectations=[record]), "corner-wave")
    assert found.finding == finding
    if finding != "no-gain":
        assert "expectation theorem-4" in found.sentence

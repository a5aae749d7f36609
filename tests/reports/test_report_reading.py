"""What the results say: figures, severity, verdicts, comparison, curves."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import report_cases

from auditor.results import AuditResult, ExpectationRecord, cells, pooled
from reports._curves import coalition_map, curve, distribution_bins, swept_paths
from reports._figures import Figure, braces, clean, copies, number, percent, plus_minus, times
from reports._matrix import matrix, measures
from reports._reading import ERROR, Reading, Setting, lowest
from reports._severity import SCALE, severity
from reports._verdict import verdict, verdicts

LLSE = Setting(0, "correlated", "perfect", "llse")


def of(value: float, half: float | None = None, coalition: tuple[int, ...] = (1,)) -> Figure:
    low, high = (None, None) if half is None else (value - half, value + half)
    return Figure(value, low, high, None, coalition, (), "closed-form", 1)


@pytest.mark.parametrize(
    ("value", "half", "text"),
    [
        (0.08333, 0.00118, "0.0833 ±0.0012"),
        (0.25, 0.0035, "0.250 ±0.004"),
        (0.2, 1e-9, "0.2000 ±<0.0001"),
        (3e-17, 1e-18, "3e-17"),
        (0.0, None, "0"),
        (15234.7, 120.0, "15,235 ±120"),
        (-0.012, 0.004, "−0.012 ±0.004"),
    ],
)
def test_a_figure_is_written_to_the_precision_of_its_error_bar(value: float, half: float | None, text: str) -> None:
    assert f"{number(value, half)} {plus_minus(half, value)}".strip() == text


@pytest.mark.parametrize(
    ("coalition", "total", "text"),
    [
        ((3,), 5, "copy 3"),
        ((1, 2), 2, "both copies"),
        ((1, 2, 3, 4, 5), 5, "all five copies"),
        ((1, 3), 5, "copies 1 and 3"),
        ((1, 2, 3, 5), 6, "copies 1–3 and 5"),
        (tuple(range(1, 31, 2)), 40, "15 of the 40 copies"),
    ],
)
def test_a_coalition_is_named_in_words(coalition: tuple[int, ...], total: int, text: str) -> None:
    assert copies(coalition, total) == text


def test_small_words() -> None:
    assert braces((1, 2, 3, 5)) == "{1–3, 5}"
    assert [percent(value) for value in (0.2, 0.083, 0.0004, 0.0, -0.02)] == [
        "20 %",
        "8.3 %",
        "0.04 %",
        "0 %",
        "−2.0 %",
    ]
    assert [times(value) for value in (2.4, 830.4, float("inf"))] == ["2.4 times", "830 times", "over a million times"]
    assert clean("a\x1b[31m\u202eb\nc") == "a�[31m�b c"


def test_the_severity_scale_covers_every_error_and_worsens_with_accuracy() -> None:
    assert [severity(value).word for value in (0.0, 0.05, 0.25, 0.5, 0.75, 3.0)] == [
        "rebuilt", "severe", "high", "moderate", "low", "low",
    ]  # fmt: skip
    assert [step.rank for step in SCALE] == [5, 4, 3, 2, 1]


def test_figures_pool_replicates_as_the_results_define(quickstart: AuditResult) -> None:
    records = next(
        r for k, r in cells(quickstart.measurements).items() if r[0].coalition == (1, 2) and r[0].metric == ERROR
    )
    value, error = pooled(records)
    setting = Setting(0, records[0].scheme, records[0].knowledge, records[0].attack)
    shown = Reading(quickstart).figures(setting)[(1, 2)]
    assert (shown.value, shown.replicates) == (value, 2)
    assert shown.half == pytest.approx(1.959964 * (error or 0), rel=1e-6)


def test_lowest_prefers_the_smallest_of_equal_coalitions() -> None:
    found = [of(0.2 - 1e-15, coalition=(1, 2)), of(0.2, coalition=(2,)), of(0.3)]
    assert lowest(found) == found[1]


def test_verdicts_of_the_four_schemes(quickstart: AuditResult) -> None:
    found = {item.scheme: item for item in verdicts(Reading(quickstart))}
    assert {scheme: item.finding for scheme, item in found.items()} == {
        "independent": "gain", "correlated": "gain", "linearly-dependent": "exact", "corner-wave": "no-gain",
    }  # fmt: skip
    assert "all five copies" in found["correlated"].sentence
    assert found["correlated"].worst is not None
    assert f"{100 * found['correlated'].worst.value:.1f}" in found["correlated"].sentence
    assert "26 coalitions" in found["corner-wave"].sentence


def with_gains(result: AuditResult, error: float | None, **updates: Any) -> Reading:
    """The corner-wave release with wide, or no, error bars of the gain."""

    def widen(record: Any) -> Any:
        if record.metric != "collusion_gain":
            return record
        low, high = (None, None) if error is None else (record.value - error, record.value + error)
        return record._replace(std_error=None if error is None else error / 1.96, ci_low=low, ci_high=high)

    measurements = [widen(record) for record in result.measurements]
    return Reading(result.model_copy(update={"measurements": measurements, "expectations": [], **updates}))


@pytest.mark.parametrize("error", [0.05, None])
def test_wide_or_missing_error_bars_are_undecided_and_said_so(quickstart: AuditResult, error: float | None) -> None:
    found = verdict(with_gains(quickstart, error), "corner-wave")
    assert found.finding == "undecided"
    assert found.sentence.startswith("Undecided whether pooling pays")


@pytest.mark.parametrize(
    ("status", "error", "finding"),
    [
        ("fails", 0.001, "refuted"),
        ("undecided", 0.001, "undecided"),
        ("holds", 0.05, "no-gain"),
        ("holds", 0.001, "no-gain"),
    ],
)
def test_the_verdict_never_contradicts_an_expectation(
    quickstart: AuditResult, status: Any, error: float, finding: str
) -> None:
    record = ExpectationRecord(
        expectation="theorem-4", where={"scheme": "corner-wave"}, status=status, observed=None, bound=None, why=""
    )
    found = verdict(with_gains(quickstart, error, expectations=[record]), "corner-wave")
    assert found.finding == finding
    if finding != "no-gain":
        assert "expectation theorem-4" in found.sentence


def test_an_expectation_about_less_does_not_settle_the_whole(quickstart: AuditResult) -> None:
    record = ExpectationRecord(
        expectation="no-collusion-gain", where={"scheme": "corner-wave", "attack": "ndr"}, status="holds",
        observed=0.0, bound=0.01, why="",
    )  # fmt: skip
    assert verdict(with_gains(quickstart, 0.05, expectations=[record]), "corner-wave").finding == "undecided"


def test_single_copies_alone_and_nothing_at_all(quickstart: AuditResult) -> None:
    singles = [record for record in quickstart.measurements if len(record.coalition) == 1]
    found = verdict(Reading(quickstart.model_copy(update={"measurements": singles, "expectations": []})), "correlated")
    assert found.finding == "alone"
    empty = quickstart.model_copy(update={"measurements": [], "distributions": []})
    assert {item.finding for item in verdicts(Reading(empty))} == {"not-measured"}


def test_the_comparison_holds_worst_and_best_single(quickstart: AuditResult) -> None:
    rows = matrix(Reading(quickstart))
    assert [(row.attack, row.knowledge) for row in rows[:2]] == [("ndr", "perfect"), ("llse", "perfect")]
    cell = rows[1].cells[1]
    assert cell.worst is not None
    assert cell.single is not None
    found = Reading(quickstart).figures(LLSE)
    assert cell.worst.value == min(figure.value for figure in found.values())
    assert cell.single.value == min(found[(copy,)].value for copy in cell.worst.coalition)
    assert [name for name, _ in cell.attributes] == ["age", "salary"]


def test_cells_without_figures_keep_their_reason(failed: AuditResult) -> None:
    found = {(row.attack, cell.scheme): cell for row in matrix(Reading(failed)) for cell in row.cells}
    assert found[("distribution-analysis", "linearly-dependent")].reason == report_cases.UNSUITED
    assert found[("svd-filter", "independent")].status == "failed"
    assert found[("svd-filter", "correlated")].status == "missing"


def test_curves_follow_prefixes_when_all_were_measured_else_the_worst(quickstart: AuditResult) -> None:
    points = curve(Reading(quickstart), LLSE)
    assert [point.shown.coalition for point in points] == [tuple(range(1, size + 1)) for size in range(1, 6)]
    kept = [record for record in quickstart.measurements if record.coalition != (1, 2)]
    points = curve(Reading(quickstart.model_copy(update={"measurements": kept})), LLSE)
    assert not any(point.prefix for point in points)
    assert points[1].shown.coalition == (2, 4)
    assert points[1].mean > points[1].shown.value


def test_the_coalition_map_stays_within_its_limit_and_keeps_the_worst(quickstart: AuditResult) -> None:
    everything, left_out = coalition_map(Reading(quickstart), 10_000)
    assert left_out == 0
    few, left_out = coalition_map(Reading(quickstart), 16 * 12)
    assert len(few) + left_out == len(everything)
    assert len(few) <= 16 * 13
    settings = {(point.setting, point.attribute) for point in few}
    assert {(p.setting, p.attribute) for p in few if p.worst} == settings


def test_distributions_cumulate_to_their_share(quickstart: AuditResult) -> None:
    bins = distribution_bins(Reading(quickstart))
    groups = itertools.groupby(bins, key=lambda item: id(item.record))
    for _, group in groups:
        last = list(group)[-1]
        assert last.cumulative == pytest.approx(1 - last.record.above, abs=1e-12)


def test_a_sweep_is_read_point_by_point(swept: AuditResult) -> None:
    reading = Reading(swept)
    assert swept_paths(reading) == ["data.rows"]
    assert [reading.point_text(point) for point in range(4)] == [f"data.rows = {n}" for n in (1000, 4000, 16000, 64000)]
    assert [row.metric for row in measures(reading)] == ["seconds"]

"""The expectation that a metric rises or falls along a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auditor import registry
from auditor.expectations.metric import measured_at
from auditor.results.evidence import Evidence
from auditor.results.records import Measurement


def record(
    x: float, value: float, theory: float | None = None, error: float = 0.01, **changes: Any
) -> Measurement:
    fields: dict[str, Any] = dict(
        sweep={"data.rows": x}, scheme="s", knowledge="perfect", attack="a", coalition=(1,), levels=(1.0,), replicate=1, attribute="*",
        metric="rmse", value=value, std_error=error, ci_low=None, ci_high=None, theory=theory, status="ok", reason=None,
        error_bar="closed-form",
    )  # fmt: skip
    return Measurement(**(fields | changes))


def judge(records: list[Measurement], **parameters: Any) -> Any:
    expectation = registry.get("expectation", "monotone")(
        metric="rmse", against="data.rows", **parameters
    )
    return expectation.judge(Evidence(records, []))


def test_holds_and_fails() -> None:
    rising = [record(1, 1.0), record(3, 3.0), record(2, 2.0)]  # in any order
    assert judge(rising, direction="rising").status == "holds"
    assert judge(rising, direction="falling").status == "fails"


def test_one_step_the_other_way_fails_and_within_the_error_is_undecided() -> None:
    assert (
        judge([record(1, 1.0), record(2, 2.0), record(3, 1.5)], direction="rising").status
        == "fails"
    )
    assert (
        judge([record(1, 1.0), record(2, 2.0), record(3, 1.995)], direction="rising").status
        == "undecided"
    )
    assert (
        judge(
            [record(1, 1.0), record(2, 2.0), record(3, 1.995)], direction="rising", slack=0.2
        ).status
        == "holds"
    )


def test_a_step_the_right_way_within_the_error_is_no_evidence_either() -> None:
    """Halves of noise fall on the right side: a step that the data cannot tell and theory does not know is undecided."""
    assert judge([record(1, 1.0), record(2, 1.005)], direction="rising").status == "undecided"
    assert (
        judge([record(1, 1.0), record(2, 2.0), record(3, 2.005)], direction="rising").status
        == "undecided"
    )
    assert judge([record(1, 1.005), record(2, 1.0)], direction="falling").status == "undecided"
    assert (
        judge([record(1, 1.0), record(2, 1.005)], direction="rising", slack=0.1).status == "holds"
    )
    assert (
        judge([record(1, 1.0, theory=1.0), record(2, 1.005, theory=1.0)], direction="rising").status
        == "holds"
    )
    assert (
        judge([record(1, 1.0, error=0.0), record(2, 1.005, error=0.0)], direction="rising").status
        == "holds"
    )
    assert (
        judge([record(1, 1.0, error=0.0), record(2, 1.0, error=0.0)], direction="rising").status
        == "holds"
    )


def test_of_many_steps_each_must_be_shown() -> None:
    """Two standard errors are evidence for one step, and not for each of forty: one in forty would show as much by chance."""
    steps = [record(x, 1.0 + 0.04 * x) for x in range(2)]
    assert judge(steps, direction="rising").status == "holds"
    assert (
        judge([record(x, 1.0 + 0.04 * x) for x in range(41)], direction="rising").status
        == "undecided"
    )


def test_white_noise_is_seldom_taken_for_a_rise() -> None:
    """Of 400 sweeps of four values that only noise moves, at most the stated 5 % are called either way: more than 35 is a chance below 1 in 1,000."""
    draw = np.random.default_rng(5)
    verdicts = [
        judge(
            [record(x, v) for x, v in enumerate(draw.normal(1.0, 0.01, 4))], direction="rising"
        ).status
        for _ in range(400)
    ]
    assert verdicts.count("holds") <= 35
    assert verdicts.count("fails") <= 35


def test_theory_settles_what_measurement_cannot() -> None:
    assert (
        judge(
            [record(1, 2.0, theory=1.99), record(2, 1.995, theory=2.0)], direction="rising"
        ).status
        == "holds"
    )
    assert (
        judge([record(1, 1.0, theory=2.0), record(2, 1.1, theory=1.0)], direction="rising").status
        == "fails"
    )


def test_only_the_stretch_asked_for() -> None:
    valley = [record(1, 3.0), record(2, 1.0), record(3, 2.0)]
    assert judge(valley, direction="falling", between=[1, 2]).status == "holds"
    assert judge(valley, direction="rising", between=[2, 3]).status == "holds"


def test_lines_are_kept_apart() -> None:
    crossing = [
        record(1, 1.0),
        record(2, 2.0),
        record(1, 5.0, attack="b"),
        record(2, 6.0, attack="b"),
    ]
    crossing += [
        record(1, 9.0, knowledge="estimated(rows=9)"),
        record(2, 10.0, knowledge="estimated(rows=9)"),
    ]
    judged = judge(crossing, direction="rising")
    assert judged.status == "holds"
    assert "3 lines" in judged.why


def test_nothing_to_compare_is_undecided() -> None:
    assert judge([], direction="rising").status == "undecided"
    assert judge([record(1, 1.0)], direction="rising").status == "undecided"


def test_a_stretch_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValueError, match="between must go from a smaller"):
        judge([], direction="rising", between=[2, 1])


def test_the_reason_names_the_two_points_compared() -> None:
    why = judge([record(100, 1.0), record(400, 1.5)], direction="rising").why
    assert "a (perfect) on s, at data.rows = 100 ≤ at data.rows = 400" in why


def test_a_figure_of_the_release_itself_is_named_by_its_scheme() -> None:
    """History size and seconds have no attack and no knowledge: reasons that say «None (None)» tell nothing."""
    ours = [
        record(1, value, scheme=scheme, attack=None, knowledge=None, metric="history_size")
        for scheme, value in (("up", 1.0), ("down", 2.0))
    ]
    ranked = registry.get("expectation", "ranking")(
        metric="history_size", by="scheme", order=["up", "down"]
    )
    assert ranked.judge(Evidence(ours, [])).why.startswith("closest of 1: up ≤ down, difference")
    assert measured_at(ours[0]) == "up, copy 1"
    assert measured_at(record(1, 1.0, coalition=(1, 2))) == "s, a, perfect, copies 1, 2"

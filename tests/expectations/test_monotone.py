"""The expectation `monotone`."""

from typing import Any

import numpy as np

from auditor import registry
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


def test_of_many_steps_each_must_be_shown() -> None:
    steps = [record(x, 1.0 + 0.04 * x) for x in range(2)]
    assert judge(steps, direction="rising").status == "holds"
    assert (
        judge([record(x, 1.0 + 0.04 * x) for x in range(41)], direction="rising").status
        == "undecided"
    )


def test_white_noise_is_seldom_taken_for_a_rise() -> None:
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

"""The expectation `monotone`."""

import numpy as np
import pytest

from auditor import registry
from auditor.results.records import Evidence
from tests.audited import record


def judge(values, theories=None, order=None, **parameters):
    """Return the verdict on values at 1, 2, 3, …, each ± 0.01."""
    records = [
        record(value, sweep={"data.rows": x}, metric="rmse", theory=theory)
        for x, (value, theory) in enumerate(
            zip(values, theories or [None] * len(values), strict=True), 1
        )
    ]
    expectation = registry.get("expectation", "monotone")
    found = expectation(
        **({"metric": "rmse", "against": "data.rows", "direction": "rising"} | parameters)
    )
    return found.judge(Evidence([records[k] for k in order or range(len(records))], [])).status


@pytest.mark.parametrize(
    ("values", "more", "status"),
    [
        ([1.0, 2.0, 3.0], {"order": (0, 2, 1)}, "holds"),
        ([1.0, 2.0, 3.0], {"direction": "falling"}, "fails"),
        ([1.0, 2.0, 1.5], {}, "fails"),
        ([1.0, 2.0, 1.995], {}, "undecided"),
        ([1.0, 2.0, 1.995], {"slack": 0.2}, "holds"),
        ([1.0, 1.04], {}, "holds"),
        ([1.0 + 0.04 * x for x in range(41)], {}, "undecided"),  # of many steps each must be shown
        ([2.0, 1.995], {"theories": [1.99, 2.0]}, "holds"),
        ([1.0, 1.1], {"theories": [2.0, 1.0]}, "fails"),
    ],
)
def test_each_step_is_shown_by_the_data_or_by_theory(values, more, status):
    assert judge(values, **more) == status


def test_white_noise_is_seldom_taken_for_a_rise():
    draw = np.random.default_rng(5)
    verdicts = [judge(draw.normal(1.0, 0.01, 4)) for _ in range(400)]
    assert verdicts.count("holds") <= 35
    assert verdicts.count("fails") <= 35
